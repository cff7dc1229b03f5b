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
    # `backward` adds to the gradients that are there. They are cleared here rather than behind the
    # update, so that a callback can still look at those of the step it is called after.
    optimizer.zero_grad()
    size = config.batch_size  # a micro-batch; the batch is of several
    if config.batch_tokens is not None:
        # So many tokens are another number of sequences each time: divided, and rounded up.
        size = -(-len(batch.targets) // config.gradient_accumulation_steps)
    for part in strategy.micro_batches(batch, size):
        # The forward pass alone: the backward pass computes in whatever type the forward one did.
        with autocast(config, device):
            summed = loss(model, part.to(device), label_smoothing=config.label_smoothing)
        # By the targets of all parts and processes: a mean of means would give a target more weight
        # where padding leaves its part few of them.
        share = summed / count
        (share * strategy.world_size).backward()  # of a sum, where DDP and FSDP take the mean
        # Without `detach` the graph of each part would live until the last one; as a number, by
        # `item`, the loss would make an accelerator wait. (The sum is float64, if the model is.)
        total = total + share.detach()
    # Clipped once all parts are added up. Nothing is to be unscaled before: bfloat16 has the range
    # of float32, so that no loss has to be scaled up for gradients not to vanish.
    if config.max_grad_norm is not None:
        nn.utils.clip_grad_norm_(model.parameters(), config.max_grad_norm)
    # Set from the step's number, not by a scheduler, whose state a resumed run would have to load.
    for group in optimizer.param_groups:
        group["lr"] = config.learning_rate_at(step)
    optimizer.step()
    return strategy.all_reduce(total)  # each process has its part of the sum
