"""Whether the faster ways are taken: yes, unless somebody asks for the plain ones."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

_fast_paths = os.environ.get("SLP_TRANSFORMER_PLAIN", "0") in ("", "0")


def fast_paths_enabled() -> bool:
    """Return whether to look for a faster way."""
    return _fast_paths


@contextmanager
def reference_mode() -> Iterator[None]:
    """As long as the context lasts, everything in this process goes by its equation alone."""
    global _fast_paths
    before, _fast_paths = _fast_paths, False
    try:
        yield
    finally:
        _fast_paths = before
