"""How a check calls a reader's function: by the names of its arguments, or by their order.

Readers write `attention(Q, K, V, mask)`, but also `attention(queries, keys, values, m=None)` or a
module whose matrices are its own. What can be understood without guessing is.
"""

import copy
import inspect
from collections.abc import Callable, Sequence
from operator import attrgetter
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
    """A name without its case and underscores."""
    return name.replace("_", "").lower()


def is_same_argument(name: str, expected_name: str) -> bool:
    """Whether an argument called `name` must mean `expected_name`."""
    return normalize_name(name) == normalize_name(expected_name) or normalize_name(
        name
    ) in ALIASES.get(expected_name, ())


def make_caller(
    submission: Any, argument_names: Sequence[str], signature_text: str
) -> Callable[[dict[str, Any]], Any]:
    """A function that hands a case, as a dict, to the reader's submission.

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
    given, own, places = _bind_arguments(submission, argument_names, signature_text)
    module = copy.deepcopy(submission) if own else None

    def call(case: dict[str, Any]) -> Any:
        if module is not None:
            _set_parameters(module, {parameter: case[name] for name, parameter in own.items()})
        by_order = [case[name] for name in given]
        by_name = {argument: case[name] for argument, name in places.items()}
        return (submission if module is None else module)(*by_order, **by_name)

    return call


def _bind_arguments(submission: Any, names: Sequence[str], signature_text: str):
    """Which of the names go in by order, which are a module's own, which go in by keyword."""
    function = submission.forward if isinstance(submission, nn.Module) else submission
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # written in C
        return list(names), {}, {}
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return list(names), {}, {}
    free = [p for p in parameters if p.kind is not p.VAR_KEYWORD]
    found = {p.name: n for p in free for n in names if p.name == n}
    for test in (
        lambda p, n: normalize_name(p.name) == normalize_name(n),
        lambda p, n: is_same_argument(p.name, n),
    ):
        for p in free:
            left = [n for n in names if n not in found.values() and test(p, n)]
            if p.name not in found and len(left) == 1:
                found[p.name] = left[0]
    rest = [n for n in names if n not in found.values()]
    own = _own_parameters(submission, rest)
    rest = [n for n in rest if n not in own and not (own and n == "A")]  # it knows its heads
    unknown = [p for p in free if p.name not in found]
    required = [p for p in unknown if p.default is p.empty]
    if len(required) > len(rest) or len(unknown) < len(rest):
        raise UnsupportedCall(
            f"It is called as {signature_text}, but yours takes ({_join_names(free)})."
        )
    order = [p.name for p in free]
    found |= {p.name: n for p, n in zip(unknown, rest, strict=False)}
    keywords = {p.name for p in free if p.kind is p.KEYWORD_ONLY}
    lead = 0
    while lead < len(order) and order[lead] in found and order[lead] not in keywords:
        lead += 1
    by_order = [found[name] for name in order[:lead]]
    by_name = {a: n for a, n in found.items() if a not in order[:lead]}
    return by_order, own, by_name


def _join_names(parameters: list[inspect.Parameter]) -> str:
    return ", ".join(p.name for p in parameters)


def _own_parameters(submission: Any, names: Sequence[str]) -> dict[str, str]:
    """The names for which a module has parameters: `gamma`, `W_Q`, or a linear layer `W_Q`.

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
    """The shapes of a module's own parameters, in the book's orientation, for the names it has."""
    if not isinstance(submission, nn.Module):
        return {}
    own = _own_parameters(submission, names)
    shapes = {name: tuple(attrgetter(path)(submission).shape) for name, path in own.items()}
    return {n: s[::-1] if _is_linear_weight(submission, own[n]) else s for n, s in shapes.items()}


def _is_linear_weight(module: nn.Module, path: str) -> bool:
    return isinstance(module.get_submodule(path.rpartition(".")[0]), nn.Linear)


def _set_parameters(module: nn.Module, values: dict[str, Tensor]) -> None:
    for path, value in values.items():
        value = value.T if _is_linear_weight(module, path) and value.dim() == 2 else value
        if path in dict(module.named_parameters()):
            module.get_parameter(path).data = value.clone()
        else:
            with torch.no_grad():
                getattr(module, path).copy_(value)
