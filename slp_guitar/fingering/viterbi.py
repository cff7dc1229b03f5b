"""The cheapest fingering of a piece, by dynamic programming over where the hand is.

The hand is at a fret: there the index finger lies, and each further finger a fret higher. A grip
costs what it asks of a hand at that place, and moving the hand costs too. Open strings need no
finger, so the hand stays where it was, or moves while they ring. The idea goes back to Sayegh
(1989); dynamic programming over hidden states is Viterbi's (1967).

It needs no training, keeps every pitch, and can be asked for alternatives and fixed notes. Learned
models supply the costs alone: those that wrote the fingering token by token did worse on validation
data (`benchmarks/results/pitch_to_tab`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import add

from slp_guitar.fingering.grips import Grip, find_playable_grips
from slp_guitar.fretboard import MAX_SPAN, Tuning

HAND_FRETS = range(1, 16)
"""Frets at which the index finger may lie."""


@dataclass(frozen=True)
class HandCosts:
    """Costs of grips and hand movements, in arbitrary units.

    Attributes:
        per_fret: for each fret up the neck, a note.
        per_fret_behind_index: for each fret that a note lies behind the index finger.
        per_fret_of_stretch: for each fret that a note lies beyond the little finger's usual reach.
        per_skipped_string: for each string that a chord leaves out between its notes.
        per_open_string: for an open string; below 0 to prefer them.
        per_open_string_up_the_neck: more for an open string while the hand is above fret 3.
        per_move: for moving at all.
        per_fret_moved: for each fret moved.
        per_fret_from_position: for each fret away from `preferred_position`.
        preferred_position: fret of the preferred position; None for no preference.
    """

    per_fret: float = 0.1
    per_fret_behind_index: float = 2.0
    per_fret_of_stretch: float = 1.0
    per_skipped_string: float = 0.1
    per_open_string: float = 0.0
    per_open_string_up_the_neck: float = 0.0
    per_move: float = 0.4
    per_fret_moved: float = 0.6
    per_fret_from_position: float = 0.5
    preferred_position: int | None = None

    def grip_cost(self, grip: Grip, hand_fret: int) -> float:
        """Return the cost of a grip for a hand at this fret."""
        cost = 0.0
        for _, fret in grip:
            if fret == 0:
                cost += self.per_open_string
                cost += self.per_open_string_up_the_neck if hand_fret > 3 else 0.0
            else:
                reach = (
                    max(0, hand_fret - fret) * self.per_fret_behind_index
                    + max(0, fret - hand_fret - 3) * self.per_fret_of_stretch
                )
                cost += self.per_fret * fret + reach
        strings = [note.string for note in grip]
        return cost + self.per_skipped_string * (max(strings) - min(strings) + 1 - len(strings))

    def move_cost(self, from_fret: int, to_fret: int) -> float:
        """Return the cost of moving from one fret to another."""
        if from_fret == to_fret:
            return 0.0
        return self.per_move + self.per_fret_moved * abs(from_fret - to_fret)

    def move_costs(self) -> list[list[float]]:
        """Return what moving to each place of the hand (a row) from each other one costs."""
        return [[self.move_cost(before, after) for before in HAND_FRETS] for after in HAND_FRETS]

    def position_cost(self, hand_fret: int) -> float:
        """Return the cost of being at this fret, whatever is played."""
        if self.preferred_position is None:
            return 0.0
        return self.per_fret_from_position * abs(hand_fret - self.preferred_position)


ExtraGripCost = Callable[[int, Grip], float]


def find_cheapest_fingering(
    moments: Sequence[tuple[int, ...]],
    tuning: Tuning,
    costs: HandCosts | None = None,
    *,
    max_span: int = MAX_SPAN,
    extra_cost: ExtraGripCost | None = None,
) -> list[Grip]:
    """The cheapest way to play a piece, moment by moment.

    Pitches are kept: only places that sound right are looked at.

    Args:
        moments: the pitches that sound together at each moment.
        tuning: the guitar.
        costs: what a hand would rather not do; `HandCosts()` if None.
        max_span: most frets between the fretted notes of a grip, exceeded only where no grip of the
            moment is within it.
        extra_cost: a further cost of a moment's grip, `inf` for one that is not wanted at all.

    Returns:
        A grip a moment, its notes in the order of the moment's pitches.

    Raises:
        UnplayableError: for the first moment that no hand can play.
    """
    chosen = [find_playable_grips(pitches, tuning, max_span=max_span) for pitches in moments]
    return find_cheapest_path(chosen, costs or HandCosts(), extra_cost)


def find_cheapest_path(
    candidate_grips: Sequence[Sequence[Grip]],
    costs: HandCosts,
    extra_cost: ExtraGripCost | None = None,
) -> list[Grip]:
    """Return one of each moment's grips, so that together they cost least.

    Moving depends on the hand alone, so at each place of the hand only the best grip counts.
    """
    roads = costs.move_costs()
    paid, held, came = [0.0 for _ in HAND_FRETS], [], []
    for t, choice in enumerate(candidate_grips):
        by_hand = zip(*cost_at_each_hand_fret(choice, costs, extra_cost, t), strict=True)
        held.append([min(zip(prices, choice, strict=True)) for prices in by_hand])
        best = [min((v + m, k) for k, (v, m) in enumerate(zip(paid, road, strict=True)))
                if t else (0.0, 0) for road in roads]  # fmt: skip
        paid = [road + cost for (road, _), (cost, _) in zip(best, held[-1], strict=True)]
        came.append([k for _, k in best])
    hand, path = min(range(len(paid)), key=paid.__getitem__), []
    for column, before in zip(reversed(held), reversed(came), strict=True):
        path.append(column[hand][1])
        hand = before[hand]
    return path[::-1]


def price_grips(
    candidate_grips: Sequence[Sequence[Grip]],
    costs: HandCosts,
    extra_cost: ExtraGripCost | None = None,
) -> list[list[float]]:
    """What the cheapest fingering with each grip of each moment in it costs in all.

    These are the min-marginals of the same dynamic program, run from both ends. The lowest is the
    same at every moment: the cost of the cheapest fingering.
    """
    own = [
        cost_at_each_hand_fret(choice, costs, extra_cost, t)
        for t, choice in enumerate(candidate_grips)
    ]
    cheapest = [[min(at_hand) for at_hand in zip(*moment, strict=True)] for moment in own]
    roads = costs.move_costs()

    def arrivals(moments: Sequence[list[float]]) -> list[list[float]]:
        """What it costs to come to each place of the hand before each of some moments in a row."""
        reached = [[0.0] * len(roads)]
        for moment in moments[:-1]:
            paid = [a + b for a, b in zip(reached[-1], moment, strict=True)]
            reached.append([min(map(add, paid, road)) for road in roads])
        return reached

    before, after = arrivals(cheapest), arrivals(cheapest[::-1])[::-1]
    return [
        [min(map(add, map(add, past, future), grip)) for grip in moment]
        for moment, past, future in zip(own, before, after, strict=True)
    ]


def cost_at_each_hand_fret(
    grips: Sequence[Grip], costs: HandCosts, extra_cost: ExtraGripCost | None, moment_index: int
) -> list[list[float]]:
    """For each grip of a moment, what it costs at each place of the hand."""
    more = [extra_cost(moment_index, grip) if extra_cost else 0.0 for grip in grips]
    return [
        [costs.grip_cost(grip, hand) + costs.position_cost(hand) + m for hand in HAND_FRETS]
        for grip, m in zip(grips, more, strict=True)
    ]
