"""The weight matrices of every layer.

Weights are in the book's orientation, rows for inputs and columns for outputs, so that `x @ W`
reads as the book reads.
"""

import torch
import torch.nn.functional as F
from torch import nn

from slp_transformer._internal.shape_types import Float, Tensor


def make_weight_matrix(rows: int, columns: int) -> nn.Parameter:
    """Make a weight matrix in the book's orientation, [rows×columns], for `x @ W`.

    Drawn from a normal distribution of variance 1/rows, so that a row vector of unit variance
    keeps it. The book leaves initialization open.
    """
    return nn.Parameter(torch.randn(rows, columns) * rows**-0.5)


def affine(
    X: Float[Tensor, "*batch d"], W: Float[Tensor, "d d_out"], b: Float[Tensor, "d_out"] | None
) -> Float[Tensor, "*batch d_out"]:
    """`X @ W + b`, with b, if there is one, added within the product."""
    return F.linear(X, W.T, b)
