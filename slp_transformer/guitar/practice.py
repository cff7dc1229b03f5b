"""The practice corpus: guitar studies made from music theory, so a first run downloads nothing.

Every study is a real exercise of a few bars: a scale in a position, an arpeggio through a
progression, a picking pattern, a twelve-bar blues. Steps are sixteenths, or triplet eighths where a
bar has twelve steps and swings. All of it can be played: every note is on the fretboard, and no
chord asks for more than one hand.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple, TypeVar

from slp_transformer.guitar.fretboard import (
    DROP_D,
    HALF_STEP_DOWN,
    MAX_FRET,
    STANDARD,
    TUNINGS,
    Note,
    Tuning,
    get_tuning_name,
    is_playable_grip,
)
from slp_transformer.guitar.tab import Bar, Event, Tab
from slp_transformer.guitar.theory import (
    NOTE_NAMES,
    SCALE_HALF_STEPS,
    TABLES,
    chord_above_root,
    chord_pitch_classes,
    parse_pitch_class,
    scale_pitch_classes,
    split_chord_name,
)

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
    name = str(get_tuning_name(tuning)).replace("-", " ")
    capo = f", capo {tuning.capo}" if tuning.capo else ""
    return (f", {name}" if name != "standard" else "") + capo


def chords_above_root(root: str, degrees: str) -> list[str]:
    """Return the chords of a progression: ``0 9:m`` above G is G and Em."""
    parts = (degree.partition(":") for degree in degrees.split())
    return [chord_above_root(root, int(half_steps), kind) for half_steps, _, kind in parts]


def make_study(
    title: str,
    tuning: Tuning,
    bars: Sequence[Bar],
    steps_per_quarter: int,
    harmony: str | Sequence[str],
) -> Study:
    """A piece in one scale, or with a chord for each bar; its title goes on with the guitar."""
    title += describe_tuning(tuning)
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


def parse_grip_diagram(diagram: str, shift: int = 0) -> ChordGrip:
    """Read a chord diagram, low string first: ``x32010`` is C; `shift` moves it up the neck."""
    count = len(diagram)
    return tuple(
        Note(count - i, int(fret) + shift) for i, fret in enumerate(diagram) if fret != "x"
    )


def find_barre_shapes(chord: str) -> list[ChordGrip]:
    """The movable shapes of a chord in standard tuning to the twelfth fret, lowest fret first."""
    root, quality = split_chord_name(chord)
    shapes = []
    for base, diagrams in TABLES["barre_shapes"].items():
        shift = (root - parse_pitch_class(base)) % 12
        if quality in diagrams:
            shapes.append((shift, parse_grip_diagram(diagrams[quality], shift)))
    return [shape for _, shape in sorted(shapes)]


def find_chord_shape(chord: str, tuning: Tuning = STANDARD) -> ChordGrip:
    """The shape to play a chord with: an open one, or else, in standard tuning, the lowest barre.

    Raises:
        ValueError: if neither is known in this tuning.
    """
    if diagram := TABLES["open_shapes"][get_tuning_name(tuning)].get(chord):
        return parse_grip_diagram(diagram)
    if tuning == STANDARD and (barres := find_barre_shapes(chord)):
        return barres[0]
    raise ValueError(f"No shape for the chord {chord} in the tuning {tuning.open_pitches}.")


# --- Chord progressions: picked, strummed, as drop-D riffs ----------------------------------------

Progression = tuple[str, Tuning, list[str], list[ChordGrip]]
"""A title, a guitar, chords, a bar each, and their shapes."""


def draw_chord_progression(draw: SeededChooser) -> Progression:
    """Chords in a key: open shapes, movable shapes, or a tuning of its own; four to nine bars."""
    style = draw.draw_item(("open", "open", "open", "barre", "barre", "tuning", "tuning"))
    if style == "tuning":
        name, names = draw.draw_item(TABLES["other_progressions"])
        hand = TUNINGS[name]
        tuning = replace(hand, capo=draw.draw_item((0, 0, 0, 2, 3)))
        chords = names.split()
        key = f"in {chords[0]}"
    else:
        minor = draw.draw_bool(0.35)
        keys = "A E D B" if minor else "C G D A E F"
        if style == "barre":
            keys = "F F# G Ab A Bb B C D Eb"
        hand, tuning, root = STANDARD, draw_tuning(draw), draw.draw_item(keys.split())
        degrees = draw.draw_item(TABLES[f"{'minor' if minor else 'major'}_progressions"])
        chords = chords_above_root(root, degrees)
        key = f"in {root} {'minor' if minor else 'major'}"
    if len(chords) == 4 and draw.draw_bool(0.6):
        chords = chords * 2
    chords.append(chords[0])
    title = f"{key}, {'-'.join(dict.fromkeys(chords))}"
    if style == "barre":
        title, grips = f"{title}, movable shapes", chain_barre_shapes(chords)
    else:
        grips = [find_chord_shape(chord, hand) for chord in chords]
    return title + describe_tuning(tuning), tuning, chords, grips


def chain_barre_shapes(chords: list[str]) -> list[ChordGrip]:
    """A movable shape for each chord, each as near as may be to the one before."""
    grips: list[ChordGrip] = []
    place = 5
    for chord in chords:
        by_fret = {  # by the lowest fret that a finger presses
            min((note.fret for note in shape if note.fret), default=0): shape
            for shape in find_barre_shapes(chord)
        }
        place = min((fret for fret in by_fret if fret), key=lambda fret: abs(fret - place))
        grips.append(by_fret[place])
    return grips


def make_accompaniment(
    title: str,
    tuning: Tuning,
    chords: Sequence[str],
    grips: Sequence[ChordGrip],
    pattern: Sequence[str],
    turn: Sequence[str],
) -> Study:
    """A progression in a pattern, every fourth bar in another; it ends on the chord."""
    bars = []
    for i, grip in enumerate(grips[:-1]):
        marks = {
            "p": grip[:1], "P": grip[1:2], "i": grip[-3:-2], "m": grip[-2:-1], "a": grip[-1:],
            "B": grip[:1], "A": grip[1:2], "D": grip, "U": grip[-3:], "o": [Note(6, 0)],
        }  # fmt: skip
        bars.append(make_pattern_bar(turn if i % 4 == 3 else pattern, marks))
    bars.append(make_bar(len(pattern), {0: grips[-1]}))
    four_beats = "waltz" not in title and "six-eight" not in title
    unit = len(pattern) // 4 if four_beats else 4
    return Tab(title, tuning, tuple(bars), steps_per_quarter=unit), tuple(chords)


def make_picking_study(draw: SeededChooser) -> Study:
    """A progression in a picking pattern, every fourth bar varied at times."""
    title, tuning, chords, grips = draw_chord_progression(draw)
    words, name = draw.draw_item(TABLES["picking"])
    pattern = turn = words.split()
    alike = [other.split() for other, _ in TABLES["picking"]]
    if draw.draw_bool(0.4):
        turn = draw.draw_item([other for other in alike if len(other) == len(pattern)])
    title = f"Picking {title}: {name}"
    return make_accompaniment(title, tuning, chords, grips, pattern, turn)


def make_strumming_study(draw: SeededChooser) -> Study:
    """A progression strummed in one rhythm."""
    title, tuning, chords, grips = draw_chord_progression(draw)
    pattern, name = draw.draw_item(TABLES["strumming"])
    title = f"Strumming {title}: {name}"
    return make_accompaniment(title, tuning, chords, grips, pattern, pattern)


def make_riff_study(draw: SeededChooser) -> Study:
    """Drop-D power chords (one finger across three strings) between strokes on the open low D."""
    pattern = draw.draw_item(TABLES["riffs"])
    four = ["D5", *(draw.draw_item(("D5", "E5", "F5", "G5", "A5", "Bb5")) for _ in range(3))]
    chords = [*(four * 2)[: draw.draw_item((4, 8))], "D5"]
    grips = [find_chord_shape(chord, DROP_D) for chord in chords]
    title = f"Power chord riff, {'-'.join(four)}{describe_tuning(DROP_D)}"
    return make_accompaniment(title, DROP_D, chords, grips, pattern, pattern)


# --- Blues ---------------------------------------------------------------------------------------


def draw_blues(draw: SeededChooser) -> tuple[Tuning, str, str, list[str]]:
    """A guitar, a key, a title and the seventh chords bar by bar; the last is V, or I to end on."""
    tuning, key = draw_tuning(draw), draw.draw_item(TABLES["blues_keys"])
    name, degrees = draw.draw_item(TABLES["blues"])
    if not draw.draw_bool(0.5):
        degrees = (*degrees[:-1], 0)
    chords = [chord_above_root(key, degree, "7") for degree in degrees]
    return tuning, key, f"{name} in {key}", chords


def find_bass_root(root: str, target_fret: int) -> Note:
    """The root on one of the three bass strings: near the hand, open where the hand is low."""
    places = [
        Note(string, (parse_pitch_class(root) - STANDARD.open_pitches[string - 1]) % 12)
        for string in (6, 5, 4)
    ]
    low = [note for note in places if note.fret <= 10 and (note.string > 4 or note.fret == 0)]
    return min(low, key=lambda note: (abs(note.fret - target_fret), -note.string))


def find_ending_shape(chord: str, target_fret: int) -> ChordGrip:
    """A shape for the last chord: the open one near the nut, else the nearest barre."""
    if target_fret < 3:
        return find_chord_shape(chord)
    return min(
        find_barre_shapes(chord),
        key=lambda shape: abs(max(note.fret for note in shape) - target_fret),
    )


def make_shuffle_study(draw: SeededChooser) -> Study:
    """Twelve bars of root and fifth, root and sixth, and a turnaround that falls in half steps."""
    tuning, key, title, chords = draw_blues(draw)
    pattern = draw.draw_item(TABLES["shuffles"])
    home = find_bass_root(key, 2)
    rhythm = SHUFFLE if draw.draw_bool(0.75) else EIGHTHS
    dyads = []
    for chord in chords[:-2]:
        root = find_bass_root(chord[:-1], home.fret)
        ups = [4 if up == 5 and root.fret else up for up in pattern]
        dyads += [(root, Note(root.string - 1, root.fret + up)) for up in ups]
    bars = notes_to_bars(dyads, rhythm)
    steps = rhythm.steps_per_bar
    bars.append(make_turnaround(key, home, steps))
    final = find_ending_shape(chords[-1], home.fret)
    halves = {0: final[:1], steps // 2: final} if draw.draw_bool(0.5) else {0: final}
    bars.append(make_bar(steps, halves))
    return make_study(f"Shuffle, {title}", tuning, bars, steps // 4, chords)


def make_turnaround(key: str, root_note: Note, steps_per_bar: int) -> Bar:
    """The tonic in the bass, then b7, 6, b6, 5 on string 4 under the tonic on string 1."""
    beat = steps_per_bar // 4
    fret = (parse_pitch_class(key) - STANDARD.open_pitches[0] - 3) % 12 + 3
    top = Note(1, fret)
    last = beat - 1 if beat == 3 else beat // 2
    onsets = {0: [root_note], last: [Note(4, fret), top]}
    for down in (1, 2, 3):
        onsets[down * beat] = [Note(4, fret - down), top]
        onsets[down * beat + last] = [top]
    return make_bar(steps_per_bar, onsets)


def make_walking_bass_study(draw: SeededChooser) -> Study:
    """Twelve bars of walking bass in quarters; the last beat may lead into the next root."""
    tuning, key, title, chords = draw_blues(draw)
    home = find_bass_root(key, draw.draw_item((0, 2, 5, 8)))
    walks = [draw.draw_item(TABLES["walks"]) for _ in range(2)]
    leads, doubled = draw.draw_bool(0.6), draw.draw_bool(0.4)
    steps = 12 if doubled else draw.draw_item((12, 16))
    roots = [find_bass_root(chord[:-1], home.fret) for chord in chords]
    bars = []
    for i, root in enumerate(roots[:-1]):
        pitches = [STANDARD.pitch_of(root) + up for up in walks[i % 2]]
        if leads and chords[i + 1] != chords[i]:
            pitches[3] = STANDARD.pitch_of(roots[i + 1]) + draw.draw_item((1, -1))
        onsets = {}
        for beat, pitch in enumerate(pitches):
            for offset in (0, 2) if doubled else (0,):
                onsets[steps // 4 * beat + offset] = [find_low_note(pitch, max(0, home.fret - 2))]
        bars.append(make_bar(steps, onsets))
    final = find_ending_shape(chords[-1], home.fret)
    bars.append(make_bar(steps, {0: [roots[-1]], steps // 2: final}))
    return make_study(f"Walking bass, {title}", tuning, bars, steps // 4, chords)


def find_low_note(pitch: int, min_fret: int) -> Note:
    """Return a place for a bass note within reach of a hand whose lowest fret is `min_fret`."""
    places = STANDARD.positions_of(max(pitch, STANDARD.open_pitches[5]))
    return min(
        places, key=lambda note: (max(0, min_fret - note.fret, note.fret - min_fret - 4), note.fret)
    )


# --- Single lines and double stops ----------------------------------------------------------------


def scale_sequence_degrees(sequence_name: str, low_degree: int, high_degree: int) -> list[int]:
    """Places in a scale that a sequence visits between two places, up and then down again.

    >>> scale_sequence_degrees("thirds", 0, 3)
    [0, 2, 1, 3, 3, 1, 2, 0]
    """
    cell = TABLES["sequences"][sequence_name]
    starts = range(low_degree, high_degree - max(cell) + 1)
    up = [start + move for start in starts for move in cell]
    return up + [low_degree + high_degree - degree for degree in up]


def make_scale_study(draw: SeededChooser) -> Study:
    """A scale in one position, straight or in sequences, from root to root."""
    scale = draw.draw_item(tuple(SCALE_HALF_STEPS))
    if draw.draw_bool(0.2):
        name, root = draw.draw_item(TABLES["beginner_keys"])
        tuning = hand = TUNINGS[name]
        position = 0
        classes = scale_pitch_classes(root, scale)
    else:
        tuning, root, hand = draw_tuning(draw), draw.draw_item(NOTE_NAMES), STANDARD
        classes = scale_pitch_classes(root, scale)
        # The index finger has something to do on two strings or more.
        busy = [
            position
            for position in range(13)
            if sum((pitch + position) % 12 in classes for pitch in STANDARD.open_pitches) >= 2
        ]
        position = draw.draw_item(busy)
    box = notes_in_position(classes, position, hand)
    roots = find_indices(box, classes[0], hand)
    rhythm = draw.draw_item((EIGHTHS, EIGHTHS, SIXTEENTHS, TRIPLETS, SHUFFLE, GALLOP, WALTZ))
    places: list[int] = []
    used: list[str] = []
    while len(places) < 4 * len(rhythm.onset_steps):
        name = draw.draw_item([name for name in TABLES["sequences"] if name not in used])
        low = draw.draw_item(roots[:-1] or [0])
        high = draw.draw_item([i for i in (*roots, len(box) - 1) if i > low + 3] or [len(box) - 1])
        if moves := scale_sequence_degrees(name, low, high):
            used = [name, *used][:3]
            places += moves[1:] if places and places[-1] == moves[0] else moves
    places = [place for place, _ in groupby(places)]  # none twice in a row
    places = places[: MAX_STUDY_BARS * len(rhythm.onset_steps) - 1]
    bars = notes_to_bars([(box[i],) for i in end_on_root(places, roots)], rhythm)
    title = f"{root} {scale}, {describe_position(position)}, {' and '.join(reversed(used))}"
    return make_study(title, tuning, bars, rhythm.steps_per_quarter, f"{root} {scale}")


def make_arpeggio_study(draw: SeededChooser) -> Study:
    """Chord tones through a progression, a chord a bar, the hand staying in one position."""
    tuning, root = draw_tuning(draw), draw.draw_item(NOTE_NAMES)
    name, degrees = draw.draw_item(TABLES["arpeggio_progressions"])
    chords = chords_above_root(root, degrees) * draw.draw_item((1, 1, 2))
    position = draw.draw_item((0, 2, 3, 4, 5, 7, 8, 9))
    rhythm = draw.draw_item((EIGHTHS, EIGHTHS, TRIPLETS, SIXTEENTHS, WALTZ))
    leaps = draw.draw_item(((1,), (1,), (2, -1), (1, 1, -1)))
    home = notes_in_position(chord_pitch_classes(chords[0]), position)
    home_roots = [home[i] for i in find_indices(home, chord_pitch_classes(chords[0])[0])]
    direction, pitch = 1, STANDARD.pitch_of(home_roots[0])
    line: list[tuple[Note, ...]] = []
    for chord in chords:
        tones = notes_in_position(chord_pitch_classes(chord), position)
        place = nearest_note_index(tones, pitch)
        if line and STANDARD.pitch_of(tones[place]) == pitch:
            place += direction if 0 <= place + direction < len(tones) else -direction
        for i in range(len(rhythm.onset_steps)):
            line.append((tones[place],))
            leap = leaps[i % len(leaps)]
            if not 0 <= place + direction * leap < len(tones):
                direction = -direction
            place += direction * leap
        pitch = STANDARD.pitch_of(line[-1][0])
    if draw.draw_bool(0.7) and degrees[0] == "0":
        line.append((home_roots[nearest_note_index(home_roots, pitch)],))
        chords.append(chords[0])
    title = f"Arpeggios in {root}, {name}, {describe_position(position)}, {rhythm.name}"
    return make_study(title, tuning, notes_to_bars(line, rhythm), rhythm.steps_per_quarter, chords)


def make_double_stop_study(draw: SeededChooser) -> Study:
    """A scale in thirds or sixths that climbs the neck on two strings."""
    tuning, root = draw_tuning(draw), draw.draw_item(("C", "G", "D", "A", "E", "F"))
    scale = draw.draw_item(("major", "major", "minor", "dorian", "mixolydian"))
    classes = scale_pitch_classes(root, scale)
    name, distance, pairs = draw.draw_item(
        (("thirds", 2, ((2, 1), (3, 2))), ("sixths", 5, ((3, 1), (4, 2))))
    )
    low, high = draw.draw_item(pairs)
    open_low, open_high = (STANDARD.open_pitches[string - 1] for string in (low, high))
    pitches = [pitch for pitch in range(open_low, 100) if pitch % 12 in classes]
    ladder = []
    for lower, upper in zip(pitches, pitches[distance:], strict=False):
        pair = Note(low, lower - open_low), Note(high, upper - open_high)
        if all(0 <= note.fret <= 13 for note in pair) and is_playable_grip(pair):
            ladder.append(pair)
    rhythm = draw.draw_item((EIGHTHS, EIGHTHS, SHUFFLE, WALTZ))
    shape = draw.draw_item(("up and down", "thirds", "groups of three", "groups of four"))
    places = scale_sequence_degrees(shape, 0, len(ladder) - 1)
    places = [place for place, _ in groupby(places)]
    while len(places) < 4 * len(rhythm.onset_steps):
        places = [place for place, _ in groupby(places * 2)]
    places = places[: 8 * len(rhythm.onset_steps) - 1]
    roots = find_indices([pair[0] for pair in ladder], classes[0])
    bars = notes_to_bars([ladder[i] for i in end_on_root(places, roots)], rhythm)
    title = f"{root} {scale} in {name} on strings {low} and {high}, {shape}"
    return make_study(title, tuning, bars, rhythm.steps_per_quarter, f"{root} {scale}")


def make_drone_study(draw: SeededChooser) -> Study:
    """A melody in phrases (A A B A) over open bass strings, the thumb on every beat."""
    drone, root, thumb = draw.draw_item(TABLES["drones"])
    hand = TUNINGS[drone]
    tuning = replace(hand, capo=draw.draw_item((0, 0, 0, 2, 4)))
    scale = draw.draw_item(("major", "minor", "dorian", "major pentatonic", "minor pentatonic"))
    classes, beats = scale_pitch_classes(root, scale), draw.draw_item((4, 4, 3))
    box = notes_in_position(classes, draw.draw_item((0, 0, 2, 5, 7)), hand)
    melody = [note for note in box if note.string <= 3]
    home = draw.draw_item(find_indices(melody, classes[0], hand))

    def phrase() -> list[Bar]:
        place, bars = home, []
        for last in (False, True):
            onsets = {4 * beat: [Note(thumb[beat % len(thumb)], 0)] for beat in range(beats)}
            for beat in range(beats - last):
                is_long = last and beat == beats - 2
                for offset in (0,) if is_long else draw.draw_item(TABLES["melody_cells"]):
                    onsets.setdefault(4 * beat + offset, []).append(melody[place])
                    place = random_step(draw, place, len(melody))
            bars.append(make_bar(4 * beats, onsets))
        return bars

    a, b = phrase(), phrase()
    end = make_bar(4 * beats, {0: [Note(thumb[0], 0), melody[home]]})
    bars = [*a, *a, *b, *a, end] if draw.draw_bool(0.6) else [*a, *b, *a, end]
    name, bars = f"{root} {scale}", bars[:MAX_STUDY_BARS]
    return make_study(f"Melody over a drone, {name}", tuning, bars, 4, name)


def make_solo_study(draw: SeededChooser) -> Study:
    """A solo over twelve bars: six phrases of two bars that answer each other, all in one box."""
    tuning, key = draw_tuning(draw), draw.draw_item(NOTE_NAMES)
    scale = draw.draw_item(("blues", "blues", "minor pentatonic", "major pentatonic"))
    classes = scale_pitch_classes(key, scale)
    position = (classes[0] - STANDARD.open_pitches[5]) % 12
    if scale == "major pentatonic":
        position = (position - 3) % 12
    if position + 4 + tuning.capo > 17:
        position = 0
    box = [note for note in notes_in_position(classes, position) if note.string <= 4]
    roots = find_indices(box, classes[0])
    call = draw_rhythm_cells(draw)
    opening = random_walk(draw, draw.draw_item(roots), sum(map(len, call)), len(box))
    bars: list[Bar] = []
    for phrase in range(6):
        cells, places = call, opening
        count = sum(map(len, cells))
        if phrase in (2, 4):
            cells = draw_rhythm_cells(draw)
            places = random_walk(draw, draw.draw_item(roots), sum(map(len, cells)), len(box))
        elif phrase > 0:
            kept = opening[: count // 2]
            places = kept + random_walk(draw, kept[-1], count - len(kept), len(box))
        goals = [box[i] for i in (roots if phrase % 2 else range(len(box)))]
        goal = goals[nearest_note_index(goals, STANDARD.pitch_of(box[places[-1]]))]
        # Five beats filled by the cells, then the goal, which rings to the end of the second bar.
        steps = [3 * beat + offset for beat, cell in enumerate(cells) for offset in cell] + [15]
        played = list(zip(steps, [*(box[i] for i in places), goal], strict=True))
        for first in (0, 12):
            bars.append(
                make_bar(12, {s - first: [n] for s, n in played if first <= s < first + 12})
            )
    return make_study(f"Blues solo, {key} {scale}", tuning, bars, 3, f"{key} {scale}")


def random_walk(draw: SeededChooser, index: int, num_notes: int, scale_size: int) -> list[int]:
    """Return indices into a scale, from one on."""
    places = []
    for _ in range(num_notes):
        places.append(index)
        index = random_step(draw, index, scale_size)
    return places


def draw_rhythm_cells(draw: SeededChooser) -> list[list[int]]:
    """The rhythm of a phrase, beat by beat: five beats, with at least five notes in them."""
    while True:
        cells = [draw.draw_item(TABLES["swung_cells"]) for _ in range(5)]
        if sum(map(len, cells)) >= 5:
            return cells


# --- The corpus ----------------------------------------------------------------------------------

_MAKERS_AND_WEIGHTS = {
    "scale": (make_scale_study, 5),
    "arpeggio": (make_arpeggio_study, 3),
    "double stops": (make_double_stop_study, 2),
    "picking": (make_picking_study, 6),
    "strumming": (make_strumming_study, 3),
    "riff": (make_riff_study, 1),
    "drone": (make_drone_study, 3),
    "shuffle": (make_shuffle_study, 2),
    "walking bass": (make_walking_bass_study, 2),
    "solo": (make_solo_study, 3),
}
STUDY_KINDS = tuple(_MAKERS_AND_WEIGHTS)
"""The families of studies."""


@dataclass(frozen=True)
class PracticeStudy:
    """A practice piece, and what it practises.

    Attributes:
        tab: the piece.
        kind: the family that it belongs to, one of `STUDY_KINDS`.
        harmony_by_bar: for every bar the scale (``"A minor pentatonic"``) or chord (``"A7"``) that
            it is made from, named as the hand sees it: a capo or a guitar tuned down by a half step
            moves what sounds, not the name.
    """

    tab: Tab
    kind: str
    harmony_by_bar: tuple[str, ...]


def make_practice_studies(seed: int = 0, num_pieces: int = 600) -> list[PracticeStudy]:
    """Practice studies with their kind and the harmony of every bar; no two pieces are alike.

    Args:
        seed: what the choices are made from. The same seed gives the same studies everywhere, and
            fewer pieces are the beginning of more.
        num_pieces: how many.

    Raises:
        ValueError: if `num_pieces` is negative, or more than there is variety for.
    """
    if num_pieces < 0:
        raise ValueError(f"A corpus cannot have {num_pieces} pieces: ask for 0 or more.")
    kinds = [kind for kind, (_, weight) in _MAKERS_AND_WEIGHTS.items() for _ in range(weight)]
    draw, seen = SeededChooser(seed), set()
    studies: list[PracticeStudy] = []
    for _ in range(20 * num_pieces):
        if len(studies) == num_pieces:
            break
        kind = draw.draw_item(kinds)
        tab, harmony = _MAKERS_AND_WEIGHTS[kind][0](draw)
        top = MAX_FRET - tab.tuning.capo  # a capo leaves fewer frets
        on_neck = all(0 <= note.fret <= top for event in tab.iter_events() for note in event.notes)
        if on_neck and (tab.tuning, tab.bars) not in seen:
            seen.add((tab.tuning, tab.bars))
            studies.append(PracticeStudy(tab, kind, harmony))
    if len(studies) < num_pieces:
        raise ValueError(f"{num_pieces} pieces are too many: only {len(studies)} are different.")
    return studies


def make_practice_corpus(seed: int = 0, num_pieces: int = 600) -> list[Tab]:
    """The tabs of `make_practice_studies`: a corpus to train on, made in about a second.

    Raises:
        ValueError: as `make_practice_studies`.
    """
    return [study.tab for study in make_practice_studies(seed, num_pieces)]
