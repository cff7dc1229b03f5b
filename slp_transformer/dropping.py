"""Dropout on a CPU, where drawing its random numbers takes longer than all that it does with them.

PyTorch draws a number of double precision for every place, one after the other. Whether to keep a
place is decided here by sixteen random bits, four places for each number drawn.
"""

import math
from collections.abc import Sequence

import torch
from torch import nn

from slp_transformer.choices import on_a_plain_cpu
from slp_transformer.shapes import Bool, Float, Tensor

STEPS = 2**16  # as many shares can be told apart


def check_dropout(dropout: float) -> None:
    """Refuse a share to drop that is not between 0 and 1.

    Raises:
        ValueError: naming the share.
    """
    if not 0.0 <= dropout < 1.0:
        raise ValueError(f"dropout is the share to drop, from 0 up to but not 1, not {dropout!r}.")


def in_steps(share: float) -> int:
    """A share in steps of 1/65,536, but never all of them."""
    return min(round(share * STEPS), STEPS - 1)


def make_up(share: float) -> float:
    """The factor by which those that are kept make up for those that are dropped."""
    return STEPS / (STEPS - in_steps(share))


def draw_kept(shape: Sequence[int], share: float) -> Bool[Tensor, "..."]:
    """Draw which places to keep, with PyTorch's generator of the CPU.

    Args:
        shape: how many places.
        share: the probability that one is dropped.

    Returns:
        True for those to keep.
    """
    count = math.prod(shape)
    numbers = torch.empty(-(-count // 4), dtype=torch.int64).random_(-(2**63), None)
    bits = numbers.view(torch.int16)[:count]
    return (bits >= in_steps(share) - STEPS // 2).view(shape)


class Dropout(nn.Dropout):
    """`torch.nn.Dropout` (Srivastava et al. 2014), faster on a CPU."""

    def forward(self, X: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Drop a share of X in training, and scale up the rest; leave X as it is otherwise."""
        if self.inplace or not (self.training and 0 < self.p < 1 and on_a_plain_cpu(X)):
            return super().forward(X)
        return torch.where(draw_kept(X.shape, self.p), X * make_up(self.p), 0.0)
