"""What a model is measured by: the loss over held-out data."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from slp_transformer._internal.eval_mode import evaluating
from slp_transformer._internal.shape_types import Int, Tensor
from slp_transformer.data.batches import BatchSource, as_source
from slp_transformer.data.token_file import TokenStore
from slp_transformer.loss import next_token_loss
from slp_transformer.training.strategy import ALONE, Team


@torch.no_grad()
def mean_loss(
    model: nn.Module,
    held_out: Int[Tensor, "tokens"] | TokenStore | BatchSource,
    N: int | None = None,
    batch_size: int = 32,
    team: Team = ALONE,
    tell: Callable[[int], Any] = lambda count: None,
) -> float:
    """The loss over all of some data; a stream is cut into windows that do not overlap.

    Args:
        model: the model; it is read in evaluation mode, and is afterwards as it was.
        held_out: held-out tokens, or another source; what is left over after a stream's last full
            window is not counted.
        N: tokens in a window of a stream.
        batch_size: sequences scored at once.
        team: the processes that share the work.
        tell: called after each batch with its number of sequences; what it raises ends the work.

    Returns:
        Nats per token.

    Raises:
        ValueError: if a stream is too short for one window.
    """
    device, count = next(model.parameters()).device, 0
    losses = []  # left on the device, which is waited for only once
    with evaluating(model):
        for batch in as_source(held_out, N).in_order(batch_size * team.size):
            count += batch.count
            share = team.share(batch).to(device)
            losses.append(next_token_loss(model(*share.inputs), share.targets, reduction="sum"))
            tell(len(batch.targets))
    total = sum(torch.stack(losses).tolist()) if losses else 0.0
    return team.sum(torch.tensor(total, dtype=torch.float64)).item() / count
