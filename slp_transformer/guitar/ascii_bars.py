"""The bars of a system of ASCII tablature, as text.

A bar line is a column where most of the lines have ``|`` (or agree on another upright, such as
``I`` or ``[``). If the lines have slipped against each other but hold equally many bars, they are
lined up again bar by bar. A bar that a line does not reach the end of is reported and left out.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from slp_transformer.guitar.ascii_marks import dead_notes, without_bends
from slp_transformer.guitar.ascii_realign import DIGITS, line_up
from slp_transformer.guitar.ascii_tab import System, bar_columns


@dataclass(frozen=True)
class Segments:
    """One bar as text.

    Attributes:
        rows: its six segments, equally wide, highest string first.
        open_left: whether the system begins with it, without a bar line in front.
        open_right: whether the system ends with it, without a bar line behind.
    """

    rows: tuple[str, ...]
    open_left: bool
    open_right: bool


def bar_spans(row: str) -> list[tuple[int, int]]:
    """Start and end of every stretch of a row between bar lines."""
    return [found.span() for found in re.finditer(r"[^|]+", row)]


def bars_of(system: System, exact: bool = False) -> tuple[list[Segments], list[tuple[int, str]]]:
    """The bars of a system as text, and what is wrong with some.

    Args:
        system: the system.
        exact: whether each bar counts, however short and empty, as where the text says its time.

    Returns:
        The bars; and for each line that is not as it should be, its number and what is wrong.
    """
    rows = tuple(map(without_bends, system.rows))
    lines = bar_columns(rows)
    slipped = [n for n, row in enumerate(rows) if _strays(row, lines)]
    spans = [[s for s in bar_spans(row) if row[slice(*s)].strip()] for row in rows]
    problems = []

    def report(troubled: Iterable[int], message: str) -> None:
        problems.extend((system.numbers[row], message) for row in sorted(set(troubled)))

    if slipped and len({len(row_spans) for row_spans in spans}) == 1:
        bars = _bar_by_bar(rows, spans)
        long = [(bar, row) for bar in bars for row in _too_long(bar.rows)]
        report((row for _, row in long), "this string is too long for its bar; the bar is left out")
        bars = [bar for bar in bars if not _too_long(bar.rows)]
    else:
        bars, cut = _column_by_column(rows, lines)
        message = "the bar lines of this string are not below the others'; it is read as it stands"
        report(slipped, message)
        message = "a fret of this string stands where the others have a bar line; the bars on both "
        report(cut, message + "sides are left out")
        report(system.beyond, "this string is longer than the others; it is read as it stands")
    dead = (n for n, row in enumerate(rows) if dead_notes(row))
    report(dead, "dead notes (x) are left out: they have no pitch")
    short = (row for bar in bars for row in _ending_early(bar.rows))
    report(short, "this string ends before its bar does; the bar is left out")
    whole = [bar for bar in bars if _is_music(bar.rows, exact) and not _ending_early(bar.rows)]
    return whole, problems


def _too_long(bar: tuple[str, ...]) -> list[int]:
    """Rows of a bar that could not be made as wide as most."""
    width = Counter(len(row) for row in bar).most_common(1)[0][0]
    return [n for n, row in enumerate(bar) if len(row) != width]


def _column_by_column(rows: tuple[str, ...], lines: list[int]) -> tuple[list[Segments], list[int]]:
    """Cut a system at the columns of its bar lines.

    Digits on both strings in the middle of a bar line are a metre, not frets.

    Returns:
        The bars, without those beside a bar line that would cut through a fret; and the rows of
        such frets.
    """
    middle = len(rows) // 2 - 1
    metres = {i for i in lines if rows[middle][i] in DIGITS and rows[middle + 1][i] in DIGITS}
    under = [
        (column, n)
        for column in lines
        for n, row in enumerate(rows)
        if row[column] in DIGITS and column not in metres
    ]
    broken = {column for column, _ in under}
    edges = [-1, *lines, len(rows[0])]
    spans = [(a + 1, b) for a, b in zip(edges, edges[1:], strict=False) if b - a > 1]
    bars = [
        Segments(
            tuple(row[start:end] for row in rows),
            start == 0,
            end == len(rows[0]),
        )
        for start, end in spans
        if start - 1 not in broken and end not in broken
    ]
    return bars, [row for _, row in under]


def _bar_by_bar(rows: tuple[str, ...], spans: list[list[tuple[int, int]]]) -> list[Segments]:
    """Cut each row at its own bar lines, and line the pieces up."""
    bars = [
        line_up(tuple(row[slice(*span)].strip() for row, span in zip(rows, bar, strict=True)))
        for bar in zip(*spans, strict=True)
    ]
    ends = [row.strip() for row in rows]
    open_left = sum(row.startswith("|") for row in ends) <= len(rows) // 2
    open_right = sum(row.endswith("|") for row in ends) <= len(rows) // 2
    last = len(bars) - 1
    return [
        Segments(bar, i == 0 and open_left, i == last and open_right) for i, bar in enumerate(bars)
    ]


def _strays(row: str, lines: list[int]) -> bool:
    """Whether a row has a bar line where most rows have none (doubling a common one is fine)."""
    own = {found.start() for found in re.finditer(r"\|", row)}
    common = own & set(lines)
    doubled = {column + d for column in common for d in (-1, 1)}
    return bool(own - common - doubled)


def _ending_early(bar: tuple[str, ...]) -> list[int]:
    """Rows of a bar that are blank for three columns or more where most other rows go on."""
    blank = [len(segment) - len(segment.rstrip()) for segment in bar]
    usual = sorted(blank)[len(bar) // 2]
    return [row for row, columns in enumerate(blank) if columns > usual + 2]


def _is_music(bar: tuple[str, ...], exact: bool) -> bool:
    """False for blank stretches and for the dash or two between a label and its bar line."""
    if exact:
        return any(segment.strip() for segment in bar)
    has_fret = any(mark in DIGITS for segment in bar for mark in segment)
    return has_fret or (len(bar[0]) > 2 and sum(bool(s.strip(" |*:o@.")) for s in bar) > 2)
