"""A signal that interrupts no read, as one that comes right before the system's `read`."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO


@contextmanager
def pipe_with_unheard_signal(
    content: bytes, in_time: list[bool], ready: threading.Event | None = None
) -> Iterator[BinaryIO]:
    """Yield a pipe that gives some bytes and no more; SIGINT comes to another thread.

    Args:
        content: what can be read before the reader has to wait.
        in_time: takes whether the block ended within two seconds of the signal.
        ready: set when the signal may come; at once if None.
    """
    reading, writing = os.pipe()
    os.write(writing, content)
    heeded = threading.Event()

    def press():
        if ready is not None:
            ready.wait(60)
            time.sleep(0.05)  # now the reader waits
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        in_time.append(heeded.wait(2))
        os.close(writing)

    pressing = threading.Timer(0.05, press)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with open(reading, "rb") as stream:
            pressing.start()
            yield stream
    finally:
        heeded.set()
        pressing.join()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
