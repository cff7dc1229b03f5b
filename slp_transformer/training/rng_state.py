"""The random numbers of a run: its batches and dropout, as a checkpoint holds them."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import torch

from slp_transformer._internal.shape_types import Tensor


@contextlib.contextmanager
def preserve_rng_state(seed: int, device: torch.device) -> Iterator[None]:
    """Seed the global random numbers; afterwards the caller's continue where they were."""
    before = get_rng_state(torch.default_generator, device)  # which dropout draws from
    torch.manual_seed(seed)
    try:
        yield
    finally:
        set_rng_state(before, torch.default_generator, device)


def get_rng_state(generator: torch.Generator, device: torch.device) -> dict[str, Tensor]:
    """Return the state of all randomness in a run: of its batches, and of dropout."""
    state = {"random.batches": generator.get_state(), "random.cpu": torch.get_rng_state()}
    if device.type != "cpu":
        module, place = torch.get_device_module(device), rng_devices(device)
        state[f"random.{device.type}"] = module.get_rng_state(*place)
    return state


def set_rng_state(
    state: dict[str, Tensor], generator: torch.Generator, device: torch.device
) -> None:
    """Restore what `get_rng_state` returned (dropout differs on another kind of device)."""
    generator.set_state(state["random.batches"])
    torch.set_rng_state(state["random.cpu"])
    if f"random.{device.type}" in state and device.type != "cpu":
        module, place = torch.get_device_module(device), rng_devices(device)
        module.set_rng_state(state[f"random.{device.type}"], *place)


def restore_rng_state(
    state: dict[str, Tensor], generator: torch.Generator, device: torch.device, folder: Path | None
) -> None:
    """Restore what a checkpoint of the run in a folder holds.

    Raises:
        ValueError: if it is no state of random numbers.
    """
    try:
        set_rng_state(state, generator, device)
    except (RuntimeError, TypeError, ValueError):
        raise ValueError(
            f"The random state saved in {folder} is damaged: it cannot be resumed."
        ) from None


def rng_devices(device: torch.device) -> tuple[torch.device, ...]:
    """Return the device as an argument: cuda:1, not the current CUDA device; MPS has but one."""
    return () if device.type == "mps" else (device,)
