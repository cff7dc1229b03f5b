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
    is_playable,
)
from slp_transformer.guitar.practice.study import (
    EIGHTHS,
    GALLOP,
    LONGEST,
    SHUFFLE,
    SIXTEENTHS,
    TRIPLETS,
    WALTZ,
    Draw,
    Study,
    good_positions,
    hand_view,
    lay_out,
    make_bar,
    nearest,
    window,
)
from slp_transformer.guitar.tab import Tab
from slp_transformer.guitar.theory import (
    NOTE_NAMES,
    SCALES,
    chord_classes,
    chord_on,
    pitch_class,
    scale_classes,
)

# A tuning that is not standard is played in its own key, near its open strings.
HOME_KEYS = ((DROP_D, "D"), (DADGAD, "D"), (OPEN_G, "G"))

SEQUENCES = ("up and down", "thirds", "groups of four", "groups of three", "fourths")


def any_guitar(draw: Draw) -> Tuning:
    """Usually a guitar in standard tuning; sometimes half a step down or with a capo."""
    tuning = HALF_STEP_DOWN if draw.chance(0.1) else STANDARD
    return replace(tuning, capo=draw.pick((1, 2, 3, 4, 5, 7))) if draw.chance(0.2) else tuning


def describe(tuning: Tuning) -> str:
    """What a title says about the guitar: nothing if it is in standard tuning without a capo."""
    names = {
        DROP_D.open_pitches: ", drop D",
        DADGAD.open_pitches: ", DADGAD",
        OPEN_G.open_pitches: ", open G",
        HALF_STEP_DOWN.open_pitches: ", half step down",
    }
    capo = f", capo {tuning.capo}" if tuning.capo else ""
    return names.get(tuning.open_pitches, "") + capo


def sequence_steps(name: str, low: int, high: int) -> list[int]:
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
    cell = cells[name]
    reach = max(cell)
    up = [start + move for start in range(low, high - reach + 1) for move in cell]
    down = [start - move for start in range(high, low + reach - 1, -1) for move in cell]
    return up + down


def scale_study(draw: Draw) -> Study:
    """A scale in one position, straight or in sequences, from root to root."""
    scale = draw.pick(tuple(SCALES))
    if draw.chance(0.2):
        tuning, root = draw.pick(HOME_KEYS)
        classes, position = scale_classes(root, scale), 0
    else:
        tuning, root = any_guitar(draw), draw.pick(NOTE_NAMES)
        classes = scale_classes(root, scale)
        position = draw.pick(good_positions(classes, hand_view(tuning)))
    hand = hand_view(tuning)
    box = window(classes, hand, position)
    roots = [i for i, note in enumerate(box) if hand.pitch(note) % 12 == classes[0]]
    rhythm = draw.pick((EIGHTHS, EIGHTHS, SIXTEENTHS, TRIPLETS, SHUFFLE, GALLOP, WALTZ))
    places, used = [], []
    while len(places) < 4 * len(rhythm.onsets):
        name = draw.pick([name for name in SEQUENCES if name not in used])
        low = draw.pick(roots[:-1] or [0])
        high = draw.pick([i for i in (*roots, len(box) - 1) if i > low + 3] or [len(box) - 1])
        moves = sequence_steps(name, low, high)
        if not moves:
            continue
        used = [name, *used][:3]
        places += moves[1:] if places and places[-1] == moves[0] else moves
    places = without_repeats(places)[: LONGEST * len(rhythm.onsets) - 1]
    if places[-1] not in roots:
        places.append(min(roots, key=lambda i: abs(i - places[-1])))
    bars = lay_out([(box[i],) for i in places], rhythm)
    where = "open position" if position == 0 else f"position {position}"
    title = f"{root} {scale}, {where}, {' and '.join(reversed(used))}{describe(tuning)}"
    tab = Tab(title, tuning, tuple(bars), steps_per_quarter=rhythm.steps_per_quarter)
    return Study(tab, "scale", (f"{root} {scale}",) * len(bars))


def without_repeats(places: list[int]) -> list[int]:
    """The same places, but none twice in a row."""
    return [place for i, place in enumerate(places) if i == 0 or place != places[i - 1]]


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


def arpeggio_study(draw: Draw) -> Study:
    """Chord tones through a progression, a chord a bar, the hand staying in one position."""
    tuning, root = any_guitar(draw), draw.pick(NOTE_NAMES)
    hand = hand_view(tuning)
    name, degrees = draw.pick(_ARPEGGIO_CHORDS)
    chords = [chord_on(root, *degree) for degree in degrees * draw.pick((1, 1, 2))]
    position = draw.pick((0, 2, 3, 4, 5, 7, 8, 9))
    rhythm = draw.pick((EIGHTHS, EIGHTHS, TRIPLETS, SIXTEENTHS, WALTZ))
    leaps = draw.pick(((1,), (1,), (2, -1), (1, 1, -1)))
    direction, bars = 1, []
    first = window(chord_classes(chords[0]), hand, position)
    place = next(
        i for i, n in enumerate(first) if hand.pitch(n) % 12 == chord_classes(chords[0])[0]
    )
    pitch = hand.pitch(first[place])
    for chord in chords:
        tones = window(chord_classes(chord), hand, position)
        place, line = nearest(tones, hand, pitch), []
        if bars and hand.pitch(tones[place]) == pitch:
            place += direction if 0 <= place + direction < len(tones) else -direction
        for i in range(len(rhythm.onsets)):
            line.append((tones[place],))
            leap = leaps[i % len(leaps)]
            if not 0 <= place + direction * leap < len(tones):
                direction = -direction
            place += direction * leap
        pitch = hand.pitch(line[-1][0])
        bars += lay_out(line, rhythm)
    home = window(chord_classes(chords[0]), hand, position)
    if draw.chance(0.7) and degrees[0][0] == 0:
        roots = [n for n in home if hand.pitch(n) % 12 == pitch_class(root)]
        bars.append(make_bar(rhythm.steps, {0: [roots[nearest(roots, hand, pitch)]]}))
        chords.append(chords[0])
    where = "open position" if position == 0 else f"position {position}"
    title = f"Arpeggios in {root}, {name}, {where}, {rhythm.name}{describe(tuning)}"
    return Study(
        Tab(title, tuning, tuple(bars), steps_per_quarter=rhythm.steps_per_quarter),
        "arpeggio",
        tuple(chords),
    )


def double_stop_study(draw: Draw) -> Study:
    """A scale in thirds or sixths that climbs the neck on two strings."""
    tuning, root = any_guitar(draw), draw.pick(("C", "G", "D", "A", "E", "F"))
    hand = hand_view(tuning)
    scale = draw.pick(("major", "major", "minor", "dorian", "mixolydian"))
    classes = scale_classes(root, scale)
    name, distance, pairs = draw.pick(
        (("thirds", 2, ((2, 1), (3, 2))), ("sixths", 5, ((3, 1), (4, 2))))
    )
    low, high = draw.pick(pairs)
    ladder = scale_ladder(classes, hand, low, high, distance, top=13)
    rhythm = draw.pick((EIGHTHS, EIGHTHS, SHUFFLE, WALTZ))
    shape = draw.pick(("up and down", "thirds", "groups of three", "groups of four"))
    places = without_repeats(sequence_steps(shape, 0, len(ladder) - 1))
    while len(places) < 4 * len(rhythm.onsets):
        places = without_repeats([*places, *places])
    roots = [i for i, pair in enumerate(ladder) if hand.pitch(pair[0]) % 12 == classes[0]]
    places = places[: 8 * len(rhythm.onsets) - 1]
    if places[-1] not in roots:
        places.append(min(roots, key=lambda i: abs(i - places[-1])))
    bars = lay_out([ladder[i] for i in places], rhythm)
    title = f"{root} {scale} in {name} on strings {low} and {high}, {shape}{describe(tuning)}"
    return Study(
        Tab(title, tuning, tuple(bars), steps_per_quarter=rhythm.steps_per_quarter),
        "double stops",
        (f"{root} {scale}",) * len(bars),
    )


def scale_ladder(
    classes: list[int], tuning: Tuning, low: int, high: int, distance: int, top: int
) -> list[tuple[Note, Note]]:
    """Pairs of scale notes `distance` degrees apart on two strings, from the nut to fret `top`."""
    pitches = [p for p in range(tuning.pitch(Note(low, 0)), 100) if p % 12 in classes]
    ladder = []
    for lower, upper in zip(pitches, pitches[distance:], strict=False):
        pair = (
            Note(low, lower - tuning.pitch(Note(low, 0))),
            Note(high, upper - tuning.pitch(Note(high, 0))),
        )
        if all(0 <= note.fret <= top for note in pair) and is_playable(pair):
            ladder.append(pair)
    return ladder
