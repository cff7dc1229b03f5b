"""A model of the hand: a lattice in which what grips and moves are worth is learned.

The scores of states and of moves between them are learned; the probability of a whole fingering is
its score over that of all fingerings (a conditional random field: Lafferty, McCallum and Pereira
2001). Where the hand was, nobody wrote down, so the probability of written tab sums over it.
"""

from dataclasses import dataclass

import torch
from torch import nn

from slp_transformer._internal.shape_types import Float, Tensor
from slp_transformer.guitar.fingering.hand_features import NUM_GAP_CLASSES, LatticeBatch
from slp_transformer.guitar.fingering.lattice import NUM_FEATURES
from slp_transformer.guitar.fingering.viterbi import HAND_FRETS

MASKED_SCORE = -1e4  # the score of a state that is not there


@dataclass(frozen=True)
class HandModelConfig:
    """The configuration of a fingering model.

    Attributes:
        move_dim: rank of what is learned of pairs of states.
    """

    move_dim: int = 24


class HandModel(nn.Module):
    """Scores of states and moves, read off the notes.

    Attributes:
        config: what it was made from.
    """

    def __init__(self, config: HandModelConfig):
        """Make a model."""
        super().__init__()
        self.config = config
        self.state_weights = nn.Parameter(torch.zeros(NUM_FEATURES))
        self.leaves = nn.Linear(NUM_FEATURES, config.move_dim, bias=False)
        self.arrives = nn.Linear(NUM_FEATURES, config.move_dim, bias=False)
        for layer in (self.leaves, self.arrives):
            nn.init.normal_(layer.weight, std=0.05)
        # Moving the hand: by gap in time, whether a fretted note rings on, and frets moved.
        self.moves = nn.Parameter(torch.zeros(NUM_GAP_CLASSES, 2, 2 * len(HAND_FRETS) - 1))
        self.taken = nn.Parameter(torch.zeros(1))  # for a ringing string that is taken again
        self.trust = nn.Parameter(torch.ones(2))  # in the costs of `viterbi`

    def forward(
        self, batch: LatticeBatch
    ) -> tuple[Float[Tensor, "batch T S"], Float[Tensor, "batch U S S"]]:
        """Scores of the states of each moment, and of the moves from each moment to the next.

        Returns:
            The two; a move's rows are the states it leaves, its columns those it comes to.
        """
        phi, where = batch.features, batch.moment_type_ids
        score = phi @ self.state_weights - self.trust[0] * batch.costs
        leaves, arrives = self.leaves(phi), self.arrives(phi)
        U = score[where]
        left, right = leaves[where[:, :-1]], arrives[where[:, 1:]]
        U = U.masked_fill(~batch.state_mask[where], MASKED_SCORE)
        leaves, arrives = self.move_factors(batch)
        return U, torch.cat([left, leaves], -1) @ torch.cat([right, arrives], -1).mT

    def move_factors(
        self, batch: LatticeBatch
    ) -> tuple[Float[Tensor, "batch U S h"], Float[Tensor, "batch U S h"]]:
        """Two rows a pair of states, whose product scores the hand's move and strings that ring."""
        places = torch.tensor(HAND_FRETS)
        apart = places - places.unsqueeze(1)  # from a row's place to a column's
        cost = torch.where(apart == 0, 0.0, 0.4 + 0.6 * apart.abs())
        table = self.moves[..., apart + len(HAND_FRETS) - 1]
        table = torch.stack([table[:, 0] - self.trust[1] * cost, table[:, 1]], 1)[
            batch.gap_classes[:, 1:]
        ]
        at = nn.functional.one_hot(batch.hand_frets - 1, len(HAND_FRETS)).float()
        before, after = at[batch.moment_type_ids[:, :-1]], at[batch.moment_type_ids[:, 1:]]
        held = batch.has_sustained_fret[:, :-1].unsqueeze(-1)
        to = before @ table[:, :, 0] + held * (before @ table[:, :, 1])
        ring = self.taken * batch.sustained_strings[:, :-1]
        return torch.cat([to, ring], -1), torch.cat(
            [after, batch.strings_used[batch.moment_type_ids[:, 1:]]], -1
        )


# --- Sums over all fingerings ------------------------------------------------------------------


def log_partition(
    state_scores: Float[Tensor, "batch T S"],
    move_scores: Float[Tensor, "batch U S S"],
    state_masks: Float[Tensor, "kinds batch T S"],
    moment_mask: Tensor,
) -> Float[Tensor, "kinds batch"]:
    """Logarithm of the summed scores of all paths through allowed states.

    Args:
        state_scores: scores of states.
        move_scores: scores of moves.
        state_masks: 0 or 1 for each state, once for every sum that is wanted.
        moment_mask: which moments there are; those at the end may be padding.

    Returns:
        The sums, one for each kind and batch.
    """
    peak = state_scores.amax(-1, keepdim=True).detach()
    E = torch.exp(state_scores - peak) * state_masks
    highest = (
        move_scores.flatten(2).amax(-1).detach()
        if move_scores.shape[1]
        else move_scores.new_zeros(move_scores.shape[:2])
    )
    steps = torch.exp(move_scores - highest[..., None, None]).unbind(1)
    heights, E = peak.squeeze(-1), E.unbind(2)
    total = 0.0
    a = E[0]
    s = a.sum(-1, keepdim=True).clamp(min=1e-30)
    a, total = a / s, s.log().squeeze(-1) + heights[:, 0]
    for t, step in enumerate(steps, start=1):
        b = torch.einsum("kbs,bsr->kbr", a, step) * E[t]
        s = b.sum(-1, keepdim=True).clamp(min=1e-30)
        here = moment_mask[:, t]
        a = torch.where(here[:, None], b / s, a)
        total = total + here * (s.log().squeeze(-1) + heights[:, t] + highest[:, t - 1])
    return total


def hand_model_loss(model: HandModel, batch: LatticeBatch) -> Float[Tensor, ""]:
    """Nats a moment that the model is surprised by the written fingering."""
    U, M = model(batch)
    there = batch.state_mask[batch.moment_type_ids].float()
    all_paths, written = log_partition(
        U, M, torch.stack([there, batch.target_states]), batch.moment_mask
    )
    return (all_paths - written).sum() / batch.moment_mask.sum()


def compute_state_marginals(
    state_scores: Float[Tensor, "batch T S"],
    move_scores: Float[Tensor, "batch U S S"],
    state_mask: Tensor,
    moment_mask: Tensor,
) -> Float[Tensor, "batch T S"]:
    """Probability of each state, all fingerings considered: the gradient of the logarithm."""
    with torch.enable_grad():
        state_scores = state_scores.detach().requires_grad_()
        (grad,) = torch.autograd.grad(
            log_partition(
                state_scores, move_scores.detach(), state_mask.float().unsqueeze(0), moment_mask
            ).sum(),
            state_scores,
        )
    return grad
