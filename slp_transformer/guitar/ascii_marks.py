r"""Techniques, as marks next to frets in ASCII tablature show them.

``5h7`` is a hammer, ``7p5`` a pull, ``5/7`` and ``7\5`` slides, ``7~`` a vibrato, ``<12>`` a
harmonic, ``7b9`` a bend by a whole step: a string is struck once, at the first fret, and bent.
"""

import re

from slp_transformer.guitar.fretboard import Note
from slp_transformer.guitar.tab import Technique

_BEND_PATTERN = re.compile(
    r"(?<=[0-9])b(?:\(?(?:(?P<part>[13])/(?P<of>[24])|(?P<fret>[0-9]{1,2}))\)?"
    r"(?:r\(?[0-9]{1,2}\)?)?)?"
)
_STRUCK_FRET_PATTERN = re.compile(r"([0-9]{1,2})$")
WHOLE_STEP_QUARTER_TONES = 4
"""Quarter tones of a bend that does not say how far it goes: a whole step."""
BEND_MARK_BASE = 0xE000  # from here on, beyond what people write: a bend of so many quarter tones
MAX_BEND_QUARTER_TONES = 24
TECHNIQUE_OF_MARK = {"h": "hammer", "H": "hammer", "p": "pull", "P": "pull", "~": "vibrato"}
TECHNIQUE_OF_MARK |= {"/": "slide", "\\": "slide"}
_DEAD_NOTE_PATTERN = re.compile(r"(?<=[-|])[xX](?=[-|])")


def encode_bends(row: str) -> str:
    """Replace each bend of a row, and the frets in it, by one mark and dashes."""

    def mark(found: re.Match[str]) -> str:
        size = WHOLE_STEP_QUARTER_TONES
        if found["part"]:
            size = 4 * int(found["part"]) // int(found["of"])  # parts of a whole step
        elif found["fret"]:
            struck = _STRUCK_FRET_PATTERN.search(row[: found.start()])
            size = 2 * (int(found["fret"]) - int(struck[1]))
            size = size if 0 < size <= MAX_BEND_QUARTER_TONES else WHOLE_STEP_QUARTER_TONES
        return chr(BEND_MARK_BASE + size) + "-" * (len(found.group()) - 1)

    return _BEND_PATTERN.sub(mark, row)


def count_dead_notes(row: str) -> int:
    """Return how many dead notes a row has."""
    return len(_DEAD_NOTE_PATTERN.findall(row))


def parse_techniques(
    rows: tuple[str, ...], column: int, notes: tuple[Note, ...]
) -> tuple[tuple[Technique, ...], ...]:
    """Return the techniques of the notes that begin in a column; empty if none is marked."""
    marked = tuple(_techniques_at(rows[note.string - 1], column, str(note.fret)) for note in notes)
    return marked if any(marked) else ()


def _techniques_at(row: str, column: int, fret: str) -> tuple[Technique, ...]:
    """Return the techniques marked at a fret that begins in this column, or the next."""
    start = next((c for c in (column, column + 1) if row.startswith(fret, c)), None)
    if start is None:
        return ()
    before, after = row[start - 1 : start], row[start + len(fret) : start + len(fret) + 1]
    if before == "<" and after == ">":
        return (Technique("harmonic"),)
    if after and BEND_MARK_BASE < ord(after) <= BEND_MARK_BASE + MAX_BEND_QUARTER_TONES:
        return (Technique("bend", ord(after) - BEND_MARK_BASE),)
    return (Technique(TECHNIQUE_OF_MARK[after]),) if after in TECHNIQUE_OF_MARK else ()
