"""Pitches with time and without strings, as in MIDI files; the input of fingering."""

from bisect import bisect_right
from collections import deque
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
    starts = bar_start_steps(tab)
    notes: list[ScoreNote] = []
    signatures, tempos = [], []
    next_onsets: dict[int, int] = {}  # by string, since bars are read from the end
    for start, bar in reversed(list(zip(starts, tab.bars, strict=False))):
        if bar.time_signature is not None:
            signatures.append((start, bar.time_signature))
        if bar.tempo_bpm is not None:
            tempos.append((start, bar.tempo_bpm))
        for event in reversed(bar.events):
            onset = start + event.step
            for each in event.tab_notes():
                string = each.note.string
                until = min(start + bar.steps, next_onsets.get(string, start + bar.steps))
                next_onsets[string] = onset
                if all(technique.kind != "dead" for technique in each.techniques):
                    duration = each.duration_steps or until - onset
                    notes.append(ScoreNote(onset, duration, tab.tuning.pitch_of(each.note), string))
    return Score(
        tuple(sorted(notes, key=lambda note: (note.onset_step, note.pitch, -note.channel))),
        unit,
        tuple(reversed(signatures)),
        tuple(reversed(tempos)),
        tab.title,
        tab.source,
        starts[-1],
        tab.style,
    )


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
        ValueError: if there are more than 100,000 bars, or a time signature is no whole number of
            steps.
    """
    end = max([score.min_length_steps, *(note.onset_step + 1 for note in score.notes)])
    changes = deque(sorted(dict(score.time_signatures).items()))
    tempo_steps = [step for step, _ in score.tempos]
    bars: list[Bar] = []
    starts, time_signature = [0], (4, 4)
    while (start := starts[-1]) < end:
        while changes and changes[0][0] <= start:
            time_signature = changes.popleft()[1]
        beats, unit = time_signature
        steps, rest = divmod(4 * beats * score.steps_per_quarter, unit)
        if rest or steps < 1:
            raise ValueError(
                f"A bar of {beats}/{unit} is not a whole number of steps where a quarter note has "
                f"{score.steps_per_quarter}."
            )
        if changes:  # the time signature may change early
            steps = min(steps, changes[0][0] - start)
        last_tempo = bisect_right(tempo_steps, start) - 1
        tempo = score.tempos[last_tempo][1] if last_tempo >= 0 else None
        bars.append(Bar(steps, (), time_signature, tempo))
        starts.append(start + steps)
        if len(bars) > MAX_BARS:
            raise ValueError(f"This piece has more than {MAX_BARS:,} bars.")
    spots = []
    for note in score.notes:
        index = bisect_right(starts, note.onset_step) - 1
        spots.append((index, note.onset_step - starts[index]))
    details = score.source, score.steps_per_quarter, score.style
    return Tab(score.title, STANDARD, tuple(drop_repeated_changes(bars)), *details), spots
