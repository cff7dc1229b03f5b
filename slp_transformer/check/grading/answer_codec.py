"""Answers of a student's functions as JSON, between the process that runs them and the grader's.

What comes out of a student's process may be anything, so it is read with bounds, never unpickled,
and every part that is not of this form is refused.
"""

import base64
import math
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor

from slp_transformer.check.diagnosing.comparing import NotNumeric, describe_shape
from slp_transformer.check.diagnosing.timed_run import RaisedError, TimedOut

MAX_NUMBERS = 20_000  # of one answer; those of the exercises have some hundreds
MAX_DEPTH, MAX_AXES, MAX_TEXT = 8, 8, 300
DTYPES = {"bool": torch.bool, "int": torch.int64, "float": torch.float64}


def to_short_line(text: Any, most: int = MAX_TEXT) -> str:
    """Return a text that may come from a student in one line, short, without control characters."""
    shown = (one if one.isprintable() else f"\\x{ord(one):02x}" for one in str(text)[:most])
    return "".join(shown)


def encode_answer(answer: Any, depth: int = 0) -> Any:
    """Return an answer as JSON can hold it."""
    if isinstance(answer, RaisedError):
        return {"error": [answer.kind, answer.message, answer.source_line]}
    if isinstance(answer, TimedOut):
        return {"timeout": answer.source_line}
    if type(answer).__module__ == "torch.return_types":
        return {"return_types": True}
    if isinstance(answer, list | tuple) and depth < MAX_DEPTH:
        if len(answer) > MAX_NUMBERS:
            return {"large": f"a {type(answer).__name__} of {len(answer)}"}
        kind = "tuple" if isinstance(answer, tuple) else "list"
        return {kind: [encode_answer(one, depth + 1) for one in answer]}
    if answer is None or isinstance(answer, bool | float):
        return answer
    if isinstance(answer, int):
        return answer if abs(answer) < 2**63 else {"type": "int"}
    if isinstance(answer, Fraction):
        return float(answer)
    try:
        return _encode_tensor(torch.as_tensor(answer).detach())
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return {"type": type(answer).__name__}


def _encode_tensor(value: Tensor) -> Any:
    if value.is_complex() or value.is_nested or value.layout != torch.strided:
        return {"odd": True}
    if value.numel() > MAX_NUMBERS:
        return {"large": describe_shape(value)}
    name = "bool" if value.dtype == torch.bool else "int"
    name = "float" if value.is_floating_point() else name
    value = value.cpu().to(DTYPES[name]).contiguous()
    data = base64.b64encode(bytes(value.view(-1).view(torch.uint8).tolist()))
    return {"tensor": [name, list(value.shape), data.decode("ascii")]}


def decode_answer(given: Any, depth: int = 0) -> Any:
    """Return the answer.

    Raises:
        ValueError: if it is none.
        NotNumeric: if it is too large to be an answer.
    """
    if given is None or isinstance(given, bool | int | float):
        return given
    if not isinstance(given, dict) or len(given) != 1 or depth > MAX_DEPTH:
        raise ValueError("no answer")
    (kind, value), *_ = given.items()
    if kind in ("list", "tuple") and isinstance(value, list) and len(value) <= MAX_NUMBERS:
        values = [decode_answer(one, depth + 1) for one in value]
        return tuple(values) if kind == "tuple" else values
    if kind == "tensor":
        return _decode_tensor(*value)
    if kind == "error" and isinstance(value, list) and len(value) == 3:
        return RaisedError(*map(to_short_line, value))
    if kind == "timeout":
        return TimedOut(to_short_line(value))
    if kind == "large":
        raise NotNumeric(f"It returns {to_short_line(value)}: too much to be right.")
    if kind == "return_types":
        return torch.zeros(1).max(0)
    if kind == "odd":
        return torch.zeros(1, dtype=torch.complex64)
    if kind == "type":
        return type(to_short_line(value), (), {})()  # of which a message gives the name
    raise ValueError("no answer")


def _decode_tensor(name: str, shape: list[int], text: str) -> Tensor:
    dtype, data = DTYPES[name], base64.b64decode(text, validate=True)
    if len(shape) > MAX_AXES or not all(size in range(MAX_NUMBERS + 1) for size in shape):
        raise ValueError("no shape")
    if math.prod(shape) > MAX_NUMBERS or math.prod(shape) * dtype.itemsize != len(data):
        raise ValueError("another size than its shape")
    if not data:
        return torch.zeros(shape, dtype=dtype)
    return torch.frombuffer(bytearray(data), dtype=dtype).reshape(shape)
