"""Steps and time: columns made into time, coarser steps, time signatures."""

from dataclasses import replace
from fractions import Fraction
from itertools import accumulate
from math import gcd, lcm
from typing import Any

from slp_guitar.tab import MAX_STEPS_PER_QUARTER, Bar, Tab


def columns_to_steps(tab: Tab, steps_per_quarter: int = 4) -> Tab:
    """Return the tab with its columns taken for steps of time, by default for sixteenths.

    Nothing is moved: events so many columns apart are as many steps apart now. People who write
    tab space notes in time in 70 to 80% of bars, so this is a decision, never made in silence.

    Raises:
        ValueError: if the tab has time already, or there are not 1 to 96 steps to a quarter.
    """
    if tab.steps_per_quarter is not None:
        raise ValueError(
            f"This tab has time already, {tab.steps_per_quarter} steps to a quarter note."
        )
    if not 1 <= steps_per_quarter <= MAX_STEPS_PER_QUARTER:
        raise ValueError(
            f"A quarter note has 1 to {MAX_STEPS_PER_QUARTER} steps, not {steps_per_quarter}."
        )
    return replace(tab, steps_per_quarter=steps_per_quarter)


def require_steps_per_quarter(tab: Tab) -> int:
    """Steps to a quarter note.

    Raises:
        ValueError: if the tab's steps are columns.
    """
    if tab.steps_per_quarter is None:
        raise ValueError(
            "This tab's steps are columns of a text, not time; say how many make a quarter note "
            "with columns_to_steps."
        )
    return tab.steps_per_quarter


def with_coarsest_grid(tab: Tab) -> Tab:
    """Return the same music in the longest steps that hold it, as it is read from a file.

    Raises:
        ValueError: if the tab has no time.
    """
    unit = require_steps_per_quarter(tab)
    places = [bar.steps for bar in tab.bars]
    for event in tab.iter_events():
        places += [event.step, *event.durations]
    places += [step for bar in tab.bars for step, _ in bar.tempo_changes]
    size = gcd(unit, *places)
    if size == 1:
        return tab
    tab = tab.with_events(
        replace(event, step=event.step // size, durations=tuple(d // size for d in event.durations))
        for event in tab.iter_events()
    )
    bars = (
        replace(
            bar,
            steps=bar.steps // size,
            tempo_changes=tuple((step // size, bpm) for step, bpm in bar.tempo_changes),
        )
        for bar in tab.bars
    )
    return replace(tab, bars=tuple(bars), steps_per_quarter=unit // size)


def find_common_steps_per_quarter(moments_in_quarters: list[Fraction]) -> int | None:
    """The fewest steps to a quarter that hold moments given in quarters; None if 96 are too few."""
    unit = 1
    for moment in moments_in_quarters:
        unit = lcm(unit, moment.denominator)
        if unit > MAX_STEPS_PER_QUARTER:
            return None
    return unit


def bar_start_steps(tab: Tab) -> list[int]:
    """The step, from the beginning of the piece, at which each bar begins; and the last's end."""
    return list(accumulate((bar.steps for bar in tab.bars), initial=0))


def time_signature_of(
    bar: Bar, steps_per_quarter: int, stated: tuple[int, int] | None = None
) -> tuple[int, int]:
    """Return a time signature exactly as long as a bar: the stated if that fits, else the plainest.

    Raises:
        ValueError: if no time signature is as long as the bar.
    """
    signature = bar.time_signature or stated
    if signature is not None and (4 * signature[0] * steps_per_quarter == bar.steps * signature[1]):
        return signature
    quarters = Fraction(bar.steps, steps_per_quarter)
    for kind in (4, 8, 16, 32):
        beats = quarters * kind / 4
        if beats.denominator == 1:
            return int(beats), kind
    raise ValueError(
        f"A bar of {bar.steps} steps, {steps_per_quarter} to a quarter note, has no time "
        "signature: it is not a whole number of thirty-second notes."
    )


def fit_bars_to_time_signature(tab: Tab, max_bar_quarters: int = 16) -> tuple[Tab, list[int]]:
    """Pad or truncate bars so that all have a time signature, as generated ones may not.

    A bar that fits no time signature is padded to a whole number of quarters. One that is longer
    than `max_bar_quarters` is split into parts of that length.

    Returns:
        The tab; and the numbers of the bars that were changed.

    Raises:
        ValueError: as `require_steps_per_quarter`.
    """
    unit, bars, changed = require_steps_per_quarter(tab), [], []
    for number, bar in enumerate(tab.bars, start=1):
        try:
            time_signature_of(bar, unit)
        except ValueError:
            bar = replace(bar, steps=-(-bar.steps // unit) * unit)
            changed.append(number)
        parts = range(0, bar.steps, max_bar_quarters * unit)
        for start in parts:
            end = min(bar.steps, start + max_bar_quarters * unit)
            inside = (event for event in bar.events if start <= event.step < end)
            events = tuple(replace(event, step=event.step - start) for event in inside)
            tempos = tuple((s - start, bpm) for s, bpm in bar.tempo_changes if start < s < end)
            part = replace(bar, steps=end - start, events=events, tempo_changes=tempos)
            if start > 0:
                tempo = dict(bar.tempo_changes).get(start)
                part = replace(part, tempo_bpm=tempo, starts_repeat=False)
            bars.append(part if end == bar.steps else replace(part, num_plays=0))
        if len(parts) > 1 and number not in changed:
            changed.append(number)
    return replace(tab, bars=tuple(bars)), changed


def add_time_signatures(tab: Tab) -> Tab:
    """Return the tab with the time signature of every bar in which it changes.

    Raises:
        ValueError: as `time_signature_of` and `require_steps_per_quarter`.
    """
    unit, bars = require_steps_per_quarter(tab), []
    stated = before = None
    for bar in tab.bars:
        stated = bar.time_signature or stated
        own = time_signature_of(bar, unit, stated)
        shown = own if own != before else None
        bars.append(bar if bar.time_signature == shown else replace(bar, time_signature=shown))
        before = own
    return replace(tab, bars=tuple(bars))


def drop_repeated_changes(bars: list[Bar]) -> list[Bar]:
    """Return the bars with time signature, tempo and key only where they change."""
    changed: list[Bar] = []
    now: dict[str, Any] = {"time_signature": None, "tempo_bpm": None, "key": "C"}
    for bar in bars:
        stated = {name: getattr(bar, name) for name in now}
        shown: dict[str, Any] = {
            name: None if own == now[name] else own for name, own in stated.items()
        }
        now |= {name: own for name, own in stated.items() if own}
        inside = []
        for step, bpm in bar.tempo_changes:
            if bpm != now["tempo_bpm"]:
                inside.append((step, bpm))
                now["tempo_bpm"] = bpm
        if shown != stated or tuple(inside) != bar.tempo_changes:
            bar = replace(bar, tempo_changes=tuple(inside), **shown)
        changed.append(bar)
    return changed
