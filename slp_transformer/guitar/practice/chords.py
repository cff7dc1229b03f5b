"""Chord progressions: picked, strummed, as drop-D riffs, and melodies over a droning bass."""

from dataclasses import dataclass, replace

from slp_transformer.guitar.fretboard import DADGAD, DROP_D, OPEN_G, STANDARD, Note, Tuning
from slp_transformer.guitar.practice.lines import describe_tuning, draw_tuning
from slp_transformer.guitar.practice.study import (
    MAX_STUDY_BARS,
    PracticeStudy,
    SeededChooser,
    make_bar,
    make_tab,
    notes_in_position,
    remove_capo_and_detuning,
)
from slp_transformer.guitar.tab import Bar, Tab
from slp_transformer.guitar.theory import (
    ChordGrip,
    chord_above_root,
    find_barre_shapes,
    find_chord_shape,
    scale_pitch_classes,
)

_MAJOR_PROGRESSIONS = (
    ((0, ""), (7, ""), (9, "m"), (5, "")),
    ((0, ""), (9, "m"), (5, ""), (7, "")),
    ((0, ""), (5, ""), (0, ""), (7, "")),
    ((0, ""), (5, ""), (7, ""), (0, "")),
    ((9, "m"), (5, ""), (0, ""), (7, "")),
    ((0, ""), (4, "m"), (5, ""), (7, "")),
    ((0, ""), (10, ""), (5, ""), (0, "")),
    ((0, ""), (2, "m"), (5, ""), (7, "7")),
    ((0, ""), (7, ""), (9, "m"), (4, "m"), (5, ""), (0, ""), (5, ""), (7, "")),
    ((0, "maj7"), (9, "m7"), (2, "m7"), (7, "7")),
    ((2, "m7"), (7, "7"), (0, "maj7"), (0, "maj7")),
)
_MINOR_PROGRESSIONS = (
    ((0, "m"), (10, ""), (8, ""), (7, "")),
    ((0, "m"), (8, ""), (3, ""), (10, "")),
    ((0, "m"), (5, "m"), (7, "7"), (0, "m")),
    ((0, "m"), (10, ""), (0, "m"), (7, "7")),
    ((0, "m"), (3, ""), (10, ""), (5, "m")),
    ((0, "m"), (5, "m"), (10, ""), (3, ""), (8, ""), (5, "m"), (7, "7"), (0, "m")),
    ((0, "m7"), (5, "m7"), (0, "m7"), (7, "m7")),
)
# Progressions in the home keys of other tunings, made of shapes that those tunings have.
_OTHER_TUNING_PROGRESSIONS = (
    (DROP_D, "D G A D"), (DROP_D, "D Bm G A"), (DROP_D, "D F#m G A7"), (DROP_D, "D C G D"),
    (DROP_D, "D A Bm G"), (DROP_D, "D Em G A7"), (DROP_D, "D Dsus4 D Dsus2"),
    (DROP_D, "Dm C Bb A7"), (DROP_D, "Dm Gm A7 Dm"), (DROP_D, "Dm F C Gm"),
    (DROP_D, "Dm Bb F C"), (DROP_D, "Dm Am Bb A"),
    (OPEN_G, "G C D G"), (OPEN_G, "G Em C D"), (OPEN_G, "G Am D7 G"), (OPEN_G, "G Bm C D"),
    (OPEN_G, "Em C G D"), (OPEN_G, "G Em Am D7"), (OPEN_G, "G C G D7"),
    (DADGAD, "D5 G A5 D5"), (DADGAD, "D Bm7 Gsus2 A7sus4"), (DADGAD, "Em11 A7sus4 D5 D5"),
    (DADGAD, "D G Bm A5"), (DADGAD, "D Gsus2 Em11 A5"), (DADGAD, "Bm7 Gsus2 D A7sus4"),
)  # fmt: skip

# One word a step: p and P are the thumb on the lowest and the next string of the chord, i m a the
# fingers on its three highest strings; letters together are a pinch; a dot lets it ring.
_PICKING_PATTERNS = (
    ("p . i . m . a . P . i . m . a .", "p-i-m-a"),
    ("p . i . m . i . a . i . m . i .", "p-i-m-i-a"),
    ("p . i . ma . i . P . i . ma . i .", "p-i-ma-i"),
    ("p . m . i . m . P . m . i . m .", "p-m-i-m"),
    ("p . a . m . i . P . a . m . i .", "p-a-m-i"),
    ("pa . . . P . m . p . i . P . m .", "Travis picking with a pinch"),
    ("p . m . P . i . p . m . P . i .", "Travis picking, inside out"),
    ("p . i . P . m . p . i . P . a .", "Travis picking, outside in"),
    ("p . . . ima . . . P . . . ima . . .", "bass and chord"),
    ("p . i m a . m i P . i m a . m i", "sixteenths in fours"),
    ("p i m a p i m a P i m a P i m a", "rolling sixteenths"),
    ("p a a a P a a a p a a a P a a a", "tremolo"),
    ("pima . . . . . i . m . a . m . i .", "chord and arpeggio"),
    ("p . i . m . a . m . i .", "six-eight, p-i-m-a-m-i"),
    ("p . i . m . pa . m . i .", "six-eight with a pinch"),
    ("p . . . ima . . . ima . . .", "waltz"),
    ("p . . . ma . i . ma . i .", "broken waltz"),
    ("p i m a m i P i m a m i", "triplets, p-i-m-a-m-i"),
    ("p i m P i m p i a P i a", "triplets, thumb on every beat"),
)
# One letter a step: B and A are the bass and the next string alone, D a down-strum over all
# strings, U an up-strum over the highest ones.
_STRUM_PATTERNS = (
    ("D...D...D...D...", "quarters"),
    ("D...D.U...U.D.U.", "down, down-up, up-down-up"),
    ("D...D.U.D...D.U.", "down, down-up"),
    ("D.D.D.D.D.D.D.D.", "driving eighths"),
    ("B...D...A...D...", "boom-chick"),
    ("B...D.U.A...D.U.", "boom-chick-a"),
    ("D..D..D.D..D..D.", "three-three-two"),
    ("D.UUD.U.D.UUD.U.", "sixteenth accents"),
    ("D...D...D...", "waltz in quarters"),
    ("B...D...D.U.", "waltz with a bass note"),
    ("D..D.UD..D.U", "shuffle"),
    ("D.UD.UD.UD.U", "shuffle eighths"),
)


@dataclass(frozen=True)
class Progression:
    """Chords with their shapes, a bar each, on one guitar."""

    title: str
    tuning: Tuning
    chords: tuple[str, ...]
    grips: tuple[ChordGrip, ...]


def draw_chord_progression(draw: SeededChooser) -> Progression:
    """Chords in a key: open shapes, movable shapes, or a tuning of its own; four to nine bars."""
    style = draw.draw_item(("open", "open", "open", "barre", "barre", "tuning", "tuning"))
    if style == "tuning":
        tuning, names = draw.draw_item(_OTHER_TUNING_PROGRESSIONS)
        tuning = replace(tuning, capo=draw.draw_item((0, 0, 0, 2, 3)))
        chords = names.split()
        key = f"in {chords[0]}"
    else:
        minor = draw.draw_bool(0.35)
        keys = ("A", "E", "D", "B") if minor else ("C", "G", "D", "A", "E", "F")
        if style == "barre":
            keys = ("F", "F#", "G", "Ab", "A", "Bb", "B", "C", "D", "Eb")
        tuning, root = draw_tuning(draw), draw.draw_item(keys)
        chords = [
            chord_above_root(root, *degree)
            for degree in draw.draw_item(_MINOR_PROGRESSIONS if minor else _MAJOR_PROGRESSIONS)
        ]
        key = f"in {root} {'minor' if minor else 'major'}"
    if len(chords) == 4 and draw.draw_bool(0.6):
        chords = chords * 2
    chords.append(chords[0])
    grips = (
        chain_barre_shapes(chords)
        if style == "barre"
        else [find_chord_shape(c, tuning) for c in chords]
    )
    shapes = {"open": "", "barre": ", movable shapes", "tuning": ""}[style]
    title = f"{key}, {'-'.join(dict.fromkeys(chords))}{shapes}{describe_tuning(tuning)}"
    return Progression(title, tuning, tuple(chords), tuple(grips))


def chain_barre_shapes(chords: list[str]) -> list[ChordGrip]:
    """A movable shape for each chord, each as near as may be to the one before."""
    grips: list[ChordGrip] = []
    for chord in chords:
        shapes = [shape for shape in find_barre_shapes(chord) if lowest_fretted_fret(shape) > 0]
        place = lowest_fretted_fret(grips[-1]) if grips else 5
        grips.append(min(shapes, key=lambda shape: abs(lowest_fretted_fret(shape) - place)))
    return grips


def lowest_fretted_fret(grip: ChordGrip) -> int:
    """Lowest fret that a finger presses; 0 where none does."""
    return min((note.fret for note in grip if note.fret > 0), default=0)


def count_fretted_notes(grip: ChordGrip) -> dict[str, Note]:
    """Return the note that each letter of a picking pattern plucks (see `_PICKING_PATTERNS`)."""
    return {"p": grip[0], "P": grip[1], "i": grip[-3], "m": grip[-2], "a": grip[-1]}


def make_picked_bar(grip: ChordGrip, picking_pattern: str) -> Bar:
    """One bar of a chord in a picking pattern."""
    words, hand = picking_pattern.split(), count_fretted_notes(grip)
    onsets = {
        step: [hand[letter] for letter in word] for step, word in enumerate(words) if word != "."
    }
    return make_bar(len(words), onsets)


def make_strummed_bar(grip: ChordGrip, strum_pattern: str) -> Bar:
    """One bar of a chord in a strumming pattern."""
    parts = {"B": grip[:1], "A": grip[1:2], "D": grip, "U": grip[-3:]}
    onsets = {step: parts[mark] for step, mark in enumerate(strum_pattern) if mark != "."}
    return make_bar(len(strum_pattern), onsets)


def make_picking_study(draw: SeededChooser) -> PracticeStudy:
    """A progression in a picking pattern, every fourth bar varied at times; ends on the chord."""
    progression = draw_chord_progression(draw)
    grips = progression.grips
    pattern, name = draw.draw_item(_PICKING_PATTERNS)
    alike = [other for other, _ in _PICKING_PATTERNS if len(other.split()) == len(pattern.split())]
    turn = draw.draw_item(alike) if draw.draw_bool(0.4) else pattern
    bars = [
        make_picked_bar(grip, turn if i % 4 == 3 else pattern) for i, grip in enumerate(grips[:-1])
    ]
    bars.append(make_bar(bars[0].steps, {0: grips[-1]}))
    title = f"Picking {progression.title}: {name}"
    return PracticeStudy(make_tab(title, progression.tuning, bars), "picking", progression.chords)


def make_strumming_study(draw: SeededChooser) -> PracticeStudy:
    """A progression strummed in one rhythm, ending on its first chord."""
    progression = draw_chord_progression(draw)
    pattern, name = draw.draw_item(_STRUM_PATTERNS)
    bars = [make_strummed_bar(grip, pattern) for grip in progression.grips[:-1]]
    bars.append(make_bar(len(pattern), {0: progression.grips[-1]}))
    title = f"Strumming {progression.title}: {name}"
    return PracticeStudy(make_tab(title, progression.tuning, bars), "strumming", progression.chords)


_RIFF_RHYTHMS = (
    "c.pppp..c.pppp..", "c..ppp..c..pp.c.", "ppc.ppc.ppc.c...", "c.ppc.ppc.ppc.c.",
    "pp.pp.c.pp.pp.c.", "c...pp.pc...pp.p", "cppcppcppcpp", "c..ppp" * 2,
)  # fmt: skip


def make_riff_study(draw: SeededChooser) -> PracticeStudy:
    """Drop-D power chords (one finger across three strings) between strokes on the open low D."""
    pattern = draw.draw_item(_RIFF_RHYTHMS)
    names = ("D5", "E5", "F5", "G5", "A5", "Bb5")
    four = ["D5", *(draw.draw_item(names) for _ in range(3))]
    chords = tuple((four * 2)[: draw.draw_item((4, 8))]) + ("D5",)
    bars = []
    for chord in chords[:-1]:
        grip = find_chord_shape(chord, DROP_D)
        onsets = {
            i: grip if mark == "c" else [Note(6, 0)]
            for i, mark in enumerate(pattern)
            if mark != "."
        }
        bars.append(make_bar(len(pattern), onsets))
    bars.append(make_bar(len(pattern), {0: find_chord_shape("D5", DROP_D)}))
    title = f"Power chord riff, {'-'.join(four)}, drop D"
    return PracticeStudy(make_tab(title, DROP_D, bars), "riff", chords)


# A bass that needs no finger: the tuning, the key, and the open strings the thumb goes round.
_DRONE_TUNINGS = (
    (STANDARD, "E", (6, 6)), (STANDARD, "A", (5, 5)), (STANDARD, "A", (5, 6)),
    (STANDARD, "D", (4, 4)), (STANDARD, "D", (4, 5)),
    (DROP_D, "D", (6, 4)), (DROP_D, "D", (6, 5)), (DROP_D, "D", (6, 4, 5, 4)),
    (DADGAD, "D", (6, 4)), (DADGAD, "D", (6, 4, 5, 4)), (OPEN_G, "G", (5, 4)),
    (OPEN_G, "G", (5, 4, 6, 4)),
)  # fmt: skip
_MELODY_CELLS = ((0,), (0, 2), (0, 2), (2,), (0, 2, 3), (0, 1, 2), ())


def make_drone_study(draw: SeededChooser) -> PracticeStudy:
    """A melody in phrases (A A B A) over open bass strings, the thumb on every beat."""
    tuning, root, thumb = draw.draw_item(_DRONE_TUNINGS)
    tuning = replace(tuning, capo=draw.draw_item((0, 0, 0, 2, 4)))
    scale = draw.draw_item(("major", "minor", "dorian", "major pentatonic", "minor pentatonic"))
    hand, beats = remove_capo_and_detuning(tuning), draw.draw_item((4, 4, 3))
    position = draw.draw_item((0, 0, 2, 5, 7))
    melody = [
        n
        for n in notes_in_position(scale_pitch_classes(root, scale), hand, position)
        if n.string <= 3
    ]
    roots = [
        i
        for i, n in enumerate(melody)
        if hand.pitch_of(n) % 12 == scale_pitch_classes(root, scale)[0]
    ]
    home = draw.draw_item(roots)

    def phrase() -> list[Bar]:
        place, bars = home, []
        for last in (False, True):
            onsets: dict[int, list[Note]] = {
                4 * beat: [Note(thumb[beat % len(thumb)], 0)] for beat in range(beats)
            }
            for beat in range(beats - 1 if last else beats):
                cell = (0,) if last and beat == beats - 2 else draw.draw_item(_MELODY_CELLS)
                for offset in cell:
                    onsets.setdefault(4 * beat + offset, []).append(melody[place])
                    place = random_step(draw, place, len(melody))
            bars.append(make_bar(4 * beats, onsets))
        return bars

    a, b = phrase(), phrase()
    end = make_bar(4 * beats, {0: [Note(thumb[0], 0), melody[home]]})
    bars = [*a, *a, *b, *a, end] if draw.draw_bool(0.6) else [*a, *b, *a, end]
    title = f"Melody over a drone, {root} {scale}{describe_tuning(tuning)}"
    tab = Tab(title, tuning, tuple(bars[:MAX_STUDY_BARS]), steps_per_quarter=4)
    return PracticeStudy(tab, "drone", (f"{root} {scale}",) * len(tab.bars))


def random_step(draw: SeededChooser, index: int, num_notes: int) -> int:
    """Return the next note of a melody: mostly a neighbor in the scale, sometimes a third away."""
    move = draw.draw_item((-1, -1, -1, 1, 1, 1, 2, -2, 0))
    return index + move if 0 <= index + move < num_notes else index - move
