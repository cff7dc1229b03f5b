"""The notes of a bar of ASCII tablature: digits into frets, frets into events.

- **Frets.** A run of digits is one fret, or several notes written without a dash between them.
  ``7`` and ``10`` are frets, ``109`` is 10 and 9, and ``34`` can only be 3 and 4 (no guitar has a
  34th fret). What remains open, such as ``11``, is one fret unless there is a reason to split
  it: see `split_digits`.
- **Events.** Notes whose frets share a column sound together: with 10 on one string and 9 on
  another, it does not matter whether the 9 stands under the 1 or under the 0.
- **Marks.** Slurs, slides, trills, harmonics, brackets and ties (``h p / \\ tr ~ x ( ) < > =``)
  only separate frets. Grace notes are notes.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from math import log
from statistics import median

from slp_transformer.guitar.ascii_tab import Segments
from slp_transformer.guitar.fretboard import MAX_FRET, MAX_SPAN, Note

HIGHEST_FRET = 24
NEVER = 1e6  # more than any reading costs otherwise


@dataclass(frozen=True)
class Column:
    """The notes that start together in a bar, and the column that they start in."""

    column: int
    notes: tuple[Note, ...]


@dataclass(frozen=True)
class RawBar:
    """One bar with its notes.

    Attributes:
        width: columns from one bar line to the next.
        columns: what sounds in it.
        open_left: as in `Segments`.
        open_right: as in `Segments`.
    """

    width: int
    columns: tuple[Column, ...]
    open_left: bool = False
    open_right: bool = False


@dataclass(frozen=True)
class Run:
    """Digits that stand next to each other on one string: one fret, or several."""

    string: int
    column: int
    digits: str


def runs_of(bar: tuple[str, ...]) -> list[Run]:
    """Every run of digits in a bar, from left to right."""
    runs = [
        Run(string, found.start(), found.group())
        for string, segment in enumerate(bar, start=1)
        for found in re.finditer(r"[0-9]+", segment)
    ]
    return sorted(runs, key=lambda run: (run.column, -run.string))


@lru_cache(maxsize=4096)
def readings(digits: str) -> list[tuple[int, ...]]:
    """Every way to read a run of digits as frets from 0 to 24 without leading zeros.

    >>> readings("109")
    [(1, 0, 9), (10, 9)]
    """
    if not digits:
        return [()]
    found = [(int(digits[0]), *rest) for rest in readings(digits[1:])]
    if len(digits) > 1 and digits[0] != "0" and int(digits[:2]) <= HIGHEST_FRET:
        found += [(int(digits[:2]), *rest) for rest in readings(digits[2:])]
    return found


def is_pair(run: Run) -> bool:
    """Whether two digits can only be two notes, as ``34`` or ``02``."""
    return len(run.digits) == 2 and len(readings(run.digits)) == 1


def pair_cost(runs: list[Run]) -> float:
    """What it costs, in a piece with these runs, to read two digits as two notes.

    Two digits that can only be two notes tell that the writer leaves no dash between quick notes;
    about a quarter as many such pairs will look like a fret from 10 to 24. The cost is the
    resulting log-odds against a pair, times three (a fret out of reach costs 1).

    In a piece with no such pair, and no run of three digits, two digits are always one fret,
    however far the hand has to go.
    """
    doubles = [run for run in runs if len(run.digits) == 2]
    pairs = sum(is_pair(run) for run in doubles)
    if not pairs and all(len(run.digits) < 3 for run in runs):
        return NEVER
    share = (0.25 * pairs + 0.01) / (len(doubles) - pairs + 1)
    share = min(max(share, 0.001), 0.9)
    return 3 * log((1 - share) / share)


def hand_near(run: Run, others: list[Run]) -> float | None:
    """Where the hand is: the middle of the eight nearest plain frets, or None if there are none."""
    plain = [o for o in others if o.digits != "0" and len(o.digits) < 3 and not is_pair(o)]
    plain.sort(key=lambda other: abs(other.column - run.column))
    frets = [fret for fret in (int(other.digits) for other in plain) if fret <= MAX_FRET]
    return float(median(frets[:8])) if frets else None


def split_digits(
    run: Run, others: list[Run], pair_cost: float, hand: float | None = None
) -> list[tuple[int, int]]:
    """Read a run of digits as one fret or as several, whichever is cheaper.

    Two digits are one fret unless two notes are cheaper. A reading costs

    - `pair_cost` for a second note, or less than nothing if a pair that cannot be one fret, such as
      ``34``, stands in the same two columns on another string, or (where the piece has such pairs)
      if two other strings have a note each, one in either column: then each column is a moment;
    - 1 for each fret that a note lies out of reach (`MAX_SPAN`) of the note before it, and of the
      hand, which is where the nearest frets in the bar are; half of that next to an open string;
    - 10 for a fret above the 19th.

    Of three digits or more, some certainly are notes side by side: there a further note costs 3,
    and distance from the hand counts half.

    Args:
        run: the digits.
        others: the other runs of the bar.
        pair_cost: what `pair_cost` says of the piece.
        hand: where the hand was before this bar, for three digits or more in a bar that does not
            tell.

    Returns:
        Column and fret of every note.
    """
    long = len(run.digits) > 2
    center = hand_near(run, others) or (hand if long else None)
    elsewhere = [other for other in others if other.string != run.string]
    singles = {other.column for other in elsewhere if len(other.digits) == 1}
    dense = pair_cost < 15 and {run.column, run.column + 1} <= singles
    dense = dense or any(is_pair(other) and other.column == run.column for other in elsewhere)
    per_note = 3 if long else -20 if dense else pair_cost

    def cost(frets: tuple[int, ...]) -> float:
        steps = zip(frets, frets[1:], strict=False)
        leaps = sum(_out_of_reach(a, b) / (1 if a and b else 2) for a, b in steps)
        shift = sum(_out_of_reach(f, center) for f in frets if f and center is not None)
        high = sum(fret > MAX_FRET for fret in frets)
        return leaps + shift / (2 if long else 1) + per_note * len(frets) + 10 * high

    placed, column = [], run.column
    for fret in min(readings(run.digits), key=cost):
        placed.append((column, fret))
        column += len(str(fret))
    return placed


def _out_of_reach(fret: int, other: int | float) -> float:
    """How many frets too far apart two frets are for one hand."""
    return float(max(0, abs(fret - other) - MAX_SPAN))


def columns_of(runs: list[Run], cost_of_pair: float, hand: float | None) -> tuple[Column, ...]:
    """The notes of a bar, gathered into the columns in which they sound together."""
    placed = []
    for run in runs:
        if len(run.digits) == 1:
            placed.append((run.column, run.string, int(run.digits)))
            continue
        others = [other for other in runs if other is not run]
        for column, fret in split_digits(run, others, cost_of_pair, hand):
            placed.append((column, run.string, fret))
    placed.sort()
    groups: list[list[tuple[int, int, int]]] = []
    for note in placed:
        if groups and _together(groups[-1], note):
            groups[-1].append(note)
        else:
            groups.append([note])
    return tuple(
        Column(
            group[0][0],
            tuple(Note(string, fret) for _, string, fret in sorted(group, key=lambda n: -n[1])),
        )
        for group in groups
    )


def _together(group: list[tuple[int, int, int]], note: tuple[int, int, int]) -> bool:
    """Whether a note sounds with the group before it: same column, or under a two-digit fret."""
    column, string, _ = note
    first = group[0][0]
    if any(string == other for _, other, _ in group):
        return False
    if column == first:
        return True
    wide = all(fret > 9 for start, _, fret in group if start == first)
    return column == first + 1 and wide


def raw_bars(bars: list[Segments]) -> list[RawBar]:
    """Read the notes of a piece's bars; what one bar makes clear helps to read another."""
    all_runs = [runs_of(bar.rows) for bar in bars]
    cost_of_pair = pair_cost([run for runs in all_runs for run in runs])
    read: list[RawBar] = []
    hand = None
    for bar, runs in zip(bars, all_runs, strict=True):
        columns = columns_of(runs, cost_of_pair, hand)
        frets = [note.fret for column in columns for note in column.notes if note.fret]
        hand = float(median(frets[-8:])) if frets else hand
        read.append(RawBar(len(bar.rows[0]), columns, bar.open_left, bar.open_right))
    return read
