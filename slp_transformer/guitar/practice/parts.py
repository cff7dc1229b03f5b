"""Parts of every practice study: seeded choices, rhythms, positions and chord shapes."""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from slp_transformer.guitar.fretboard import (
    DADGAD,
    DROP_D,
    HALF_STEP_DOWN,
    OPEN_G,
    STANDARD,
    Note,
    Tuning,
)
from slp_transformer.guitar.tab import Bar, Event, Tab
from slp_transformer.guitar.theory import parse_pitch_class, split_chord_name

T = TypeVar("T")
ChordGrip = tuple[Note, ...]
Study = tuple[Tab, tuple[str, ...]]
"""A piece, and the scale or chord of each of its bars."""

MAX_STUDY_BARS = 12
"""Bars of the longest study."""


class SeededChooser:
    """Seeded choices that are the same in every version of Python.

    Only `random.Random.random` promises the same numbers for ever, so everything is made from it.
    """

    def __init__(self, seed: int):
        self._random = random.Random(seed).random

    def draw_bool(self, probability: float) -> bool:
        """True with this probability."""
        return self._random() < probability

    def draw_item(self, items: Sequence[T]) -> T:
        """One of the items, all equally likely."""
        return items[int(self._random() * len(items))]


class Rhythm(NamedTuple):
    """Where the notes of an even line start: a bar of `steps_per_bar` steps, with these onsets."""

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


def draw_tuning(draw: SeededChooser) -> Tuning:
    """Usually a guitar in standard tuning; sometimes half a step down or with a capo.

    The hand plays it as it would play standard tuning.
    """
    tuning = HALF_STEP_DOWN if draw.draw_bool(0.1) else STANDARD
    capo = draw.draw_item((1, 2, 3, 4, 5, 7)) if draw.draw_bool(0.2) else 0
    return replace(tuning, capo=capo)


def describe_tuning(tuning: Tuning) -> str:
    """Return the guitar as part of a title: empty for standard tuning without a capo."""
    names = {
        DROP_D.open_pitches: ", drop D",
        DADGAD.open_pitches: ", DADGAD",
        OPEN_G.open_pitches: ", open G",
        HALF_STEP_DOWN.open_pitches: ", half step down",
    }
    capo = f", capo {tuning.capo}" if tuning.capo else ""
    return names.get(tuning.open_pitches, "") + capo


def make_study(
    title: str,
    tuning: Tuning,
    bars: Sequence[Bar],
    steps_per_quarter: int,
    harmony: str | Sequence[str],
) -> Study:
    """A piece in one scale, or with a chord for each bar."""
    tab = Tab(title, tuning, tuple(bars), steps_per_quarter=steps_per_quarter)
    return tab, (harmony,) * len(bars) if isinstance(harmony, str) else tuple(harmony)


def make_bar(steps_per_bar: int, notes_by_step: Mapping[int, Iterable[Note]]) -> Bar:
    """A bar from its notes by step; at each step they are ordered from string 6 to string 1."""
    events = (
        Event(step, tuple(sorted(set(notes), key=lambda note: -note.string)))
        for step, notes in sorted(notes_by_step.items())
    )
    return Bar(steps_per_bar, tuple(event for event in events if event.notes))


def make_pattern_bar(pattern: Sequence[str], notes_by_mark: Mapping[str, Sequence[Note]]) -> Bar:
    """A bar of a word a step, each letter of which plays some notes; a dot lets them ring."""
    return make_bar(
        len(pattern),
        {
            step: [note for mark in word for note in notes_by_mark[mark]]
            for step, word in enumerate(pattern)
            if word != "."
        },
    )


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


# --- Positions -----------------------------------------------------------------------------------


def notes_in_position(
    pitch_classes: Iterable[int], position: int, tuning: Tuning = STANDARD
) -> list[Note]:
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


def find_indices(notes: Sequence[Note], pitch_class: int, tuning: Tuning = STANDARD) -> list[int]:
    """Indices of the notes of a pitch class."""
    return [i for i, note in enumerate(notes) if tuning.pitch_of(note) % 12 == pitch_class]


def nearest_note_index(notes: Sequence[Note], pitch: int) -> int:
    """Index of the note whose pitch is nearest to `pitch`; of two equally near, the lower."""
    return min(range(len(notes)), key=lambda i: abs(STANDARD.pitch_of(notes[i]) - pitch))


def end_on_root(indices: list[int], roots: Sequence[int]) -> list[int]:
    """A line of indices into a scale, with the nearest root at its end."""
    last = indices[-1]
    return indices if last in roots else [*indices, min(roots, key=lambda i: abs(i - last))]


def describe_position(position: int) -> str:
    """A position as part of a title."""
    return "open position" if position == 0 else f"position {position}"


def random_step(draw: SeededChooser, index: int, scale_size: int) -> int:
    """Return the next note of a melody: mostly a neighbor in the scale, sometimes a third away."""
    move = draw.draw_item((-1, -1, -1, 1, 1, 1, 2, -2, 0))
    return index + move if 0 <= index + move < scale_size else index - move


# --- Chord shapes --------------------------------------------------------------------------------

# Shapes that beginners learn first, low string to high; the root is the lowest note.
OPEN_SHAPES: dict[Tuning, dict[str, str]] = {
    STANDARD: {
        "C": "x32010", "A": "x02220", "G": "320003", "E": "022100", "D": "xx0232",
        "Am": "x02210", "Em": "022000", "Dm": "xx0231", "C7": "x32310", "A7": "x02020",
        "G7": "320001", "E7": "020100", "D7": "xx0212", "B7": "x21202", "Am7": "x02010",
        "Em7": "022030", "Dm7": "xx0211", "Cmaj7": "x32000", "Amaj7": "x02120",
        "Gmaj7": "3x0002", "Dmaj7": "xx0222", "Fmaj7": "xx3210", "Cadd9": "x32030",
        "Asus2": "x02200", "Asus4": "x02230", "Dsus2": "xx0230", "Dsus4": "xx0233",
        "Esus4": "022200",
    },
    DROP_D: {
        "D": "000232", "Dm": "000231", "D7": "000212", "Dsus2": "000230", "Dsus4": "000233",
        "Em": "222000", "G": "520003", "A": "x02220", "Am": "x02210", "A7": "x02020",
        "C": "x32010", "Bm": "x24432", "Bb": "x13331", "F": "xx3211", "Gm": "xx5333",
        "F#m": "xx4222", "D5": "000xxx", "E5": "222xxx", "F5": "333xxx", "G5": "555xxx",
        "A5": "777xxx", "Bb5": "888xxx", "C5": "x355xx",
    },
    OPEN_G: {
        "G": "x00000", "A": "x22222", "C": "x55555", "D": "x77777", "D7": "020214",
        "Am": "x22212", "Bm": "x44434", "Em": "242002",
    },
    DADGAD: {
        "D5": "000200", "D": "004200", "G": "5x0020", "Gsus2": "5x0000", "A5": "x02202",
        "A7sus4": "x02000", "Em11": "222000", "Bm": "x24454", "Bm7": "x20200",
    },
}  # fmt: skip
# Shapes that move up the neck with a barre, by the chord that they are at shift 0: with the root
# on string 6 (the E shapes) and on string 5 (the A shapes).
_BARRE_SHAPES = {
    "E": {
        "": "022100", "m": "022000", "7": "020100", "m7": "020000", "maj7": "0x110x",
        "5": "022xxx", "sus4": "022200", "7sus4": "020200",
    },
    "A": {
        "": "x02220", "m": "x02210", "7": "x02020", "m7": "x02010", "maj7": "x02120",
        "5": "x022xx", "sus2": "x02200", "sus4": "x02230", "7sus4": "x02030", "m7b5": "x0101x",
    },
}  # fmt: skip


def parse_grip_diagram(diagram: str, shift: int = 0) -> ChordGrip:
    """Read a chord diagram, low string first: ``x32010`` is C; `shift` moves it up the neck."""
    count = len(diagram)
    return tuple(
        Note(count - i, int(fret) + shift) for i, fret in enumerate(diagram) if fret != "x"
    )


def find_barre_shapes(chord: str) -> list[ChordGrip]:
    """The movable shapes of a chord in standard tuning, up to the twelfth fret, lowest fret first.

    Raises:
        ValueError: as `slp_transformer.guitar.theory.split_chord_name`.
    """
    root, quality = split_chord_name(chord)
    shapes = []
    for base, diagrams in _BARRE_SHAPES.items():
        shift = (parse_pitch_class(root) - parse_pitch_class(base)) % 12
        if quality in diagrams:
            shapes.append((shift, parse_grip_diagram(diagrams[quality], shift)))
    return [shape for _, shape in sorted(shapes)]


def find_chord_shape(chord: str, tuning: Tuning = STANDARD) -> ChordGrip:
    """The shape to play a chord with: an open one, or else, in standard tuning, the lowest barre.

    Raises:
        ValueError: if neither is known in this tuning.
    """
    if diagram := OPEN_SHAPES[tuning].get(chord):
        return parse_grip_diagram(diagram)
    if tuning == STANDARD and (barres := find_barre_shapes(chord)):
        return barres[0]
    raise ValueError(f"No shape for the chord {chord} in the tuning {tuning.open_pitches}.")
