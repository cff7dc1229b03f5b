"""Grips: the ways in which one hand can take the notes that sound together.

A pitch has several places on the neck, but the notes of a chord bind each other: each needs a
string of its own, and one hand has to take the fretted ones. So a chord's notes are not placed one
by one: its grips are listed, and one of them is chosen.
"""

from collections.abc import Sequence
from functools import lru_cache

from slp_guitar.fretboard import (
    MAX_FRET,
    MAX_SPAN,
    Note,
    Tuning,
    format_pitch,
    get_scale_length,
    is_playable_grip,
)
from slp_guitar.hand import NUM_FINGERS, explain_impossible_grip

Grip = tuple[Note, ...]


class UnplayableError(ValueError):
    """Notes that no hand can take together on this guitar; the message says why."""


@lru_cache(maxsize=65536)
def find_placements(
    pitches: tuple[int, ...], tuning: Tuning, max_fret: int = MAX_FRET, max_span: int = MAX_FRET
) -> tuple[Grip, ...]:
    """Every way to place notes on strings of their own within a span, whether or not a hand can.

    Args:
        pitches: MIDI pitches of the notes. Of equal ones, the first takes the lower string.
        tuning: the guitar.
        max_fret: last fret of the neck, counted from the nut.
        max_span: most frets between the lowest and the highest fretted note.

    Returns:
        The placements, each with one note a pitch, in the order of `pitches`.
    """
    if len(pitches) > len(tuning.open_pitches):
        return ()
    placements: list[Grip] = [()]
    for pitch in pitches:
        places = tuning.positions_of(pitch, max_fret)
        placements = [
            (*grip, note)
            for grip in placements
            for note in places
            if _fits_span((*grip, note), max_span)
            and all(
                earlier != pitch or note.string < other.string
                for earlier, other in zip(pitches, grip, strict=False)
            )
        ]
    return tuple(placements)


def _fits_span(grip: Grip, max_span: int) -> bool:
    """Return whether no string is used twice, and the fretted notes are within a span."""
    frets = [note.fret for note in grip if note.fret]
    is_near = not frets or max(frets) - min(frets) <= max_span
    return is_near and len({note.string for note in grip}) == len(grip)


@lru_cache(maxsize=65536)
def find_grips(
    pitches: tuple[int, ...], tuning: Tuning, max_fret: int = MAX_FRET, max_span: int = MAX_SPAN
) -> tuple[Grip, ...]:
    """Every way in which one hand can take notes together, as `is_playable_grip` has it.

    Args:
        pitches: as for `find_placements`.
        tuning: the guitar.
        max_fret: last fret of the neck, counted from the nut.
        max_span: most frets between the lowest and the highest fretted note.

    Returns:
        The grips, each with one note a pitch, in the order of `pitches`; none if there are none.
    """
    placements = find_placements(pitches, tuning, max_fret, max_span)
    return tuple(grip for grip in placements if is_playable_grip(grip, max_span, tuning))


def find_playable_grips(
    pitches: tuple[int, ...], tuning: Tuning, max_fret: int = MAX_FRET, max_span: int = MAX_SPAN
) -> tuple[Grip, ...]:
    """The grips within the span; if there are none, the narrowest beyond it that a hand can take.

    Raises:
        UnplayableError: if no hand can take the notes, naming what is in the way: a pitch, the
            number of strings, two notes that need the same one, a stretch, or too many fingers.
    """
    for span in range(min(max_span, max_fret), max_fret + 1):
        if found := find_grips(pitches, tuning, max_fret, span):
            return found
    raise UnplayableError(explain_unplayable(pitches, tuning, max_fret))


def find_grips_or_placements(
    pitches: tuple[int, ...], tuning: Tuning, max_span: int = MAX_SPAN
) -> tuple[Grip, ...]:
    """The playable grips or, where no hand can take what people wrote, the narrowest placements.

    This is for learning from tabs and comparing with them.

    Raises:
        UnplayableError: if not even strings of their own can be found.
    """
    try:
        return find_playable_grips(pitches, tuning, max_span=max_span)
    except UnplayableError:
        for span in range(MAX_FRET + 1):
            if found := find_placements(pitches, tuning, MAX_FRET, span):
                return found
        raise


def allowed_next_notes(grip: Grip, pitches: tuple[int, ...], tuning: Tuning) -> list[Note]:
    """Return places for a chord's next note that leave a place for all of the notes after it.

    Args:
        grip: the places of the first notes.
        pitches: the pitches of the whole chord.
        tuning: the guitar.

    Returns:
        The places, each once, lowest string first.

    Raises:
        UnplayableError: as `find_grips_or_placements`.
    """
    count = len(grip)
    wholes = find_grips_or_placements(pitches, tuning)
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
    scale = get_scale_length(tuning)
    placements = find_placements(pitches, tuning, max_fret)
    refusals = {explain_impossible_grip(grip, scale, tuning.capo) for grip in placements}
    if "too wide" in refusals:
        return f"{names} are too wide apart for one hand"
    if refusals:
        return f"{names} need more than {NUM_FINGERS} fingers"
    return f"{names} cannot sound together: one needs a string that another takes"


def place_on_lowest_frets(moments: Sequence[tuple[int, ...]], tuning: Tuning) -> list[Grip]:
    """Each note on the lowest fret that is left, the lowest note of a chord first.

    Hands are not looked at: this is the rule of many tab editors.

    Raises:
        UnplayableError: for the first moment whose notes do not find a string each.
    """
    found = []
    for pitches in moments:
        if not (placements := find_placements(pitches, tuning)):
            raise UnplayableError(explain_unplayable(pitches, tuning))
        found.append(min(placements, key=lambda grip: [note.fret for note in grip]))
    return found
