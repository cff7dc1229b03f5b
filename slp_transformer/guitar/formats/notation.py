"""Tabs in notation and back: bars of beats whose lengths are note values, with ties between them.

A tab says how many steps a note lasts. Notation has halves, quarters, dots and triplets, one length
for all notes of a beat, and bars that no note crosses. So time is cut wherever a note of a voice
begins or ends and at every bar line, each stretch is made of as few note values as do, and what
sounds on is tied. In the other direction ties are joined and time is in steps as coarse as can be.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from itertools import accumulate, pairwise
from typing import NamedTuple

from slp_transformer.guitar.fretboard import Note, Tuning
from slp_transformer.guitar.tab import (
    TECHNIQUE_KINDS,
    Bar,
    Event,
    Tab,
    TabNote,
    Technique,
    check_tab,
)
from slp_transformer.guitar.timing import (
    add_time_signatures,
    bar_start_steps,
    coarsest_grid,
    drop_repeated_changes,
    find_common_steps_per_quarter,
    require_steps_per_quarter,
)

FALLBACK_STEPS_PER_QUARTER = 24
"""Steps to a quarter note for what is in no grid that a tab may have."""


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

    @property
    def techniques(self) -> tuple[Technique, ...]:
        """Techniques marked here: where the note ends if they lead to the next, or is struck."""
        return tuple(
            technique
            for technique in self.tab_note.techniques
            if (
                not self.is_tied_to_next
                if technique.kind in ("hammer", "pull", "slide")
                else self.is_struck
            )
        )


class Beat(NamedTuple):
    """Notes of one length, string 1 (the highest) first; a rest where there are none."""

    note_value: NoteValue
    notes: tuple[TiedNote, ...]


@dataclass(frozen=True)
class Measure:
    """A bar in notation.

    Attributes:
        bar: the bar, with time signature and tempo only where they change.
        time_signature: the time signature in force.
        voices: the beats of voice 1 and of voice 2; the latter empty where nothing is in it.
    """

    bar: Bar
    time_signature: tuple[int, int]
    voices: tuple[list[Beat], list[Beat]]


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
    """Return the bars of a tab in notation.

    Raises:
        ValueError: if the tab cannot be written down or has no bar, its steps are columns or finer
            than note values are, or a bar has no time signature.
    """
    check_tab(tab)
    if not tab.bars:
        raise ValueError("A file of notation needs at least one bar.")
    tab = round_trip_tab(tab)
    first, second = _beats_of_voice(tab, 1), _beats_of_voice(tab, 2)
    measures, time_signature = [], (4, 4)
    for bar, beats, more in zip(tab.bars, first, second, strict=True):
        time_signature = bar.time_signature or time_signature
        used = more if any(beat.notes for beat in more) else []
        measures.append(Measure(bar, time_signature, (beats, used)))
    return measures


def _beats_of_voice(tab: Tab, voice: int) -> list[list[Beat]]:
    """Return the beats of one voice for each bar of a tab."""
    unit, starts = require_steps_per_quarter(tab), bar_start_steps(tab)
    begins: dict[int, list[tuple[int, int, TabNote]]] = defaultdict(list)
    cuts = set(starts)
    for start, bar in zip(starts, tab.bars, strict=False):
        for event in bar.events:
            onset = start + event.step
            for each in event.tab_notes():
                if each.voice == voice:
                    begins[onset].append((onset, onset + each.duration_steps, each))
                    cuts |= {onset, onset + each.duration_steps}
    beats: list[list[Beat]] = [[] for _ in tab.bars]
    number, sounding = 0, list[tuple[int, int, TabNote]]()
    for now, after in pairwise(sorted(cuts)):
        while now >= starts[number + 1]:
            number += 1
        sounding = [note for note in sounding if note[1] > now] + begins[now]
        sounding.sort(key=lambda note: note[2].note.string)
        for value in _split_into_note_values(after - now, unit):
            end = now + int(value.duration_quarters * unit)
            notes = tuple(
                TiedNote(each, start == now, stop > end) for start, stop, each in sounding
            )
            beats[number].append(Beat(value, notes))
            now = end
    return beats


def _split_into_note_values(steps: int, steps_per_quarter: int) -> list[NoteValue]:
    """Return the fewest note values that together last so many steps, longest first.

    Raises:
        ValueError: if note values are not fine enough.
    """
    whole = 4 * steps_per_quarter
    wholes = max(0, steps // whole - 2)
    return [NoteValue(1)] * wholes + _shortest_spellings(steps_per_quarter)[steps - wholes * whole]


@cache
def _shortest_spellings(steps_per_quarter: int) -> list[list[NoteValue]]:
    """Return the fewest values for 0, 1, 2, ... steps, up to four whole notes."""
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


# --- From notation --------------------------------------------------------------------------------


@dataclass
class BarHeader:
    """A bar without its notes; lengths are in quarter notes."""

    length_quarters: Fraction
    time_signature: tuple[int, int] | None = None
    tempo: int | None = None
    starts_repeat: bool = False
    num_plays: int = 0
    endings: tuple[int, ...] = ()


@dataclass
class NoteEvent:
    """A note as it is read; moments are in quarter notes from the beginning of the piece."""

    onset_quarters: Fraction
    duration_quarters: Fraction
    note: Note
    techniques: set[Technique] = field(default_factory=set)
    voice: int = 1


@dataclass
class TabBuilder:
    """Collects the bars and notes of one instrument and builds a tab.

    Attributes:
        bars: the headers of the bars.
        notes: the notes.
        omission_counts: how often something was left out, by message.
    """

    bars: list[BarHeader] = field(default_factory=list)
    notes: list[NoteEvent] = field(default_factory=list)
    omission_counts: Counter[str] = field(default_factory=Counter)
    _last_by_voice_and_string: dict[tuple[int, int], NoteEvent] = field(default_factory=dict)

    def add_note(self, note_event: NoteEvent) -> NoteEvent:
        """Take in a note that begins."""
        self.notes.append(note_event)
        self._last_by_voice_and_string[note_event.voice, note_event.note.string] = note_event
        return note_event

    def extend_tied_note(
        self, onset_quarters: Fraction, duration_quarters: Fraction, string: int, voice: int
    ) -> NoteEvent | None:
        """Hold on the last note of a voice and string; None if there is none to hold."""
        struck = self._last_by_voice_and_string.get((voice, string))
        if struck is None or struck.onset_quarters + struck.duration_quarters != onset_quarters:
            self.omission_counts["ties that continue no note are left out"] += 1
            return None
        struck.duration_quarters += duration_quarters
        return struck

    def build_tab(self, title: str, tuning: Tuning, source: str) -> tuple[Tab, list[str]]:
        """The tab, and what of the file is not in it."""
        starts = list(accumulate((bar.length_quarters for bar in self.bars), initial=Fraction(0)))
        moments = [*starts, *(n.onset_quarters for n in self.notes)]
        moments += [n.onset_quarters + n.duration_quarters for n in self.notes]
        unit = find_common_steps_per_quarter(moments)
        if unit is None:
            unit = FALLBACK_STEPS_PER_QUARTER
            self.omission_counts[f"times are rounded to {unit} steps to a quarter note"] = 1
        steps = [round(start * unit) for start in starts]
        self._mark_pull_offs()
        events: list[dict[int, dict[int, TabNote]]] = [defaultdict(dict) for _ in self.bars]
        for struck in self.notes:
            onset = min(round(struck.onset_quarters * unit), steps[-1] - 1)
            number = bisect_right(steps, onset) - 1
            moment = events[number][onset - steps[number]]
            if struck.note.string in moment:
                self.omission_counts["notes on a string that is struck already are left out"] += 1
                continue
            end = round((struck.onset_quarters + struck.duration_quarters) * unit)
            techniques = tuple(
                sorted(struck.techniques, key=lambda t: (TECHNIQUE_KINDS.index(t.kind), t))
            )
            moment[struck.note.string] = TabNote(
                struck.note, max(1, end - onset), techniques, struck.voice
            )
        bars = [
            Bar(
                after - start,
                tuple(Event.from_notes(step, own[step].values()) for step in sorted(own)),
                header.time_signature,
                header.tempo,
                header.starts_repeat,
                header.num_plays,
                header.endings,
            )
            for (start, after), header, own in zip(pairwise(steps), self.bars, events, strict=True)
        ]
        omissions = [
            f"{count} {what}" if count > 1 else what for what, count in self.omission_counts.items()
        ]
        return Tab(title, tuning, tuple(drop_repeated_changes(bars)), source, unit), omissions

    def _mark_pull_offs(self) -> None:
        """Tell pulls from hammers, which most files do not: a pull leads down."""
        following: dict[int, NoteEvent] = {}
        for struck in sorted(self.notes, key=lambda note: note.onset_quarters, reverse=True):
            after = following.get(struck.note.string)
            if Technique("hammer") in struck.techniques and after:
                if after.note.fret < struck.note.fret:
                    struck.techniques ^= {Technique("hammer"), Technique("pull")}
            following[struck.note.string] = struck
