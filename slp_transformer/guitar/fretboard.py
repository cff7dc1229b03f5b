"""The fretboard: strings, frets, tunings, and what one hand can hold.

Strings are numbered as guitarists number them: 1 is the highest-sounding string and 6 the lowest.
Pitches are MIDI note numbers (60 is middle C). Frets are counted from the nut, or from the capo
where there is one; fret 0 is the open string.
"""

from dataclasses import dataclass
from typing import NamedTuple

MAX_FRET = 19
MAX_SPAN = 4


class Note(NamedTuple):
    """One place on the fretboard: a string (1 is the highest) and a fret (0 is open)."""

    string: int
    fret: int


@dataclass(frozen=True)
class Tuning:
    """The open strings of a guitar, and its capo.

    Attributes:
        open_pitches: MIDI pitch of each open string, string 1 (the highest) first.
        capo: the fret that the capo is on; 0 for none.
    """

    open_pitches: tuple[int, ...] = (64, 59, 55, 50, 45, 40)
    capo: int = 0

    def pitch(self, note: Note) -> int:
        """MIDI pitch of a note on this guitar.

        Raises:
            ValueError: if the guitar has no such string, or the fret is negative.
        """
        string, fret = note
        if not 1 <= string <= len(self.open_pitches):
            raise ValueError(
                f"String {string} does not exist: this tuning has strings 1 (highest) "
                f"to {len(self.open_pitches)}."
            )
        if fret < 0:
            raise ValueError(f"Fret {fret} does not exist: frets start at 0, the open string.")
        return self.open_pitches[string - 1] + self.capo + fret

    def positions(self, pitch: int, max_fret: int = MAX_FRET) -> list[Note]:
        """Every note on the fretboard that sounds at `pitch`, lowest string first."""
        top = max_fret - self.capo
        return [
            Note(string, pitch - open_pitch - self.capo)
            for string, open_pitch in reversed(list(enumerate(self.open_pitches, start=1)))
            if 0 <= pitch - open_pitch - self.capo <= top
        ]


STANDARD = Tuning()
DROP_D = Tuning((64, 59, 55, 50, 45, 38))
DOUBLE_DROP_D = Tuning((62, 59, 55, 50, 45, 38))
OPEN_G = Tuning((62, 59, 55, 50, 43, 38))
OPEN_D = Tuning((62, 57, 54, 50, 45, 38))
DADGAD = Tuning((62, 57, 55, 50, 45, 38))
HALF_STEP_DOWN = Tuning((63, 58, 54, 49, 44, 39))


def is_playable(notes: tuple[Note, ...] | list[Note], max_span: int = MAX_SPAN) -> bool:
    """Whether one hand can hold these notes together.

    True when every note has a string of its own and the fretted notes lie at most `max_span` frets
    apart (open strings need no finger).
    """
    strings = [note.string for note in notes]
    fretted = [note.fret for note in notes if note.fret > 0]
    one_each = len(set(strings)) == len(strings)
    return one_each and (not fretted or max(fretted) - min(fretted) <= max_span)
