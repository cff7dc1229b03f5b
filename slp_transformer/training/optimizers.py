"""The optimizers of a training run: AdamW, or Muon for the matrices inside blocks.

Names and refusals need no PyTorch: an optimizer imports it when it is made.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slp_transformer._internal.choices import Choices

if TYPE_CHECKING:
    import torch
    from torch import nn

    from slp_transformer.training.train_config import TrainConfig

ADAMW_STATE = ("step", "exp_avg", "exp_avg_sq")
"""What AdamW keeps of each parameter: names of tensors in a checkpoint."""


@dataclass(frozen=True)
class ParameterGroups:
    """A model's parameters, in the order of the optimizer's numbers.

    Attributes:
        own: those that the optimizer takes for itself (`OptimizerChoice.select`).
        own_state: what it keeps of each of them (`OptimizerChoice.state`).
        matrices: the other matrices, which AdamW trains with weight decay.
        vectors: biases and norms, which it trains without.
    """

    own: "list[nn.Parameter]"
    own_state: tuple[str, ...]
    matrices: "list[nn.Parameter]"
    vectors: "list[nn.Parameter]"

    def in_checkpoint_order(self) -> "list[nn.Parameter]":
        """Return all of them, in the order of their numbers in a checkpoint."""
        return [*self.own, *self.matrices, *self.vectors]

    def state_names(self) -> list[tuple[str, ...]]:
        """Return what the optimizer keeps of each, in this order."""
        others = len(self.matrices) + len(self.vectors)
        return [self.own_state] * len(self.own) + [ADAMW_STATE] * others


@dataclass(frozen=True)
class OptimizerChoice:
    """An optimizer that a run can choose.

    Attributes:
        summary: what it trains, for `--help` and the docs.
        make: makes it from the parameters and the run's settings.
        select: returns the parameters that it trains by its own rule; AdamW trains the others.
        state: what it keeps of each of those: names of its tensors, each a scalar or of the
            parameter's shape.
        needs_whole_matrices: whether a process must have all of a matrix to update it.
    """

    summary: str
    make: "Callable[[ParameterGroups, TrainConfig], torch.optim.Optimizer]"
    select: "Callable[[nn.Module], list[nn.Parameter]]" = lambda model: []
    state: tuple[str, ...] = ADAMW_STATE
    needs_whole_matrices: bool = False


def make_adamw(groups: ParameterGroups, config: "TrainConfig") -> "torch.optim.AdamW":
    """Make AdamW (Loshchilov and Hutter 2019), with weight decay of matrices alone.

    It is PyTorch's fused implementation, about twice as fast, wherever there is one.
    """
    import torch

    fused = all(
        p.device.type in ("cpu", "cuda", "mps") and p.is_floating_point()
        for p in groups.in_checkpoint_order()
    )
    return torch.optim.AdamW(
        [
            {"params": groups.matrices, "weight_decay": config.weight_decay},
            {"params": groups.vectors, "weight_decay": 0.0},
        ],
        lr=config.learning_rate,
        betas=(0.9, config.adam_beta2),
        fused=fused,
    )


def make_muon(groups: ParameterGroups, config: "TrainConfig") -> "torch.optim.Optimizer":
    """Make Muon for the matrices inside blocks, and AdamW for everything else.

    It is PyTorch's (Jordan et al. 2024), with updates as large as AdamW's (Liu et al. 2025, arXiv
    2502.16982), so that one learning rate and one weight decay do for both. It takes a matrix as
    the model stores it: W_QKV is one, of all heads side by side.

    Raises:
        ValueError: if the model has no matrices inside blocks.
    """
    import torch

    from slp_transformer.training.muon import MuonWithAdamW

    if not groups.own:
        raise ValueError(
            'optimizer = "muon" is for the matrices inside blocks, and this model has none: '
            'choose "adamw".'
        )
    rate, decay = config.learning_rate, config.weight_decay
    muon = torch.optim.Muon(groups.own, lr=rate, weight_decay=decay, adjust_lr_fn="match_rms_adamw")
    return MuonWithAdamW(muon, make_adamw(groups, config))


def block_matrices(model: "nn.Module") -> "list[nn.Parameter]":
    """Return the matrices inside a model's blocks."""
    from slp_transformer.block import ResidualBlock

    blocks = [block for block in model.modules() if isinstance(block, ResidualBlock)]
    return list({p: None for block in blocks for p in block.parameters() if p.dim() == 2})


OPTIMIZERS = Choices(
    "optimizer",
    {
        "adamw": OptimizerChoice("all weights", make_adamw),
        "muon": OptimizerChoice(
            "the matrices inside blocks; AdamW trains everything else",
            make_muon,
            select=block_matrices,
            state=("momentum_buffer",),
            needs_whole_matrices=True,
        ),
    },
)
"""The optimizers, by the name of the setting `optimizer`."""


def make_optimizer(model: "nn.Module", config: "TrainConfig") -> "torch.optim.Optimizer":
    """Make the optimizer of a run.

    Raises:
        ValueError: if it is not for such a model.
    """
    return OPTIMIZERS[config.optimizer].make(split_parameters(model, config), config)


def split_parameters(model: "nn.Module", config: "TrainConfig") -> ParameterGroups:
    """Split a model's parameters into those of the run's optimizer, and matrices and vectors."""
    optimizer = OPTIMIZERS[config.optimizer]
    own = optimizer.select(model)
    taken: set[Any] = set(own)
    others = [p for p in model.parameters() if p not in taken]
    matrices = [p for p in others if p.dim() >= 2]
    vectors = [p for p in others if p.dim() < 2]
    return ParameterGroups(own, optimizer.state, matrices, vectors)
