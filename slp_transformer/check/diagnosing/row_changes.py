"""What may be done to the rows of a tensor, along its last axis or another."""

import torch
from torch import Tensor


def center(x: Tensor, dim: int = -1) -> Tensor:
    """Subtract a row's mean."""
    return x - x.mean(dim, keepdim=True)


def standardize(x: Tensor, dim: int = -1) -> Tensor:
    """Give a row mean 0 and deviation 1; NaN where all its numbers are equal."""
    return center(x, dim) / x.std(dim, correction=0, keepdim=True)


def divide_by_norm(x: Tensor, dim: int = -1) -> Tensor:
    """Give a row norm 1; NaN where it is 0."""
    return x / x.norm(dim=dim, keepdim=True)


def divide_by_sum(x: Tensor, dim: int = -1) -> Tensor:
    """Give a row sum 1."""
    return x / x.sum(dim, keepdim=True)


def mark_largest(x: Tensor, dim: int = -1) -> Tensor:
    """Turn the largest number of a row into 1, and all others into 0."""
    return torch.zeros_like(x).scatter(dim, x.argmax(dim, keepdim=True), 1.0)
