"""Random tensors, and what it means here for two computations to agree: values and gradients."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

# Sizes of the tests' axes: all prime and all different, so that no two can be mistaken. Where
# PyTorch's own layers need d = A·d_k, the model dimension is 15 = 3·5.
B, A, D_K, N, M, D, D_V, D_FF, V = 2, 3, 5, 7, 11, 13, 17, 19, 23
D_SHARED = A * D_K


def normal(*shape: int, seed: int = 0) -> Tensor:
    """Random numbers in double precision, the same for the same seed; a leaf with gradients."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator).requires_grad_()


def randomised(module: nn.Module, seed: int = 0, scale: float = 0.4) -> nn.Module:
    """The module in double precision, every parameter random: no gain is 1 and no bias 0."""
    module = module.double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(0.0, scale, generator=generator)
    return module


def assert_same(ours: Tensor, theirs: Tensor, tolerance: float = 1e-11) -> None:
    """Equal to the rounding of double precision, in shape and in type as well."""
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


def gradients(output: Tensor, inputs: Sequence[Tensor], seed: int = 99) -> tuple[Tensor, ...]:
    """Gradients of a random weighting of the output, so that no entry can hide behind another."""
    weighting = normal(*output.shape, seed=seed).detach()
    return torch.autograd.grad(output, inputs, weighting, retain_graph=True)


def assert_same_with_gradients(ours: Tensor, theirs: Tensor, inputs: Iterable[Tensor]) -> None:
    """Two outputs computed from the same leaves agree, and so does the gradient of each leaf."""
    inputs = list(inputs)
    assert_same(ours, theirs)
    for mine, yours in zip(gradients(ours, inputs), gradients(theirs, inputs), strict=True):
        assert mine.abs().max() > 1e-9, "a gradient of zero compares nothing"
        assert_same(mine, yours)
