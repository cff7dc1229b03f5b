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
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import accumulate
from math import log
from operator import itemgetter
from statistics import median
from typing import NamedTuple

from slp_transformer.guitar.ascii_tab import DIGITS, StaffSystem, find_bar_line_columns
from slp_transformer.guitar.fretboard import MAX_FRET, MAX_SPAN, Note
from slp_transformer.guitar.tab import Bar, Event, TabNote, Technique, TechniqueKind


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
    certain = trust_bar_lines or any(re.search("-[xX]-", row) for row in system.rows)
    rows = tuple(encode_marks(row, certain) for row in system.rows)
    lines = find_bar_line_columns(rows)
    slipped = [n for n, row in enumerate(rows) if _has_stray_bar_line(row, lines)]
    spans = [[s.span() for s in re.finditer(r"[^|]+", row) if s[0].strip()] for row in rows]
    reports: list[tuple[Iterable[int], str]]
    if slipped and len({len(row_spans) for row_spans in spans}) == 1:
        bars = _split_each_row(rows, spans)
        long = [row for bar in bars for row in _rows_too_long(bar.rows)]
        reports = [(long, "this string is too long for its bar; the bar is left out")]
        bars = [bar for bar in bars if not _rows_too_long(bar.rows)]
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
    dead = [n for n, row in enumerate(rows) if _DEAD_NOTE_PATTERN.search(row)]
    short = [row for bar in bars for row in _rows_ending_early(bar.rows)]
    reports += [
        (dead, "an x at a bar line is left out: it may be a dead note or a sign"),
        (short, "this string ends before its bar does; the bar is left out"),
    ]
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


def _rows_too_long(bar: tuple[str, ...]) -> list[int]:
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
UNCLEAR_MARK_PATTERN = re.compile(
    r"[0-9](?:\^|\*(?=-))|\[[0-9]+\]|-%-|-O[^|]*/|\\-+[0-9]+/|\|\s*\* ?[2-9]\s*$"
)
MARKS_OF_TECHNIQUE: dict[TechniqueKind, str] = {
    "hammer": "hH",
    "pull": "pP",
    "slide": "/\\s",
    "vibrato": "~",
}
"""The marks behind a fret for each technique that has one; the first is how it is written."""
TECHNIQUE_OF_MARK = {mark: kind for kind, marks in MARKS_OF_TECHNIQUE.items() for mark in marks}


def encode_marks(row: str, is_x_dead: bool) -> str:
    """Replace each bend of a row, and the frets in it, by one mark and dashes; and dead notes.

    A harmonic between frets (``<3.2>``) is written at the nearest fret, as Guitar Pro does.
    """
    row = row if "/" in row else re.sub("(?<=-)[oO](?=-)", "0", row)  # O--/ and /--O are a %
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


def parse_techniques(row: str, column: int, fret: int) -> tuple[Technique, ...]:
    """Return the techniques that are marked at a fret."""
    if row[column] == DEAD_MARK:
        return (Technique("dead"),)
    before, after = row[column - 1 : column], row[column + len(str(fret)) :][:1]
    if before == "<" and after == ">":
        return (Technique("harmonic"),)
    if after and BEND_MARK_BASE < ord(after) <= BEND_MARK_BASE + MAX_BEND_QUARTER_TONES:
        return (Technique("bend", ord(after) - BEND_MARK_BASE),)
    return (Technique(TECHNIQUE_OF_MARK[after]),) if after in TECHNIQUE_OF_MARK else ()


# --- Frets ---------------------------------------------------------------------------------------

MAX_READ_FRET = 24
NEARBY_RUNS = 64  # before a run and after it that may help to read it
IMPOSSIBLE_COST = 1e6  # more than any reading costs otherwise


@dataclass(frozen=True)
class DigitRun:
    """Digits next to each other on one string: one fret, or several."""

    string: int
    start_column: int
    digits: str


def find_digit_runs(bar: tuple[str, ...]) -> list[DigitRun]:
    """Every run of digits in a bar, from left to right."""
    runs = [
        DigitRun(string, found.start(), found.group())
        for string, segment in enumerate(bar, start=1)
        for found in re.finditer(r"[0-9]+", segment)
    ]
    return sorted(runs, key=lambda run: (run.start_column, -run.string))


def _fret_digit_counts(digits: str, start: int) -> tuple[int, ...]:
    """Return how many digits the fret that begins at `start` may have: one, or one and two."""
    two = digits[start : start + 2]
    return (1, 2) if len(two) == 2 and "10" <= two <= str(MAX_READ_FRET) else (1,)


class _Way(NamedTuple):
    """The cheapest way to read digits from some place on that begins with one fret."""

    cost: float
    fret: int
    following: "_Way | None"


def find_cheapest_reading(
    digits: str, fret_cost: Callable[[int], float], leap_cost: Callable[[int, int], float]
) -> tuple[int, ...]:
    """The reading of a run of digits that costs least, in time proportional to its length.

    From right to left, each digit remembers the best way on with a fret of one digit that begins
    at it, and with a fret of two. Of equally cheap readings the first fret that has one digit in
    some and two in others has one.

    Args:
        digits: the run.
        fret_cost: what a fret costs on its own.
        leap_cost: what it costs that one fret follows another.
    """
    ways: list[list[_Way]] = [[] for _ in range(len(digits) + 1)]
    for start in reversed(range(len(digits))):
        for width in _fret_digit_counts(digits, start):
            fret = int(digits[start : start + width])
            onward = [(way.cost + leap_cost(fret, way.fret), way) for way in ways[start + width]]
            rest, following = min(onward, key=itemgetter(0), default=(0.0, None))
            ways[start].append(_Way(fret_cost(fret) + rest, fret, following))
    frets: list[int] = []
    cheapest: _Way | None = min(ways[0], key=lambda way: way.cost)
    while cheapest is not None:
        frets.append(cheapest.fret)
        cheapest = cheapest.following
    return tuple(frets)


def is_two_digit_run(digit_run: DigitRun) -> bool:
    """Return whether two digits can only be two notes, as ``34`` or ``02``."""
    return len(digit_run.digits) == 2 and _fret_digit_counts(digit_run.digits, 0) == (1,)


def two_digit_cost(digit_runs: list[DigitRun]) -> float:
    """Return the cost, in a piece with these runs, of reading two digits as two notes.

    Two digits that can only be two notes show that the writer leaves no dash between quick notes;
    about a quarter as many such pairs will look like a fret from 10 to 24. The cost is the
    resulting log-odds against a pair, times three (a fret out of reach costs 1).

    In a piece with no such pair, and no run of three digits, two digits are always one fret,
    however far the hand has to go.
    """
    doubles = [run for run in digit_runs if len(run.digits) == 2]
    pairs = sum(is_two_digit_run(run) for run in doubles)
    if not pairs and all(len(run.digits) < 3 for run in digit_runs):
        return IMPOSSIBLE_COST
    share = (0.25 * pairs + 0.01) / (len(doubles) - pairs + 1)
    share = min(max(share, 0.001), 0.9)
    return 3 * log((1 - share) / share)


def estimate_hand_fret(digit_run: DigitRun, nearby_runs: list[DigitRun]) -> float | None:
    """Return the median of the eight nearest plain frets, or None if there are none."""
    plain = [
        other
        for other in nearby_runs
        if len(other.digits) in _fret_digit_counts(other.digits, 0)
        and 0 < int(other.digits) <= MAX_FRET
    ]
    plain.sort(key=lambda other: abs(other.start_column - digit_run.start_column))
    frets = [int(other.digits) for other in plain[:8]]
    return float(median(frets)) if frets else None


def split_run_into_notes(
    digit_run: DigitRun,
    nearby_runs: list[DigitRun],
    pair_cost: float,
    hand_fret: float | None = None,
) -> list[tuple[int, int]]:
    """Read a run of digits as one fret or as several, whichever is cheaper.

    Two digits are one fret unless two notes are cheaper. A reading costs

    - `pair_cost` for a second note, or less than nothing if a pair that cannot be one fret,
      such as ``34``, is in the same two columns on another string, or (where the piece has such
      pairs) if two other strings have a note each, one in either column: then each column is a
      moment;
    - 1 for each fret that a note lies out of reach (`MAX_SPAN`) of the note before it, and of the
      hand, which is where the nearest frets in the bar are; half of that next to an open string;
    - 10 for a fret above the 19th.

    Of three digits or more, some certainly are notes side by side: there a further note costs 3,
    and distance from the hand counts half.

    Args:
        digit_run: the digits.
        nearby_runs: the other runs of the bar, or those near it.
        pair_cost: the `two_digit_cost` of the piece.
        hand_fret: where the hand was before this bar, for three digits or more in a bar that does
            not show it.

    Returns:
        Column and fret of every note.
    """
    long = len(digit_run.digits) > 2
    center = estimate_hand_fret(digit_run, nearby_runs) or (hand_fret if long else None)
    elsewhere = [other for other in nearby_runs if other.string != digit_run.string]
    singles = {other.start_column for other in elsewhere if len(other.digits) == 1}
    dense = pair_cost < 15 and {digit_run.start_column, digit_run.start_column + 1} <= singles
    dense = dense or any(
        other.start_column == digit_run.start_column and is_two_digit_run(other)
        for other in elsewhere
    )
    per_note = 3 if long else -20 if dense else pair_cost

    def cost(fret: int) -> float:
        shift = _stretch_penalty(fret, center) if fret and center is not None else 0
        return per_note + shift / (2 if long else 1) + (10 if fret > MAX_FRET else 0)

    def leap(fret: int, then: int) -> float:
        return _stretch_penalty(fret, then) / (1 if fret and then else 2)

    placed, column = [], digit_run.start_column
    for fret in find_cheapest_reading(digit_run.digits, cost, leap):
        placed.append((column, fret))
        column += len(str(fret))
    return placed


def _stretch_penalty(fret: int, other_fret: int | float) -> float:
    """Return how many frets too far apart two frets are for one hand."""
    return float(max(0, abs(fret - other_fret) - MAX_SPAN))


def read_events(
    rows: tuple[str, ...], digit_runs: list[DigitRun], pair_cost: float, hand_fret: float | None
) -> list[Event]:
    """Return the notes of a bar, gathered into the columns in which they sound together."""
    placed = [
        (found.start(), string, 0)
        for string, row in enumerate(rows, start=1)
        for found in re.finditer(DEAD_MARK, row)
    ]
    certain = pair_cost >= IMPOSSIBLE_COST  # then two digits are one fret, wherever the hand is
    for i, run in enumerate(digit_runs):
        if len(run.digits) == 1 or (certain and len(run.digits) == 2):
            placed.append((run.start_column, run.string, int(run.digits)))
            continue
        nearby = digit_runs[max(0, i - NEARBY_RUNS) : i] + digit_runs[i + 1 : i + 1 + NEARBY_RUNS]
        for column, fret in split_run_into_notes(run, nearby, pair_cost, hand_fret):
            placed.append((column, run.string, fret))
    groups: list[list[tuple[int, int, int]]] = []
    for note in sorted(placed):
        if groups and _is_same_column(groups[-1], note):
            groups[-1].append(note)
        else:
            groups.append([note])
    events = []
    for group in groups:
        notes = [
            TabNote(Note(string, fret), 0, parse_techniques(rows[string - 1], column, fret))
            for column, string, fret in group
        ]
        events.append(Event.from_notes(group[0][0], notes))
    return events


def _is_same_column(column_notes: list[tuple[int, int, int]], note: tuple[int, int, int]) -> bool:
    """Return whether a note belongs to a column: it starts there, or under a two-digit fret."""
    column, string, _ = note
    first = column_notes[0][0]
    if any(string == other for _, other, _ in column_notes):
        return False
    wide = all(fret > 9 for start, _, fret in column_notes if start == first)
    return column == first or (column == first + 1 and wide)


def read_bars(bar_rows: list[BarRows]) -> list[Bar]:
    """Return a piece's bars with columns as steps; one bar helps to read another."""
    all_runs = [find_digit_runs(bar.rows) for bar in bar_rows]
    pair_cost = two_digit_cost([run for runs in all_runs for run in runs])
    bars: list[Bar] = []
    hand = None
    for text, runs in zip(bar_rows, all_runs, strict=True):
        events = read_events(text.rows, runs, pair_cost, hand)
        frets = [note.fret for event in events for note in event.notes if note.fret]
        hand = float(median(frets[-8:])) if frets else hand
        bars.append(
            Bar(
                len(text.rows[0]),
                tuple(events),
                starts_repeat=text.starts_repeat,
                num_plays=text.num_plays,
                endings=text.endings,
            )
        )
    return bars


# --- Repeats -------------------------------------------------------------------------------------

_SIGNS = ":*o\u2022"
_NUMBERS = {"two": 2, "three": 3, "four": 4, "six": 6, "eight": 8}
_COUNT_REGEX = (
    r"(?<!\w)(?:x ?(?P<after>\d{1,2})|(?P<before>\d{1,2}) ?(?:x|times)"
    rf"|(?P<word>{'|'.join(_NUMBERS)}) times|twice)(?!\w)"
)
_COUNT_PATTERN = re.compile(_COUNT_REGEX, re.I)
_STATEMENT_PATTERN = re.compile(r"\W*(?:\w+\W+){0,2}" + _COUNT_REGEX + r"\W*", re.I)
_ENDING_PATTERN = re.compile(
    r"(?<![\w.,])\[?(?P<times>[1-4](?:, ?[1-4])*)"
    r"(?:\.(?!\d)[_\-\u2013]*|[_\-\u2013]{3,}|(?:st|nd|rd|th)\b|\s*\])"
)
MAX_ENDING_OFFSET = 3  # columns between the number of an ending and its bar line


def is_repeat_statement(line: str) -> bool:
    """Return whether a line of text is about how often something is played, as ``Intro (x2)``."""
    stated = _STATEMENT_PATTERN.fullmatch(line[:100]) or re.match(r"\W*repeat\b", line, re.I)
    return not line.startswith("repeat: ") and bool(stated)


def mark_repeats(
    bars: list[BarRows], before: list[BarRows], above: str, comment: str
) -> list[BarRows]:
    """Return the bars of a system with their repeats.

    Args:
        bars: the bars.
        before: those of the systems before it.
        above: the line right above it.
        comment: what is written behind it, or elsewhere about it.
    """
    bars = [
        replace(
            bar,
            starts_repeat=not bar.open_start and _has_sign(bar, 0),
            num_plays=2 * (not bar.open_end and _has_sign(bar, -1)),
        )
        for bar in bars
    ]
    _mark_endings(bars, bool(before) and before[-1].endings == (1,), above)
    ends = [i for i, bar in enumerate(bars) if bar.num_plays]
    for found in _COUNT_PATTERN.finditer(above) if ends else ():
        ends_at = {i: bars[i].start_column + len(bars[i].rows[0]) for i in ends}
        nearest = min(ends, key=lambda i: abs(ends_at[i] - found.start()))  # noqa: B023
        bars[nearest] = replace(bars[nearest], num_plays=_parse_count(found))
    if bars and (count := _COUNT_PATTERN.search(comment)):
        if not ends:
            bars[0] = replace(bars[0], starts_repeat=True)
        last = ends[-1] if ends else -1
        bars[last] = replace(bars[last], num_plays=_parse_count(count))
    return bars


def _parse_count(found: re.Match[str]) -> int:
    """Return how often something is played, twice at least."""
    digits = found["after"] or found["before"] or _NUMBERS.get(str(found["word"]).lower(), 2)
    return max(2, int(digits))


def _has_sign(bar: BarRows, place: int) -> bool:
    """Return whether two strings have a sign of repetition at the start (0) or the end (-1)."""
    ends = [row.strip()[place] for row in bar.rows if row.strip()]
    return sum(mark in _SIGNS for mark in ends) > 1


def _mark_endings(bars: list[BarRows], goes_on: bool, above: str) -> None:
    """Mark the bars below the numbers of endings, which must begin at bar lines.

    A first ending needs a second one behind it, or a sign of repetition at its end; numbers of
    fingers and barres, which look alike, have neither.
    """
    marks: list[tuple[int, tuple[int, ...], int]] = []
    for found in _ENDING_PATTERN.finditer(above):
        for i, bar in enumerate(bars):
            if abs(bar.start_column - found.start()) <= MAX_ENDING_OFFSET:
                own = tuple(map(int, found["times"].split(",")))
                marks.append((i, own, found.end()))
                break
    times = [time for _, own, _ in marks for time in own]
    first = 2 if goes_on else 1
    if not times or times != list(range(first, first + len(times))):
        return
    edges = [i for i, _, _ in marks] + [len(bars)]
    if len(marks) == 1:
        edges[1] = next((i + 1 for i in range(edges[0], len(bars)) if bars[i].num_plays), 0)
    for n, (start, own, drawn_to) in enumerate(marks):
        end = edges[n + 1]
        if n and n == len(marks) - 1 or goes_on:
            end = max(start + 1, sum(bar.start_column < drawn_to for bar in bars))
        for i in range(start, end):
            last = i == end - 1 and (n < len(marks) - 1 or n == 0 and not goes_on)
            bars[i] = replace(bars[i], endings=own, num_plays=2 if last else 0)
