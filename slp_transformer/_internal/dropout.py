"""Dropout (Srivastava et al. 2014), which the book leaves out."""

import torch.nn.functional as F
from torch import nn

from slp_transformer._internal.config_checks import check_dropout
from slp_transformer._internal.dropout_mask import try_fast_dropout
from slp_transformer._internal.reference_mode import fast_paths_enabled
from slp_transformer._internal.shape_types import Float, Tensor


def apply_dropout(X: Float[Tensor, "..."], p: float) -> Float[Tensor, "..."]:
    """Set a share of X to 0, drawn at random, and scale up the rest to make up for it.

    Args:
        X: what to drop from.
        p: how much to drop; 0 leaves X as it is.

    Raises:
        ValueError: if the share is below 0, or not below 1.
    """
    check_dropout(p)
    if p == 0:
        return X
    dropped = try_fast_dropout(X, p) if fast_paths_enabled() else None
    return F.dropout(X, p) if dropped is None else dropped


class Dropout(nn.Dropout):
    """`torch.nn.Dropout` that goes by `drop`."""

    def forward(self, X: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Drop a share of X in training, and scale up the rest; leave X as it is otherwise."""
        if not self.training:
            return X
        return (
            apply_dropout(X, self.p) if 0 < self.p < 1 and not self.inplace else super().forward(X)
        )
