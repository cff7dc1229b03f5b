"""Several processes that train one model, each on its share of every batch.

`torchrun` starts the processes, which may run on several machines. Whatever their number, they take
the same steps as one would: they draw the same batches, and what they compute of them is added up.
They have a whole model each (`replicas`) or, as here, a share of its weights.

What is kept is put together here rather than by `torch.distributed.checkpoint.state_dict`, which
holds a second whole model in the first process while it does so, and names the optimiser's entries
by weight, where the checkpoint of a process by itself counts them.
"""

import os
from contextlib import nullcontext
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from slp_transformer._internal.shape_types import Tensor
from slp_transformer.block import ResidualBlock
from slp_transformer.training.ddp import Replicas
from slp_transformer.training.devices import own_device, pick_device
from slp_transformer.training.strategy import Team
from slp_transformer.training.train_config import TrainConfig


class Shards(Replicas):
    """Processes that keep a share of every weight, and send it when it is needed (FSDP2)."""

    def wrap(self, model: nn.Module) -> nn.Module:
        """A copy of the model in shards, of the first process's weights; the model stays as it is.

        Each block is a group that is put together when its turn comes. All else belongs to the
        model itself, E above all, which both ends of it use.
        """
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        self.begin_alike(model)
        mesh = init_device_mesh(self.device.type, (self.size,))
        self.model = deepcopy(model)
        for module in self.model.modules():
            if isinstance(module, ResidualBlock):
                fully_shard(module, mesh=mesh)
        return fully_shard(self.model, mesh=mesh).to(self.device)

    def exchanging(self, now: bool) -> Any:
        """Say whether the next gradients are exchanged, or kept until later."""
        self.model.set_requires_gradient_sync(now)
        return nullcontext()

    @torch.no_grad()
    def collect(self, model: nn.Module) -> None:
        """Put the weights together in the model, one at a time."""
        self.model.reshard()  # validation leaves the root's weights whole
        for whole, shard in zip(model.parameters(), self.model.parameters(), strict=True):
            whole.copy_(shard.full_tensor())

    def whole(self, state: dict[str, Any]) -> dict[str, Any]:
        """The state of the optimiser, put together on the CPU of the first process."""
        from torch.distributed.tensor import DTensor

        entries: dict[int, dict[str, Tensor]] = {}
        for i, entry in state["state"].items():
            entries[i] = {}
            for name, value in entry.items():
                value = value.full_tensor() if isinstance(value, DTensor) else value
                if self.rank == 0:  # a copy leaves behind what pads the shares to one size
                    entries[i][name] = torch.empty_like(value, device="cpu").copy_(value)
        return {**state, "state": entries}

    def send(self, value: Tensor, weight: Tensor) -> Tensor:
        """This process's share of a tensor; all of what is no tensor of the weight's shape."""
        from torch.distributed.tensor import distribute_tensor

        if value.shape != weight.shape:
            return super().send(value, weight)
        return distribute_tensor(value, weight.device_mesh, weight.placements)


def form_team(settings: TrainConfig, kept: Path | None = None) -> Team:
    """The processes that torchrun has started, or this one alone.

    Args:
        settings: which name the device, and how several processes share the model.
        kept: the folder of the run, if it has one.

    Raises:
        ValueError: if the environment of a started process is incomplete, or has more processes
            on this machine than devices.
    """
    meeting = dist.is_available() and dist.is_initialized()
    size = dist.get_world_size() if meeting else int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        return Team(pick_device(settings.device))
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
    missing = [name for name in names if name not in os.environ]
    if missing and not meeting:
        raise ValueError(
            f"WORLD_SIZE says that this is one of {size} processes, but {missing[0]} is not set: "
            "start them with torchrun."
        )
    rank = dist.get_rank() if meeting else int(os.environ["RANK"])
    device = own_device(settings.device, int(os.environ.get("LOCAL_RANK", "0")))
    kind = Shards if settings.parallel == "fsdp" else Replicas
    return kind(device, rank, size, kept)
