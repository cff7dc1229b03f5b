"""A trained model of the hand at work: how likely each grip is, and the tab that comes of it."""

from collections.abc import Sequence
from pathlib import Path

import torch

from slp_transformer._internal.shape_types import Float, Tensor
from slp_transformer.guitar.fingering.grips import Grip
from slp_transformer.guitar.fingering.hand_model import (
    HandModel,
    compute_move_costs,
    compute_state_marginals,
)
from slp_transformer.guitar.fingering.lattice import NUM_STRINGS, LatticeBatch, PassageWindows
from slp_transformer.guitar.fingering.passages import Passage
from slp_transformer.guitar.fretboard import MAX_FRET
from slp_transformer.training.checkpoint_files import checkpoint_folder
from slp_transformer.training.checkpoints import load_weights

WINDOW_MOMENTS = 128  # moments of a window that count
CONTEXT_MOMENTS = 48  # more of them on either side
WINDOWS_PER_BATCH = 16  # windows that are read at a time
MIN_LOG_PROB = -12.0  # logarithm of the probability of a grip that the model does not weigh
WHOLE_CHORD_BONUS = 0.5  # weight of a whole grip relative to its notes
DEFAULT_COST_WEIGHT = 0.25  # of `HandCosts` relative to the trained model; best on valid


class HandEnsemble:
    """One or several trained models of the hand, which agree on a fingering by their mean."""

    def __init__(self, models: Sequence[HandModel], cost_weight: float = DEFAULT_COST_WEIGHT):
        """Take models.

        Args:
            models: the models.
            cost_weight: how much of the costs that were thought out (`HandCosts`) each model adds
                to what it has learned.
        """
        self.models = [model.eval() for model in models]
        self.cost_weight = cost_weight

    def grip_probabilities(
        self, passage: Passage
    ) -> list[tuple[tuple[Grip, ...], Float[Tensor, "grips"]]]:
        """The grips of each moment, and how probable each is, the whole piece considered.

        Raises:
            ValueError: if the guitar is not one that the model can know.
            UnplayableError: if no hand can play a moment.
        """
        if len(passage.tuning.open_pitches) > NUM_STRINGS:
            raise ValueError(
                f"A fingering model knows up to {NUM_STRINGS} strings and {MAX_FRET} frets; this "
                f"guitar has {len(passage.tuning.open_pitches)}: leave the model out."
            )
        reader = PassageWindows([passage])
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
        there = batch.state_mask[batch.moment_type_ids]
        costs = batch.costs[batch.moment_type_ids].masked_fill(~there, 0.0)
        hands = batch.hand_frets[batch.moment_type_ids] - 1
        moves = compute_move_costs()[hands[:, :-1].unsqueeze(-1), hands[:, 1:].unsqueeze(-2)]
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
        """The logarithm of the probability of each of some grips of each moment."""
        weights = []
        for (grips, likely), choice in zip(self.grip_probabilities(passage), choices, strict=True):
            known = dict(zip(grips, likely.clamp(min=1e-9).log().tolist(), strict=True))
            weights.append([max(MIN_LOG_PROB, known.get(grip, MIN_LOG_PROB)) for grip in choice])
        return weights


def select_best_grip(choices: Sequence[Grip], probs: Float[Tensor, "grips"]) -> Grip:
    """Of a moment's grips the one with most notes expected to be right, wholly right ones first."""
    if len(choices[0]) == 1 or len(choices) == 1:
        return choices[int(probs.argmax())]
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
        models.append(HandModel())
        load_weights(models[-1], checkpoint_folder(run_dir, "best"))
    return HandEnsemble(models)
