"""Keeps shapes in the reference as they are written: `Float[Tensor, "... #N #M"]`.

Griffe, which reads the package for mkdocstrings, takes a string in an annotation for a type that
stands further below, and parses it as Python. So "tokens" becomes a name, and "... #N #M" three
dots and a comment. It knows of no string that is one, but for those in `Literal`.
"""

import ast

import griffe

TYPES = ("Bool", "Float", "Int")


class ShapeStrings(griffe.Extension):
    """Quotes each shape once more, so that what Griffe parses is a string again."""

    def on_module_node(self, *, node: ast.AST, **kwargs) -> None:
        """Changes a module's syntax tree before it is visited; the source on the page stays."""
        for found in ast.walk(node):
            if isinstance(found, ast.Subscript) and getattr(found.value, "id", "") in TYPES:
                for part in ast.walk(found.slice):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        part.value = repr(part.value)
