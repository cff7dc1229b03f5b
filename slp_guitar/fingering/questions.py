"""Which moments of a fingering a player is asked about, and where else an answer holds.

An answer holds wherever the same notes stand between the same neighbors: people play a passage that
comes again as before, in 95 of 100 cases within a file of classtab.org. So a question is worth more
the more often its moment comes, and the closer the best two ways to play it are. Neighbors follow
an answer by themselves: they are asked about last.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import TypeVar

MOMENTS_APART = 3
"""How far questions are at least from each other, and from where an answer holds."""
SURE_MARGIN = 2.0
"""Extra cost of another grip that halves what a question is worth."""
T = TypeVar("T")


def find_repeats(moments: Sequence[tuple[int, ...]]) -> list[list[int]]:
    """Return for each moment those that have its pitches and its neighbors', in order, itself too.

    Args:
        moments: the pitches of each moment.
    """
    ends: list[tuple[int, ...] | None] = [None, *moments, None]
    groups: dict[object, list[int]] = defaultdict(list)
    keys = [tuple(ends[t : t + 3]) for t in range(len(moments))]
    for t, key in enumerate(keys):
        groups[key].append(t)
    return [groups[key] for key in keys]


def spread_answers(answers: dict[int, T], repeats: Sequence[Sequence[int]]) -> dict[int, T]:
    """Return answers with those of the moments at which they hold as well.

    Args:
        answers: by the moment that was asked about; of several in one group the first given holds.
        repeats: as `find_repeats` returns them.
    """
    spread = {t: answers[asked] for asked in reversed(answers) for t in repeats[asked]}
    return {**spread, **answers}


def rank_questions(
    prices: Sequence[Sequence[float]], repeats: Sequence[Sequence[int]]
) -> list[int]:
    """Return the moments to ask about, most useful first: of each group one, if it has a choice.

    Args:
        prices: what the cheapest fingering with each grip of each moment costs in all.
        repeats: as `find_repeats` returns them.
    """
    margins = {t: sorted(own)[1] - min(own) for t, own in enumerate(prices) if len(own) > 1}
    worth = {t: len(repeats[t]) / (SURE_MARGIN + margin) for t, margin in margins.items()}
    apart: list[int] = []
    near: list[int] = []
    settled: set[int] = set()
    close: set[int] = set()
    for t in sorted(worth, key=lambda t: -worth[t]):
        if t in settled:
            continue
        settled.update(repeats[t])
        if t in close:
            near.append(t)
            continue
        apart.append(t)
        for again in repeats[t]:
            close.update(range(again - MOMENTS_APART + 1, again + MOMENTS_APART))
    return apart + near
