"""A model of the hand: a lattice in which what grips and moves are worth is learned.

The scores of states and of moves between them are learned; the probability of a whole fingering is
its score over that of all fingerings (a conditional random field: Lafferty, McCallum and Pereira
2001). Where the hand was, nobody wrote down, so the probability of written tab sums over it.
"""

from dataclasses import dataclass

import torch
from torch import nn

from slp_transformer._internal.shape_types import Float, Tensor
from slp_transformer.guitar.fingering.hand_features import GAPS, Columns
from slp_transformer.guitar.fingering.lattice import FEATURES
from slp_transformer.guitar.fingering.viterbi import HANDS

NEVER = -1e4  # the score of a state that is not there


@dataclass(frozen=True)
class HandConfig:
    """What a model of the hand is made of.

    Attributes:
        move_dim: rank of what is learned of pairs of states.
    """

    move_dim: int = 24


class HandModel(nn.Module):
    """Scores of states and moves, read off the notes.

    Attributes:
        config: what it was made from.
    """

    def __init__(self, config: HandConfig):
        """Make a model."""
        super().__init__()
        self.config = config
        self.state_weights = nn.Parameter(torch.zeros(FEATURES))
        self.leaves = nn.Linear(FEATURES, config.move_dim, bias=False)
        self.arrives = nn.Linear(FEATURES, config.move_dim, bias=False)
        for layer in (self.leaves, self.arrives):
            nn.init.normal_(layer.weight, std=0.05)
        # Moving the hand: by gap in time, whether a fretted note rings on, and frets moved.
        self.moves = nn.Parameter(torch.zeros(GAPS, 2, 2 * len(HANDS) - 1))
        self.taken = nn.Parameter(torch.zeros(1))  # for a ringing string that is taken again
        self.trust = nn.Parameter(torch.ones(2))  # in the costs of `viterbi`

    def forward(
        self, columns: Columns
    ) -> tuple[Float[Tensor, "batch T S"], Float[Tensor, "batch U S S"]]:
        """Scores of the states of each moment, and of the moves from each moment to the next.

        Returns:
            The two; a move's rows are the states it leaves, its columns those it comes to.
        """
        phi, where = columns.features, columns.where
        score = phi @ self.state_weights - self.trust[0] * columns.costs
        leaves, arrives = self.leaves(phi), self.arrives(phi)
        U = score[where]
        left, right = leaves[where[:, :-1]], arrives[where[:, 1:]]
        U = U.masked_fill(~columns.there[where], NEVER)
        leaves, arrives = self.of_moves(columns)
        return U, torch.cat([left, leaves], -1) @ torch.cat([right, arrives], -1).mT

    def of_moves(
        self, columns: Columns
    ) -> tuple[Float[Tensor, "batch U S h"], Float[Tensor, "batch U S h"]]:
        """Two rows a pair of states, whose product scores the hand's move and strings that ring."""
        places = torch.tensor(HANDS)
        apart = places - places.unsqueeze(1)  # from a row's place to a column's
        cost = torch.where(apart == 0, 0.0, 0.4 + 0.6 * apart.abs())
        table = self.moves[..., apart + len(HANDS) - 1]
        table = torch.stack([table[:, 0] - self.trust[1] * cost, table[:, 1]], 1)[
            columns.gaps[:, 1:]
        ]
        at = nn.functional.one_hot(columns.hands - 1, len(HANDS)).float()
        before, after = at[columns.where[:, :-1]], at[columns.where[:, 1:]]
        held = columns.held_fret[:, :-1].unsqueeze(-1)
        to = before @ table[:, :, 0] + held * (before @ table[:, :, 1])
        ring = self.taken * columns.held_strings[:, :-1]
        return torch.cat([to, ring], -1), torch.cat([after, columns.used[columns.where[:, 1:]]], -1)


# --- Sums over all fingerings ------------------------------------------------------------------


def log_sums(
    U: Float[Tensor, "batch T S"],
    M: Float[Tensor, "batch U S S"],
    allowed: Float[Tensor, "kinds batch T S"],
    valid: Tensor,
) -> Float[Tensor, "kinds batch"]:
    """Logarithm of the summed scores of all paths through allowed states.

    Args:
        U: scores of states.
        M: scores of moves.
        allowed: 0 or 1 for each state, once for every sum that is wanted.
        valid: which moments there are; those at the end may be padding.

    Returns:
        The sums, one for each kind and batch.
    """
    peak = U.amax(-1, keepdim=True).detach()
    E = torch.exp(U - peak) * allowed
    highest = M.flatten(2).amax(-1).detach() if M.shape[1] else M.new_zeros(M.shape[:2])
    steps = torch.exp(M - highest[..., None, None]).unbind(1)
    heights, E = peak.squeeze(-1), E.unbind(2)
    total = 0.0
    a = E[0]
    s = a.sum(-1, keepdim=True).clamp(min=1e-30)
    a, total = a / s, s.log().squeeze(-1) + heights[:, 0]
    for t, step in enumerate(steps, start=1):
        b = torch.einsum("kbs,bsr->kbr", a, step) * E[t]
        s = b.sum(-1, keepdim=True).clamp(min=1e-30)
        here = valid[:, t]
        a = torch.where(here[:, None], b / s, a)
        total = total + here * (s.log().squeeze(-1) + heights[:, t] + highest[:, t - 1])
    return total


def loss(model: HandModel, columns: Columns) -> Float[Tensor, ""]:
    """Nats a moment that the model is surprised by the written fingering."""
    U, M = model(columns)
    there = columns.there[columns.where].float()
    all_paths, written = log_sums(U, M, torch.stack([there, columns.written]), columns.valid)
    return (all_paths - written).sum() / columns.valid.sum()


def state_marginals(
    U: Float[Tensor, "batch T S"],
    M: Float[Tensor, "batch U S S"],
    there: Tensor,
    valid: Tensor,
) -> Float[Tensor, "batch T S"]:
    """Probability of each state, all fingerings considered: the gradient of the logarithm."""
    with torch.enable_grad():
        U = U.detach().requires_grad_()
        (grad,) = torch.autograd.grad(
            log_sums(U, M.detach(), there.float().unsqueeze(0), valid).sum(), U
        )
    return grad
