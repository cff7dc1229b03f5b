"""Tabs in notation: bars of beats whose lengths are note values, with ties between them.

A tab says how many steps a note lasts. Notation has halves, quarters, dots and triplets, one length
for all notes of a beat, and bars that no note crosses. So time is cut wherever a note of a voice
begins or ends and at every bar line, each stretch is made of as few note values as do, and what
sounds on is tied.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import NamedTuple

from slp_transformer.guitar.tab import Bar, Event, Played, Tab
from slp_transformer.guitar.timing import bar_starts, coarsest, unit_of, with_metres


class Value(NamedTuple):
    """A note value.

    Attributes:
        kind: 1 for a whole note, 4 for a quarter, up to 64.
        dotted: whether it is half as long again.
        enters: so many of them take the time of `times`: 3 and 2 for triplets, 1 and 1 for none.
        times: see `enters`.
    """

    kind: int
    dotted: bool = False
    enters: int = 1
    times: int = 1

    @property
    def quarters(self) -> Fraction:
        """How many quarter notes it lasts."""
        plain = Fraction(4 * self.times, self.kind * self.enters)
        return plain * 3 / 2 if self.dotted else plain


KINDS = (1, 2, 4, 8, 16, 32, 64)
VALUES = (
    *(Value(kind, dotted) for kind in KINDS for dotted in (True, False)),
    *(Value(kind, False, *tuplet) for kind in KINDS for tuplet in ((3, 2), (5, 4), (7, 4))),
)


class Tied(NamedTuple):
    """A note of a beat.

    Attributes:
        played: the note.
        begins: whether it is struck; it is held on from the beat before otherwise.
        goes_on: whether it is held on into the next beat.
    """

    played: Played
    begins: bool
    goes_on: bool


class Beat(NamedTuple):
    """Notes of one length, or a rest where there are none."""

    step: int
    value: Value
    notes: tuple[Tied, ...]


@dataclass(frozen=True)
class Measure:
    """A bar in notation.

    Attributes:
        bar: the bar, with its own metre.
        voices: the beats of voice 1 and of voice 2; the latter empty where nothing is in it.
    """

    bar: Bar
    voices: tuple[tuple[Beat, ...], tuple[Beat, ...]]


def held(tab: Tab) -> Tab:
    """The tab with all durations said, as notation and files have them.

    What is not said lasts until the next event of its voice, and at most to the end of its bar. A
    note ends where the next one begins on its string, and with the piece.
    """
    starts = bar_starts(tab)
    nexts: dict[int, int] = {}  # by voice: when the event after begins
    strings: dict[int, int] = {}  # by string: when it is struck again
    bars = []
    for start, bar in reversed(list(zip(starts, tab.bars, strict=False))):
        events = []
        for event in reversed(bar.events):
            now, notes = start + event.step, []
            for each in event.played():
                follows = nexts.get(each.voice, starts[-1])
                usual = min(follows, start + bar.steps) - now
                most = strings.get(each.note.string, starts[-1]) - now
                notes.append(each._replace(duration=min(each.duration or usual, most)))
            strings |= {each.note.string: now for each in notes}
            nexts |= {each.voice: now for each in notes}
            events.append(Event.of(event.step, notes))
        bars.append(replace(bar, events=tuple(reversed(events))))
    return replace(tab, bars=tuple(reversed(bars)))


def as_read(tab: Tab) -> Tab:
    """The tab as it comes back from notation: durations and metres said, in the coarsest steps.

    Raises:
        ValueError: if the tab's steps are columns, or a bar has no metre.
    """
    return coarsest(held(with_metres(tab)))


def measures_of(tab: Tab) -> list[Measure]:
    """The bars of a tab in notation.

    Raises:
        ValueError: if its steps are columns or finer than note values are, or a bar has no metre.
    """
    tab = as_read(tab)
    unit, starts = unit_of(tab), bar_starts(tab)
    _pieces(1, unit)  # refuses a unit that no note value is
    cells = {voice: _cells(tab, starts, voice) for voice in (1, 2)}
    metre, measures = None, []
    for number, bar in enumerate(tab.bars):
        metre = bar.metre or metre
        voices = tuple(
            tuple(_beats(cells[voice][number], starts[number], unit))
            if voice == 1 or any(notes for _, _, notes in cells[voice][number])
            else ()
            for voice in (1, 2)
        )
        measures.append(Measure(replace(bar, metre=metre), voices))
    return measures


Cell = tuple[int, int, list[tuple[int, int, Played]]]  # from, to, and what sounds: onset, end, note


def _cells(tab: Tab, starts: list[int], voice: int) -> list[list[Cell]]:
    """For each bar the stretches in which the same notes of a voice sound."""
    begins: dict[int, list[tuple[int, int, Played]]] = defaultdict(list)
    cuts = set(starts)
    for start, bar in zip(starts, tab.bars, strict=False):
        for event in bar.events:
            onset = start + event.step
            for each in event.played():
                if each.voice == voice:
                    begins[onset].append((onset, onset + each.duration, each))
                    cuts |= {onset, onset + each.duration}
    moments = sorted(cuts)
    cells: list[list[Cell]] = [[] for _ in tab.bars]
    number, sounding = 0, []
    for now, after in zip(moments, moments[1:], strict=False):
        while now >= starts[number + 1]:
            number += 1
        sounding = [note for note in sounding if note[1] > now] + begins[now]
        cells[number].append((now, after, sounding))
    return cells


def _beats(cells: Iterable[Cell], start: int, unit: int) -> Iterable[Beat]:
    """The beats of a bar that begins at `start`."""
    for begin, end, sounding in cells:
        now = begin
        for value in _pieces(end - begin, unit):
            after = now + int(value.quarters * unit)
            notes = tuple(
                Tied(note, begins=onset == now, goes_on=until > after)
                for onset, until, note in sounding
            )
            yield Beat(now - start, value, notes)
            now = after


def _pieces(steps: int, unit: int) -> list[Value]:
    """The fewest note values that together last so many steps, longest first.

    Raises:
        ValueError: if note values are not fine enough.
    """
    whole = 4 * unit
    wholes = max(0, steps // whole - 2)
    return [Value(1)] * wholes + _fewest(steps - wholes * whole, unit)


@cache
def _table(unit: int) -> list[list[Value]]:
    """The fewest values for 0, 1, 2, ... steps, up to four whole notes."""
    coins = [(int(v.quarters * unit), v) for v in VALUES if (v.quarters * unit).denominator == 1]
    if all(steps != 1 for steps, _ in coins):
        raise ValueError(
            f"This tab has {unit} steps to a quarter note, and no note value is that short."
        )
    best: list[list[Value]] = [[]]
    for steps in range(1, 16 * unit + 1):
        ways = [[value, *best[steps - size]] for size, value in coins if size <= steps]
        best.append(min(ways, key=len))
    return [sorted(way, key=lambda value: -value.quarters) for way in best]


def _fewest(steps: int, unit: int) -> list[Value]:
    """As `_pieces`, for less than four whole notes."""
    return _table(unit)[steps]
