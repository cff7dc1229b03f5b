"""One training step: the update of the weights by a batch."""

import torch
from torch import nn

from slp_transformer._internal.shape_types import Float, Tensor
from slp_transformer.data.batches import Batch
from slp_transformer.loss import IGNORE_INDEX
from slp_transformer.training.devices import autocast
from slp_transformer.training.evaluation import Loss, summed_token_loss
from slp_transformer.training.strategy import SINGLE_PROCESS, Strategy
from slp_transformer.training.train_config import TrainConfig


def training_step(
    model: nn.Module,
    batch: Batch,
    optimizer: torch.optim.Optimizer,
    step: int,
    config: TrainConfig,
    device: torch.device,
    strategy: Strategy = SINGLE_PROCESS,
    loss: Loss = summed_token_loss,
) -> Float[Tensor, ""]:
    """Update the weights once.

    Each micro-batch adds its share to the gradient, so that together they give the gradient of the
    mean over all targets, however padding is spread among them.

    Returns:
        The mean loss of the batch, before the update.

    Raises:
        ValueError: if the batch has no target that counts.
    """
    count, total = batch.num_targets, torch.zeros((), device=device)
    if not count:
        raise ValueError(
            f"The batch of step {step} has nothing to predict: all its targets are "
            f"{IGNORE_INDEX}, and are not counted. Draw larger batches, or leave fewer out."
        )
    optimizer.zero_grad()
    size = config.batch_size  # a micro-batch; the batch is of several
    if config.batch_tokens is not None:
        # So many tokens are another number of sequences each time: divided, and rounded up.
        size = -(-len(batch.targets) // config.gradient_accumulation_steps)
    for part in strategy.micro_batches(batch, size):
        with autocast(config, device):
            summed = loss(model, part.to(device), label_smoothing=config.label_smoothing)
        share = summed / count
        (share * strategy.world_size).backward()  # of a sum, where DDP takes the mean
        total = total + share.detach()  # float64, if the model is
    if config.max_grad_norm is not None:
        nn.utils.clip_grad_norm_(model.parameters(), config.max_grad_norm)
    for group in optimizer.param_groups:
        group["lr"] = config.learning_rate_at(step)
    optimizer.step()
    return strategy.all_reduce(total)
