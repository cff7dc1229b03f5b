"""Passages: notes to be fingered with the fingering that people wrote, and how one agrees with it.

A passage is a piece as a row of moments, each the pitches that sound together, with times where
they are known. Whoever fingers it looks at pitches and times alone; `grips` is what to learn from,
or to compare with.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from pathlib import Path
from statistics import median
from typing import NamedTuple

from slp_guitar.fingering.grips import Grip
from slp_guitar.fingering.ringing import Ringing, count_held_and_cut_notes, make_ringing
from slp_guitar.fretboard import MAX_FRET, MAX_SPAN, Note, Tuning, is_playable_grip
from slp_guitar.tab import Tab


@dataclass(frozen=True)
class Passage:
    """A piece to be fingered.

    Attributes:
        tuning: the guitar.
        moments: the pitches of each moment, lowest first.
        grips: the fingering that people wrote, in the same order; empty if none is known.
        onsets: when each moment begins, in any unit; None where that is not known.
        name: what the piece is called.
        durations: of each note of each moment, in the unit of the onsets; 0 where not known.
    """

    tuning: Tuning
    moments: tuple[tuple[int, ...], ...]
    grips: tuple[Grip, ...] = ()
    onsets: tuple[float | None, ...] = ()
    name: str = ""
    durations: tuple[tuple[float, ...], ...] = ()

    def ringing(self) -> Ringing | None:
        """Return when its notes begin and until when they ring; None if no duration is known."""
        return make_ringing(self.onsets, self.durations)

    def relative_gaps(self) -> list[float | None]:
        """Time from the moment before, in units of the piece's median; None where not known."""
        pairs = pairwise(self.onsets or (None,) * len(self.moments))
        steps = [None if a is None or b is None else b - a for a, b in pairs]
        unit = median([step for step in steps if step is not None and step > 0] or [1.0])
        return [None, *(None if step is None or step < 0 else step / unit for step in steps)]


def list_window_starts(lengths: Sequence[int], window: int) -> list[tuple[int, int]]:
    """Return windows that do not overlap: the number of a piece, and where each begins in it."""
    return [
        (number, start)
        for number, length in enumerate(lengths)
        for start in range(0, length, window)
    ]


def passage_from_grips(
    tuning: Tuning,
    events: Sequence[Sequence[Note]],
    onsets: Sequence[float | None] = (),
    name: str = "",
    durations: Sequence[Sequence[float]] = (),
) -> Passage:
    """A passage from written tab; notes that no neck has, or twice on a string, are left out."""
    grips, when, lasting = [], [], []
    for event, onset, own in zip_longest(events, onsets, durations):
        kept: dict[int, Note] = {}
        longest: dict[int, float] = {}  # by pitch, for the order of equal ones says nothing
        for note, duration in zip_longest(event, own or ()):
            if note.fret + tuning.capo <= MAX_FRET:
                kept.setdefault(note.string, note)
                pitch = tuning.pitch_of(note)
                longest[pitch] = max(longest.get(pitch, 0.0), duration or 0.0)
        if kept:
            # By pitch, so that the order says nothing of the strings; of equal ones, low string
            # first.
            row = sorted(kept.values(), key=lambda note: (tuning.pitch_of(note), -note.string))
            grips.append(tuple(row))
            when.append(onset)
            lasting.append(tuple(longest[tuning.pitch_of(note)] for note in row))
    moments = tuple(tuple(map(tuning.pitch_of, grip)) for grip in grips)
    return Passage(tuning, moments, tuple(grips), tuple(when), name, tuple(lasting))


def passage_from_tab(tab: Tab) -> Passage:
    """A tab as a passage, with its steps as times."""
    events = [event.sounding_notes() for event in tab.iter_events()]
    onsets = [float(start + event.step) for start, _, event in tab.iter_placed_events()]
    lasting = [
        [each.duration_steps for each in event.tab_notes() if each.note in own]
        for event, own in zip(tab.iter_events(), map(set, events), strict=True)
    ]
    return passage_from_grips(tab.tuning, events, onsets, tab.title or tab.source, lasting)


def read_passages_jsonl(path: str | Path) -> list[Passage]:
    """Passages from JSON Lines, as `benchmarks/pitch_to_tab.py` describes them.

    Raises:
        ValueError: if there is no such file, or a line is not of that form.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None
    passages = []
    for number, line in enumerate(lines, start=1):
        try:
            piece = json.loads(line)
            tuning = Tuning(tuple(reversed(piece["open_midi"])))
            strings = len(tuning.open_pitches)
            events = [
                [Note(strings - string, fret) for string, fret in notes]
                for _, notes, *_ in piece["events"]
            ]
            onsets = [times[0] if times else None for _, _, *times in piece["events"]]
            lasting = [times[1] or () if times[1:] else () for _, _, *times in piece["events"]]
            name = piece.get("file", "")
            passages.append(passage_from_grips(tuning, events, onsets, name, lasting))
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ValueError(
                f"{path}, line {number}, is no piece with open_midi and events: {error!r}."
            ) from None
    return passages


class FingeringMetrics(NamedTuple):
    """Counts over one piece, or several (`sum_metrics`).

    A note is right if it is on the string that people chose; its pitch is then right too. A note is
    *free* if its pitch has two places or more. A chord is an event of two notes or more.

    Attributes:
        num_notes: how many notes there are.
        correct_notes: how many are right.
        ambiguous_notes: how many of them are free.
        correct_ambiguous_notes: how many of those are right.
        num_chords: how many chords there are.
        correct_chords: how many have every note right.
        num_events: how many events there are.
        correct_events: how many have every note right.
        playable_events: how many can be played: a hand takes them, within the span.
        correct_pitches: how many notes sound at the pitch that was asked for.
        held_notes: how many should ring on while others begin, as far as durations are known.
        cut_notes: how many of them are cut: their string is struck again too early.
    """

    num_notes: int = 0
    correct_notes: int = 0
    ambiguous_notes: int = 0
    correct_ambiguous_notes: int = 0
    num_chords: int = 0
    correct_chords: int = 0
    num_events: int = 0
    correct_events: int = 0
    playable_events: int = 0
    correct_pitches: int = 0
    held_notes: int = 0
    cut_notes: int = 0

    def to_shares(self) -> dict[str, float]:
        """Return the reported shares, each from 0 to 1."""
        parts = {
            "strings": (self.correct_notes, self.num_notes),
            "free_strings": (self.correct_ambiguous_notes, self.ambiguous_notes),
            "chords": (self.correct_chords, self.num_chords),
            "events": (self.correct_events, self.num_events),
            "playable": (self.playable_events, self.num_events),
            "pitch": (self.correct_pitches, self.num_notes),
            "cut": (self.cut_notes, self.held_notes),
        }
        return {name: part / max(1, whole) for name, (part, whole) in parts.items()}


def compare_fingerings(
    reference_grips: Sequence[Grip],
    predicted_grips: Sequence[Grip],
    tuning: Tuning,
    max_span: int = MAX_SPAN,
    ringing: Ringing | None = None,
) -> FingeringMetrics:
    """Compare a fingering with the one that people wrote, both event by event.

    Raises:
        ValueError: if they have not equally many events, or notes in an event.
    """
    events = list(zip(reference_grips, predicted_grips, strict=True))
    notes = [pair for event in events for pair in zip(*event, strict=True)]
    free = [pair for pair in notes if len(tuning.positions_of(tuning.pitch_of(pair[0]))) > 1]
    chords = [event for event in events if len(event[0]) > 1]
    held, cut = count_held_and_cut_notes(predicted_grips, ringing)

    def count_equal(pairs: Sequence[tuple[object, object]]) -> int:
        return sum(theirs == ours for theirs, ours in pairs)

    return FingeringMetrics(
        num_notes=len(notes),
        correct_notes=count_equal(notes),
        ambiguous_notes=len(free),
        correct_ambiguous_notes=count_equal(free),
        num_chords=len(chords),
        correct_chords=count_equal(chords),
        num_events=len(events),
        correct_events=count_equal(events),
        playable_events=sum(is_playable_grip(ours, max_span, tuning) for _, ours in events),
        correct_pitches=sum(tuning.pitch_of(a) == tuning.pitch_of(b) for a, b in notes),
        held_notes=held,
        cut_notes=cut,
    )


def sum_metrics(metrics: Sequence[FingeringMetrics]) -> FingeringMetrics:
    """The counts of several pieces added up."""
    return FingeringMetrics(*map(sum, zip(*metrics, strict=True)))
