"""Checks for pitch to tab: what a hand holds, the cheapest path, what a decoder reads (13)."""

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from slp_transformer.check.diagnosing.diagnosis import Inputs, check
from slp_transformer.check.diagnosing.random_inputs import matrix, vector


def _pressed(grip: Sequence[tuple[int, int]]) -> list[int]:
    return [fret for _, fret in grip if fret]


def _grip_cases() -> list[Inputs]:
    given = [
        [(2, 1)],
        [(6, 3), (2, 0)],
        [(2, 1), (2, 5)],
        [(3, 5), (1, 9)],
        [(3, 5), (1, 10)],
        [(4, 0), (1, 9)],
        [(5, 3), (4, 2), (1, 0)],
        [(6, 1), (5, 4), (4, 7)],
        [(6, 1), (5, 7), (3, 3)],
        [(6, 4), (5, 1), (4, 6)],
        [(3, 0), (3, 7)],
        [(6, 0), (5, 7), (4, 9), (1, 0)],
        [(4, 0), (2, 0)],
        [(5, 2), (4, 2), (3, 2)],
        [(string, 1) for string in (6, 5, 4, 3, 2, 1)],
        [(2, 3), (2, 3)],
        [(2, 1), (3, 0), (2, 4)],
        [(6, 1), (5, 2), (4, 3), (3, 4), (2, 5)],
        [(2, 17), (1, 15)],
        [(6, 2), (5, 5), (4, 8)],
        [(6, 9), (3, 8), (1, 3)],
        [(5, 7), (4, 2), (2, 6), (1, 3)],
    ]
    return [*((grip, 4) for grip in given), ([(5, 2), (3, 6)], 3), ([(6, 3), (1, 5)], 3)]


@check(
    "what one hand can hold",
    _grip_cases,
    "a string twice: Two notes cannot be on the same string.",
    lambda grip, solve: solve(grip=[(j, fret) for j, (_, fret) in enumerate(grip)]),
    "open strings counted: Open strings count as fret 0; no finger is needed there.",
    lambda grip, solve: solve(grip=[(string, fret + 1) for string, fret in grip]),
    "span − 1: Frets exactly `span` apart can still be held.",
    "span not looked at [span doubled]: `span` is ignored: the frets may be at most that far "
    "apart.",
    "span of 4: `span` is not used: 4 is one hand's; compare with `span`.",
    lambda solve: solve(span=4),
    "highest fret [no − min(frets)]: The highest fret is compared with `span`; compare the "
    "difference of the highest and the lowest pressed fret.",
    "four fingers: More than four notes may be held: one finger can press several strings.",
    lambda grip, right: right and sum((fret > 0 for _, fret in grip)) <= 4,
    "string and fret: Each place is `(string, fret)`, not `(fret, string)`.",
    lambda grip, solve: solve(grip=[place[::-1] for place in grip]),
    "neighbors alone: Only neighboring notes are compared; compare the outermost frets.",
    lambda grip, span, solve: (
        solve(span=math.inf)
        and max((abs(a - b) for a, b in pairwise(_pressed(grip))), default=0) <= span
    ),
    "nothing pressed: A grip of open strings alone is refused; it needs no finger, so it can be "
    "held.",
    lambda grip, right: right and any(fret for _, fret in grip),
    "nothing pressed (stops): If all strings are open, max() fails; such a grip can be held.",
    lambda grip, right: right and max(fret for _, fret in grip if fret) > 0,
    "first fret compared: Every fret is compared with the first one; compare the lowest with the "
    "highest.",
    lambda grip, span, solve: (
        solve(span=math.inf)
        and all(abs(fret - _pressed(grip)[0]) <= span for fret in _pressed(grip))
    ),
    "first and last compared: Only the first and last frets are compared; compare the lowest with "
    "the highest.",
    lambda grip, span, solve: (
        solve(span=math.inf) and abs((frets := _pressed(grip) or [0])[-1] - frets[0]) <= span
    ),
    "either: One of the two conditions is enough here; both must hold: use `and`.",
    lambda grip, solve: len({string for string, _ in grip}) == len(grip) or solve("a string twice"),
    "then not: The answer is the wrong way round: return True if one hand can hold the grip.",
    "span + 1: Frets `span` + 1 apart are held as well; they may be at most `span` apart.",
    "equal frets: Two notes may have the same fret: one finger can press several strings.",
    lambda grip, right: (
        right and len({fret for _, fret in grip if fret}) == sum((fret > 0 for _, fret in grip))
    ),
    "places differ: The same place twice is refused, but not two frets of one string.",
    lambda grip, solve: len(set(grip)) == len(grip) and solve("a string twice"),
    "neighbors' strings: Only neighboring notes are compared; two notes far apart in the list may "
    "share a string.",
    lambda grip, solve: (
        all((a[0] != b[0] for a, b in zip(grip, grip[1:], strict=False)))
        and solve("a string twice")
    ),
    "fret 1 left out: Fret 1 is treated like an open string; only fret 0 is.",
    lambda grip, solve: solve(grip=[(s, 0 if f == 1 else f) for s, f in grip]),
    "strings apart: The distance of the strings is compared with `span`; compare the frets.",
    lambda grip, span: (
        len(strings := {string for string, _ in grip}) == len(grip)
        and max(strings) - min(strings) <= span
    ),
    "neighboring strings alone: The strings need not be neighbors; those between are not played.",
    lambda grip, right: (
        right and max(string for string, _ in grip) - min(string for string, _ in grip) < len(grip)
    ),
    "twelve frets: Frets above 12 are refused; a neck may have more.",
    lambda grip, right: right and all(fret <= 12 for _, fret in grip),
    "frets for strings: Two notes with the same fret are refused; it is the strings that differ.",
    lambda grip, solve: len({fret for _, fret in grip}) == len(grip) and solve("a string twice"),
)
def is_playable_grip(grip: Sequence[tuple[int, int]], span: int) -> bool:
    """Check `is_playable_grip(grip, span)`: can one hand hold these (string, fret)?"""
    strings = {string for string, _ in grip}
    frets = [fret for _, fret in grip if fret] or [0]
    return len(strings) == len(grip) and max(frets) - min(frets) <= span


def _step_cases() -> list[Inputs]:
    moves = matrix((0, 1, 3), (2, 0, 1), (6, 2, 0))
    more = matrix((0, 1, 2, 3), (2, 1, 0, 1), (4, 3, 2, 1), (6, 5, 4, 3))
    return [
        (vector(0, 5), vector(1, 1), matrix((0, 2), (1, 0))),
        (vector(4, 3, 0), vector(1, 0, 7), moves),
        (vector(2, 9, 1), vector(0, 4, 2), moves),
        (vector(7, 7, 1, 5), vector(3, 1, 2, 0), more),
        (vector(0.5, -2.25), vector(-1.5, 2000.75), matrix((0, 0.5), (1.25, 0))),
        (vector(5000, 6000), vector(1, 2), matrix((1, 3), (2, 0))),
        (9 - torch.arange(9.0), torch.ones(9), torch.full((9, 9), 0.25)),
    ]


@check(
    "the cheapest path",
    _step_cases,
    "m transposed: m[q, p] is the move from q to p; this uses the move from p to q.",
    "from the cheapest place: The hand always comes from the cheapest position so far; a more "
    "expensive one may be closer.",
    lambda v, e, m: (v[:, None] + m)[v.argmin()] + e,
    "v of the wrong place [v and m swapped]: v[p] is added after the minimum; add v[q] before it.",
    "sum [sum for amin]: All costs are added up; take the minimum.",
    "grip before: e[q] is added before the minimum; add e[p], the cost of the new grip, after it.",
    lambda v, e, m: ((v + e)[:, None] + m).amin(0),
    "one minimum [amin over axis None]: One minimum is taken over all moves; take one for each p.",
    "wrong axis [amin over axis 1]: The minimum is taken over p; take it over q.",
    "two minima: The minima of v and of m are taken separately; take the minimum of their sum.",
    lambda v, e, m: v.amin() + m.amin(0) + e,
    "stays: The hand never moves: the minimum is over all positions q, not p alone.",
    lambda v, e, m: (v[:, None] + m).diagonal() + e,
    "never stays: The hand always moves: it may also stay, from p to p.",
    lambda v, e, m: (v[:, None] + m).fill_diagonal_(torch.inf).amin(0) + e,
    "rounded [then cut]: The costs are cut to whole numbers; they may be fractions, so keep "
    "floats.",
    "stays free: The hand never moves: the minimum is over all positions q, not p alone.",
    lambda v, e: v + e,
    "where from: This is the argmin, where the hand comes from; return the cost.",
    lambda v, m: (v[:, None] + m).argmin(0),
    "soft minimum: The minimum is soft (−log of the sum of exp); take the smallest number.",
    lambda v, e, m: e - torch.logsumexp(-(v[:, None] + m), 0),
)
def cheapest_step(v: Tensor, e: Tensor, m: Tensor) -> Tensor:
    """Check `cheapest_step(v, e, m)`: the new v[p], the least of v[q] + m[q, p], plus e[p]."""
    return (v[:, None] + m).amin(0) + e


def _back_cases() -> list[Inputs]:
    given = [
        ([[1, 0]], 0),
        ([[1, 0, 2], [2, 0, 1]], 0),
        ([[0, 2, 1], [1, 1, 0], [2, 0, 1]], 2),
        ([[1, 2, 0], [2, 2, 1], [0, 0, 2], [1, 0, 2]], 1),
    ]
    empty = torch.zeros(0, 3, dtype=torch.long)
    return [*((torch.tensor(came), last) for came, last in given), (empty, 1)]


@check(
    "the cheapest path, read off",
    _back_cases,
    "not followed [0 for 1]: Every row is read at `last`; read it at the position found just "
    "before.",
    "smallest: The smallest entry of each row is sought; read the row at the position found "
    "before.",
    lambda came, last: [*came.argmin(1).tolist(), last],
    "last = 0: The path is followed from position 0; follow it from `last`.",
    "first row: Only the first row is read; each moment has a row of its own.",
    lambda came, solve: solve(came=came[:1].expand_as(came)),
    "from the beginning (in order): The rows are read from the first to the last; go backwards.",
    lambda solve: solve("from the beginning")[::-1],
    "from the beginning [came reversed]: The rows are read from the first to the last; go "
    "backwards.",
    "first row not read: The first row of `came` is not read: range(…, 0, −1) ends before 0.",
    lambda came, solve: solve(came=came[1:]),
    "last row not read: The last row of `came` is not read; it says where `last` came from.",
    lambda came, solve: solve(came=came[:-1]),
)
def path_back(came: Tensor, last: int) -> list[int]:
    """Check `path_back(came, last)`: the places of T moments, came[t, p] the one before p."""
    path = [last]
    for before in reversed(came.unbind()):
        path.append(int(before[path[-1]]))
    return path[::-1]


def _turn_cases() -> list[Inputs]:
    given = [([5, 7], [61, 62]), ([4, 9, 6], [40, 50, 60]), ([3, 3, 8, 2], [31, 32, 33, 34])]
    given += [([*range(1, 12)], [*range(300, 311)])]
    return [(torch.tensor(notes), torch.tensor(places)) for notes, places in given]


@check(
    "what the decoder reads",
    _turn_cases,
    "notes and places swapped: Each place comes before its note; it belongs after it.",
    "one after the other [0 for 1]: All notes come before all places; they should alternate.",
    "last place read: The last place is read as well; nothing has to be written after it.",
    lambda notes, places: torch.stack([notes, places], 1).flatten(),
    "two columns: These are pairs; return one row.",
    lambda notes, places: torch.stack([notes, places], 1),
    "places alone: The notes are missing.",
    lambda places: places[:-1],
    "notes alone: The places are missing.",
    lambda notes: notes,
    "last note missed [then no last]: The last note is missing: its place has to be written.",
    "shifted: Each note stands before the place of the one before; it belongs before its own.",
    lambda notes, places: torch.stack([notes, places.roll(1)], 1).flatten()[:-1],
    "first note missed: The first note is missing; leave out the last place instead.",
    lambda notes, places: torch.stack([notes, places], 1).flatten()[1:],
    "next place: Each note comes before the place of the next one; it belongs before its own.",
    lambda notes, places: torch.stack([notes, places.roll(-1)], 1).flatten()[:-1],
    "first place missed: The first place is missing; leave out the last one instead.",
    lambda notes, places: torch.cat([notes[:1], torch.stack([notes, places], 1).flatten()[2:]]),
)
def takes_turns(notes: Tensor, places: Tensor) -> Tensor:
    """Check `takes_turns(notes, places)`: note, place, note, place, …, to the last note."""
    return torch.stack([notes, places], 1).flatten()[:-1]
