"""Notes that ring on, and are cut where their string is struck again too early."""

from collections.abc import Sequence
from typing import NamedTuple

from slp_guitar.fingering.grips import Grip
from slp_guitar.fretboard import MAX_SPAN

HEARD_SHARE = 0.9
"""Share of a note's duration after which its string may be struck again, and nobody misses it."""


class HeldNote(NamedTuple):
    """A note that rings on: its string, the time until which it should, and its fret."""

    string: int
    end: float
    fret: int


Held = tuple[HeldNote, ...]
"""The notes that ring on, by string."""


class Ringing(NamedTuple):
    """When the notes of a piece begin, and until when they should ring.

    Attributes:
        onsets: when each moment begins; None where that is not known.
        ends: of each note of each moment, until when its string should be left alone; 0 where no
            duration is known.
    """

    onsets: Sequence[float | None]
    ends: Sequence[Sequence[float]]

    def held_after(self, t: int, held: Sequence[HeldNote], grip: Grip) -> Held:
        """Return what rings on when the moment after `t` begins, if a grip is struck at `t`."""
        then = next(iter(self.onsets[t + 1 : t + 2]), None)
        if then is None:
            return ()
        # A moment of which no duration is known has no ends.
        pairs = zip(grip, self.ends[t], strict=False)
        struck = [HeldNote(note.string, end, note.fret) for note, end in pairs]
        strings = {note.string for note in grip}
        left = [one for one in held if one.string not in strings]
        return tuple(sorted(one for one in left + struck if one.end > then))


def find_released_notes(held: Held, grip: Grip) -> list[HeldNote]:
    """Return the held notes whose strings a grip leaves alone, and whose frets are out of reach."""
    strings = {note.string for note in grip}
    frets = [note.fret for note in grip if note.fret]
    return [
        one
        for one in held
        if one.fret
        and one.string not in strings
        and any(abs(fret - one.fret) > MAX_SPAN for fret in frets)
    ]


def make_ringing(
    onsets: Sequence[float | None], durations: Sequence[Sequence[float]]
) -> Ringing | None:
    """Return what should ring, from onsets and durations in any unit; None if no duration is known.

    Args:
        onsets: of each moment.
        durations: of each note of each moment; 0 where not known, or no list where none is.
    """
    if not any(map(any, durations)):
        return None
    ends = [
        [0.0 if onset is None or not one else onset + HEARD_SHARE * one for one in own]
        for onset, own in zip(onsets, durations, strict=True)
    ]
    return Ringing(onsets, ends)


def count_held_and_cut_notes(grips: Sequence[Grip], ringing: Ringing | None) -> tuple[int, int]:
    """Count the notes that should ring on while others begin, and those of them that are cut."""
    num_held, num_cut = 0, 0
    held: Held = ()
    if ringing is None:
        return 0, 0
    for t, grip in enumerate(grips):
        num_cut += _count_restruck_strings(held, grip)
        before = {one.string for one in held} - {note.string for note in grip}
        held = ringing.held_after(t, held, grip)
        num_held += sum(one.string not in before for one in held)
    return num_held, num_cut


def _count_restruck_strings(held: Held, grip: Grip) -> int:
    """Return how many strings that ring on a grip strikes."""
    strings = {one.string for one in held}
    return sum(note.string in strings for note in grip)
