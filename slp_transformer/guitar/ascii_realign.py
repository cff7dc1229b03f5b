"""Bars of ASCII tablature whose lines have slipped against each other, made equally wide again."""

import re
from bisect import bisect_left
from collections import Counter
from itertools import accumulate

DIGITS = "0123456789"
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
    """The segment made `width` wide at the places that best fit `fret_columns`."""
    if len(segment) > width + MAX_SLIP_COLUMNS:
        return segment
    while len(segment) != width:
        missing = width - len(segment)
        places = _insertable(segment) if missing > 0 else _removable(segment, -missing)
        if not places:  # no gap is wide enough: one column at a time, if any is to spare
            missing, places = -1, _removable(segment, 1)
        if not places:
            break
        segment = _shift_at_best_place(segment, missing, places, fret_columns)
    return segment


def _shift_at_best_place(
    segment: str, dashes: int, candidate_columns: list[int], fret_columns: set[int]
) -> str:
    """The segment with dashes put in, or taken out, at the place that best fits `fret_columns`."""
    starts = [found.start() for found in re.finditer(r"[0-9]+", segment)]
    # How well frets fit: those before a place stay where they are, those after it move.
    staying = [0, *accumulate(_match_score(start, fret_columns) for start in starts)]
    moved = [0, *accumulate(_match_score(start + dashes, fret_columns) for start in starts)]

    def fit(place: int) -> tuple[int, int]:
        before = bisect_left(starts, place)
        return staying[before] + moved[-1] - moved[before], place

    best = max(candidate_columns, key=fit)
    return segment[:best] + "-" * dashes + segment[best + max(0, -dashes) :]


def _match_score(fret_column: int, fret_columns: set[int]) -> int:
    """Return how well a fret that starts in a column goes with the columns that others start in."""
    return 2 * (fret_column in fret_columns) - (
        fret_column - 1 in fret_columns or fret_column + 1 in fret_columns
    )


def _removable(segment: str, num_columns: int) -> list[int]:
    """Return where so many columns can be taken out without losing a fret or making one of two."""
    is_digit = [False, *(mark in DIGITS for mark in segment), False]
    digits = list(accumulate(is_digit))
    return [
        i
        for i in range(len(segment) - num_columns + 1)
        if digits[i] == digits[i + num_columns]
        and not (is_digit[i] and is_digit[i + num_columns + 1])
    ]


def _insertable(segment: str) -> list[int]:
    """Return where dashes can be put in without cutting a number in two."""
    inner = range(1, len(segment))
    return [0, *(i for i in inner if not set(segment[i - 1 : i + 1]) <= set(DIGITS)), len(segment)]
