"""Time in ASCII tablature: a line that says the unit, and metre and tempo where they change.

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

from slp_transformer.guitar.ascii_bars import Segments
from slp_transformer.guitar.ascii_frets import RawBar
from slp_transformer.guitar.fretboard import Note
from slp_transformer.guitar.tab import FINEST, Bar, Event, Tab

_TIME = re.compile(
    r"\s*time: (?:(?P<unit>\d{1,2}) steps? to a quarter, )?"
    r"(?P<columns>\d{1,4}) columns? to a step\s*"
)
BEATS, KINDS = (2, 3, 4, 5, 6, 7, 9, 12), (2, 4, 8, 16)
_METRE = re.compile(r"\s*metre: (?P<beats>\d{1,3})/(?P<kind>1|2|4|8|16|32)\s*")
_TEMPO = re.compile(r"\s*tempo: (?P<tempo>\d{1,4})\s*")


@dataclass(frozen=True)
class Timing:
    """What a time line says.

    Attributes:
        columns: how many columns a step takes.
        unit: how many steps a quarter note has; None for columns that are no time.
    """

    columns: int
    unit: int | None


def time_lines(tab: Tab, per_step: int, cut: bool) -> list[str]:
    """The time line of a tab; none where nothing hangs on it.

    Args:
        tab: the tab.
        per_step: how many columns a step takes.
        cut: whether some bar goes on in the next system.
    """
    columns = f"{per_step} column{'s' if per_step > 1 else ''} to a step"
    if tab.steps_per_quarter is not None:
        unit = tab.steps_per_quarter
        return [f"time: {unit} step{'s' if unit > 1 else ''} to a quarter, {columns}"]
    first = min((bar.events[0].step for bar in tab.bars if bar.events), default=0)
    steps = gcd(*(event.step for event in tab.events()))
    metres = any(
        bar.events and bar.events[0].step == 0 and looks_like_a_metre(bar.events[0].notes)
        for bar in tab.bars
    )
    plain = not (cut or metres) and first == 0 and (steps == 1 or steps == 0 and per_step == 1)
    return [] if plain else [f"time: {columns}"]


def beats_of(tab: Tab) -> list[int | None]:
    """For each bar how many steps a beat has; None where there is no time."""
    unit, beats, kind = tab.steps_per_quarter, [], 4
    for bar in tab.bars:
        kind = bar.metre[1] if bar.metre else kind
        whole = unit is not None and 4 * unit % kind == 0
        beats.append(4 * unit // kind if whole else unit)
    return beats


def said_of(bar: Bar) -> list[str]:
    """The lines that say what changes with a bar."""
    metre = [f"metre: {bar.metre[0]}/{bar.metre[1]}"] if bar.metre else []
    return metre + ([f"tempo: {bar.tempo}"] if bar.tempo else [])


def stated_timing(line: str) -> Timing | None:
    """What a time line says; None for another line."""
    found = _TIME.fullmatch(line)
    if found is None or int(found["columns"]) < 1:
        return None
    unit = int(found["unit"]) if found["unit"] else None
    return Timing(int(found["columns"]), unit) if unit is None or 1 <= unit <= FINEST else None


def stated_changes(lines: list[str]) -> dict[str, object]:
    """Metre and tempo that lines say, as `Bar` has them."""
    said: dict[str, object] = {}
    for line in lines:
        if (found := _METRE.fullmatch(line)) and int(found["beats"]):
            said["metre"] = int(found["beats"]), int(found["kind"])
        elif (found := _TEMPO.fullmatch(line)) and 1 <= int(found["tempo"]) <= 1000:
            said["tempo"] = int(found["tempo"])
    return said


def timed_bars(
    segments: list[Segments], raw: list[RawBar], said: dict[int, dict[str, object]], columns: int
) -> list[Bar]:
    """Bars in the very steps that they were written in.

    Args:
        segments: the bars as text; those that a line cut in two as two.
        raw: the same, with their notes.
        said: what changes with some of them, by their place.
        columns: how many columns a step takes.
    """
    bars: list[Bar] = []
    widths: list[int] = []
    open_bar = False
    for place, (text, bar) in enumerate(zip(segments, raw, strict=True)):
        blank = min(len(row) - len(row.lstrip()) for row in text.rows) if text.open_left else 0
        before = widths[-1] if open_bar and text.open_left else 0
        events = tuple(
            Event(
                (before + column.column - blank) // columns,
                column.notes,
                techniques=column.techniques,
            )
            for column in bar.columns
        )
        width = before + bar.width - blank
        whole = Bar(max(1, -(-width // columns)), events, **said.get(place, {}))
        if before:
            widths.pop()
            begun = bars.pop()
            whole = replace(begun, steps=whole.steps, events=begun.events + events)
        widths.append(width)
        bars.append(whole)
        open_bar = text.open_right
    return bars


def looks_like_a_metre(notes: tuple[Note, ...]) -> bool:
    """Whether notes may be a metre: two digits on the strings in the middle, as 3 over 4."""
    places = dict(notes)
    return set(places) == {3, 4} and places[3] in BEATS and places[4] in KINDS


def _without_metres(bars: list[RawBar]) -> list[RawBar]:
    """Bars without the metres in front of notes, as in ``G|4-0-``, ``D|4---``.

    Who writes so leaves a column free after other bar lines; else two digits there are notes.
    """
    begun = [bar for bar in bars if bar.columns]
    at_once = [bar for bar in begun if bar.columns[0].column == 0]
    if len(at_once) == len(begun) or not all(
        looks_like_a_metre(bar.columns[0].notes) for bar in at_once
    ):
        return bars
    return [
        replace(bar, columns=bar.columns[1:]) if any(bar is each for each in at_once) else bar
        for bar in bars
    ]


def _joined(bars: list[RawBar]) -> list[RawBar]:
    """Join a bar that breaks at the end of a system with its rest at the start of the next.

    Many writers leave the bar line at the margin out. Two halves are taken for one bar only if they
    are together no longer than a bar and a quarter of the piece.
    """
    closed = [bar.width for bar in bars if not (bar.open_left or bar.open_right)]
    longest = 1.25 * median(closed) if closed else 0
    joined: list[RawBar] = []
    for bar in bars:
        last = joined[-1] if joined else None
        if last and last.open_right and bar.open_left and last.width + bar.width <= longest:
            moved = [replace(c, column=c.column + last.width) for c in bar.columns]
            joined[-1] = RawBar(
                last.width + bar.width,
                (*last.columns, *moved),
                last.open_left,
                bar.open_right,
            )
        else:
            joined.append(bar)
    return joined


def plain_bars(bars: list[RawBar]) -> list[Bar]:
    """Bars in steps: columns, less the free ones after the bar line, over their divisor."""
    bars = _without_metres(_joined(bars))
    columns = [[column.column for column in bar.columns] for bar in bars]
    margin = min((bar[0] for bar in columns if bar), default=0)
    unit = max(1, gcd(*(column - margin for bar in columns for column in bar)))
    return [
        Bar(
            steps=max(1, -(-(bar.width - margin) // unit)),
            events=tuple(
                Event((c.column - margin) // unit, c.notes, techniques=c.techniques)
                for c in bar.columns
            ),
        )
        for bar in bars
    ]
