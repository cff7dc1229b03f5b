"""What a training run knows of itself: where it is, what it measured, and what it must not mix."""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from slp_transformer.checkpoint import (
    checkpoint_folder,
    describe,
    load_state,
    load_training,
    load_weights,
    read_index,
)
from slp_transformer.shapes import Tensor
from slp_transformer.storage import read_json
from slp_transformer.training_settings import TrainingSettings


@dataclass(frozen=True)
class Record:
    """One measurement along a training run.

    Attributes:
        step: steps made so far.
        train_loss: mean loss of the steps since the last record, in nats per token (with label
            smoothing, if the run smooths).
        valid_loss: loss on all the held-out data, in nats per token.
    """

    step: int
    train_loss: float
    valid_loss: float


class RunState:
    """Where a run is.

    Attributes:
        step: steps made so far.
        records: what was measured on the way.
        losses: losses of the steps since the last record.
    """

    def __init__(self, settings: TrainingSettings, data: dict[str, Any]):
        """Begin at step 0.

        Args:
            settings: how the run trains.
            data: what tells its data from other data, as JSON.
        """
        self.settings, self.data = settings, json.loads(json.dumps(data))
        self.step: int = 0
        self.records: list[Record] = []
        self.losses: list[float | Tensor] = []

    def settle(self) -> None:
        """Turn the losses into numbers, for which an accelerator has to wait.

        Raises:
            ValueError: if one is no number any more.
        """
        self.losses = [float(loss) for loss in self.losses]
        if not all(map(math.isfinite, self.losses)):
            raise ValueError(
                f"The loss is no longer a number, at step {self.step} at the latest: train with a "
                "lower learning_rate or a longer warmup. Checkpoints from before stand."
            )

    def measure(self, valid_loss: float) -> Record:
        """Add a record.

        Raises:
            ValueError: if the loss is no number any more.
        """
        self.settle()
        train_loss = sum(self.losses) / len(self.losses)
        self.records.append(Record(self.step, train_loss, valid_loss))
        self.losses = []
        return self.records[-1]

    def since_best(self) -> int:
        """How many records there are after the best."""
        losses = [record.valid_loss for record in self.records]
        return len(losses) - 1 - losses.index(min(losses)) if losses else 0

    def is_best(self) -> bool:
        """Whether the model as it is now was measured best, or none was measured yet."""
        measured_now = self.records and self.records[-1].step == self.step
        return not self.records or bool(measured_now and self.since_best() == 0)

    def finished(self) -> bool:
        """Whether all steps are made, or patience is at an end."""
        patience = self.settings.patience
        tired = patience is not None and self.since_best() >= patience
        return self.step >= self.settings.steps or tired

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
        memory = load_training(folder)
        try:
            made_of = read_json(folder / "config.json")
            check_same("model", made_of, describe(model))
            check_same("settings", memory["settings"], self.settings.to_dict())
            check_same("data", memory["data"], self.data)
            records = [Record(**record) for record in memory["records"]]
            step, losses = memory["step"], memory["losses"]
        except (KeyError, TypeError, AttributeError):
            raise ValueError(f"{folder} holds no training run that can be resumed.") from None
        except ValueError as error:
            raise ValueError(
                f"The run in {run} is another one: {error}. Resume it as it was, or choose "
                "another folder."
            ) from None
        state = load_state(folder)
        load_weights(model, folder)
        self.step, self.records, self.losses = step, records, losses
        return state


def check_same(what: str, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse to mix what differs; devices and processes may: any go on with others' work.

    Raises:
        ValueError: naming each difference.
    """
    before, now = (flat(what, side) for side in (before, now))
    free = ("settings.device", "settings.parallel")
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


def random_state(generator: torch.Generator, device: torch.device) -> dict[str, Tensor]:
    """The state of all that is random in a run: batches, and dropout on its device."""
    state = {"batches": generator.get_state(), "cpu": torch.get_rng_state()}
    if device.type != "cpu":
        state[device.type] = torch.get_device_module(device).get_rng_state()
    return state


def set_random_state(
    state: dict[str, Tensor], generator: torch.Generator, device: torch.device
) -> None:
    """Go on with the same random numbers (other ones, for dropout, on another kind of device)."""
    generator.set_state(state["batches"])
    torch.set_rng_state(state["cpu"])
    if device.type in state and device.type != "cpu":
        torch.get_device_module(device).set_rng_state(state[device.type])
