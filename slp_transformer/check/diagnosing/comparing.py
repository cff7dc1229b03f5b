"""Compare two answers, and write a small tensor as words in a sentence."""

import math
import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor

from slp_transformer._internal.shape_types import format_shape
from slp_transformer.check.diagnosing.timed_run import RaisedError, TimedOut

MAX_SHOWN_NUMBERS = 30  # a tensor with more of them is shown by its shape
MAX_SHOWN_IN_ALL = 60  # of a case; then its largest tensors are shown by their shapes


class NotNumeric(Exception):
    """An answer that holds no numbers; the message says what it holds."""


def to_comparable(answer: Any, expected: Any) -> Any:
    """Return an answer as tensors, in the form of the right one.

    Lists become tensors, and of `(output, weights)` the output is taken where that is all that was
    asked for.

    Raises:
        NotNumeric: if there are no numbers in it.
    """
    if isinstance(answer, RaisedError | TimedOut):
        return answer
    if answer is None or answer is Ellipsis:
        raise NotNumeric("It returns nothing yet: return a value on every path.")
    if isinstance(expected, tuple):
        if not isinstance(answer, tuple | list) or len(answer) != len(expected):
            raise NotNumeric(
                f"It should return {len(expected)} things; yours is {_describe_type(answer)}."
            )
        return tuple(to_comparable(a, one) for a, one in zip(answer, expected, strict=True))
    if type(answer).__module__ == "torch.return_types":
        raise NotNumeric(
            "It returns values and indices, as torch's min and max with an axis do: take "
            "`.values`, or use amin and amax."
        )
    if isinstance(answer, tuple) and answer and all(isinstance(a, Tensor) for a in answer):
        fits = [a for a in answer if a.shape == expected.shape]
        is_stack = len({a.shape for a in answer}) == 1 and len(answer) == len(expected)
        answer = fits[0] if fits else torch.stack(answer) if is_stack else answer[0]
    return to_float_tensor(answer)


def to_float_tensor(value: Any) -> Tensor:
    """Turn a tensor, an array, a number or a list of these into one of float64, long or bool.

    Raises:
        NotNumeric: if that cannot be done.
    """
    try:
        if value is None or value is Ellipsis:
            raise NotNumeric("There is still a None in it: fill it in.")
        if isinstance(value, list | tuple):
            value = torch.stack([to_float_tensor(v) for v in value]) if value else torch.zeros(0)
        if isinstance(value, int) and abs(value) >= 2**63:  # more than a tensor holds
            value = Fraction(value)
        if isinstance(value, Fraction):
            sign = 1 if value > 0 else -1
            value = float(value) if abs(value) <= sys.float_info.max else sign * math.inf
        double = torch.float64 if isinstance(value, float) else None  # not rounded to float32
        value = torch.as_tensor(value, dtype=double).detach().cpu()
        if value.is_complex() or value.is_nested or value.layout != torch.strided:
            raise NotNumeric("It should return a tensor of plain real numbers.")
        is_whole = not value.is_floating_point()
        return (
            value
            if value.dtype == torch.bool
            else value.to(torch.long if is_whole else torch.float64)
        )
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise NotNumeric(
            f"It should return a tensor of numbers; yours is {_describe_type(value)}."
        ) from None


def _describe_type(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    return f"of type {type(value).__name__}"


def answers_agree(one: Any, other: Any) -> bool:
    """Compare two answers as `to_comparable` returns them, to the rounding of float32."""
    if isinstance(one, RaisedError) or isinstance(other, RaisedError):
        return type(one) is type(other) and one.kind == other.kind
    if isinstance(one, TimedOut) or isinstance(other, TimedOut):
        return False
    if isinstance(one, tuple) or isinstance(other, tuple):
        if type(one) is not type(other) or len(one) != len(other):
            return False
        return all(answers_agree(a, b) for a, b in zip(one, other, strict=True))
    if one.dtype == torch.bool != other.dtype:  # but 1 may stand for True
        return False
    if one.shape != other.shape:
        if squeezed_shape(one.shape) != squeezed_shape(other.shape):
            return False
        one = one.reshape(other.shape)  # the book's [1×d] and a vector [d]
    rtol = 0.0 if other.dtype == torch.long else 1e-4
    return torch.allclose(one.double(), other.double(), rtol=rtol, atol=2e-5, equal_nan=True)


def has_floats_for_integers(answer: Any, expected: Any) -> bool:
    """Tell if ids or places came back as floats, which are equal but cannot be an index."""
    if isinstance(expected, tuple):
        return any(map(has_floats_for_integers, answer, expected))
    return _is_integer_sequence(expected) and _holds_floats(answer)


def _is_integer_sequence(value: Any) -> bool:
    return isinstance(value, list | Tensor) and torch.as_tensor(value).dtype == torch.int64


def _holds_floats(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_holds_floats, value))
    return torch.as_tensor(value).is_floating_point()


HAS_NAN = "it has NaN, from 0/0, ∞ − ∞, 0 · ∞, or a log or root of a negative number"


def has_new_nan(right: Any, found: Any) -> bool:
    """Tell if an answer has NaN where the right one has a number."""
    if isinstance(right, tuple):
        return any(has_new_nan(*pair) for pair in zip(right, found, strict=True))
    return bool(found.isnan().any() and not right.isnan().any())


def differing_indices(found: list[Any], right: list[Any]) -> list[int]:
    """Return which answers differ from the right ones."""
    lost = [_has_lost_axis(*pair) for pair in zip(found, right, strict=True)]
    return [
        i
        for i, (answer, one) in enumerate(zip(found, right, strict=True))
        if not answers_agree(answer, one) or (lost[i] and not all(lost))
    ]


def _has_lost_axis(answer: Any, right: Any) -> bool:
    """Tell if an answer has fewer axes than the right one, as after a squeeze()."""
    return isinstance(answer, Tensor) and isinstance(right, Tensor) and answer.dim() < right.dim()


def rank_difference(found: Any, right: Any) -> tuple[bool, bool]:
    """Tell if an answer differs, and if it then has NaN where the right one has not."""
    is_wrong = not answers_agree(found, right)
    return is_wrong, is_wrong and not isinstance(found, RaisedError) and has_new_nan(right, found)


def is_all_nan(answer: Any) -> bool:
    """Tell if an answer has no number in it at all."""
    return all(map(is_all_nan, answer)) if isinstance(answer, tuple) else bool(answer.isnan().all())


def describe_relation(
    expected: Sequence[Any], actual: Sequence[Any], cases: Sequence[dict[str, Any]] = ()
) -> str | None:
    """Say in what simple way answers differ from the right ones; None if in no such way.

    Args:
        expected: the right answers to all cases.
        actual: the answers that came.
        cases: the inputs, whose sizes may be the factor between the two.
    """
    pairs = list(zip(expected, actual, strict=True))
    if all(isinstance(one, tuple) for pair in pairs for one in pair):
        return HAS_NAN if any(has_new_nan(*pair) for pair in pairs) else None
    if not all(isinstance(one, Tensor) for pair in pairs for one in pair):
        return None
    if any(right.shape != actual.shape or right.dtype == torch.bool for right, actual in pairs):
        return None
    if any(has_new_nan(right, actual) for right, actual in pairs):
        return HAS_NAN
    if all(answers_agree(actual, right.double()) for right, actual in pairs):
        return "it is right but for rounding, which whole numbers don't have"
    right, found = (
        torch.cat([one.double().flatten() for one in side]) for side in (expected, actual)
    )
    finite = right.isfinite() & found.isfinite()
    if right[~finite].equal(found[~finite]) and finite.any():
        right, found = right[finite], found[finite]
        gap = (found - right).mean().item()
        if answers_agree(found, right + gap):
            much = format_value(abs(gap))
            return f"every number is {much} too {'large' if gap > 0 else 'small'}"
        factor = (found @ right / (right @ right)).item() if right.any() else 0.0
        if factor and answers_agree(found, factor * right):
            return f"every number is {format_value(factor)} times the right one"
        if cases and (size := _find_size_factor(pairs, cases)):
            return f"every number is {size} times the right one"
    wrong = [(right, actual) for right, actual in pairs if not answers_agree(actual, right)]
    for name, start in (("first", 1), ("last", 0)):

        def others(one: Tensor, start: int = start) -> Tensor:
            axis = max(one.dim() - 2, 0)
            return one.narrow(axis, start, one.shape[axis] - 1)

        if all(right.dim() and answers_agree(others(a), others(right)) for right, a in wrong):
            kind = "number" if all(right.dim() == 1 for right, _ in wrong) else "row"
            return f"only the {name} {kind} is wrong"
    return None


def _find_size_factor(pairs: Sequence[Any], cases: Sequence[dict[str, Any]]) -> str | None:
    """Say which size, or number that is given, to what power, answers are too large by."""
    factors = []
    for right, found in pairs:
        right, found = right.double().flatten(), found.double().flatten()
        factor = found @ right / (right @ right)
        if not factor > 0 or not answers_agree(found, factor * right):
            return None
        factors.append(factor)
    for name, measures in _measure_inputs(cases).items():
        measure = torch.tensor(measures, dtype=torch.float64)
        if len(measure.unique()) < 3 or (measure <= 0).any():
            continue
        for power, words in POWERS.items():
            rest = torch.stack(factors) / measure**power
            if answers_agree(rest, rest.mean().expand_as(rest)):
                constant = rest.mean().item()
                times = "" if abs(constant - 1) < 1e-4 else f"{format_value(constant)} · "
                return times + words.format(name)
    return None


POWERS = {1.0: "{}", -1.0: "1/{}", 0.5: "√{}", -0.5: "1/√{}", 2.0: "{}²", -2.0: "1/{}²"}


def find_traits(cases: Sequence[dict[str, Any]], wrong: Sequence[int]) -> list[str]:
    """Return a sentence about what all cases with wrong answers have, and no other has."""
    measured = _measure_inputs(cases)
    traits = {f"{n} = {x}": [v == x for v in vs] for n, vs in measured.items() for x in (0, 1)}
    is_wrong = [i in wrong for i in range(len(cases))]
    found = [trait for trait, has in traits.items() if has == is_wrong]
    return [f" It is wrong where {' or '.join(found)}."] if 0 < len(found) < 3 else []


def _measure_inputs(cases: Sequence[dict[str, Any]]) -> dict[str, list[float]]:
    """Return the numbers and sizes in the inputs of all cases, by what a reader would write."""
    found: dict[str, list[float]] = {}
    for case in cases:
        for name, value in case.items():
            if isinstance(value, Tensor):
                for axis, size in enumerate(value.shape):
                    found.setdefault(f"{name}.shape[{axis}]", []).append(size)
            elif isinstance(value, int | float):
                found.setdefault(name, []).append(value)
            elif isinstance(value, list | tuple):
                found.setdefault(f"len({name})", []).append(len(value))
    return {name: numbers for name, numbers in found.items() if len(numbers) == len(cases)}


def squeezed_shape(shape: torch.Size) -> tuple[int, ...]:
    """Return a shape without its first axes of size 1: the book's [1×d] is a vector [d]."""
    first = next((i for i, size in enumerate(shape) if size != 1), len(shape))
    return tuple(shape[first:])


def count_numbers(case: dict[str, Any]) -> int:
    """Count the numbers in a case."""
    return sum(v.numel() for v in case.values() if isinstance(v, Tensor))


def describe_shape(value: Tensor) -> str:
    """Say what a tensor is: a single number, 3 numbers, or its shape."""
    if value.dim() < 2:
        count = value.numel()
        return f"{count} number{'s' * (count != 1)}" if value.dim() else "a single number"
    return format_shape(value)


def format_value(value: Any, digits: int = 3) -> str:
    """Write a value in a line: its numbers if they are few, else its shape."""
    if isinstance(value, tuple | list):
        return f"({', '.join(format_value(v, digits) for v in value)})"
    if isinstance(value, Tensor):
        few = value.numel() <= MAX_SHOWN_NUMBERS
        return _format_rows(value.tolist(), digits) if few else format_shape(value)
    if isinstance(value, float) and 0.999 < value < 1:  # an input that should not look like 1
        return f"{value:.8g}"
    return _format_number(value, digits) if isinstance(value, int | float) else str(value)


def _format_rows(value: Any, digits: int) -> str:
    if isinstance(value, list):
        return "[" + " ".join(_format_rows(v, digits) for v in value) + "]"
    return _format_number(value, digits)


def _format_number(value: float, digits: int = 3) -> str:
    if isinstance(value, bool):
        return str(value)
    if value in (float("inf"), float("-inf")):
        return "−∞" if value < 0 else "∞"
    if value != value:
        return "NaN"
    text = f"{value:.{max(digits, 3 if abs(value) < 1000 else 6)}g}"
    return text.replace("-", "−")


def format_difference(expected: Any, actual: Any) -> list[str]:
    """Write what was expected and what came, a line each."""
    if isinstance(actual, RaisedError):
        wide = isinstance(expected, Tensor) and expected.dim() > 0
        return [f"expected  {describe_shape(expected) if wide else format_value(expected)}"]
    if isinstance(expected, tuple):
        pairs = zip(expected, actual, strict=True)
        expected, actual = next((r, w) for r, w in pairs if not answers_agree(w, r))
    same_shape = squeezed_shape(expected.shape) == squeezed_shape(actual.shape)
    if expected.numel() <= MAX_SHOWN_NUMBERS or not same_shape:
        shown = [(format_value(expected, n), format_value(actual, n)) for n in (3, 7, 15)]
        return format_pair(*next((two for two in shown if two[0] != two[1]), shown[0]))
    actual = actual.reshape(expected.shape).double()
    gap = (actual - expected.double()).abs().nan_to_num(nan=torch.inf)
    gap[actual == expected] = 0  # infinities of the same sign
    at = torch.unravel_index(gap.argmax(), expected.shape)
    place = ", ".join(str(int(i)) for i in at)
    expected_number, number = (_format_number(one[at].item(), 5) for one in (expected, actual))
    return format_pair(f"{expected_number} at [{place}]", number)


def format_pair(expected: str, actual: str) -> list[str]:
    """Write one below the other what was expected and what came."""
    return [f"expected  {expected}", f"yours     {actual}"]


def format_inputs(case: dict[str, Any], shapes: bool = False) -> str:
    """Write a case's inputs in a line; the largest by their shapes, or all but single numbers."""
    tensors = {n: value for n, value in case.items() if isinstance(value, Tensor)}
    wide = {n for n, value in tensors.items() if shapes and value.numel() > 1}
    total = 0
    for name in sorted(tensors, key=lambda name: tensors[name].numel()):
        total += tensors[name].numel()
        wide |= {name} if total > MAX_SHOWN_IN_ALL else set()
    parts = (
        f"{name}: shape {format_shape(value)}"
        if name in wide
        else f"{name} = {format_value(value)}"
        for name, value in case.items()
    )
    return "for       " + "  ".join(parts)
