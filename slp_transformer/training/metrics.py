"""What an evaluation measures: named functions of logits and targets."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from slp_transformer._internal.choices import Choices
from slp_transformer._internal.shape_types import Float, Int, Tensor
from slp_transformer.loss import next_token_loss


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


def format_metric(name: str, value: float) -> str:
    """Return the mean of a metric as people read it; of one that is in no table, four digits."""
    return METRICS[name].format(value) if name in METRICS else f"{value:.4g}"


def format_val_metrics(means: Mapping[str, float]) -> list[str]:
    """Return the means of an evaluation as people read them: "full val accuracy 41.2%"."""
    named = [(name, name.rpartition("val_")[2], value) for name, value in means.items()]
    return [f"{n.replace('_', ' ')} {format_metric(metric, value)}" for n, metric, value in named]
