"""Twelve-bar blues: shuffled bass, walking bass, and single-note solos."""

from slp_transformer.guitar.fretboard import Note, Tuning
from slp_transformer.guitar.practice.chords import step_along
from slp_transformer.guitar.practice.lines import any_guitar, describe
from slp_transformer.guitar.practice.study import (
    Draw,
    Study,
    hand_view,
    in_time,
    make_bar,
    nearest,
    window,
)
from slp_transformer.guitar.tab import Bar
from slp_transformer.guitar.theory import (
    NOTE_NAMES,
    Grip,
    barre_shapes,
    chord_on,
    chord_shape,
    pitch_class,
    scale_classes,
)

# Half steps above the key for the chord of every bar: I is 0, IV is 5, V is 7.
FORMS = {
    "twelve-bar blues": (0, 0, 0, 0, 5, 5, 0, 0, 7, 5, 0, 7),
    "quick-change blues": (0, 5, 0, 0, 5, 5, 0, 0, 7, 5, 0, 7),
}
BLUES_KEYS = ("E", "A", "E", "A", "G", "C", "D", "Bb", "B")

# What the upper note of the shuffle does on the eighths of a bar, in frets above the root's.
_SHUFFLES = (
    (2, 2, 4, 4, 2, 2, 4, 4),
    (2, 2, 4, 2, 2, 2, 4, 2),
    (2, 4, 2, 4, 2, 4, 2, 4),
    (2, 2, 4, 4, 5, 5, 4, 4),
)
# A bar of walking bass, in half steps above the root of its chord.
_WALKS = ((0, 4, 7, 9), (0, 4, 7, 10), (0, 7, 9, 10), (0, 2, 4, 7), (0, 9, 7, 4), (0, 10, 9, 7))


def draw_form(draw: Draw, root: str) -> tuple[str, tuple[str, ...]]:
    """A form and its seventh chords, bar by bar; the last bar is V, or I to end on."""
    name = draw.pick(tuple(FORMS))
    degrees = FORMS[name] if draw.chance(0.5) else (*FORMS[name][:-1], 0)
    return name, tuple(chord_on(root, degree, "7") for degree in degrees)


def bass_root(root: str, tuning: Tuning, near: int) -> Note:
    """The root on one of the three bass strings: near the hand, open where the hand is low."""
    places = [
        Note(string, (pitch_class(root) - tuning.pitch(Note(string, 0))) % 12)
        for string in (6, 5, 4)
    ]
    low = [note for note in places if note.fret <= 10 and (note.string > 4 or note.fret == 0)]
    return min(low, key=lambda note: (abs(note.fret - near), -note.string))


def ending_shape(chord: str, near: int) -> Grip:
    """A shape for the last chord: the open one near the nut, else the nearest barre."""
    shapes = barre_shapes(chord)
    if near < 3:
        return chord_shape(chord)
    return min(shapes, key=lambda shape: abs(max(note.fret for note in shape) - near))


def shuffle_study(draw: Draw) -> Study:
    """Twelve bars of root and fifth, root and sixth, and a turnaround that falls in half steps."""
    tuning, key = any_guitar(draw), draw.pick(BLUES_KEYS)
    hand = hand_view(tuning)
    name, chords = draw_form(draw, key)
    pattern = draw.pick(_SHUFFLES)
    home = bass_root(key, hand, 2)
    swing = draw.chance(0.75)
    steps, onsets = (12, (0, 2, 3, 5, 6, 8, 9, 11)) if swing else (16, tuple(range(0, 16, 2)))
    bars = []
    for chord in chords[:-2]:
        root = bass_root(chord[:-1], hand, home.fret)
        ups = [4 if up == 5 and root.fret else up for up in pattern]
        dyads = [(root, Note(root.string - 1, root.fret + up)) for up in ups]
        bars.append(make_bar(steps, dict(zip(onsets, dyads, strict=True))))
    bars.append(turnaround(key, hand, home, steps))
    final = ending_shape(chords[-1], home.fret)
    halves = {0: final[:1], steps // 2: final} if draw.chance(0.5) else {0: final}
    bars.append(make_bar(steps, halves))
    title = f"Shuffle, {name} in {key}{describe(tuning)}"
    return Study(in_time(title, tuning, bars), "shuffle", chords)


def turnaround(key: str, tuning: Tuning, home: Note, steps: int) -> Bar:
    """The tonic in the bass, then b7, 6, b6, 5 on string 4 under the tonic on string 1."""
    beat = steps // 4
    fret = (pitch_class(key) - tuning.pitch(Note(1, 0))) % 12
    fret = fret if fret >= 3 else fret + 12
    top = Note(1, fret)
    last = beat - 1 if beat == 3 else beat // 2
    onsets = {0: [home], last: [Note(4, fret), top]}
    for down in (1, 2, 3):
        onsets[down * beat] = [Note(4, fret - down), top]
        onsets[down * beat + last] = [top]
    return make_bar(steps, onsets)


def walking_study(draw: Draw) -> Study:
    """Twelve bars of walking bass in quarters; the last beat may lead into the next root."""
    tuning, key = any_guitar(draw), draw.pick(BLUES_KEYS)
    hand = hand_view(tuning)
    name, chords = draw_form(draw, key)
    home = bass_root(key, hand, draw.pick((0, 2, 5, 8)))
    low = max(0, home.fret - 2)
    walks = [draw.pick(_WALKS), draw.pick(_WALKS)]
    leads, doubled = draw.chance(0.6), draw.chance(0.4)
    steps = 12 if doubled else draw.pick((12, 16))
    bars = []
    for i, chord in enumerate(chords):
        root = hand.pitch(bass_root(chord[:-1], hand, home.fret))
        pitches = [root + up for up in walks[i % 2]]
        if leads and i + 1 < len(chords) and chords[i + 1] != chord:
            pitches[3] = hand.pitch(bass_root(chords[i + 1][:-1], hand, home.fret)) + draw.pick(
                (1, -1)
            )
        notes = [low_place(pitch, hand, low) for pitch in pitches]
        beat = steps // 4
        onsets = {beat * k: [note] for k, note in enumerate(notes)}
        if doubled:
            onsets |= {beat * k + 2: [note] for k, note in enumerate(notes)}
        bars.append(make_bar(steps, onsets))
    final = bass_root(chords[-1][:-1], hand, home.fret)
    bars[-1] = make_bar(steps, {0: [final], steps // 2: ending_shape(chords[-1], home.fret)})
    title = f"Walking bass, {name} in {key}{describe(tuning)}"
    return Study(in_time(title, tuning, bars), "walking bass", chords)


def low_place(pitch: int, tuning: Tuning, low: int) -> Note:
    """Where to play a bass note: within reach of the hand, whose lowest fret is `low`."""
    places = tuning.positions(max(pitch, min(tuning.open_pitches)))
    return min(places, key=lambda note: (max(0, low - note.fret, note.fret - low - 4), note.fret))


_SWUNG = ((0,), (0, 2), (0, 2), (0, 1, 2), (2,), ())
_SOLO_SCALES = ("blues", "blues", "minor pentatonic", "major pentatonic")


def solo_study(draw: Draw) -> Study:
    """A solo over twelve bars: six phrases of two bars that answer each other, all in one box."""
    tuning, key = any_guitar(draw), draw.pick(NOTE_NAMES)
    hand = hand_view(tuning)
    scale = draw.pick(_SOLO_SCALES)
    classes = scale_classes(key, scale)
    root_fret = (classes[0] - hand.pitch(Note(6, 0))) % 12
    position = root_fret - 3 if scale == "major pentatonic" else root_fret
    position = position + 12 if position < 0 else position
    if position + 4 + tuning.capo > 17:
        position -= 12
    box = [note for note in window(classes, hand, max(0, position)) if note.string <= 4]
    roots = [i for i, note in enumerate(box) if hand.pitch(note) % 12 == classes[0]]
    call = draw_cells(draw)
    start = draw.pick(roots)
    opening = walk(draw, start, sum(map(len, call)), len(box))
    bars: list[Bar] = []
    for phrase in range(6):
        fresh = phrase in (2, 4)
        cells = draw_cells(draw) if fresh else call
        count = sum(map(len, cells))
        places = walk(draw, draw.pick(roots), count, len(box)) if fresh else list(opening)
        if not fresh and phrase > 0:
            kept = count // 2
            places[kept:] = walk(draw, places[kept - 1], count - kept, len(box))
        goals = roots if phrase % 2 else range(len(box))
        pitch = hand.pitch(box[places[-1]])
        goal = box[goals[nearest([box[i] for i in goals], hand, pitch)]]
        bars += phrase_bars([box[i] for i in places], cells, goal)
    title = f"Blues solo, {key} {scale}{describe(tuning)}"
    return Study(in_time(title, tuning, bars), "solo", (f"{key} {scale}",) * len(bars))


def draw_cells(draw: Draw) -> list[tuple[int, ...]]:
    """The rhythm of a phrase, beat by beat: five beats, with at least five notes in them."""
    while True:
        cells = [draw.pick(_SWUNG) for _ in range(5)]
        if sum(map(len, cells)) >= 5:
            return cells


def walk(draw: Draw, start: int, count: int, size: int) -> list[int]:
    """A melody of `count` places in a scale of `size` notes, beginning at `start`."""
    places = []
    for _ in range(count):
        places.append(start)
        start = step_along(draw, start, size)
    return places


def phrase_bars(notes: list[Note], cells: list[tuple[int, ...]], goal: Note) -> list[Bar]:
    """Two bars: five beats filled by `cells`, then the goal, which rings to the end."""
    moments = [3 * beat + offset for beat, cell in enumerate(cells) for offset in cell] + [15]
    played = dict(zip(moments, [*notes, goal], strict=True))
    return [
        make_bar(12, {step - first: [n] for step, n in played.items() if 0 <= step - first < 12})
        for first in (0, 12)
    ]
