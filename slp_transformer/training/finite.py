"""Whether numbers are still numbers."""

import torch

from slp_transformer._internal.shape_types import Tensor


def all_finite(tensor: Tensor) -> bool:
    """Whether no element is infinite or not a number, without a copy of the tensor."""
    if not tensor.numel():
        return True
    return bool(torch.stack(tensor.aminmax()).isfinite().all())
