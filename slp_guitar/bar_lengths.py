"""How long bars are that fill a time signature, in steps that notation has.

People's tabs have bars of any length, and the tokens hold them all. What a model generates is to be
written down as well: there each bar fills the time signature of its piece.
"""

from dataclasses import replace
from functools import cache

from slp_guitar.tab import Tab
from slp_guitar.theory import TIME_SIGNATURES
from slp_guitar.timing import columns_to_steps

NOTATED_STEPS_PER_QUARTER = (1, 2, 3, 4, 6, 8, 12, 16, 24)
"""Steps to a quarter note that are plain note values or triplets, down to sixty-fourths."""
PLAIN_METERS = (
    *((4, 4), (3, 4), (2, 4), (6, 8), (12, 8), (9, 8)),
    *((3, 8), (5, 4), (7, 8), (5, 8), (6, 4)),
)


def count_bar_steps(time_signature: tuple[int, int], steps_per_quarter: int) -> int:
    """Return how many steps fill a bar; 0 if it is no whole number."""
    beats, kind = time_signature
    steps, rest = divmod(4 * beats * steps_per_quarter, kind)
    return 0 if rest else steps


METER_OF_COLUMNS: dict[int, tuple[tuple[int, int], int]] = {
    count_bar_steps(signature, steps): (signature, steps)
    for steps in (24, 16, 1, 12, 6, 3, 2, 8, 4)
    for signature in reversed(PLAIN_METERS)
    if count_bar_steps(signature, steps)
}
"""What a bar of so many columns is taken for where nothing says it: its time signature, and columns
to a quarter note. Columns are sixteenths if that gives a plain meter, 16 of them 4/4."""


@cache
def list_bar_steps(
    time_signature: tuple[int, int] | None, steps_per_quarter: int | None
) -> frozenset[int]:
    """Return how many steps bars may have that fill a time signature.

    Args:
        time_signature: the time signature; None for any that has a token.
        steps_per_quarter: steps to a quarter note; None for columns, of which any number in
            `NOTATED_STEPS_PER_QUARTER` may be one, and each beat has one at least.
    """
    if time_signature is None and steps_per_quarter is None:
        return frozenset(METER_OF_COLUMNS)
    signatures = TIME_SIGNATURES if time_signature is None else (time_signature,)
    if steps_per_quarter is not None:
        return frozenset(count_bar_steps(each, steps_per_quarter) for each in signatures) - {0}
    lengths = (
        (count_bar_steps(each, unit), each[0])
        for each in signatures
        for unit in NOTATED_STEPS_PER_QUARTER
    )
    return frozenset(steps for steps, beats in lengths if steps % beats == 0) - {0}


def take_columns_as_time(
    tab: Tab, time_signature: tuple[int, int] | None = None
) -> tuple[Tab, str]:
    """Return a tab whose steps are columns in time, judged by its last bar.

    Args:
        tab: the tab.
        time_signature: that of its bars; the one that its first bar states if None.

    Returns:
        The tab; and what a bar is taken for, in words, where no time signature says it.
    """
    columns = tab.bars[-1].steps if tab.bars else 16
    stated = time_signature or (tab.bars[0].time_signature if tab.bars else None)
    if stated and columns in list_bar_steps(stated, None):
        beats, kind = stated
        signature, steps, said = stated, columns * kind // (4 * beats), ""
    else:
        signature, steps = METER_OF_COLUMNS.get(columns, ((columns, 16), 4))
        said = "a bar of {} columns is taken for {}/{}".format(columns, *signature)
    first = (replace(bar, time_signature=signature) for bar in tab.bars[:1])
    return columns_to_steps(replace(tab, bars=(*first, *tab.bars[1:])), steps), said
