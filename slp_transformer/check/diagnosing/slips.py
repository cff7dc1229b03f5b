"""Slips: one change of the right solution's code, such as `mean` for `sum` or a term left out.

They are made from the source of a check's own solution, and run like every other mistake, so they
need no code in a check. Where its table has a slip by name, the table's sentence is used.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from types import CodeType, FunctionType, SimpleNamespace
from typing import Any, NamedTuple

from slp_transformer.check.diagnosing.code_changes import (
    SCALED,
    Change,
    Solution,
    iter_alternatives,
    names_in,
)
from slp_transformer.check.diagnosing.part_changes import PART_CHANGES, STEPS


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
        changes = [*iter_alternatives(node, arguments)]
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
                    if not (isinstance(node, ast.Call) and ast.unparse(child) == "-1"):  # an axis
                        yield from _iter_sites(child)


def _skipped_fields(node: ast.AST) -> set[str]:
    if isinstance(node, ast.If | ast.IfExp) and "mistakes" in names_in(node.test):
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
