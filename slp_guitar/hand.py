"""What one hand can take on a neck: four fingers, a barre by the index, stretches in millimeters.

Fingers do not cross: a finger nearer to the little one lies at the same fret or higher up. The
index may lie across several strings at the lowest fret; any other finger presses one string, or
neighboring ones at one fret. Open strings need no finger, but none sounds between the strings of a
barre.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from typing import Literal

NUM_FINGERS = 4
FINGER_REACH_MM: dict[tuple[int, int], int] = {
    **{(1, 2): 68, (2, 3): 46, (3, 4): 64},
    **{(1, 3): 101, (2, 4): 90, (1, 4): 141},
}
"""Between the frets of two fingers, 1 the index, at most: of some 214,000 moments of classical tabs
that people wrote, 0.07% ask for more or for a fifth finger (`benchmarks/results/pitch_to_tab`)."""

Refusal = Literal["", "two notes on one string", "too many fingers", "too wide"]
"""Why no hand takes a grip; empty if one does."""


def explain_impossible_grip(
    grip: Sequence[tuple[int, int]], scale_mm: float, capo: int = 0
) -> Refusal:
    """Return why no hand takes a grip, or an empty text.

    Args:
        grip: string and fret of each note; frets are counted from the capo.
        scale_mm: length of the open strings, from the nut to the bridge.
        capo: the fret that the capo is on.
    """
    if len({string for string, _ in grip}) < len(grip):
        return "two notes on one string"
    return _explain_impossible_frets(
        tuple(sorted((fret, string) for string, fret in grip)), scale_mm, capo
    )


@lru_cache(maxsize=65536)
def _explain_impossible_frets(
    grip: tuple[tuple[int, int], ...], scale_mm: float, capo: int
) -> Refusal:
    """Return why no hand takes these frets and strings, lowest fret first."""
    pressed = [(fret, string) for fret, string in grip if fret]
    if len(pressed) <= 1:
        return ""
    barred = [string for fret, string in pressed if fret == pressed[0][0]]
    ways = [(False, _finger_frets(pressed))]
    if not any(fret == 0 and barred[0] < string < barred[-1] for fret, string in grip):
        ways.append((True, [pressed[0][0], *_finger_frets(pressed[len(barred) :])]))
    ways = [(needs_index, frets) for needs_index, frets in ways if len(frets) <= NUM_FINGERS]
    if not ways:
        return "too many fingers"
    for needs_index, frets in ways:
        places = [scale_mm * (1 - 2 ** (-(capo + fret) / 12)) for fret in frets]
        for fingers in combinations(range(1, NUM_FINGERS + 1), len(frets)):
            pairs = combinations(zip(fingers, places, strict=True), 2)
            if (fingers[0] == 1 or not needs_index) and all(
                b - a <= FINGER_REACH_MM[one, other] for (one, a), (other, b) in pairs
            ):
                return ""
    return "too wide"


def _finger_frets(pressed: Sequence[tuple[int, int]]) -> list[int]:
    """Return the fret of each finger that takes these frets and strings, lowest fret first."""
    return [
        fret
        for n, (fret, string) in enumerate(pressed)
        if n == 0 or pressed[n - 1] != (fret, string - 1)
    ]
