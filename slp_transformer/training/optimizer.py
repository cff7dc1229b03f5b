"""The optimiser that a training run's settings ask for."""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from slp_transformer._internal.shape_types import Tensor
from slp_transformer.training.finite import all_finite


def make_optimiser(
    model: nn.Module, learning_rate: float, weight_decay: float = 0.1, beta_2: float = 0.95
) -> torch.optim.AdamW:
    """AdamW (Loshchilov and Hutter 2019) that lets matrices decay, but not biases or norms.

    PyTorch's fused form, which takes about half the time, wherever it has one.
    """
    matrices, vectors = matrices_and_vectors(model)
    groups = [
        {"params": matrices, "weight_decay": weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    fused = all(
        p.device.type in ("cpu", "cuda", "mps") and p.is_floating_point()
        for p in model.parameters()
    )
    return torch.optim.AdamW(groups, lr=learning_rate, betas=(0.9, beta_2), fused=fused)


def matrices_and_vectors(model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """The parameters of a model in the order in which the optimiser numbers them."""
    parameters = list(model.parameters())
    return [p for p in parameters if p.dim() >= 2], [p for p in parameters if p.dim() < 2]


def check_state(state: Any, model: nn.Module, path: Path) -> None:
    """Refuse a kept state that is not that of this model's optimiser and of random numbers.

    Args:
        state: what the file holds.
        model: the model that is to be trained further.
        path: the file, for the message.

    Raises:
        ValueError: naming the file and the first part of it that is wrong.
    """

    def demand(sound: bool, part: str) -> None:
        if not sound:
            raise ValueError(f"{path} is damaged, or of another model: {part} is wrong.")

    demand(isinstance(state, dict) and {"optimiser", "random"} <= state.keys(), "the whole")
    optimiser, randomness = state["optimiser"], state["random"]
    demand(isinstance(optimiser, dict), "the optimiser")
    entries, groups = optimiser.get("state"), optimiser.get("param_groups")
    matrices, vectors = matrices_and_vectors(model)
    numbers = list(range(len(matrices) + len(vectors)))
    wanted = [numbers[: len(matrices)], numbers[len(matrices) :]]
    named = isinstance(groups, list) and all(isinstance(group, dict) for group in groups)
    demand(named and [group.get("params") for group in groups] == wanted, "the list of parameters")
    demand(isinstance(entries, dict) and set(entries) <= set(numbers), "the optimiser's state")
    for number, entry in entries.items():
        weight, part = [*matrices, *vectors][number], f"the optimiser's state of weight {number}"
        demand(isinstance(entry, dict) and set(entry) == {"step", "exp_avg", "exp_avg_sq"}, part)
        shapes = {"step": (), "exp_avg": weight.shape, "exp_avg_sq": weight.shape}
        for name, shape in shapes.items():
            demand(is_numbers(entry[name], shape), f"{part}, {name},")
    demand(isinstance(randomness, dict) and {"batches", "cpu"} <= randomness.keys(), "randomness")
    size = torch.get_rng_state().shape
    for name, kept in randomness.items():
        sound = isinstance(kept, Tensor) and kept.dtype == torch.uint8 and kept.dim() == 1
        demand(sound and (name not in ("batches", "cpu") or kept.shape == size), "randomness")


def is_numbers(value: Any, shape: tuple[int, ...]) -> bool:
    """Whether something is a tensor of floating-point numbers of a shape."""
    if not isinstance(value, Tensor) or value.shape != shape or not value.is_floating_point():
        return False
    return all_finite(value)
