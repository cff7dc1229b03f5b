"""The costs of a fingering as weights of named features: set by hand, or fitted to people's tab.

Those of the package stand in `hand_costs.json`; `cost_fitting` fits others. Weights are whole
multiples of 1/1024, and features are whole numbers: so sums of costs are exact, in any order and
any language.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from slp_guitar.fingering.features import (
    CUT,
    HAND_FRETS,
    MEMORY_LAGS,
    OTHER_GRIP,
    RELEASED,
    Features,
    elsewhere_within,
    grip_features,
    hand_features,
    move_features,
    pair_features,
)
from slp_guitar.fingering.grips import Grip
from slp_transformer._internal.json_files import read_json

COSTS_FILE = Path(__file__).with_name("hand_costs.json")
UNIT = 1 / 1024
"""What a weight is a whole multiple of."""
MAX_WEIGHT = 1000
PER_FRET_FROM_POSITION = 1.0
"""For each fret that the hand is away from a position that is preferred; or an open string, which
is at fret 1, unless these are preferred."""


class HandCosts:
    """What grips and moves of a hand cost, in nats.

    Attributes:
        weights: of each feature; one that has none is free.
        open_string_cost: more for an open string; below 0 to prefer them.
        preferred_position: fret of the preferred position; None for no preference.
    """

    def __init__(
        self,
        weights: Mapping[str, float] | None = None,
        open_string_cost: float = 0.0,
        preferred_position: int | None = None,
    ):
        """Take weights, or those of the package, and what a guitarist asks for."""
        self.weights: Mapping[str, float] = load_weights() if weights is None else weights
        self.open_string_cost = open_string_cost
        self.preferred_position = preferred_position
        self.per_cut_note: float = self.weights.get(CUT, 0.0)
        self.per_released_note: float = self.weights.get(RELEASED, 0.0)
        self.per_other_grip: float = self.weights.get(OTHER_GRIP, 0.0)
        self._at_hands: dict[Grip, list[float]] = {}
        self._pairs: dict[tuple[object, ...], float] = {}
        self._moves: dict[tuple[str, bool], list[list[float]]] = {}

    def price(self, features: Features) -> float:
        """Return the cost of some features."""
        return sum(self.weights.get(name, 0.0) * value for name, value in features)

    def price_at_each_fret(self, grip: Grip) -> list[float]:
        """Return what a grip costs at each place of the hand."""
        if grip not in self._at_hands:
            wanted, away = self.preferred_position, PER_FRET_FROM_POSITION
            per_open = self.open_string_cost
            if wanted and per_open >= 0:
                per_open += away * (wanted - 1)
            anywhere = self.price(grip_features(grip))
            anywhere += per_open * sum(note.fret == 0 for note in grip)
            self._at_hands[grip] = [
                anywhere
                + self.price(hand_features(grip, hand))
                + (away * abs(hand - wanted) if wanted else 0.0)
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
    """Return the weights that the package brings: all that there are."""
    found: dict[str, float] = read_json(COSTS_FILE)["weights"]
    return {name: round(weight / UNIT) * UNIT for name, weight in found.items()}


def read_weights(path: Path) -> dict[str, float]:
    """Return the weights of a file that `slp-transformer fit-costs` wrote.

    Raises:
        ValueError: if there is no such file, or it does not hold weights by names that are known.
    """
    if path.is_dir():
        raise ValueError(f"{path} is a folder: name a file that `slp-transformer fit-costs` wrote.")
    content = read_json(path)
    found = content.get("weights") if isinstance(content, dict) else None
    if not isinstance(found, dict):
        raise ValueError(f'{path} has no "weights": it is no file of `slp-transformer fit-costs`.')
    for name, weight in found.items():
        if name not in load_weights():
            raise ValueError(f"{path} weighs {name!r}, which no cost is made of.")
        if not (isinstance(weight, int | float) and abs(weight) <= MAX_WEIGHT):
            raise ValueError(f"{path}: {name} must weigh -{MAX_WEIGHT} to {MAX_WEIGHT}.")
    return {name: round(weight / UNIT) * UNIT for name, weight in found.items()}
