"""Call a reader's function by the names of its arguments, or by their order.

Readers write `attention(Q, K, V, mask)`, but also `attention(queries, keys, values, m=None)` or a
module whose matrices are its own. What can be understood without guessing is.
"""

import copy
import inspect
from collections.abc import Callable, Sequence
from operator import attrgetter, eq
from typing import Any

import torch
from torch import Tensor, nn

ALIASES = {
    "Q": {"query", "queries"},
    "K": {"key", "keys"},
    "V": {"value", "values"},
    "X": {"inputs", "stream"},
    "E": {"embedding", "embeddings", "emb"},
    "P": {"positions", "epos", "pos", "pe"},
    "H_enc": {"encoderoutput", "enc", "memory", "source"},
    "A": {"numheads", "nheads", "heads", "nhead", "h"},
    "gamma": {"gain", "scale", "weight", "g"},
    "beta": {"offset", "shift", "bias"},
    "mask": {"m", "attnmask", "attentionmask"},
    "u": {"logits", "scores"},
    "U": {"logits"},
    "H": {"hidden", "outputs"},
    "tau": {"temperature", "t", "temp"},
    "ids": {"tokens", "words", "tokenids"},
    "scores": {"x", "u", "logits", "s", "z"},
    "x": {"row", "token"},
    "pad_id": {"pad", "padding"},
    "start": {"offset", "held"},
}


class UnsupportedCall(Exception):
    """The function cannot be called as the exercise asks; the message says why."""


def normalize_name(name: str) -> str:
    """Return a name without its case and underscores."""
    return name.replace("_", "").lower()


def has_same_letters(name: str, expected_name: str) -> bool:
    """Tell whether two names differ in case and underscores at most."""
    return normalize_name(name) == normalize_name(expected_name)


def is_same_argument(name: str, expected_name: str) -> bool:
    """Tell whether an argument called `name` must mean `expected_name`."""
    known = ALIASES.get(expected_name, ())
    return has_same_letters(name, expected_name) or normalize_name(name) in known


def make_caller(
    submission: Any, argument_names: Sequence[str], signature_text: str
) -> Callable[[dict[str, Any]], Any]:
    """Return a function that hands a case, as a dict, to the reader's submission.

    Args:
        submission: a function or a module.
        argument_names: the arguments that the exercise gives, in its order.
        signature_text: how the exercise writes the call, for messages.

    Raises:
        UnsupportedCall: if it cannot be called with these.
    """
    if inspect.isclass(submission):
        raise UnsupportedCall(
            f"{submission.__name__} is a class: make one first, and pass that "
            f"(as {submission.__name__}(…))."
        )
    if not callable(submission):
        raise UnsupportedCall(
            "Pass the function itself, without calling it; this is of type "
            f"{type(submission).__name__}."
        )
    by_order, by_name, own = _bind_arguments(submission, argument_names, signature_text)
    called = copy.deepcopy(submission) if own else submission

    def call(case: dict[str, Any]) -> Any:
        for name, path in own.items():
            _set_parameter(called, path, case[name])
        keywords = {parameter: case[name] for parameter, name in by_name.items()}
        return called(*(case[name] for name in by_order), **keywords)

    return call


def _bind_arguments(
    submission: Any, names: Sequence[str], signature_text: str
) -> tuple[list[str], dict[str, str], dict[str, str]]:
    """Return the names that go in by order, those by keyword, and those a module has itself."""
    function = submission.forward if isinstance(submission, nn.Module) else submission
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # written in C
        return list(names), {}, {}
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return list(names), {}, {}
    free = [p for p in parameters if p.kind is not p.VAR_KEYWORD]
    found: dict[str, str] = {}
    for is_same in (eq, has_same_letters, is_same_argument):
        for p in free:
            left = [n for n in names if n not in found.values() and is_same(p.name, n)]
            if p.name not in found and len(left) == 1:
                found[p.name] = left[0]
    rest = [n for n in names if n not in found.values()]
    own = _own_parameters(submission, rest)
    rest = [n for n in rest if n not in own and not (own and n == "A")]  # it knows its heads
    unknown = [p for p in free if p.name not in found]
    required = [p for p in unknown if p.default is p.empty]
    if len(required) > len(rest) or len(unknown) < len(rest):
        takes = ", ".join(p.name for p in free)
        raise UnsupportedCall(f"It is called as {signature_text}, but yours takes ({takes}).")
    found |= {p.name: n for p, n in zip(unknown, rest, strict=False)}
    bound = [p for p in free if p.name in found]
    by_order = [found[p.name] for p in bound if p.kind is p.POSITIONAL_ONLY]
    by_name = {p.name: found[p.name] for p in bound if p.kind is not p.POSITIONAL_ONLY}
    return by_order, by_name, own


def _own_parameters(submission: Any, names: Sequence[str]) -> dict[str, str]:
    """Return which of a module's parameters are meant: `gamma`, `W_Q`, or a linear layer `W_Q`.

    A view of a larger parameter, `W_Q` in one that holds three, counts as well.
    """
    if not isinstance(submission, nn.Module):
        return {}
    found = {}
    for name in names:
        for path, _ in submission.named_parameters():
            last = path.removesuffix(".weight").rpartition(".")[2]
            if name not in found and is_same_argument(last, name):
                found[name] = path
        if name not in found and isinstance(getattr(submission, name, None), Tensor):
            found[name] = name
    return found


def own_parameter_shapes(submission: Any, names: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a module's own parameters, turned as the book has them, by name."""
    shapes = {}
    for name, path in _own_parameters(submission, names).items():
        shape = tuple(attrgetter(path)(submission).shape)
        shapes[name] = shape[::-1] if _is_linear_weight(submission, path) else shape
    return shapes


def _is_linear_weight(module: nn.Module, path: str) -> bool:
    return isinstance(module.get_submodule(path.rpartition(".")[0]), nn.Linear)


def _set_parameter(module: nn.Module, path: str, value: Tensor) -> None:
    value = value.T if _is_linear_weight(module, path) and value.dim() == 2 else value
    if path in dict(module.named_parameters()):
        module.get_parameter(path).data = value.clone()
    else:
        with torch.no_grad():
            getattr(module, path).copy_(value)
