"""The fretboard: strings, frets, tunings, and what one hand can hold.

Strings are numbered as guitarists number them: 1 is the highest-sounding string and 6 the lowest.
Pitches are MIDI note numbers (60 is middle C). Frets are counted from the nut, or from the capo
where there is one; fret 0 is the open string.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from slp_guitar.hand import explain_impossible_grip

MAX_FRET = 19
FRETS_OF_LONG_NECKS = 24
"""Where a part needs it, and nobody says how many frets the neck has."""
MAX_SPAN = 4
MAX_CAPO = 12


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

    def pitch_of(self, note: Note) -> int:
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

    def positions_of(self, pitch: int, max_fret: int = MAX_FRET) -> list[Note]:
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

TUNINGS: dict[str, Tuning] = {
    "standard": STANDARD,
    "drop-D": DROP_D,
    "double-drop-D": DOUBLE_DROP_D,
    "open-G": OPEN_G,
    "open-D": OPEN_D,
    "DADGAD": DADGAD,
    "half-step-down": HALF_STEP_DOWN,
    # Classical and lute music: the third string at F sharp as on a lute, or lower bass strings.
    "lute": Tuning((64, 59, 54, 50, 45, 40)),
    "lute-drop-D": Tuning((64, 59, 54, 50, 45, 38)),
    "drop-D-and-G": Tuning((64, 59, 55, 50, 43, 38)),
}
"""The tunings that have a name and a token, without a capo."""

NAMED_TUNINGS: dict[str, Tuning] = TUNINGS | {
    "drop-C": Tuning((62, 57, 53, 48, 43, 36)),
    "open-E": Tuning((64, 59, 56, 52, 47, 40)),
    "open-A": Tuning((64, 61, 57, 52, 45, 40)),
    "open-C": Tuning((64, 60, 55, 48, 43, 36)),
    "open-Dm": Tuning((62, 57, 53, 50, 45, 38)),
    "open-Em": Tuning((64, 59, 55, 52, 47, 40)),
    "open-Gm": Tuning((62, 58, 55, 50, 43, 38)),
    "Nashville": Tuning((64, 59, 67, 62, 57, 52)),  # the lower four an octave up
    "baritone": Tuning((59, 54, 50, 45, 40, 35)),
    "seven-string": Tuning((64, 59, 55, 50, 45, 40, 35)),
    "eight-string": Tuning((64, 59, 55, 50, 45, 40, 35, 30)),
    "bass": Tuning((43, 38, 33, 28)),
    "bass-5": Tuning((43, 38, 33, 28, 23)),
    "ukulele": Tuning((69, 64, 60, 67)),
    "ukulele-low-G": Tuning((69, 64, 60, 55)),
    "mandolin": Tuning((76, 69, 62, 55)),
    "banjo": Tuning((62, 59, 55, 50, 67)),
}
"""All tunings that have a name. Those without a token are none that models write for."""

TUNINGS_TO_TRY = ("standard", "drop-D", "bass", "bass-5", "drop-C", "seven-string", "eight-string")
"""What pieces that name no guitar are fingered for: the first that holds every note."""
INSTRUMENTS = {"bass": ("bass", "bass-5"), "ukulele": ("ukulele", "ukulele-low-G")}
"""What a part that is called so is fingered for before that, by the word in its name."""
_PART_PATTERN = re.compile(r"(?:\w+ )?(bass|ukulele)(?: guitar)?(?: \d+)?", re.I)

_SHARP_NAMES = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")
_FLAT_NAMES = ("C", "Db", "D", "Eb", "E", "F", "Gb", "G", "Ab", "A", "Bb", "B")


def get_tuning_name(tuning: Tuning) -> str | None:
    """Name of a tuning in `TUNINGS`, whatever its capo; None for one that has no name."""
    return _find_name(tuning, TUNINGS)


def describe_tuning(tuning: Tuning) -> str:
    """Name of a tuning in `NAMED_TUNINGS`, or its strings with octaves, the lowest first."""
    strings = " ".join(map(format_pitch, reversed(tuning.open_pitches)))
    return _find_name(tuning, NAMED_TUNINGS) or strings


def _find_name(tuning: Tuning, named: dict[str, Tuning]) -> str | None:
    """Name of a tuning among some, whatever its capo."""
    pitches = tuning.open_pitches
    return next((name for name, known in named.items() if known.open_pitches == pitches), None)


def find_tuning_by_letters(letters: list[str]) -> Tuning | None:
    """Return the first of `NAMED_TUNINGS` whose strings from the lowest have these letters.

    Where none has them, each string is the nearest one to that of a bass, of a guitar of seven or
    of eight strings; None for other numbers of strings, and for what is no letter of a note.
    """
    sharps = {flat: sharp for flat, sharp in zip(_FLAT_NAMES, _SHARP_NAMES, strict=True)}
    wanted = [sharps.get(name, name) for name in (one[:1].upper() + one[1:] for one in letters)]
    if not set(wanted) <= set(_SHARP_NAMES):
        return None
    classes = tuple(_SHARP_NAMES.index(name) for name in reversed(wanted))
    for known in NAMED_TUNINGS.values():
        if tuple(pitch % 12 for pitch in known.open_pitches) == classes:
            return known
    base = {4: "bass", 5: "bass-5", 7: "seven-string", 8: "eight-string"}.get(len(classes))
    if base is None:
        return None
    near = zip(NAMED_TUNINGS[base].open_pitches, classes, strict=True)
    return Tuning(tuple(pitch + (one - pitch + 6) % 12 - 6 for pitch, one in near))


def find_nearest_tuning(
    counts: Mapping[int, int], max_fret: int = MAX_FRET, part: str = "", max_strings: int = 8
) -> tuple[str, int]:
    """Return the first name in `TUNINGS_TO_TRY` that lacks the fewest notes, and how many it lacks.

    A part that is called bass or ukulele, as in "Bass Guitar", is tried there first.

    Args:
        counts: how many notes have a pitch.
        max_fret: the highest fret.
        part: what the part is called.
        max_strings: how many the guitar may have.
    """
    named = _PART_PATTERN.fullmatch(part.strip())
    lost: dict[str, int] = {}
    for name in (*(INSTRUMENTS[named[1].lower()] if named else ()), *TUNINGS_TO_TRY):
        tuning = NAMED_TUNINGS[name]
        if len(tuning.open_pitches) <= max_strings:
            lost[name] = sum(n for p, n in counts.items() if not tuning.positions_of(p, max_fret))
    best = min(lost, key=lost.__getitem__)
    return best, lost[best]


def format_pitch(pitch: int) -> str:
    """Letter and octave of a MIDI pitch, with sharps.

    >>> format_pitch(40)
    'E2'
    """
    return f"{_SHARP_NAMES[pitch % 12]}{pitch // 12 - 1}"


def midi_program(tuning: Tuning) -> int:
    """Return General MIDI's steel guitar, or finger bass if the lowest string is below B1.

    For notes without strings it is a piano.
    """
    if not any(tuning.open_pitches):
        return 0
    return 33 if min(tuning.open_pitches) < 35 else 25


def get_string_names(tuning: Tuning) -> list[str]:
    """Letter names of the open strings without the capo, string 1 (the highest) first.

    As players write them: F# where it is the only black key (open D, lute tunings), otherwise flats
    (a guitar tuned down by a half step is Eb Ab Db Gb Bb Eb).

    >>> get_string_names(STANDARD)
    ['E', 'B', 'G', 'D', 'A', 'E']
    """
    classes = [pitch % 12 for pitch in tuning.open_pitches]
    black = {pitch_class for pitch_class in classes if len(_SHARP_NAMES[pitch_class]) == 2}
    names = _FLAT_NAMES if black - {6} else _SHARP_NAMES
    return [names[pitch_class] for pitch_class in classes]


def get_scale_length(tuning: Tuning) -> int:
    """Return the usual length of the open strings in millimeters: that of an instrument so tuned.

    Four strings from C3 up are a ukulele's; a highest string below F3 is a bass's, and one up to B3
    a baritone guitar's.
    """
    lowest, highest = min(tuning.open_pitches), max(tuning.open_pitches)
    if len(tuning.open_pitches) == 4 and lowest >= 48:
        return 380
    if highest < 53:
        return 864
    return 700 if highest <= 59 else 650


def is_playable_grip(
    notes: tuple[Note, ...] | list[Note], max_span: int = MAX_SPAN, tuning: Tuning = STANDARD
) -> bool:
    """Return whether one hand can hold these notes together.

    True when a hand takes them (`slp_guitar.hand`) and the fretted notes lie at most
    `max_span` frets apart (open strings need no finger).
    """
    fretted = [note.fret for note in notes if note.fret > 0]
    if fretted and max(fretted) - min(fretted) > max_span:
        return False
    return not explain_impossible_grip(notes, get_scale_length(tuning), tuning.capo)
