"""Notes that ring on: the cheapest fingering when a string struck again cuts what it holds.

A note of a guitar rings until its string is struck again. So where durations are known, the state
of the dynamic program of `viterbi` is not the place of the hand alone, but also which strings still
sound, and until when. There are many such states where much rings at once; a beam keeps those that
have cost least so far.
"""

from collections.abc import Sequence
from operator import add
from typing import NamedTuple

from slp_transformer.guitar.fingering.grips import Grip
from slp_transformer.guitar.fingering.viterbi import (
    ExtraGripCost,
    HandCosts,
    cost_at_each_hand_fret,
)

HEARD_SHARE = 0.9
"""Share of a note's duration after which its string may be struck again, and nobody misses it."""
MAX_HELD_STATES = 8
"""Ways in which strings may ring on that the beam keeps after each moment."""

Held = tuple[tuple[int, float], ...]
"""The strings that ring on, each with the time until which it should."""


class Ringing(NamedTuple):
    """When the notes of a piece begin, and until when they should ring.

    Attributes:
        onsets: when each moment begins; None where that is not known.
        ends: of each note of each moment, until when its string should be left alone; 0 where no
            duration is known.
    """

    onsets: Sequence[float | None]
    ends: Sequence[Sequence[float]]

    def held_after(self, t: int, held: Held, grip: Grip) -> Held:
        """Return what rings on when the moment after `t` begins, if a grip is struck at `t`."""
        then = next(iter(self.onsets[t + 1 : t + 2]), None)
        if then is None:
            return ()
        # A moment of which no duration is known has no ends.
        struck = [(note.string, end) for note, end in zip(grip, self.ends[t], strict=False)]
        strings = {note.string for note in grip}
        left = [one for one in held if one[0] not in strings]
        return tuple(sorted((string, end) for string, end in left + struck if end > then))


def make_ringing(
    onsets: Sequence[float | None], durations: Sequence[Sequence[float]]
) -> Ringing | None:
    """Return what should ring, from onsets and durations in any unit; None if no duration is known.

    Args:
        onsets: of each moment.
        durations: of each note of each moment; 0 where not known, or no list where none is.
    """
    if not any(map(any, durations)):
        return None
    ends = [
        [0.0 if onset is None or not one else onset + HEARD_SHARE * one for one in own]
        for onset, own in zip(onsets, durations, strict=True)
    ]
    return Ringing(onsets, ends)


def count_held_and_cut_notes(grips: Sequence[Grip], ringing: Ringing | None) -> tuple[int, int]:
    """Count the notes that should ring on while others begin, and those of them that are cut."""
    num_held, num_cut = 0, 0
    held: Held = ()
    if ringing is None:
        return 0, 0
    for t, grip in enumerate(grips):
        num_cut += _count_restruck_strings(held, grip)
        before = {string for string, _ in held} - {note.string for note in grip}
        held = ringing.held_after(t, held, grip)
        num_held += sum(string not in before for string, _ in held)
    return num_held, num_cut


def _count_restruck_strings(held: Held, grip: Grip) -> int:
    """Return how many strings that ring on a grip strikes."""
    strings = {string for string, _ in held}
    return sum(note.string in strings for note in grip)


class _Way(NamedTuple):
    """A grip after one of the states before it.

    Attributes:
        grip: its number.
        before: the state's number.
        cut_cost: what the notes cost that it cuts.
        after: the state that it leads to, or, if the beam dropped that one, the cheapest that the
            grip leads to.
        is_kept: whether it leads there.
    """

    grip: int
    before: int
    cut_cost: float
    after: int
    is_kept: bool


class RingingLattice:
    """The fingerings of a piece whose notes ring on: hands, grips and what is held.

    Attributes:
        choices: the grips of each moment.
    """

    def __init__(
        self,
        candidate_grips: Sequence[Sequence[Grip]],
        costs: HandCosts,
        extra_cost: ExtraGripCost | None,
        ringing: Ringing | None,
    ):
        """Run the dynamic program forward.

        Args:
            candidate_grips: the grips of each moment.
            costs: what a hand would rather not do.
            extra_cost: a further cost of a moment's grip.
            ringing: when notes begin, and until when they ring; None if nothing is known to.
        """
        ringing = ringing or Ringing((), ())
        self.choices, self._roads = candidate_grips, costs.move_costs()
        self._paid: list[list[list[float]]] = []
        self._ways: list[list[_Way]] = []
        self._own: list[list[list[float]]] = []
        states: list[Held] = [()]
        arrived = [[0.0 for _ in self._roads]]
        for t, choice in enumerate(candidate_grips):
            own = cost_at_each_hand_fret(choice, costs, extra_cost, t)
            self._own.append(own)
            ways: list[tuple[_Way, float]] = []
            paid: list[list[float]] = []
            numbers: dict[Held, int] = {}
            for k in sorted(range(len(choice)), key=choice.__getitem__):
                for i, held in enumerate(states):
                    cut = costs.per_cut_note * _count_restruck_strings(held, choice[k])
                    total = list(map(add, arrived[i], _add_to_all(own[k], cut)))
                    after = ringing.held_after(t, held, choice[k])
                    number = numbers.setdefault(after, len(paid))
                    if number == len(paid):
                        paid.append(total)
                    else:
                        paid[number] = list(map(min, paid[number], total))
                    ways.append((_Way(k, i, cut, number, True), min(total)))
            kept, best = _keep_cheapest(paid, ways)
            place = {number: n for n, number in enumerate(kept)}
            self._ways.append(
                [
                    way._replace(
                        after=place.get(way.after, place[best[way.grip]]),
                        is_kept=way.after in place,
                    )
                    for way, _ in ways
                ]
            )
            self._paid.append([paid[number] for number in kept])
            by_number = list(numbers)
            states = [by_number[number] for number in kept]
            arrived = [self._arrival_costs(one) for one in self._paid[-1]]

    def _arrival_costs(self, paid: Sequence[float]) -> list[float]:
        """What it costs to come to each place of the hand from where this was paid."""
        return [min(map(add, paid, road)) for road in self._roads]

    def find_cheapest_path(self) -> list[Grip]:
        """Return the cheapest fingering."""
        path: list[Grip] = []
        if not self.choices:
            return path
        _, state, hand = min(
            (cost, state, hand)
            for state, paid in enumerate(self._paid[-1])
            for hand, cost in enumerate(paid)
        )
        for t in reversed(range(len(self.choices))):
            before = self._paid[t - 1] if t else [[0.0 for _ in self._roads]]
            road = self._roads[hand]
            from_where = [
                min((cost + road[k], k) for k, cost in enumerate(paid)) if t else (0.0, hand)
                for paid in before
            ]
            ways = [way for way in self._ways[t] if way.is_kept and way.after == state]
            totals = [
                from_where[way.before][0] + (self._own[t][way.grip][hand] + way.cut_cost)
                for way in ways
            ]
            way = ways[totals.index(min(totals))]
            path.append(self.choices[t][way.grip])
            state, hand = way.before, from_where[way.before][1]
        return path[::-1]

    def price_grips(self) -> list[list[float]]:
        """What the cheapest fingering with each grip of each moment costs in all."""
        prices: list[list[float]] = []
        to_go = [[0.0 for _ in self._roads] for _ in self._paid[-1]] if self._paid else []
        for t in reversed(range(len(self.choices))):
            arrived = [self._arrival_costs(paid) for paid in self._paid[t - 1]] if t else [
                [0.0 for _ in self._roads]
            ]  # fmt: skip
            own = [float("inf") for _ in self.choices[t]]
            ahead = [[float("inf") for _ in self._roads] for _ in arrived]
            for way in self._ways[t]:
                future, price = to_go[way.after], self._own[t][way.grip]
                price = _add_to_all(price, way.cut_cost)
                total = min(map(add, map(add, arrived[way.before], future), price))
                own[way.grip] = min(own[way.grip], total)
                left = map(add, future, price)
                ahead[way.before] = list(map(min, ahead[way.before], left))
            prices.append(own)
            # Moves cost the same in both directions.
            to_go = [self._arrival_costs(one) for one in ahead]
        return prices[::-1]


def _add_to_all(costs: list[float], more: float) -> list[float]:
    """Return each of some costs and one more."""
    return [cost + more for cost in costs] if more else costs


def _keep_cheapest(
    paid: Sequence[list[float]], ways: Sequence[tuple[_Way, float]]
) -> tuple[list[int], dict[int, int]]:
    """Return the states that stay in the beam, and of each grip the cheapest it leads to."""
    best: dict[int, tuple[float, int]] = {}
    for way, total in ways:
        if way.grip not in best or total < best[way.grip][0]:
            best[way.grip] = (total, way.after)
    least = [min(costs) for costs in paid]
    ranked = sorted(range(len(paid)), key=least.__getitem__)[:MAX_HELD_STATES]
    after = {grip: number for grip, (_, number) in best.items()}
    return sorted({*ranked, *after.values()}), after
