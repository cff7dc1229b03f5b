r"""The bars of a system of ASCII tablature, as text, and the marks of techniques in them.

A bar line is a column where most of the lines have ``|`` (or agree on another upright, such as
``I`` or ``[``). If the lines have slipped against each other but hold equally many bars, they are
lined up again bar by bar. A bar that a line does not reach the end of is reported and left out.

``5h7`` is a hammer, ``7p5`` a pull, ``5/7`` and ``7\5`` slides, ``7~`` a vibrato, ``<12>`` a
harmonic, ``7b9`` a bend by a whole step: a string is struck once, at the first fret, and bent.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

from slp_transformer.guitar.ascii_tab import DIGITS, StaffSystem, find_bar_line_columns
from slp_transformer.guitar.fretboard import Note
from slp_transformer.guitar.tab import Technique, TechniqueKind


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

    @property
    def end_column(self) -> int:
        """Where it ends in the lines of its system."""
        return self.start_column + len(self.rows[0])


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
    certain = trust_bar_lines or any(re.search("-[xX]-", row) for row in system.rows)
    rows = tuple(encode_marks(row, certain) for row in system.rows)
    lines = find_bar_line_columns(rows)
    slipped = [n for n, row in enumerate(rows) if _has_stray_bar_line(row, lines)]
    spans = [[s.span() for s in re.finditer(r"[^|]+", row) if s[0].strip()] for row in rows]
    reports: list[tuple[Iterable[int], str]] = []
    if slipped and len({len(row_spans) for row_spans in spans}) == 1:
        bars = _split_each_row(rows, spans)
        long = [row for bar in bars for row in _is_bar_too_long(bar.rows)]
        reports.append((long, "this string is too long for its bar; the bar is left out"))
        bars = [bar for bar in bars if not _is_bar_too_long(bar.rows)]
    else:
        bars, cut = _split_at_common_columns(rows, lines)
        message = "the bar lines of this string are not below the others'; it is read as it is"
        reports.append((slipped, message))
        message = "a fret of this string is where the others have a bar line; the bars on both "
        reports.append((cut, message + "sides are left out"))
        message = "this string is longer than the others; it is read as it is"
        reports.append((system.overlong_rows, message))
    dead = [n for n, row in enumerate(rows) if _DEAD_NOTE_PATTERN.search(row)]
    reports.append((dead, "an x at a bar line is left out: it may be a dead note or a sign"))
    short = [row for bar in bars for row in _rows_ending_early(bar.rows)]
    reports.append((short, "this string ends before its bar does; the bar is left out"))
    bars = [
        bar
        for bar in bars
        if _has_music(bar.rows, trust_bar_lines) and not _rows_ending_early(bar.rows)
    ]
    return bars, [
        (system.line_numbers[row], message)
        for troubled, message in reports
        for row in sorted(set(troubled))
    ]


def _is_bar_too_long(bar: tuple[str, ...]) -> list[int]:
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
    edges = [-1, *bar_line_columns, len(rows[0])]
    spans = [(a + 1, b) for a, b in zip(edges, edges[1:], strict=False) if b - a > 1]
    bars = [
        BarRows(tuple(row[start:end] for row in rows), start == 0, end == len(rows[0]), start)
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


def _rows_ending_early(bar: tuple[str, ...]) -> list[int]:
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


# --- Bars that have slipped ---------------------------------------------------------------------

MAX_SLIP_COLUMNS = 64  # columns; what is longer than the others by more has not slipped


def realign_bar_rows(bar_rows: tuple[str, ...]) -> tuple[str, ...]:
    """Make the six segments of a bar equally wide.

    A segment that is too short or too long for the others gets dashes put in or taken out where its
    frets then fall on most columns in which the others have frets; after its last fret if that
    makes no difference. One that has no dashes to spare stays too long.
    """
    width, agreeing = Counter(len(segment) for segment in bar_rows).most_common(1)[0]
    if agreeing == len(bar_rows):
        return bar_rows
    columns = {
        found.start() for s in bar_rows if len(s) == width for found in re.finditer(r"[0-9]+", s)
    }
    return tuple(s if len(s) == width else _fit_segment_width(s, width, columns) for s in bar_rows)


def _fit_segment_width(segment: str, width: int, fret_columns: set[int]) -> str:
    """Return a segment made `width` wide at the gaps between frets that best fit `fret_columns`."""
    if len(segment) > width + MAX_SLIP_COLUMNS:
        return segment
    while len(segment) != width:
        shift = width - len(segment)
        gaps, frets = re.split(r"[0-9]+", segment), re.findall(r"[0-9]+", segment)
        free = _gaps_with_room(gaps, shift)
        if not free:  # no gap is wide enough: one column at a time, if any is to spare
            shift, free = -1, _gaps_with_room(gaps, -1)
        if not free:
            break
        # How well frets fit: those before a gap stay where they are, those after it move.
        starts = [found.start() for found in re.finditer(r"[0-9]+", segment)]
        stay = [0, *accumulate(_match_score(start, fret_columns) for start in starts)]
        move = [0, *accumulate(_match_score(start + shift, fret_columns) for start in starts)]
        best = max(free, key=lambda i: (stay[i] + move[-1] - move[i], i))  # noqa: B023
        gaps[best] = gaps[best] + "-" * shift if shift > 0 else gaps[best][:shift]
        segment = "".join(gap + fret for gap, fret in zip(gaps, [*frets, ""], strict=True))
    return segment


def _gaps_with_room(gaps: list[str], shift: int) -> list[int]:
    """Return which gaps can change by so many columns without making one of two frets."""
    inner = range(1, len(gaps) - 1)
    return [i for i, gap in enumerate(gaps) if shift > 0 or len(gap) + shift >= (i in inner)]


def _match_score(fret_column: int, fret_columns: set[int]) -> int:
    """Return how well a fret that starts in a column goes with the columns that others start in."""
    return 2 * (fret_column in fret_columns) - (
        fret_column - 1 in fret_columns or fret_column + 1 in fret_columns
    )


# --- Marks ----------------------------------------------------------------------------------------

_BEND_PATTERN = re.compile(
    r"(?P<struck>[0-9]{1,2})b(?:\(?(?:(?P<part>[13])/(?P<of>[24])|(?P<fret>[0-9]{1,2}))\)?"
    r"(?:r\(?[0-9]{1,2}\)?)?)?"
)
_FRACTION_PATTERN = re.compile(r"<(\d{1,2}\.\d)>")
_DEAD_NOTE_PATTERN = re.compile(r"(?<=[-| ])[xX](?=[-|])")
WHOLE_STEP_QUARTER_TONES = 4
"""Quarter tones of a bend that does not say how far it goes: a whole step."""
DEAD_MARK = "\uf8ff"
BEND_MARK_BASE = 0xE000  # from here on, beyond what people write: a bend of so many quarter tones
MAX_BEND_QUARTER_TONES = 24
UNCLEAR_MARK_PATTERN = re.compile(r"[0-9](?:\^|\*(?=-))|\[[0-9]+\]")
TECHNIQUE_OF_MARK: dict[str, TechniqueKind] = {
    "h": "hammer",
    "H": "hammer",
    "p": "pull",
    "P": "pull",
    "~": "vibrato",
    "/": "slide",
    "\\": "slide",
    "s": "slide",
}


def encode_marks(row: str, is_x_dead: bool) -> str:
    """Replace each bend of a row, and the frets in it, by one mark and dashes; and dead notes.

    A harmonic between frets (``<3.2>``) is written at the nearest fret, as Guitar Pro does.
    """
    row = _DEAD_NOTE_PATTERN.sub(DEAD_MARK, row) if is_x_dead else row

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


def parse_techniques(
    rows: tuple[str, ...], column: int, notes: tuple[Note, ...]
) -> tuple[tuple[Technique, ...], ...]:
    """Return the techniques of the notes that begin in a column; empty if none is marked."""
    marked = tuple(_techniques_at(rows[note.string - 1], column, note.fret) for note in notes)
    return marked if any(marked) else ()


def _techniques_at(row: str, column: int, fret: int) -> tuple[Technique, ...]:
    """Return the techniques marked at a fret that begins in this column, or the next."""
    marks = str(fret), DEAD_MARK
    start = next((c for c in (column, column + 1) if row.startswith(marks, c)), None)
    if start is None:
        return ()
    if row[start] == DEAD_MARK:
        return (Technique("dead"),)
    before, after = row[start - 1 : start], row[start + len(str(fret)) :][:1]
    if before == "<" and after == ">":
        return (Technique("harmonic"),)
    if after and BEND_MARK_BASE < ord(after) <= BEND_MARK_BASE + MAX_BEND_QUARTER_TONES:
        return (Technique("bend", ord(after) - BEND_MARK_BASE),)
    return (Technique(TECHNIQUE_OF_MARK[after]),) if after in TECHNIQUE_OF_MARK else ()
