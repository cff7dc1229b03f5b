"""Sizes that a model is made from, and the refusal of those that none can be made from.

Nothing here needs PyTorch, so that settings are read and refused before it is loaded.
"""

import difflib
import math
import operator
from collections.abc import Callable, Iterable
from typing import Any

Range = tuple[Callable[[Any], bool], str]
"""What a value fulfils, and this in words, after "must be"."""


def suggest_closest_match(name: str, known: Iterable[str]) -> str:
    """Return what somebody may have meant, as the end of a sentence."""
    known = sorted(known)
    found = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f'did you mean "{found[0]}"?' if found else f"there are {', '.join(known)}."


def is_integer(number: Any) -> bool:
    """Tell if something is an integer: Python's, NumPy's or a tensor's, but not a boolean."""
    try:
        return type(operator.index(number)) is int and not is_bool(number)
    except (TypeError, ValueError, RuntimeError):
        return False


def is_bool(value: Any) -> bool:
    """Tell if something is a boolean, also NumPy's or a tensor's, which Python takes for 0 or 1."""
    return isinstance(value, bool) or "bool" in str(getattr(value, "dtype", ""))


def within(low: int, high: int) -> Range:
    """Return the range of whole numbers from one to another."""
    return (lambda n: is_integer(n) and low <= n <= high), f"from {low} to {high:,}"


NUM_WRITTEN: Range = within(1, 10**6)  # all are in memory
COUNT: Range = (lambda n: is_integer(n) and n >= 0), "a whole number of 0 or more"
SIZE: Range = (lambda n: is_integer(n) and n >= 1), "a whole number of 1 or more"
POSITIVE: Range = (lambda x: 0 < x < math.inf), "a number above 0"
SHARE: Range = (lambda x: 0 <= x < 1), "a share from 0 up to but not 1"
OPEN_SHARE: Range = (lambda x: 0 < x < 1), "a share between 0 and 1"
POSITIVE_SHARE: Range = (lambda x: 0 < x <= 1), "a share above 0 and at most 1"
DROPOUT: Range = SHARE[0], "the share to drop, from 0 up to but not 1"
EPS: Range = (lambda x: 0 <= x <= 1), "0 or more, and at most 1, as it is added to a square"
ROPE_BASE: Range = (lambda x: 1 < x <= 1e30), "above 1 and at most 1e+30"  # published: up to 1e8
SEED: Range = (lambda n: is_integer(n) and 0 <= n < 2**63), "a whole number from 0 to 2**63 - 1"
LENGTH_PENALTY: Range = (lambda alpha: abs(alpha) <= 10), "a number from -10 to 10"  # or overflows
NUM_BEAMS: Range = (
    (lambda n: is_integer(n) and 1 <= n <= 1000),
    "a whole number from 1 to 1,000",  # it multiplies time and memory; who searches takes 4 to 100
)


def accepts(kind: Range, value: Any) -> bool:
    """Tell if a value is in a range; what cannot be compared with numbers is in none."""
    try:
        return bool(kind[0](value))
    except (TypeError, ValueError, RuntimeError):  # a string, or an array of several numbers
        return False


def check_range(kind: Range, /, **values: Any) -> None:
    """Refuse values that are out of a range.

    Raises:
        ValueError: naming the first, its range and what it was.
    """
    for name, value in values.items():
        if not accepts(kind, value):
            raise ValueError(f"{name} must be {kind[1]}, not {value!r}.")


def check_positive_sizes(**sizes: int) -> None:
    """Refuse a size that is not a positive whole number.

    Raises:
        ValueError: naming the first such size.
    """
    check_range(SIZE, **sizes)


def resolve_head_sizes(
    model_dim: int, num_heads: int, key_dim: int | None, value_dim: int | None
) -> tuple[int, int]:
    """Return d_k and d_v of each of `num_heads` heads: those given, or d/A.

    Raises:
        ValueError: if a size is not a positive whole number, or d/A is needed and A does not
            divide d.
    """
    check_positive_sizes(model_dim=model_dim, num_heads=num_heads)
    if (key_dim is None or value_dim is None) and model_dim % num_heads:
        raise ValueError(
            f"model_dim = {model_dim} cannot be shared equally among num_heads = {num_heads}: "
            "choose a number of heads that divides it, or give key_dim and value_dim."
        )
    share = model_dim // num_heads
    key_dim = share if key_dim is None else key_dim
    value_dim = share if value_dim is None else value_dim
    check_positive_sizes(key_dim=key_dim, value_dim=value_dim)
    return key_dim, value_dim
