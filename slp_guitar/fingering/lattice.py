"""The cheapest fingering of a piece, and what every other grip would cost.

Dynamic programming over hidden states is Viterbi's (1967), over places of a hand Sayegh's (1989).
The state is the place of the hand, the grip, and which strings still ring, and until when. There
are many such states where much rings at once; a beam keeps those that have cost least so far. Where
a pitch was played before is remembered along the cheapest way to a state.
"""

from collections.abc import Callable, Sequence
from operator import add
from typing import NamedTuple

from slp_guitar.fingering.costs import HandCosts
from slp_guitar.fingering.features import (
    HAND_FRETS,
    MEMORY_LAGS,
    Memory,
    classify_gaps,
    find_style,
    style_features,
)
from slp_guitar.fingering.grips import Grip, find_grips_or_placements
from slp_guitar.fingering.passages import Passage
from slp_guitar.fingering.ringing import Held, Ringing, find_released_notes

ExtraGripCost = Callable[[int, Grip], float]
MAX_STATES = 10
"""States, each with the hand at any fret, that the beam keeps after each moment; more where it
would lose a grip."""


class _Way(NamedTuple):
    """A grip after one of the states before it.

    Attributes:
        grip: its number.
        before: the state's number.
        cost: what it costs after that state, wherever the hand is.
        after: the state that it leads to or, if the beam dropped that one, the cheapest that the
            grip leads to.
        is_kept: whether it leads there.
    """

    grip: int
    before: int
    cost: float
    after: int
    is_kept: bool


class _State(NamedTuple):
    """A grip that was struck, with what rings on after it and what is remembered."""

    grip: int
    held: Held
    memory: Memory


class FingeringLattice:
    """The fingerings of a piece.

    Attributes:
        choices: the grips of each moment.
    """

    def __init__(
        self,
        passage: Passage,
        candidate_grips: Sequence[Sequence[Grip]],
        costs: HandCosts,
        extra_cost: ExtraGripCost | None = None,
    ):
        """Run the dynamic program forward.

        Args:
            passage: the piece, with its times; its written grips are not looked at.
            candidate_grips: the grips of each moment.
            costs: what grips and moves cost.
            extra_cost: a further cost of a moment's grip.
        """
        self.choices = candidate_grips
        self._passage, self._costs, self._extra_cost = passage, costs, extra_cost
        self._ringing = passage.ringing() or Ringing((), ())
        self._style = find_style(passage.moments)
        self._paid: list[list[list[float]]] = []
        self._ways: list[list[_Way]] = []
        self._own: list[list[list[float]]] = []
        self._roads: list[list[list[list[float]]]] = []  # of each state before, and moment
        classes = classify_gaps(passage.onsets or (None,) * len(passage.moments))
        states = [_State(-1, (), Memory({}, {}))]
        arrived = [[0.0 for _ in HAND_FRETS]]
        for t, choice in enumerate(candidate_grips):
            self._own.append([self._price_grip(t, grip) for grip in choice])
            states = self._advance(t, states, arrived)
            if t + 1 < len(candidate_grips):
                opens = (not any(note.fret for note in choice[state.grip]) for state in states)
                self._roads.append([costs.move_costs(classes[t + 1], is_open) for is_open in opens])
                arrived = list(map(_arrive, self._paid[-1], self._roads[-1]))

    def _price_grip(self, t: int, grip: Grip) -> list[float]:
        """Return what a grip costs by itself at each place of the hand."""
        more = self._costs.price(style_features(grip, self._style)) if self._style else 0.0
        more += self._extra_cost(t, grip) if self._extra_cost else 0.0
        return _add_to_all(self._costs.price_at_each_fret(grip), more)

    def _advance(
        self, t: int, states: Sequence[_State], arrived: Sequence[list[float]]
    ) -> list[_State]:
        """Strike each grip of a moment after each state, and return the states that are kept.

        Args:
            t: the moment.
            states: those that were kept of the moment before.
            arrived: what it costs to come from each of them to each place of the hand.
        """
        choice, pitches = self.choices[t], self._passage.moments[t]
        forget_costs = self._costs.memory_costs()
        remembered = [_recall(state.memory, pitches, t, forget_costs) for state in states]
        ways: list[tuple[int, int, float, int]] = []
        paid: list[list[float]] = []
        numbers: dict[tuple[int, Held], int] = {}
        cheapest: list[tuple[float, int]] = []  # of each state, and from which one before
        best: dict[int, tuple[float, int]] = {}  # of each grip, and which state it leads to
        for k in sorted(range(len(choice)), key=choice.__getitem__):
            after_last = {last: self._price_pair(t, last, k) for last in {s.grip for s in states}}
            for i, state in enumerate(states):
                cost, held = self._price_state(state, pitches, choice[k], remembered[i])
                cost += after_last[state.grip]
                total = list(map(add, _add_to_all(self._own[t][k], cost), arrived[i]))
                least = min(total)
                after = (k, self._ringing.held_after(t, held, choice[k]))
                number = numbers.setdefault(after, len(paid))
                if number == len(paid):
                    paid.append(total)
                    cheapest.append((least, i))
                else:
                    paid[number] = list(map(min, paid[number], total))
                    cheapest[number] = min(cheapest[number], (least, i))
                if k not in best or least < best[k][0]:
                    best[k] = (least, number)
                ways.append((k, i, cost, number))
        ranked = sorted(range(len(paid)), key=cheapest.__getitem__)[:MAX_STATES]
        kept = sorted({*ranked, *(number for _, number in best.values())})
        places = {number: place for place, number in enumerate(kept)}
        self._ways.append(
            [
                _Way(k, i, cost, places.get(number, places[best[k][1]]), number in places)
                for k, i, cost, number in ways
            ]
        )
        self._paid.append([paid[number] for number in kept])
        keys = list(numbers)
        befores = (states[cheapest[number][1]].memory for number in kept)
        return [
            _State(k, held, memory.remember(t, pitches, choice[k]))
            for memory, (k, held) in zip(befores, (keys[number] for number in kept), strict=True)
        ]

    def _price_pair(self, t: int, last: int, k: int) -> float:
        """Return what a grip of a moment costs after one of the moment before, by their numbers."""
        if not t:
            return 0.0
        pitches = self._passage.moments[t - 1], self._passage.moments[t]
        return self._costs.price_pair(self.choices[t - 1][last], self.choices[t][k], *pitches)

    def _price_state(
        self,
        state: _State,
        pitches: tuple[int, ...],
        grip: Grip,
        remembered: Sequence[tuple[int, int, float]],
    ) -> tuple[float, Held]:
        """Return what a grip costs by what is remembered and rings, and what it does not let go."""
        costs, held = self._costs, state.held
        cost = sum(more for place, string, more in remembered if grip[place].string != string)
        if len(pitches) > 1 and state.memory.chords.get(pitches, grip) != grip:
            cost += costs.per_other_grip
        if held:
            strings = {note.string for note in grip}
            cost += costs.per_cut_note * sum(one.string in strings for one in held)
            if released := find_released_notes(held, grip):
                cost += costs.per_released_note * len(released)
                held = tuple(one for one in held if one not in released)
        return cost, held

    @property
    def lowest_cost(self) -> float:
        """What the cheapest fingering costs in all."""
        return min(map(min, self._paid[-1])) if self._paid else 0.0

    def find_cheapest_path(self) -> list[Grip]:
        """Return the cheapest fingering."""
        return [grip for grip, _ in self.find_grips_and_hands()]

    def find_grips_and_hands(self) -> list[tuple[Grip, int]]:
        """Return the cheapest fingering, and at which fret the hand is for each of its grips."""
        path: list[tuple[Grip, int]] = []
        if not self.choices:
            return path
        _, state, hand = min(
            (cost, state, hand)
            for state, paid in enumerate(self._paid[-1])
            for hand, cost in enumerate(paid)
        )
        for t in reversed(range(len(self.choices))):
            ways = [way for way in self._ways[t] if way.is_kept and way.after == state]
            found = []
            for way in ways:
                road, came = 0.0, hand
                if t:
                    moves = map(
                        add, self._paid[t - 1][way.before], self._roads[t - 1][way.before][hand]
                    )
                    road, came = min((cost, k) for k, cost in enumerate(moves))
                found.append((road + (self._own[t][way.grip][hand] + way.cost), came))
            n = min(range(len(ways)), key=lambda n: found[n][0])
            path.append((self.choices[t][ways[n].grip], HAND_FRETS[hand]))
            state, hand = ways[n].before, found[n][1]
        return path[::-1]

    def price_grips(self) -> list[list[float]]:
        """Return what the cheapest fingering with each grip of each moment costs in all."""
        prices: list[list[float]] = []
        to_go = [[0.0 for _ in paid] for paid in self._paid[-1]] if self._paid else []
        for t in reversed(range(len(self.choices))):
            before = self._paid[t - 1] if t else [[0.0 for _ in self._paid[0][0]]]
            arrived = list(map(_arrive, before, self._roads[t - 1])) if t else before
            own = [float("inf") for _ in self.choices[t]]
            ahead = [[float("inf") for _ in row] for row in arrived]
            for way in self._ways[t]:
                left = list(
                    map(add, to_go[way.after], _add_to_all(self._own[t][way.grip], way.cost))
                )
                own[way.grip] = min(own[way.grip], *map(add, arrived[way.before], left))
                ahead[way.before] = list(map(min, ahead[way.before], left))
            prices.append(own)
            if t:  # roads lead to a place (a row) from another one: here they are walked back
                to_go = [
                    _arrive(costs, list(zip(*roads, strict=True)))
                    for costs, roads in zip(ahead, self._roads[t - 1], strict=True)
                ]
        return prices[::-1]


def find_cheapest_fingering(passage: Passage, costs: HandCosts | None = None) -> list[Grip]:
    """Return the cheapest way to play a passage; its written grips are not looked at.

    Pitches are kept: only places that sound right are looked at. Of what no hand can take, the
    narrowest placements are (as `find_grips_or_placements` has it).

    Raises:
        UnplayableError: if notes do not find strings of their own.
    """
    choices = [find_grips_or_placements(own, passage.tuning) for own in passage.moments]
    return FingeringLattice(passage, choices, costs or HandCosts()).find_cheapest_path()


def _arrive(paid: Sequence[float], roads: Sequence[Sequence[float]]) -> list[float]:
    """Return what it costs to come to each place of the hand from where this was paid."""
    return [min(map(add, paid, road)) for road in roads]


def _add_to_all(costs: list[float], more: float) -> list[float]:
    """Return each of some costs and one more."""
    return [cost + more for cost in costs] if more else costs


def _recall(
    memory: Memory, pitches: Sequence[int], t: int, forget_costs: Sequence[float]
) -> list[tuple[int, int, float]]:
    """Return the notes of a moment that were played lately: place, string, cost of another one."""
    found = []
    for place, pitch in enumerate(pitches):
        if known := memory.places.get(pitch):
            string, when = known
            if 1 < t - when <= MEMORY_LAGS[-1]:
                found.append((place, string, forget_costs[t - when]))
    return found
