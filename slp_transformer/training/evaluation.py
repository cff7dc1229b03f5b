"""The loss of a model on a batch, and its mean over validation data."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from slp_transformer._internal.eval_mode import eval_mode
from slp_transformer._internal.shape_types import Float, Int, Tensor
from slp_transformer.data.batches import Batch, DataSource, as_data_source
from slp_transformer.data.token_file import TokenStore
from slp_transformer.loss import next_token_loss
from slp_transformer.training.devices import cpu_default_device
from slp_transformer.training.strategy import SINGLE_PROCESS, Strategy

Loss = Callable[..., Tensor]
"""Sums the loss over a batch's targets, as `summed_token_loss` does."""


def summed_token_loss(
    model: nn.Module, batch: Batch, *, label_smoothing: float = 0.0
) -> Float[Tensor, ""]:
    """Return the next-token loss of a batch, summed over its targets."""
    logits = model(*batch.inputs)
    return next_token_loss(logits, batch.targets, label_smoothing=label_smoothing, reduction="sum")


@torch.no_grad()
def mean_loss(
    model: nn.Module,
    data: Int[Tensor, "tokens"] | TokenStore | DataSource,
    N: int | None = None,
    batch_size: int = 32,
    strategy: Strategy = SINGLE_PROCESS,
    on_batch: Callable[[int], Any] = lambda count: None,
    loss: Loss = summed_token_loss,
) -> float:
    """Return the mean loss over all of some data; a stream is cut into windows that do not overlap.

    Args:
        model: the model; it is used in evaluation mode, and is afterwards in the mode it was in.
        data: tokens, or another source; what is left over after a stream's last full window is not
            counted.
        N: tokens in a window of a stream.
        batch_size: sequences scored at once.
        strategy: the processes that share the work.
        on_batch: called after each batch with its number of sequences; an exception ends the work.
        loss: sums the loss over a batch's targets.

    Returns:
        Nats per token.

    Raises:
        ValueError: if a stream is too short for one window.
    """
    device, count = next(model.parameters()).device, 0
    losses = []  # on the device, to wait for it only once
    with eval_mode(model):
        for batch in eval_batches(data, N, batch_size * strategy.world_size):
            count += batch.num_targets
            losses.append(loss(model, strategy.shard(batch).to(device)))
            on_batch(len(batch.targets))
    total = sum(torch.stack(losses).tolist()) if losses else 0.0
    summed = torch.tensor(total, dtype=torch.float64, device="cpu")
    return strategy.all_reduce(summed).item() / count


def eval_batches(
    data: Int[Tensor, "tokens"] | TokenStore | DataSource, N: int | None, batch_size: int
) -> Iterator[Batch]:
    """Yield the batches of some data, made on the CPU."""
    with cpu_default_device():
        batches = as_data_source(data, N).iter_eval(batch_size)
    while True:
        with cpu_default_device():
            batch = next(batches, None)
        if batch is None:
            return
        yield batch
