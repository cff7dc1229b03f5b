"""The package's real source, as a chapter displays it."""

import ast
import inspect
import itertools
import textwrap
from collections.abc import Sequence
from typing import Any

from slp_transformer._internal.explained_refusals import explain_refusals

WIDTH = 79  # characters of a line before a page has to scroll


class CodeBlock:
    """Source code that a notebook shows as a block of Python with links to its API pages."""

    def __init__(self, code: str, names: Sequence[str]):
        self.code = code
        self.names: tuple[str, ...] = tuple(names)

    def __str__(self) -> str:
        return self.code

    def _repr_markdown_(self) -> str:
        links = ", ".join(
            f'<autoref identifier="{name}"><code>{name}</code></autoref>' for name in self.names
        )
        below = f'\n\n<small class="slp-source">{links}</small>' if links else ""
        return f"```python\n{self.code}\n```{below}"


def show_source(*objects: Any, only: Sequence[str] = ()) -> CodeBlock:
    """Show the source of functions, classes, methods or properties, as it is in the package.

    Docstrings are left out, and so are the types of signatures and the decorator that explains
    refusals, so that an equation's code fits on one screen; its page in the reference has them.

    Args:
        objects: what to show, in this order.
        only: how the statements begin that are shown, if not all are; what is left out between
            them is a comment, and a signature of several lines is one.

    Returns:
        An object that a notebook displays; `str()` of it is the code.

    Raises:
        ValueError: without any object, for one that has no Python source, or for the beginning of
            a statement that none has.

    Example:
        plotting.show_source(MultiHeadAttention.forward)
    """
    if not objects:
        raise ValueError("show_source needs at least one function, class or method to show.")
    blocks, names = [], []
    missing = set(only)
    for thing in objects:
        if isinstance(thing, property):
            thing = thing.fget
        try:
            code = textwrap.dedent(inspect.getsource(thing)).rstrip()
        except (TypeError, OSError):
            raise ValueError(
                f"show_source can show only what was written in Python, and {thing!r} was not."
            ) from None
        code = strip_types(strip_docstrings(code))
        if only:
            code, found = pick_statements(code, only)
            missing -= found
        if len(objects) > 1 and "." in thing.__qualname__:
            code = f"# {thing.__qualname__}\n{code}"  # two methods may have the same name
        blocks.append(code)
        if thing.__module__.split(".")[0] == __name__.split(".")[0]:
            # A private method has no entry of its own in the reference: link to its class.
            public = itertools.takewhile(
                lambda part: not part.startswith("_"), thing.__qualname__.split(".")
            )
            names.append(".".join([thing.__module__, *public]))
    if missing:
        raise ValueError(f"No statement that is to be shown begins with {sorted(missing)}.")
    return CodeBlock("\n\n\n".join(blocks), names)


def strip_types(code: str) -> str:
    """Return the same code, its signatures without types and without `explain_refusals`."""
    lines: list[str | None] = [*code.splitlines()]
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for decorator in node.decorator_list:
            if ast.unparse(decorator).startswith(explain_refusals.__name__):
                first, last = decorator.lineno - 1, decorator.end_lineno or 0
                lines[first:last] = [None] * (last - first)
        arguments = node.args
        for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            each.annotation = None
        for rest in (arguments.vararg, arguments.kwarg):
            if rest is not None:
                rest.annotation = None
        indent, end = " " * node.col_offset, node.body[0].lineno - 1
        signature = f"def {node.name}({ast.unparse(arguments)}):".replace("'", '"')
        under = indent + " " * len(f"def {node.name}(")  # where the arguments begin
        wrapped = textwrap.wrap(signature, WIDTH, initial_indent=indent, subsequent_indent=under)
        lines[node.lineno - 1 : end] = ["\n".join(wrapped), *[None] * (end - node.lineno)]
    return "\n".join(line for line in lines if line is not None)


def pick_statements(code: str, only: Sequence[str]) -> tuple[str, set[str]]:
    """Return a function with some of its statements, and which beginnings were found."""
    lines, function = code.splitlines(), ast.parse(code).body[0]
    assert isinstance(function, ast.FunctionDef)
    first = function.body[0].lineno - 1
    one_line = first == 1
    picked = lines[:1] if one_line else [f"def {function.name}(…):"]
    found: set[str] = set()
    above = first  # the first line that is neither shown nor left out yet
    statements = [node for node in ast.walk(function) if isinstance(node, ast.stmt)]
    for node in sorted(statements[1:], key=lambda node: node.lineno):
        line = lines[node.lineno - 1].strip()
        begins = {beginning for beginning in only if line.startswith(beginning)}
        if not begins:
            continue
        found |= begins
        if node.lineno - 1 > above:
            picked.append(_left_out(lines[above]))
        inner = getattr(node, "body", None)
        above = inner[0].lineno - 1 if inner else node.end_lineno or node.lineno
        picked += lines[node.lineno - 1 : above]
    if above < len(lines):
        picked.append(_left_out(lines[above]))
    return "\n".join(picked), found


def _left_out(line: str) -> str:
    """Return the comment in place of lines that begin with this one."""
    return " " * (len(line) - len(line.lstrip())) + "# …"


def strip_docstrings(code: str) -> str:
    """Return the same code, less the docstrings of the definition and of all inside it."""
    lines: list[str | None] = [*code.splitlines()]
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if ast.get_docstring(node, clean=False) is None or len(node.body) == 1:
            continue
        start, end = node.body[0].lineno - 1, node.body[0].end_lineno or 0
        end += lines[end : end + 1] == [""]  # the blank line below it
        lines[start:end] = [None] * (end - start)
    return "\n".join(line for line in lines if line is not None)
