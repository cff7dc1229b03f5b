"""Dropout (Srivastava et al. 2014), which the book leaves out.

On a CPU PyTorch draws a number of double precision for every place, which takes longer than all
that is done with it. Here sixteen random bits decide about a place, so a number serves four.
"""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import nn

from slp_transformer._internal.config_checks import DROPOUT, check_range
from slp_transformer._internal.reference_mode import fast_paths_enabled, is_traced
from slp_transformer._internal.shape_types import Bool, Float, Tensor

DROPOUT_STEPS = 2**16  # shares that can be distinguished


def apply_dropout(X: Float[Tensor, "..."], p: float) -> Float[Tensor, "..."]:
    """Set a share of X to 0, drawn at random, and scale up the rest to make up for it.

    The same for every call with the same random state, whether gradients are recorded or not.

    Args:
        X: any tensor.
        p: how much to drop; 0 leaves X as it is.
    """
    if p == 0:
        return X
    if not fast_paths_enabled() or X.device.type != "cpu" or is_traced(X) or p == 1:
        return F.dropout(X, p)
    # Not 1 / (1 - p): what makes up for the rounded share leaves the mean of X as it is.
    scale = DROPOUT_STEPS / (DROPOUT_STEPS - round_to_steps(p))
    return X * sample_keep_mask(X.shape, p).to(X.dtype).mul_(scale)


class Dropout(nn.Dropout):
    """`torch.nn.Dropout` by `apply_dropout`."""

    def __init__(self, p: float):
        """Choose the share to drop.

        Raises:
            ValueError: if it is below 0, or not below 1.
        """
        check_range(DROPOUT, dropout=p)
        super().__init__(p)

    def forward(self, X: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Drop a share of X in training, and scale up the rest; leave X as it is otherwise."""
        return apply_dropout(X, self.p) if self.training else X


def round_to_steps(p: float) -> int:
    """Return a share in steps of 1/65,536, but never all of them."""
    return min(round(p * DROPOUT_STEPS), DROPOUT_STEPS - 1)


def sample_keep_mask(shape: Sequence[int], p: float) -> Bool[Tensor, "..."]:
    """Draw places to keep, with PyTorch's generator of the CPU.

    Returns:
        True for those to keep; each is dropped with probability `p`.
    """
    count = math.prod(shape)
    # From the lowest number to the highest: all 64 bits are drawn.
    numbers = torch.empty(-(-count // 4), dtype=torch.int64, device="cpu").random_(-(2**63), None)
    bits = numbers.view(torch.int16)[:count]
    return (bits >= round_to_steps(p) - DROPOUT_STEPS // 2).view(shape)
