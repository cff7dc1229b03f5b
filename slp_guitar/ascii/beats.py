"""Beats above or below the strings of ASCII tab: which columns of a bar are its beats.

::

    1   |   .   |   .   |   .   |   .             1  &  2  &  3  &
       -0-------2---3---5-------7-------|        |-0-----2--3--5-----|

A stroke is a beat, and dots part it evenly; people count out loud as well. How long a beat is, they
leave to the meter. Where bars have strokes of any number, these are the stems of notes, no beats.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import lcm
from statistics import median
from typing import NamedTuple

from slp_guitar.ascii.bars import BarRows
from slp_guitar.ascii.systems import StaffSystem
from slp_guitar.tab import Bar

MAX_LINES_AWAY = 3  # of the strings, among which beats are looked for
MAX_OFFSET = 1  # columns between a beat and the fret that is struck on it
_STROKES_PATTERN = re.compile(r"(?:\d{1,3}(?=\s))?[\s|.]*\|[\s.]+\|[\s|.]*")
_COUNT_PATTERN = re.compile(r"[\s|]*1\s+(?:[&+e]\s+)(?:[&+ae]\s+)*2\b[\d&+ae\s|]*")
_MARK_PATTERN = re.compile(r"[|.]|\d{1,2}|[&+ae]")


class BeatMark(NamedTuple):
    """A mark near a bar: its column in the bar, and whether it is a beat or a part of one."""

    column: int
    is_beat: bool


def find_text_around(
    lines: list[str], system: StaffSystem, string_lines: set[int]
) -> tuple[list[str], list[str]]:
    """Return the lines right above a system and right below it that are no strings.

    What is right below the system before belongs to that one, if a blank line is behind it.

    Args:
        lines: the lines of the text.
        system: the system.
        string_lines: the numbers of all lines of systems, from 1.
    """
    first, end = system.first_line_number - 1, max(system.line_numbers)
    start = max(0, first - MAX_LINES_AWAY)
    above = lines[start:first]
    if before := string_lines & set(range(start + 1, first + 1)):
        above = lines[max(before) : first]
        blanks = [place for place, line in enumerate(above) if not line.strip()]
        above = above[blanks[0] + 1 :] if blanks else above
    below: list[str] = []
    for index in range(end, min(end + MAX_LINES_AWAY, len(lines))):
        if index + 1 in string_lines or not lines[index].strip():
            break
        below.append(lines[index])
    return above, below


def find_beats(
    lines_above: Sequence[str], lines_below: Sequence[str], bars: Sequence[BarRows]
) -> list[list[BeatMark]]:
    """Return the marks of beats at each bar of a system; none where no line has them.

    Args:
        lines_above: the lines right above it that are no strings, the nearest last.
        lines_below: the lines right below it that are no strings, up to a blank one.
        bars: its bars.
    """
    for line in (*reversed(lines_above), *lines_below):
        line = line.expandtabs().rstrip()
        if is_beat_line(line):
            is_count = bool(_COUNT_PATTERN.fullmatch(line))
            return [_marks_in(line, bar, is_count) for bar in bars]
    return [[] for _ in bars]


def is_beat_line(line: str) -> bool:
    """Return whether a line marks beats, by counts or by strokes."""
    return bool(_COUNT_PATTERN.fullmatch(line) or _STROKES_PATTERN.fullmatch(line.lstrip()))


def _marks_in(line: str, bar: BarRows, is_count: bool) -> list[BeatMark]:
    """Return the marks of a line that are at a bar."""
    start, end = bar.start_column, bar.start_column + len(bar.rows[0])
    start_of_line = 0 if is_count else len(line) - len(re.sub(r"^\s*\d{1,3}(?=\s)", "", line))
    return [
        BeatMark(found.start() - start, found[0].isdigit() if is_count else found[0] == "|")
        for found in _MARK_PATTERN.finditer(line, start_of_line)
        if start <= found.start() < end and not (is_count and found[0] in "|.")
    ]


def with_beat_onsets(bars: Sequence[Bar], marks_by_bar: Sequence[list[BeatMark]]) -> list[Bar]:
    """Return bars in columns with the onsets that the beats beside them give."""
    return [
        replace(bar, beat_onsets=_find_beat_onsets(bar, marks))
        for bar, marks in zip(bars, marks_by_bar, strict=True)
    ]


def _find_beat_onsets(bar: Bar, marks: list[BeatMark]) -> tuple[Fraction, ...]:
    """Return when the events of a bar begin, and how long it is, in beats; or nothing."""
    beats = [place for place, mark in enumerate(marks) if mark.is_beat]
    if not beats or not bar.events or marks[0].column - bar.events[0].step > MAX_OFFSET:
        return ()
    parts = [b - a for a, b in pairwise([*beats, len(marks)])]
    usual_parts = int(median(parts))
    if len(set(parts)) > 2 or beats[0] >= max(2, usual_parts):
        return ()
    times = [Fraction(place - beats[0], max(parts)) for place in range(beats[0])]
    for number, (first, count) in enumerate(zip(beats, parts, strict=True)):
        is_last = number == len(beats) - 1
        count = usual_parts if is_last and count < usual_parts else count
        own = range(min(count, len(marks) - first))
        times += [number + Fraction(part, count) for part in own]
    columns = [mark.column for mark in marks]
    gaps = [
        Fraction(after - before) / (late - early)
        for (before, after), (early, late) in zip(pairwise(columns), pairwise(times), strict=True)
    ]
    per_beat = median(gaps) if gaps else Fraction(bar.steps - columns[0])
    end = columns[-1] + per_beat * (len(beats) - times[-1])
    last = bar.events[-1].step
    if last >= end:
        end = Fraction(max(bar.steps, last + 1))
    columns_and_end = [*map(Fraction, columns), Fraction(end)]
    start = times[0]
    times = [*(time - start for time in times), len(beats) - start]
    tried = [
        [_interpolate(column, columns_and_end, times) for column in meant]
        for meant in _columns_as_meant([event.step for event in bar.events], columns)
    ]
    plainest = min(tried, key=lambda onsets: lcm(*(onset.denominator for onset in onsets)))
    return *plainest, times[-1]


def _columns_as_meant(struck: list[int], marks: list[int]) -> list[list[int]]:
    """Return the columns of events, and what else they may be meant for: beside a mark, on it."""
    found = [struck]
    if all(after - before > MAX_OFFSET for before, after in pairwise(struck)):
        near = (next((m for m in marks if abs(m - own) <= MAX_OFFSET), own) for own in struck)
        found.append(list(near))
    moves = (move for move in range(-MAX_OFFSET, MAX_OFFSET + 1) if move)
    return [*found, *([own + move for own in struck] for move in moves)]


def _interpolate(column: int, columns: Sequence[Fraction], times: Sequence[Fraction]) -> Fraction:
    """Return the time of a column, by the marks around it."""
    near = [t for at, t in zip(columns[:-1], times[:-1], strict=True) if at == column]
    if near or column <= columns[0]:
        return near[0] if near else times[0]
    place = max(n for n, at in enumerate(columns[:-1]) if at < column)
    share = (column - columns[place]) / (columns[place + 1] - columns[place])
    return times[place] + share * (times[place + 1] - times[place])
