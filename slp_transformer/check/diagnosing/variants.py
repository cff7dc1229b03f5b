"""Mistakes that every check knows: an argument for another, one too many, a softmax too many.

Each is the right answer to changed inputs, or a change of the right answer, so it needs no code in
a check. Where a check's table has one by its name, the table's sentence is used, else that of here.
"""

import operator
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations, permutations
from typing import Any, NamedTuple

import torch
from torch import Tensor

from slp_transformer.check.diagnosing.part_changes import PART_CHANGES
from slp_transformer.check.diagnosing.row_changes import (
    divide_by_norm,
    divide_by_sum,
    mark_largest,
    standardize,
)

Case = dict[str, Any]


class Variant(NamedTuple):
    """A mistake of any check.

    Attributes:
        name: its name, such as `W_Q and W_K swapped`, `k + 1` or `then softmax`.
        sentence: what is wrong.
        is_of_part: whether it is one of `PART_CHANGES`, which others may name better.
        on_case: changes the inputs before the right answer is computed.
        on_answer: changes the right answer, given the inputs.
        argument: the only argument that is changed, if one is.
        change: what becomes of it, by its name in `CHANGES`.
    """

    name: str
    sentence: str
    is_of_part: bool = False
    on_case: Callable[[Case], Case] = lambda case: case
    on_answer: Callable[[Any, Case], Any] = lambda answer, case: answer
    argument: str = ""
    change: str = ""


def make_variants(kinds: dict[str, Any]) -> dict[str, Variant]:
    """Return the mistakes of a check by name, given the types of its arguments."""
    found = [
        *_iter_mistakes_of_two_arguments(kinds),
        *_iter_mistakes_of_the_answer(kinds),
        *_iter_mistakes_of_one_argument(kinds),
    ]
    return {variant.name: variant for variant in found}


def _iter_mistakes_of_two_arguments(kinds: dict[str, Any]) -> Iterator[Variant]:
    def swap(a: str, b: str) -> Callable[[Case], Case]:
        return lambda case: case | {a: case[b], b: case[a]}

    def replace(a: str, b: str) -> Callable[[Case], Case]:
        return lambda case: case | {a: case[b]}

    for a, b in combinations(kinds, 2):
        if kinds[a] is kinds[b]:
            yield Variant(f"{a} and {b} swapped", f"{a} and {b} are swapped.", on_case=swap(a, b))
    for a, b in permutations(kinds, 2):
        if kinds[a] is kinds[b]:
            yield Variant(
                f"{b} for {a}", f"{b} is used where {a} should be.", on_case=replace(a, b)
            )


# What may have become of an argument, by its type; {} is its name.
CHANGES: dict[Any, dict[str, tuple[str, Callable[[Any], Any]]]] = {
    int: {
        "{} + 1": ("This is the result for {} + 1: something is off by one.", lambda n: n + 1),
        "{} − 1": ("This is the result for {} − 1: something is off by one.", lambda n: n - 1),
        "{} − 1 (at least 0)": (
            "This is the result for {} − 1: something is off by one.",
            lambda n: max(n - 1, 0),
        ),
        "{} − 1 (at least 1)": (
            "This is the result for {} − 1: something is off by one.",
            lambda n: max(n - 1, 1),
        ),
        "{} = 0": ("{} is not used: this is the result if it is 0.", lambda n: 0),
        "{} = 1": ("{} is not used: this is the result if it is 1.", lambda n: 1),
        "{} doubled": ("{} counts twice.", lambda n: 2 * n),
    },
    float: {
        "{} = 0": ("{} is not used: this is the result if it is 0.", lambda x: 0.0),
        "{} = 1": ("{} is not used: this is the result if it is 1.", lambda x: 1.0),
        "1 − {}": ("1 − {} is used where {} should be.", lambda x: 1 - x),
        "1/{}": ("1/{} is used where {} should be.", lambda x: 1 / x),
        "−{}": ("−{} is used where {} should be.", lambda x: -x),
        "{} + 1": ("1 is added to {}.", lambda x: x + 1),
        "root of {}": ("The root of {} is used where {} should be.", lambda x: x**0.5),
        "{} squared": ("The square of {} is used where {} should be.", lambda x: x * x),
    },
    Tensor: {
        "{} = 0": ("{} is not used: this is the result if all of it is 0.", torch.zeros_like),
        "{} = 1": ("{} is not used: this is the result if all of it is 1.", torch.ones_like),
        "−{}": ("{} is negated.", lambda x: ~x if x.dtype == torch.bool else -x),
        "{} transposed": ("{} is transposed, or a .T is missing.", lambda x: x.mT),
        "{} reshaped": (
            "A reshape or view stands where {} should be transposed: it keeps the order of the "
            "numbers, so that rows mix.",
            lambda x: x.reshape(x.shape[::-1]).mT,
        ),
        "{} reversed": ("{} is read in reverse order.", lambda x: x.flip(0)),
        "{} absolute": ("The sign of the numbers in {} is lost.", torch.abs),
        **{name: (one.sentence, one.change_finite) for name, one in PART_CHANGES.items()},
    },
    Any: {
        "no {}": ("{} is not applied.", lambda function: lambda X, *others: X),
        "{} twice": (
            "{} is applied twice.",
            lambda function: lambda X, *others: function(function(X, *others), *others),
        ),
        "minus {}": (
            "The output of {} is subtracted; add it.",
            lambda function: lambda X, *others: -function(X, *others),
        ),
        "{} and its input": (
            "What {} reads is added to its output as well.",
            lambda function: lambda X, *others: X + function(X, *others),
        ),
    },
}


def _iter_mistakes_of_one_argument(kinds: dict[str, Any]) -> Iterator[Variant]:
    def change(a: str, to: Callable[[Any], Any]) -> Callable[[Case], Case]:
        return lambda case: case | {a: to(case[a])}

    for a, kind in kinds.items():
        for name, (sentence, to) in CHANGES.get(kind, {}).items():
            title, text = name.replace("{}", a), sentence.replace("{}", a)
            is_of_part = name in PART_CHANGES
            on_case = change(a, to)
            yield Variant(title, text, is_of_part, on_case, argument=a, change=name)


# What may have become of the answer, if it has at least as many axes.
THEN: dict[int, dict[str, tuple[str, Callable[[Tensor], Tensor]]]] = {
    0: {
        "minus": ("The sign is wrong.", torch.neg),
        "not": ("True and False are exchanged.", torch.logical_not),
        "log": ("This is the logarithm of the right answer.", torch.log),
        "exp": ("This is exp of the right answer.", torch.exp),
        "root": ("This is the root of the right answer.", torch.sqrt),
        "square": ("This is the square of the right answer.", torch.square),
        "inverse": ("This is 1 divided by the right answer.", torch.reciprocal),
        "1 − it": ("This is 1 minus the right answer.", lambda right: 1 - right),
        "absolute": ("The sign is lost.", torch.abs),
        "rounded": ("The right answer is rounded.", torch.round),
        "two digits": ("It is rounded to two digits.", lambda y: torch.round(y, decimals=2)),
        "cut": ("The right answer is rounded toward 0, as by int().", torch.trunc),
        "sigmoid": ("There is a sigmoid too many at the end.", torch.sigmoid),
        "tanh": ("There is a tanh too many at the end.", torch.tanh),
        "at most 0": ("Numbers above 0 are cut at 0.", lambda y: y.clamp(max=0)),
        "GELU": ("There is a GELU too many at the end.", torch.nn.functional.gelu),
    },
    2: {
        "transposed": ("Rows and columns are exchanged.", lambda right: right.mT),
        "first row": ("Only the first row is left.", lambda right: right[:1]),
        "mirrored": ("The columns are in reverse order.", lambda right: right.flip(-1)),
        "last row": ("Only the last row is left.", lambda right: right[-1:]),
        "argmax": ("This is where the largest number of a row is.", lambda y: y.argmax(-1)),
        "mean of rows": ("This is the mean of the right rows.", lambda y: y.mean(-2)),
        "sum of rows": ("This is the sum of the right rows.", lambda y: y.sum(-2)),
        "last row for all": (
            "The last row is returned for all rows.",
            lambda y: y[..., -1:, :].expand_as(y),
        ),
        "first row for all": (
            "The first row is returned for all rows.",
            lambda y: y[..., :1, :].expand_as(y),
        ),
        "no first column": ("The first column is missing.", lambda y: y[..., 1:]),
        "no last column": ("The last column is missing.", lambda y: y[..., :-1]),
        "running rows": ("The rows are added up one after the other.", lambda y: y.cumsum(-2)),
    },
    1: {
        "reversed": ("The order is reversed.", lambda right: right.flip(0)),
        "ReLU": ("There is a ReLU too many at the end.", torch.relu),
        "softmax": ("There is a softmax too many at the end.", lambda y: y.softmax(-1)),
        "log softmax": ("There is a log softmax too many at the end.", lambda y: y.log_softmax(-1)),
        "sum": ("This is the sum of the right numbers.", torch.sum),
        "mean": ("This is the mean of the right numbers.", torch.mean),
        "largest": ("This is the largest of the right numbers.", torch.max),
        "smallest": ("This is the smallest of the right numbers.", torch.min),
        "shares": ("It is divided by its sum at the end.", divide_by_sum),
        "norm": ("It is divided by its norm at the end.", lambda y: divide_by_norm(y.double())),
        "layer norm": (
            "Each row is brought to mean 0 and deviation 1 at the end.",
            standardize,
        ),
        "last again": ("The last comes twice.", lambda y: torch.cat([y, y[-1:]])),
        "first again": ("The first comes twice.", lambda y: torch.cat([y[:1], y])),
        "one-hot": ("The largest becomes 1 and all others 0.", mark_largest),
        "running sum": ("The numbers are added up one after the other.", lambda y: y.cumsum(-1)),
        "no first": ("The first is missing.", lambda y: y[1:]),
        "no last": ("The last is missing.", lambda y: y[:-1]),
        "last first": (
            "They are shifted by one place: the last comes first.",
            lambda y: y.roll(1, 0),
        ),
        "first last": (
            "They are shifted by one place: the first comes last.",
            lambda y: y.roll(-1, 0),
        ),
        "flat": ("The right numbers, in one row.", torch.flatten),
        "sorted": ("The right numbers are sorted.", lambda y: y.sort(descending=True).values),
        "inverted": (
            "What should be hidden is visible, and the reverse.",
            lambda mask: torch.where(mask.isneginf(), 0.0, mask.where(mask != 0, -torch.inf)),
        ),
    },
}


def _iter_mistakes_of_the_answer(kinds: dict[str, Any]) -> Iterator[Variant]:
    def combine(a: str, how: Callable[[Any, Any], Any]) -> Callable[[Any, Case], Any]:
        return lambda answer, case: how(answer, case[a])

    for dim, table in THEN.items():
        for name, (sentence, change) in table.items():
            yield Variant(f"then {name}", sentence, on_answer=partial(_change_answer, change, dim))
    for a, kind in kinds.items():
        if kind is Any:
            apply = combine(a, lambda answer, function: function(answer))
            yield Variant(f"then {a}", f"{a} is applied at the end; leave it out.", on_answer=apply)
        if kind is Tensor:
            add = combine(a, lambda answer, X: answer + X.reshape(answer.shape))
            yield Variant(f"then + {a}", f"{a} is added at the end; leave it out.", on_answer=add)
        if kind is int:
            more, less = combine(a, operator.mul), combine(a, operator.truediv)
            yield Variant(f"then · {a}", f"It is multiplied by {a} once too often.", on_answer=more)
            yield Variant(f"then / {a}", f"A factor {a} is missing.", on_answer=less)
    for i, j in combinations(range(3), 2):
        yield Variant(
            f"results {i + 1} and {j + 1} swapped",
            f"Results {i + 1} and {j + 1} are swapped.",
            on_answer=partial(_swap_answers, i, j),
        )


def _change_answer(change: Callable[[Tensor], Tensor], dim: int, answer: Any, case: Case) -> Tensor:
    answer = torch.as_tensor(answer)
    if answer.dim() < dim or (answer.dtype == torch.bool) != (change is torch.logical_not):
        raise ValueError(f"This needs {dim} axes, and numbers, or truth values.")
    return change(answer)


def _swap_answers(i: int, j: int, answer: tuple[Any, ...], case: Case) -> tuple[Any, ...]:
    order = list(range(len(answer)))
    order[i], order[j] = order[j], order[i]
    return tuple(answer[k] for k in order)
