"""Whether the faster ways are taken: yes, unless somebody asks for the plain ones."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

_on = os.environ.get("SLP_TRANSFORMER_PLAIN", "0") in ("", "0")


def switched_on() -> bool:
    """Whether to look for a faster way."""
    return _on


@contextmanager
def plainly() -> Iterator[None]:
    """As long as the context lasts, everything in this process goes by its equation alone."""
    global _on
    before, _on = _on, False
    try:
        yield
    finally:
        _on = before
