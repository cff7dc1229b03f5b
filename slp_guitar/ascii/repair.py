"""Bars of ASCII tab whose lines have slipped against each other, lined up again."""

import re
from collections import Counter
from itertools import accumulate

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
        free = _indices_of_adjustable_gaps(gaps, shift)
        if not free:  # no gap is wide enough: one column at a time, if any is to spare
            shift, free = -1, _indices_of_adjustable_gaps(gaps, -1)
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


def _indices_of_adjustable_gaps(gaps: list[str], shift: int) -> list[int]:
    """Return which gaps can change by so many columns without making one of two frets."""
    inner = range(1, len(gaps) - 1)
    return [i for i, gap in enumerate(gaps) if shift > 0 or len(gap) + shift >= (i in inner)]


def _match_score(fret_column: int, fret_columns: set[int]) -> int:
    """Return how well a fret that starts in a column goes with the columns that others start in."""
    return 2 * (fret_column in fret_columns) - (
        fret_column - 1 in fret_columns or fret_column + 1 in fret_columns
    )
