"""The practice corpus: guitar studies made from music theory, so a first run downloads nothing.

Every study is a real exercise of a few bars: a scale in a position, an arpeggio through a
progression, a picking pattern, a twelve-bar blues. Steps are sixteenths, or triplet eighths where a
bar has twelve steps and swings. All of it can be played: every note is on the fretboard, and no
chord asks for more than one hand.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

from slp_guitar.fretboard import MAX_FRET, STANDARD, TUNINGS, Note
from slp_guitar.practice_material import (
    EIGHTHS,
    QUARTERS,
    SHUFFLE,
    SIXTEENTHS,
    TRIPLETS,
    WALTZ,
    Moments,
    Rhythm,
    SeededChooser,
    Study,
    chords_above_root,
    describe_position,
    draw_tuning,
    find_chord_shapes,
    indices_of_pitch_class,
    make_study,
    nearest_scale_place,
    notes_in_position,
    random_walk,
)
from slp_guitar.tab import Tab
from slp_guitar.theory import (
    NOTE_NAMES,
    SCALE_HALF_STEPS,
    TABLES,
    chord_above_root,
    chord_pitch_classes,
    parse_pitch_class,
    scale_pitch_classes,
)

# --- Chords: picked, strummed ---------------------------------------------------------------------


def make_accompaniment(draw: SeededChooser, kind: str) -> Study:
    """A progression of four to nine bars in one pattern, every fourth bar in another at times."""
    if draw.draw_bool(0.3):
        name, names = draw.draw_item(TABLES["other_progressions"])
        hand, chords = TUNINGS[name], names.split()
        tuning = replace(hand, capo=draw.draw_item((0, 0, 0, 2, 3)))
        key = chords[0]
    else:
        mode = draw.draw_item(("major", "major", "minor"))
        hand, tuning, root = STANDARD, draw_tuning(draw), draw.draw_item(TABLES[f"{mode}_keys"])
        chords = chords_above_root(root, draw.draw_item(TABLES[f"{mode}_progressions"]))
        key = f"{root} {mode}"
    chords = [*(chords * 2 if len(chords) == 4 and draw.draw_bool(0.6) else chords), chords[0]]
    words, name, (beats, unit) = draw.draw_item(TABLES[kind])
    alike = [other.split() for other, _, signature in TABLES[kind] if signature == [beats, unit]]
    pattern = turn = words.split()
    if draw.draw_bool(0.4):
        turn = draw.draw_item([other for other in alike if len(other) == len(pattern)])
    moments: Moments = {}
    for number, chord in enumerate(chords):
        grip = find_chord_shapes(chord, hand)[0]
        notes_by_mark = {
            "p": grip[:1], "P": grip[1:2], "i": grip[-3:-2], "m": grip[-2:-1], "a": grip[-1:],
            "D": grip, "U": grip[-3:], ".": (),
        }  # fmt: skip
        played = ["D"] if number == len(chords) - 1 else turn if number % 4 == 3 else pattern
        for step, word in enumerate(played):
            if notes := [note for mark in word for note in notes_by_mark[mark]]:
                moments[number * len(pattern) + step] = notes
    title = f"{kind.capitalize()} in {key}, {'-'.join(dict.fromkeys(chords))}: {name}"
    rhythm = Rhythm(name, len(pattern), (), (beats, unit))
    return make_study(title, tuning, rhythm, moments, chords)


# --- Blues ---------------------------------------------------------------------------------------


def find_bass_root(root: str, target_fret: int) -> Note:
    """The root on one of the three bass strings: near the hand, open where the hand is low."""
    places = [
        Note(string, (parse_pitch_class(root) - STANDARD.open_pitches[string - 1]) % 12)
        for string in (6, 5, 4)
    ]
    low = [note for note in places if note.fret <= 10 and (note.string > 4 or note.fret == 0)]
    return min(low, key=lambda note: (abs(note.fret - target_fret), -note.string))


def find_low_note(pitch: int, min_fret: int) -> Note:
    """Return a place for a bass note within reach of a hand whose lowest fret is `min_fret`."""
    places = STANDARD.positions_of(max(pitch, STANDARD.open_pitches[5]))
    return min(
        places, key=lambda note: (max(0, min_fret - note.fret, note.fret - min_fret - 4), note.fret)
    )


def make_blues_study(draw: SeededChooser, kind: str) -> Study:
    """Twelve bars: a shuffle of root and fifth, root and sixth, or a walking bass, then a chord."""
    tuning, key = draw_tuning(draw), draw.draw_item(TABLES["blues_keys"])
    name, degrees = draw.draw_item(TABLES["blues"])
    degrees = [*degrees[:-1], draw.draw_item((0, degrees[-1]))]  # the last is I to end on, or V
    chords = [chord_above_root(key, degree, "7") for degree in degrees]
    shuffles, walks = draw.draw_item(TABLES["shuffles"]), draw.draw_item(TABLES["walks"])
    if kind == "shuffle":
        rhythm = draw.draw_item((SHUFFLE, SHUFFLE, SHUFFLE, EIGHTHS))
        home, leads = find_bass_root(key, 2), False
    else:
        rhythm = draw.draw_item((SHUFFLE, QUARTERS))
        home, leads = find_bass_root(key, draw.draw_item((0, 2, 5, 8))), draw.draw_bool(0.6)
    roots = [find_bass_root(chord[:-1], home.fret) for chord in chords]
    line: list[Sequence[Note]] = []
    for root, following in zip(roots, roots[1:], strict=False):
        pitches = [STANDARD.pitch_of(root) + up for up in walks]
        if leads and following != root:  # the last beat leads into the next root
            pitches[3] = STANDARD.pitch_of(following) + draw.draw_item((1, -1))
        for i in range(len(rhythm.onset_steps)):
            up = 4 if shuffles[i % 8] == 5 and root.fret else shuffles[i % 8]
            pair = (root, Note(root.string - 1, root.fret + up))
            walked = find_low_note(pitches[i * 4 // len(rhythm.onset_steps)], max(0, home.fret - 2))
            line.append(pair if kind == "shuffle" else (walked,))
    moments, end = rhythm.place_groups(line), 11 * rhythm.steps_per_bar
    moments[end] = [roots[-1]]
    final = min(
        find_chord_shapes(chords[-1]),
        key=lambda shape: abs(max(note.fret for note in shape) - home.fret),
    )
    moments[end + rhythm.steps_per_bar // 2] = list(final)
    title = f"{kind.capitalize()}, {name} in {key}"
    return make_study(title, tuning, rhythm, moments, chords)


# --- Single lines --------------------------------------------------------------------------------


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
    """A scale in one position, straight and in sequences, from root to root."""
    tuning, root = draw_tuning(draw), draw.draw_item(NOTE_NAMES)
    scale, position = draw.draw_item(tuple(SCALE_HALF_STEPS)), draw.draw_item(range(13))
    rhythm = draw.draw_item((EIGHTHS, EIGHTHS, SIXTEENTHS, TRIPLETS, SHUFFLE, WALTZ))
    box = notes_in_position(scale_pitch_classes(root, scale), position)
    roots, size = indices_of_pitch_class(box, parse_pitch_class(root)), len(rhythm.onset_steps)
    places: list[int] = []
    names: list[str] = []
    while len(places) < 4 * size:
        names.append(draw.draw_item([n for n in TABLES["sequences"] if n not in names[-1:]]))
        high = draw.draw_item((roots[-1], len(box) - 1))
        places += scale_sequence_degrees(names[-1], draw.draw_item(roots[:-1]), high)
        places = [place for place, _ in groupby(places)]  # none twice in a row
    places = places[: 12 * size - 1]
    places.append(nearest_scale_place(roots, places[-1]))
    title = f"{root} {scale}, {describe_position(position)}, {' and '.join(names)}"
    moments = rhythm.place_groups([(box[i],) for i, _ in groupby(places)])
    return make_study(title, tuning, rhythm, moments, f"{root} {scale}")


def make_arpeggio_study(draw: SeededChooser) -> Study:
    """Chord tones through a progression, a chord a bar, the hand staying in one position."""
    tuning, root = draw_tuning(draw), draw.draw_item(NOTE_NAMES)
    name, degrees = draw.draw_item(TABLES["arpeggio_progressions"])
    chords = chords_above_root(root, degrees) * draw.draw_item((1, 1, 2))
    position = draw.draw_item((0, 2, 3, 4, 5, 7, 8, 9))
    rhythm = draw.draw_item((EIGHTHS, EIGHTHS, TRIPLETS, SIXTEENTHS, WALTZ))
    leaps = draw.draw_item(((1,), (1,), (2, -1), (1, 1, -1)))
    direction, pitch = 1, STANDARD.pitch_of(Note(6, position))
    line: list[Sequence[Note]] = []
    for chord in chords:
        tones = notes_in_position(chord_pitch_classes(chord), position)
        pitches = [STANDARD.pitch_of(note) for note in tones]
        place = pitches.index(nearest_scale_place(pitches, pitch))
        for i in range(len(rhythm.onset_steps)):
            line.append((tones[place],))
            leap = leaps[i % len(leaps)]
            if not 0 <= place + direction * leap < len(tones):
                direction = -direction
            place += direction * leap
        pitch = pitches[place]
    ends = indices_of_pitch_class(tones, chord_pitch_classes(chords[-1])[0])
    line.append((tones[nearest_scale_place(ends, place)],))
    title = f"Arpeggios in {root}, {name}, {describe_position(position)}, {rhythm.name}"
    return make_study(title, tuning, rhythm, rhythm.place_groups(line), [*chords, chords[-1]])


def make_drone_study(draw: SeededChooser) -> Study:
    """A melody in phrases (A A B A) over open bass strings, the thumb on every beat."""
    drone, root, thumb = draw.draw_item(TABLES["drones"])
    hand = TUNINGS[drone]
    tuning = replace(hand, capo=draw.draw_item((0, 0, 0, 2, 4)))
    scale = draw.draw_item(("major", "minor", "dorian", "major pentatonic", "minor pentatonic"))
    rhythm = draw.draw_item((QUARTERS, QUARTERS, WALTZ))
    beats = rhythm.steps_per_bar // 4
    box = notes_in_position(scale_pitch_classes(root, scale), draw.draw_item((0, 0, 2, 5, 7)), hand)
    melody = [note for note in box if note.string <= 3]
    home = draw.draw_item(indices_of_pitch_class(melody, parse_pitch_class(root), hand))

    def phrase() -> dict[int, int]:
        """Places in the melody by step of two bars, the last beats of which are long."""
        cells = [draw.draw_item(TABLES["melody_cells"]) for _ in range(2 * beats - 2)]
        steps = [4 * beat + at for beat, cell in enumerate([*cells, (0,)]) for at in cell]
        return dict(zip(steps, random_walk(draw, home, len(steps), len(melody)), strict=True))

    a, b = phrase(), phrase()
    phrases = (a, a, b, a) if draw.draw_bool(0.6) else (a, b, a)
    end = 2 * beats * len(phrases)
    moments = {4 * beat: [Note(thumb[beat % beats % len(thumb)], 0)] for beat in range(end + 1)}
    for number, places in enumerate(phrases):
        for step, place in places.items():
            moments.setdefault(8 * beats * number + step, []).append(melody[place])
    moments[4 * end].append(melody[home])
    name = f"{root} {scale}"
    return make_study(f"Melody over a drone, {name}", tuning, rhythm, moments, name)


def make_solo_study(draw: SeededChooser) -> Study:
    """A solo over twelve bars: six phrases of two bars that answer each other, all in one box."""
    tuning, key = draw_tuning(draw), draw.draw_item(NOTE_NAMES)
    scale = draw.draw_item(("blues", "blues", "minor pentatonic", "major pentatonic"))
    root = parse_pitch_class(key)
    position = (root - STANDARD.open_pitches[5] - 3 * (scale == "major pentatonic")) % 12
    notes = notes_in_position(scale_pitch_classes(key, scale), position)
    box = [note for note in notes if note.string <= 4]
    roots = indices_of_pitch_class(box, root)

    def draw_phrase() -> tuple[list[int], list[int]]:
        """The steps of a phrase, five beats of them, and places in the box."""
        cells = [draw.draw_item(TABLES["swung_cells"]) for _ in range(5)]
        steps = [0, *(3 * beat + at for beat, cell in enumerate(cells) for at in cell if beat + at)]
        return steps, random_walk(draw, draw.draw_item(roots), len(steps), len(box))

    call = draw_phrase()
    moments: Moments = {}
    for number in range(6):
        steps, places = draw_phrase() if number in (2, 4) else call
        if number in (1, 3, 5):
            half = places[: len(places) // 2 + 1]
            places = half[:-1] + random_walk(draw, half[-1], len(places) - len(half) + 1, len(box))
        goal = nearest_scale_place(roots if number % 2 else range(len(box)), places[-1])
        for step, place in zip([*steps, 15], [*places, goal], strict=True):
            moments[24 * number + step] = [box[place]]  # the goal rings to the end of its bar
    name = f"{key} {scale}"
    return make_study(f"Blues solo, {name}", tuning, SHUFFLE, moments, name)


# --- The corpus ----------------------------------------------------------------------------------

_MAKERS_AND_WEIGHTS: dict[str, tuple[Callable[[SeededChooser], Study], int]] = {
    "scale": (make_scale_study, 5),
    "arpeggio": (make_arpeggio_study, 3),
    "picking": (partial(make_accompaniment, kind="picking"), 6),
    "strumming": (partial(make_accompaniment, kind="strumming"), 3),
    "drone": (make_drone_study, 4),
    "shuffle": (partial(make_blues_study, kind="shuffle"), 2),
    "walking bass": (partial(make_blues_study, kind="walking bass"), 2),
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
