"""Cases at the edges of what an exercise allows, drawn from its own cases by one rule.

Each size, and each whole number that is given, becomes one, all of them become one at once, and
each becomes large; a whole number becomes one more than another, too, and a fraction is small,
nearly 1, and 1.5. The numbers of a tensor become large, with their signs, and shares; a 0 comes
among them, and a 1 if they are shares. A tensor is true everywhere, or everywhere the number that
another argument is, and what is in order in all cases comes in reverse. What may be empty, or 0, a
check says itself. An edge keeps every relation between a whole number and others that all the
check's own cases keep, such as k ≤ |u| or start + N ≤ the rows of P, and it is left out where the
right answer is not a matter of the exercise: where there is none, or NaN, or ∞ as of log 0, or
rounding decides it.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice, permutations, product
from operator import le
from typing import Any

import torch
from torch import Tensor

from slp_transformer.check.diagnosing.comparing import answers_agree, to_comparable
from slp_transformer.check.diagnosing.random_inputs import RareCase, seeded_randn

Case = dict[str, Any]
Place = tuple[str, Any]  # an argument, and an axis of it, or "" for the number itself
LARGE_NUMBER = 60.0  # whose exp float32 still has
LARGE_COUNTS = 1031, 131  # more than the 512 of a table of positions; fewer for a matrix
LARGE_SIZES = 67, 66  # through which a reader may loop; the second where they are even
MAX_NUMBERS = 17_500  # of an answer
FRACTIONS = 0.005, 0.999, 1.5
ROUNDING = 5e-7  # of an input
PARTS = ("entry",), ("number",), ("row", "column"), ("table", "row", "column")


def draw_edges(
    cases: Sequence[Case], may_be_empty: Collection[str], solve: Callable[..., Any]
) -> list[RareCase]:
    """Return the edges of cases.

    Args:
        cases: a check's own.
        may_be_empty: the arguments that may have no row, or be 0.
        solve: the right solution.
    """
    kinds: dict[Any, list[Case]] = {}
    for case in cases:
        if not isinstance(case, RareCase):
            kind = [v.dim() if isinstance(v, Tensor) else type(v) for v in case.values()]
            kinds.setdefault(tuple(kind), []).append(case)
    found = []
    for alike in kinds.values():
        zeros = {name: 0 for name in may_be_empty if type(alike[0][name]) is int}
        keeps = _find_relations([_measure(case) for case in (*alike, alike[0] | zeros)])
        for reason, ways in _iter_changes(alike, may_be_empty):
            fitting = (case for case in ways if keeps(_measure(case)) and _is_settled(case, solve))
            found += [RareCase(f"It is wrong {reason}.", **case) for case in islice(fitting, 1)]
    return found


def _measure(case: Case) -> dict[Place, int]:
    """Return the sizes and whole numbers of a case."""
    found: dict[Place, int] = {}
    for name, value in case.items():
        if isinstance(value, Tensor):
            found |= {(name, axis): size for axis, size in enumerate(value.shape)}
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
    sizes = [place for place in places if place[1] != ""]
    sums = ((n, *pair) for n in numbers for pair in permutations(places, 2) if n not in pair)
    parts = [of for n in numbers for size in sizes for of in ((size, n), (n, size))]
    pairs = [*parts, *permutations(numbers, 2)]
    fits = [(a, b) for a, b in permutations(sizes, 2) if all(map(le, values[a], values[b]))]
    related = [
        (test, of)
        for test, groups in (
            (lambda a, b: a <= b or b > 1, fits),  # if b is not 1, the solution stops
            (lambda a, b: a <= b, pairs),
            (lambda a, b: a < b, pairs),
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
    least, *_, base = sorted([*cases, *cases], key=lambda case: sum(_measure(case).values()))
    tied: dict[tuple[int, ...], list[Place]] = {}  # axes that have the same size in all cases
    for place in _measure(base):
        if place[1] != "":
            tied.setdefault(tuple(_measure(one)[place] for one in cases), []).append(place)
    numbers = [name for name, value in base.items() if type(value) is int]
    floats = {n: v for n, v in base.items() if isinstance(v, Tensor) and v.is_floating_point()}
    ends = {n: torch.cat([case[n].flatten() for case in cases]).aminmax() for n in floats}
    signed = {n: v for n, v in floats.items() if ends[n].min < 0 < ends[n].max}
    shares = {n: v for n, v in floats.items() if ends[n].min >= 0 and ends[n].max <= 1}
    ones = _resize(base, [place for places in tied.values() for place in places], 1)
    yield "where all sizes are one", _iter_fitted([ones | dict.fromkeys(numbers, 1)], "")
    if len(numbers) > 1:
        yield "with large numbers", iter([base | dict.fromkeys(numbers, LARGE_COUNTS[0])])
    for places in tied.values():
        (name, axis), given = places[0], [base[name] for name, _ in places]
        part = PARTS[base[name].dim() if isinstance(base[name], Tensor) else 0][axis]
        for size in (1, 0) if {name for name, _ in places} <= {*may_be_empty} else (1,):
            ways = [_resize(one, places, size) for one in (base, ones)]
            yield f"where {name} has {'one' if size else 'no'} {part}", _iter_fitted(ways, "")
        if all(isinstance(v, Tensor) for v in given) and not all(map(_is_set, given)):
            many = (_resize(one, places, size) for size in LARGE_SIZES for one in (base, least))
            yield f"where {name} has many {part}s", many
    for name, value in base.items():
        if name in may_be_empty and isinstance(value, int | float):
            yield f"with {name} = 0", iter([least | {name: 0 * value}])
        if type(value) is int:
            mirrored = base | {n: -v for n, v in signed.items()}
            ways = [one | {name: 1} for one in (mirrored, base, ones)]
            yield f"with {name} = 1", _iter_fitted(ways, name)
            large = [base | {name: count} for count in LARGE_COUNTS]
            yield f"with a large {name}", _iter_fitted(large, name)
            for other in (n for n in numbers if n != name):
                yield f"with {name} = {other} + 1", iter([least | {name: least[other] + 1}])
        elif type(value) is float:
            most, fewest = (end(case[name] for case in cases) for end in (max, min))
            for x in FRACTIONS:
                if (x < 1 or most > 1) and (x > 1 or fewest < 1):
                    small = {n: v * x for n, v in signed.items() if x < 0.5}
                    yield f"with {name} = {x}", iter([base | small | {name: x}])
        elif name in floats:
            largest = value[value.isfinite()].abs().max() if value.isfinite().any() else 0.0
            if 0 < largest < LARGE_NUMBER and name not in shares:
                large = [base | {name: value * (LARGE_NUMBER / largest)}]
                yield f"with large numbers in {name}", _iter_fitted(large, name)
        elif isinstance(value, Tensor):
            same = {"true": 1} if value.dtype == torch.bool else {n: base[n] for n in numbers}
            for n, number in same.items():
                alike = base | {name: torch.full_like(value, number)}
                yield f"where all of {name} is {n}", iter([alike])
            longer = (case for case in (base, *cases) if len(case[name]) > 1)
            yield f"with {name} in reverse", (case | {name: case[name].flip(0)} for case in longer)
    of_sum_1 = {n: v.softmax(-1) for n, v in signed.items() if v.dim() == 1}
    with_0 = {n: _set_middle(v, 0) for n, v in floats.items()}
    with_1 = {n: _set_middle(v, 1) for n, v in shares.items()}
    for what, changed in (("rows whose sum is 1", of_sum_1), ("a 0", with_0), ("a 1", with_1)):
        if changed:
            yield f"with {what} among the numbers", iter([base | changed])


def _set_middle(x: Tensor, number: float) -> Tensor:
    return x.flatten().index_fill(0, torch.tensor(x.numel() // 2), number).view_as(x)


def _is_set(x: Tensor) -> bool:
    """Tell if it may be a set of numbers, such as of places."""
    return not x.is_floating_point() and len(x.unique()) == x.numel()


def _resize(case: Case, places: Sequence[Place], size: int) -> Case:
    """Return a case with fewer along some axes, or more, which are others."""
    case, draw = dict(case), torch.Generator().manual_seed(size)
    for name, axis in places:
        value = case[name]
        if isinstance(value, Tensor) and 0 < (old := value.shape[axis]) < size:
            value = value.index_select(axis, torch.arange(size) % old)
            if value.is_floating_point():
                value = value * (1 - torch.rand(value.shape, generator=draw) / 2)
            case[name] = value
        else:
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
        has_floats = any(isinstance(v, Tensor) and v.is_floating_point() for v in case.values())
        is_number = torch.isfinite if has_floats else lambda part: ~part.isnan()  # a mask has −∞
        fits = all(is_number(part).all() and part.numel() <= MAX_NUMBERS for part in parts)
        return fits and all(answers_agree(right, other) for other in others)
    except Exception:  # this is no case of the exercise
        return False
