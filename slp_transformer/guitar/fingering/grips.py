"""Grips: the ways in which one hand can take the notes that sound together.

A pitch has several places on the neck, but the notes of a chord bind each other: each needs a
string of its own, and the fretted ones have to lie within the hand's span. So a chord's notes are
not placed one by one: its grips are listed, and one of them is chosen.
"""

from collections.abc import Sequence
from functools import lru_cache

from slp_transformer.guitar.fretboard import (
    MAX_FRET,
    MAX_SPAN,
    Note,
    Tuning,
    format_pitch,
    is_playable_grip,
)

Grip = tuple[Note, ...]


class UnplayableError(ValueError):
    """Notes that no hand can take together on this guitar; the message says why."""


@lru_cache(maxsize=65536)
def find_grips(
    pitches: tuple[int, ...], tuning: Tuning, max_fret: int = MAX_FRET, max_span: int = MAX_SPAN
) -> tuple[Grip, ...]:
    """Every way to take notes together: distinct strings, frets on the neck, within the span.

    Args:
        pitches: MIDI pitches of the notes. Of equal ones, the first takes the lower string.
        tuning: the guitar.
        max_fret: last fret of the neck, counted from the nut.
        max_span: most frets between the lowest and the highest fretted note.

    Returns:
        The grips, each with one note a pitch, in the order of `pitches`; none if there are none.
    """
    if len(pitches) > len(tuning.open_pitches):
        return ()
    grips: list[Grip] = [()]
    for pitch in pitches:
        places = tuning.positions_of(pitch, max_fret)
        grips = [
            (*grip, note)
            for grip in grips
            for note in places
            if is_playable_grip((*grip, note), max_span)
            and all(
                earlier != pitch or note.string < other.string
                for earlier, other in zip(pitches, grip, strict=False)
            )
        ]
    return tuple(grips)


def find_playable_grips(
    pitches: tuple[int, ...], tuning: Tuning, max_fret: int = MAX_FRET, max_span: int = MAX_SPAN
) -> tuple[Grip, ...]:
    """The grips within the span; if there are none, those that stretch the hand least beyond it.

    Raises:
        UnplayableError: if there is no grip however far the hand stretches, naming what is in the
            way: a pitch, the number of strings, or two notes that need the same one.
    """
    for span in range(min(max_span, max_fret), max_fret + 1):
        if found := find_grips(pitches, tuning, max_fret, span):
            return found
    raise UnplayableError(explain_unplayable(pitches, tuning, max_fret))


def allowed_next_notes(grip: Grip, pitches: tuple[int, ...], tuning: Tuning) -> list[Note]:
    """Return places for a chord's next note that leave a place for all of the notes after it.

    Args:
        grip: the places of the first notes.
        pitches: the pitches of the whole chord.
        tuning: the guitar.

    Returns:
        The places, each once, lowest string first.

    Raises:
        UnplayableError: as `find_playable_grips`.
    """
    count = len(grip)
    wholes = find_playable_grips(pitches, tuning)
    places = {whole[count] for whole in wholes if whole[:count] == grip}
    return sorted(places, key=lambda note: -note.string)


def explain_unplayable(pitches: tuple[int, ...], tuning: Tuning, max_fret: int = MAX_FRET) -> str:
    """Why notes have no grip, in words that end without a full stop."""
    for pitch in pitches:
        if not tuning.positions_of(pitch, max_fret):
            lowest = format_pitch(min(tuning.open_pitches) + tuning.capo)
            highest = format_pitch(max(tuning.open_pitches) + max_fret)
            name = format_pitch(pitch)
            return f"{name} is not on this neck, which goes from {lowest} to {highest}"
    strings = len(tuning.open_pitches)
    if len(pitches) > strings:
        return f"{len(pitches)} notes at once need more than {strings} strings"
    names = ", ".join(map(format_pitch, pitches))
    return f"{names} cannot sound together: one needs a string that another takes"


def finger_lowest_frets(moments: Sequence[tuple[int, ...]], tuning: Tuning) -> list[Grip]:
    """Each note on the lowest fret that is left, the lowest note of a chord first.

    Spans are not looked at: this is the rule of many tab editors.

    Raises:
        UnplayableError: for the first moment whose notes do not find a string each.
    """
    return [
        min(
            find_playable_grips(p, tuning, max_span=MAX_FRET),
            key=lambda grip: [n.fret for n in grip],
        )
        for p in moments
    ]
