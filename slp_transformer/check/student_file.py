"""A reader's script or notebook: what it says before a line of it is run, and its functions."""

import ast
import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from slp_transformer._internal.plugins import PACKAGES
from slp_transformer.check.diagnosing.diagnosis import CHECKS

CALLED_IN_CHAPTERS = {  # where an exercise names its function otherwise
    "cheapest_step": "my_step",
    "count_places": "my_count",
    "input_encoding": "my_input",
    "length_normalized": "my_score",
    "masked_word_loss": "my_masked_loss",
    "next_token_loss": "my_loss",
    "one_hot_lookup": "my_lookup",
    "only_allowed": "my_allowed",
    "path_back": "my_path",
    "perplexity_of_loss": "my_perplexity_of",
    "rate_of_2017": "my_rate",
    "shift_position": "my_shift",
    "takes_turns": "my_turns",
    "unchanged": "my_silent_half",
    "without_head": "my_output_without_head",
}
MIN_PASTED_STATEMENTS = 3  # shorter solutions are alike whoever writes them
FILE_SUFFIXES = (".py", ".ipynb")
MAX_FILE_BYTES = 32 << 20
PASTED_FROM = (  # packages whose own modules have solutions
    *("slp_transformer", "slp_transformer.interpret", "slp_transformer.modern"),
    *("slp_transformer.check.diagnosing", "slp_transformer.check.tables", "slp_guitar.checks"),
)


@dataclass
class StudentFile:
    """A file that is parsed, of which nothing is run yet.

    Attributes:
        path: its name, for messages.
        modules: its cells, or the whole script: the imports, definitions and constants alone.
        asked: the functions that are handed to a check somewhere in the file, by check.
        empty: the functions without a line of code.
        defined: the functions and classes, by name, the last of each.
        imported: what is imported, by name, as `slp_transformer.masks.causal_mask`.
    """

    path: str
    modules: list[ast.Module] = field(default_factory=list)
    asked: dict[str, str] = field(default_factory=lambda: dict(CALLED_IN_CHAPTERS))
    empty: set[str] = field(default_factory=set)
    defined: dict[str, ast.AST] = field(default_factory=dict)
    imported: dict[str, str] = field(default_factory=dict)

    def possible_names_for(self, check: str) -> list[str]:
        """Return what the function of a check may be called here, the best last."""
        names = (self.asked.get(check), f"my_{check}", check)
        there = [name for name in names if name and name not in self.empty]
        return sorted(there, key=lambda name: name not in self.imported)

    def function_names_by_check(self) -> dict[str, str]:
        """Return what is called what here, of the functions that the file defines, by check."""
        names = {
            one: [n for n in self.possible_names_for(one) if n in self.defined] for one in CHECKS
        }
        return {one: found[-1] for one, found in names.items() if found}

    def import_origin(self, check: str) -> str:
        """Return where a function comes from that is no definition of the file, if that is said."""
        found = [
            self.imported[name] for name in self.possible_names_for(check) if name in self.imported
        ]
        return found[-1] if found else self.imported.get("*", "")

    def checks_without_function(self) -> list[str]:
        """Return the checks whose function is asked for in the file, but is not there."""
        there = self.defined.keys() - self.empty | self.imported.keys()
        asked = {one for one in self.asked if self.asked[one] != CALLED_IN_CHAPTERS.get(one)}
        asked |= {one for one in CHECKS if {one, f"my_{one}"} & self.empty}
        return [
            one for one in CHECKS if one in asked and not there & {*self.possible_names_for(one)}
        ]

    def package_names_used_by(self, name: str) -> list[str]:
        """Return what of the package a function uses, itself or by others in the file."""
        seen: set[str] = set()
        used: set[str] = set()
        left = [name]
        while left:
            if (one := left.pop()) in seen or one not in self.defined:
                continue
            seen.add(one)
            free = _free_names(self.defined[one])
            left += free
            used |= {self.imported[name] for name in free & self.imported.keys()}
            for node in ast.walk(self.defined[one]):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    used |= {*_imported_objects(node).values()}
                elif isinstance(node, ast.Call):  # import_module("slp_transformer.masks")
                    used |= {str(one.value) for one in node.args if isinstance(one, ast.Constant)}
        return sorted(one for one in used if one.split(".")[0] in PACKAGES)

    def fingerprint(self, name: str) -> str:
        """Return a short form of a function's code, to compare it with others."""
        return fingerprint(self.defined.get(name))


def parse_file(path: str, data: bytes) -> StudentFile:
    """Parse a script or a notebook.

    Raises:
        ValueError: if it is no Python, or no notebook.
    """
    try:
        text = data.decode("utf-8-sig")  # as Windows writes it
        sources = [text]
        if path.lower().endswith(".ipynb"):
            cells = [c for c in json.loads(text)["cells"] if c["cell_type"] == "code"]
            sources = ["".join(cell["source"]) for cell in cells]
            sources = ["".join(_iter_lines_without_magics(source)) for source in sources]
        file = StudentFile(path)
        for source in sources:
            tree = ast.parse(source, path)
            file.asked |= _names_handed_to_checks(tree)
            body = [node for node in tree.body if _is_definition(node)]
            file.modules.append(ast.Module(body, []))
            for node in body:
                _record_names(file, node)
    except Exception as error:  # whatever a parser makes of what may stand in a file
        raise ValueError(_describe_failure(path, error)) from None
    return file


def load_checked_functions(file: StudentFile) -> dict[str, Callable[..., Any]]:
    """Return the functions of a file by the names of their checks.

    Imports, definitions and constants are run, and no other line. A function may be called as its
    check is, or with `my_` in front, or be handed to its check somewhere in the file, as the
    exercises do. One without a line of code is not there yet.

    Raises:
        ValueError: if it fails while it defines things.
    """
    scope: dict[str, Any] = {"__name__": Path(file.path).stem}
    try:
        for module in file.modules:
            exec(compile(module, file.path, "exec"), scope)
    except (Exception, SystemExit) as error:  # whatever a reader's code may raise
        raise ValueError(_describe_failure(file.path, error)) from None
    found: dict[str, Callable[..., Any]] = {}
    for name in CHECKS:
        for called in file.possible_names_for(name):  # the later, the better
            if callable(function := scope.get(called)):
                found[name] = function
    return found


def read_functions(path: Path) -> dict[str, Callable[..., Any]]:
    """Return the functions of a script or a notebook by the names of their checks.

    Raises:
        ValueError: if the file cannot be read, is no Python, or fails while it defines things.
    """
    return load_checked_functions(parse_file(str(path), read_regular_file(path, str(path))))


def read_regular_file(path: Path, name: str) -> bytes:
    """Return what a file holds.

    Args:
        path: the file.
        name: what it is called in messages.

    Raises:
        ValueError: if it is no file, too large, or cannot be read.
    """
    kinds = {stat.S_ISDIR: "a folder", stat.S_ISFIFO: "a pipe", stat.S_ISSOCK: "a socket"}
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            os.listdir(path)  # or it says why it cannot be looked into
        if not stat.S_ISREG(mode):
            kind = next((kind for is_kind, kind in kinds.items() if is_kind(mode)), "a device")
            raise ValueError(f"{name} is {kind}, not a file.")
        with open(path, "rb", opener=_open_without_waiting) as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{name} cannot be read: {error.strerror}.") from None
    if len(data) > MAX_FILE_BYTES:
        raise ValueError(f"{name} has more than {MAX_FILE_BYTES >> 20} MiB.")
    return data


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _describe_failure(path: str, error: BaseException) -> str:
    words = f", {error}".rstrip(" .,")
    return f"{path} cannot be used: {type(error).__name__}{words}."


def _record_names(file: StudentFile, node: ast.stmt) -> None:
    """Note what a statement defines or imports; a later one takes the place of an earlier."""
    names: dict[str, ast.AST] = {}
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        names = {node.name: node}
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
        names = {one.id: node.value for one in node.targets if isinstance(one, ast.Name)}
    for name, one in names.items():
        file.defined[name] = one
        file.imported.pop(name, None)
        is_empty = isinstance(one, ast.FunctionDef) and _is_empty(one)
        (file.empty.add if is_empty else file.empty.discard)(name)
    if isinstance(node, ast.Import | ast.ImportFrom):
        imported = _imported_objects(node)
        for name in imported:
            file.defined.pop(name, None)
            file.empty.discard(name)
        file.imported |= imported


def _imported_objects(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """Return what is imported, by the name that it has here."""
    if isinstance(node, ast.ImportFrom):
        return {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    return {one.asname or one.name.split(".")[0]: one.name for one in node.names}


def _free_names(node: ast.AST) -> set[str]:
    """Return the names that a definition takes from outside; its arguments are its own."""
    nodes = [*ast.walk(node)]
    own = {one.arg for one in nodes if isinstance(one, ast.arg)}
    names = [one for one in nodes if isinstance(one, ast.Name)]
    own |= {one.id for one in names if not isinstance(one.ctx, ast.Load)}
    return {one.id for one in names} - own


def _is_empty(function: ast.FunctionDef) -> bool:
    """Tell if a function has nothing but `...`, `pass` or a docstring."""
    body = [node.value if isinstance(node, ast.Expr) else node for node in function.body]
    return all(isinstance(node, ast.Pass | ast.Constant) for node in body)


def _iter_lines_without_magics(source: str) -> Iterator[str]:
    for line in source.splitlines(keepends=True):
        yield "\n" if line.lstrip().startswith(("%", "!")) else line


def _names_handed_to_checks(tree: ast.Module) -> dict[str, str]:
    """Return the functions in lines such as `check.input_encoding(my_input)`, by their checks."""
    found = {}
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Attribute(ast.Name("check"), check), [ast.Name(function), *_]):
                found[check] = function
    return found


def _is_definition(node: ast.stmt) -> bool:
    if not isinstance(node, ast.Assign):
        return isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef)
    try:
        ast.literal_eval(node.value)
    except ValueError:
        return isinstance(node.value, ast.Lambda)
    return True


# --- Code that is the package's, word for word ---------------------------------------------------


def fingerprint(node: ast.AST | None) -> str:
    """Return a short form of a function's code without its name, types and docstring.

    It is empty for a function of fewer than three statements, which anybody may write.
    """
    if not isinstance(node, ast.FunctionDef):
        return ""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    statements = sum(isinstance(one, ast.stmt) for top in body for one in ast.walk(top))
    if statements < MIN_PASTED_STATEMENTS:
        return ""
    arguments = [one.arg for one in node.args.args]
    code = "\n".join(ast.unparse(one) for one in body)
    return hashlib.sha256(f"{arguments}\n{code}".encode()).hexdigest()[:32]


@cache
def package_fingerprints() -> dict[str, str]:
    """Return functions of our packages, as `slp_transformer.masks.causal_mask`, by their code."""
    found: dict[str, str] = {}
    for package in filter(find_spec, PASTED_FROM):
        for path in resources.files(package).iterdir():
            if path.name.endswith(".py"):
                module = f"{package}.{path.name.removesuffix('.py')}"
                for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                    if code := fingerprint(node):
                        found.setdefault(code, f"{module}.{getattr(node, 'name', '')}")
    return found
