"""Signals that ask the process to stop.

SIGTERM (preemption, `docker stop`, `kill`) and SIGHUP (a closed connection or terminal) are handled
as Ctrl-C is. Signals that the process was started to ignore, as by `nohup`, stay ignored.
"""

import os
import signal
import stat
import threading
from types import FrameType

NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")  # the last one is Windows' own
SIGNALS = tuple(getattr(signal, name) for name in NAMES if hasattr(signal, name))


class Stopped(KeyboardInterrupt):
    """Raised where work stops because of a signal.

    Attributes:
        number: the signal's; a command ends with 128 + this number.
    """

    def __init__(self, words: str = "", number: int | None = None):
        """Take a message for the user, and the number of the signal (SIGINT if None)."""
        super().__init__(words)
        self.number = signal.SIGINT if number is None else number


class StopSignals:
    """Handles the signals inside a `with` block.

    Python handles signals in the main thread only; in another thread this does nothing.

    Attributes:
        number: the first signal that was received; None until then.
    """

    def __init__(self, *, wait: bool, for_good: bool = False):
        """Create a handler.

        Args:
            wait: only set `pressed`, for the caller to stop at a good moment; if false, the first
                signal raises `Stopped`. Later signals are ignored.
            for_good: ignore the signals after the block, in a process that is about to end.
        """
        self.wait, self.for_good = wait, for_good
        self.number: int | None = None
        self.before: dict[int, object] = {}

    @property
    def pressed(self) -> bool:
        """Return whether a signal was received."""
        return self.number is not None

    def __enter__(self) -> "StopSignals":
        """Install the handlers."""
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                before = signal.getsignal(number)
                if before not in (signal.SIG_IGN, None):  # None: not Python's to give back
                    self.before[number] = before
                    signal.signal(number, self.hear)
        return self

    def hear(self, number: int, _: FrameType | None) -> None:
        """Record a signal.

        Raises:
            Stopped: the first time, unless it can wait.
        """
        if number == getattr(signal, "SIGHUP", None):
            leave_terminal()
        first, self.number = self.number is None, self.number or number
        if first and not self.wait:
            raise Stopped(number=number)

    def __exit__(self, *_) -> None:
        """Restore the previous handlers; an outer `StopSignals` learns of the signal."""
        for number, before in self.before.items():
            outer = getattr(before, "__self__", None)
            if isinstance(outer, StopSignals):
                outer.number = outer.number or self.number
            signal.signal(number, signal.SIG_IGN if self.for_good else before)


def leave_terminal() -> None:
    """Redirect output to the null device if its terminal was closed."""
    for output in (1, 2):
        try:
            gone = stat.S_ISCHR(os.fstat(output).st_mode) and not os.isatty(output)
        except OSError:  # it was closed
            continue
        if gone:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, output)
            os.close(nowhere)
