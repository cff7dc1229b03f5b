"""What is measured: of an evaluation, functions of logits and targets; of steps, numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from slp_transformer._internal.choices import Choices
from slp_transformer._internal.shape_types import Float, Int, Tensor
from slp_transformer.loss import next_token_loss
from slp_transformer.training.devices import MEBIBYTE, format_speed
from slp_transformer.training.run_folder import EvalRecord

if TYPE_CHECKING:
    from slp_transformer.training.trainer import Trainer


@dataclass(frozen=True)
class Metric:
    """Something that is measured at each target, and averaged over all of them.

    Attributes:
        summary: what it is, for the docs.
        total: sums it over a batch's targets, given logits and targets; those that are
            `IGNORE_INDEX` don't count. Logits are no probabilities yet. It is called in evaluation,
            without gradients and outside `torch.compile`.
        format: returns a mean as people read it.
    """

    summary: str
    total: Callable[[Float[Tensor, "*batch N V"], Int[Tensor, "*batch N"]], Tensor]
    format: Callable[[float], str]


def summed_loss(U: Float[Tensor, "*batch N V"], targets: Int[Tensor, "*batch N"]) -> Tensor:
    """Return the cross-entropy of the targets in nats, summed."""
    return next_token_loss(U, targets, reduction="sum")


def count_correct(U: Float[Tensor, "*batch N V"], targets: Int[Tensor, "*batch N"]) -> Tensor:
    """Return how many targets have the highest logit, the first of equals."""
    rows, words = U.flatten(0, -2), targets.flatten().long()
    if U.device.type == "cpu":
        # A CPU finds the maximum ten times as fast as its place, which is only needed to settle
        # ties where the target has it. A target that is not counted is no word: any stands in.
        own = rows.gather(1, words.clamp(min=0).unsqueeze(1)).squeeze(1)
        places = (own == rows.amax(dim=1)).nonzero().squeeze(1)
        rows, words = rows[places], words[places]
    return (rows.argmax(dim=1) == words).sum()


METRICS = Choices(
    "metric",
    {
        "loss": Metric(
            "the mean cross-entropy in nats per token: the checkpoint with the lowest is the best",
            summed_loss,
            "{:.4f}".format,
        ),
        "accuracy": Metric(
            "the share of tokens to which the model gave the highest probability",
            count_correct,
            "{:.1%}".format,
        ),
    },
)
"""What an evaluation measures; log, metrics.json, TensorBoard and `evaluate` show each of them."""


@dataclass(frozen=True)
class StepNumber:
    """A number of the training steps between two evaluations.

    Attributes:
        summary: what it is, for the docs.
        read: returns it after an evaluation, of weights that have moved and gradients that are
            clipped; None where there is none.
        format: returns it as the log shows it, with its name or unit.
        curve: its name in TensorBoard.
    """

    summary: str
    read: Callable[["Trainer"], float | None]
    format: Callable[[float], str]
    curve: str


STEP_NUMBERS = Choices(
    "number",
    {
        "train_loss": StepNumber(
            "the mean loss of the steps since the last evaluation",
            lambda trainer: trainer.state.eval_history[-1].train_loss,
            "train loss {:.4f}".format,
            "loss/train",
        ),
        "learning_rate": StepNumber(
            "that of the last step",
            lambda trainer: trainer.learning_rate,
            lambda rate: f"lr {rate:.1e}".replace("e-0", "e-"),
            "learning rate",
        ),
        "tokens_per_second": StepNumber(
            "targets a second, evaluations not counted",
            lambda trainer: trainer.tokens_per_second or None,  # none if it was resumed here
            format_speed,
            "tokens per second",
        ),
        "mfu": StepNumber(
            "the share of a GPU's measured speed that is used",
            lambda trainer: trainer.monitor.mfu(trainer.tokens_per_second) or None,
            "MFU {:.0%}".format,
            "MFU",
        ),
        "memory_bytes": StepNumber(
            "the most memory that tensors have taken on a GPU",
            lambda trainer: trainer.monitor.memory_bytes(),
            lambda size: f"{size / MEBIBYTE:,.0f} MiB",
            "memory in bytes",
        ),
    },
)
"""What is told of steps at each evaluation; log, metrics.json and TensorBoard show each of them."""


class ShownNumber(NamedTuple):
    """A number as it is shown: its value, the log's text, the name of its curve."""

    value: float
    text: str
    curve: str


def collect_numbers(trainer: "Trainer", record: EvalRecord) -> dict[str, ShownNumber]:
    """Return all numbers of an evaluation and of the steps before it, by their names in a file."""
    steps = {
        name: ShownNumber(value, number.format(value), number.curve)
        for name, number in STEP_NUMBERS.items()
        if (value := number.read(trainer)) is not None
    }
    metrics = {}
    for name, value in record.means().items():
        data, _, metric = name.rpartition("val_")
        text = f"{name.replace('_', ' ')} {format_number(metric, value)}"
        metrics[name] = ShownNumber(value, text, f"{metric}/{data.replace('_', ' ')}val")
    return {"train_loss": steps.pop("train_loss")} | metrics | steps


def format_number(name: str, value: float | None) -> str:
    """Return a measured number as people read it: a metric in its own way, others in digits."""
    if value is None or name in METRICS:
        return "none" if value is None else METRICS[name].format(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
