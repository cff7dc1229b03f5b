"""The loss of a model on a batch, and the means of all metrics over validation data."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

from slp_transformer._internal.eval_mode import eval_mode
from slp_transformer._internal.shape_types import Float, Tensor
from slp_transformer.data.batches import Batch, DataSource, TokenData, as_data_source
from slp_transformer.loss import IGNORE_INDEX, next_token_loss
from slp_transformer.training.devices import autocast, cpu_default_device
from slp_transformer.training.metrics import METRICS
from slp_transformer.training.strategy import SINGLE_PROCESS, Strategy
from slp_transformer.training.train_config import TrainConfig

Loss = Callable[..., Tensor]
"""Sums the loss over a batch's targets, as `summed_token_loss` does."""
Measure = Callable[[nn.Module, Batch], Mapping[str, Tensor]]
"""Sums what is measured over a batch's targets, by name, as `summed_metrics` does."""


def summed_token_loss(
    model: nn.Module, batch: Batch, *, label_smoothing: float = 0.0
) -> Float[Tensor, ""]:
    """Return the next-token loss of a batch, summed over its targets."""
    logits = model(*batch.inputs)
    return next_token_loss(logits, batch.targets, label_smoothing=label_smoothing, reduction="sum")


def summed_metrics(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    """Return each metric of a batch, summed over its targets; the logits are computed once."""
    logits = model(*batch.inputs)
    return {name: metric.total(logits, batch.targets) for name, metric in METRICS.items()}


def mean_loss(
    model: nn.Module, data: TokenData, N: int | None = None, batch_size: int = 32
) -> float:
    """Return the mean loss over all of some data, in nats per token; see `mean_metrics`.

    Raises:
        ValueError: if a stream is too short for one window, or nothing is to be predicted.
    """

    def measure(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        return {"loss": summed_token_loss(model, batch)}

    return mean_metrics(model, data, N, batch_size, measure=measure)["loss"]


@torch.no_grad()
def mean_metrics(
    model: nn.Module,
    data: TokenData,
    N: int | None = None,
    batch_size: int = 32,
    strategy: Strategy = SINGLE_PROCESS,
    on_batch: Callable[[int], Any] = lambda count: None,
    measure: Measure = summed_metrics,
) -> dict[str, float]:
    """Return means over all of some data; a stream is cut into windows that do not overlap.

    Args:
        model: the model; it is used in evaluation mode, and is afterwards in the mode it was in.
        data: tokens, or another source; what is left over after a stream's last full window is not
            counted.
        N: tokens in a window of a stream.
        batch_size: sequences scored at once.
        strategy: the processes that share the work.
        on_batch: called after each batch with its number of sequences; an exception ends the work.
        measure: sums what is measured over a batch's targets, by name.

    Returns:
        The mean over all targets of each, by name.

    Raises:
        ValueError: if a stream is too short for one window, or nothing is to be predicted.
    """
    device, count = next(model.parameters()).device, 0
    # Added up, not kept: a list of small tensors between the logits of one batch and the next
    # would keep the heap from ever using that room again. On the device, to wait for it only once,
    # but for MPS, which has no float64.
    place = torch.device("cpu") if device.type == "mps" else device
    sums: dict[str, Tensor] = {}
    with eval_mode(model):
        for batch in iter_eval_batches(data, N, batch_size * strategy.world_size):
            count += batch.num_targets
            for name, total in measure(model, strategy.shard(batch).to(device)).items():
                if name not in sums:
                    sums[name] = torch.zeros((), dtype=torch.float64, device=place)
                sums[name] += total.to(place)
            on_batch(len(batch.targets))
    if not count:
        raise ValueError(
            f"There is nothing to predict: every target of the data is {IGNORE_INDEX}, and is not "
            "counted."
        )
    totals = strategy.all_reduce(torch.stack(list(sums.values())).cpu())
    return {name: total / count for name, total in zip(sums, totals.tolist(), strict=True)}


def iter_eval_batches(data: TokenData, N: int | None, batch_size: int) -> Iterator[Batch]:
    """Yield the batches of some data, made on the CPU."""
    with cpu_default_device():
        batches = as_data_source(data, N).iter_eval(batch_size)
    # A generator's code runs in the context of whoever asks for the next batch: it is entered for
    # each, and left before the model computes.
    while True:
        with cpu_default_device():
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


@torch.no_grad()
def check_one_sequence(
    model: nn.Module, data: DataSource, measure: Measure, config: TrainConfig, strategy: Strategy
) -> None:
    """Let a model compute one sequence of the validation data, which changes nothing.

    Raises:
        ValueError: if no parameter can be trained, or of the model, for example because a window is
            longer than its context.
    """
    if not any(W.requires_grad for W in model.parameters()):
        raise ValueError("No parameter of the model requires a gradient: none can be trained.")
    # A sequence for each process.
    batch = next(iter_eval_batches(data, None, strategy.world_size), None)
    if batch is not None:
        with eval_mode(model), autocast(config, strategy.device):
            measure(model, strategy.shard(batch).to(strategy.device))


def has_idle_parameters(model: nn.Module, data: DataSource, loss: Loss) -> bool:
    """Tell if some parameters have no part in the loss, by one sequence of the validation data."""
    batch = next(iter_eval_batches(data, None, 1), None)
    if batch is None:
        return False
    with torch.random.fork_rng():  # dropout must not move the run's own random numbers
        loss(model, batch.to(next(model.parameters()).device)).backward()
    idle = any(W.requires_grad and W.grad is None for W in model.parameters())
    model.zero_grad()
    return idle
