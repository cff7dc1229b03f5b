"""Inputs for checks: random numbers that are the same every time and leave PyTorch's own alone."""

from collections.abc import Callable

import torch
from torch import Tensor


def seeded_randn(seed: int) -> Callable[..., Tensor]:
    """Return a function that draws tensors of a shape from a normal distribution."""
    generator = torch.Generator().manual_seed(seed)
    return lambda *shape: torch.randn(*shape, generator=generator)


def vector(*numbers: float) -> Tensor:
    """Return a row of numbers."""
    return torch.tensor([float(number) for number in numbers])


def matrix(*given: tuple[float, ...]) -> Tensor:
    """Return a matrix, given row by row."""
    return torch.stack([vector(*one) for one in given])
