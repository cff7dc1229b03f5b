"""The optimizers of a training run: AdamW, or Muon for the matrices inside blocks."""

from collections.abc import Callable

import torch
from torch import nn

from slp_transformer.block import ResidualBlock
from slp_transformer.training.train_config import TrainConfig


class MuonWithAdamW(torch.optim.Optimizer):
    """Muon for its group of parameters, and AdamW for the groups after it, as one optimizer."""

    def __init__(self, muon: torch.optim.Muon, adamw: torch.optim.AdamW):
        """Join the two; their groups and states become this optimizer's."""
        super().__init__([*muon.param_groups, *adamw.param_groups], {})
        self.muon: torch.optim.Muon = muon
        self.adamw: torch.optim.AdamW = adamw

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update all parameters."""
        for part, groups in (
            (self.muon, self.param_groups[:1]),
            (self.adamw, self.param_groups[1:]),
        ):
            part.param_groups, part.state = groups, self.state  # which loading has replaced
            part.step()


def make_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """Make the optimizer of a run, with weight decay of matrices alone.

    AdamW (Loshchilov and Hutter 2019) is PyTorch's fused implementation, about twice as fast,
    wherever there is one. Muon is PyTorch's too (Jordan et al. 2024), with updates as large as
    AdamW's (Liu et al. 2025, arXiv 2502.16982), so that one learning rate and one weight decay do
    for both. It takes a matrix as the model stores it: W_QKV is one, of all heads side by side.

    Raises:
        ValueError: if Muon is asked for, and the model has no matrices inside blocks.
    """
    inside, matrices, vectors = split_parameters(model, config)
    fused = all(
        p.device.type in ("cpu", "cuda", "mps") and p.is_floating_point()
        for p in model.parameters()
    )
    rate, decay = config.learning_rate, config.weight_decay
    adamw = torch.optim.AdamW(
        [
            {"params": matrices, "weight_decay": decay},
            {"params": vectors, "weight_decay": 0.0},
        ],
        lr=rate,
        betas=(0.9, config.adam_beta2),
        fused=fused,
    )
    if config.optimizer == "adamw":
        return adamw
    if not inside:
        raise ValueError(
            'optimizer = "muon" is for the matrices inside blocks, and this model has none: '
            'choose "adamw".'
        )
    muon = torch.optim.Muon(inside, lr=rate, weight_decay=decay, adjust_lr_fn="match_rms_adamw")
    return MuonWithAdamW(muon, adamw)


def split_parameters(
    model: nn.Module, config: TrainConfig
) -> tuple[list[nn.Parameter], list[nn.Parameter], list[nn.Parameter]]:
    """Split parameters in the order of the optimizer's numbers.

    Returns:
        Matrices for Muon, matrices for AdamW, and vectors.
    """
    blocks = [block for block in model.modules() if isinstance(block, ResidualBlock)]
    inside = {p: None for block in blocks for p in block.parameters() if p.dim() == 2}
    if config.optimizer == "adamw":
        inside = {}
    others = [p for p in model.parameters() if p not in inside]
    matrices = [p for p in others if p.dim() >= 2]
    return list(inside), matrices, [p for p in others if p.dim() < 2]
