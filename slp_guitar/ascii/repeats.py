"""Repeats in ASCII tab: signs, counts and endings."""

import re
from dataclasses import replace

from slp_guitar.ascii.bars import BarRows

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


def states_repeat(line: str) -> bool:
    """Return whether a line beside rows says how often they are played, or numbers endings."""
    return bool(_COUNT_PATTERN.search(line) or _ENDING_PATTERN.search(line))


def with_repeat_marks(
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
            starts_repeat=not bar.open_start and _has_repeat_sign(bar, 0),
            num_plays=2 * (not bar.open_end and _has_repeat_sign(bar, -1)),
        )
        for bar in bars
    ]
    _mark_endings_in_place(bars, bool(before) and before[-1].endings == (1,), above)
    ends = [i for i, bar in enumerate(bars) if bar.num_plays]
    for found in _COUNT_PATTERN.finditer(above) if ends else ():
        ends_at = {i: bars[i].start_column + len(bars[i].rows[0]) for i in ends}
        nearest = min(ends, key=lambda i: abs(ends_at[i] - found.start()))  # noqa: B023
        bars[nearest] = replace(bars[nearest], num_plays=_parse_repeat_count(found))
    if bars and (count := _COUNT_PATTERN.search(comment)):
        if not ends:
            bars[0] = replace(bars[0], starts_repeat=True)
        last = ends[-1] if ends else -1
        bars[last] = replace(bars[last], num_plays=_parse_repeat_count(count))
    return bars


def _parse_repeat_count(found: re.Match[str]) -> int:
    """Return how often something is played, twice at least."""
    digits = found["after"] or found["before"] or _NUMBERS.get(str(found["word"]).lower(), 2)
    return max(2, int(digits))


def _has_repeat_sign(bar: BarRows, place: int) -> bool:
    """Return whether two strings have a sign of repetition at the start (0) or the end (-1)."""
    ends = [row.strip()[place] for row in bar.rows if row.strip()]
    return sum(mark in _SIGNS for mark in ends) > 1


def _mark_endings_in_place(bars: list[BarRows], goes_on: bool, above: str) -> None:
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
