"""The state of a training run as training.json keeps it; nothing here needs PyTorch."""

import math
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import Any

from slp_transformer.training.train_config import RESUMABLE_SETTINGS, TrainConfig


@dataclass(frozen=True)
class EvalRecord:
    """One evaluation during a training run; all losses are means in nats per token.

    Attributes:
        step: training steps made so far.
        train_loss: loss of the steps since the last evaluation (with label smoothing, if any).
        val_loss: loss on the validation sequences, which are the same in all evaluations.
        full_val_loss: loss on all validation data, in the last record of a run that evaluates on a
            subset; None elsewhere.
    """

    step: int
    train_loss: float
    val_loss: float
    full_val_loss: float | None = None


@dataclass
class TrainerState:
    """The progress of a run.

    Attributes:
        step: training steps made so far.
        config: settings of the run.
        data: fingerprints of the training and validation data.
        eval_history: the evaluations so far.
        losses: losses of the steps since the last evaluation.
    """

    step: int
    config: TrainConfig
    data: dict[str, Any] = field(default_factory=dict)
    eval_history: list[EvalRecord] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)

    def __post_init__(self):
        """Refuse what no run can have reached.

        Raises:
            ValueError: saying what is wrong.
        """
        if self.step < 0:
            raise ValueError(f"step must be 0 or more, not {self.step}.")
        seen = [(r.train_loss, r.val_loss, r.full_val_loss or 0.0) for r in self.eval_history]
        if not all(map(math.isfinite, [*chain(*seen), *self.losses])):
            raise ValueError("one of its losses is NaN or infinite.")
        if any(not 0 <= record.step <= self.step for record in self.eval_history):
            raise ValueError(f"one of its records is not of a step from 0 to {self.step}.")

    def to_dict(self) -> dict[str, Any]:
        """The state as JSON."""
        return asdict(self)

    def eval_due(self, interval: int) -> bool:
        """Tell if an evaluation is due before the next step."""
        evaluated = self.eval_history[-1].step if self.eval_history else 0
        return self.step > evaluated and (
            self.step % interval == 0 or self.step == self.config.steps
        )

    def evals_since_best(self) -> int:
        """Number of evaluations after the best one."""
        losses = [record.val_loss for record in self.eval_history]
        return len(losses) - 1 - losses.index(min(losses)) if losses else 0

    def is_best(self) -> bool:
        """Tell if the current model has the lowest validation loss, or none is known yet."""
        evaluated = self.eval_history and self.eval_history[-1].step == self.step
        return not self.eval_history or bool(evaluated and self.evals_since_best() == 0)

    def stopped_early(self) -> bool:
        """Tell if the early-stopping patience is used up."""
        patience = self.config.early_stopping_patience
        return patience is not None and self.evals_since_best() >= patience

    def finished(self) -> bool:
        """Tell if all steps are made and evaluated, or patience is used up."""
        all_steps = self.step >= self.config.steps and not self.eval_due(1)
        return all_steps or self.stopped_early()


def check_unchanged(what: str, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse to resume with other values, except for those in `RESUMABLE_SETTINGS`.

    Raises:
        ValueError: naming each difference.
    """
    before, now = (flatten_dict(what, side) for side in (before, now))
    free = {f"config.{name}" for name in RESUMABLE_SETTINGS}
    differences = [
        f"{name} was {before.get(name)!r} and is now {now.get(name)!r}"
        for name in now | before
        if name not in free and before.get(name) != now.get(name)
    ]
    if differences:
        raise ValueError("; ".join(differences))


def flatten_dict(prefix: str, value: Any) -> dict[str, Any]:
    """Nested dicts as one, with dotted names."""
    if not isinstance(value, dict):
        return {prefix: value}
    leaves: dict[str, Any] = {}
    for name, part in value.items():
        leaves |= flatten_dict(f"{prefix}.{name}", part)
    return leaves
