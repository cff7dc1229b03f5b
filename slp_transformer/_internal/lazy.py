"""Names that a package offers, imported when somebody asks for them (PEP 562).

`import slp_transformer` is done at once, and so is what needs no PyTorch, such as the help of the
command line. A package says what it offers in imports that only type checkers and this module read:

    if TYPE_CHECKING:
        from slp_transformer.layer_norm import LayerNorm

    __getattr__, __dir__ = offered(__name__)
"""

import ast
import importlib
import importlib.util
import sys
from collections.abc import Callable
from functools import cache
from typing import Any


def offered(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """What a package needs as its `__getattr__` and `__dir__`.

    Args:
        package: its `__name__`.

    Returns:
        The two functions. The first raises AttributeError for a name that is not offered.

    Raises:
        AttributeError: by the first function, as Python asks of it.
    """

    def get(name: str) -> Any:
        """Import a name that is asked for; it may also be a module of the package.

        Raises:
            AttributeError: if the package offers no such name.
        """
        if name in (homes := homes_of(package)):
            value = getattr(importlib.import_module(homes[name]), name)
            setattr(sys.modules[package], name, value)
            return value
        # Python's own questions, __path__ or __wrapped__, are never a module's name.
        if not name.startswith("__") and importlib.util.find_spec(f"{package}.{name}"):
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def names() -> list[str]:
        """All names, for completion."""
        return sorted({*vars(sys.modules[package]), *homes_of(package)})

    return get, names


@cache
def homes_of(package: str) -> dict[str, str]:
    """The module of each name that a package offers, as its source says."""
    source = sys.modules[package].__spec__.loader.get_source(package)
    return {
        name.name: statement.module
        for block in ast.parse(source).body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for statement in block.body
        for name in statement.names
    }
