"""Pitches with time and without strings, as in MIDI files; the input of fingering."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

from slp_transformer.guitar.fretboard import STANDARD, Note, Tuning
from slp_transformer.guitar.tab import Bar, Event, Tab, TabNote
from slp_transformer.guitar.timing import (
    bar_start_steps,
    drop_repeated_changes,
    expand_repeats,
    require_steps_per_quarter,
)

MAX_BARS = 100_000


class ScoreNote(NamedTuple):
    """A note that sounds.

    Attributes:
        onset_step: steps from the beginning of the piece.
        duration_steps: steps that it lasts, at least 1.
        pitch: MIDI note number.
        channel: the MIDI channel that it came on, 1 to 16; 0 where there was none.
    """

    onset_step: int
    duration_steps: int
    pitch: int
    channel: int = 0


@dataclass(frozen=True)
class Score:
    """Notes that sound, in time.

    Attributes:
        notes: the notes, in order of onset, then pitch.
        steps_per_quarter: how many steps a quarter note has.
        time_signatures: (step, time signature) pairs, each valid from its step on; 4/4 before the
            first.
        tempos: (step, quarter notes a minute) pairs, each valid from its step on.
        title: what the piece is called; may be empty.
        source: where it was read from, or empty.
        min_length_steps: steps that the piece lasts at least, for empty bars at its end.
        style: what kind of music it is; may be empty.
    """

    notes: tuple[ScoreNote, ...]
    steps_per_quarter: int
    time_signatures: tuple[tuple[int, tuple[int, int]], ...] = ()
    tempos: tuple[tuple[int, int], ...] = ()
    title: str = ""
    source: str = ""
    min_length_steps: int = 0
    style: str = ""

    def group_by_onset(self) -> list[list[int]]:
        """The places in `notes` of those that begin together, moment by moment."""
        places = range(len(self.notes))
        return [list(same) for _, same in groupby(places, key=lambda i: self.notes[i].onset_step)]


def score_from_tab(tab: Tab) -> Score:
    """Return the sounding notes of a tab, with repeats expanded and without dead notes.

    A note without a duration lasts until the next one on its string, and at most to the end
    of its bar.

    Args:
        tab: the tab, which has time.

    Raises:
        ValueError: if the tab's steps are columns, or its repeats are too many.
    """
    unit, tab = require_steps_per_quarter(tab), expand_repeats(tab)
    notes = [
        ScoreNote(onset, duration, tab.tuning.pitch_of(each.note), each.note.string)
        for onset, duration, each in notes_with_onsets(tab)
        if all(technique.kind != "dead" for technique in each.techniques)
    ]
    starts = bar_start_steps(tab)
    signatures = [(start, bar.time_signature) for start, bar in zip(starts, tab.bars, strict=False)]
    tempi = [(start, bar.tempo_bpm) for start, bar in zip(starts, tab.bars, strict=False)]
    return Score(
        tuple(sorted(notes, key=lambda note: (note.onset_step, note.pitch))),
        unit,
        tuple((step, signature) for step, signature in signatures if signature is not None),
        tuple((step, tempo) for step, tempo in tempi if tempo is not None),
        tab.title,
        tab.source,
        starts[-1],
        tab.style,
    )


def notes_with_onsets(tab: Tab) -> list[tuple[int, int, TabNote]]:
    """Every note of a tab with its onset from the beginning and how long it lasts, in steps.

    Missing durations are filled as in `score_from_tab`. Repeats are not expanded.
    """
    placed: list[tuple[int, int, TabNote]] = []  # onset, end of its bar, note
    for start, bar in zip(bar_start_steps(tab), tab.bars, strict=False):
        for event in bar.events:
            for each in event.tab_notes():
                placed.append((start + event.step, start + bar.steps, each))
    following: dict[int, int] = {}
    timed = []
    for onset, end, each in reversed(placed):
        until = min(end, following.get(each.note.string, end))
        timed.append((onset, each.duration_steps or until - onset, each))
        following[each.note.string] = onset
    return timed[::-1]


def make_empty_bars(score: Score) -> list[Bar]:
    """Return empty bars in the time signatures of a score, enough for all of its notes.

    Raises:
        ValueError: if there are more than 100,000, or a time signature is no whole number of steps.
    """
    end = max((note.onset_step + 1 for note in score.notes), default=0)
    end = max(end, score.min_length_steps)
    changes = sorted(dict(score.time_signatures).items())
    bars: list[Bar] = []
    start, time_signature = 0, (4, 4)
    while start < end:
        while changes and changes[0][0] <= start:
            time_signature = changes.pop(0)[1]
        beats, unit = time_signature
        steps, rest = divmod(4 * beats * score.steps_per_quarter, unit)
        if rest or steps < 1:
            raise ValueError(
                f"A bar of {beats}/{unit} is not a whole number of steps where a quarter note has "
                f"{score.steps_per_quarter}."
            )
        if changes and changes[0][0] < start + steps:  # the time signature changes early
            steps = changes[0][0] - start
        bars.append(Bar(steps, (), time_signature, _value_at_step(score.tempos, start)))
        start += steps
        if len(bars) > MAX_BARS:
            raise ValueError(f"This piece has more than {MAX_BARS:,} bars.")
    return drop_repeated_changes(bars)


def _value_at_step(changes_by_step: Sequence[tuple[int, int]], step: int) -> int | None:
    """Return the value of the last change up to a step; None before the first."""
    place = bisect_right([at for at, _ in changes_by_step], step)
    return changes_by_step[place - 1][1] if place else None


def tab_from_score(score: Score, places: Sequence[Note | None], tuning: Tuning = STANDARD) -> Tab:
    """A tab from a score and a place on the neck for each of its notes.

    Args:
        score: what sounds.
        places: for each of `score.notes` where it is played; None leaves it out.
        tuning: the guitar.

    Raises:
        ValueError: if the places are not as many as the notes, or two notes that begin together
            are on one string.
    """
    if len(places) != len(score.notes):
        raise ValueError(f"There are {len(places)} places for {len(score.notes)} notes.")
    tab, spots = place_in_bars(score)
    events: list[dict[int, list[TabNote]]] = [{} for _ in tab.bars]
    for note, place, (index, step) in zip(score.notes, places, spots, strict=True):
        if place is None:
            continue
        moment = events[index].setdefault(step, [])
        if place.string in [each.note.string for each in moment]:
            raise ValueError(
                f"Two notes that begin together, at step {note.onset_step}, are on one string."
            )
        moment.append(TabNote(place, note.duration_steps))
    bars = []
    for bar, own in zip(tab.bars, events, strict=True):
        inside = tuple(Event.from_notes(step, notes) for step, notes in own.items())
        bars.append(replace(bar, events=inside))
    return replace(tab, tuning=tuning, bars=tuple(bars))


def place_in_bars(score: Score) -> tuple[Tab, list[tuple[int, int]]]:
    """Return a tab of empty bars for a score, and for each note its bar's index and its step there.

    Raises:
        ValueError: as `make_empty_bars`.
    """
    details = score.source, score.steps_per_quarter, score.style
    tab = Tab(score.title, STANDARD, tuple(make_empty_bars(score)), *details)
    starts, spots = bar_start_steps(tab), []
    for note in score.notes:
        index = bisect_right(starts, note.onset_step) - 1
        spots.append((index, note.onset_step - starts[index]))
    return tab, spots
