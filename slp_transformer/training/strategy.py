"""Strategies for using devices: the base strategy, one process.

`slp_transformer.training.distributed` has those of several processes. The trainer knows only the
methods of `SingleProcess`.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from slp_transformer._internal.shape_types import Tensor
from slp_transformer.data.batches import Batch


class SingleProcess:
    """One process on one device.

    Attributes:
        device: the device.
        rank: the number of this process, from 0.
        world_size: how many processes there are.
    """

    rank, world_size = 0, 1

    def __init__(self, device: torch.device):
        """Use a device."""
        self.device = device

    def __enter__(self) -> "SingleProcess":
        """Connect to the other processes."""
        return self

    def __exit__(self, kind, error, trace) -> None:
        """Disconnect."""

    def __str__(self) -> str:
        """The devices, as in "2 × CUDA"."""
        return self.device.type.upper()

    # Computing.

    def wrap(self, model: nn.Module) -> nn.Module:
        """The model to train, on the device."""
        return model.to(self.device)

    def shard(self, batch: Batch) -> Batch:
        """This process's share of a batch."""
        return batch

    def micro_batches(self, batch: Batch, size: int) -> Iterator[Batch]:
        """This process's share of a batch, at most `size` sequences at once.

        Gradients are synchronized after the last one, so they must all be consumed.
        """
        yield from batch.split(size)

    def backward(self, loss: Tensor) -> None:
        """Compute gradients; those of all processes add up to the gradient of the total loss."""
        loss.backward()

    def all_reduce(self, value: Tensor) -> Tensor:
        """The sum over all processes."""
        return value

    # Weights, optimizer and random numbers.

    def gather_weights(self, model: nn.Module) -> None:
        """Copy the current weights into the model that was wrapped."""

    def full_optimizer_state(self, state: dict[str, Any]) -> dict[str, Any]:
        """The optimizer's state as a single process has it; only rank 0 needs it."""
        return state

    def load_optimizer(
        self, optimizer: torch.optim.Optimizer, state: dict[str, Any] | None
    ) -> None:
        """Load a full state, which rank 0 has, into the optimizer."""
        optimizer.load_state_dict(state)

    def seed_step(self, seed: int, step: int) -> None:
        """Seed dropout for a step, differently in each process."""

    # Coordination.

    def broadcast_object(self, value: Any) -> Any:
        """The value of rank 0."""
        return value

    def on_rank_zero(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        """Call a function in rank 0 only; if it fails there, it fails everywhere.

        Returns:
            What it returned there; None elsewhere.
        """
        return function(*args, **kwargs)

    def check_same(self, **values: Any) -> None:
        """Refuse processes with different values."""

    def should_stop(self, requested: bool) -> bool:
        """Decide if the run stops after this step, given a request to this process."""
        return requested


SINGLE_PROCESS = SingleProcess(torch.device("cpu"))
