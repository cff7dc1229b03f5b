"""One training step: the update of the weights by a batch; and the trial before the first."""

import torch
from torch import nn

from slp_transformer._internal.eval_mode import eval_mode
from slp_transformer._internal.shape_types import Float, Tensor
from slp_transformer.data.batches import Batch, DataSource
from slp_transformer.loss import IGNORE_INDEX
from slp_transformer.training.devices import autocast
from slp_transformer.training.evaluation import Loss, Measure, iter_eval_batches, summed_token_loss
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


@torch.no_grad()
def try_one_sequence(
    model: nn.Module, data: DataSource, measure: Measure, config: TrainConfig, strategy: Strategy
) -> None:
    """Let a model compute one sequence of the validation data, which changes nothing.

    Raises:
        ValueError: if no parameter can be trained, or of the model, for example because a window is
            longer than its context.
    """
    if not any(W.requires_grad for W in model.parameters()):
        raise ValueError("No parameter of the model requires a gradient: none can be trained.")
    batch = next(
        iter_eval_batches(data, None, strategy.world_size), None
    )  # a sequence for each process
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
