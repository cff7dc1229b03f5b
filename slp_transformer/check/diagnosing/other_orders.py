"""Slips of order and of function: two steps exchanged, brackets, and functions of our own."""

import ast
from collections.abc import Callable, Container, Iterator
from typing import Any, NamedTuple

from torch import Tensor

from slp_transformer._internal.row_changes import divide_by_sum, mark_largest

Solution = Callable[..., Any]


class Change(NamedTuple):
    """A part of a solution's code that is another one.

    Attributes:
        name: the name of the mistake.
        sentence: what is wrong.
        new: what stands in its place.
        function: what `new` calls as `_function`.
        is_of_part: whether others may name it better.
    """

    name: str
    sentence: str
    new: ast.AST
    function: Solution | None = None
    is_of_part: bool = False


OWN_FUNCTIONS: dict[str, tuple[str, Solution]] = {
    "shares": ("Values are divided by their sum where their `{}` should be.", divide_by_sum),
    "hardmax": ("The largest gets 1 and all others 0, where the `{}` should be.", mark_largest),
    "softmin": (
        "The sign of what the `{}` is taken of is reversed: the smallest gets the most.",
        lambda x, dim=-1: (-x).softmax(dim),
    ),
    "softmax": ("`softmax` is used where `{}` should be.", lambda x, dim=-1: x.softmax(dim)),
    "log_softmax": (
        "`log_softmax` is used where `{}` should be.",
        lambda x, dim=-1: x.log_softmax(dim),
    ),
    "quick_gelu": (
        "`x · sigmoid(1.702 x)`, an approximate GELU, is used where `{}` should be.",
        lambda x: x * (1.702 * x).sigmoid(),
    ),
    "unit_clamp": ("Numbers are also cut above 1; `{}` has no upper end.", lambda x: x.clamp(0, 1)),
}


OR_TRANSPOSED = ", or one of them is transposed"  # which cannot be told apart beside a vector
STEP_WORDS = {
    ast.Add: "addition",
    ast.Sub: "subtraction",
    ast.Mult: "multiplication",
    ast.Div: "division",
    ast.MatMult: "product",
    ast.Pow: "power",
}


def iter_other_orders(node: ast.expr, functions: Container[str]) -> Iterator[Change]:
    """Yield the two steps of a part, a function and an operation or two operations, exchanged."""
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.BinOp):
        inner, name = node.args[0], ast.unparse(node.func).rpartition(".")[2]
        if type(inner.op) in STEP_WORDS and name.isidentifier():
            word = STEP_WORDS[type(inner.op)]

            def apply(part: ast.expr) -> ast.expr:
                return ast.Call(node.func, [part, *node.args[1:]], node.keywords)

            text = f"`{name}` comes before the {word}; it belongs after it."
            yield Change(f"{name} first", text, ast.BinOp(apply(inner.left), inner.op, inner.right))
            text = f"`{name}` is applied to one side of the {word} alone; apply it to the result."
            yield Change(
                f"{name} of one side", text, ast.BinOp(inner.left, inner.op, apply(inner.right))
            )
    if not isinstance(node, ast.BinOp) or type(node.op) not in STEP_WORDS:
        return
    word = STEP_WORDS[type(node.op)]
    for side, other, is_left in ((node.left, node.right, True), (node.right, node.left, False)):

        def join(a: ast.expr, op: ast.operator, b: ast.expr, is_left: bool = is_left) -> ast.BinOp:
            return ast.BinOp(a, op, b) if is_left else ast.BinOp(b, op, a)

        if isinstance(side, ast.Call) and side.args and not isinstance(side.args[0], ast.Starred):
            name = ast.unparse(side.func).rpartition(".")[2]
            new = ast.Call(side.func, [join(side.args[0], node.op, other), *side.args[1:]], [])
            new.keywords = side.keywords
            if name.isidentifier() and name in functions:
                text = f"`{name}` comes after the {word}; it belongs before it."
                yield Change(f"{name} last", text, new)
        if isinstance(side, ast.BinOp) and type(side.op) in STEP_WORDS:
            if type(side.op) is type(node.op):
                continue
            # (a · b) + c becomes a · (b + c), and (a + b) · c becomes a + b · c.
            far, near = (side.left, side.right) if is_left else (side.right, side.left)
            swapped = join(far, side.op, join(near, node.op, other))
            first, then = word, STEP_WORDS[type(side.op)]
            text = f"Brackets are wrong: the {first} comes before the {then}; it belongs after it."
            yield Change(f"{first} before {then}", text, swapped)


def iter_transposes(node: ast.BinOp, arguments: dict[str, Any]) -> Iterator[Change]:
    """Yield a product in which an argument is transposed.

    Beside a vector that is the same as its sides exchanged, but it names the argument.
    """
    for side, other in ((node.left, node.right), (node.right, node.left)):
        if isinstance(side, ast.Name) and arguments.get(side.id) is Tensor:
            turned = ast.Attribute(side, "mT", ast.Load())
            pair = (turned, node.op, other) if side is node.left else (other, node.op, turned)
            text = f"`{side.id}` is transposed, or on the other side of @."
            yield Change(f"{side.id}.T in a place", text, ast.BinOp(*pair))
