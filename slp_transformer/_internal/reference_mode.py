"""The switch between fast paths and the plain equations, and tensors that no fast path can take."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.autograd import forward_ad

_fast_paths = os.environ.get("SLP_TRANSFORMER_PLAIN", "0") in ("", "0")


def fast_paths_enabled() -> bool:
    """Return whether faster ways than the plain equations may be taken."""
    return _fast_paths


def is_traced(X: torch.Tensor) -> bool:
    """Return whether X stands for values that cannot be read: compiled, transformed or fake."""
    transformed = torch._C._are_functorch_transforms_active()
    return torch.compiler.is_compiling() or transformed or type(X) is not torch.Tensor


def is_forward_mode() -> bool:
    """Return whether derivatives are computed forwards (`torch.func.jvp`), which no kernel can."""
    return forward_ad._current_level >= 0


@contextmanager
def reference_mode() -> Iterator[None]:
    """Compute everything in this process by its equation alone, as long as the context lasts."""
    global _fast_paths
    before, _fast_paths = _fast_paths, False
    try:
        yield
    finally:
        _fast_paths = before
