"""Notes which functions of our packages run. A chapter's kernel executes this, not the hook.

A tracer would be called at every call in the kernel, those within PyTorch too, and takes a sixth of
the time of a chapter that trains. Here each function of the package says itself that it runs: its
modules are compiled with one more line in each.
"""

import ast
import json
import marshal
import sys
from contextlib import suppress
from hashlib import sha256
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

RAN = "_slp_ran"  # what a module's functions call the set of those that ran


COMPILER = MAGIC_NUMBER + Path(__file__).read_bytes()  # all that bytecode depends on but a source


class NotingLoader(SourceFileLoader):
    """Loads a module whose functions note that they run."""

    def get_code(self, fullname: str) -> CodeType:
        """Compile a module, or take what another kernel compiled of the same source.

        Its bytecode lies beside that which Python keeps: a process without notes finds none of it.
        """
        path = self.get_filename(fullname)
        source = self.get_data(path)
        digest = sha256(b"\0".join([path.encode(), COMPILER, source])).digest()
        kept = Path(cache_from_source(path)).with_suffix(".noted")
        with suppress(OSError, EOFError, ValueError):
            content = kept.read_bytes()
            if content.startswith(digest):
                return marshal.loads(content[len(digest) :])
        tree = ast.parse(source, path)
        add_notes(tree, "")
        compiled = compile(tree, path, "exec", dont_inherit=True)
        self.set_data(str(kept), digest + marshal.dumps(compiled))
        return compiled

    def exec_module(self, module: ModuleType) -> None:
        """Run a module, which is part of what ran."""
        ran = vars(sys)["slp_ran"].setdefault(self.path, {"<module>"})
        vars(module)[RAN] = ran
        super().exec_module(module)


def add_notes(node: ast.AST, prefix: str) -> None:
    """Let each function within a node begin with noting its qualified name."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            add_notes(child, f"{prefix}{child.name}.<locals>.")
            (note,) = ast.parse(f"{RAN}.add({prefix + child.name!r})").body
            for part in ast.walk(note):
                ast.copy_location(part, child.body[0])
            child.body.insert(ast.get_docstring(child, clean=False) is not None, note)
        elif isinstance(child, ast.ClassDef):
            add_notes(child, f"{prefix}{child.name}.")
        else:
            add_notes(child, prefix)


class Finder:
    """Finds the modules within some folders, which are loaded with notes."""

    def __init__(self, folders: tuple[str, ...]):
        self.folders = folders

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return how a module is loaded; None leaves it to the others."""
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or not isinstance(spec.loader, SourceFileLoader):
            return None
        if not spec.loader.path.startswith(self.folders):
            return None
        spec.loader = NotingLoader(name, spec.loader.path)
        return spec


def start(folders: tuple[str, ...]) -> None:
    """Begins to note each function that is called and defined in some folders, by its file."""
    vars(sys)["slp_ran"] = {}
    sys.meta_path.insert(0, Finder(folders))


def report() -> None:
    """Prints what ran, as JSON."""
    print(json.dumps({file: sorted(names) for file, names in vars(sys)["slp_ran"].items()}))
