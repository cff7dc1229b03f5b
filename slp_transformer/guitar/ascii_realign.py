"""Bars of ASCII tablature whose lines have slipped against each other, made equally wide again."""

import re
from bisect import bisect_left
from collections import Counter
from itertools import accumulate

DIGITS = "0123456789"
SLIP = 64  # columns; what is longer than the others by more has not slipped


def line_up(bar: tuple[str, ...]) -> tuple[str, ...]:
    """Make the six segments of a bar equally wide.

    A segment that is too short or too long for the others gets dashes put in or taken out where its
    frets then fall on most columns in which the others have frets; after its last fret if that
    makes no difference. One that has no dashes to spare stays too long.
    """
    width, agreeing = Counter(len(segment) for segment in bar).most_common(1)[0]
    if agreeing == len(bar):
        return bar
    columns = {found.start() for s in bar if len(s) == width for found in re.finditer(r"[0-9]+", s)}
    return tuple(s if len(s) == width else _stretch(s, width, columns) for s in bar)


def _stretch(segment: str, width: int, columns: set[int]) -> str:
    """The segment made `width` wide at the places that best fit `columns`."""
    if len(segment) > width + SLIP:
        return segment
    while len(segment) != width:
        missing = width - len(segment)
        places = _gaps(segment) if missing > 0 else _removable(segment, -missing)
        if not places:  # no gap is wide enough: one column at a time, if any is to spare
            missing, places = -1, _removable(segment, 1)
        if not places:
            break
        segment = _changed(segment, missing, places, columns)
    return segment


def _changed(segment: str, missing: int, places: list[int], columns: set[int]) -> str:
    """The segment with dashes put in, or taken out, at the place that best fits `columns`."""
    starts = [found.start() for found in re.finditer(r"[0-9]+", segment)]
    # How well frets fit: those before a place stay where they are, those after it move.
    staying = [0, *accumulate(_fit(start, columns) for start in starts)]
    moved = [0, *accumulate(_fit(start + missing, columns) for start in starts)]

    def fit(place: int) -> tuple[int, int]:
        before = bisect_left(starts, place)
        return staying[before] + moved[-1] - moved[before], place

    best = max(places, key=fit)
    return segment[:best] + "-" * missing + segment[best + max(0, -missing) :]


def _fit(start: int, columns: set[int]) -> int:
    """How well a fret that starts in a column goes with the columns that others start in."""
    return 2 * (start in columns) - (start - 1 in columns or start + 1 in columns)


def _removable(segment: str, surplus: int) -> list[int]:
    """Where so many columns can be taken out without losing a fret or making one of two."""
    is_digit = [False, *(mark in DIGITS for mark in segment), False]
    digits = list(accumulate(is_digit))
    return [
        i
        for i in range(len(segment) - surplus + 1)
        if digits[i] == digits[i + surplus] and not (is_digit[i] and is_digit[i + surplus + 1])
    ]


def _gaps(segment: str) -> list[int]:
    """Where dashes can be put in without cutting a number in two."""
    inner = range(1, len(segment))
    return [
        0,
        *(i for i in inner if not set(segment[i - 1 : i + 1]) <= set(DIGITS)),
        len(segment),
    ]
