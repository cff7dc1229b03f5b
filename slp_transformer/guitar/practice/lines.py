"""Single lines and double stops: scales in positions, arpeggios, thirds and sixths."""

from dataclasses import replace

from slp_transformer.guitar.fretboard import (
    DADGAD,
    DROP_D,
    HALF_STEP_DOWN,
    OPEN_G,
    STANDARD,
    Note,
    Tuning,
    is_playable_grip,
)
from slp_transformer.guitar.practice.study import (
    EIGHTHS,
    GALLOP,
    MAX_STUDY_BARS,
    SHUFFLE,
    SIXTEENTHS,
    TRIPLETS,
    WALTZ,
    PracticeStudy,
    SeededChooser,
    find_positions,
    make_bar,
    nearest_note_index,
    notes_in_position,
    notes_to_bars,
    remove_capo_and_detuning,
)
from slp_transformer.guitar.tab import Tab
from slp_transformer.guitar.theory import (
    NOTE_NAMES,
    SCALE_HALF_STEPS,
    chord_above_root,
    chord_pitch_classes,
    parse_pitch_class,
    scale_pitch_classes,
)

# A tuning that is not standard is played in its own key, near its open strings.
BEGINNER_KEYS = ((DROP_D, "D"), (DADGAD, "D"), (OPEN_G, "G"))

SCALE_SEQUENCES = ("up and down", "thirds", "groups of four", "groups of three", "fourths")


def draw_tuning(draw: SeededChooser) -> Tuning:
    """Usually a guitar in standard tuning; sometimes half a step down or with a capo."""
    tuning = HALF_STEP_DOWN if draw.draw_bool(0.1) else STANDARD
    return (
        replace(tuning, capo=draw.draw_item((1, 2, 3, 4, 5, 7))) if draw.draw_bool(0.2) else tuning
    )


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


def scale_sequence_degrees(sequence_name: str, low_degree: int, high_degree: int) -> list[int]:
    """Places in a scale that a sequence visits between two places, up and then down again.

    >>> sequence_steps("thirds", 0, 3)
    [0, 2, 1, 3, 3, 1, 2, 0]
    """
    cells = {
        "up and down": (0,),
        "thirds": (0, 2),
        "fourths": (0, 3),
        "groups of three": (0, 1, 2),
        "groups of four": (0, 1, 2, 3),
    }
    cell = cells[sequence_name]
    reach = max(cell)
    up = [start + move for start in range(low_degree, high_degree - reach + 1) for move in cell]
    down = [
        start - move for start in range(high_degree, low_degree + reach - 1, -1) for move in cell
    ]
    return up + down


def make_scale_study(draw: SeededChooser) -> PracticeStudy:
    """A scale in one position, straight or in sequences, from root to root."""
    scale = draw.draw_item(tuple(SCALE_HALF_STEPS))
    if draw.draw_bool(0.2):
        tuning, root = draw.draw_item(BEGINNER_KEYS)
        classes, position = scale_pitch_classes(root, scale), 0
    else:
        tuning, root = draw_tuning(draw), draw.draw_item(NOTE_NAMES)
        classes = scale_pitch_classes(root, scale)
        position = draw.draw_item(find_positions(classes, remove_capo_and_detuning(tuning)))
    hand = remove_capo_and_detuning(tuning)
    box = notes_in_position(classes, hand, position)
    roots = [i for i, note in enumerate(box) if hand.pitch_of(note) % 12 == classes[0]]
    rhythm = draw.draw_item((EIGHTHS, EIGHTHS, SIXTEENTHS, TRIPLETS, SHUFFLE, GALLOP, WALTZ))
    places, used = [], []
    while len(places) < 4 * len(rhythm.onset_steps):
        name = draw.draw_item([name for name in SCALE_SEQUENCES if name not in used])
        low = draw.draw_item(roots[:-1] or [0])
        high = draw.draw_item([i for i in (*roots, len(box) - 1) if i > low + 3] or [len(box) - 1])
        moves = scale_sequence_degrees(name, low, high)
        if not moves:
            continue
        used = [name, *used][:3]
        places += moves[1:] if places and places[-1] == moves[0] else moves
    places = drop_repeated_notes(places)[: MAX_STUDY_BARS * len(rhythm.onset_steps) - 1]
    if places[-1] not in roots:
        places.append(min(roots, key=lambda i: abs(i - places[-1])))
    bars = notes_to_bars([(box[i],) for i in places], rhythm)
    where = "open position" if position == 0 else f"position {position}"
    title = f"{root} {scale}, {where}, {' and '.join(reversed(used))}{describe_tuning(tuning)}"
    tab = Tab(title, tuning, tuple(bars), steps_per_quarter=rhythm.steps_per_quarter)
    return PracticeStudy(tab, "scale", (f"{root} {scale}",) * len(bars))


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


def make_arpeggio_study(draw: SeededChooser) -> PracticeStudy:
    """Chord tones through a progression, a chord a bar, the hand staying in one position."""
    tuning, root = draw_tuning(draw), draw.draw_item(NOTE_NAMES)
    hand = remove_capo_and_detuning(tuning)
    name, degrees = draw.draw_item(_ARPEGGIO_CHORDS)
    chords = [chord_above_root(root, *degree) for degree in degrees * draw.draw_item((1, 1, 2))]
    position = draw.draw_item((0, 2, 3, 4, 5, 7, 8, 9))
    rhythm = draw.draw_item((EIGHTHS, EIGHTHS, TRIPLETS, SIXTEENTHS, WALTZ))
    leaps = draw.draw_item(((1,), (1,), (2, -1), (1, 1, -1)))
    direction, bars = 1, []
    first = notes_in_position(chord_pitch_classes(chords[0]), hand, position)
    place = next(
        i for i, n in enumerate(first) if hand.pitch_of(n) % 12 == chord_pitch_classes(chords[0])[0]
    )
    pitch = hand.pitch_of(first[place])
    for chord in chords:
        tones = notes_in_position(chord_pitch_classes(chord), hand, position)
        place, line = nearest_note_index(tones, hand, pitch), []
        if bars and hand.pitch_of(tones[place]) == pitch:
            place += direction if 0 <= place + direction < len(tones) else -direction
        for i in range(len(rhythm.onset_steps)):
            line.append((tones[place],))
            leap = leaps[i % len(leaps)]
            if not 0 <= place + direction * leap < len(tones):
                direction = -direction
            place += direction * leap
        pitch = hand.pitch_of(line[-1][0])
        bars += notes_to_bars(line, rhythm)
    home = notes_in_position(chord_pitch_classes(chords[0]), hand, position)
    if draw.draw_bool(0.7) and degrees[0][0] == 0:
        roots = [n for n in home if hand.pitch_of(n) % 12 == parse_pitch_class(root)]
        bars.append(
            make_bar(rhythm.steps_per_bar, {0: [roots[nearest_note_index(roots, hand, pitch)]]})
        )
        chords.append(chords[0])
    where = "open position" if position == 0 else f"position {position}"
    title = f"Arpeggios in {root}, {name}, {where}, {rhythm.name}{describe_tuning(tuning)}"
    return PracticeStudy(
        Tab(title, tuning, tuple(bars), steps_per_quarter=rhythm.steps_per_quarter),
        "arpeggio",
        tuple(chords),
    )


def make_double_stop_study(draw: SeededChooser) -> PracticeStudy:
    """A scale in thirds or sixths that climbs the neck on two strings."""
    tuning, root = draw_tuning(draw), draw.draw_item(("C", "G", "D", "A", "E", "F"))
    hand = remove_capo_and_detuning(tuning)
    scale = draw.draw_item(("major", "major", "minor", "dorian", "mixolydian"))
    classes = scale_pitch_classes(root, scale)
    name, distance, pairs = draw.draw_item(
        (("thirds", 2, ((2, 1), (3, 2))), ("sixths", 5, ((3, 1), (4, 2))))
    )
    low, high = draw.draw_item(pairs)
    ladder = build_double_stops(classes, hand, low, high, distance, top_string=13)
    rhythm = draw.draw_item((EIGHTHS, EIGHTHS, SHUFFLE, WALTZ))
    shape = draw.draw_item(("up and down", "thirds", "groups of three", "groups of four"))
    places = drop_repeated_notes(scale_sequence_degrees(shape, 0, len(ladder) - 1))
    while len(places) < 4 * len(rhythm.onset_steps):
        places = drop_repeated_notes([*places, *places])
    roots = [i for i, pair in enumerate(ladder) if hand.pitch_of(pair[0]) % 12 == classes[0]]
    places = places[: 8 * len(rhythm.onset_steps) - 1]
    if places[-1] not in roots:
        places.append(min(roots, key=lambda i: abs(i - places[-1])))
    bars = notes_to_bars([ladder[i] for i in places], rhythm)
    title = (
        f"{root} {scale} in {name} on strings {low} and {high}, {shape}{describe_tuning(tuning)}"
    )
    return PracticeStudy(
        Tab(title, tuning, tuple(bars), steps_per_quarter=rhythm.steps_per_quarter),
        "double stops",
        (f"{root} {scale}",) * len(bars),
    )


def build_double_stops(
    pitch_classes: list[int],
    tuning: Tuning,
    lowest_fret: int,
    highest_fret: int,
    degree_distance: int,
    top_string: int,
) -> list[tuple[Note, Note]]:
    """Return pairs of scale notes `degree_distance` degrees apart on two strings, up the neck."""
    pitches = [
        p for p in range(tuning.pitch_of(Note(lowest_fret, 0)), 100) if p % 12 in pitch_classes
    ]
    ladder = []
    for lower, upper in zip(pitches, pitches[degree_distance:], strict=False):
        pair = (
            Note(lowest_fret, lower - tuning.pitch_of(Note(lowest_fret, 0))),
            Note(highest_fret, upper - tuning.pitch_of(Note(highest_fret, 0))),
        )
        if all(0 <= note.fret <= top_string for note in pair) and is_playable_grip(pair):
            ladder.append(pair)
    return ladder
