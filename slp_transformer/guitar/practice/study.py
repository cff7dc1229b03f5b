"""What every practice study is built with: seeded choices, bars, rhythms and places to play."""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from slp_transformer.guitar.fretboard import HALF_STEP_DOWN, STANDARD, Note, Tuning
from slp_transformer.guitar.tab import Bar, Event, Tab

T = TypeVar("T")

LONGEST = 12
"""Bars of the longest study."""


@dataclass(frozen=True)
class Study:
    """A practice piece, and what it practises.

    Attributes:
        tab: the piece.
        kind: the family that it belongs to, one of `slp_transformer.guitar.practice.KINDS`.
        harmony: for every bar the scale (``"A minor pentatonic"``) or chord (``"A7"``) that it is
            made from, named as the hand sees it: a capo or a guitar tuned down by a half step moves
            what sounds, not the name.
    """

    tab: Tab
    kind: str
    harmony: tuple[str, ...]


class Draw:
    """Seeded choices that are the same in every version of Python.

    Only `random.Random.random` promises the same numbers for ever, so everything is made from it.
    """

    def __init__(self, seed: int):
        self._random = random.Random(seed).random

    def below(self, count: int) -> int:
        """A whole number from 0 to count - 1."""
        return int(self._random() * count)

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self._random() < probability

    def pick(self, items: Sequence[T]) -> T:
        """One of the items, all equally likely."""
        return items[self.below(len(items))]


@dataclass(frozen=True)
class Rhythm:
    """Where the notes of an even line start: a bar of `steps` steps, with these onsets."""

    name: str
    steps: int
    onsets: tuple[int, ...]
    steps_per_quarter: int = 4


EIGHTHS = Rhythm("eighths", 16, tuple(range(0, 16, 2)))
SIXTEENTHS = Rhythm("sixteenths", 16, tuple(range(16)))
GALLOP = Rhythm("gallop", 16, (0, 2, 3, 4, 6, 7, 8, 10, 11, 12, 14, 15))
TRIPLETS = Rhythm("triplets", 12, tuple(range(12)), 3)
SHUFFLE = Rhythm("shuffle", 12, (0, 2, 3, 5, 6, 8, 9, 11), 3)
WALTZ = Rhythm("three-four eighths", 12, tuple(range(0, 12, 2)))


def in_time(title: str, tuning: Tuning, bars: Sequence[Bar]) -> Tab:
    """A piece in sixteenths, or in triplet eighths where twelve steps are four beats."""
    in_threes = "waltz" in title or "six-eight" in title
    triplets = bars[0].steps == 12 and not in_threes
    return Tab(title, tuning, tuple(bars), steps_per_quarter=3 if triplets else 4)


def make_bar(steps: int, onsets: Mapping[int, Iterable[Note]]) -> Bar:
    """A bar from its notes by step; at each step they are ordered from string 6 to string 1."""
    events = (
        Event(step, tuple(sorted(set(notes), key=lambda note: -note.string)))
        for step, notes in sorted(onsets.items())
    )
    return Bar(steps, tuple(event for event in events if event.notes))


def lay_out(groups: Sequence[Sequence[Note]], rhythm: Rhythm) -> list[Bar]:
    """Lay notes (or double stops) on a rhythm, one after the other; the last one rings on."""
    size = len(rhythm.onsets)
    return [
        make_bar(rhythm.steps, dict(zip(rhythm.onsets, groups[start : start + size], strict=False)))
        for start in range(0, len(groups), size)
    ]


def hand_view(tuning: Tuning) -> Tuning:
    """The guitar as the hand sees it: no capo, and half a step down counts as standard."""
    if tuning.open_pitches == HALF_STEP_DOWN.open_pitches:
        return STANDARD
    return replace(tuning, capo=0)


def window(classes: Iterable[int], tuning: Tuning, position: int) -> list[Note]:
    """The notes of a scale or chord that lie under the hand, from the lowest pitch to the highest.

    The hand stands at `position` and reaches four frets on; at position 0 the open strings and the
    first five frets. Of two places for a pitch the lower fret is taken, so no pitch comes twice.
    Where a tuning leaves a hole that the hand cannot reach, only the longest run without a hole is
    kept.
    """
    low, high = (0, 5) if position == 0 else (position, position + 4)
    wanted = set(classes)
    runs: list[list[Note]] = [[]]
    for pitch in range(min(tuning.open_pitches) + low, max(tuning.open_pitches) + high + 1):
        if pitch % 12 not in wanted:
            continue
        places = [note for note in tuning.positions(pitch) if low <= note.fret <= high]
        if places:
            runs[-1].append(min(places, key=lambda note: note.fret))
        elif runs[-1]:
            runs.append([])
    return max(runs, key=len)


def good_positions(classes: Iterable[int], tuning: Tuning) -> list[int]:
    """Positions (0 to 12) in which the index finger has something to do on two strings or more."""
    wanted = set(classes)
    return [
        position
        for position in range(13)
        if sum((pitch + position) % 12 in wanted for pitch in tuning.open_pitches) >= 2
    ]


def nearest(notes: Sequence[Note], tuning: Tuning, pitch: int) -> int:
    """Index of the note whose pitch is nearest to `pitch`; of two equally near, the lower."""
    return min(range(len(notes)), key=lambda i: abs(tuning.pitch(notes[i]) - pitch))
