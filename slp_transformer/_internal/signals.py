"""Wishes to stop: Ctrl-C, and the signals by which a cluster or a closed terminal asks for it.

SIGTERM (preemption, `docker stop`, `kill`) and SIGHUP (a connection or a terminal that is closed)
are heeded as Ctrl-C is. What the process was started to ignore, as by `nohup`, it goes on ignoring.
"""

import os
import signal
import stat
import threading
from types import FrameType

NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")  # the last one is Windows' own
SIGNALS = tuple(getattr(signal, name) for name in NAMES if hasattr(signal, name))


class Stopped(KeyboardInterrupt):
    """The end of work that was asked to stop.

    Attributes:
        number: the signal's; a command ends with 128 + this number.
    """

    def __init__(self, words: str = "", number: int | None = None):
        """Say what to do now, and which signal it was; Ctrl-C's if None."""
        super().__init__(words)
        self.number = signal.SIGINT if number is None else number


class StopSignals:
    """Hears the signals, from `with` on.

    Python lets the main thread alone handle signals; in another one this changes nothing.

    Attributes:
        number: the first signal that came; None as long as none did.
    """

    def __init__(self, *, wait: bool, for_good: bool = False):
        """Begin with no wish.

        Args:
            wait: leave it to whoever asks for `pressed` to stop at a good moment; if false, the
                first signal raises `Stopped`. What comes after the first changes nothing.
            for_good: ignore the signals afterwards, for a process that has nothing left to do.
        """
        self.wait, self.for_good = wait, for_good
        self.number: int | None = None
        self.before: dict[int, object] = {}

    @property
    def pressed(self) -> bool:
        """Whether a signal came."""
        return self.number is not None

    def __enter__(self) -> "StopSignals":
        """Listen."""
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                before = signal.getsignal(number)
                if before not in (signal.SIG_IGN, None):  # None: not Python's to give back
                    self.before[number] = before
                    signal.signal(number, self.hear)
        return self

    def hear(self, number: int, _: FrameType | None) -> None:
        """Note that a signal came.

        Raises:
            Stopped: the first time, unless it can wait.
        """
        if number == getattr(signal, "SIGHUP", None):
            leave_terminal()
        first, self.number = self.number is None, self.number or number
        if first and not self.wait:
            raise Stopped(number=number)

    def __exit__(self, *_) -> None:
        """Handle the signals as before; whoever listened before knows what was heard meanwhile."""
        for number, before in self.before.items():
            outer = getattr(before, "__self__", None)
            if isinstance(outer, StopSignals):
                outer.number = outer.number or self.number
            signal.signal(number, signal.SIG_IGN if self.for_good else before)


def leave_terminal() -> None:
    """Have what is printed to a terminal that is gone go nowhere, rather than fail."""
    for output in (1, 2):
        try:
            gone = stat.S_ISCHR(os.fstat(output).st_mode) and not os.isatty(output)
        except OSError:  # it was closed
            continue
        if gone:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, output)
            os.close(nowhere)
