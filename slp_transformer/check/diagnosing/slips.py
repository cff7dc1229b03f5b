"""Slips: one change of the right solution's code, such as `mean` for `sum` or a term left out.

They are made from the source of a check's own solution, and run like every other mistake, so they
need no code in a check. Where its table has a slip by name, the table's sentence is used.
"""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from functools import partial
from types import CodeType, FunctionType, SimpleNamespace
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from slp_transformer.check.diagnosing.other_orders import (
    OR_TRANSPOSED,
    OWN_FUNCTIONS,
    Change,
    iter_other_orders,
    iter_transposes,
)
from slp_transformer.check.diagnosing.part_changes import PART_CHANGES, STEPS

Solution = Callable[..., Any]


class Slip(NamedTuple):
    """A solution with one change, such as `mean for sum`, and a sentence about it."""

    name: str
    sentence: str
    solve: Solution
    is_of_part: bool


def as_solution_with_mistakes(solve: Solution) -> Solution:
    """Return a solution that can be called with mistakes, even if it makes none itself."""
    if "mistakes" in inspect.signature(solve).parameters:
        return solve
    return lambda *inputs, mistakes=frozenset(), **named: solve(*inputs, **named)


def make_slips(solve: Solution) -> list[Slip]:
    """Return the slips of a solution and of the helpers that it calls."""
    functions: dict[str, FunctionType] = {}
    trees: dict[str, ast.FunctionDef] = {}
    _collect_functions(solve.__name__, solve, functions, trees)
    arguments = {n: p.annotation for n, p in inspect.signature(solve).parameters.items()}
    found: dict[str, Slip] = {}
    counts: dict[str, int] = {}
    for name, tree in trees.items():
        # In a helper, an argument has another name than in the exercise.
        known = arguments if name == solve.__name__ else {}
        for change, code in _iter_changes(tree, known):
            changed = _rebuild_functions(functions, name, code, change.function)[solve.__name__]
            changed = as_solution_with_mistakes(changed)
            count = counts[change.name] = counts.get(change.name, 0) + 1
            title = f"{change.name} ({count})" if count > 1 else change.name
            found[title] = Slip(title, change.sentence, changed, change.is_of_part)
    # What is scaled by a number may be named better by what is missing, and so may a step.
    return sorted(
        found.values(), key=lambda slip: (slip.is_of_part, slip.sentence.startswith(SCALED))
    )


def _collect_functions(
    name: str,
    function: Solution,
    functions: dict[str, FunctionType],
    trees: dict[str, ast.FunctionDef],
) -> None:
    """Collect a function and the helpers that it calls from modules of checks, with their code."""
    plain = inspect.unwrap(function)
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(plain))).body
    if not (isinstance(plain, FunctionType) and isinstance(tree, ast.FunctionDef)):
        return
    tree.decorator_list, tree.returns = [], None
    for argument in tree.args.args:
        argument.annotation = None
    functions[name], trees[name] = plain, tree
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in functions:
            helper = plain.__globals__.get(node.id)
            helper = getattr(helper, "_solve", helper)
            if inspect.isfunction(helper) and helper.__module__.endswith("_checks"):
                _collect_functions(node.id, helper, functions, trees)


def _rebuild_functions(
    functions: dict[str, FunctionType], changed: str, code: CodeType, instead: Solution | None
) -> dict[str, Solution]:
    """Return the functions as they are if the code of one of them is changed."""
    scopes = {name: dict(function.__globals__) for name, function in functions.items()}
    new: dict[str, Solution] = {}
    for name, function in functions.items():
        if name == changed:
            scopes[name]["_function"] = instead
            exec(code, scopes[name])
            new[name] = scopes[name][function.__name__]
        else:
            defaults = function.__defaults__
            new[name] = FunctionType(function.__code__, scopes[name], name, defaults)
    checks = {n: SimpleNamespace(solve=as_solution_with_mistakes(f)) for n, f in new.items()}
    for scope in scopes.values():
        for name in new.keys() & scope.keys():
            scope[name] = checks[name] if hasattr(scope[name], "_solve") else new[name]
    return new


def _iter_changes(
    tree: ast.FunctionDef, arguments: dict[str, Any]
) -> Iterator[tuple[Change, CodeType]]:
    """Yield each change with the compiled code that has it."""
    steps = {id(value): STEPS[name] for name, value in _iter_steps(tree) if name in STEPS}
    for holder, field, place, node in list(_iter_sites(tree)):
        values = getattr(holder, field)
        changes = [*_iter_alternatives(node, arguments)]
        if isinstance(node, ast.expr) and id(node) in steps:
            changes += _iter_step_changes(node, steps[id(node)])
        compiled: dict[ast.AST, CodeType] = {}  # all changes of a step call a function of it
        for change in changes:
            if change.sentence.startswith(SCALED) and isinstance(holder, ast.Return) and arguments:
                continue  # all of it, which is told by its relation to the right answer
            if change.new not in compiled:
                if place is None:
                    setattr(holder, field, change.new)
                else:
                    values[place] = change.new
                module = ast.fix_missing_locations(ast.Module([tree], []))
                compiled[change.new] = compile(module, "<slip>", "exec")
            yield change, compiled[change.new]
        if place is None:
            setattr(holder, field, node)
        else:
            values[place] = node


def _iter_steps(tree: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    """Yield the named steps of a solution: names, and what is computed for them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            pairs = [(target, value)]
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = list(zip(target.elts, value.elts, strict=True))
            yield from ((one.id, part) for one, part in pairs if isinstance(one, ast.Name))


def _iter_step_changes(node: ast.expr, title: str) -> Iterator[Change]:
    """Yield what may have become of a whole step that readers call `title`."""
    new = ast.Call(ast.Name("_function", ast.Load()), [node], [])
    for name, change in PART_CHANGES.items():
        sentence = change.sentence.replace("{}", title)
        sentence = sentence[0].upper() + sentence[1:]
        yield Change(name.replace("{}", title), sentence, new, change.__call__, True)


def _iter_sites(node: ast.AST) -> Iterator[tuple[Any, str, int | None, ast.AST]]:
    """Yield the parts of a solution that run when no mistake is asked for."""
    for field, value in ast.iter_fields(node):
        if field not in _skipped_fields(node):
            is_list = isinstance(value, list)
            for place, child in enumerate(value if is_list else [value]):
                if isinstance(child, ast.AST) and not _is_about_mistakes(child):
                    yield node, field, place if is_list else None, child
                    yield from _iter_sites(child)


def _skipped_fields(node: ast.AST) -> set[str]:
    if isinstance(node, ast.If | ast.IfExp) and "mistakes" in _names_in(node.test):
        is_negated = any(isinstance(one, ast.NotIn | ast.Not) for one in ast.walk(node.test))
        return {"test", "orelse" if is_negated else "body"}
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return {"func"}
    return {"args"} if isinstance(node, ast.FunctionDef) else {"annotation", "targets", "target"}


def _is_about_mistakes(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare | ast.BoolOp | ast.BinOp):
        sides = [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.Name)]
        return "mistakes" in {one.id for one in sides}
    return isinstance(node, ast.Starred | ast.Set | ast.Dict) or (
        isinstance(node, ast.Name) and node.id == "mistakes"
    )


def _names_in(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


# --- What may become of a part -------------------------------------------------------------------

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


def _mean_of_others(step: int, x: Tensor) -> Tensor:
    return x.sum() / (x.numel() + step)


def _iter_alternatives(node: ast.AST, arguments: dict[str, Any]) -> Iterator[Change]:
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


def _other_sign(other: type, right: type, new: ast.AST) -> Change:
    name = f"{SIGNS[other]} for {SIGNS[right]}"
    return Change(name, f"There is a {SIGNS[other]} where {SIGNS[right]} should be.", new)


def _iter_operation_changes(node: ast.BinOp, arguments: dict[str, Any]) -> Iterator[Change]:
    kind, sign = type(node.op), SIGNS[type(node.op)]
    for other in OTHER_SIGNS.get(kind, ()):
        yield _other_sign(other, kind, ast.BinOp(node.left, other(), node.right))

    def quote(part: ast.expr) -> str:
        is_known = _names_in(part) <= arguments.keys() | {"len", "torch", "math"}
        return f": `{ast.unparse(part)}`" if is_known else ""

    def without(part: ast.expr, new: ast.expr) -> Change:
        text = "" if "mistakes" in _names_in(part) else ast.unparse(part)
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
            text = "" if "mistakes" in _names_in(part) else ast.unparse(part)
            title = f"{sign} {text}".strip()
            yield Change(f"{title} twice", f"{TWICE[kind]}{quote(part)}.", new)
    if kind in (ast.Add, ast.Sub, ast.Mult, ast.Div) and not _names_in(node) & {"mistakes"}:
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
    if isinstance(function, ast.Attribute) and not _names_in(function.value) <= {
        "torch",
        "math",
        "F",
    }:
        given.insert(0, function.value)  # the object of a method
    if name in OTHER_FUNCTIONS or name in arguments:
        for other in OTHER_FUNCTIONS.get(name, "").split():
            new = ast.Call(ast.Name("_function", ast.Load()), given, node.keywords)
            sentence = f"`{other}` is used where `{name}` should be."
            if other in OWN_FUNCTIONS:  # which no reader can have written
                sentence = OWN_FUNCTIONS[other][0].format(name)
            yield Change(f"{other} for {name}", sentence, new, _find_function(other))
        if given and not isinstance(given[0], ast.Starred):
            yield Change(f"no {name}()", f"A `{name}` is missing.", given[0])
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
