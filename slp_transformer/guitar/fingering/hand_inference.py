"""A trained model of the hand at work: how likely each grip is, and the tab that comes of it."""

from collections.abc import Sequence

import torch

from slp_transformer._internal.shape_types import Float, Tensor
from slp_transformer.guitar.fingering.grips import Grip
from slp_transformer.guitar.fingering.hand_features import Columns, Reader
from slp_transformer.guitar.fingering.hand_model import HandModel, state_marginals
from slp_transformer.guitar.fingering.lattice import STRINGS
from slp_transformer.guitar.fingering.passages import Passage
from slp_transformer.guitar.fingering.viterbi import HANDS, HandCosts
from slp_transformer.guitar.fretboard import MAX_FRET

CHUNK, BESIDE = 128, 48  # moments of a window that count, and more of them on either side
AT_ONCE = 16  # windows that are read at a time
UNHEARD = -12.0  # logarithm of the probability of a grip that the model does not weigh
WHOLE = 0.5  # what a whole grip counts beside its notes
CAUTION = 0.25  # of the costs that were thought out, beside what was learned: best on valid


class Hand:
    """One or several trained models of the hand, which agree on a fingering by their mean."""

    def __init__(self, models: Sequence[HandModel], caution: float = CAUTION):
        """Take models.

        Args:
            models: the models.
            caution: how much of the costs that were thought out (`HandCosts`) each model adds to
                what it has learned.
        """
        self.models = [model.eval() for model in models]
        self.caution = caution

    def likelihoods(
        self, passage: Passage
    ) -> list[tuple[tuple[Grip, ...], Float[Tensor, "grips"]]]:
        """The grips of each moment, and how probable each is, the whole piece considered.

        Raises:
            ValueError: if the guitar is not one that the model can know.
            OutOfReach: if no hand can play a moment.
        """
        check_guitar(passage)
        reader = Reader([passage])
        T, found = len(passage.moments), []
        starts = range(0, T, CHUNK)
        cuts = [(0, max(0, s - BESIDE), min(T, s + CHUNK + BESIDE)) for s in starts]
        for n in range(0, len(cuts), AT_ONCE):
            some = cuts[n : n + AT_ONCE]
            mean = self._marginals(reader.windows(some))
            for start, (_, first, _), rows in zip(starts[n:], some, mean, strict=False):
                for t in range(start, min(T, start + CHUNK)):
                    kind = reader.kinds.columns[int(reader.ids[0][t])]
                    likely = torch.zeros(len(kind.grips))
                    likely.index_add_(0, kind.which, rows[t - first][: len(kind.which)])
                    found.append((kind.grips, likely))
        return found

    def _marginals(self, columns: Columns) -> Float[Tensor, "batch T S"]:
        """Probability of each state of windows: the mean over the models."""
        there = columns.there[columns.where]
        more, moves = (self.caution * cost for cost in costs(columns))
        more = -more.masked_fill(~there, 0.0)
        mean = torch.zeros(there.shape)
        for model in self.models:
            with torch.no_grad():
                U, M = model(columns)
            mean += state_marginals(U + more, M - moves, there, columns.valid)
        return mean / len(self.models)

    def finger(self, passage: Passage) -> list[Grip]:
        """At each moment the grip of which most notes are expected to be right."""
        return [best_grip(grips, likely) for grips, likely in self.likelihoods(passage)]

    def weigh(self, passage: Passage, choices: Sequence[Sequence[Grip]]) -> list[list[float]]:
        """The logarithm of the probability of each of some grips of each moment."""
        weights = []
        for (grips, likely), choice in zip(self.likelihoods(passage), choices, strict=True):
            known = dict(zip(grips, likely.clamp(min=1e-9).log().tolist(), strict=True))
            weights.append([max(UNHEARD, known.get(grip, UNHEARD)) for grip in choice])
        return weights


def costs(columns: Columns) -> tuple[Float[Tensor, "batch T S"], Float[Tensor, "batch U S S"]]:
    """What the states of a lattice, and the moves between them, cost a hand by `HandCosts`."""
    of_move = HandCosts().of_move
    table = torch.tensor([[of_move(before, after) for after in HANDS] for before in HANDS])
    hands = columns.hands[columns.where] - 1
    before, after = hands[:, :-1].unsqueeze(-1), hands[:, 1:].unsqueeze(-2)
    return columns.costs[columns.where], table[before, after]


def best_grip(grips: Sequence[Grip], likely: Float[Tensor, "grips"]) -> Grip:
    """Of a moment's grips the one with most notes expected to be right, wholly right ones first."""
    if len(grips[0]) == 1 or len(grips) == 1:
        return grips[int(likely.argmax())]
    each = likely.tolist()
    on: dict[tuple[int, object], float] = {}
    for grip, p in zip(grips, each, strict=True):
        for place in enumerate(grip):
            on[place] = on.get(place, 0.0) + p
    worth = [
        sum(on[place] for place in enumerate(grip)) + WHOLE * p
        for grip, p in zip(grips, each, strict=True)
    ]
    return grips[max(range(len(grips)), key=worth.__getitem__)]


def check_guitar(passage: Passage) -> None:
    """Refuse a guitar that no model of the hand was made for.

    Raises:
        ValueError: saying what it can know.
    """
    if len(passage.tuning.open_pitches) > STRINGS:
        raise ValueError(
            f"A model of the hand knows up to {STRINGS} strings and {MAX_FRET} frets; this guitar "
            f"has {len(passage.tuning.open_pitches)}: leave the model out."
        )
