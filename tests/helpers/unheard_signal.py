"""A signal that interrupts no read, as one that comes right before the system's `read`."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO


@contextmanager
def pipe_with_unheard_signal(content: bytes, in_time: list[bool]) -> Iterator[BinaryIO]:
    """Yield a pipe that gives some bytes and no more; SIGINT comes to another thread.

    Args:
        content: what can be read before the reader has to wait.
        in_time: takes whether the block ended within two seconds of the signal.
    """
    reading, writing = os.pipe()
    os.write(writing, content)
    heeded = threading.Event()

    def press():
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
