"""How the processes of a run share its work, beginning with the one that trains alone.

However many processes train a model, they take the same steps as a single one: they draw the same
batches, and their gradients are added up. `slp_transformer.training.distributed` has several.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from slp_transformer._internal.shape_types import Tensor
from slp_transformer.data.batches import Batch
from slp_transformer.training.devices import device_for_rank, pick_device
from slp_transformer.training.parallel import PARALLEL
from slp_transformer.training.train_config import TrainConfig


class Strategy:
    """A process that trains alone; `DDPStrategy` and `FSDPStrategy` share the work among several.

    Attributes:
        device: the device of this process.
        rank: its number, from 0.
        world_size: how many processes there are.
    """

    def __init__(self, device: torch.device, rank: int = 0, world_size: int = 1):
        """Be one of some processes."""
        self.device: torch.device = device
        self.rank: int = rank
        self.world_size: int = world_size

    def __enter__(self) -> "Strategy":
        """Connect to the other processes."""
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        """End the run, well or not."""

    def __str__(self) -> str:
        """Return the devices, as in "2 × CUDA"."""
        count = f"{self.world_size} × " if self.world_size > 1 else ""
        return count + self.device.type.upper()

    # Computing.

    def wrap(self, model: nn.Module, has_idle_parameters: Callable[[nn.Module], bool]) -> nn.Module:
        """Return the model to train, on the device, with rank 0's weights.

        Args:
            model: the model.
            has_idle_parameters: tells whether the loss depends on fewer than all of its parameters.
        """
        return model.to(self.device)

    def shard(self, batch: Batch) -> Batch:
        """Return this process's share of a batch, of the same size in each process."""
        return batch if self.world_size == 1 else batch.shard(self.rank, self.world_size)

    def micro_batches(self, batch: Batch, size: int) -> Iterator[Batch]:
        """Yield this process's share of a batch, at most `size` sequences at once.

        Gradients are synchronized after the last one, so they must all be consumed.
        """
        parts = self.shard(batch).split(size)
        for part in parts:
            # Gradients of one micro-batch are as large as those of all: they are sent once.
            with self.gradient_sync(part is parts[-1]):
                yield part

    def gradient_sync(self, enabled: bool) -> AbstractContextManager[None]:
        """Return a context in which gradients are synchronized, or accumulated for later."""
        return nullcontext()

    def all_reduce(self, value: Tensor) -> Tensor:
        """Return the sum over all processes, which is the same in each."""
        return value

    # Weights, optimizer and random numbers.

    def copy_weights_into(self, model: nn.Module) -> None:
        """Copy the current weights into the model that was wrapped, in place."""
        # Nothing to do where the wrapped model has the same weights in memory, as alone and in DDP.

    def optimizer_state(self, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
        """Return the optimizer's tensors, named as in "optimizer.0.step"; rank 0 needs them."""
        state = {}
        for i, entry in optimizer.state_dict()["state"].items():
            for name, value in entry.items():
                state[f"optimizer.{i}.{name}"] = self.gather_tensor(value)
        return state

    def gather_tensor(self, value: Tensor) -> Tensor:
        """Return a tensor as a single process has it; only rank 0 needs it."""
        return value

    def load_optimizer(self, optimizer: torch.optim.Optimizer, state: dict[str, Tensor]) -> None:
        """Load what `optimizer_state` returned, which rank 0 has, one tensor at a time."""
        weights = [p for group in optimizer.param_groups for p in group["params"]]
        entries: dict[int, dict[str, Tensor]] = {}
        # The other processes have no file: they are told the shapes, to have room for each tensor.
        shapes = {name: (value.shape, value.dtype) for name, value in state.items()}
        for name, (shape, dtype) in self.broadcast_object(shapes).items():
            _, number, part = name.split(".")
            value = state[name] if name in state else torch.empty(shape, dtype=dtype, device="cpu")
            entry = entries.setdefault(int(number), {})
            entry[part] = self.broadcast_tensor(value, weights[int(number)])
        groups = optimizer.state_dict()["param_groups"]  # the settings decide, not the file
        optimizer.load_state_dict({"state": entries, "param_groups": groups})

    def broadcast_tensor(self, value: Tensor, weight: Tensor) -> Tensor:
        """Return rank 0's tensor, as this process stores it with the weight."""
        return value

    def seed_dropout(self, seed: int, step: int) -> None:
        """Make dropout draw the same in a step whether or not the run was resumed before it."""
        # Alone, the random numbers just go on: a checkpoint holds where they were.

    # Coordination.

    def broadcast_object(self, value: Any) -> Any:
        """Return the value of rank 0."""
        return value

    def run_on_rank_zero(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        """Call a function in rank 0 only; if it fails there, it fails everywhere.

        Returns:
            What it returned there; None elsewhere.
        """
        return function(*args, **kwargs)

    def check_equal_in_all_processes(self, **values: Any) -> None:
        """Refuse processes that were given different values.

        Raises:
            ValueError: in every process, naming a difference.
        """

    def should_stop(self, requested: bool) -> bool:
        """Return whether to stop after this step, given whether this process was asked to."""
        return requested


SINGLE_PROCESS = Strategy(torch.device("cpu"))


def make_strategy(config: TrainConfig, out_dir: Path | None = None) -> Strategy:
    """Return the strategy for the processes that torchrun has started, or for this one alone.

    Args:
        config: names the device, and how several processes share the model.
        out_dir: the run's folder, if it has one.

    Raises:
        ValueError: if this machine has fewer devices than processes.
    """
    initialized = dist.is_available() and dist.is_initialized()
    world_size = dist.get_world_size() if initialized else int(os.environ.get("WORLD_SIZE", "1"))
    if world_size == 1:
        return Strategy(pick_device(config.device))
    rank = dist.get_rank() if initialized else int(os.environ.get("RANK", "0"))
    device = device_for_rank(config.device, int(os.environ.get("LOCAL_RANK", "0")))
    kind: type = resolve_name(PARALLEL[config.parallel].strategy)
    strategy: Strategy = kind(device, rank, world_size, out_dir)
    return strategy
