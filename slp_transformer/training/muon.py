"""Muon and AdamW as one optimizer."""

from collections.abc import Callable

import torch


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
