"""Single lines and double stops: scales in positions, arpeggios, thirds and sixths, melodies."""

from dataclasses import replace

from slp_transformer.guitar.fretboard import (
    DADGAD,
    DROP_D,
    OPEN_G,
    STANDARD,
    Note,
    is_playable_grip,
)
from slp_transformer.guitar.practice.parts import (
    EIGHTHS,
    GALLOP,
    MAX_STUDY_BARS,
    SHUFFLE,
    SIXTEENTHS,
    TRIPLETS,
    WALTZ,
    SeededChooser,
    Study,
    describe_position,
    describe_tuning,
    draw_tuning,
    end_on_root,
    find_indices,
    make_bar,
    make_study,
    nearest_note_index,
    notes_in_position,
    notes_to_bars,
    random_step,
)
from slp_transformer.guitar.tab import Bar
from slp_transformer.guitar.theory import (
    NOTE_NAMES,
    SCALE_HALF_STEPS,
    chord_above_root,
    chord_pitch_classes,
    scale_pitch_classes,
)

# A tuning that is not standard is played in its own key, near its open strings.
_BEGINNER_KEYS = ((DROP_D, "D"), (DADGAD, "D"), (OPEN_G, "G"))
# The degrees above each that a sequence visits before it goes on to the next.
_SCALE_SEQUENCES = {
    "up and down": (0,),
    "thirds": (0, 2),
    "groups of four": (0, 1, 2, 3),
    "groups of three": (0, 1, 2),
    "fourths": (0, 3),
}


def scale_sequence_degrees(sequence_name: str, low_degree: int, high_degree: int) -> list[int]:
    """Places in a scale that a sequence visits between two places, up and then down again.

    >>> scale_sequence_degrees("thirds", 0, 3)
    [0, 2, 1, 3, 3, 1, 2, 0]
    """
    cell = _SCALE_SEQUENCES[sequence_name]
    starts = range(low_degree, high_degree - max(cell) + 1)
    up = [start + move for start in starts for move in cell]
    return up + [low_degree + high_degree - degree for degree in up]


def make_scale_study(draw: SeededChooser) -> Study:
    """A scale in one position, straight or in sequences, from root to root."""
    scale = draw.draw_item(tuple(SCALE_HALF_STEPS))
    if draw.draw_bool(0.2):
        tuning, root = draw.draw_item(_BEGINNER_KEYS)
        hand, position = tuning, 0
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
        name = draw.draw_item([name for name in _SCALE_SEQUENCES if name not in used])
        low = draw.draw_item(roots[:-1] or [0])
        high = draw.draw_item([i for i in (*roots, len(box) - 1) if i > low + 3] or [len(box) - 1])
        if moves := scale_sequence_degrees(name, low, high):
            used = [name, *used][:3]
            places += moves[1:] if places and places[-1] == moves[0] else moves
    places = drop_repeated_notes(places)[: MAX_STUDY_BARS * len(rhythm.onset_steps) - 1]
    bars = notes_to_bars([(box[i],) for i in end_on_root(places, roots)], rhythm)
    title = f"{root} {scale}, {describe_position(position)}, {' and '.join(reversed(used))}"
    title += describe_tuning(tuning)
    return make_study(title, tuning, bars, rhythm.steps_per_quarter, f"{root} {scale}")


def drop_repeated_notes(notes: list[int]) -> list[int]:
    """The same places, but none twice in a row."""
    return [place for i, place in enumerate(notes) if i == 0 or place != notes[i - 1]]


_ARPEGGIO_CHORDS = (
    ("ii-V-I", ((2, "m7"), (7, "7"), (0, "maj7"), (0, "maj7"))),
    ("I-vi-ii-V", ((0, "maj7"), (9, "m7"), (2, "m7"), (7, "7"))),
    ("I-IV-V-I", ((0, ""), (5, ""), (7, "7"), (0, ""))),
    ("I-V-vi-IV", ((0, ""), (7, ""), (9, "m"), (5, ""))),
    ("minor ii-V-i", ((2, "m7b5"), (7, "7"), (0, "m7"), (0, "m7"))),
    ("i-VII-VI-V", ((0, "m"), (10, ""), (8, ""), (7, ""))),
    ("circle of fourths", ((0, "m7"), (5, "7"), (10, "maj7"), (3, "maj7"))),
    ("i-iv-V-i", ((0, "m"), (5, "m"), (7, "7"), (0, "m"))),
)


def make_arpeggio_study(draw: SeededChooser) -> Study:
    """Chord tones through a progression, a chord a bar, the hand staying in one position."""
    tuning, root = draw_tuning(draw), draw.draw_item(NOTE_NAMES)
    name, degrees = draw.draw_item(_ARPEGGIO_CHORDS)
    chords = [chord_above_root(root, *degree) for degree in degrees * draw.draw_item((1, 1, 2))]
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
    if draw.draw_bool(0.7) and degrees[0][0] == 0:
        line.append((home_roots[nearest_note_index(home_roots, pitch)],))
        chords.append(chords[0])
    title = f"Arpeggios in {root}, {name}, {describe_position(position)}, {rhythm.name}"
    title += describe_tuning(tuning)
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
    places = drop_repeated_notes(scale_sequence_degrees(shape, 0, len(ladder) - 1))
    while len(places) < 4 * len(rhythm.onset_steps):
        places = drop_repeated_notes([*places, *places])
    places = places[: 8 * len(rhythm.onset_steps) - 1]
    roots = find_indices([pair[0] for pair in ladder], classes[0])
    bars = notes_to_bars([ladder[i] for i in end_on_root(places, roots)], rhythm)
    title = f"{root} {scale} in {name} on strings {low} and {high}, {shape}"
    title += describe_tuning(tuning)
    return make_study(title, tuning, bars, rhythm.steps_per_quarter, f"{root} {scale}")


# A bass that needs no finger: the tuning, the key, and the open strings the thumb goes round.
_DRONE_TUNINGS = (
    (STANDARD, "E", (6, 6)), (STANDARD, "A", (5, 5)), (STANDARD, "A", (5, 6)),
    (STANDARD, "D", (4, 4)), (STANDARD, "D", (4, 5)),
    (DROP_D, "D", (6, 4)), (DROP_D, "D", (6, 5)), (DROP_D, "D", (6, 4, 5, 4)),
    (DADGAD, "D", (6, 4)), (DADGAD, "D", (6, 4, 5, 4)), (OPEN_G, "G", (5, 4)),
    (OPEN_G, "G", (5, 4, 6, 4)),
)  # fmt: skip
_MELODY_CELLS = ((0,), (0, 2), (0, 2), (2,), (0, 2, 3), (0, 1, 2), ())


def make_drone_study(draw: SeededChooser) -> Study:
    """A melody in phrases (A A B A) over open bass strings, the thumb on every beat."""
    hand, root, thumb = draw.draw_item(_DRONE_TUNINGS)
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
    return make_study(title, tuning, bars[:MAX_STUDY_BARS], 4, f"{root} {scale}")


_SWUNG_CELLS = ((0,), (0, 2), (0, 2), (0, 1, 2), (2,), ())
_SOLO_SCALES = ("blues", "blues", "minor pentatonic", "major pentatonic")


def make_solo_study(draw: SeededChooser) -> Study:
    """A solo over twelve bars: six phrases of two bars that answer each other, all in one box."""
    tuning, key = draw_tuning(draw), draw.draw_item(NOTE_NAMES)
    scale = draw.draw_item(_SOLO_SCALES)
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
        bars += make_phrase_bars([*(box[i] for i in places), goal], cells)
    title = f"Blues solo, {key} {scale}{describe_tuning(tuning)}"
    return make_study(title, tuning, bars, 3, f"{key} {scale}")


def random_walk(draw: SeededChooser, index: int, num_notes: int, scale_size: int) -> list[int]:
    """Return indices into a scale, from one on."""
    places = []
    for _ in range(num_notes):
        places.append(index)
        index = random_step(draw, index, scale_size)
    return places


def draw_rhythm_cells(draw: SeededChooser) -> list[tuple[int, ...]]:
    """The rhythm of a phrase, beat by beat: five beats, with at least five notes in them."""
    while True:
        cells = [draw.draw_item(_SWUNG_CELLS) for _ in range(5)]
        if sum(map(len, cells)) >= 5:
            return cells


def make_phrase_bars(notes: list[Note], cells: list[tuple[int, ...]]) -> list[Bar]:
    """Two bars: five beats filled by `cells`, then the last note, which rings to the end."""
    moments = [3 * beat + offset for beat, cell in enumerate(cells) for offset in cell] + [15]
    played = dict(zip(moments, notes, strict=True))
    return [
        make_bar(12, {step - first: [n] for step, n in played.items() if 0 <= step - first < 12})
        for first in (0, 12)
    ]
