"""Sizes that a model is made from, and the refusal of those that none can be made from.

Nothing here needs PyTorch, so that settings are read and refused before it is loaded.
"""

import difflib
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

MAX_ROPE_BASE = 1e30  # published models have up to 1e8

Range = tuple[Callable[[Any], bool], str]


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


def make_ints_builtin_in_place(settings: Any) -> None:
    """Turn the whole numbers of a frozen dataclass into Python's own, which JSON can write.

    Args:
        settings: whose fields may hold NumPy's.
    """
    for name, value in vars(settings).items():
        if type(value) is not int and is_integer(value):
            object.__setattr__(settings, name, operator.index(value))


def check_positive_sizes(**sizes: int) -> None:
    """Refuse a size that is not a positive whole number.

    Raises:
        ValueError: naming the first such size.
    """
    for name, size in sizes.items():
        if not is_integer(size) or size < 1:
            raise ValueError(f"{name} must be a whole number of 1 or more, not {size!r}.")


def check_ranges(settings: Any, ranges: Mapping[str, Range], *, flags: bool = False) -> None:
    """Refuse fields of settings that are out of their ranges; None is in any range.

    Args:
        settings: whose fields are checked, those that it has.
        ranges: by a field's name, what its values fulfil, and this in words.
        flags: name a field as a flag, `--top-p` for `top_p`.

    Raises:
        ValueError: naming the first that is out of its range, and the range.
    """
    for name, (fits, what) in ranges.items():
        value = getattr(settings, name, None)
        if value is not None and not fits(value):
            name = f"--{name.replace('_', '-')}" if flags else name
            raise ValueError(f"{name} must be {what}, not {value!r}.")


def check_whole_numbers(options: Any) -> None:
    """Refuse flags with whole numbers of more than 64 bits, which neither TOML nor PyTorch has.

    Args:
        options: a dataclass, whose fields may be dataclasses themselves.

    Raises:
        ValueError: naming the first of them.
    """
    for each in (field for field in fields(options) if field.init):
        value = getattr(options, each.name)
        if is_dataclass(value):
            check_whole_numbers(value)
        for number in value if isinstance(value, tuple) else (value,):
            if type(number) is int and not -(2**63) <= number < 2**63:
                flag = f"--{each.name.replace('_', '-')}"
                raise ValueError(f"{flag} must be between -2**63 and 2**63, not {number}.")


def check_eps(eps: float) -> None:
    """Refuse an epsilon of norms that is negative, or so large that a norm is no norm.

    Raises:
        ValueError: saying what it should be.
    """
    if not 0 <= eps <= 1:
        raise ValueError(
            f"eps is added to a square and must be 0 or more, and at most 1, not {eps!r}."
        )


def check_rope_base(base: float) -> None:
    """Refuse a base of rotary frequencies that gives no angles, or none that float32 can hold.

    Raises:
        ValueError: saying what it should be.
    """
    if not 1 < base <= MAX_ROPE_BASE:
        raise ValueError(f"rope_base must be above 1 and at most {MAX_ROPE_BASE}, not {base!r}.")


def check_dropout(dropout: float) -> None:
    """Refuse a share to drop that is not between 0 and 1.

    Raises:
        ValueError: naming the share.
    """
    if not 0.0 <= dropout < 1.0:
        raise ValueError(f"dropout is the share to drop, from 0 up to but not 1, not {dropout!r}.")


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
