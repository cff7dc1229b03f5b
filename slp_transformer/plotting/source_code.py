"""The package's real source, as a chapter displays it."""

import ast
import inspect
import itertools
import textwrap
from collections.abc import Sequence
from typing import Any


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


def show_source(*objects: Any) -> CodeBlock:
    """Show the source of functions, classes, methods or properties, as it is in the package.

    Docstrings are left out, so that an equation's code fits on one screen.

    Args:
        objects: what to show, in this order.

    Returns:
        An object that a notebook displays; `str()` of it is the code.

    Raises:
        ValueError: without any object, or for one that has no Python source.

    Example:
        plotting.show_source(MultiHeadAttention.forward)
    """
    if not objects:
        raise ValueError("show_source needs at least one function, class or method to show.")
    blocks, names = [], []
    for thing in objects:
        if isinstance(thing, property):
            thing = thing.fget
        try:
            code = textwrap.dedent(inspect.getsource(thing)).rstrip()
        except (TypeError, OSError):
            raise ValueError(
                f"show_source can show only what was written in Python, and {thing!r} was not."
            ) from None
        code = strip_docstrings(code)
        if len(objects) > 1 and "." in thing.__qualname__:
            code = f"# {thing.__qualname__}\n{code}"  # two methods may have the same name
        blocks.append(code)
        if thing.__module__.split(".")[0] == __name__.split(".")[0]:
            # A private method has no entry of its own in the reference: link to its class.
            public = itertools.takewhile(
                lambda part: not part.startswith("_"), thing.__qualname__.split(".")
            )
            names.append(".".join([thing.__module__, *public]))
    return CodeBlock("\n\n\n".join(blocks), names)


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
