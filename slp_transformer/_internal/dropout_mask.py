"""Dropout on a CPU, where drawing its random numbers takes longer than all that it does with them.

PyTorch draws a number of double precision for every place. Whether to keep a place is decided here
by sixteen random bits, four places for each number drawn.
"""

import math
from collections.abc import Sequence

import torch

from slp_transformer._internal.shape_types import Bool, Float, Tensor

DROPOUT_STEPS = 2**16  # as many shares can be told apart


def try_fast_dropout(X: Float[Tensor, "..."], p: float) -> Float[Tensor, "..."] | None:
    """Drop a share of X, and scale up the rest.

    The same for every call with the same random state, whether gradients are recorded or not.

    Args:
        X: what to drop from.
        p: above 0 and below 1.

    Returns:
        X with zeros; None where PyTorch's own way is the faster one, or the only one: on other
        devices, in compiled models, and within the transforms of `torch.func`.
    """
    transformed = torch._C._are_functorch_transforms_active()
    if X.device.type != "cpu" or torch.compiler.is_compiling() or transformed:
        return None
    made_up = DROPOUT_STEPS / (
        DROPOUT_STEPS - round_to_steps(p)
    )  # those kept make up for those dropped
    return X * sample_keep_mask(X.shape, p).to(X.dtype).mul_(made_up)


def round_to_steps(p: float) -> int:
    """Return a share in steps of 1/65,536, but never all of them."""
    return min(round(p * DROPOUT_STEPS), DROPOUT_STEPS - 1)


def sample_keep_mask(shape: Sequence[int], p: float) -> Bool[Tensor, "..."]:
    """Draw which places to keep, with PyTorch's generator of the CPU.

    Args:
        shape: how many places.
        p: the probability that one is dropped.

    Returns:
        True for those to keep.
    """
    count = math.prod(shape)
    numbers = torch.empty(-(-count // 4), dtype=torch.int64, device="cpu").random_(-(2**63), None)
    bits = numbers.view(torch.int16)[:count]
    return (bits >= round_to_steps(p) - DROPOUT_STEPS // 2).view(shape)
