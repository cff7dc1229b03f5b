"""The processes that train one model, and what they must do together: here, just one of them.

A run by itself is a team of one, which does all of this by doing nothing. `ddp` and
`fsdp` have the teams of several. The loop knows no more of them than the methods of `Team`.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from slp_transformer._internal.shape_types import Tensor
from slp_transformer.data.batches import Batch


class Team:
    """One process, which shares its work with nobody.

    Attributes:
        device: what it computes on.
        rank: its number, from 0.
        size: how many processes there are.
    """

    rank, size = 0, 1

    def __init__(self, device: torch.device):
        """Be the only one."""
        self.device = device

    def __enter__(self) -> "Team":
        """Begin to work together."""
        return self

    def __exit__(self, kind, error, trace) -> None:
        """Work together no longer."""

    def __str__(self) -> str:
        """The devices, as in "2 × CUDA"."""
        return self.device.type.upper()

    # Work: what to compute, and what comes of it.

    def wrap(self, model: nn.Module) -> nn.Module:
        """The model to train, on the device."""
        return model.to(self.device)

    def parts(self, batch: Batch, size: int) -> Iterator[Batch]:
        """What this process computes of a batch, at most `size` sequences at once.

        Gradients are exchanged after the last part, so it must be gone through to its end.
        """
        yield from batch.split(size)

    def share(self, batch: Batch) -> Batch:
        """What this process computes of a batch."""
        return batch

    def backward(self, loss: Tensor) -> None:
        """Compute the gradients, so that those of all processes add up to the whole loss's."""
        loss.backward()

    def sum(self, share: Tensor) -> Tensor:
        """The sum over all processes."""
        return share

    def collect(self, model: nn.Module) -> None:
        """Give the model that was wrapped the weights as they are now."""

    # State: what the optimiser knows, and what is random.

    def whole(self, state: dict[str, Any]) -> dict[str, Any]:
        """An optimiser's state as one process would have it; of use to the first alone."""
        return state

    def load(self, optimiser: torch.optim.Optimizer, state: dict[str, Any] | None) -> None:
        """Give the optimiser a whole state, which the first process has."""
        optimiser.load_state_dict(state)

    def stir(self, seed: int, step: int) -> None:
        """Have each process drop other units in this step."""

    # Agreement: what all must know.

    def tell(self, word: Any) -> Any:
        """What the first process says."""
        return word

    def alone(self, do: Callable, *args: Any, **options: Any) -> Any:
        """Do something in the first process alone; if it fails there, it fails everywhere.

        Returns:
            What it returned there, and None elsewhere.
        """
        return do(*args, **options)

    def check_same(self, **what: Any) -> None:
        """Refuse processes that were given different things to do."""

    def stops(self, pressed: bool) -> bool:
        """Whether to stop here, after a step at which this process was, or was not, told to."""
        return pressed


ALONE = Team(torch.device("cpu"))
