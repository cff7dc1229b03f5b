"""Inputs for checks: random numbers that leave PyTorch's own alone, and cases that are rare."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


class RareCase(dict[str, Any]):
    """A case, of rounding say, that is tried only where all others are right.

    Attributes:
        reason: what is rare about it, for a verdict.
    """

    def __init__(self, reason: str, **inputs: Any) -> None:
        super().__init__(inputs)
        self.reason = f" {reason}"


def seeded_randn(seed: int) -> Callable[..., Tensor]:
    """Return a function that draws tensors of a shape from a normal distribution."""
    generator = torch.Generator().manual_seed(seed)
    return lambda *shape: torch.randn(shape, generator=generator)


def vector(*numbers: float) -> Tensor:
    """Return a row of numbers."""
    return torch.tensor([float(number) for number in numbers])


def matrix(*given: tuple[float, ...]) -> Tensor:
    """Return a matrix, given row by row."""
    return torch.stack([vector(*one) for one in given])
