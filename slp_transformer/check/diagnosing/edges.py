"""Cases at the edges of what an exercise allows, drawn from its own cases by one rule.

Each size, and each whole number that is given, becomes one; a whole number also becomes large, and
so do the numbers of each tensor, with their signs. What may be empty a check says itself. An edge
keeps every relation between sizes and numbers that all the check's own cases keep, such as k ≤ |u|
or start + N ≤ the rows of P, and it is left out where the right answer is not a matter of the
exercise: where it has NaN, or rounding decides it.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice, permutations, product
from typing import Any

import torch
from torch import Tensor

from slp_transformer.check.diagnosing.comparing import answers_agree, to_comparable
from slp_transformer.check.diagnosing.random_inputs import RareCase, seeded_randn

Case = dict[str, Any]
Place = tuple[str, Any]  # an argument, and an axis of it, or "" for the number itself
LARGE_NUMBER = 60.0  # whose exp float32 still has
LARGE_COUNTS = 1031, 131  # more than the 512 of a table of positions; fewer for a matrix
MAX_NUMBERS = 17_500  # of an answer
ROUNDING = 1e-6  # of an input
PARTS = ("entry",), ("number",), ("row", "column"), ("matrix", "row", "column")


def draw_edges(
    cases: Sequence[Case], may_be_empty: Collection[str], solve: Callable[..., Any]
) -> list[RareCase]:
    """Return the edges of cases.

    Args:
        cases: a check's own.
        may_be_empty: the arguments of which there may be no row.
        solve: the right solution.
    """
    kinds: dict[Any, list[Case]] = {}
    for case in cases:
        if not isinstance(case, RareCase):
            kind = [v.dim() if isinstance(v, Tensor) else type(v) for v in case.values()]
            kinds.setdefault(tuple(kind), []).append(case)
    found = []
    for alike in kinds.values():
        keeps = _find_relations([_measure(case) for case in alike])
        for reason, ways in _iter_changes(alike, may_be_empty):
            fitting = (case for case in ways if keeps(_measure(case)) and _is_settled(case, solve))
            reason = f"It is wrong at an edge: {reason}."
            found += [RareCase(reason, **case) for case in islice(fitting, 1)]
    return found


def _measure(case: Case) -> dict[Place, int]:
    """Return the sizes and whole numbers of a case."""
    found: dict[Place, int] = {}
    for name, value in case.items():
        if isinstance(value, Tensor):
            found |= {(name, axis): size for axis, size in enumerate(value.shape)}
            if value.dtype == torch.long and value.numel():
                found[name, ""] = int(value.max())
        elif isinstance(value, list):
            found[name, 0] = len(value)
        elif type(value) is int:
            found[name, ""] = value
    return found


def _find_relations(measures: Sequence[dict[Place, int]]) -> Callable[[dict[Place, int]], bool]:
    """Return what tells if a case keeps the relations that all of these have."""
    places = [place for place in measures[0] if all(place in one for one in measures)]
    values = {place: tuple(one[place] for one in measures) for place in places}
    numbers = [place for place in places if place[1] == ""]
    sums = ((n, *pair) for n in numbers for pair in permutations(places, 2) if n not in pair)
    sizes = [place for place in places if place[1] != ""]
    parts = [of for n in numbers for size in sizes for of in ((size, n), (n, size))]
    related = [
        (test, of)
        for test, groups in (
            (lambda a, b: a <= b, permutations(places, 2)),
            (lambda a, b: a < b, permutations(places, 2)),
            (lambda a, b: b > 0 and a % b == 0, parts),
            (lambda a: a % 2 == 0, [(place,) for place in places]),
            (lambda a: a > 0, [(number,) for number in numbers]),
            (lambda a, b, c: a + b <= c, sums),
        )
        for of in groups
        if all(map(test, *(values[place] for place in of)))
    ]
    return lambda case: all(
        test(*(case[place] for place in of)) for test, of in related if case.keys() >= {*of}
    )


def _iter_changes(
    cases: Sequence[Case], may_be_empty: Collection[str]
) -> Iterator[tuple[str, Iterator[Case]]]:
    """Yield what is rare about each edge, and ways to have it: the first that fits is it."""
    base = max(cases, key=lambda case: sum(_measure(case).values()))
    tied: dict[tuple[int, ...], list[Place]] = {}  # axes that have the same size in all cases
    for place in _measure(base):
        if place[1] != "":
            tied.setdefault(tuple(_measure(one)[place] for one in cases), []).append(place)
    ones = _narrow(base, [place for places in tied.values() for place in places], 1)
    for places in tied.values():
        name, axis = places[0]
        dim = base[name].dim() if isinstance(base[name], Tensor) else 0
        for size in (1, 0) if {name for name, _ in places} <= {*may_be_empty} else (1,):
            ways = [_narrow(one, places, size) for one in (base, ones)]
            count = "one" if size else "no"
            yield f"where {name} has {count} {PARTS[dim][axis]}", _iter_fitted(ways, "")
    for name, value in base.items():
        if type(value) is int:
            ways = [base | {name: 1}, ones | {name: 1}]
            yield f"with {name} = 1", _iter_fitted(ways, name)
            large = [base | {name: count} for count in LARGE_COUNTS]
            yield f"with a large {name}", _iter_fitted(large, name)
        elif isinstance(value, Tensor) and value.is_floating_point():
            everywhere = torch.cat([case[name].flatten() for case in cases])
            largest = value[value.isfinite()].abs().amax() if value.isfinite().any() else 0.0
            if 0 < largest < LARGE_NUMBER and ((everywhere < 0) | (everywhere > 1)).any():
                large = [base | {name: value * (LARGE_NUMBER / largest)}]
                yield f"with large numbers in {name}", _iter_fitted(large, name)


def _narrow(case: Case, places: Sequence[Place], size: int) -> Case:
    """Return a case with fewer along some axes."""
    case = dict(case)
    for name, axis in places:
        value = case[name]
        case[name] = value[:size] if axis == 0 else value.narrow(axis, 0, size)
    return case


def _iter_fitted(cases: Sequence[Case], changed: str) -> Iterator[Case]:
    """Yield cases, and each with smaller ids and whole numbers, but for what is changed."""
    for case in cases:
        yield case
        ids = {n: v * 0 for n, v in case.items() if isinstance(v, Tensor) and v.dtype == torch.long}
        numbers = [n for n, value in case.items() if type(value) is int and n != changed]
        for values in product((1, 0), repeat=len(numbers)):
            smaller = case | dict(zip(numbers, values, strict=True))
            yield from (smaller, smaller | ids) if ids else (smaller,)


def _is_settled(case: Case, solve: Callable[..., Any]) -> bool:
    """Tell if a case has a right answer, and rounding does not change it."""
    draw = seeded_randn(0)

    def compute(dtype: torch.dtype, noise: float) -> Any:
        floats = {n: v for n, v in case.items() if isinstance(v, Tensor) and v.is_floating_point()}
        near = {n: v.to(dtype) * (1 + noise * draw(*v.shape)) for n, v in floats.items()}
        answer = solve(**case | near)
        return to_comparable(answer, answer)

    try:
        right, *others = (
            compute(*how)
            for how in ((torch.float64, 0.0), (torch.float32, 0.0), (torch.float64, ROUNDING))
        )
        parts = right if isinstance(right, tuple) else (right,)
        fits = all(not part.isnan().any() and part.numel() <= MAX_NUMBERS for part in parts)
        return fits and all(answers_agree(right, other) for other in others)
    except Exception:  # this is no case of the exercise
        return False
