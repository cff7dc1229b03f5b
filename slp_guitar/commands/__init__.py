"""The commands `tab` and `convert`."""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def rare_collections() -> Iterator[None]:
    """While it lasts, look for reference cycles only now and then.

    A piece is hundreds of thousands of live tuples and fractions in no cycle. Python walks through
    all of them again and again as they become more, which takes a fifth of a command's time.
    """
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], 100_000) if before[0] else 0, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*before)
