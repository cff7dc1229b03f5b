"""Parts of every practice study: seeded choices, bars, rhythms and places to play."""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from slp_transformer.guitar.fretboard import HALF_STEP_DOWN, STANDARD, Note, Tuning
from slp_transformer.guitar.tab import Bar, Event, Tab

T = TypeVar("T")

MAX_STUDY_BARS = 12
"""Bars of the longest study."""


@dataclass(frozen=True)
class PracticeStudy:
    """A practice piece, and what it practises.

    Attributes:
        tab: the piece.
        kind: the family that it belongs to, one of `slp_transformer.guitar.practice.STUDY_KINDS`.
        harmony_by_bar: for every bar the scale (``"A minor pentatonic"``) or chord (``"A7"``) that
            it is made from, named as the hand sees it: a capo or a guitar tuned down by a half step
            moves what sounds, not the name.
    """

    tab: Tab
    kind: str
    harmony_by_bar: tuple[str, ...]


class SeededChooser:
    """Seeded choices that are the same in every version of Python.

    Only `random.Random.random` promises the same numbers for ever, so everything is made from it.
    """

    def __init__(self, seed: int):
        self._random = random.Random(seed).random

    def draw_below(self, upper_bound: int) -> int:
        """A whole number from 0 to count - 1."""
        return int(self._random() * upper_bound)

    def draw_bool(self, probability: float) -> bool:
        """True with this probability."""
        return self._random() < probability

    def draw_item(self, items: Sequence[T]) -> T:
        """One of the items, all equally likely."""
        return items[self.draw_below(len(items))]


@dataclass(frozen=True)
class Rhythm:
    """Return the starts of an even line's notes: a bar of `steps_per_bar` steps, these onsets."""

    name: str
    steps_per_bar: int
    onset_steps: tuple[int, ...]
    steps_per_quarter: int = 4


EIGHTHS = Rhythm("eighths", 16, tuple(range(0, 16, 2)))
SIXTEENTHS = Rhythm("sixteenths", 16, tuple(range(16)))
GALLOP = Rhythm("gallop", 16, (0, 2, 3, 4, 6, 7, 8, 10, 11, 12, 14, 15))
TRIPLETS = Rhythm("triplets", 12, tuple(range(12)), 3)
SHUFFLE = Rhythm("shuffle", 12, (0, 2, 3, 5, 6, 8, 9, 11), 3)
WALTZ = Rhythm("three-four eighths", 12, tuple(range(0, 12, 2)))


def make_tab(title: str, tuning: Tuning, bars: Sequence[Bar]) -> Tab:
    """A piece in sixteenths, or in triplet eighths where twelve steps are four beats."""
    in_threes = "waltz" in title or "six-eight" in title
    triplets = bars[0].steps == 12 and not in_threes
    return Tab(title, tuning, tuple(bars), steps_per_quarter=3 if triplets else 4)


def make_bar(steps_per_bar: int, notes_by_step: Mapping[int, Iterable[Note]]) -> Bar:
    """A bar from its notes by step; at each step they are ordered from string 6 to string 1."""
    events = (
        Event(step, tuple(sorted(set(notes), key=lambda note: -note.string)))
        for step, notes in sorted(notes_by_step.items())
    )
    return Bar(steps_per_bar, tuple(event for event in events if event.notes))


def notes_to_bars(note_groups: Sequence[Sequence[Note]], rhythm: Rhythm) -> list[Bar]:
    """Lay notes (or double stops) on a rhythm, one after the other; the last one rings on."""
    size = len(rhythm.onset_steps)
    return [
        make_bar(
            rhythm.steps_per_bar,
            dict(zip(rhythm.onset_steps, note_groups[start : start + size], strict=False)),
        )
        for start in range(0, len(note_groups), size)
    ]


def remove_capo_and_detuning(tuning: Tuning) -> Tuning:
    """The guitar as the hand sees it: no capo, and half a step down counts as standard."""
    if tuning.open_pitches == HALF_STEP_DOWN.open_pitches:
        return STANDARD
    return replace(tuning, capo=0)


def notes_in_position(pitch_classes: Iterable[int], tuning: Tuning, position: int) -> list[Note]:
    """The notes of a scale or chord that lie under the hand, from the lowest pitch to the highest.

    The hand is at `position` and reaches four frets on; at position 0 the open strings and
    the first five frets. Of two places for a pitch the lower fret is taken, so no pitch comes
    twice. Where a tuning leaves a hole that the hand cannot reach, only the longest run without a
    hole is kept.
    """
    low, high = (0, 5) if position == 0 else (position, position + 4)
    wanted = set(pitch_classes)
    runs: list[list[Note]] = [[]]
    for pitch in range(min(tuning.open_pitches) + low, max(tuning.open_pitches) + high + 1):
        if pitch % 12 not in wanted:
            continue
        places = [note for note in tuning.positions_of(pitch) if low <= note.fret <= high]
        if places:
            runs[-1].append(min(places, key=lambda note: note.fret))
        elif runs[-1]:
            runs.append([])
    return max(runs, key=len)


def find_positions(pitch_classes: Iterable[int], tuning: Tuning) -> list[int]:
    """Positions (0 to 12) in which the index finger has something to do on two strings or more."""
    wanted = set(pitch_classes)
    return [
        position
        for position in range(13)
        if sum((pitch + position) % 12 in wanted for pitch in tuning.open_pitches) >= 2
    ]


def nearest_note_index(notes: Sequence[Note], tuning: Tuning, pitch: int) -> int:
    """Index of the note whose pitch is nearest to `pitch`; of two equally near, the lower."""
    return min(range(len(notes)), key=lambda i: abs(tuning.pitch_of(notes[i]) - pitch))
