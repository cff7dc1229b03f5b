"""Whether two answers are the same, and how a small tensor looks in a sentence."""

from typing import Any

import torch
from torch import Tensor

from slp_transformer._internal.shape_types import shape_of
from slp_transformer.check.timed_run import Raised, Unfinished

SMALL = 30  # numbers; a case with more of them is shown by its shapes


class Unreadable(Exception):
    """An answer that holds no numbers; the message says what it holds."""


def settled(answer: Any, like: Any) -> Any:
    """An answer as tensors, in the form of the right one.

    Lists become tensors, and of `(output, weights)` the output is taken where that is all that was
    asked for.

    Raises:
        Unreadable: if there are no numbers in it.
    """
    if isinstance(answer, Raised | Unfinished):
        return answer
    if answer is None or answer is Ellipsis:
        raise Unreadable("It returns nothing yet: write what it should return.")
    if isinstance(like, tuple):
        if not isinstance(answer, tuple | list) or len(answer) != len(like):
            raise Unreadable(f"It should return {len(like)} things; yours is {_kind(answer)}.")
        return tuple(settled(a, one) for a, one in zip(answer, like, strict=True))
    if isinstance(answer, tuple) and answer and all(isinstance(a, Tensor) for a in answer):
        fits = [a for a in answer if a.shape == like.shape]
        answer = (fits or answer)[0]
    return tensor(answer)


def tensor(value: Any) -> Tensor:
    """A tensor, an array, a number or a list of these as one tensor of float64 (or of booleans).

    Raises:
        Unreadable: if that cannot be done.
    """
    try:
        if value is None or value is Ellipsis:
            raise Unreadable("There is still a None in it: fill it in.")
        if isinstance(value, list | tuple):
            value = torch.stack([tensor(v) for v in value]) if value else torch.zeros(0)
        value = torch.as_tensor(value).detach().cpu()
        if value.is_complex() or value.is_nested or value.layout != torch.strided:
            raise Unreadable("It should return a tensor of plain real numbers.")
        return value if value.dtype == torch.bool else value.to(torch.float64)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise Unreadable(
            f"It should return a tensor of numbers; yours is {_kind(value)}."
        ) from None


def _kind(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    return f"of type {type(value).__name__}"


def agree(one: Any, other: Any) -> bool:
    """Whether two settled answers are the same, to the rounding of float32."""
    if isinstance(one, Raised) or isinstance(other, Raised):
        return type(one) is type(other) and one.kind == other.kind
    if isinstance(one, Unfinished) or isinstance(other, Unfinished):
        return False
    if isinstance(one, tuple):
        return all(agree(a, b) for a, b in zip(one, other, strict=True))
    if (one.dtype == torch.bool) != (other.dtype == torch.bool):
        return False
    if one.shape != other.shape:
        if squeezed(one.shape) != squeezed(other.shape):
            return False
        one = one.reshape(other.shape)  # the book's [1×d] and a vector [d]
    return torch.allclose(one.double(), other.double(), rtol=1e-4, atol=2e-5, equal_nan=True)


def squeezed(shape: torch.Size) -> tuple[int, ...]:
    """A shape without its axes of size 1."""
    return tuple(size for size in shape if size != 1)


def size(case: dict[str, Any]) -> int:
    """How many numbers a case holds."""
    return sum(v.numel() for v in case.values() if isinstance(v, Tensor))


def shown(value: Any) -> str:
    """A value in a line: its numbers if they are few, else its shape."""
    if isinstance(value, tuple):
        return ", ".join(shown(v) for v in value)
    if isinstance(value, Tensor):
        if value.numel() > SMALL:
            return shape_of(value)
        return _rows(value.tolist())
    return _number(value) if isinstance(value, int | float) else getattr(value, "label", "…")


def _rows(value: Any) -> str:
    if isinstance(value, list):
        return "[" + " ".join(_rows(v) for v in value) + "]"
    return _number(value)


def _number(value: float) -> str:
    if isinstance(value, bool):
        return str(value)
    if value in (float("inf"), float("-inf")):
        return "−∞" if value < 0 else "∞"
    if value != value:
        return "NaN"
    text = f"{value:.3g}" if abs(value) < 1000 else f"{value:.6g}"
    return text.replace("-", "−")


def difference(right: Any, wrong: Any) -> list[str]:
    """What was expected and what came, in lines."""
    if isinstance(wrong, Raised):
        shape = isinstance(right, Tensor) and right.dim() > 0
        return [f"expected  {shape_of(right) if shape else shown(right)}"]
    if isinstance(right, tuple):
        pairs = zip(right, wrong, strict=True)
        right, wrong = next((r, w) for r, w in pairs if not agree(w, r))
    if right.numel() <= SMALL or squeezed(right.shape) != squeezed(wrong.shape):
        return [f"expected  {shown(right)}", f"yours     {shown(wrong)}"]
    wrong = wrong.reshape(right.shape).double()
    gap = (wrong - right.double()).abs().nan_to_num(nan=torch.inf)
    gap[(wrong == right)] = 0  # infinities of the same sign
    where = [int(i) for i in torch.unravel_index(gap.argmax(), right.shape)]
    place = ", ".join(str(i) for i in where)
    at = tuple(where)
    return [
        f"expected  {_number(right[at].item())} at [{place}]",
        f"yours     {_number(wrong[at].item())}",
    ]
