"""A model of the hand: a lattice in which what grips and moves are worth is learned.

The scores of states and of moves between them are learned; the probability of a whole fingering is
its score over that of all fingerings (a conditional random field: Lafferty, McCallum and Pereira
2001). Where the hand was, nobody wrote down, so the probability of written tab sums over it.

The lattice itself is in `slp_guitar.fingering.hand_lattice`.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

from slp_guitar.fingering.grips import Grip
from slp_guitar.fingering.hand_lattice import (
    NUM_FEATURES,
    NUM_GAP_CLASSES,
    LatticeBatch,
    PassageWindows,
)
from slp_guitar.fingering.passages import Passage
from slp_guitar.fingering.viterbi import HAND_FRETS, HandCosts
from slp_guitar.fretboard import MAX_FRET
from slp_guitar.token_reader import NUM_STRINGS
from slp_transformer._internal.shape_types import Float, Tensor
from slp_transformer.training.checkpoints import load_weights
from slp_transformer.training.run_folder import checkpoint_folder, with_retries_if_run_changes

MASKED_SCORE = -1e4  # the score of a state that is not there
WINDOW_MOMENTS = 128  # moments of a window that count
CONTEXT_MOMENTS = 48  # more of them on either side
WINDOWS_PER_BATCH = 16  # windows that are read at a time
MIN_LOG_PROB = -12.0  # logarithm of the probability of a grip that the model does not weigh
WHOLE_CHORD_BONUS = 0.5  # weight of a whole grip relative to its notes
DEFAULT_COST_WEIGHT = 0.25  # of `HandCosts` relative to the trained model; by cross-validation


class HandModel(nn.Module):
    """Scores of states and moves, read off the notes."""

    def __init__(self, move_dim: int = 24):
        """Make a model.

        Args:
            move_dim: rank of what is learned of pairs of states.
        """
        super().__init__()
        self.state_score: nn.Linear = nn.Linear(NUM_FEATURES, 1, bias=False)
        nn.init.zeros_(self.state_score.weight)
        self.leaves: nn.Linear = nn.Linear(NUM_FEATURES, move_dim, bias=False)
        self.arrives: nn.Linear = nn.Linear(NUM_FEATURES, move_dim, bias=False)
        for layer in (self.leaves, self.arrives):
            nn.init.normal_(layer.weight, std=0.05)
        # Moving the hand: by gap in time and frets moved.
        self.moves: nn.Parameter = nn.Parameter(
            torch.zeros(NUM_GAP_CLASSES, 2 * len(HAND_FRETS) - 1)
        )
        self.trust: nn.Parameter = nn.Parameter(torch.ones(2))  # in the costs of `viterbi`

    def forward(
        self, batch: LatticeBatch
    ) -> tuple[Float[Tensor, "batch T S"], Float[Tensor, "batch U S S"]]:
        """Scores of the states of each moment, and of the moves from each moment to the next.

        Returns:
            The two; a move's rows are the states it leaves, its columns those it comes to.
        """
        phi, where = batch.features, batch.moment_type_ids
        score = self.state_score(phi).squeeze(-1) - self.trust[0] * batch.costs
        U = score[where].masked_fill(~batch.state_mask[where], MASKED_SCORE)
        places = torch.tensor(HAND_FRETS)
        apart = places - places.unsqueeze(1)  # from a row's place to a column's
        costs = torch.tensor(HandCosts().move_costs())  # the same in both directions
        table = self.moves[:, apart + len(HAND_FRETS) - 1] - self.trust[1] * costs
        at = nn.functional.one_hot(batch.hand_frets - 1, len(HAND_FRETS)).float()
        # Two rows a pair of states, whose product scores what is learned of them and the move.
        before, after = where[:, :-1], where[:, 1:]
        left = torch.cat(
            [self.leaves(phi)[before], at[before] @ table[batch.gap_classes[:, 1:]]], -1
        )
        right = torch.cat([self.arrives(phi), at], -1)[after]
        return U, left @ right.mT


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


def hand_model_loss(model: nn.Module, batch: LatticeBatch) -> Float[Tensor, ""]:
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


# --- Trained models at work -----------------------------------------------------------------------


class HandEnsemble:
    """One or several trained models of the hand, which agree on a fingering by their mean."""

    def __init__(self, models: Sequence[HandModel], cost_weight: float = DEFAULT_COST_WEIGHT):
        """Take models.

        Args:
            models: the models.
            cost_weight: how much of the costs that were thought out (`HandCosts`) each model adds
                to what it has learned.
        """
        self.models: list[HandModel] = [model.eval() for model in models]
        self.cost_weight = cost_weight

    def grip_probabilities(
        self, passage: Passage, pinned: Sequence[Grip] = ()
    ) -> list[tuple[tuple[Grip, ...], Float[Tensor, "grips"]]]:
        """The grips of each moment, and how probable each is, the whole piece considered.

        Args:
            passage: the piece; its written grips are not looked at.
            pinned: the grip of each moment that is given, and an empty one of each other.

        Raises:
            ValueError: if the guitar is not one that the model can know.
            UnplayableError: if no hand can play a moment.
        """
        if len(passage.tuning.open_pitches) > NUM_STRINGS:
            raise ValueError(
                f"A fingering model knows up to {NUM_STRINGS} strings and {MAX_FRET} frets; this "
                f"guitar has {len(passage.tuning.open_pitches)}: leave the model out."
            )
        reader = PassageWindows([replace(passage, grips=tuple(pinned))])
        T, found = len(passage.moments), []
        starts = range(0, T, WINDOW_MOMENTS)
        cuts = [
            (0, max(0, s - CONTEXT_MOMENTS), min(T, s + WINDOW_MOMENTS + CONTEXT_MOMENTS))
            for s in starts
        ]
        for n in range(0, len(cuts), WINDOWS_PER_BATCH):
            some = cuts[n : n + WINDOWS_PER_BATCH]
            mean = self._mean_state_marginals(reader.build_batch(some))
            for start, (_, first, _), rows in zip(starts[n:], some, mean, strict=False):
                for t in range(start, min(T, start + WINDOW_MOMENTS)):
                    states = reader.states[0][t]
                    likely = torch.zeros(len(states.grips))
                    likely.index_add_(0, states.grip_ids, rows[t - first][: len(states.grip_ids)])
                    found.append((states.grips, likely))
        return found

    @torch.no_grad()
    def _mean_state_marginals(self, batch: LatticeBatch) -> Float[Tensor, "batch T S"]:
        """Probability of each state of windows: the mean over the models."""
        there = batch.target_states.bool()
        costs = batch.costs[batch.moment_type_ids].masked_fill(~there, 0.0)
        hands = batch.hand_frets[batch.moment_type_ids] - 1
        moves = torch.tensor(HandCosts().move_costs())[
            hands[:, :-1].unsqueeze(-1), hands[:, 1:].unsqueeze(-2)
        ]
        mean = torch.zeros(there.shape)
        for model in self.models:
            U, M = model(batch)
            U, M = U - self.cost_weight * costs, M - self.cost_weight * moves
            mean += compute_state_marginals(U, M, there, batch.moment_mask)
        return mean / len(self.models)

    def predict_grips(self, passage: Passage) -> list[Grip]:
        """At each moment the grip of which most notes are expected to be right."""
        return [
            select_best_grip(grips, likely) for grips, likely in self.grip_probabilities(passage)
        ]

    def grip_log_probs(
        self, passage: Passage, choices: Sequence[Sequence[Grip]]
    ) -> list[list[float]]:
        """The logarithm of the probability of each of some grips of each moment.

        Where there is one grip to choose from, the probabilities of the others follow from it.
        """
        pinned = [choice[0] if len(choice) == 1 else () for choice in choices]
        found, weights = self.grip_probabilities(passage, pinned), []
        for (grips, likely), choice in zip(found, choices, strict=True):
            known = dict(zip(grips, likely.clamp(min=1e-9).log().tolist(), strict=True))
            weights.append([max(MIN_LOG_PROB, known.get(grip, MIN_LOG_PROB)) for grip in choice])
        return weights


def select_best_grip(choices: Sequence[Grip], probs: Float[Tensor, "grips"]) -> Grip:
    """Of a moment's grips the one with most notes expected to be right, wholly right ones first."""
    each = probs.tolist()
    on: dict[tuple[int, object], float] = {}
    for grip, p in zip(choices, each, strict=True):
        for place in enumerate(grip):
            on[place] = on.get(place, 0.0) + p
    worth = [
        sum(on[place] for place in enumerate(grip)) + WHOLE_CHORD_BONUS * p
        for grip, p in zip(choices, each, strict=True)
    ]
    return choices[max(range(len(choices)), key=worth.__getitem__)]


def load_hand_ensemble(*run_dirs: str | Path) -> HandEnsemble:
    """Load the best models of runs, to agree on fingerings.

    Raises:
        ValueError: if there is no run, or it is damaged; the sentence names the file.
        ImportError: if safetensors or pydantic is not installed.
    """
    models = []
    for run_dir in run_dirs:
        if (Path(run_dir) / "config.toml").exists():  # which the runs of `train` have
            raise ValueError(f"{run_dir} holds a model of tokens, not of a hand.")
        models.append(load_hand_model(run_dir))
    return HandEnsemble(models)


@with_retries_if_run_changes
def load_hand_model(run_dir: str | Path) -> HandModel:
    """Load the best model of a run."""
    model = HandModel()
    load_weights(model, checkpoint_folder(run_dir, "best"))
    return model
