"""What a training run knows of itself: where it is, what it measured, and what it must not mix."""

import contextlib
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from slp_transformer._internal.shape_types import Tensor
from slp_transformer.training.checkpoint_files import Record, read_made_of, read_memory, since_best
from slp_transformer.training.checkpoints import describe, load_state, load_weights
from slp_transformer.training.optimizer import check_state
from slp_transformer.training.run_folder import checkpoint_folder, read_index
from slp_transformer.training.train_config import RESUMABLE_SETTINGS, TrainConfig


class RunState:
    """Where a run is.

    Attributes:
        step: steps made so far.
        every: steps between measurements.
        records: what was measured on the way.
        losses: losses of the steps since the last record.
    """

    def __init__(self, settings: TrainConfig, data: dict[str, Any], every: int | None = None):
        """Begin at step 0.

        Args:
            settings: how the run trains.
            data: what tells its data from other data, as JSON.
            every: steps between measurements, if the settings alone do not tell.
        """
        self.every = every or settings.eval_interval
        self.settings, self.data = settings, json.loads(json.dumps(data))
        self.step: int = 0
        self.records: list[Record] = []
        self.losses: list[float | Tensor] = []

    def settle(self) -> None:
        """Turn the losses into numbers, for which an accelerator has to wait.

        Raises:
            ValueError: if one is no number any more.
        """
        if tensors := [loss for loss in self.losses if isinstance(loss, Tensor)]:
            numbers = [loss for loss in self.losses if not isinstance(loss, Tensor)]  # come first
            self.losses = numbers + torch.stack(tensors).tolist()
        if not all(map(math.isfinite, self.losses)):
            raise ValueError(self.diverged("The loss is"))

    def check_weights(self, model: nn.Module) -> None:
        """Refuse to keep weights that are no numbers any more: they would take a good one's place.

        Raises:
            ValueError: if a weight is infinite or not a number.
        """
        finite = [torch.isfinite(weights).all() for weights in model.parameters()]
        if not torch.stack(finite).all():  # a device is waited for once
            raise ValueError(self.diverged("A weight is"))

    def diverged(self, what: str) -> str:
        """What to say when there are no numbers to go on with."""
        return (
            f"{what} no longer a number, at step {self.step} at the latest: train with a lower "
            "learning_rate or a longer warmup. Checkpoints from before stand."
        )

    def measure(self, valid_loss: float) -> None:
        """Add a record.

        Raises:
            ValueError: if the loss is no number any more.
        """
        self.settle()
        if not math.isfinite(valid_loss):
            raise ValueError(self.diverged("The held-out loss is"))
        train_loss = sum(self.losses) / len(self.losses)
        self.records.append(Record(self.step, train_loss, valid_loss))
        self.losses = []

    def measure_whole(self, loss: float) -> None:
        """Add the loss on all of the held-out data to the last record."""
        self.records[-1] = replace(self.records[-1], whole_loss=loss)

    def is_due(self) -> bool:
        """Whether to measure before the next step."""
        round_number = self.step % self.every == 0 or self.step == self.settings.steps
        return round_number and bool(self.losses)

    def since_best(self) -> int:
        """How many records there are after the best."""
        return since_best(self.records)

    def is_best(self) -> bool:
        """Whether the model as it is now was measured best, or none was measured yet."""
        measured_now = self.records and self.records[-1].step == self.step
        return not self.records or bool(measured_now and self.since_best() == 0)

    def finished(self) -> bool:
        """Whether all steps are made and measured, or patience is at an end."""
        patience = self.settings.early_stopping_patience
        tired = patience is not None and self.since_best() >= patience
        return (self.step >= self.settings.steps and not self.is_due()) or tired

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON.

        Raises:
            ValueError: if the loss is no number any more.
        """
        self.settle()
        return {
            "step": self.step,
            "settings": self.settings.to_dict(),
            "data": self.data,
            "records": [asdict(record) for record in self.records],
            "losses": self.losses,
        }

    def restore(self, model: nn.Module, run: Path, resume: bool) -> dict[str, Any]:
        """Take over from the last checkpoint of a run, if there is one.

        Args:
            model: is given the weights, in place.
            run: the run's folder.
            resume: whether the caller means to go on with what is there.

        Returns:
            State of the optimiser and of randomness; empty if there is no checkpoint.

        Raises:
            ValueError: if there is a checkpoint but no wish to resume, or if it is damaged or of
                another run. The model and the folder are untouched.
        """
        if not read_index(run):
            return {}
        folder = checkpoint_folder(run)
        if not resume:
            raise ValueError(
                f"{run} holds a run already ({folder.name}): pass resume=True to go on with it, "
                "or choose another folder."
            )
        made_of, memory = read_made_of(folder), read_memory(folder)
        if memory is None:
            raise ValueError(f"{folder} holds no training run that can be resumed.")
        try:
            check_same("model", asdict(made_of), describe(model))
            check_same("settings", memory.settings.to_dict(), self.settings.to_dict())
            check_same("data", memory.data, self.data)
        except ValueError as error:
            raise ValueError(
                f"The run in {run} is another one: {error}. Resume it as it was, or choose "
                "another folder."
            ) from None
        if self.settings.steps < memory.step:
            raise ValueError(
                f"The run in {run} has made {memory.step} steps already: choose as many or more, "
                f"not {self.settings.steps}."
            )
        state = load_state(folder)
        check_state(state, model, folder / "state.pt")
        load_weights(model, folder)
        self.step, self.records, self.losses = memory.step, memory.records, memory.losses
        return state


def check_same(what: str, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse to mix what differs.

    Devices and processes may: any go on with others' work. So may the end of the run.

    Raises:
        ValueError: naming each difference.
    """
    before, now = (flat(what, side) for side in (before, now))
    free = {f"settings.{name}" for name in RESUMABLE_SETTINGS}
    names = [name for name in now | before if name not in free]
    told = [
        f"{name} was {before.get(name)!r} and is now {now.get(name)!r}"
        for name in names
        if before.get(name) != now.get(name)
    ]
    if told:
        raise ValueError("; ".join(told))


def flat(name: str, value: Any) -> dict[str, Any]:
    """Nested dicts as one, with dotted names."""
    if not isinstance(value, dict):
        return {name: value}
    return {key: leaf for k, v in value.items() for key, leaf in flat(f"{name}.{k}", v).items()}


# --- Randomness --------------------------------------------------------------------------------


@contextlib.contextmanager
def own_randomness(seed: int, device: torch.device) -> Iterator[None]:
    """Random numbers from a seed; afterwards those of the caller go on where they were."""
    generator = torch.Generator()
    before = random_state(generator, device)
    torch.manual_seed(seed)
    try:
        yield
    finally:
        set_random_state(before, generator, device)


def random_state(generator: torch.Generator, device: torch.device) -> dict[str, Tensor]:
    """The state of all that is random in a run: batches, and dropout on its device."""
    state = {"batches": generator.get_state(), "cpu": torch.get_rng_state()}
    if device.type != "cpu":
        state[device.type] = rng_state(device)
    return state


def set_random_state(
    state: dict[str, Tensor], generator: torch.Generator, device: torch.device
) -> None:
    """Go on with the same random numbers (other ones, for dropout, on another kind of device)."""
    generator.set_state(state["batches"])
    torch.set_rng_state(state["cpu"])
    if device.type in state and device.type != "cpu":
        set_rng_state(state[device.type], device)


def rng_state(device: torch.device) -> Tensor:
    """The state of a device's own random numbers: of cuda:1, not of the CUDA device in use."""
    module = torch.get_device_module(device)
    return module.get_rng_state() if device.type == "mps" else module.get_rng_state(device)


def set_rng_state(state: Tensor, device: torch.device) -> None:
    """Have a device go on with the random numbers that `rng_state` saw."""
    module = torch.get_device_module(device)
    module.set_rng_state(state) if device.type == "mps" else module.set_rng_state(state, device)
