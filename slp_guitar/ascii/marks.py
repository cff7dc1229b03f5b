"""The marks beside frets in ASCII tab, and the techniques that they stand for."""

import re

from slp_guitar.tab import Technique
from slp_guitar.techniques import find_technique

_BEND_PATTERN = re.compile(
    r"(?P<struck>[0-9]{1,2})b(?:\(?(?:(?P<part>[13])/(?P<of>[24])|(?P<fret>[0-9]{1,2}))\)?"
    r"(?:r\(?[0-9]{1,2}\)?)?)?"
)
_FRACTION_PATTERN = re.compile(r"<(\d{1,2}\.\d)>")
DEAD_NOTE_PATTERN = re.compile(r"(?<=[-| ])[xX](?=[-|])")
WHOLE_STEP_QUARTER_TONES = 4
"""Quarter tones of a bend that does not say how far it goes: a whole step."""
DEAD_MARK = "\uf8ff"
BEND_MARK_BASE = 0xE000  # from here on, beyond what people write: a bend of so many quarter tones
MAX_BEND_QUARTER_TONES = 24


def replace_bends_and_dead_notes(row: str, is_x_dead: bool) -> str:
    """Replace each bend of a row, and the frets in it, by one mark and dashes; and dead notes.

    A harmonic between frets (``<3.2>``) is written at the nearest fret, as Guitar Pro does.
    """
    row = row if "/" in row else re.sub("(?<=-)[oO](?=-)", "0", row)  # O--/ and /--O are a %
    row = DEAD_NOTE_PATTERN.sub(DEAD_MARK, row) if is_x_dead else row

    def mark(found: re.Match[str]) -> str:
        size = WHOLE_STEP_QUARTER_TONES
        if found["part"]:
            size = 4 * int(found["part"]) // int(found["of"])  # parts of a whole step
        elif found["fret"]:
            up = 2 * (int(found["fret"]) - int(found["struck"]))
            size = up if 0 < up <= MAX_BEND_QUARTER_TONES else size
        return (found["struck"] + chr(BEND_MARK_BASE + size)).ljust(len(found[0]), "-")

    row = _FRACTION_PATTERN.sub(lambda m: f"<{float(m[1]):.0f}>".ljust(len(m[0]), "-"), row)
    return _BEND_PATTERN.sub(mark, row)


def parse_techniques(row: str, column: int, fret: int) -> tuple[Technique, ...]:
    """Return the techniques that are marked at a fret."""
    if row[column] == DEAD_MARK:
        return (Technique("dead"),)
    before, after = row[column - 1 : column], row[column + len(str(fret)) :][:1]
    if before == "<" and after == ">":
        return (Technique("harmonic"),)
    if after and BEND_MARK_BASE < ord(after) <= BEND_MARK_BASE + MAX_BEND_QUARTER_TONES:
        return (Technique("bend", ord(after) - BEND_MARK_BASE),)
    kind = find_technique("ascii", after) if after.strip("-") else None
    return (Technique(kind),) if kind else ()
