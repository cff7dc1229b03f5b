"""Twelve-bar blues: shuffled bass, walking bass, and single-note solos."""

from slp_transformer.guitar.fretboard import Note, Tuning
from slp_transformer.guitar.practice.chords import random_step
from slp_transformer.guitar.practice.lines import describe_tuning, draw_tuning
from slp_transformer.guitar.practice.study import (
    PracticeStudy,
    SeededChooser,
    make_bar,
    make_tab,
    nearest_note_index,
    notes_in_position,
    remove_capo_and_detuning,
)
from slp_transformer.guitar.tab import Bar
from slp_transformer.guitar.theory import (
    NOTE_NAMES,
    ChordGrip,
    chord_above_root,
    find_barre_shapes,
    find_chord_shape,
    parse_pitch_class,
    scale_pitch_classes,
)

# Half steps above the key for the chord of every bar: I is 0, IV is 5, V is 7.
BLUES_FORMS = {
    "twelve-bar blues": (0, 0, 0, 0, 5, 5, 0, 0, 7, 5, 0, 7),
    "quick-change blues": (0, 5, 0, 0, 5, 5, 0, 0, 7, 5, 0, 7),
}
BLUES_KEYS = ("E", "A", "E", "A", "G", "C", "D", "Bb", "B")

# What the upper note of the shuffle does on the eighths of a bar, in frets above the root's.
_SHUFFLE_PATTERNS = (
    (2, 2, 4, 4, 2, 2, 4, 4),
    (2, 2, 4, 2, 2, 2, 4, 2),
    (2, 4, 2, 4, 2, 4, 2, 4),
    (2, 2, 4, 4, 5, 5, 4, 4),
)
# A bar of walking bass, in half steps above the root of its chord.
_WALKING_PATTERNS = (
    (0, 4, 7, 9),
    (0, 4, 7, 10),
    (0, 7, 9, 10),
    (0, 2, 4, 7),
    (0, 9, 7, 4),
    (0, 10, 9, 7),
)


def draw_blues_form(draw: SeededChooser, root: str) -> tuple[str, tuple[str, ...]]:
    """A form and its seventh chords, bar by bar; the last bar is V, or I to end on."""
    name = draw.draw_item(tuple(BLUES_FORMS))
    degrees = BLUES_FORMS[name] if draw.draw_bool(0.5) else (*BLUES_FORMS[name][:-1], 0)
    return name, tuple(chord_above_root(root, degree, "7") for degree in degrees)


def find_bass_root(root: str, tuning: Tuning, target_fret: int) -> Note:
    """The root on one of the three bass strings: near the hand, open where the hand is low."""
    places = [
        Note(string, (parse_pitch_class(root) - tuning.pitch_of(Note(string, 0))) % 12)
        for string in (6, 5, 4)
    ]
    low = [note for note in places if note.fret <= 10 and (note.string > 4 or note.fret == 0)]
    return min(low, key=lambda note: (abs(note.fret - target_fret), -note.string))


def find_ending_shape(chord: str, target_fret: int) -> ChordGrip:
    """A shape for the last chord: the open one near the nut, else the nearest barre."""
    shapes = find_barre_shapes(chord)
    if target_fret < 3:
        return find_chord_shape(chord)
    return min(shapes, key=lambda shape: abs(max(note.fret for note in shape) - target_fret))


def make_shuffle_study(draw: SeededChooser) -> PracticeStudy:
    """Twelve bars of root and fifth, root and sixth, and a turnaround that falls in half steps."""
    tuning, key = draw_tuning(draw), draw.draw_item(BLUES_KEYS)
    hand = remove_capo_and_detuning(tuning)
    name, chords = draw_blues_form(draw, key)
    pattern = draw.draw_item(_SHUFFLE_PATTERNS)
    home = find_bass_root(key, hand, 2)
    swing = draw.draw_bool(0.75)
    steps, onsets = (12, (0, 2, 3, 5, 6, 8, 9, 11)) if swing else (16, tuple(range(0, 16, 2)))
    bars = []
    for chord in chords[:-2]:
        root = find_bass_root(chord[:-1], hand, home.fret)
        ups = [4 if up == 5 and root.fret else up for up in pattern]
        dyads = [(root, Note(root.string - 1, root.fret + up)) for up in ups]
        bars.append(make_bar(steps, dict(zip(onsets, dyads, strict=True))))
    bars.append(make_turnaround(key, hand, home, steps))
    final = find_ending_shape(chords[-1], home.fret)
    halves = {0: final[:1], steps // 2: final} if draw.draw_bool(0.5) else {0: final}
    bars.append(make_bar(steps, halves))
    title = f"Shuffle, {name} in {key}{describe_tuning(tuning)}"
    return PracticeStudy(make_tab(title, tuning, bars), "shuffle", chords)


def make_turnaround(key: str, tuning: Tuning, root_note: Note, steps_per_bar: int) -> Bar:
    """The tonic in the bass, then b7, 6, b6, 5 on string 4 under the tonic on string 1."""
    beat = steps_per_bar // 4
    fret = (parse_pitch_class(key) - tuning.pitch_of(Note(1, 0))) % 12
    fret = fret if fret >= 3 else fret + 12
    top = Note(1, fret)
    last = beat - 1 if beat == 3 else beat // 2
    onsets = {0: [root_note], last: [Note(4, fret), top]}
    for down in (1, 2, 3):
        onsets[down * beat] = [Note(4, fret - down), top]
        onsets[down * beat + last] = [top]
    return make_bar(steps_per_bar, onsets)


def make_walking_bass_study(draw: SeededChooser) -> PracticeStudy:
    """Twelve bars of walking bass in quarters; the last beat may lead into the next root."""
    tuning, key = draw_tuning(draw), draw.draw_item(BLUES_KEYS)
    hand = remove_capo_and_detuning(tuning)
    name, chords = draw_blues_form(draw, key)
    home = find_bass_root(key, hand, draw.draw_item((0, 2, 5, 8)))
    low = max(0, home.fret - 2)
    walks = [draw.draw_item(_WALKING_PATTERNS), draw.draw_item(_WALKING_PATTERNS)]
    leads, doubled = draw.draw_bool(0.6), draw.draw_bool(0.4)
    steps = 12 if doubled else draw.draw_item((12, 16))
    bars = []
    for i, chord in enumerate(chords):
        root = hand.pitch_of(find_bass_root(chord[:-1], hand, home.fret))
        pitches = [root + up for up in walks[i % 2]]
        if leads and i + 1 < len(chords) and chords[i + 1] != chord:
            pitches[3] = hand.pitch_of(
                find_bass_root(chords[i + 1][:-1], hand, home.fret)
            ) + draw.draw_item((1, -1))
        notes = [find_low_note(pitch, hand, low) for pitch in pitches]
        beat = steps // 4
        onsets = {beat * k: [note] for k, note in enumerate(notes)}
        if doubled:
            onsets |= {beat * k + 2: [note] for k, note in enumerate(notes)}
        bars.append(make_bar(steps, onsets))
    final = find_bass_root(chords[-1][:-1], hand, home.fret)
    bars[-1] = make_bar(steps, {0: [final], steps // 2: find_ending_shape(chords[-1], home.fret)})
    title = f"Walking bass, {name} in {key}{describe_tuning(tuning)}"
    return PracticeStudy(make_tab(title, tuning, bars), "walking bass", chords)


def find_low_note(pitch: int, tuning: Tuning, min_fret: int) -> Note:
    """Return a place for a bass note within reach of a hand whose lowest fret is `min_fret`."""
    places = tuning.positions_of(max(pitch, min(tuning.open_pitches)))
    return min(
        places, key=lambda note: (max(0, min_fret - note.fret, note.fret - min_fret - 4), note.fret)
    )


_SWUNG_CELLS = ((0,), (0, 2), (0, 2), (0, 1, 2), (2,), ())
_SOLO_SCALES = ("blues", "blues", "minor pentatonic", "major pentatonic")


def make_solo_study(draw: SeededChooser) -> PracticeStudy:
    """A solo over twelve bars: six phrases of two bars that answer each other, all in one box."""
    tuning, key = draw_tuning(draw), draw.draw_item(NOTE_NAMES)
    hand = remove_capo_and_detuning(tuning)
    scale = draw.draw_item(_SOLO_SCALES)
    classes = scale_pitch_classes(key, scale)
    root_fret = (classes[0] - hand.pitch_of(Note(6, 0))) % 12
    position = root_fret - 3 if scale == "major pentatonic" else root_fret
    position = position + 12 if position < 0 else position
    if position + 4 + tuning.capo > 17:
        position -= 12
    box = [note for note in notes_in_position(classes, hand, max(0, position)) if note.string <= 4]
    roots = [i for i, note in enumerate(box) if hand.pitch_of(note) % 12 == classes[0]]
    call = draw_rhythm_cells(draw)
    start = draw.draw_item(roots)
    opening = random_walk(draw, start, sum(map(len, call)), len(box))
    bars: list[Bar] = []
    for phrase in range(6):
        fresh = phrase in (2, 4)
        cells = draw_rhythm_cells(draw) if fresh else call
        count = sum(map(len, cells))
        places = (
            random_walk(draw, draw.draw_item(roots), count, len(box)) if fresh else list(opening)
        )
        if not fresh and phrase > 0:
            kept = count // 2
            places[kept:] = random_walk(draw, places[kept - 1], count - kept, len(box))
        goals = roots if phrase % 2 else range(len(box))
        pitch = hand.pitch_of(box[places[-1]])
        goal = box[goals[nearest_note_index([box[i] for i in goals], hand, pitch)]]
        bars += build_phrase_bars([box[i] for i in places], cells, goal)
    title = f"Blues solo, {key} {scale}{describe_tuning(tuning)}"
    return PracticeStudy(make_tab(title, tuning, bars), "solo", (f"{key} {scale}",) * len(bars))


def draw_rhythm_cells(draw: SeededChooser) -> list[tuple[int, ...]]:
    """The rhythm of a phrase, beat by beat: five beats, with at least five notes in them."""
    while True:
        cells = [draw.draw_item(_SWUNG_CELLS) for _ in range(5)]
        if sum(map(len, cells)) >= 5:
            return cells


def random_walk(
    draw: SeededChooser, start_index: int, num_notes: int, scale_size: int
) -> list[int]:
    """Return `num_notes` indices into a scale of `scale_size` notes, from `start_index` on."""
    places = []
    for _ in range(num_notes):
        places.append(start_index)
        start_index = random_step(draw, start_index, scale_size)
    return places


def build_phrase_bars(notes: list[Note], cells: list[tuple[int, ...]], last: Note) -> list[Bar]:
    """Two bars: five beats filled by `cells`, then the goal, which rings to the end."""
    moments = [3 * beat + offset for beat, cell in enumerate(cells) for offset in cell] + [15]
    played = dict(zip(moments, [*notes, last], strict=True))
    return [
        make_bar(12, {step - first: [n] for step, n in played.items() if 0 <= step - first < 12})
        for first in (0, 12)
    ]
