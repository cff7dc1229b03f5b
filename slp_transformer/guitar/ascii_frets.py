"""The notes of a bar of ASCII tablature: digits into frets, frets into events.

- **Frets.** A run of digits is one fret, or several notes written without a dash between them.
  ``7`` and ``10`` are frets, ``109`` is 10 and 9, and ``34`` can only be 3 and 4 (no guitar has a
  34th fret). What remains open, such as ``11``, is one fret unless there is a reason to split
  it: see `split_run_into_notes`.
- **Events.** Notes whose frets share a column sound together: with 10 on one string and 9 on
  another, it does not matter whether the 9 is under the 1 or under the 0.
- **Marks.** Trills, brackets and ties (``tr ( ) =``) only separate frets; what the others say is
  read by `slp_transformer.guitar.ascii_marks`. Grace notes are notes.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from math import log
from statistics import median

from slp_transformer.guitar.ascii_bars import BarRows
from slp_transformer.guitar.ascii_marks import parse_techniques
from slp_transformer.guitar.fretboard import MAX_FRET, MAX_SPAN, Note
from slp_transformer.guitar.tab import Technique

MAX_READ_FRET = 24
IMPOSSIBLE_COST = 1e6  # more than any reading costs otherwise


@dataclass(frozen=True)
class FretColumn:
    """The notes that start together in a bar, and the column that they start in."""

    start_column: int
    notes: tuple[Note, ...]
    techniques: tuple[tuple[Technique, ...], ...] = ()

    def with_techniques(self, rows: tuple[str, ...]) -> "FretColumn":
        """Return the column with the techniques that the rows of its bar mark."""
        return replace(self, techniques=parse_techniques(rows, self.start_column, self.notes))


@dataclass(frozen=True)
class ColumnBar:
    """One bar with its notes.

    Attributes:
        num_columns: columns from one bar line to the next.
        columns: what sounds in it.
        open_start: as in `BarRows`.
        open_end: as in `BarRows`.
    """

    num_columns: int
    columns: tuple[FretColumn, ...]
    open_start: bool = False
    open_end: bool = False


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


def all_fret_readings(digits: str) -> list[tuple[int, ...]]:
    """Every way to read a run of digits as frets from 0 to 24 without leading zeros.

    They double with every digit or two, so long runs are read by `find_cheapest_reading` instead.

    >>> all_fret_readings("109")
    [(1, 0, 9), (10, 9)]
    """
    if not digits:
        return [()]
    return [
        (int(digits[:width]), *rest)
        for width in _fret_digit_counts(digits, 0)
        for rest in all_fret_readings(digits[width:])
    ]


def _fret_digit_counts(digits: str, start: int) -> tuple[int, ...]:
    """Return how many digits the fret that begins at `start` may have: one, or one and two."""
    two = digits[start : start + 2]
    return (1, 2) if len(two) == 2 and "10" <= two <= str(MAX_READ_FRET) else (1,)


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
    ways: list[list[tuple[float, int, int]]] = [[] for _ in digits]  # cost, fret, way on
    for start in reversed(range(len(digits))):
        for width in _fret_digit_counts(digits, start):
            fret = int(digits[start : start + width])
            rest, on = 0.0, 0
            if start + width < len(digits):
                after = [more + leap_cost(fret, then) for more, then, _ in ways[start + width]]
                rest = min(after)
                on = after.index(rest)
            ways[start].append((fret_cost(fret) + rest, fret, on))
    frets, start = [], 0
    way = ways[0].index(min(ways[0], key=lambda choice: choice[0]))
    while start < len(digits):
        _, fret, on = ways[start][way]
        frets.append(fret)
        start, way = start + len(str(fret)), on
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
    plain = [other for other in nearby_runs if _is_plain_fret(other.digits)]
    plain.sort(key=lambda other: abs(other.start_column - digit_run.start_column))
    frets = [int(other.digits) for other in plain[:8]]
    return float(median(frets)) if frets else None


@lru_cache(maxsize=1024)
def _is_plain_fret(digits: str) -> bool:
    """Return whether digits can be one fret that a hand holds."""
    fretted = digits != "0" and len(digits) in _fret_digit_counts(digits, 0)
    return fretted and int(digits) <= MAX_FRET


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


class _NearbyRuns:
    """An index of the runs of a bar that matter to `split_run_into_notes`."""

    def __init__(self, digit_runs: list[DigitRun]) -> None:
        self.digit_runs = digit_runs
        self.start_columns = [run.start_column for run in digit_runs]
        self.plain_runs = [i for i, run in enumerate(digit_runs) if _is_plain_fret(run.digits)]
        self.plain_columns = [self.start_columns[i] for i in self.plain_runs]

    def find_near(self, digit_run: DigitRun) -> list[DigitRun]:
        """The runs that start in the same column or the next, and the nearest plain frets.

        Eight plain frets are looked for. At most six begin in one column, so that the eight are
        among the sixteen before the run and the sixteen that begin with it or later.
        """
        middle = bisect_left(self.plain_columns, digit_run.start_column)
        found = set(self.plain_runs[max(0, middle - 16) : middle + 16])
        first = bisect_left(self.start_columns, digit_run.start_column)
        found.update(
            range(first, bisect_right(self.start_columns, digit_run.start_column + 1, lo=first))
        )
        return [self.digit_runs[i] for i in sorted(found) if self.digit_runs[i] is not digit_run]


def read_fret_columns(
    digit_runs: list[DigitRun], pair_cost: float, hand_fret: float | None
) -> tuple[FretColumn, ...]:
    """The notes of a bar, gathered into the columns in which they sound together."""
    placed = []
    certain = pair_cost >= IMPOSSIBLE_COST  # then two digits are one fret, wherever the hand is
    near = _NearbyRuns(digit_runs)
    for run in digit_runs:
        if len(run.digits) == 1 or (certain and len(run.digits) == 2):
            placed.append((run.start_column, run.string, int(run.digits)))
            continue
        if is_two_digit_run(run):
            placed += [(run.start_column + i, run.string, int(run.digits[i])) for i in (0, 1)]
            continue
        for column, fret in split_run_into_notes(run, near.find_near(run), pair_cost, hand_fret):
            placed.append((column, run.string, fret))
    placed.sort()
    groups: list[list[tuple[int, int, int]]] = []
    for note in placed:
        if groups and _is_same_column(groups[-1], note):
            groups[-1].append(note)
        else:
            groups.append([note])
    return tuple(
        FretColumn(
            group[0][0],
            tuple(Note(string, fret) for _, string, fret in sorted(group, key=lambda n: -n[1])),
        )
        for group in groups
    )


def _is_same_column(column_notes: list[tuple[int, int, int]], note: tuple[int, int, int]) -> bool:
    """Return whether a note belongs to a column: it starts there, or under a two-digit fret."""
    column, string, _ = note
    first = column_notes[0][0]
    if any(string == other for _, other, _ in column_notes):
        return False
    if column == first:
        return True
    wide = all(fret > 9 for start, _, fret in column_notes if start == first)
    return column == first + 1 and wide


def read_column_bars(bar_rows: list[BarRows]) -> list[ColumnBar]:
    """Read the notes of a piece's bars; what one bar makes clear helps to read another."""
    all_runs = [find_digit_runs(bar.rows) for bar in bar_rows]
    pair_cost = two_digit_cost([run for runs in all_runs for run in runs])
    read: list[ColumnBar] = []
    hand = None
    for bar, runs in zip(bar_rows, all_runs, strict=True):
        columns = read_fret_columns(runs, pair_cost, hand)
        columns = tuple(column.with_techniques(bar.rows) for column in columns)
        frets = [note.fret for column in columns for note in column.notes if note.fret]
        hand = float(median(frets[-8:])) if frets else hand
        read.append(ColumnBar(len(bar.rows[0]), columns, bar.open_start, bar.open_end))
    return read
