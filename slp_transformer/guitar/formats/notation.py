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

from slp_transformer.guitar.tab import Bar, Event, Tab, TabNote
from slp_transformer.guitar.timing import (
    add_time_signatures,
    bar_start_steps,
    coarsest_grid,
    require_steps_per_quarter,
)


class NoteValue(NamedTuple):
    """A note value.

    Attributes:
        denominator: 1 for a whole note, 4 for a quarter, up to 64.
        is_dotted: whether it is half as long again.
        tuplet_notes: so many of them take the time of `tuplet_time`: 3 and 2 for triplets, 1 and 1
            for none.
        tuplet_time: see `tuplet_notes`.
    """

    denominator: int
    is_dotted: bool = False
    tuplet_notes: int = 1
    tuplet_time: int = 1

    @property
    def duration_quarters(self) -> Fraction:
        """Return the duration in quarter notes."""
        plain = Fraction(4 * self.tuplet_time, self.denominator * self.tuplet_notes)
        return plain * 3 / 2 if self.is_dotted else plain


NOTE_VALUE_DENOMINATORS = (1, 2, 4, 8, 16, 32, 64)
NOTE_VALUES = (
    *(NoteValue(kind, dotted) for kind in NOTE_VALUE_DENOMINATORS for dotted in (True, False)),
    *(
        NoteValue(kind, False, *tuplet)
        for kind in NOTE_VALUE_DENOMINATORS
        for tuplet in ((3, 2), (5, 4), (7, 4))
    ),
)


class TiedNote(NamedTuple):
    """A note of a beat.

    Attributes:
        tab_note: the note.
        is_struck: whether it is struck; it is held on from the beat before otherwise.
        is_tied_to_next: whether it is held on into the next beat.
    """

    tab_note: TabNote
    is_struck: bool
    is_tied_to_next: bool


class Beat(NamedTuple):
    """Notes of one length, or a rest where there are none."""

    step: int
    note_value: NoteValue
    notes: tuple[TiedNote, ...]


@dataclass(frozen=True)
class Measure:
    """A bar in notation.

    Attributes:
        bar: the bar, with its own time signature.
        voices: the beats of voice 1 and of voice 2; the latter empty where nothing is in it.
    """

    bar: Bar
    voices: tuple[tuple[Beat, ...], tuple[Beat, ...]]


def fill_durations(tab: Tab) -> Tab:
    """Return the tab with all durations filled in, as in notation and files.

    A note without a duration lasts until the next event of its voice, and at most to the end of its
    bar. A note ends where the next one begins on its string, and with the piece.
    """
    starts = bar_start_steps(tab)
    nexts: dict[int, int] = {}  # by voice: when the event after begins
    strings: dict[int, int] = {}  # by string: when it is struck again
    bars = []
    for start, bar in reversed(list(zip(starts, tab.bars, strict=False))):
        events = []
        for event in reversed(bar.events):
            now, notes = start + event.step, []
            for each in event.tab_notes():
                follows = nexts.get(each.voice, starts[-1])
                usual = min(follows, start + bar.steps) - now
                most = strings.get(each.note.string, starts[-1]) - now
                notes.append(each._replace(duration_steps=min(each.duration_steps or usual, most)))
            strings |= {each.note.string: now for each in notes}
            nexts |= {each.voice: now for each in notes}
            events.append(Event.from_notes(event.step, notes))
        bars.append(replace(bar, events=tuple(reversed(events))))
    return replace(tab, bars=tuple(reversed(bars)))


def round_trip_tab(tab: Tab) -> Tab:
    """Return the tab as read back from notation: with all durations, on the coarsest grid.

    Raises:
        ValueError: if the tab's steps are columns, or a bar has no time signature.
    """
    return coarsest_grid(fill_durations(add_time_signatures(tab)))


def measures_from_tab(tab: Tab) -> list[Measure]:
    """The bars of a tab in notation.

    Raises:
        ValueError: if its steps are columns or finer than note values are, or a bar has no time
            signature.
    """
    tab = round_trip_tab(tab)
    unit, starts = require_steps_per_quarter(tab), bar_start_steps(tab)
    _split_into_note_values(1, unit)  # refuses a unit that no note value is
    cells = {voice: _split_into_spans(tab, starts, voice) for voice in (1, 2)}
    time_signature, measures = None, []
    for number, bar in enumerate(tab.bars):
        time_signature = bar.time_signature or time_signature
        voices = tuple(
            tuple(_spans_to_beats(cells[voice][number], starts[number], unit))
            if voice == 1 or any(notes for _, _, notes in cells[voice][number])
            else ()
            for voice in (1, 2)
        )
        measures.append(Measure(replace(bar, time_signature=time_signature), voices))
    return measures


SoundingSpan = tuple[
    int, int, list[tuple[int, int, TabNote]]
]  # from, to, and what sounds: onset, end, note


def _split_into_spans(tab: Tab, bar_start_steps: list[int], voice: int) -> list[list[SoundingSpan]]:
    """For each bar the stretches in which the same notes of a voice sound."""
    begins: dict[int, list[tuple[int, int, TabNote]]] = defaultdict(list)
    cuts = set(bar_start_steps)
    for start, bar in zip(bar_start_steps, tab.bars, strict=False):
        for event in bar.events:
            onset = start + event.step
            for each in event.tab_notes():
                if each.voice == voice:
                    begins[onset].append((onset, onset + each.duration_steps, each))
                    cuts |= {onset, onset + each.duration_steps}
    moments = sorted(cuts)
    cells: list[list[SoundingSpan]] = [[] for _ in tab.bars]
    number, sounding = 0, []
    for now, after in zip(moments, moments[1:], strict=False):
        while now >= bar_start_steps[number + 1]:
            number += 1
        sounding = [note for note in sounding if note[1] > now] + begins[now]
        cells[number].append((now, after, sounding))
    return cells


def _spans_to_beats(
    spans: Iterable[SoundingSpan], bar_start: int, steps_per_quarter: int
) -> Iterable[Beat]:
    """The beats of a bar that begins at `bar_start`."""
    for begin, end, sounding in spans:
        now = begin
        for value in _split_into_note_values(end - begin, steps_per_quarter):
            after = now + int(value.duration_quarters * steps_per_quarter)
            notes = tuple(
                TiedNote(note, is_struck=onset == now, is_tied_to_next=until > after)
                for onset, until, note in sounding
            )
            yield Beat(now - bar_start, value, notes)
            now = after


def _split_into_note_values(steps: int, steps_per_quarter: int) -> list[NoteValue]:
    """The fewest note values that together last so many steps, longest first.

    Raises:
        ValueError: if note values are not fine enough.
    """
    whole = 4 * steps_per_quarter
    wholes = max(0, steps // whole - 2)
    return [NoteValue(1)] * wholes + _shortest_spelling(steps - wholes * whole, steps_per_quarter)


@cache
def _shortest_spellings(steps_per_quarter: int) -> list[list[NoteValue]]:
    """The fewest values for 0, 1, 2, ... steps, up to four whole notes."""
    coins = [
        (int(v.duration_quarters * steps_per_quarter), v)
        for v in NOTE_VALUES
        if (v.duration_quarters * steps_per_quarter).denominator == 1
    ]
    if all(steps != 1 for steps, _ in coins):
        raise ValueError(
            f"This tab has {steps_per_quarter} steps to a quarter note, and no note value is "
            "that short."
        )
    best: list[list[NoteValue]] = [[]]
    for steps in range(1, 16 * steps_per_quarter + 1):
        ways = [[value, *best[steps - size]] for size, value in coins if size <= steps]
        best.append(min(ways, key=len))
    return [sorted(way, key=lambda value: -value.duration_quarters) for way in best]


def _shortest_spelling(steps: int, steps_per_quarter: int) -> list[NoteValue]:
    """As `_pieces`, for less than four whole notes."""
    return _shortest_spellings(steps_per_quarter)[steps]
