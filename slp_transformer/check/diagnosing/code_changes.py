"""What may have become of a part of a solution's code: another sign, function or order, or nothing.

`iter_alternatives` yields each change of a part; `slips` makes solutions of them.
"""

import ast
from collections.abc import Callable, Container, Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from slp_transformer.check.diagnosing.row_changes import divide_by_sum, mark_largest

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


SIGNS: dict[type, str] = {ast.Add: "+", ast.Sub: "−", ast.Mult: "·", ast.Div: "/"}
SIGNS |= {ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**", ast.MatMult: "@"}
SIGNS |= {ast.Lt: "<", ast.LtE: "≤", ast.Gt: ">", ast.GtE: "≥", ast.Eq: "=", ast.NotEq: "≠"}
OTHER_SIGNS: dict[type, tuple[type, ...]] = {
    ast.Add: (ast.Sub, ast.Mult),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div, ast.Add),
    ast.Div: (ast.Mult, ast.FloorDiv),
    ast.FloorDiv: (ast.Mod, ast.Div),
    ast.Mod: (ast.FloorDiv,),
    ast.MatMult: (ast.Mult,),
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
}
MISSING = {
    ast.Add: "A term is missing",
    ast.Sub: "Something is not subtracted",
    ast.Mult: "A factor is missing",
    ast.Div: "A division is missing",
    ast.FloorDiv: "A division is missing",
    ast.Mod: "A remainder is missing",
    ast.Pow: "An exponent is missing",
    ast.MatMult: "A product is missing",
}
SCALED = "A part of it is"
TWICE = {
    ast.Add: "A term is added twice",
    ast.Mult: "A factor is there twice",
    ast.Div: "It is divided twice by the same",
}
# Functions that are taken for another one, or without which a step is missing.
OTHER_FUNCTIONS = {
    "softmax": "log_softmax sigmoid shares hardmax softmin",
    "log_softmax": "softmax log",
    "relu": "gelu silu sigmoid tanh leaky_relu relu6 abs softplus elu mish selu hardsigmoid square "
    "exp softmax unit_clamp quick_gelu",
    "silu": "sigmoid relu gelu quick_gelu tanh softplus mish leaky_relu softmax",
    "sigmoid": "tanh relu",
    "sum": "mean prod amax",
    "mean": "sum amax median",
    "amax": "amin mean sum argmax",
    "amin": "amax mean sum argmin",
    "argmax": "argmin",
    "argmin": "argmax",
    "log": "log2 log10 log1p",
    "exp": "exp2 square expm1 abs relu",
    "sin": "cos",
    "cos": "sin",
    "all": "any",
    "any": "all",
    "tril": "triu",
    "triu": "tril",
    **dict.fromkeys("sqrt square abs int cumsum flip reversed set norm floor tanh".split(), ""),
}
WITH_AXIS = {"softmax", "log_softmax", "sum", "mean", "amax", "amin", "argmax", "argmin", "std"}
WITH_AXIS |= {"var", "cumsum", "logsumexp", "norm", "cat"}
AXIS_NAMES = {"dim", "axis"}
MINUS_INFINITY = ("-math.inf", "-torch.inf", "-INF")
FIXED_SIZES = (1, 2, 3, 4, 6, 8, 64)
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
WORDS = {"amax": "the largest", "amin": "the smallest", "sum": "the sum", "mean": "the mean"}
WORDS |= {"prod": "the product", "median": "the median"}
OR_TRANSPOSED = ", or one of them is transposed"  # which cannot be told apart beside a vector
STEP_WORDS = {
    ast.Add: "addition",
    ast.Sub: "subtraction",
    ast.Mult: "multiplication",
    ast.Div: "division",
    ast.MatMult: "product",
    ast.Pow: "power",
}


def iter_alternatives(node: ast.AST, arguments: dict[str, Any]) -> Iterator[Change]:
    """Yield each change of a part; `arguments` are those of the exercise, and their types."""
    if isinstance(node, ast.expr):
        yield from iter_other_orders(node, OTHER_FUNCTIONS)
    if isinstance(node, ast.BinOp) and type(node.op) in MISSING:
        yield from _iter_operation_changes(node, arguments)
    elif isinstance(node, ast.cmpop):
        for other in OTHER_SIGNS.get(type(node), ()):
            yield _other_sign(other, type(node), other())
    elif isinstance(node, ast.Call):
        yield from _iter_call_changes(node, arguments)
    elif isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        yield Change("no .T", "A transpose is missing.", node.value)
    elif isinstance(node, ast.Slice):
        yield from _iter_slice_changes(node)
    elif isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice | ast.Tuple):
        is_size = isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
        if is_size:
            yield from _iter_size_changes()
        for step, size in ((1, "large"), (-1, "small")):
            new = ast.Subscript(node.value, _moved_by(node.slice, step), node.ctx)
            name, sentence = f"index too {size}", f"An index is one too {size}."
            if is_size:
                new = ast.Subscript(node.value, _next_axis(node.slice, step), node.ctx)
                name = "size of another axis"
                sentence = f"`{ast.unparse(new)}` is used where `{ast.unparse(node)}` should be."
            yield Change(name, sentence, new)
    elif isinstance(node, ast.UnaryOp) and ast.unparse(node) in MINUS_INFINITY:
        for finite in (-1, -2, -5, -10, -20, -50, -100, -1000, 0, 1):
            shown = f"{finite:g}".replace("-", "−")
            sentence = f"{shown} stands for −∞; only −∞ leaves no weight."
            yield Change(f"{finite:g} for −∞", sentence, ast.Constant(float(finite)))
        yield Change("no minus", "A minus is missing.", node.operand)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not | ast.Invert):
        word = "minus" if isinstance(node.op, ast.USub) else "not"
        if not isinstance(node.operand, ast.Constant):  # −1 is an axis or an end
            yield Change(f"no {word}", f"A {word} is missing.", node.operand)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        if not isinstance(node.value, bool):
            for number in (node.value + 1, node.value - 1):
                sentence = f"There is a {number:g} where {node.value:g} should be."
                yield Change(f"{number:g} for {node.value:g}", sentence, ast.Constant(number))
    elif isinstance(node, ast.Name) and node.id in arguments:
        for name in arguments:
            if name != node.id and arguments[name] is arguments[node.id]:
                sentence = f"In one place, `{name}` is used where `{node.id}` should be."
                yield Change(f"{name} in a place", sentence, ast.Name(name, ast.Load()))


def names_in(node: ast.AST) -> set[str]:
    """Return all names in a part."""
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _mean_of_others(step: int, x: Tensor) -> Tensor:
    return x.sum() / (x.numel() + step)


def _other_sign(other: type, right: type, new: ast.AST) -> Change:
    name = f"{SIGNS[other]} for {SIGNS[right]}"
    return Change(name, f"There is a {SIGNS[other]} where {SIGNS[right]} should be.", new)


def _iter_operation_changes(node: ast.BinOp, arguments: dict[str, Any]) -> Iterator[Change]:
    kind, sign = type(node.op), SIGNS[type(node.op)]
    for other in OTHER_SIGNS.get(kind, ()):
        yield _other_sign(other, kind, ast.BinOp(node.left, other(), node.right))

    def quote(part: ast.expr) -> str:
        is_known = names_in(part) <= arguments.keys() | {"len", "torch", "math"}
        return f": `{ast.unparse(part)}`" if is_known else ""

    def without(part: ast.expr, new: ast.expr) -> Change:
        text = "" if "mistakes" in names_in(part) else ast.unparse(part)
        return Change(f"no {sign} {text}".strip(), f"{MISSING[kind]}{quote(part)}.", new)

    yield without(node.right, node.left)
    if kind in (ast.Add, ast.Mult, ast.MatMult):
        yield without(node.left, node.right)
    if kind is ast.Sub:
        yield without(node.left, ast.UnaryOp(ast.USub(), node.right))
    if kind is ast.MatMult:
        yield from iter_transposes(node, arguments)
    if kind in TWICE:
        for part in (node.right, node.left)[: 1 if kind is ast.Div else 2]:
            if isinstance(part, ast.Constant):
                continue
            new = ast.BinOp(node, node.op, part)
            text = "" if "mistakes" in names_in(part) else ast.unparse(part)
            title = f"{sign} {text}".strip()
            yield Change(f"{title} twice", f"{TWICE[kind]}{quote(part)}.", new)
    if kind in (ast.Add, ast.Sub, ast.Mult, ast.Div) and not names_in(node) & {"mistakes"}:
        for number, word in ((2, "doubled"), (0.5, "halved")):
            new = ast.BinOp(node, ast.Mult(), ast.Constant(number))
            yield Change(f"{sign} {word}", f"{SCALED} {word}{quote(node)}.", new)
    if kind is ast.Pow:
        whole = ast.Call(ast.Name("int", ast.Load()), [node], [])
        yield Change("root rounded", "A power or root is rounded to a whole number.", whole)
    if kind in (ast.Sub, ast.Div, ast.Pow, ast.MatMult, ast.FloorDiv):
        new = ast.BinOp(node.right, node.op, node.left)
        text = f"The two sides of {sign} are exchanged{OR_TRANSPOSED * (kind is ast.MatMult)}."
        yield Change(f"sides of {sign}", text, new)


def _iter_call_changes(node: ast.Call, arguments: dict[str, Any]) -> Iterator[Change]:
    function, given = node.func, list(node.args)
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if isinstance(function, ast.Attribute) and not names_in(function.value) <= {
        "torch",
        "math",
        "F",
    }:
        given.insert(0, function.value)  # the object of a method
    if name in OTHER_FUNCTIONS or name in arguments:
        if given and not isinstance(given[0], ast.Starred):
            yield Change(f"no {name}()", f"`{name}` is missing.", given[0])
        for other in OTHER_FUNCTIONS.get(name, "").split():
            new = ast.Call(ast.Name("_function", ast.Load()), given, node.keywords)
            sentence = f"`{other}` is used where `{name}` should be."
            if {name, other} <= WORDS.keys():  # which readers write in several ways
                sentence = f"{WORDS[other].capitalize()} is taken where {WORDS[name]} should be."
            if other in OWN_FUNCTIONS:  # which no reader can have written
                sentence = OWN_FUNCTIONS[other][0].format(name)
            yield Change(f"{other} for {name}", sentence, new, _find_function(other))
    if name == "mean" and len(given) == 1 and not node.keywords:
        for step, word in ((1, "more"), (-1, "less")):
            new = ast.Call(ast.Name("_function", ast.Load()), given, [])
            sentence = f"The sum is divided by one {word} than there are numbers."
            yield Change(f"one {word} in mean", sentence, new, partial(_mean_of_others, step))
    if name == "softmax" and len(given) == 2 and not node.keywords:
        twice = ast.Call(function, [node, given[1]], [])
        yield Change("softmax again", "The softmax is taken twice.", twice)
    if name in WITH_AXIS:
        yield from _iter_axis_changes(node, name)
    if name == "len":
        yield from _iter_size_changes()
        for step, size in ((1, "large"), (-1, "small")):
            yield Change(f"size too {size}", f"A size is one too {size}.", _moved_by(node, step))


def _find_function(name: str) -> Solution:
    own = OWN_FUNCTIONS.get(name, ("", None))[1]
    function: Any = own or getattr(torch, name, None) or getattr(F, name)

    def call(x: Tensor, *others: Any, **named: Any) -> Any:
        try:
            return function(x, *others, **named)
        except TypeError:  # it has no axis
            return function(x)

    return call


def _iter_axis_changes(node: ast.Call, name: str) -> Iterator[Change]:
    def is_axis(value: ast.expr) -> bool:
        return ast.unparse(value).lstrip("-") in ("0", "1", "2")

    for axis in (0, -1, 1, -2, None):
        new = ast.Call(
            node.func,
            [ast.Constant(axis) if is_axis(one) else one for one in node.args],
            [
                ast.keyword(k.arg, ast.Constant(axis) if k.arg in AXIS_NAMES else k.value)
                for k in node.keywords
            ],
        )
        if ast.unparse(new) != ast.unparse(node):
            where = "the wrong axis" if axis is not None else "all numbers, not one axis"
            yield Change(f"{name} over axis {axis}", f"`{name}` runs over {where}.", new)


def _iter_size_changes() -> Iterator[Change]:
    for number in FIXED_SIZES:
        sentence = f"There is a fixed {number} where a size of the input should be."
        yield Change(f"fixed {number}", sentence, ast.Constant(number))


def _iter_slice_changes(node: ast.Slice) -> Iterator[Change]:
    for step, word in ((1, "late"), (-1, "early")):
        if node.lower is not None or step == 1:
            lower = _moved_by(node.lower or ast.Constant(0), step)
            sentence = f"A slice begins one too {word}."
            yield Change(f"begins {word}", sentence, ast.Slice(lower, node.upper, node.step))
        if node.upper is not None or step == -1:
            upper = _moved_by(node.upper, step) if node.upper else ast.Constant(-1)
            sentence = f"A slice ends one too {word}."
            yield Change(f"ends {word}", sentence, ast.Slice(node.lower, upper, node.step))


def _moved_by(node: ast.expr, step: int) -> ast.expr:
    return ast.BinOp(node, ast.Add(), ast.Constant(step))


def _next_axis(node: ast.expr, step: int) -> ast.expr:
    try:
        return ast.Constant(ast.literal_eval(node) + step)
    except ValueError:
        return _moved_by(node, step)


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
