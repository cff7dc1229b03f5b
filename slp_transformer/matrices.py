"""What every layer begins with: its weight matrices, and sizes that have to fit.

Weights are in the book's orientation, rows for inputs and columns for outputs, so that `x @ W`
reads as the book reads.
"""

import torch
import torch.nn.functional as F
from torch import nn

from slp_transformer.shapes import Float, Tensor, shape_of


def matrix(rows: int, columns: int) -> nn.Parameter:
    """A weight matrix in the book's orientation, [rows×columns], for `x @ W`.

    Drawn from a normal distribution of variance 1/rows, so that a row vector of unit variance
    keeps it. The book leaves initialisation open.
    """
    return nn.Parameter(torch.randn(rows, columns) * rows**-0.5)


def affine(
    X: Float[Tensor, "*batch d"], W: Float[Tensor, "d d_out"], b: Float[Tensor, "d_out"]
) -> Float[Tensor, "*batch d_out"]:
    """`X @ W + b`, with b added within the product rather than in a pass of its own."""
    return F.linear(X, W.T, b)


def check_features(name: str, X: Tensor, model_dim: int, axes: int = 2) -> None:
    """Refuse an input with fewer than `axes` axes, or whose rows are not of size `model_dim`.

    Raises:
        ValueError: naming the input, its shape and the shape it should have.
    """
    if X.dim() < axes or X.shape[-1] != model_dim:
        raise ValueError(
            f"{name} has shape {shape_of(X)}, but must be [... × tokens × {model_dim}]: "
            f"model_dim is {model_dim} here."
        )


def check_size(**sizes: int) -> None:
    """Refuse a size that is not a positive whole number.

    Raises:
        ValueError: naming the first such size.
    """
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ValueError(f"{name} must be a whole number of 1 or more, not {size!r}.")
