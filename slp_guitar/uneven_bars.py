"""Bars of ASCII tab that are not drawn in time: their rhythm is estimated, beat by beat.

Who spaces by eye draws quick notes wider than they last, so that the columns of a bar do not add up
to its meter. Two things are left to go by: how many notes there are (twelve in 3/4 are sixteenths,
wherever they stand), and where the beats may be. A beat begins on a note and has whatever width its
notes needed; within it they share its time by their columns. All divisions of the bar into beats
are compared, and nothing is added behind the last note or taken from it.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import lcm, log

EVEN_GRIDS = (1, 2, 3, 4, 8)
TRIPLETS = 3  # are in a bar only where other bars have them
MAX_EVEN_RATIO = 4  # of the widest gap to the narrowest, among notes of one length
GRID_COSTS = {1: 0.0, 2: 0.0, 4: 0.04, 3: 0.2, 8: 0.3, 6: 0.3, 12: 1.0}
"""What a number of steps to a quarter note costs a beat, in misfit of a step for each note."""
WIDTH_COST = 0.8  # of a beat that is e times as wide as others, or as narrow
MAX_WIDTH_LOG = log(4)
JOINED_BEAT_COST = 0.1  # of each beat that begins on no note
MAX_JOINED_BEATS = 4
MAX_STEPS = 16  # of beats that are fitted together
MAX_NOTES, MAX_BEATS = 64, 24  # of a bar that is estimated
MAX_ESTIMATED = 3000
"""Notes times beats of the bars of a tab that are estimated: a second's work, several times what
the tabs of people have."""


def find_even_grid(columns: Sequence[int], quarters: Fraction, has_triplets: bool) -> int | None:
    """Return the steps to a quarter note of a bar with one note a step; None if it has others.

    Args:
        columns: where its notes are.
        quarters: how long it is.
        has_triplets: whether bars that are drawn in time have triplets.
    """
    gaps = [after - before for before, after in pairwise(columns)]
    if not gaps or max(gaps) > MAX_EVEN_RATIO * min(gaps):
        return None
    grid = len(columns) / quarters
    return int(grid) if grid in EVEN_GRIDS and (grid != TRIPLETS or has_triplets) else None


def estimate_steps(
    columns: Sequence[int], width: int, meter: tuple[int, int]
) -> tuple[int, tuple[int, ...]] | None:
    """Estimate the rhythm of a bar from where its notes stand.

    Args:
        columns: where its notes are, the first at 0.
        width: its columns.
        meter: its time signature.

    Returns:
        Steps to a quarter note, and the steps of each note; None if there are too many notes.
    """
    is_compound = meter[1] == 8 and meter[0] % 3 == 0
    beat = Fraction(3, 2) if is_compound else Fraction(4, max(4, meter[1]))
    quarters = Fraction(4 * meter[0], meter[1])
    count = int(quarters / beat)
    if len(columns) > MAX_NOTES or count > MAX_BEATS:
        return None
    gaps = tuple(after - before for before, after in pairwise([*columns, width]))
    usual_width = width / count
    best: dict[tuple[int, int], tuple[float, tuple[tuple[int, tuple[int, ...]], ...]]]
    best = {(0, 0): (0.0, ())}  # by notes and beats that are read: the cost, and each part's steps
    for done in range(count):
        for first in [notes for notes, beats in best if beats == done]:
            before, parts = best[first, done]
            for beats, end in _iter_parts(len(gaps) - first, count - done):
                own = gaps[first : first + end]
                log_width = abs(log(sum(own) / (usual_width * beats)))
                found = _fit_part(own, beats * beat) if log_width <= MAX_WIDTH_LOG else None
                if found is None:
                    continue
                misfit, grid, steps = found
                cost = before + misfit * end / len(gaps)
                cost += (WIDTH_COST * log_width * beats + JOINED_BEAT_COST * (beats - 1)) / count
                place = first + end, done + beats
                if place not in best or cost < best[place][0]:
                    best[place] = cost, (*parts, (grid, steps))
    if (len(gaps), count) not in best:
        return None
    parts = best[len(gaps), count][1]
    unit = lcm(*(grid for grid, _ in parts))
    return unit, tuple(step * unit // grid for grid, steps in parts for step in steps)


def _iter_parts(num_notes: int, num_beats: int) -> Iterator[tuple[int, int]]:
    """Yield how many beats and notes may come next, of those that are left."""
    for beats in range(1, min(MAX_JOINED_BEATS, num_beats) + 1):
        if beats == num_beats:
            yield beats, num_notes
        else:
            yield from ((beats, notes) for notes in range(1, min(num_notes, MAX_STEPS + 1)))


@lru_cache(maxsize=10_000)
def _fit_part(
    gaps: tuple[int, ...], quarters: Fraction
) -> tuple[float, int, tuple[int, ...]] | None:
    """Share out the time of some beats over their notes; None if no grid has room for them.

    Returns:
        The misfit of a note in steps and the cost of the grid; the grid; the steps of each note.
    """
    best: tuple[float, int, tuple[int, ...]] | None = None
    for grid, grid_cost in GRID_COSTS.items():
        total = quarters * grid
        if total.denominator > 1 or not len(gaps) <= total <= MAX_STEPS:
            continue
        column = sum(gaps) / int(total)
        ways: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, ())}  # by steps that are used
        for left, gap in zip(reversed(range(len(gaps))), gaps, strict=True):
            longer: dict[int, tuple[float, tuple[int, ...]]] = {}
            for used, (cost, steps) in ways.items():
                for step in range(1, int(total) - used - left + 1):
                    own = cost + abs(gap / column - step)
                    if used + step not in longer or own < longer[used + step][0]:
                        longer[used + step] = own, (*steps, step)
            ways = longer
        cost, steps = ways[int(total)]
        cost = cost / len(gaps) + grid_cost
        if best is None or cost < best[0]:
            best = cost, grid, steps
    return best
