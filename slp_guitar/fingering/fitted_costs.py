"""The costs of a fingering as weights of named features, fitted to tab that people have written.

The weights stand in `fitted_costs.json`, with what they were fitted on, and `cost_fitting` makes
them. They are whole multiples of 1/1024, and features are whole numbers: so sums of costs are
exact, in any order and any language.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from slp_guitar.fingering.features import (
    MEMORY_LAGS,
    OTHER_GRIP,
    Features,
    elsewhere_within,
    grip_features,
    hand_features,
    move_features,
    pair_features,
)
from slp_guitar.fingering.grips import Grip
from slp_guitar.fingering.viterbi import HAND_FRETS

COSTS_FILE = Path(__file__).with_name("fitted_costs.json")
UNIT = 1 / 1024
"""What a weight is a whole multiple of."""
CUT = "cut notes"
RELEASED = "held notes that the hand leaves"
PER_FRET_FROM_POSITION = 0.5
"""For each fret that the hand is away from a position that is preferred."""


class FittedCosts:
    """What grips and moves of a hand cost, in nats.

    Attributes:
        weights: of each feature; one that has none is free.
        open_string_cost: more for an open string; below 0 to prefer them.
        preferred_position: fret of the preferred position; None for no preference.
    """

    def __init__(
        self,
        weights: Mapping[str, float],
        open_string_cost: float = 0.0,
        preferred_position: int | None = None,
    ):
        """Take the weights, and what a guitarist asks for."""
        self.weights = weights
        self.open_string_cost = open_string_cost
        self.preferred_position = preferred_position
        self.per_cut_note: float = weights.get(CUT, 0.0)
        self.per_released_note: float = weights.get(RELEASED, 0.0)
        self.per_other_grip: float = weights.get(OTHER_GRIP, 0.0)
        self._at_hands: dict[Grip, list[float]] = {}
        self._pairs: dict[tuple[object, ...], float] = {}
        self._moves: dict[tuple[str, bool], list[list[float]]] = {}

    def price(self, features: Features) -> float:
        """Return the cost of some features."""
        return sum(self.weights.get(name, 0.0) * value for name, value in features)

    def price_at_each_fret(self, grip: Grip) -> list[float]:
        """Return what a grip costs at each place of the hand."""
        if grip not in self._at_hands:
            wanted = self.preferred_position
            anywhere = self.price(grip_features(grip))
            anywhere += self.open_string_cost * sum(note.fret == 0 for note in grip)
            self._at_hands[grip] = [
                anywhere
                + self.price(hand_features(grip, hand))
                + (0 if wanted is None else PER_FRET_FROM_POSITION * abs(hand - wanted))
                for hand in HAND_FRETS
            ]
        return self._at_hands[grip]

    def price_pair(
        self, before: Grip, grip: Grip, pitches_before: tuple[int, ...], pitches: tuple[int, ...]
    ) -> float:
        """Return what a grip costs after another, wherever the hand is."""
        key = (before, grip, pitches_before, pitches)
        if key not in self._pairs:
            self._pairs[key] = self.price(pair_features(before, grip, pitches_before, pitches))
        return self._pairs[key]

    def move_costs(self, time_class: str, was_open: bool) -> list[list[float]]:
        """Return what moving to each place of the hand (a row) from each other one costs."""
        key = (time_class, was_open)
        if key not in self._moves:
            self._moves[key] = [
                [self.price(move_features(before, after, *key)) for before in HAND_FRETS]
                for after in HAND_FRETS
            ]
        return self._moves[key]

    def memory_costs(self) -> list[float]:
        """Return what another string for a pitch costs after so many moments, by their number."""
        names = map(elsewhere_within, range(2, MEMORY_LAGS[-1] + 1))
        return [0.0, 0.0, *(self.weights.get(name, 0.0) for name in names)]


@cache
def load_weights() -> dict[str, float]:
    """Return the weights that the package brings."""
    found: dict[str, float] = json.loads(COSTS_FILE.read_text(encoding="utf-8"))["weights"]
    return found
