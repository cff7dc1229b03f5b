"""Slips: one change of the right solution's code, such as `mean` for `sum` or a term left out.

They are made from the source of a check's own solution, and run like every other mistake, so they
need no code in a check. Where its table has a slip by name, the table's sentence is said.
"""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F

Function = Callable[..., Any]


class Slip(NamedTuple):
    """A solution with one change, such as `mean for sum`, and a sentence about it."""

    name: str
    sentence: str
    solve: Function


class _Change(NamedTuple):
    name: str
    sentence: str
    new: ast.expr | ast.stmt | ast.cmpop
    function: Function | None = None  # what `new` calls as `_function`


def make_slips(solve: Function) -> list[Slip]:
    """Return the slips of a solution and of the helpers that it calls."""
    functions: dict[str, Function] = {}
    trees: dict[str, ast.Module] = {}
    _collect(solve.__name__, solve, functions, trees)
    arguments = {n: p.annotation for n, p in inspect.signature(solve).parameters.items()}
    del arguments["mistakes"]
    found: dict[str, Slip] = {}
    for name, tree in trees.items():
        # In a helper, an argument has another name than in the exercise.
        known = arguments if name == solve.__name__ else {}
        for change, code in _changes(tree, known):
            changed = _rebuild(functions, name, code, change.function)[solve.__name__]
            count = sum(one.partition(" (")[0] == change.name for one in found)
            title = f"{change.name} ({count + 1})" if count else change.name
            found[title] = Slip(title, change.sentence, changed)
    return list(found.values())


def _collect(
    name: str, function: Function, functions: dict[str, Function], trees: dict[str, ast.Module]
) -> None:
    """Collect a function and the helpers that it calls from modules of checks, with their code."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    (definition,) = tree.body
    if not isinstance(definition, ast.FunctionDef):
        return
    definition.decorator_list = []
    functions[name], trees[name] = function, tree
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in functions:
            helper = function.__globals__.get(node.id)
            helper = getattr(helper, "_solve", helper)
            if inspect.isfunction(helper) and helper.__module__.endswith("_checks"):
                _collect(node.id, helper, functions, trees)


def _rebuild(
    functions: dict[str, Function], changed: str, code: Any, instead: Function | None
) -> dict[str, Function]:
    """Return the functions as they are if the code of one of them is changed."""
    scopes = {name: dict(function.__globals__) for name, function in functions.items()}
    new: dict[str, Function] = {}
    for name, function in functions.items():
        scopes[name]["_function"] = instead
        if name == changed:
            exec(code, scopes[name])
            new[name] = scopes[name][function.__name__]
        else:
            kind = type(function)
            new[name] = kind(function.__code__, scopes[name], name, function.__defaults__)
    for scope in scopes.values():
        for name in new.keys() & scope.keys():
            is_check = hasattr(scope[name], "_solve")
            scope[name] = SimpleNamespace(solve=new[name]) if is_check else new[name]
    return new


def _changes(tree: ast.Module, arguments: dict[str, Any]) -> Iterator[tuple[_Change, Any]]:
    """Yield each change with the compiled code that has it."""
    for holder, field, place, node in list(_sites(tree.body[0])):
        for change in _alternatives(node, arguments):
            values = getattr(holder, field)
            if place is None:
                setattr(holder, field, change.new)
            else:
                values[place] = change.new
            module = ast.fix_missing_locations(ast.Module(tree.body, []))
            yield change, compile(module, "<slip>", "exec")
            if place is None:
                setattr(holder, field, node)
            else:
                values[place] = node


def _sites(node: ast.AST) -> Iterator[tuple[Any, str, int | None, ast.AST]]:
    """Yield the parts of a solution that run when no mistake is asked for."""
    for field, value in ast.iter_fields(node):
        if field in _skipped_fields(node):
            continue
        children = list(enumerate(value)) if isinstance(value, list) else [(None, value)]
        for place, child in children:
            if isinstance(child, ast.AST) and not _is_about_mistakes(child):
                yield node, field, place, child
                yield from _sites(child)


def _skipped_fields(node: ast.AST) -> set[str]:
    if isinstance(node, ast.FunctionDef):
        return {"args", "returns"}
    if isinstance(node, ast.If | ast.IfExp) and _mentions_mistakes(node.test):
        is_negated = any(isinstance(one, ast.NotIn | ast.Not) for one in ast.walk(node.test))
        return {"test", "orelse" if is_negated else "body"}
    if isinstance(node, ast.Call):
        return {"func"} if isinstance(node.func, ast.Name) else set()
    return {"annotation", "targets", "target"}


def _mentions_mistakes(node: ast.AST) -> bool:
    return any(isinstance(one, ast.Name) and one.id == "mistakes" for one in ast.walk(node))


def _is_about_mistakes(node: ast.AST) -> bool:
    if isinstance(node, ast.Starred | ast.Set | ast.Dict):
        return True
    if isinstance(node, ast.Compare | ast.BoolOp):
        return _mentions_mistakes(node)
    if isinstance(node, ast.BinOp):
        return any(isinstance(n, ast.Name) and n.id == "mistakes" for n in (node.left, node.right))
    return isinstance(node, ast.Name) and node.id == "mistakes"


# --- What may become of a part -------------------------------------------------------------------

SIGNS: dict[type, str] = {
    ast.Add: "+",
    ast.Sub: "−",
    ast.Mult: "·",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.Lt: "<",
    ast.LtE: "≤",
    ast.Gt: ">",
    ast.GtE: "≥",
    ast.Eq: "=",
    ast.NotEq: "≠",
}
OTHER_SIGNS: dict[type, tuple[type, ...]] = {
    ast.Add: (ast.Sub, ast.Mult),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div, ast.Add),
    ast.Div: (ast.Mult, ast.FloorDiv),
    ast.FloorDiv: (ast.Mod, ast.Div),
    ast.Mod: (ast.FloorDiv,),
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
}
MISSING = {
    ast.Add: ("{} is not added.", "A term of a sum is missing."),
    ast.Sub: ("{} is not subtracted.", "A difference is missing: something is not subtracted."),
    ast.Mult: ("The factor {} is missing.", "A factor is missing."),
    ast.Div: ("The division by {} is missing.", "A division is missing."),
    ast.FloorDiv: ("The division by {} is missing.", "A division is missing."),
    ast.Mod: ("The remainder by {} is missing.", "A remainder is missing."),
    ast.Pow: ("The exponent {} is missing.", "An exponent is missing."),
    ast.MatMult: ("The product with {} is missing.", "A product of matrices is missing."),
}


def _shares(x: Any, dim: int = -1) -> Any:
    return x / x.sum(dim, keepdim=True)


# Functions that are taken for another one, and those without which a step is missing.
OTHER_FUNCTIONS: dict[str, dict[str, Function]] = {
    "softmax": {
        "log_softmax": torch.log_softmax,
        "sigmoid": lambda x, *dim: torch.sigmoid(x),
        "shares": _shares,
    },
    "log_softmax": {"softmax": torch.softmax, "log": lambda x, *dim: torch.log(x)},
    "relu": {
        "gelu": F.gelu,
        "silu": F.silu,
        "sigmoid": torch.sigmoid,
        "tanh": torch.tanh,
        "leaky_relu": F.leaky_relu,
        "abs": torch.abs,
    },
    "silu": {"sigmoid": torch.sigmoid, "relu": torch.relu, "gelu": F.gelu},
    "sigmoid": {"tanh": torch.tanh, "relu": torch.relu, "softmax": lambda x: x.softmax(-1)},
    "sum": {"mean": torch.mean, "prod": torch.prod, "amax": torch.amax},
    "mean": {"sum": torch.sum, "amax": torch.amax, "median": lambda x: x.median()},
    "amax": {"amin": torch.amin, "mean": torch.mean, "sum": torch.sum},
    "amin": {"amax": torch.amax, "mean": torch.mean, "sum": torch.sum},
    "max": {"min": min, "sum": lambda *x, **_: sum(*x)},
    "min": {"max": max},
    "argmax": {"argmin": torch.argmin},
    "argmin": {"argmax": torch.argmax},
    "log": {"log2": torch.log2, "log10": torch.log10},
    "exp": {"exp2": torch.exp2},
    "sin": {"cos": torch.cos},
    "cos": {"sin": torch.sin},
    "all": {"any": torch.any},
    "any": {"all": torch.all},
    "tril": {"triu": torch.triu},
    "triu": {"tril": torch.tril},
    "norm": {"the sum of squares": lambda x, *a, **k: x.square().sum(*a, **k)},
    "sqrt": {"square": torch.square},
    "sorted": {"reversed": lambda x, **_: sorted(x, reverse=True)},
    "cumsum": {},
    "flip": {},
    "square": {},
    "abs": {},
    "floor": {},
    "int": {},
    "nan_to_num": {},
    "tanh": {},
    "gelu": {},
    "reversed": {},
    "set": {},
}
AXIS_FUNCTIONS = set(
    "softmax log_softmax sum mean amax amin argmax argmin std var cumsum logsumexp norm cat".split()
)


def _alternatives(node: ast.AST, arguments: dict[str, Any]) -> Iterator[_Change]:
    if isinstance(node, ast.BinOp):
        yield from _of_operation(node, arguments)
    elif isinstance(node, ast.cmpop):
        for other in OTHER_SIGNS.get(type(node), ()):
            yield _sign_for(other, type(node), other())
    elif isinstance(node, ast.Call):
        yield from _of_call(node, arguments)
    elif isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        yield _Change("no .T", "A transpose is missing.", node.value)
    elif isinstance(node, ast.Slice):
        yield from _of_slice(node)
    elif isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice | ast.Tuple):
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            yield from _fixed_sizes()
        for step, size in ((1, "large"), (-1, "small")):
            new = ast.Subscript(node.value, _moved(node.slice, step), node.ctx)
            yield _Change(f"index too {size}", f"An index is one too {size}.", new)
    elif isinstance(node, ast.UnaryOp):
        if isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant):
            yield _Change("no minus", "A minus sign is missing.", node.operand)
        if isinstance(node.op, ast.Not | ast.Invert):
            yield _Change("no not", "A `not` is missing: a condition is reversed.", node.operand)
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        words = ("or", "and") if isinstance(node.op, ast.And) else ("and", "or")
        sentence = f"`{words[0]}` is used where `{words[1]}` should be."
        yield _Change(f"{words[0]} for {words[1]}", sentence, ast.BoolOp(other, node.values))
        for one in node.values:
            left = [value for value in node.values if value is not one]
            yield _Change("no condition", "A condition is missing.", ast.BoolOp(node.op, left))
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        for number in (node.value + 1, node.value - 1):
            sentence = f"There is a {number:g} where {node.value:g} should be."
            yield _Change(f"{number:g} for {node.value:g}", sentence, ast.Constant(number))
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        for other in arguments:
            if other != node.id and arguments.get(node.id) is arguments[other]:
                sentence = f"In one place, `{other}` is used where `{node.id}` should be."
                yield _Change(f"{other} in a place", sentence, ast.Name(other, ast.Load()))
    elif isinstance(node, ast.AugAssign):
        assigned = ast.Assign([node.target], node.value)
        yield _Change("= for +=", "Only the last is left: add each to the sum.", assigned)


def _sign_for(other: type, right: type, new: Any) -> _Change:
    name = f"{SIGNS[other]} for {SIGNS[right]}"
    return _Change(name, f"There is a {SIGNS[other]} where {SIGNS[right]} should be.", new)


def _of_operation(node: ast.BinOp, arguments: dict[str, Any]) -> Iterator[_Change]:
    kind = type(node.op)
    if kind not in MISSING:
        return
    for other in OTHER_SIGNS.get(kind, ()):
        yield _sign_for(other, kind, ast.BinOp(node.left, other(), node.right))
    quoted, plain = MISSING[kind]

    def without(part: ast.expr, new: ast.expr) -> _Change:
        quote = _quote(part, arguments)
        name = f"no {quote or SIGNS[kind]}"
        return _Change(name, quoted.format(f"`{quote}`") if quote else plain, new)

    yield without(node.right, node.left)
    if kind in (ast.Add, ast.Mult, ast.MatMult):
        yield without(node.left, node.right)
    if kind is ast.Sub:
        yield without(node.left, ast.UnaryOp(ast.USub(), node.right))
    if kind is ast.Pow:
        whole = ast.Call(ast.Name("int", ast.Load()), [node], [])
        yield _Change("rounded", "A power or root is rounded to a whole number.", whole)
    if kind in (ast.Sub, ast.Div, ast.Pow, ast.MatMult, ast.FloorDiv):
        sentence = f"The two sides of {SIGNS[kind]} are exchanged."
        new = ast.BinOp(node.right, node.op, node.left)
        yield _Change(f"sides of {SIGNS[kind]} exchanged", sentence, new)


def _of_call(node: ast.Call, arguments: dict[str, Any]) -> Iterator[_Change]:
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    given = list(node.args)
    is_method = isinstance(function, ast.Attribute) and not (
        isinstance(function.value, ast.Name) and function.value.id in ("torch", "math", "F")
    )
    if isinstance(function, ast.Attribute) and is_method:
        given.insert(0, function.value)
    if name in OTHER_FUNCTIONS or (name in arguments and given):
        for other, call in OTHER_FUNCTIONS.get(name, {}).items():
            new = ast.Call(ast.Name("_function", ast.Load()), given, node.keywords)
            sentence = f"`{other}` is used where `{name}` should be."
            yield _Change(f"{other} for {name}", sentence, new, call)
        if given and not isinstance(given[0], ast.Starred):
            yield _Change(f"no {name}", f"`{name}` is missing in one place.", given[0])
    if name in AXIS_FUNCTIONS:
        yield from _of_axis(node, name)
    if name == "len":
        yield from _fixed_sizes()
    if name in ("range", "len", "size"):
        for step, size in ((1, "large"), (-1, "small")):
            sentence = f"A count or size is one too {size}."
            yield _Change(f"size too {size}", sentence, _moved(node, step))
    if name in ("range", "arange"):
        sentence = "The count begins one too late."
        first, *rest = given
        start = given if rest else [ast.Constant(0), first]
        new = ast.Call(function, [_moved(start[0], 1), *start[1:]], node.keywords)
        yield _Change("begins late", sentence, new)
    if name in ("cat", "stack") and isinstance(node.args[0], ast.List | ast.Tuple):
        parts = ast.List(node.args[0].elts[::-1], ast.Load())
        new = ast.Call(function, [parts, *node.args[1:]], node.keywords)
        yield _Change("other order", f"The parts of `{name}` are in the wrong order.", new)


def _fixed_sizes() -> Iterator[_Change]:
    for number in (1, 2, 3, 4, 6, 8, 64):
        sentence = f"There is a fixed {number} where a size of the input should be."
        yield _Change(f"fixed {number}", sentence, ast.Constant(number))


def _of_axis(node: ast.Call, name: str) -> Iterator[_Change]:
    def is_axis(value: ast.expr) -> bool:
        number = value.operand if isinstance(value, ast.UnaryOp) else value
        return isinstance(number, ast.Constant) and type(number.value) is int

    for axis in (0, -1, 1, -2, None):
        new_axis = ast.Constant(axis)
        keywords = [
            ast.keyword(k.arg, new_axis) if k.arg == "dim" and is_axis(k.value) else k
            for k in node.keywords
        ]
        args = [new_axis if is_axis(value) else value for value in node.args]
        if ast.dump(ast.Call(node.func, args, keywords)) != ast.dump(node):
            where = "the wrong axis" if axis is not None else "all numbers, not one axis"
            new = ast.Call(node.func, args, keywords)
            yield _Change(f"{name} over {where}", f"`{name}` runs over {where}.", new)


def _of_slice(node: ast.Slice) -> Iterator[_Change]:
    for step, word in ((1, "late"), (-1, "early")):
        if node.lower is not None or step == 1:
            lower = _moved(node.lower or ast.Constant(0), step)
            new = ast.Slice(lower, node.upper, node.step)
            yield _Change(f"begins {word}", f"A slice begins one too {word}.", new)
        if node.upper is not None or step == -1:
            upper = _moved(node.upper, step) if node.upper else ast.Constant(-1)
            new = ast.Slice(node.lower, upper, node.step)
            yield _Change(f"ends {word}", f"A slice ends one too {word}.", new)


def _moved(node: ast.expr, step: int) -> ast.expr:
    return ast.BinOp(node, ast.Add(), ast.Constant(step))


def _quote(node: ast.expr, arguments: dict[str, Any]) -> str:
    """Return a part of the solution as text, if it holds nothing but what the reader knows."""
    used = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    text = ast.unparse(node)
    known = used - {"len", "torch", "math"}
    return text if known and known <= arguments.keys() and len(text) <= 30 else ""
