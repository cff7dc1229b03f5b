r"""The bars of a system of ASCII tablature: their notes, marks of techniques, and repeats.

A bar line is a column where most of the lines have ``|`` (or agree on another upright, such as
``I`` or ``[``). If the lines have slipped against each other but hold equally many bars, they are
lined up again bar by bar. A bar that a line does not reach the end of is reported and left out.

- **Marks.** ``5h7`` is a hammer, ``7p5`` a pull, ``5/7`` and ``7\5`` slides, ``7~`` a vibrato,
  ``<12>`` a harmonic, ``7b9`` a bend by a whole step: a string is struck once, at the first fret,
  and bent. Trills, brackets and ties (``tr ( ) =``) only separate frets. Grace notes are notes.
- **Frets.** A run of digits is one fret, or several notes written without a dash between them.
  ``7`` and ``10`` are frets, ``109`` is 10 and 9, and ``34`` can only be 3 and 4 (no guitar has a
  34th fret). What remains open, such as ``11``, is one fret unless there is a reason to split
  it: see `split_run_into_notes`.
- **Events.** Notes whose frets share a column sound together: with 10 on one string and 9 on
  another, it does not matter whether the 9 is under the 1 or under the 0.
- **Repeats.** ``|:`` and ``:|`` stand on two strings or more, also as ``||*`` and ``*||``. A count
  (``x4``, ``3 times``) behind a system, or above the sign that it is for, says how often; without
  signs the whole system is repeated. ``1.___`` and ``2.___`` above a system are its endings.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from slp_guitar.ascii.marks import DEAD_NOTE_PATTERN, replace_bends_and_dead_notes
from slp_guitar.ascii.repair import realign_bar_rows
from slp_guitar.ascii.systems import DIGITS, StaffSystem, find_bar_line_columns


@dataclass(frozen=True)
class BarRows:
    """One bar as text.

    Attributes:
        rows: its six segments, equally wide, highest string first.
        open_start: whether the system begins with it, without a bar line in front.
        open_end: whether the system ends with it, without a bar line behind.
        start_column: where it begins in the lines of its system.
        starts_repeat: as `Bar.starts_repeat`, and so are the next two.
        num_plays: how often the repeat that ends with it is played.
        endings: the times that it is played.
    """

    rows: tuple[str, ...]
    open_start: bool
    open_end: bool
    start_column: int = 0
    starts_repeat: bool = False
    num_plays: int = 0
    endings: tuple[int, ...] = ()


def split_system_into_bars(
    system: StaffSystem, trust_bar_lines: bool = False
) -> tuple[list[BarRows], list[tuple[int, str]]]:
    """The bars of a system as text, and what is wrong with some.

    Args:
        system: the system.
        trust_bar_lines: whether each bar counts, however short and empty, as where the text says
            its time.

    Returns:
        The bars; and for each line that is not as it should be, its number and what is wrong.
    """
    certain = trust_bar_lines or any(re.search("[-|][xX]-", row) for row in system.rows)
    rows = tuple(replace_bends_and_dead_notes(row, certain) for row in system.rows)
    lines = find_bar_line_columns(rows)
    slipped = [n for n, row in enumerate(rows) if _has_stray_bar_line(row, lines)]
    spans = [[s.span() for s in re.finditer(r"[^|]+", row) if s[0].strip()] for row in rows]
    reports: list[tuple[Iterable[int], str]]
    if slipped and len({len(row_spans) for row_spans in spans}) == 1:
        bars = _split_each_row(rows, spans)
        long = [row for bar in bars for row in _indices_of_long_rows(bar.rows)]
        reports = [(long, "this string is too long for its bar; the bar is left out")]
        bars = [bar for bar in bars if not _indices_of_long_rows(bar.rows)]
    else:
        bars, cut = _split_at_common_columns(rows, lines)
        reports = [
            (
                slipped,
                "the bar lines of this string are not below the others'; it is read as it is",
            ),
            (
                cut,
                "a fret of this string is where the others have a bar line; the bars on both sides "
                "are left out",
            ),
            (system.overlong_rows, "this string is longer than the others; it is read as it is"),
        ]
    dead = [n for n, row in enumerate(rows) if DEAD_NOTE_PATTERN.search(row)]
    short = [row for bar in bars for row in _indices_of_rows_ending_early(bar.rows)]
    reports += [
        (dead, "an x at a bar line is left out: it may be a dead note or a sign"),
        (short, "this string ends before its bar does; the bar is left out"),
    ]
    bars = [
        bar
        for bar in bars
        if _has_music(bar.rows, trust_bar_lines) and not _indices_of_rows_ending_early(bar.rows)
    ]
    return bars, [
        (system.line_numbers[row], message)
        for troubled, message in reports
        for row in sorted(set(troubled))
    ]


def _indices_of_long_rows(bar: tuple[str, ...]) -> list[int]:
    """Rows of a bar that could not be made as wide as most."""
    width = Counter(len(row) for row in bar).most_common(1)[0][0]
    return [n for n, row in enumerate(bar) if len(row) != width]


def _split_at_common_columns(
    rows: tuple[str, ...], bar_line_columns: list[int]
) -> tuple[list[BarRows], list[int]]:
    """Cut a system at the columns of its bar lines.

    Digits on both strings in the middle of a bar line are a time signature, not frets.

    Returns:
        The bars, without those next to a bar line that would cut through a fret; and the rows of
        these frets.
    """
    middle = len(rows) // 2 - 1
    time_signatures = {
        i for i in bar_line_columns if rows[middle][i] in DIGITS and rows[middle + 1][i] in DIGITS
    }
    under = [
        (column, n)
        for column in bar_line_columns
        for n, row in enumerate(rows)
        if row[column] in DIGITS and column not in time_signatures
    ]
    broken = {column for column, _ in under}
    indent = min(len(row) - len(row.lstrip()) for row in rows)  # labels, numbers of bars, nothing
    edges = [indent - 1, *bar_line_columns, len(rows[0])]
    spans = [(a + 1, b) for a, b in zip(edges, edges[1:], strict=False) if b - a > 1]
    bars = [
        BarRows(tuple(row[start:end] for row in rows), start == indent, end == len(rows[0]), start)
        for start, end in spans
        if start - 1 not in broken and end not in broken
    ]
    return bars, [row for _, row in under]


def _split_each_row(rows: tuple[str, ...], spans: list[list[tuple[int, int]]]) -> list[BarRows]:
    """Cut each row at its own bar lines, and line the pieces up."""
    bars = [
        realign_bar_rows(
            tuple(row[slice(*span)].strip() for row, span in zip(rows, bar, strict=True))
        )
        for bar in zip(*spans, strict=True)
    ]
    ends = [row.strip() for row in rows]
    left = sum(row.startswith("|") for row in ends) <= len(rows) // 2
    right = sum(row.endswith("|") for row in ends) <= len(rows) // 2
    last = len(bars) - 1
    return [
        BarRows(bar, i == 0 and left, i == last and right, spans[0][i][0])
        for i, bar in enumerate(bars)
    ]


def _has_stray_bar_line(row: str, bar_line_columns: list[int]) -> bool:
    """Return whether a row has a bar line where most rows have none (a double one is fine)."""
    own = {found.start() for found in re.finditer(r"\|", row)}
    common = own & set(bar_line_columns)
    doubled = {column + d for column in common for d in (-1, 1)}
    return bool(own - common - doubled)


def _indices_of_rows_ending_early(bar: tuple[str, ...]) -> list[int]:
    """Rows of a bar that are blank for three columns or more where most other rows go on."""
    blank = [len(segment) - len(segment.rstrip()) for segment in bar]
    usual = sorted(blank)[len(bar) // 2]
    return [row for row, columns in enumerate(blank) if columns > usual + 2]


def _has_music(bar: tuple[str, ...], trust_bar_lines: bool) -> bool:
    """False for blank stretches and for the dash or two between a label and its bar line."""
    if trust_bar_lines:
        return any(segment.strip() for segment in bar)
    has_fret = any(mark in DIGITS for segment in bar for mark in segment)
    return has_fret or (len(bar[0]) > 2 and sum(bool(s.strip(" |*:o@.")) for s in bar) > 2)
