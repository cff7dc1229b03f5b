r"""How notes are played, as marks beside frets in ASCII tablature say.

``5h7`` is a hammer, ``7p5`` a pull, ``5/7`` and ``7\5`` slides, ``7~`` a vibrato, ``<12>`` a
harmonic, ``7b9`` a bend by a whole step: a string is struck once, at the first fret, and bent.
"""

import re

from slp_transformer.guitar.fretboard import Note
from slp_transformer.guitar.tab import Technique

_BEND = re.compile(
    r"(?<=[0-9])b(?:\(?(?:(?P<part>[13])/(?P<of>[24])|(?P<fret>[0-9]{1,2}))\)?"
    r"(?:r\(?[0-9]{1,2}\)?)?)?"
)
_STRUCK = re.compile(r"([0-9]{1,2})$")
FULL = 4
"""Quarter tones of a bend that does not say how far it goes: a whole step."""
BENT = 0xE000  # from here on, beyond what people write: a bend of so many quarter tones
MOST = 24
AFTER = {"h": "hammer", "H": "hammer", "p": "pull", "P": "pull", "/": "slide", "\\": "slide"}
AFTER |= {"~": "vibrato"}
_DEAD = re.compile(r"(?<=[-|])[xX](?=[-|])")


def without_bends(row: str) -> str:
    """A row in which one mark, and dashes, stand in place of each bend and the frets in it."""

    def mark(found: re.Match[str]) -> str:
        size = FULL
        if found["part"]:
            size = 4 * int(found["part"]) // int(found["of"])  # parts of a whole step
        elif found["fret"]:
            struck = _STRUCK.search(row[: found.start()])
            size = 2 * (int(found["fret"]) - int(struck[1]))
            size = size if 0 < size <= MOST else FULL
        return chr(BENT + size) + "-" * (len(found.group()) - 1)

    return _BEND.sub(mark, row)


def dead_notes(row: str) -> int:
    """How many dead notes a row has."""
    return len(_DEAD.findall(row))


def techniques_of(
    rows: tuple[str, ...], column: int, notes: tuple[Note, ...]
) -> tuple[tuple[Technique, ...], ...]:
    """How the notes that begin in a column of a bar are played; empty if nothing says."""
    said = tuple(_beside(rows[note.string - 1], column, str(note.fret)) for note in notes)
    return said if any(said) else ()


def _beside(row: str, column: int, fret: str) -> tuple[Technique, ...]:
    """What stands beside a fret that begins in this column, or the next."""
    start = next((c for c in (column, column + 1) if row.startswith(fret, c)), None)
    if start is None:
        return ()
    before, after = row[start - 1 : start], row[start + len(fret) : start + len(fret) + 1]
    if before == "<" and after == ">":
        return (Technique("harmonic"),)
    if after and BENT < ord(after) <= BENT + MOST:
        return (Technique("bend", ord(after) - BENT),)
    return (Technique(AFTER[after]),) if after in AFTER else ()
