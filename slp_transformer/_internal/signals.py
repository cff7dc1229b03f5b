"""Signals that ask the process to stop.

SIGTERM (preemption, `docker stop`, `kill`) and SIGHUP (a closed connection or terminal) are handled
as Ctrl-C is. Signals that the process was started to ignore, as by `nohup`, stay ignored.
"""

import os
import select
import signal
import stat
import threading
from contextlib import suppress
from types import FrameType
from typing import Any

SIGNAL_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")  # the last one is Windows' own
STOP_SIGNALS = tuple(getattr(signal, name) for name in SIGNAL_NAMES if hasattr(signal, name))


LOOK_S = 0.5  # between looks for a signal while nothing comes


class StoppedBySignal(KeyboardInterrupt):
    """Raised where work stops because of a signal.

    Attributes:
        signal_number: the signal's; a command ends with 128 + this number.
    """

    def __init__(self, message: str = "", signal_number: int | None = None):
        """Take a message for the user, and the number of the signal (SIGINT if None)."""
        super().__init__(message)
        self.signal_number = signal.SIGINT if signal_number is None else signal_number


class SignalHandler:
    """Handles the signals inside a `with` block.

    Python handles signals in the main thread only; in another thread this does nothing.

    Attributes:
        signal_number: the first signal that was received; None until then.
    """

    def __init__(self, *, defer: bool, ignore_afterwards: bool = False):
        """Create a handler.

        Args:
            defer: only set `pressed`, for the caller to stop at a good moment; if false, the first
                signal raises `StoppedBySignal`. Later signals are ignored.
            ignore_afterwards: ignore the signals after the block, in a process that is about to
                end.
        """
        self.defer: bool = defer
        self.ignore_afterwards: bool = ignore_afterwards
        self.signal_number: int | None = None
        self.previous_handlers: dict[int, Any] = {}

    @property
    def triggered(self) -> bool:
        """Return whether a signal was received."""
        return self.signal_number is not None

    def __enter__(self) -> "SignalHandler":
        """Install the handlers."""
        if threading.current_thread() is threading.main_thread():
            for number in STOP_SIGNALS:
                before = signal.getsignal(number)
                if before not in (signal.SIG_IGN, None):  # None: not Python's to give back
                    self.previous_handlers[number] = before
                    signal.signal(number, self.handle_signal)
        return self

    def handle_signal(self, number: int, _: FrameType | None) -> None:
        """Record a signal.

        Raises:
            StoppedBySignal: the first time, unless it can wait.
        """
        if number == getattr(signal, "SIGHUP", None):
            redirect_closed_terminal()
        first, self.signal_number = self.signal_number is None, self.signal_number or number
        if first and not self.defer:
            raise StoppedBySignal(signal_number=number)

    def __exit__(self, *_: Any) -> None:
        """Restore the previous handlers; an outer `SignalHandler` learns of the signal."""
        for number, before in self.previous_handlers.items():
            outer = getattr(before, "__self__", None)
            if isinstance(outer, SignalHandler):
                outer.signal_number = outer.signal_number or self.signal_number
            signal.signal(number, signal.SIG_IGN if self.ignore_afterwards else before)


def read_heeding_signals(stream: Any, size: int) -> bytes:
    """Return what comes next from a pipe or a terminal, at most so many bytes; none at its end.

    The stream is a buffered one, such as `sys.stdin.buffer`. Its own `read` would wait for ever
    after a signal that comes between Python's last look for one and the system's `read`, which is
    then not interrupted.
    """
    if os.name != "nt":  # whose select knows sockets alone
        with suppress(OSError, ValueError):  # no file of the system's
            while not select.select([stream], [], [], LOOK_S)[0]:
                pass
    block: bytes = stream.read1(size)
    return block


def redirect_closed_terminal() -> None:
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
