"""Chord progressions: picked, strummed, as drop-D riffs; and basses of the blues."""

from collections.abc import Sequence
from dataclasses import replace

from slp_transformer.guitar.fretboard import DADGAD, DROP_D, OPEN_G, STANDARD, Note, Tuning
from slp_transformer.guitar.practice.parts import (
    EIGHTHS,
    SHUFFLE,
    ChordGrip,
    SeededChooser,
    Study,
    describe_tuning,
    draw_tuning,
    find_barre_shapes,
    find_chord_shape,
    make_bar,
    make_pattern_bar,
    make_study,
    notes_to_bars,
)
from slp_transformer.guitar.tab import Bar
from slp_transformer.guitar.theory import chord_above_root, parse_pitch_class

Progression = tuple[str, Tuning, list[str], list[ChordGrip]]
"""A title, a guitar, chords, a bar each, and their shapes."""

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


def draw_chord_progression(draw: SeededChooser) -> Progression:
    """Chords in a key: open shapes, movable shapes, or a tuning of its own; four to nine bars."""
    style = draw.draw_item(("open", "open", "open", "barre", "barre", "tuning", "tuning"))
    if style == "tuning":
        hand, names = draw.draw_item(_OTHER_TUNING_PROGRESSIONS)
        tuning = replace(hand, capo=draw.draw_item((0, 0, 0, 2, 3)))
        chords = names.split()
        key = f"in {chords[0]}"
    else:
        minor = draw.draw_bool(0.35)
        keys = "A E D B" if minor else "C G D A E F"
        if style == "barre":
            keys = "F F# G Ab A Bb B C D Eb"
        hand, tuning, root = STANDARD, draw_tuning(draw), draw.draw_item(keys.split())
        degrees = draw.draw_item(_MINOR_PROGRESSIONS if minor else _MAJOR_PROGRESSIONS)
        chords = [chord_above_root(root, *degree) for degree in degrees]
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
        by_fret = {lowest_fretted_fret(shape): shape for shape in find_barre_shapes(chord)}
        place = min((fret for fret in by_fret if fret), key=lambda fret: abs(fret - place))
        grips.append(by_fret[place])
    return grips


def lowest_fretted_fret(grip: ChordGrip) -> int:
    """Lowest fret that a finger presses; 0 where none does."""
    return min((note.fret for note in grip if note.fret > 0), default=0)


def make_accompaniment(
    how: str, progression: Progression, name: str, pattern: Sequence[str], turn: Sequence[str]
) -> Study:
    """A progression in a pattern, every fourth bar in another; it ends on the chord."""
    title, tuning, chords, grips = progression
    bars = []
    for i, grip in enumerate(grips[:-1]):
        marks = {
            "p": grip[:1], "P": grip[1:2], "i": grip[-3:-2], "m": grip[-2:-1], "a": grip[-1:],
            "B": grip[:1], "A": grip[1:2], "D": grip, "U": grip[-3:],
        }  # fmt: skip
        bars.append(make_pattern_bar(turn if i % 4 == 3 else pattern, marks))
    bars.append(make_bar(len(pattern), {0: grips[-1]}))
    four_beats = "waltz" not in name and "six-eight" not in name
    unit = len(pattern) // 4 if four_beats else 4
    return make_study(f"{how} {title}: {name}", tuning, bars, unit, chords)


def make_picking_study(draw: SeededChooser) -> Study:
    """A progression in a picking pattern, every fourth bar varied at times."""
    progression = draw_chord_progression(draw)
    words, name = draw.draw_item(_PICKING_PATTERNS)
    pattern = turn = words.split()
    alike = [other.split() for other, _ in _PICKING_PATTERNS]
    if draw.draw_bool(0.4):
        turn = draw.draw_item([other for other in alike if len(other) == len(pattern)])
    return make_accompaniment("Picking", progression, name, pattern, turn)


def make_strumming_study(draw: SeededChooser) -> Study:
    """A progression strummed in one rhythm."""
    progression = draw_chord_progression(draw)
    pattern, name = draw.draw_item(_STRUM_PATTERNS)
    return make_accompaniment("Strumming", progression, name, pattern, pattern)


_RIFF_RHYTHMS = (
    "c.pppp..c.pppp..", "c..ppp..c..pp.c.", "ppc.ppc.ppc.c...", "c.ppc.ppc.ppc.c.",
    "pp.pp.c.pp.pp.c.", "c...pp.pc...pp.p", "cppcppcppcpp", "c..ppp" * 2,
)  # fmt: skip


def make_riff_study(draw: SeededChooser) -> Study:
    """Drop-D power chords (one finger across three strings) between strokes on the open low D."""
    pattern = draw.draw_item(_RIFF_RHYTHMS)
    four = ["D5", *(draw.draw_item(("D5", "E5", "F5", "G5", "A5", "Bb5")) for _ in range(3))]
    chords = [*(four * 2)[: draw.draw_item((4, 8))], "D5"]
    grips = [find_chord_shape(chord, DROP_D) for chord in chords]
    bars = [make_pattern_bar(pattern, {"c": grip, "p": [Note(6, 0)]}) for grip in grips[:-1]]
    bars.append(make_bar(len(pattern), {0: grips[-1]}))
    title = f"Power chord riff, {'-'.join(four)}, drop D"
    return make_study(title, DROP_D, bars, len(pattern) // 4, chords)


# --- Blues ---------------------------------------------------------------------------------------

# Half steps above the key for the chord of every bar: I is 0, IV is 5, V is 7.
_BLUES_FORMS = (
    ("twelve-bar blues", (0, 0, 0, 0, 5, 5, 0, 0, 7, 5, 0, 7)),
    ("quick-change blues", (0, 5, 0, 0, 5, 5, 0, 0, 7, 5, 0, 7)),
)
_BLUES_KEYS = ("E", "A", "E", "A", "G", "C", "D", "Bb", "B")
# What the upper note of the shuffle does on the eighths of a bar, in frets above the root's.
_SHUFFLE_PATTERNS = (
    (2, 2, 4, 4, 2, 2, 4, 4), (2, 2, 4, 2, 2, 2, 4, 2), (2, 4, 2, 4, 2, 4, 2, 4),
    (2, 2, 4, 4, 5, 5, 4, 4),
)  # fmt: skip
# A bar of walking bass, in half steps above the root of its chord.
_WALKING_PATTERNS = (
    (0, 4, 7, 9), (0, 4, 7, 10), (0, 7, 9, 10), (0, 2, 4, 7), (0, 9, 7, 4), (0, 10, 9, 7),
)  # fmt: skip


def draw_blues(draw: SeededChooser) -> tuple[Tuning, str, str, list[str]]:
    """A guitar, a key, a title and the seventh chords bar by bar; the last is V, or I to end on."""
    tuning, key = draw_tuning(draw), draw.draw_item(_BLUES_KEYS)
    name, degrees = draw.draw_item(_BLUES_FORMS)
    if not draw.draw_bool(0.5):
        degrees = (*degrees[:-1], 0)
    title = f"{name} in {key}{describe_tuning(tuning)}"
    return tuning, key, title, [chord_above_root(key, degree, "7") for degree in degrees]


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
    pattern = draw.draw_item(_SHUFFLE_PATTERNS)
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
    walks = [draw.draw_item(_WALKING_PATTERNS), draw.draw_item(_WALKING_PATTERNS)]
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
