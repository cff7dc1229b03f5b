"""What studies are made from: seeded choices, rhythms, positions on the neck, chord shapes."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from slp_guitar.fretboard import HALF_STEP_DOWN, STANDARD, Note, Tuning, get_tuning_name
from slp_guitar.tab import Bar, Event, Tab
from slp_guitar.theory import TABLES, chord_above_root, parse_pitch_class, split_chord_name

T = TypeVar("T")
ChordGrip = tuple[Note, ...]
Moments = dict[int, list[Note]]
"""The notes of a piece by step, counted from its beginning."""
Study = tuple[Tab, tuple[str, ...]]
"""A piece, and the scale or chord of each of its bars."""


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
    """Where the notes of an even line start: at these steps of every bar."""

    name: str
    steps_per_bar: int
    onset_steps: Sequence[int]
    time_signature: tuple[int, int] = (4, 4)

    def place_groups(self, groups: Iterable[Sequence[Note]]) -> Moments:
        """Notes that sound together, one such group after the other."""
        size = len(self.onset_steps)
        return {
            i // size * self.steps_per_bar + self.onset_steps[i % size]: list(notes)
            for i, notes in enumerate(groups)
        }


QUARTERS = Rhythm("quarters", 16, range(0, 16, 4))
EIGHTHS = Rhythm("eighths", 16, range(0, 16, 2))
SIXTEENTHS = Rhythm("sixteenths", 16, range(16))
TRIPLETS = Rhythm("triplets", 12, range(12))
SHUFFLE = Rhythm("shuffle", 12, (0, 2, 3, 5, 6, 8, 9, 11))
WALTZ = Rhythm("three-four eighths", 12, range(0, 12, 2), (3, 4))


def draw_tuning(draw: SeededChooser) -> Tuning:
    """Usually a guitar in standard tuning; sometimes half a step down or with a capo.

    The hand plays it as it would play standard tuning.
    """
    tuning = HALF_STEP_DOWN if draw.draw_bool(0.1) else STANDARD
    return replace(tuning, capo=draw.draw_item((1, 2, 3, 4, 5, 7)) if draw.draw_bool(0.2) else 0)


def make_study(
    title: str, tuning: Tuning, rhythm: Rhythm, moments: Moments, harmony: str | Sequence[str]
) -> Study:
    """A piece in one scale, or with a chord for each bar; its title goes on with the guitar."""
    steps, (beats, unit) = rhythm.steps_per_bar, rhythm.time_signature
    bars: list[list[Event]] = [[] for _ in range(max(moments) // steps + 1)]
    for step, notes in sorted(moments.items()):
        strings_in_order = tuple(sorted(set(notes), key=lambda note: -note.string))
        bars[step // steps].append(Event(step % steps, strings_in_order))
    first, *others = [Bar(steps, tuple(events)) for events in bars]
    first = replace(first, time_signature=(beats, unit))
    name = str(get_tuning_name(tuning)).replace("-", " ")
    title += f", {name}" if name != "standard" else ""
    title += f", capo {tuning.capo}" if tuning.capo else ""
    tab = Tab(title, tuning, (first, *others), steps_per_quarter=steps * unit // (4 * beats))
    return tab, (harmony,) * len(bars) if isinstance(harmony, str) else tuple(harmony)


# --- Positions -----------------------------------------------------------------------------------


def notes_in_position(
    pitch_classes: Iterable[int], position: int, tuning: Tuning = STANDARD
) -> list[Note]:
    """The notes of a scale or chord that lie under the hand, from the lowest pitch to the highest.

    The hand is at `position` and reaches four frets on; at position 0 the open strings and
    the first five frets. Of two places for a pitch the lower fret is taken, so no pitch comes
    twice.
    """
    low, high = (0, 5) if position == 0 else (position, position + 4)
    wanted, notes = set(pitch_classes), []
    for pitch in range(min(tuning.open_pitches) + low, max(tuning.open_pitches) + high + 1):
        places = [note for note in tuning.positions_of(pitch) if low <= note.fret <= high]
        if pitch % 12 in wanted and places:
            notes.append(min(places, key=lambda note: note.fret))
    return notes


def indices_of_pitch_class(
    notes: Sequence[Note], pitch_class: int, tuning: Tuning = STANDARD
) -> list[int]:
    """Indices of the notes of a pitch class."""
    return [i for i, note in enumerate(notes) if tuning.pitch_of(note) % 12 == pitch_class]


def nearest_scale_place(places: Iterable[int], place: int) -> int:
    """The place in a scale that is nearest to another one; of two equally near, the first."""
    return min(places, key=lambda other: abs(other - place))


def random_walk(draw: SeededChooser, place: int, num_notes: int, scale_size: int) -> list[int]:
    """Places in a scale, from one on: mostly to a neighbor, sometimes a third away."""
    places = []
    for _ in range(num_notes):
        places.append(place)
        move = draw.draw_item((-1, -1, -1, 1, 1, 1, 2, -2, 0))
        place += move if 0 <= place + move < scale_size else -move
    return places


def describe_position(position: int) -> str:
    """A position as part of a title."""
    return "open position" if position == 0 else f"position {position}"


# --- Chords: picked, strummed ---------------------------------------------------------------------


def chords_above_root(root: str, degrees: str) -> list[str]:
    """Return the chords of a progression: ``0 9:m`` above G is G and Em."""
    parts = (degree.partition(":") for degree in degrees.split())
    return [chord_above_root(root, int(half_steps), kind) for half_steps, _, kind in parts]


def parse_grip_diagram(diagram: str, shift: int = 0) -> ChordGrip:
    """Read a chord diagram, low string first: ``x32010`` is C; `shift` moves it up the neck."""
    count = len(diagram)
    return tuple(
        Note(count - i, int(fret) + shift) for i, fret in enumerate(diagram) if fret != "x"
    )


def find_chord_shapes(chord: str, tuning: Tuning = STANDARD) -> list[ChordGrip]:
    """The shapes of a chord, lowest first: an open one and, in standard tuning, those with a barre.

    Raises:
        ValueError: if none is known in this tuning.
    """
    root, quality = split_chord_name(chord)
    shapes = []
    if diagram := TABLES["open_shapes"][get_tuning_name(tuning)].get(chord):
        shapes.append((0, parse_grip_diagram(diagram)))
    for base, diagrams in TABLES["barre_shapes"].items() if tuning == STANDARD else ():
        shift = (root - parse_pitch_class(base)) % 12
        if quality in diagrams and (shift or not shapes):
            shapes.append((shift, parse_grip_diagram(diagrams[quality], shift)))
    if not shapes:
        raise ValueError(f"No shape for the chord {chord} in the tuning {tuning.open_pitches}.")
    return [shape for _, shape in sorted(shapes)]
