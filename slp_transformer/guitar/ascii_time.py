"""Time in ASCII tablature: a line for the unit, and lines for changes of time signature and tempo.

    time: 4 steps to a quarter, 2 columns to a step
    metre: 3/4
    tempo: 90

People's tabs have no such lines: there columns are all that is known. A tab that is written with
them is read back as the very same steps.
"""

import re
from dataclasses import dataclass, replace
from math import gcd
from statistics import median

from slp_transformer.guitar.ascii_bars import BarRows
from slp_transformer.guitar.ascii_frets import ColumnBar
from slp_transformer.guitar.fretboard import Note
from slp_transformer.guitar.tab import MAX_STEPS_PER_QUARTER, Bar, Event, Tab

_TIME_PATTERN = re.compile(
    r"\s*time: (?:(?P<unit>\d{1,2}) steps? to a quarter, )?"
    r"(?P<columns>\d{1,4}) columns? to a step\s*"
)
COMMON_BEATS, BEAT_UNITS = (2, 3, 4, 5, 6, 7, 9, 12), (2, 4, 8, 16)
_TIME_SIGNATURE_PATTERN = re.compile(r"\s*metre: (?P<beats>\d{1,3})/(?P<kind>1|2|4|8|16|32)\s*")
_TEMPO_PATTERN = re.compile(r"\s*tempo: (?P<tempo>\d{1,4})\s*")


@dataclass(frozen=True)
class ColumnTiming:
    """The content of a time line.

    Attributes:
        columns_per_step: how many columns a step takes.
        steps_per_quarter: how many steps a quarter note has; None for columns that are no time.
    """

    columns_per_step: int
    steps_per_quarter: int | None


def format_time_line(tab: Tab, columns_per_step: int, has_cut_bar: bool) -> list[str]:
    """The time line of a tab; none where the bars can be read without.

    Args:
        tab: the tab.
        columns_per_step: how many columns a step takes.
        has_cut_bar: whether some bar goes on in the next system.
    """
    columns = f"{columns_per_step} column{'s' if columns_per_step > 1 else ''} to a step"
    if tab.steps_per_quarter is not None:
        unit = tab.steps_per_quarter
        return [f"time: {unit} step{'s' if unit > 1 else ''} to a quarter, {columns}"]
    first = min((bar.events[0].step for bar in tab.bars if bar.events), default=0)
    steps = gcd(*(event.step for event in tab.iter_events()))
    time_signatures = any(
        bar.events and bar.events[0].step == 0 and looks_like_time_signature(bar.events[0].notes)
        for bar in tab.bars
    )
    plain = (
        not (has_cut_bar or time_signatures)
        and first == 0
        and (steps == 1 or steps == 0 and columns_per_step == 1)
    )
    return [] if plain else [f"time: {columns}"]


def steps_per_beat_by_bar(tab: Tab) -> list[int | None]:
    """For each bar how many steps a beat has; None where there is no time."""
    unit, beats, kind = tab.steps_per_quarter, [], 4
    for bar in tab.bars:
        kind = bar.time_signature[1] if bar.time_signature else kind
        whole = unit is not None and 4 * unit % kind == 0
        beats.append(4 * unit // kind if whole else unit)
    return beats


def format_bar_changes(bar: Bar) -> list[str]:
    """The lines that say what changes with a bar."""
    changes = ["metre: {}/{}".format(*bar.time_signature)] if bar.time_signature else []
    return changes + ([f"tempo: {bar.tempo_bpm}"] if bar.tempo_bpm else [])


def parse_time_line(line: str) -> ColumnTiming | None:
    """Parse a time line; return None for any other line."""
    found = _TIME_PATTERN.fullmatch(line)
    if found is None or int(found["columns"]) < 1:
        return None
    unit = int(found["unit"]) if found["unit"] else None
    return (
        ColumnTiming(int(found["columns"]), unit)
        if unit is None or 1 <= unit <= MAX_STEPS_PER_QUARTER
        else None
    )


def parse_bar_changes(lines: list[str]) -> dict[str, object]:
    """Parse the time signature and tempo in some lines, as keyword arguments of `Bar`."""
    changes: dict[str, object] = {}
    for line in lines:
        if (found := _TIME_SIGNATURE_PATTERN.fullmatch(line)) and int(found["beats"]):
            changes["time_signature"] = int(found["beats"]), int(found["kind"])
        elif (found := _TEMPO_PATTERN.fullmatch(line)) and 1 <= int(found["tempo"]) <= 1000:
            changes["tempo_bpm"] = int(found["tempo"])
    return changes


def build_timed_bars(
    segments: list[BarRows],
    column_bars: list[ColumnBar],
    bar_changes: dict[int, dict[str, object]],
    columns_per_step: int,
) -> list[Bar]:
    """Bars in the very steps that they were written in.

    Args:
        segments: the bars as text; those that a line cut in two as two.
        column_bars: the same, with their notes.
        bar_changes: what changes with some of them, by their place.
        columns_per_step: how many columns a step takes.
    """
    bars: list[Bar] = []
    widths: list[int] = []
    open_bar = False
    for place, (text, bar) in enumerate(zip(segments, column_bars, strict=True)):
        blank = min(len(row) - len(row.lstrip()) for row in text.rows) if text.open_start else 0
        before = widths[-1] if open_bar and text.open_start else 0
        events = tuple(
            Event(
                (before + column.start_column - blank) // columns_per_step,
                column.notes,
                techniques=column.techniques,
            )
            for column in bar.columns
        )
        width = before + bar.num_columns - blank
        whole = Bar(max(1, -(-width // columns_per_step)), events, **bar_changes.get(place, {}))
        if before:
            widths.pop()
            begun = bars.pop()
            whole = replace(begun, steps=whole.steps, events=begun.events + events)
        widths.append(width)
        bars.append(whole)
        open_bar = text.open_end
    return bars


def looks_like_time_signature(notes: tuple[Note, ...]) -> bool:
    """Return whether notes may be a time signature: on the middle strings, as 3 over 4."""
    places = dict(notes)
    return set(places) == {3, 4} and places[3] in COMMON_BEATS and places[4] in BEAT_UNITS


def _remove_time_signature_notes(bars: list[ColumnBar]) -> list[ColumnBar]:
    """Bars without the time signatures in front of notes, as in ``G|4-0-``, ``D|4---``.

    Who writes so leaves a column free after other bar lines; else two digits there are notes.
    """
    begun = [bar for bar in bars if bar.columns]
    at_once = [bar for bar in begun if bar.columns[0].start_column == 0]
    if len(at_once) == len(begun) or not all(
        looks_like_time_signature(bar.columns[0].notes) for bar in at_once
    ):
        return bars
    return [
        replace(bar, columns=bar.columns[1:]) if any(bar is each for each in at_once) else bar
        for bar in bars
    ]


def _join_cut_bars(bars: list[ColumnBar]) -> list[ColumnBar]:
    """Join a bar that breaks at the end of a system with its rest at the start of the next.

    Many writers leave the bar line at the margin out. Two halves are taken for one bar only if they
    are together no longer than a bar and a quarter of the piece.
    """
    closed = [bar.num_columns for bar in bars if not (bar.open_start or bar.open_end)]
    longest = 1.25 * median(closed) if closed else 0
    joined: list[ColumnBar] = []
    for bar in bars:
        last = joined[-1] if joined else None
        if (
            last
            and last.open_end
            and bar.open_start
            and last.num_columns + bar.num_columns <= longest
        ):
            moved = [
                replace(c, start_column=c.start_column + last.num_columns) for c in bar.columns
            ]
            joined[-1] = ColumnBar(
                last.num_columns + bar.num_columns,
                (*last.columns, *moved),
                last.open_start,
                bar.open_end,
            )
        else:
            joined.append(bar)
    return joined


def build_untimed_bars(column_bars: list[ColumnBar]) -> list[Bar]:
    """Bars in steps: columns, less the free ones after the bar line, over their divisor."""
    column_bars = _remove_time_signature_notes(_join_cut_bars(column_bars))
    columns = [[column.start_column for column in bar.columns] for bar in column_bars]
    margin = min((bar[0] for bar in columns if bar), default=0)
    unit = max(1, gcd(*(column - margin for bar in columns for column in bar)))
    return [
        Bar(
            steps=max(1, -(-(bar.num_columns - margin) // unit)),
            events=tuple(
                Event((c.start_column - margin) // unit, c.notes, techniques=c.techniques)
                for c in bar.columns
            ),
        )
        for bar in column_bars
    ]
