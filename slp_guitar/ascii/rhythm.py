"""Rhythm letters above the strings of ASCII tab, or below them: the lengths of their notes.

::

     Q     E. S  E E
    |0-----2--3--5-7-|

``W H Q E S T X`` are a whole, half, quarter, eighth, sixteenth, 32nd and 64th note, with a dot half
as long again; a and g are grace notes. Where a piece has small letters and capitals, the capitals
are the dotted ones. Numbers in brackets beside the letters (``|--3--|``) are tuplets.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import NamedTuple

from slp_guitar.ascii.bars import BarRows
from slp_guitar.tab import Bar

QUARTERS_OF_LETTER = {letter: Fraction(4, 1 << n) for n, letter in enumerate("whqestx")}
TUPLET_FACTORS = {3: Fraction(2, 3), 5: Fraction(4, 5), 6: Fraction(2, 3), 7: Fraction(4, 7)}
MAX_LINES_AWAY = 2  # among which the letters are looked for
MAX_LETTER_OFFSET = 1  # columns between a letter and the fret that it is for
GRACE_QUARTERS = Fraction(1, 8)  # of a grace note (a, g), which its main note is shorter by
PARTS_OF_NOTE = 4  # to which notes between two letters are placed
_LETTER_PATTERN = re.compile(r"[whqestxWHQESTX]\.?|[ag]")
_LINE_PATTERN = re.compile(r"(?:\d{1,3}\b)?[\s|(),~+ag]*(?:[whqestxWHQESTX]\.?[\s|(),~+ag]*)+")
_TUPLET_PATTERN = re.compile(
    r"(?:[|\[(\\][-_]{0,40}|[-_]{1,40})(?P<count>[3567])(?:[-_]{0,40}[|\])/]|[-_]{1,40})"
)


class RhythmLetter(NamedTuple):
    """A letter at a bar: its column in the bar, and as it is written, with tuplets reckoned."""

    column: int
    letter: str
    factor: Fraction


def find_letters(lines_beside: Sequence[str], bars: Sequence[BarRows]) -> list[list[RhythmLetter]]:
    """Return the letters at each bar of a system; none where no line has letters.

    Args:
        lines_beside: the lines right above it, or right below it, the nearest last.
        bars: its bars.
    """
    lines = [line.expandtabs() for line in lines_beside]
    nearest = range(len(lines) - 1, max(-1, len(lines) - 1 - MAX_LINES_AWAY), -1)
    place = next((n for n in nearest if is_rhythm_line(lines[n])), None)
    if place is None:
        return [[] for _ in bars]
    beyond = lines[place - 1] if place else ""
    tuplets = [
        (found.span(), TUPLET_FACTORS[int(found["count"])])
        for found in _TUPLET_PATTERN.finditer(beyond)
    ]
    letters: list[RhythmLetter] = []
    for found in _LETTER_PATTERN.finditer(lines[place]):
        inside = (factor for (a, b), factor in tuplets if a <= found.start() < b)
        letters.append(RhythmLetter(found.start(), found[0], next(inside, Fraction(1))))
    return [
        [each._replace(column=c) for each in letters if 0 <= (c := each.column - start) < width]
        for start, width in ((bar.start_column, len(bar.rows[0])) for bar in bars)
    ]


def are_rhythm(letters_by_bar: Sequence[list[RhythmLetter]]) -> bool:
    """Return whether letters below the strings are lengths: at most bars, and more than an X."""
    kinds = {letter.letter[0].lower() for letters in letters_by_bar for letter in letters}
    return 2 * sum(map(bool, letters_by_bar)) > len(letters_by_bar) and bool(kinds - set("xag"))


def is_rhythm_line(line: str) -> bool:
    """Return whether a line has letters for lengths alone, and no word of them, as West."""
    words = re.findall(r"[a-z]{3,}", line, re.I)
    return bool(_LINE_PATTERN.fullmatch(line.strip())) and all(
        len(set(word)) == 1 for word in words
    )


def with_stated_onsets(
    bars: Sequence[Bar], letters_by_bar: Sequence[list[RhythmLetter]]
) -> list[Bar]:
    """Return bars in columns with the onsets that the letters above them give.

    A note between two letters has its share of the time between them, by its column; but only in
    bars that are as long as most, since elsewhere letters may be missing. A bar in which a note is
    before all letters keeps none, nor does one in which two notes would begin together.
    """
    every = {letter.letter[0] for letters in letters_by_bar for letter in letters} - set("ag")
    has_both = any(map(str.islower, every)) and any(map(str.isupper, every))
    found: list[tuple[tuple[Fraction, ...], bool]] = []  # and whether each note has a letter
    for bar, letters in zip(bars, letters_by_bar, strict=True):
        lengths = _letter_quarters(letters, has_both)
        starts = [*accumulate(lengths, initial=Fraction(0))]
        columns = [*(letter.column for letter in letters), bar.steps]
        onsets = [_find_onset(event.step, columns, starts) for event in bar.events]
        known = [onset for onset in onsets if onset is not None]
        is_clear = len(known) == len(onsets) and all(a < b for a, b in pairwise(known))
        own = (*known, starts[-1]) if letters and is_clear else ()
        found.append((own, set(known) <= set(starts)))
    totals = Counter((is_whole, own[-1]) for own, is_whole in found if own)
    usual = max(totals, key=lambda key: (key[0], totals[key]), default=(False, 0))[1]
    return [
        replace(bar, stated_onsets=own) if own and (is_whole or own[-1] == usual) else bar
        for bar, (own, is_whole) in zip(bars, found, strict=True)
    ]


def _letter_quarters(letters: Sequence[RhythmLetter], are_capitals_dotted: bool) -> list[Fraction]:
    """Return the lengths of letters in quarter notes."""
    lengths: list[Fraction] = []
    grace = Fraction(0)  # before the letter
    for letter in letters:
        if letter.letter in "ag":
            lengths.append(GRACE_QUARTERS)
            grace += GRACE_QUARTERS
            continue
        length = QUARTERS_OF_LETTER[letter.letter[0].lower()] * letter.factor
        is_dotted = letter.letter.endswith(".") or are_capitals_dotted and letter.letter.isupper()
        lengths.append((length * 3 / 2 if is_dotted else length) - grace)
        grace = Fraction(0)
    return lengths


def _find_onset(
    column: int, letter_columns: Sequence[int], starts: Sequence[Fraction]
) -> Fraction | None:
    """Return when an event in a column begins; None before the first letter.

    Args:
        column: the column.
        letter_columns: the columns of the letters, and that of the end of the bar.
        starts: when each of them begins.
    """
    place = bisect_right(letter_columns, column, hi=len(letter_columns) - 1) - 1
    around = [n for n in (place, place + 1) if 0 <= n < len(letter_columns) - 1]
    nearest = min(around, key=lambda n: abs(letter_columns[n] - column), default=0)
    if abs(letter_columns[nearest] - column) <= MAX_LETTER_OFFSET:
        return starts[nearest]
    if place < 0:
        return None
    width = letter_columns[place + 1] - letter_columns[place]
    parts = round(Fraction(PARTS_OF_NOTE * (column - letter_columns[place]), max(1, width)))
    length = starts[place + 1] - starts[place]
    return starts[place] + length * parts / PARTS_OF_NOTE
