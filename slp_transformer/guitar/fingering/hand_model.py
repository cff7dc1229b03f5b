"""A model of the hand: a lattice in which what grips and moves are worth is learned.

The scores of states and of moves between them are learned; the probability of a whole fingering is
its score over that of all fingerings (a conditional random field: Lafferty, McCallum and Pereira
2001). Where the hand was, nobody wrote down, so the probability of written tab sums over it.
"""

import torch
from torch import nn

from slp_transformer._internal.shape_types import Float, Tensor
from slp_transformer.guitar.fingering.lattice import NUM_FEATURES, NUM_GAP_CLASSES, LatticeBatch
from slp_transformer.guitar.fingering.viterbi import HAND_FRETS, HandCosts

MASKED_SCORE = -1e4  # the score of a state that is not there


def compute_move_costs() -> Float[Tensor, "places places"]:
    """Return the cost of moving the hand from each place to each other, as `HandCosts` has it."""
    cost = HandCosts().move_cost
    return torch.tensor([[cost(before, after) for after in HAND_FRETS] for before in HAND_FRETS])


class HandModel(nn.Module):
    """Scores of states and moves, read off the notes."""

    def __init__(self, move_dim: int = 24):
        """Make a model.

        Args:
            move_dim: rank of what is learned of pairs of states.
        """
        super().__init__()
        self.state_score = nn.Linear(NUM_FEATURES, 1, bias=False)
        nn.init.zeros_(self.state_score.weight)
        self.leaves = nn.Linear(NUM_FEATURES, move_dim, bias=False)
        self.arrives = nn.Linear(NUM_FEATURES, move_dim, bias=False)
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
        score = self.state_score(phi).squeeze(-1) - self.trust[0] * batch.costs
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
        table = self.moves[..., apart + len(HAND_FRETS) - 1]
        free = table[:, 0] - self.trust[1] * compute_move_costs()
        table = torch.stack([free, table[:, 1]], 1)[batch.gap_classes[:, 1:]]
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
    peaks = state_scores.amax(-1).detach()
    E = (torch.exp(state_scores - peaks.unsqueeze(-1)) * state_masks).unbind(2)
    highest = move_scores.detach().amax((-1, -2))
    steps = torch.exp(move_scores - highest[..., None, None]).unbind(1)
    s = E[0].sum(-1).clamp(min=1e-30)
    a, total = E[0] / s.unsqueeze(-1), s.log() + peaks[:, 0]
    for t, step in enumerate(steps, start=1):
        b = torch.einsum("kbs,bsr->kbr", a, step) * E[t]
        s = b.sum(-1).clamp(min=1e-30)
        here = moment_mask[:, t]
        a = torch.where(here[:, None], b / s.unsqueeze(-1), a)
        total = total + here * (s.log() + peaks[:, t] + highest[:, t - 1])
    return total


def hand_model_loss(model: HandModel, batch: LatticeBatch) -> Float[Tensor, ""]:
    """Nats that the model is surprised by the written fingerings, summed over their moments."""
    U, M = model(batch)
    there = batch.state_mask[batch.moment_type_ids].float()
    all_paths, written = log_partition(
        U, M, torch.stack([there, batch.target_states]), batch.moment_mask
    )
    return (all_paths - written).sum()


def compute_state_marginals(
    state_scores: Float[Tensor, "batch T S"],
    move_scores: Float[Tensor, "batch U S S"],
    state_mask: Tensor,
    moment_mask: Tensor,
) -> Float[Tensor, "batch T S"]:
    """Probability of each state, all fingerings considered: the gradient of the logarithm."""
    with torch.enable_grad():
        U, allowed = state_scores.detach().requires_grad_(), state_mask.float().unsqueeze(0)
        total = log_partition(U, move_scores.detach(), allowed, moment_mask).sum()
    return torch.autograd.grad(total, U)[0]
