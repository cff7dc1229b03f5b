"""The state of random number generators, which checkpoints keep for an exact resume."""

import contextlib
from collections.abc import Iterator

import torch

from slp_transformer._internal.shape_types import Tensor


@contextlib.contextmanager
def preserve_rng_state(seed: int, device: torch.device) -> Iterator[None]:
    """Seed the global random numbers; afterwards the caller's continue where they were."""
    generator = torch.Generator()
    before = get_rng_state(generator, device)
    torch.manual_seed(seed)
    try:
        yield
    finally:
        set_rng_state(before, generator, device)


def get_rng_state(generator: torch.Generator, device: torch.device) -> dict[str, Tensor]:
    """The state of all randomness in a run: of its batches, and of dropout on its device."""
    state = {"batches": generator.get_state(), "cpu": torch.get_rng_state()}
    if device.type != "cpu":
        module = torch.get_device_module(device)
        place = () if device.type == "mps" else (device,)  # cuda:1, not the current CUDA device
        state[device.type] = module.get_rng_state(*place)
    return state


def set_rng_state(
    state: dict[str, Tensor], generator: torch.Generator, device: torch.device
) -> None:
    """Restore what `get_rng_state` returned (dropout differs on another kind of device)."""
    generator.set_state(state["batches"])
    torch.set_rng_state(state["cpu"])
    if device.type in state and device.type != "cpu":
        module = torch.get_device_module(device)
        place = () if device.type == "mps" else (device,)
        module.set_rng_state(state[device.type], *place)
