"""Random tensors, and what it means here for two computations to agree: values and gradients."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

# Sizes of the tests' axes: all prime and all different, so that no two can be mistaken. Where
# PyTorch's own layers need d = A·d_k, the model dimension is 15 = 3·5.
B, A, D_K, N, M, D, D_V, D_FF, V = 2, 3, 5, 7, 11, 13, 17, 19, 23
D_SHARED = A * D_K
SIZES = {"key_dim": D_K, "value_dim": D_V, "hidden_dim": D_FF}  # each its own, and not d/A


TOLERANCE = {torch.float64: 1e-11, torch.float32: 1e-5}


def precise() -> torch.dtype:
    """Double precision, where the device has it; MPS has none."""
    return torch.float32 if torch.get_default_device().type == "mps" else torch.float64


def normal(*shape: int, seed: int = 0) -> Tensor:
    """Random numbers as precise as can be, the same for the same seed; a leaf with gradients.

    They are drawn on the CPU, so that every device is given the same ones.
    """
    generator = torch.Generator("cpu").manual_seed(seed)
    drawn = torch.randn(*shape, dtype=torch.float64, generator=generator, device="cpu")
    return drawn.to(torch.get_default_device(), precise()).requires_grad_()


def uniform(*shape: int, seed: int) -> Tensor:
    """Random numbers from 0 to 1, drawn on the CPU likewise."""
    generator = torch.Generator("cpu").manual_seed(seed)
    return torch.rand(shape, generator=generator, device="cpu").to(torch.get_default_device())


def some_ids(*shape: int, below: int = V, seed: int = 7) -> Tensor:
    """Token ids, the same for the same seed."""
    generator = torch.Generator("cpu").manual_seed(seed)
    drawn = torch.randint(below, shape, generator=generator, device="cpu")
    return drawn.to(torch.get_default_device())


def randomized(module: nn.Module, seed: int = 0, scale: float = 0.4) -> nn.Module:
    """The module in that precision, every parameter random: no gain is 1 and no bias 0."""
    module = module.to(precise())
    generator = torch.Generator("cpu").manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            drawn = torch.empty(parameter.shape, dtype=torch.float64, device="cpu")
            parameter.copy_(drawn.normal_(0.0, scale, generator=generator))
    return module


def assert_same(ours: Tensor, theirs: Tensor, tolerance: float | None = None) -> None:
    """Equal to the rounding of their type, in shape and in type as well."""
    if tolerance is None:
        tolerance = TOLERANCE.get(ours.dtype, 0.0)
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


def gradients(output: Tensor, inputs: Sequence[Tensor], seed: int = 99) -> tuple[Tensor, ...]:
    """Gradients of a random weighting of the output, so that no entry can hide behind another."""
    weighting = normal(*output.shape, seed=seed).detach()
    return torch.autograd.grad(output, inputs, weighting, retain_graph=True)


def assert_same_gradients(ours: Tensor, theirs: Tensor, inputs: Iterable[Tensor]) -> None:
    """Two outputs computed from the same leaves agree, and so does the gradient of each leaf."""
    inputs = list(inputs)
    assert_same(ours, theirs)
    for mine, yours in zip(gradients(ours, inputs), gradients(theirs, inputs), strict=True):
        assert mine.abs().max() > 1e-9, "a gradient of zero compares nothing"
        assert_same(mine, yours)
