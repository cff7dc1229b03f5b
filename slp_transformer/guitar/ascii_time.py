"""Time in ASCII tablature: a line for the unit, and lines for what begins or ends with a bar.

    time: 4 steps to a quarter, 2 columns to a step
    metre: 3/4
    tempo: 90
    repeat: begins here
    repeat: played 3 times
    endings: 1 2

People's tabs have no such lines: there columns are all that is known. A tab that is written with
them is read back as the very same steps.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from math import gcd, inf
from statistics import median
from typing import NamedTuple

from slp_transformer.guitar.ascii_bars import BarRows
from slp_transformer.guitar.fretboard import Note
from slp_transformer.guitar.tab import MAX_STEPS_PER_QUARTER, Bar, Event, Tab

_TIME_PATTERN = re.compile(
    r"\s*time: (?:(?P<unit>\d{1,2}) steps? to a quarter, )?"
    r"(?P<columns>\d{1,4}) columns? to a step\s*"
)
MAX_TIME_SIGNATURE_COLUMNS = 5  # of a bar that holds nothing else
COMMON_BEATS, BEAT_UNITS = (2, 3, 4, 5, 6, 7, 9, 12), (2, 4, 8, 16)
_TIME_SIGNATURE_PATTERN = re.compile(
    r"\W*(?:(?:metre|meter|time(?: signature)?)\s*[:=-]?\s*"
    r"(?P<beats>\d{1,3})/(?P<kind>1|2|4|8|16|32)"
    r"|(?P<bare>[2-9]|12)/(?P<of>4|8)(?: time)?)\W*",
    re.I,
)
_TEMPO_PATTERN = re.compile(
    r"\W*(?:(?:tempo\s*[:=]?|bpm\s*[:=]?|[q\u2669]\s*=)\W*(?P<tempo>\d{1,4})(?:\s*bpm)?"
    r"|(?P<before>\d{2,3})\s*bpm)\W*",
    re.I,
)
_REPEAT_PATTERN = re.compile(r"\s*repeat: (?:begins here|played (?P<times>\d{1,3}) times)\s*")
_ENDINGS_PATTERN = re.compile(r"\s*endings: (?P<times>\d{1,2}(?: \d{1,2}){0,7})\s*")


class ColumnTiming(NamedTuple):
    """The content of a time line.

    Attributes:
        columns_per_step: how many columns a step takes.
        steps_per_quarter: how many steps a quarter note has; None for columns that are no time.
    """

    columns_per_step: int
    steps_per_quarter: int | None


def format_time_line(tab: Tab, columns_per_step: int, has_cut_bar: bool) -> list[str]:
    """Return the time line of a tab; none where the bars can be read without.

    Args:
        tab: the tab.
        columns_per_step: how many columns a step takes.
        has_cut_bar: whether some bar goes on in the next system.
    """
    columns = f"{columns_per_step} column{'s' if columns_per_step > 1 else ''} to a step"
    if tab.steps_per_quarter is not None:
        unit = tab.steps_per_quarter
        return [f"time: {unit} step{'s' if unit > 1 else ''} to a quarter, {columns}"]
    firsts = [bar.events[0] for bar in tab.bars if bar.events]
    steps = gcd(*(event.step for event in tab.iter_events()))
    plain = (
        not has_cut_bar
        and not any(e.step == 0 and looks_like_time_signature(e.notes) for e in firsts)
        and min((event.step for event in firsts), default=0) == 0
        and (steps == 1 or steps == 0 and columns_per_step == 1)
    )
    return [] if plain else [f"time: {columns}"]


def steps_per_beat_by_bar(tab: Tab) -> list[int | None]:
    """Return for each bar how many steps a beat has; None where there is no time."""
    unit, kind = tab.steps_per_quarter, 4
    beats: list[int | None] = []
    for bar in tab.bars:
        kind = bar.time_signature[1] if bar.time_signature else kind
        beats.append(4 * unit // kind if unit is not None and 4 * unit % kind == 0 else unit)
    return beats


def format_bar_changes(bar: Bar) -> list[str]:
    """Return the lines that say what changes with a bar, and how often it is played."""
    lines = {
        "metre: {}/{}".format(*bar.time_signature or (0, 0)): bar.time_signature,
        f"tempo: {bar.tempo_bpm}": bar.tempo_bpm,
        "repeat: begins here": bar.starts_repeat,
        f"endings: {' '.join(map(str, bar.endings))}": bar.endings,
        f"repeat: played {bar.num_plays} times": bar.num_plays > 1,
    }
    return [line for line, is_needed in lines.items() if is_needed]


def parse_time_line(line: str) -> ColumnTiming | None:
    """Parse a time line; return None for any other line."""
    found = _TIME_PATTERN.fullmatch(line)
    if found is None or int(found["columns"]) < 1:
        return None
    unit = int(found["unit"]) if found["unit"] else None
    if unit is not None and not 1 <= unit <= MAX_STEPS_PER_QUARTER:
        return None
    return ColumnTiming(int(found["columns"]), unit)


def apply_bar_changes(bar: Bar, lines: Iterable[str]) -> Bar:
    """Return a bar with what the lines above it state."""
    for line in lines:
        if found := _TIME_SIGNATURE_PATTERN.fullmatch(line):
            beats, kind = int(found["beats"] or found["bare"]), int(found["kind"] or found["of"])
            bar = replace(bar, time_signature=(beats, kind)) if beats else bar
        elif found := _TEMPO_PATTERN.fullmatch(line):
            tempo = int(found["tempo"] or found["before"])
            bar = replace(bar, tempo_bpm=tempo) if 1 <= tempo <= 1000 else bar
        elif found := _ENDINGS_PATTERN.fullmatch(line):
            bar = replace(bar, endings=tuple(map(int, found["times"].split())))
        elif (found := _REPEAT_PATTERN.fullmatch(line)) and found["times"]:
            bar = replace(bar, num_plays=int(found["times"]))
        elif found:
            bar = replace(bar, starts_repeat=True)
    return bar


def build_timed_bars(bar_rows: list[BarRows], bars: list[Bar], columns_per_step: int) -> list[Bar]:
    """Return bars in the very steps that they were written in.

    Args:
        bar_rows: the bars as text; those that a line cut in two as two.
        bars: the same, with columns as steps.
        columns_per_step: how many columns a step takes.
    """
    shifted = []
    for text, bar in zip(bar_rows, bars, strict=True):
        blank = min(len(row) - len(row.lstrip()) for row in text.rows) if text.open_start else 0
        shifted.append(_scale_bar(bar, blank, 1))
    return [_scale_bar(bar, 0, columns_per_step) for bar in _join_cut_bars(bar_rows, shifted, inf)]


def build_untimed_bars(bar_rows: list[BarRows], bars: list[Bar]) -> list[Bar]:
    """Return bars in steps: columns, less the free ones after the bar line, over their divisor.

    Many writers leave the bar line at the margin out. Two halves are taken for one bar only if they
    are together no longer than a bar and a quarter of the piece.
    """
    closed = [
        bar.steps
        for text, bar in zip(bar_rows, bars, strict=True)
        if not (text.open_start or text.open_end)
    ]
    joined = _join_cut_bars(bar_rows, bars, 1.25 * median(closed) if closed else 0)
    bars = _remove_time_signature_notes(joined)
    margin = min((bar.events[0].step for bar in bars if bar.events), default=0)
    unit = max(1, gcd(*(event.step - margin for bar in bars for event in bar.events)))
    return [_scale_bar(bar, margin, unit) for bar in bars]


def _scale_bar(bar: Bar, margin: int, columns_per_step: int) -> Bar:
    """Return a bar without some columns at its start, and with fewer steps to the others."""
    events = (replace(e, step=(e.step - margin) // columns_per_step) for e in bar.events)
    steps = max(1, -(-(bar.steps - margin) // columns_per_step))
    return replace(bar, steps=steps, events=tuple(events))


def _join_cut_bars(bar_rows: list[BarRows], bars: list[Bar], max_columns: float) -> list[Bar]:
    """Join a bar that breaks at the end of a system with its rest at the start of the next."""
    joined: list[Bar] = []
    is_open = False
    for text, bar in zip(bar_rows, bars, strict=True):
        if is_open and text.open_start and joined[-1].steps + bar.steps <= max_columns:
            begun = joined.pop()
            moved = (replace(event, step=event.step + begun.steps) for event in bar.events)
            events = (*begun.events, *moved)
            columns = begun.steps + bar.steps
            bar = replace(
                begun, steps=columns, events=events, num_plays=begun.num_plays or bar.num_plays
            )
        joined.append(bar)
        is_open = text.open_end
    return joined


def looks_like_time_signature(notes: tuple[Note, ...]) -> bool:
    """Return whether notes may be a time signature: on the middle strings, as 3 over 4."""
    places = dict(notes)
    return set(places) == {3, 4} and places[3] in COMMON_BEATS and places[4] in BEAT_UNITS


def _remove_time_signature_notes(bars: list[Bar]) -> list[Bar]:
    """Return bars without time signatures in front of notes, or in a short bar of their own.

    Who writes ``G|4-0-``, ``D|4---`` leaves a column free after other bar lines; else two digits
    there are notes. A bar as ``G|-4-|``, ``D|-4-|`` has at most half of the columns of the longest.
    """
    longest = max((bar.steps for bar in bars), default=0)
    kept: list[Bar] = []
    own: Bar | None = None  # a bar that holds a time signature
    for bar in bars:
        if own is not None:
            repeats = bar.starts_repeat or own.starts_repeat
            bar = _with_time_signature(replace(bar, starts_repeat=repeats), own.events[0])
            own = None
        if (
            len(bar.events) == 1
            and bar.steps <= min(MAX_TIME_SIGNATURE_COLUMNS, longest / 2)
            and looks_like_time_signature(bar.events[0].notes)
        ):
            own = bar
        else:
            kept.append(bar)
    bars = kept
    begun = [bar for bar in bars if bar.events]
    at_once = [bar for bar in begun if bar.events[0].step == 0]
    if len(at_once) == len(begun) or not all(
        looks_like_time_signature(bar.events[0].notes) for bar in at_once
    ):
        return bars
    return [
        _with_time_signature(replace(bar, events=bar.events[1:]), bar.events[0])
        if bar.events and bar.events[0].step == 0
        else bar
        for bar in bars
    ]


def _with_time_signature(bar: Bar, digits: Event) -> Bar:
    """Return a bar with the time signature that two digits one above the other are."""
    places = dict(digits.notes)
    return replace(bar, time_signature=(places[3], places[4]))
