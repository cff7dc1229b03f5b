"""The frets and events of a bar of ASCII tab: runs of digits read as one fret or as several."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import log
from operator import itemgetter
from statistics import median
from typing import NamedTuple

from slp_guitar.ascii.bars import BarRows
from slp_guitar.ascii.marks import DEAD_MARK, parse_techniques
from slp_guitar.fretboard import MAX_FRET, MAX_SPAN, Note
from slp_guitar.tab import Bar, Event, TabNote

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


def _possible_digit_counts(digits: str, start: int) -> tuple[int, ...]:
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
        for width in _possible_digit_counts(digits, start):
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
    return len(digit_run.digits) == 2 and _possible_digit_counts(digit_run.digits, 0) == (1,)


def compute_pair_cost(digit_runs: list[DigitRun]) -> float:
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
        if len(other.digits) in _possible_digit_counts(other.digits, 0)
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
        pair_cost: the `compute_pair_cost` of the piece.
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
    pair_cost = compute_pair_cost([run for runs in all_runs for run in runs])
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
