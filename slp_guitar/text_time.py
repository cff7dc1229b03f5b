"""Time in a tab whose steps are columns: its meter, and how long each note lasts by its gap.

Writers space notes in time, but not exactly: a fret of two digits widens its beat, a column stays
free behind some bar lines, and bars with quick notes are drawn wider. So each bar is fitted by
itself. The meter is what the text states, or the letters above most bars, or what most bars are as
long as. Then the letters above a bar say when its notes begin, and the meter follows them; else the
gaps between the notes are shared out over its steps, on the coarsest grid that they fit. The rhythm
of a bar that fits none is estimated beat by beat, and `FoundTime` names it.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product
from math import lcm, log
from operator import attrgetter
from statistics import median
from typing import NamedTuple

from slp_guitar.tab import MAX_STEPS_PER_QUARTER, Bar, Tab
from slp_guitar.timing import drop_repeated_changes, time_signature_of
from slp_guitar.uneven_bars import MAX_ESTIMATED, TRIPLETS, estimate_steps, find_even_grid

GRIDS = (1, 2, 4, 3, 8, 6, 12)
"""Steps to a quarter note that are tried for a bar, the plainest first."""
GRID_COST = 0.06  # of each grid over the one before, so that a finer one must fit better
COLUMN_SCALES = (1.0, 0.95, 1.05, 0.9, 1.1, 0.85, 1.15, 0.8, 1.2)
MAX_MISFIT = 0.2  # of a step, on average, in a bar that fits
MAX_FREE_COLUMNS = 3  # behind a bar line, or a sign there, that may be no time
FREE_COLUMN_COST = 0.05  # of each such column but one
NOTE_COLUMNS = (0, 1)  # that a note may take by itself, so that quick notes are drawn wider
NOTE_COLUMN_COST = 0.15
MAX_BEAT_LOG = log(1.5)  # of how wide the beats of a bar of another length are
MIN_STEP_COLUMNS = 0.8  # columns of the text that a step is drawn in
PICKUP_SHARE = 0.75  # of the usual width, below which a first bar is a pickup
MIN_FITTING_SHARE = 0.5  # of the bars, below which they contradict each other
MIN_RELIABLE_SHARE = 0.7  # of bars whose letters fill the meter, or another that is as common
MAX_UNIT_OF_BAR = 8  # parts of a quarter note in which a time signature can be
USUAL_METERS = ((4, 4), (3, 4), (5, 4), (7, 8), (9, 8))
MAX_BARS_TO_TRY = 64
METERS_OF_BEATS: dict[int, tuple[tuple[int, int], ...]] = {
    2: ((2, 4), (6, 8)),
    3: ((3, 4), (9, 8)),
    4: ((4, 4), (12, 8)),
    5: ((5, 4),),
    6: ((6, 8), (3, 4)),
    7: ((7, 8),),
    8: ((4, 4),),
    9: ((9, 8),),
    12: ((12, 8),),
}
"""The meters that a number of beats may be of, the likeliest first."""


ESTIMATED = "not drawn in time: the rhythm is estimated, beat by beat, from where the notes stand"
MOVED = (
    "not drawn in time, and too much to estimate: notes are moved to the nearest step, and the bar "
    "is filled"
)
OF_OTHER_LENGTH = "of another length than the meter, as what is marked there says"


class FoundTime(NamedTuple):
    """A tab in time.

    Attributes:
        tab: the tab.
        description: the meter, the unit, and how many bars fit, in a line.
        unfit_bars: the numbers, from 1, of bars not drawn in time, whose rhythm is estimated.
        remarks: what was done about bars that are not as the meter has it, a sentence each.
    """

    tab: Tab
    description: str
    unfit_bars: tuple[int, ...]
    remarks: tuple[str, ...]


class _Fit(NamedTuple):
    """How the gaps of a bar are shared out: steps before each event and behind the last."""

    cost: float
    misfit: float
    grid: int
    steps: tuple[int, ...]
    is_stated: bool = False  # by letters above the bar


def infer_timing(tab: Tab) -> FoundTime:
    """Return a tab of columns in time.

    Raises:
        ValueError: if the tab has time, no notes, or bars that contradict each other.
    """
    if tab.steps_per_quarter is not None:
        raise ValueError("This tab has time already.")
    if not any(bar.events for bar in tab.bars):
        raise ValueError("A tab without notes has no time.")
    stated = tab.stated_time_signature
    inner = [bar for bar in tab.bars[1:-1] if bar.events] or [b for b in tab.bars if b.events]
    meter = stated or next((b.time_signature for b in tab.bars if b.time_signature), None)
    is_stated = meter is not None
    signature = (
        meter
        or _find_meter_of_letters(inner)
        or _choose_meter(inner, METERS_OF_BEATS.get(_count_usual_beats(inner)))
    )
    usual_width = median(bar.steps for bar in inner)
    has_pickup = len(tab.bars) > 1 and tab.bars[0].steps < PICKUP_SHARE * usual_width
    are_reliable = _are_letters_reliable(tab.bars, signature)
    beat = _find_beat(tab.bars, signature)
    fits: list[_Fit] = []
    num_by_letters = 0
    signatures: list[tuple[int, int]] = []
    for place, bar in enumerate(tab.bars):
        if place and bar.time_signature:
            signature = bar.time_signature
        quarters = Fraction(4 * signature[0], signature[1])
        is_pickup = place == 0 and has_pickup
        may_be_short = place in (0, len(tab.bars) - 1)
        fit = (
            _fit_letters(bar, quarters, are_reliable, may_be_short)
            or _fit_beats(bar, quarters, beat, may_be_short)
            or _fit_bar_to_quarters(bar, quarters, usual_width if is_pickup else None)
        )
        num_by_letters += fit.is_stated
        fits.append(fit)
        signatures.append(signature)
    has_triplets = any(fit.grid == TRIPLETS and fit.misfit <= MAX_MISFIT for fit in fits)
    left, moved = MAX_ESTIMATED, []
    for place in range(int(has_pickup), len(fits)):
        if fits[place].misfit > MAX_MISFIT:
            bar, meter = tab.bars[place], signatures[place]
            if uneven := _fit_uneven_bar(bar, meter, has_triplets, left > 0):
                fits[place] = uneven
                left -= len(bar.events) * meter[0] if uneven.misfit else 0
            else:
                moved.append(place + 1)
    unfit = [number for number, fit in enumerate(fits, start=1) if fit.misfit > MAX_MISFIT]
    unit = lcm(*(fit.grid for fit in fits))
    bars = []
    for bar, fit, signature in zip(tab.bars, fits, signatures, strict=True):
        scale = unit // fit.grid
        moments, now = [], 0
        for event, before in zip(bar.events, fit.steps, strict=False):
            now += before * scale
            moments.append(replace(event, step=now))
        total = sum(fit.steps) * scale
        if len({event.step for event in moments}) < len(moments):
            unfit = list(range(1, len(fits) + 1))  # more notes than any grid has room for
        timed_bar = replace(bar, steps=total, events=tuple(moments))
        timed_bar = replace(timed_bar, stated_onsets=(), beat_onsets=())
        if fit.is_stated and MAX_UNIT_OF_BAR % Fraction(total, unit).denominator == 0:
            signature = time_signature_of(timed_bar, unit, signature)
        bars.append(replace(timed_bar, time_signature=signature))
    grids = Counter(fit.grid for fit in fits).most_common()
    usual = Fraction(usual_width) / Fraction(4 * signatures[0][0], signatures[0][1])
    if bars[0].tempo_bpm is None:
        bars[0] = replace(bars[0], tempo_bpm=tab.stated_tempo_bpm)
    timed = replace(
        tab,
        bars=tuple(drop_repeated_changes(bars)),
        steps_per_quarter=unit,
        stated_time_signature=None,
        stated_tempo_bpm=None,
    )
    description = (
        f"{signatures[0][0]}/{signatures[0][1]} {'as stated' if is_stated else 'by its bars'}, "
        f"{grids[0][0]} step{'s' if grids[0][0] > 1 else ''} a quarter, "
        f"{len(fits) - len(unfit)} of {len(fits)} bars fit"
    )
    if num_by_letters:
        description += f", {num_by_letters} by the letters beside them"
    if len(fits) - len(unfit) < MIN_FITTING_SHARE * len(fits):
        raise ValueError(
            f"its bars contradict each other ({description}); say how many steps are a quarter "
            f"note by --steps-per-quarter, {max(1, round(usual))} fits best"
        )
    odd = [
        place
        for place, (bar, signature) in enumerate(zip(bars, signatures, strict=True), start=1)
        if bar.steps * signature[1] != 4 * signature[0] * unit and 1 < place < len(bars)
    ]
    estimated = [number for number in unfit if number not in moved]
    kinds = (estimated, ESTIMATED), (moved, MOVED), (odd, OF_OTHER_LENGTH)
    remarks = (f"{_list_bars(some)} {what}" for some, what in kinds if some)
    return FoundTime(timed, description, tuple(unfit), tuple(remarks))


def _list_bars(numbers: Sequence[int]) -> str:
    """Return the subject of a sentence about some bars."""
    names = ", ".join(map(str, numbers))
    return f"bars {names} are" if len(numbers) > 1 else f"bar {names} is"


def _find_meter_of_letters(bars: Sequence[Bar]) -> tuple[int, int] | None:
    """Return the meter that the letters above most bars fill; None if there are none."""
    totals = Counter(bar.stated_onsets[-1] for bar in bars if bar.stated_onsets)
    quarters, count = totals.most_common(1)[0] if totals else (Fraction(0), 0)
    if 2 * count <= len(bars) or MAX_UNIT_OF_BAR % quarters.denominator:
        return None
    return time_signature_of(Bar(int(MAX_UNIT_OF_BAR * quarters), ()), MAX_UNIT_OF_BAR)


def _are_letters_reliable(bars: Sequence[Bar], meter: tuple[int, int]) -> bool:
    """Return whether a bar whose letters do not fill the meter is in another one."""
    quarters = Fraction(4 * meter[0], meter[1])
    totals = Counter(bar.stated_onsets[-1] for bar in bars if bar.stated_onsets)
    count = totals.total()
    num_usual = sum(n for total, n in totals.items() if total == quarters or 4 * n > count)
    return count > 0 and num_usual >= MIN_RELIABLE_SHARE * count


def _fit_letters(
    bar: Bar, quarters: Fraction, are_reliable: bool, may_be_short: bool
) -> _Fit | None:
    """Return the onsets that letters above a bar state, unless they contradict the meter.

    Args:
        bar: the bar.
        quarters: how long its meter is.
        are_reliable: whether the letters, where they fill no such bar, say another meter.
        may_be_short: whether it may be shorter, as the first and the last are.
    """
    if len(bar.stated_onsets) != len(bar.events) + 1:
        return None
    onsets = bar.stated_onsets
    is_other_meter = are_reliable and MAX_UNIT_OF_BAR % onsets[-1].denominator == 0
    is_full = onsets[-1] == quarters or may_be_short and onsets[-1] < quarters
    grid = lcm(*(onset.denominator for onset in onsets))
    if not (is_full or is_other_meter) or MAX_STEPS_PER_QUARTER % grid:
        return None
    places = [int(onset * grid) for onset in (Fraction(0), *onsets)]
    return _Fit(0.0, 0.0, grid, tuple(b - a for a, b in pairwise(places)), is_stated=True)


def _count_usual_beats(bars: Sequence[Bar]) -> int:
    """Return how many beats most bars with marks have; 0 if no number is usual."""
    counts = Counter(bar.beat_onsets[-1] for bar in bars if bar.beat_onsets)
    beats, count = counts.most_common(1)[0] if counts else (Fraction(0), 0)
    is_usual = beats > 1 and beats.denominator == 1
    return int(beats) if is_usual and count >= MIN_RELIABLE_SHARE * counts.total() else 0


class _Beat(NamedTuple):
    """How long a marked beat is: in quarter notes, and in columns in most bars."""

    quarters: Fraction
    columns: float


def _find_beat(bars: Sequence[Bar], meter: tuple[int, int]) -> _Beat | None:
    """Return how long a marked beat is; None where marks are no beats."""
    count = _count_usual_beats(bars)
    widths = [bar.steps for bar in bars if bar.beat_onsets and bar.beat_onsets[-1] == count]
    return (
        _Beat(Fraction(4 * meter[0], meter[1] * count), median(widths) / count) if widths else None
    )


def _fit_beats(bar: Bar, quarters: Fraction, beat: _Beat | None, may_be_short: bool) -> _Fit | None:
    """Return the steps of a bar by its beats, unless they contradict the meter or fit no grid.

    Args:
        bar: the bar.
        quarters: how long its meter is.
        beat: how long a beat is; None if none are marked.
        may_be_short: whether it may be shorter, as the first and the last are.
    """
    if beat is None or len(bar.beat_onsets) != len(bar.events) + 1:
        return None
    own = bar.beat_onsets[-1] * beat.quarters
    is_drawn_alike = abs(log(bar.steps / float(bar.beat_onsets[-1]) / beat.columns)) < MAX_BEAT_LOG
    if own > quarters and may_be_short or MAX_UNIT_OF_BAR % own.denominator:
        return None
    if own != quarters and not is_drawn_alike:
        return None
    onsets = [float(onset / bar.beat_onsets[-1] * bar.steps) for onset in bar.beat_onsets[:-1]]
    fit = _fit_onsets(onsets, bar.steps, own, (1.0,))
    if fit is None or fit.misfit > MAX_MISFIT:
        return None
    plain = _fit_bar_to_quarters(bar, quarters, None)
    return plain if own == quarters and plain.cost < fit.cost else fit


def _choose_meter(
    bars: Sequence[Bar], of_beats: Sequence[tuple[int, int]] | None
) -> tuple[int, int]:
    """Return the meter that bars with notes fit best: what their gaps suggest, or a usual one.

    Args:
        bars: the bars.
        of_beats: the meters of their number of beats, if beats are marked.
    """
    some = bars[:MAX_BARS_TO_TRY]

    def total_cost(meter: tuple[int, int]) -> float:
        quarters = Fraction(4 * meter[0], meter[1])
        beat = _find_beat(some, meter)
        fits = (
            _fit_beats(bar, quarters, beat, may_be_short=False)
            or _fit_bar_to_quarters(bar, quarters, None)
            for bar in some
        )
        return sum(fit.cost for fit in fits)

    return min(of_beats or USUAL_METERS, key=total_cost)


def _fit_bar_to_quarters(bar: Bar, quarters: Fraction, usual_width: float | None) -> _Fit:
    """Share out the gaps of a bar over its quarters; those of a pickup as those of other bars.

    Args:
        bar: the bar.
        quarters: how long its meter is.
        usual_width: of a pickup, how many columns a whole bar has.
    """
    if not bar.events:
        grid = quarters.denominator
        return _Fit(0.0, 0.0, grid, (int(quarters * grid),))
    fits: list[_Fit] = []
    onsets = [event.step for event in bar.events]
    for late in sorted({0, onsets[0]}) if onsets[0] <= MAX_FREE_COLUMNS else (0,):
        moved = [onset - late for onset in onsets]
        if fit := _fit_onsets(moved, bar.steps - late, quarters, COLUMN_SCALES, usual_width):
            fits.append(fit._replace(cost=fit.cost + FREE_COLUMN_COST * max(0, late - 1)))
    if fits:
        return min(fits, key=attrgetter("cost"))
    grid = 4 * GRIDS[-1]  # more notes than the finest grid has steps
    total = int(quarters * grid)
    edges = [0, *(onset * total // bar.steps for onset in onsets), total]
    return _Fit(1.0, 1.0, grid, tuple(after - before for before, after in pairwise(edges)))


def _fit_uneven_bar(
    bar: Bar, meter: tuple[int, int], has_triplets: bool, may_estimate: bool
) -> _Fit | None:
    """Return the rhythm of a bar that is not drawn in time, or None if it is not estimated.

    It fits if it has a note a step.
    """
    quarters = Fraction(4 * meter[0], meter[1])
    has_rest = bar.events[0].step > MAX_FREE_COLUMNS
    start = 0 if has_rest else bar.events[0].step
    columns = [0] * has_rest + [event.step - start for event in bar.events]
    if not has_rest and (grid := find_even_grid(columns, quarters, has_triplets)):
        return _Fit(0.0, 0.0, grid, (0, *(1 for _ in columns)))
    if not (may_estimate and (found := estimate_steps(columns, bar.steps - start, meter))):
        return None
    grid, steps = found
    return _Fit(1.0, 1.0, grid, steps if has_rest else (0, *steps))


def _fit_onsets(
    onsets: Sequence[float],
    width: float,
    quarters: Fraction,
    scales: Sequence[float],
    usual_width: float | None = None,
) -> _Fit | None:
    """Share out a bar over its quarters; None if it has more notes than any grid has steps.

    Args:
        onsets: the columns in which its events are.
        width: its columns.
        quarters: how long its meter is.
        scales: what the width of a column is tried by.
        usual_width: as in `_fit_bar_to_quarters`.
    """
    best: _Fit | None = None
    gaps = [after - before for before, after in pairwise([*onsets, width])]
    for place, grid in enumerate(GRIDS):
        if (quarters * grid).denominator > 1:
            continue
        num_steps = int(quarters * grid)
        for scale, own_columns in product(scales, NOTE_COLUMNS if usual_width is None else (0,)):
            column = scale * ((usual_width or width) - own_columns * len(gaps)) / num_steps
            least = GRID_COST * place + abs(scale - 1) / 4 + NOTE_COLUMN_COST * own_columns
            if column <= 0 or best is not None and least >= best.cost:
                continue  # even without any error it would not be better
            wanted = [onsets[0] / column, *((gap - own_columns) / column for gap in gaps)]
            steps = [round(wanted[0]), *(max(1, round(each)) for each in wanted[1:])]
            if usual_width is None:
                steps[-1] = num_steps - sum(steps[:-1])
                if steps[-1] < 1:
                    continue
            errors = [abs(a - b) for a, b in zip(wanted, steps, strict=True)]
            errors[-1] /= 3  # how far a bar line is behind the last note says little
            misfit = sum(errors) / len(errors)
            if column < MIN_STEP_COLUMNS:  # on so fine a grid anything fits
                misfit += MAX_MISFIT
            cost = misfit + max(errors) / 4 + GRID_COST * place + abs(scale - 1) / 4
            cost += NOTE_COLUMN_COST * own_columns
            if best is None or cost < best.cost:
                best = _Fit(cost, misfit, grid, tuple(steps))
    return best
