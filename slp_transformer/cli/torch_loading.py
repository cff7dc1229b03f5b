"""Loading PyTorch, which takes seconds: a line says so, and Ctrl-C ends it in a sentence."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from slp_transformer._internal.signals import SIGNALS
from slp_transformer.cli.console import PROGRAM, SIGNALLED, note, rank


@contextmanager
def loading(quiet: bool = False) -> Iterator[None]:
    """Say that PyTorch is being loaded, if it is not there yet, and have Ctrl-C end the process.

    In the middle of its loading PyTorch may take KeyboardInterrupt for an error of its own; nothing
    is begun yet that would have to be put in order.
    """
    if "torch" in sys.modules:
        yield
        return
    if not quiet:
        note("Loading PyTorch ...")
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    heeded = [number for number in SIGNALS if before[number] not in (signal.SIG_IGN, None)]
    for number in heeded:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in heeded:
            signal.signal(number, before[number])


def stop(number: int, _: FrameType | None) -> NoReturn:
    """End at once."""
    if rank() == 0:
        os.write(2, f"{PROGRAM}: Stopped before it began.\n".encode())
    os._exit(SIGNALLED + number)
