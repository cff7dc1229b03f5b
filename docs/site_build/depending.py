"""What the outputs of a chapter depend on, found in its code.

They depend on the chapter's code cells, the modules of the package that it imports (and those that
they import), the data next to these, the recorded runs in benchmarks/results/ if its code names
them, and the versions of Python, PyTorch and Matplotlib. Prose, headings and alt texts are not part
of it.
"""

import ast
import hashlib
import platform
import re
from collections.abc import Iterable
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from reading import PACKAGE, Chapter

RESULTS = "benchmarks/results"


def key_of(chapter: Chapter) -> str:
    """What the chapter's outputs depend on, as one hash."""
    digest = hashlib.sha256()
    for cell in chapter.code_cells:
        digest.update(cell.source.encode() + b"\0")
    for path in modules_behind(chapter) + data_behind(chapter):
        digest.update(path.relative_to(chapter.root).as_posix().encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    digest.update(platform.python_version().encode())
    for library in ("torch", "matplotlib"):
        try:
            digest.update(f"{library} {version(library)}".encode())
        except PackageNotFoundError:
            pass
    return digest.hexdigest()[:24]


def modules_behind(chapter: Chapter) -> list[Path]:
    """The package's files that a chapter imports, directly or through one another."""
    found: set[Path] = set()
    for cell in chapter.code_cells:
        _follow(_imported(_parse(cell.source), None), chapter.root, found)
    return sorted(found)


def modules_named(chapter: Chapter) -> list[str]:
    """The modules of the package that a chapter itself imports, in the order of their files."""
    found: set[Path] = set()
    for cell in chapter.code_cells:
        for name in _imported(_parse(cell.source), None):
            found.update(_files_of(name, chapter.root))
    return [module_name(path, chapter.root) for path in sorted(found)]


def objects_named(chapter: Chapter) -> list[str]:
    """The classes and functions of the package that a chapter imports, where they are defined."""
    found = []
    for cell in chapter.code_cells:
        for name in sorted(_imported(_parse(cell.source), None)):
            for path in _files_of(name, chapter.root):
                module = module_name(path, chapter.root)
                if name != module:
                    found.append(f"{module}.{name.rpartition('.')[2]}")
    return list(dict.fromkeys(found))


def data_behind(chapter: Chapter) -> list[Path]:
    """What a chapter's code may read: data beside the modules it imports, and recorded runs.

    A chapter whose code has the word "results" anywhere depends on all of benchmarks/results/, so
    that no author has to say which file is read.
    """
    folders = {path.parent for path in modules_behind(chapter)}
    found = {path for folder in folders for path in folder.iterdir() if path.suffix != ".py"}
    if any(re.search(r"\bresults\b", cell.source) for cell in chapter.code_cells):
        found.update((chapter.root / RESULTS).rglob("*"))
    return sorted(path for path in found if path.is_file() and not path.name.startswith("."))


def module_name(path: Path, root: Path) -> str:
    """The dotted name of a file of the package."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _parse(source: str) -> ast.Module:
    """Python, less the lines that only a notebook understands (`%magic`, `!command`)."""
    try:
        return ast.parse(re.sub(r"^(\s*)[%!].*$", r"\1pass", source, flags=re.MULTILINE))
    except SyntaxError:
        return ast.Module([], [])  # running it will say so, with the line


def _imported(tree: ast.AST, package: str | None) -> set[str]:
    """The dotted names of the package that a piece of code imports."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level and package:
                above = package.split(".")
                base = ".".join([*above[: len(above) - node.level + 1], *filter(None, [base])])
            names.update(f"{base}.{alias.name}" for alias in node.names)
    return {name for name in names if name.split(".")[0] == PACKAGE}


def _follow(names: Iterable[str], root: Path, found: set[Path]) -> None:
    for name in names:
        for path in _files_of(name, root):
            if path not in found:
                found.add(path)
                inside = path.stem == "__init__"
                dotted = module_name(path, root)
                package = dotted if inside else dotted.rpartition(".")[0]
                _follow(_imported_by(path.read_text(encoding="utf-8"), package), root, found)


@lru_cache(maxsize=256)
def _imported_by(text: str, package: str) -> set[str]:
    return _imported(ast.parse(text), package)


@lru_cache(maxsize=16)
def _from_imports(text: str) -> list[ast.ImportFrom]:
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]


def _files_of(name: str, root: Path) -> list[Path]:
    """The file that a dotted name stands for; for a name that a package hands on, its source."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        path = root.joinpath(*parts[:length])
        if path.with_suffix(".py").is_file():
            return [path.with_suffix(".py")]
        init = path / "__init__.py"
        if not init.is_file():
            continue
        if length == len(parts) or parts[length] == "*":
            return [init]
        package, wanted = ".".join(parts[:length]), parts[length]
        for node in _from_imports(init.read_text(encoding="utf-8")):
            for alias in node.names:
                if (alias.asname or alias.name) == wanted:
                    origin = next(iter(_imported(ast.Module([node], []), package)), package)
                    origin = f"{origin.rpartition('.')[0]}.{alias.name}"
                    return _files_of(origin, root) if origin != name else [init]
        return [init]
    return []
