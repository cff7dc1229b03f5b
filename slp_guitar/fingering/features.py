"""What the fitted costs of a fingering look at: named features of grips, hands and moves.

A fingering costs the sum of its features, each times its weight (`fitted_costs`). A feature is a
small whole number that says what is asked of a hand: a finger on a string, frets moved, a pitch
that was played elsewhere a moment ago. Most are relative, to the hand or to the grip before, so
that what was fitted in one place of the neck holds in another.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from slp_guitar.fingering.grips import Grip
from slp_guitar.fingering.ringing import Held, find_released_notes

Features = Iterable[tuple[str, int]]
"""Names with their values; of a name that is there twice the values add up."""

HAND_FRETS = range(1, 16)
"""Frets at which the index finger may lie: the hand is there."""
NUM_STRING_FEATURES = 6
"""Strings with weights of their own; further ones count as the last."""
TIME_CLASSES = ("unknown", "short", "usual", "long")
"""Time since the moment before, against the piece's median (`classify_gaps`)."""
MEMORY_LAGS = (4, 16, 64)
"""Moments after which a pitch's last place is remembered less; after the last one no more."""
CUT = "cut notes"
RELEASED = "held notes that the hand leaves"
OTHER_GRIP = "other grip than for the same chord"
MOVABLE_CHORDS = ((0, 5), (0, 7), (0, 12), (0, 7, 12))
"""Half steps above the lowest note: fourths, fifths and octaves, which one shape takes anywhere."""
MOVABLE_OPEN = "movable chord: open strings beside fretted ones"
MOVABLE_FRETS = "movable chord: frets used and strings skipped"
COMPING_OPEN = "comping chord: open strings"
COMPING_NOTES = 4
"""Notes of a comping chord at least, each of another pitch class: a seventh chord, say."""
MIN_STYLE_CHORDS = 3
MIN_STYLE_SHARE = 2 / 3


def elsewhere_within(lag: int) -> str:
    """Return the name of a pitch on another string than so many moments before, 1 to 64."""
    return f"elsewhere than within {next(most for most in MEMORY_LAGS if lag <= most)} moments"


def grip_features(grip: Grip) -> Features:
    """Yield the features of a grip wherever the hand is; its notes are in order of pitch."""
    frets = [fret for _, fret in grip if fret]
    for fret in frets:
        yield "frets", fret
        yield "frets above 4", max(0, fret - 4)
        yield "frets above 7", max(0, fret - 7)
        yield "frets above 12", max(0, fret - 12)
    if len(grip) == 1:
        yield f"alone on string {min(grip[0].string, NUM_STRING_FEATURES)}", 1
        yield "alone open", 1 - len(frets)
        return
    strings = [string for string, _ in grip]
    yield "chord: open strings", len(grip) - len(frets)
    yield "chord: skipped strings", max(strings) - min(strings) + 1 - len(grip)
    yield f"chord: top on string {min(strings[-1], 4)}", 1
    yield f"chord: bass on string {min(max(strings[0], 3), NUM_STRING_FEATURES)}", 1
    yield "chord: strings crossed", sum(a < b for a, b in zip(strings, strings[1:], strict=False))
    if frets:
        yield "chord: span", max(frets) - min(frets)
        yield "chord: frets used", len(set(frets))


def find_style(moments: Sequence[tuple[int, ...]]) -> str:
    """Return what most chords of a piece are: "movable" power chords and octaves, or "comping".

    Args:
        moments: the pitches of each moment, lowest first.
    """
    chords = [own for own in moments if len(own) > 1]
    counts = {
        "movable": sum(tuple(p - own[0] for p in own) in MOVABLE_CHORDS for own in chords),
        "comping": sum(len({p % 12 for p in own}) == len(own) >= COMPING_NOTES for own in chords),
    }
    least = max(MIN_STYLE_CHORDS, MIN_STYLE_SHARE * len(chords))
    return next((style for style, count in counts.items() if count >= least), "")


def style_features(grip: Grip, style: str) -> Features:
    """Yield the features of a grip in a piece of a style (`find_style`).

    Comping has no open strings. Movable chords have few fingers and no open strings, but over a
    bass that is open, too, with the hand in the first position; octaves skip a string instead.
    """
    frets = [fret for _, fret in grip if fret]
    if style == "comping" and len(grip) > 1:
        yield COMPING_OPEN, len(grip) - len(frets)
    if style == "movable" and len(grip) > 1 and frets:
        strings = [string for string, _ in grip]
        skipped = max(strings) - min(strings) + 1 - len(grip)
        is_octave = len(grip) == 2 and skipped > 0 and grip[1].fret > grip[0].fret
        is_movable = is_octave or grip[0].fret > 0 or max(frets) > 4
        yield MOVABLE_OPEN, (len(grip) - len(frets)) * is_movable
        yield MOVABLE_FRETS, len({fret for _, fret in grip}) + skipped - is_octave


def hand_features(grip: Grip, hand_fret: int) -> Features:
    """Yield the features of a grip that a hand takes whose index finger is at a fret."""
    yield f"hand at {min(hand_fret, 12)}", 1
    kind = "alone" if len(grip) == 1 else "chord"
    for _, fret in grip:
        apart = fret - hand_fret
        if fret == 0:
            yield f"{kind}: open, hand above 3", int(hand_fret > 3)
            yield f"{kind}: open, frets of the hand above 3", max(0, hand_fret - 3)
        elif apart < 0:
            yield "behind the index", 1
            yield "frets behind the index", -apart
        elif apart > 3:
            yield "stretch", 1
            yield "frets of stretch", apart - 3
        else:
            yield f"{kind}: finger {apart + 1}", 1
    if sum(fret == hand_fret for _, fret in grip) > 1:
        yield "barre or two fingers at the index", 1


def move_features(from_fret: int, to_fret: int, time_class: str, was_open: bool) -> Features:
    """Yield the features of a move of the hand.

    Args:
        from_fret: where the index finger was.
        to_fret: where it is now.
        time_class: one of `TIME_CLASSES`.
        was_open: whether the grip before needed no finger.
    """
    apart = abs(to_fret - from_fret)
    if apart == 0:
        return
    yield f"move, time {time_class}", 1
    yield f"frets moved, time {time_class}", apart
    yield "move by 1", int(apart == 1)
    yield "move by 2", int(apart == 2)
    yield "frets moved beyond 4", max(0, apart - 4)
    if was_open:
        yield "move from open strings", 1
        yield "frets moved from open strings", apart


def pair_features(
    before: Grip, grip: Grip, pitches_before: Sequence[int], pitches: Sequence[int]
) -> Features:
    """Yield the features of two grips in a row, wherever the hand is."""
    if len(before) == len(grip) == 1:
        yield from _line_features(before[0], grip[0], pitches[0] - pitches_before[0])
        return
    for name, k in (("top", -1), ("bass", 0)):
        strings = grip[k].string - before[k].string
        interval = pitches[k] - pitches_before[k]
        if strings:
            yield f"{name}: another string", 1
            yield f"{name}: strings crossed", abs(strings) - 1
            yield f"{name}: against the pitch", int(strings * interval > 0)
        elif abs(interval) > 4:
            yield f"{name}: leap along a string", 1
    places = dict(zip(pitches_before, before, strict=True))
    for pitch, note in zip(pitches, grip, strict=True):
        yield "pitch repeated elsewhere", int(pitch in places and places[pitch] != note)
    if len(before) == len(grip) and [n.string for n in before] == [n.string for n in grip]:
        apart = {b.fret - a.fret for a, b in zip(before, grip, strict=True)}
        yield "same strings", 1
        is_moved = len(apart) == 1 and all(note.fret for note in (*before, *grip))
        yield "same shape", int(is_moved)


def _line_features(before: tuple[int, int], note: tuple[int, int], interval: int) -> Features:
    """Yield the features of a note after another, `interval` half steps higher."""
    strings, size = note[0] - before[0], abs(interval)
    if size == 0:
        yield "pitch repeated elsewhere", int(strings != 0)
        return
    step = "step" if size <= 2 else "third" if size <= 4 else "leap"
    yield f"line: {step}, {min(abs(strings), 3)} strings on", 1
    # String 1 is the highest, so that a higher note is expected on a string of a lower number.
    yield "line: against the pitch", int(strings * interval > 0)
    if before[1] == 0 or note[1] == 0:
        yield "line: between open and fretted on a string", int(strings == 0)


class Memory(NamedTuple):
    """Where the notes of a fingering were played last.

    Attributes:
        places: of each pitch, its string and the moment's number.
        chords: of each chord, its grip.
    """

    places: Mapping[int, tuple[int, int]]
    chords: Mapping[tuple[int, ...], Grip]

    def remember(self, t: int, pitches: tuple[int, ...], grip: Grip) -> "Memory":
        """Return what is remembered after a moment."""
        own = {p: (note.string, t) for p, note in zip(pitches, grip, strict=True)}
        chords = {**self.chords, pitches: grip} if len(grip) > 1 else self.chords
        return Memory({**self.places, **own}, chords)


def memory_features(t: int, pitches: tuple[int, ...], grip: Grip, memory: Memory) -> Features:
    """Yield the features of a grip of a moment against what was played before the last moment."""
    for pitch, note in zip(pitches, grip, strict=True):
        string, when = memory.places.get(pitch, (0, 0))
        lag = t - when
        if string and 1 < lag <= MEMORY_LAGS[-1]:
            yield elsewhere_within(lag), int(string != note.string)
    if len(grip) > 1 and pitches in memory.chords:
        yield OTHER_GRIP, int(memory.chords[pitches] != grip)


def ringing_features(held: Held, grip: Grip) -> Features:
    """Yield the features of a grip that is struck while notes ring on."""
    strings = {note.string for note in grip}
    yield CUT, sum(one.string in strings for one in held)
    yield RELEASED, len(find_released_notes(held, grip))


def classify_gaps(onsets: Sequence[float | None]) -> list[str]:
    """Return the time class of each moment: of the time since the moment before."""
    gaps = [
        None if a is None or b is None or b <= a else b - a
        for a, b in zip(onsets, onsets[1:], strict=False)
    ]
    known = sorted(gap for gap in gaps if gap is not None)
    if not known:
        return ["unknown"] * len(onsets)
    usual = known[len(known) // 2]
    return [
        "unknown",
        *(
            "unknown"
            if gap is None
            else "short"
            if gap < 0.75 * usual
            else "long"
            if gap > 1.5 * usual
            else "usual"
            for gap in gaps
        ),
    ]
