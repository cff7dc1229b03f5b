"""Matrices that are computed, in models that are made without memory, on the device "meta"."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from slp_transformer._internal.shape_types import ShapedModule, Tensor


class ComputedTable(ShapedModule):
    """A module whose matrix P is computed, so no file holds it: a buffer that is not saved."""

    P: Tensor
    compute: Callable[[int, int], Tensor]

    def _apply(self, fn, recurse=True):
        """Compute P again where a model made without memory is given some."""
        had_memory = not self.P.is_meta
        super()._apply(fn, recurse)
        if not had_memory and not self.P.is_meta:
            with torch.device("cpu"):  # the default device may be the one without memory
                self.P.copy_(self.compute(*self.P.shape))
        return self


def compute_missing_tables(module: nn.Module, _: Any = None) -> None:
    """Compute the tables of a module without memory, once its weights were loaded."""
    W = next(module.parameters())
    for part in module.modules():
        if isinstance(part, ComputedTable) and part.P.is_meta and not W.is_meta:
            part.to_empty(device=W.device)
