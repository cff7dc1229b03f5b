"""What a text holds and its tabs do not: lines, what stands beside rows, and marks in them.

As for every kind of file, what is read is listed, and what is left is named.
"""

import re
from collections.abc import Callable, Collection, Sequence
from itertools import groupby

from slp_guitar.ascii.beats import is_beat_line
from slp_guitar.ascii.guitars import names_guitar
from slp_guitar.ascii.repeats import is_repeat_statement, states_repeat
from slp_guitar.ascii.rhythm import is_rhythm_line
from slp_guitar.ascii.systems import StaffSystem, blank_out_label, is_string_line
from slp_guitar.tab import ReadProblem
from slp_guitar.tab_header import (
    is_style_line,
    parse_capo,
    parse_tempo,
    parse_time_signature,
    parse_track,
    parse_tuning,
    strip_title,
)

READ_ANYWHERE: tuple[Callable[[str], object], ...] = (
    *(is_style_line, parse_tuning, parse_capo, parse_track, parse_time_signature, parse_tempo),
    *(is_repeat_statement, names_guitar),
)
"""What makes of a line of text something that a tab has."""
READ_BESIDE_ROWS: tuple[Callable[[str], object], ...] = (
    *(is_rhythm_line, is_beat_line, states_repeat),
    re.compile(r"(?:\s|\||\[?\d++[.)]?[-_]*+\]?|_{3,}+)*+").fullmatch,  # of bars and endings
)
"""Likewise, of a line right above rows, or right below."""
MAX_LINES_AWAY = 3
_ORNAMENT_PATTERN = re.compile(r"[-=_\s]*|(?:\s|([*#])\1\1++)*+")
"""What says nothing there: ruled lines, and rows of asterisks."""
_END_OF_ROW_PATTERN = re.compile(r"[eEBGDA]|[\s|:*=_~-]*")
"""What also stands behind rows: the name of the string, bar lines, signs of repeats."""
_READ_MARKS_PATTERN = re.compile(
    r"<\d{1,2}(?:\.\d)?>"
    r"|\d+(?:b(?:\(?(?:[13]/[24]|\d{1,2})\)?(?:r\(?\d{1,2}\)?)?)?|[hHpP/s~]|\\(?!-+\d+/))?"
    r"|(?<=[-| ])[xX](?=[-|])|(?<=-)[oO](?=-)|(?<=\|)[*:o\u2022]+|[*:o\u2022]+(?=\|)"
    r"|[-=~_|\s\u2013\u2014]"
)
"""What is read of a row: strings, bar lines and signs of repeats, frets with the marks on them."""


def find_unread_text(
    written: Sequence[str],
    tidy: Sequence[str],
    systems: Sequence[StaffSystem],
    titles: Collection[str],
    known: Collection[int],
    source: str,
) -> list[ReadProblem]:
    """Return what is left out of a text: groups of lines, and marks with their number.

    Args:
        written: the lines of the text.
        tidy: the same, as `slp_guitar.ascii.systems.tidy_lines` has them.
        systems: the systems in them.
        titles: the titles that were found.
        known: the numbers of lines, from 1, of which something is said already, or that are read.
        source: what to call the text.
    """
    rows = {
        number: row
        for system in systems
        for number, row in zip(system.line_numbers, system.rows, strict=True)
    }
    beside = {n + d for n in rows for d in range(-MAX_LINES_AWAY, MAX_LINES_AWAY + 1)}

    def is_left_out(number: int) -> bool:
        line = written[number - 1]
        is_wrapped = not tidy[number - 1] and is_string_line(line)
        tests = READ_ANYWHERE + (READ_BESIDE_ROWS if number in beside else ())
        is_read = number in rows or number in known or is_wrapped or strip_title(line) in titles
        says = not _ORNAMENT_PATTERN.fullmatch(line) if number in beside else re.search(r"\w", line)
        return not is_read and bool(says) and not any(test(line) for test in tests)

    problems, marks = [], dict[str, tuple[int, int]]()
    for left_out, group in groupby(range(1, len(written) + 1), key=is_left_out):
        if left_out:
            first, *others = group
            what = f"{1 + len(others)} lines of text are" if others else "a line of text is"
            said = " ".join(written[first - 1].split())[:40]
            problems.append(ReadProblem(source, first, f"{what} left out: {said!r}"))
    for number, row in rows.items():
        line = written[number - 1]
        line = line if line.startswith(tidy[number - 1]) else tidy[number - 1]
        apart = blank_out_label(line.expandtabs())[len(row.rstrip()) :].strip()
        if not _END_OF_ROW_PATTERN.fullmatch(apart) and not states_repeat(apart):
            problems.append(ReadProblem(source, number, f"{apart[:40]!r} beside a row is left out"))
        for mark in _READ_MARKS_PATTERN.sub("", row):
            count, first = marks.get(mark, (0, number))
            marks[mark] = count + 1, first
    for mark, (count, first) in marks.items():
        counted = f"{count} " if count > 1 else ""
        problems.append(ReadProblem(source, first, f"{counted}{mark!r} in rows left out"))
    return problems
