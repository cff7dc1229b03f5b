"""Names that a package exports, imported on first use (PEP 562).

So `import slp_transformer`, and all that needs no PyTorch, such as the help of the command line, is
done at once. A package lists its names in imports that only type checkers and this module read:

    if TYPE_CHECKING:
        from slp_transformer.layer_norm import LayerNorm as LayerNorm  # so said to be exported

    if not TYPE_CHECKING:  # so that these know every name
        __getattr__, __dir__, __all__ = attach(__name__)
"""

import ast
import importlib
import inspect
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any


def attach(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return the `__getattr__`, `__dir__` and `__all__` of a package, given its `__name__`.

    Raises:
        AttributeError: by `__getattr__`, for a name that is neither exported nor a submodule.
    """
    module, own = sys.modules[package], {"attach", "TYPE_CHECKING"}
    modules: dict[str, str] = {}
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{package}."):
            modules |= {alias.name: str(node.module) for alias in node.names}

    def get(name: str) -> Any:
        if name in modules:
            setattr(module, name, getattr(importlib.import_module(modules[name]), name))
            return getattr(module, name)
        # Python's own questions, __path__ or __wrapped__, are never a submodule's name.
        if not name.startswith("__") and find_spec(f"{package}.{name}"):
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    names = [name for name in modules if name not in own]
    return get, lambda: sorted({*vars(module), *modules} - own), names
