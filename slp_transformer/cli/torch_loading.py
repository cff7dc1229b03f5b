"""A notice while PyTorch is imported, which takes seconds; Ctrl-C ends it with a message."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from slp_transformer._internal.signals import STOP_SIGNALS
from slp_transformer.cli.console import PROGRAM, SIGNALLED, print_status, rank


@contextmanager
def torch_import_notice(quiet: bool = False) -> Iterator[None]:
    """Say that PyTorch is being loaded, if it is not yet, and let Ctrl-C end the process.

    In the middle of its import PyTorch may take KeyboardInterrupt for an error of its own.
    """
    if "torch" in sys.modules:
        yield
        return
    if not quiet:
        print_status("Loading PyTorch ...")
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    handled = [number for number in STOP_SIGNALS if before[number] not in (signal.SIG_IGN, None)]
    for number in handled:
        signal.signal(number, exit_on_signal)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, before[number])


def exit_on_signal(number: int, _: FrameType | None) -> NoReturn:
    """End the process at once."""
    if rank() == 0:
        os.write(2, f"{PROGRAM}: Stopped before it began.\n".encode())
    os._exit(SIGNALLED + number)
