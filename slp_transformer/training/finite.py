"""Whether numbers are still numbers."""

import torch

from slp_transformer.shapes import Tensor


def all_finite(tensor: Tensor) -> bool:
    """Whether no element is infinite or not a number, without a copy of the tensor."""
    if not tensor.numel():
        return True
    return bool(torch.stack(tensor.aminmax()).isfinite().all())
