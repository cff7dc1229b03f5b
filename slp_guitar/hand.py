"""What one hand can take on a neck: four fingers, a barre by the index, stretches in millimeters.

Fingers do not cross: a finger nearer to the little one lies at the same fret or higher up. The
index may lie across several strings at the lowest fret; any other finger presses one string, or
neighboring ones at one fret. Open strings need no finger, but none sounds between the strings of a
barre.
"""

from collections.abc import Iterator, Sequence
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

FINGERS = ("finger 1", "finger 2", "finger 3", "finger 4")
"""The techniques that say which finger takes a note, the index first."""

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
    ways = _list_ways(grip)
    if all(len(own) > NUM_FINGERS for _, own in ways):
        return "too many fingers"
    return "too wide" if next(_list_hands(ways, scale_mm, capo), None) is None else ""


def choose_fingers(
    grip: Sequence[tuple[int, int]], hand_fret: int, scale_mm: float, capo: int = 0
) -> list[int]:
    """Return the finger of each note of a grip: 1 for the index to 4, 0 for an open string.

    Each note has a finger of its own where there are enough, and the fingers are those of a hand
    whose index lies at a fret, as far as its reach allows; all 0 for what no hand takes.

    Args:
        grip: string and fret of each note; frets are counted from the capo.
        hand_fret: where the hand is.
        scale_mm: length of the open strings.
        capo: the fret that the capo is on.
    """

    def ease(hand: Sequence[tuple[int, Group]]) -> tuple[int, int]:
        apart = (abs(finger - 1 - (own[0][0] - hand_fret)) for finger, own in hand)
        return -len(hand), sum(apart)

    ways = _list_ways(sorted((fret, string) for string, fret in grip))
    best = min(_list_hands(ways, scale_mm, capo), key=ease, default=[])
    fingers = {string: finger for finger, own in best for _, string in own}
    return [fingers.get(string, 0) for string, _ in grip]


Group = list[tuple[int, int]]
"""The frets and strings that one finger presses."""


def _list_ways(grip: Sequence[tuple[int, int]]) -> list[tuple[bool, list[Group]]]:
    """Return how fingers can share frets and strings, lowest fret first, and whether by a barre."""
    pressed = [(fret, string) for fret, string in grip if fret]
    barred = [place for place in pressed if place[0] == pressed[0][0]]
    ways = [(False, _separate(pressed)), (False, _group_neighbors(pressed))]
    if barred and not any(f == 0 and barred[0][1] < s < barred[-1][1] for f, s in grip):
        rest = pressed[len(barred) :]
        ways += [(True, [barred, *_separate(rest)]), (True, [barred, *_group_neighbors(rest)])]
    return ways


def _separate(pressed: Sequence[tuple[int, int]]) -> list[Group]:
    """Return a finger for each place; at one fret the lower string takes the lower finger."""
    return [[place] for place in sorted(pressed, key=lambda own: (own[0], -own[1]))]


def _list_hands(
    ways: Sequence[tuple[bool, list[Group]]], scale_mm: float, capo: int
) -> Iterator[list[tuple[int, Group]]]:
    """Yield the fingers that reach what they press, in order."""
    for needs_index, own in ways:
        places = [scale_mm * (1 - 2 ** (-(capo + group[0][0]) / 12)) for group in own]
        for fingers in combinations(range(1, NUM_FINGERS + 1), len(own)):
            pairs = combinations(zip(fingers, places, strict=True), 2)
            if (not needs_index or fingers[0] == 1) and all(
                b - a <= FINGER_REACH_MM[one, other] for (one, a), (other, b) in pairs
            ):
                yield list(zip(fingers, own, strict=True))


def _group_neighbors(pressed: Sequence[tuple[int, int]]) -> list[Group]:
    """Return what each finger presses: a fret of one string, or of neighboring ones."""
    groups: list[Group] = []
    for n, (fret, string) in enumerate(pressed):
        if n == 0 or pressed[n - 1] != (fret, string - 1):
            groups.append([])
        groups[-1].append((fret, string))
    return groups
