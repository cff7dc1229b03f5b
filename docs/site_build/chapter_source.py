"""Chapters as percent scripts, and what their outputs depend on.

The outputs of a chapter depend on its code cells, the functions of the package that ran while it
was executed, the data next to their modules, the recorded runs in benchmarks/results/ if its code
names them, and the versions of Python, PyTorch and Matplotlib. Prose, headings and alt texts are
not part of it.
"""

import ast
import hashlib
import platform
import re
import threading
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import exercises
import jupytext
import nbformat

from slp_transformer._internal.equations import GROUP, SLUG, Equations
from slp_transformer._internal.plugins import PACKAGES

TAG = re.compile(r"\\tag\{([^}]+)\}")
LABEL_OR_TAG = re.compile(
    r'(?P<begin><span class="eq"(?: id="eq-[^"]+")?>)(?P<label>[^<]+)</span>'
    r"|\\tag\{(?P<tag>[^}]+)\}"
)


@dataclass(frozen=True, eq=False)
class Chapter:
    """One script of chapters/, as read from disk.

    Attributes:
        path: where it stands.
        root: the project's folder.
        script: what it says.
        exercises: what its exercises say, which end the page; empty if it has none.
        notebook: the cells of both, without outputs.
    """

    path: Path
    root: Path
    script: str
    exercises: str
    notebook: nbformat.NotebookNode

    @property
    def text(self) -> str:
        """The script and its exercises."""
        return self.script + self.exercises

    @property
    def name(self) -> str:
        """The path from the project's folder, for messages."""
        return self.path.relative_to(self.root).as_posix()

    @property
    def code_cells(self) -> list[nbformat.NotebookNode]:
        """The cells that are executed, in their order."""
        return [cell for cell in self.notebook.cells if cell.cell_type == "code"]

    @property
    def code(self) -> str:
        """All that is executed."""
        return "".join(f"{cell.source}\0" for cell in self.code_cells)

    def where(self, line: int) -> str:
        """A line of the text as words: which file, and which line there."""
        own = self.script.count("\n")
        if line <= own:
            return f"{self.name}, line {line}"
        path = exercises.path_of(self.path).relative_to(self.root).as_posix()
        return f"{path}, line {line - own}"

    def place(self, index: int) -> tuple[int, int]:
        """The number of the code cell at this index among all cells, and its first line."""
        position, found = 0, -1
        for number, cell in enumerate(self.notebook.cells, start=1):
            if cell.cell_type != "code":
                continue
            found += 1
            start = self.text.find(cell.source, position)
            position = max(start, position)
            if found == index:
                return number, self.text.count("\n", 0, position) + 1
            position += len(cell.source)
        raise IndexError(index)


def number_of(stem: str) -> str:
    """Return a chapter's number from its file's name: "6" of `06_decoding`, "6b" of `06b_cache`."""
    return re.match(r"0*(\d+[a-z]?)", stem)[1]


def read_chapter(path: Path, root: Path) -> Chapter:
    """Reads one chapter, and the exercises that belong to it."""
    script = path.read_text(encoding="utf-8").rstrip("\n") + "\n"
    after = exercises.path_of(path)
    more = after.read_text(encoding="utf-8") if after.is_file() else ""
    return _read(path, root, script, more, equations_of(root))


@lru_cache(maxsize=64)
def notebook_of(script: str) -> nbformat.NotebookNode:
    """Return a script as a notebook, which nobody may change: reading one takes its time."""
    return jupytext.reads(script, fmt="py:percent")


@lru_cache(maxsize=64)
def _read(path: Path, root: Path, script: str, more: str, book: Equations) -> Chapter:
    notebook = deepcopy(notebook_of(script))
    if more:
        notebook.cells += deepcopy(notebook_of(more).cells)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = with_numbers(cell.source, book)
    return Chapter(path, root, script, more, notebook)


def equations_of(root: Path) -> Equations:
    """Return the content of a project's `equations.toml`; nothing if it has none."""
    path = root / "slp_transformer" / "equations.toml"
    return _equations(path.read_text(encoding="utf-8") if path.is_file() else NO_EQUATIONS)


NO_EQUATIONS = "[drafts]\n[equations]\n"
_equations = lru_cache(maxsize=8)(Equations)


def numbered(text: str, book: Equations) -> str:
    """A script whose labels and tags carry the numbers of the book, as they do in the book.

    A label `<span class="eq" id="eq-ln">ln</span>` gets its place after the slug, and a `\\tag`
    below it the number in each draft. What already has numbers gets those of the file.
    """
    above: list[str] = []  # the slugs of the labels in a row above, whose tags come in their order
    end = 0  # of the last of these

    def number(found: re.Match) -> str:
        nonlocal above, end
        if found["tag"] is None:
            slug = found["label"].partition(" · ")[0].strip()
            is_next = re.fullmatch(r"[\s#]*", text[end : found.start()]) is not None
            above, end = [*(above if is_next else []), slug], found.end()
            place = book.format_place(slug) if slug in book.slugs else ""
            return found["begin"] + " · ".join(filter(None, [slug, place])) + "</span>"
        slug = above.pop(0) if len(above) > 1 else "".join(above)
        drafts = (
            [book.numbers_of(slug, draft) for draft in book.drafts] if slug in book.slugs else []
        )
        if any(len(numbers) > 1 for numbers in drafts) or not any(drafts):
            return found[0]  # a formula for each number of a range has its own
        return f"\\tag{{{' · '.join(one for numbers in drafts for one in numbers)}}}"

    return LABEL_OR_TAG.sub(number, text)


def with_numbers(text: str, book: Equations) -> str:
    """Markdown whose labels, tags and exercises have the numbers of the equations that they name.

    A label `<span class="eq" id="eq-ln">ln</span>` gets all numbers, its `\\tag` the first one, and
    "(`ln-mean` to `ln`)" at the beginning of a line those of both.
    """

    def cited(match: re.Match) -> str:
        slugs = re.findall(SLUG, match[0])
        if not all(slug in book.slugs for slug in slugs):
            return match[0]
        return f"{match[0]} · {book.format_place(*slugs, span=' to `' in match[0])}"

    text = TAG.sub(lambda tag: f"\\tag{{{tag[1].partition(' · ')[0]}}}", numbered(text, book))
    return re.sub(rf"(?m)^\({GROUP.pattern}", cited, text)


def read_chapters(root: Path) -> list[Chapter]:
    """Reads all chapters, in the order of their numbers."""
    return [read_chapter(path, root) for path in sorted((root / "chapters").glob("[0-9]*.py"))]


RESULTS = "benchmarks/results"
Ran = dict[str, list[str]]
"""The functions that ran, by their qualified names, of each file of the package."""


PARSING = threading.RLock()
"""Held while Python is parsed. Two threads that parse at once may fail in CPython before 3.11.8 and
3.12.2 (SystemError: AST constructor recursion depth mismatch); griffe parses a whole package."""


def key_of(chapter: Chapter, ran: Ran) -> str:
    """Hash what the chapter's outputs depend on, given what ran when it was executed."""
    with PARSING:
        return _hash(chapter, ran, _tree_of_cells, without_idle)


def exact_key_of(chapter: Chapter, ran: Ran) -> str:
    """Hash the same files to the letter: where it has not changed, nobody needs to parse them."""
    return _hash(chapter, ran, str, lambda text, functions: text)


def _hash(
    chapter: Chapter,
    ran: Ran,
    cells: Callable[[str], str],
    module: Callable[[str, frozenset[str]], str],
) -> str:
    digest = hashlib.sha256(cells(chapter.code).encode())
    for name, functions in sorted(ran.items()):
        path = chapter.root / name
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        digest.update(f"{name}\0{module(text, frozenset(functions))}\0".encode())
    for path in data_behind(chapter, ran):
        digest.update(path.relative_to(chapter.root).as_posix().encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    digest.update(platform.python_version().encode())
    for library in ("torch", "matplotlib"):
        try:
            digest.update(f"{library} {version(library)}".encode())
        except PackageNotFoundError:
            pass
    return digest.hexdigest()[:24]


@lru_cache(maxsize=256)
def _tree_of_cells(code: str) -> str:
    """Return the syntax trees of cells, which comments and blank lines are not part of."""
    return "\0".join(_tree_of_cell(cell) for cell in code.split("\0"))


def _tree_of_cell(cell: str) -> str:
    try:
        return ast.dump(ast.parse(cell))
    except (SyntaxError, ValueError):  # a magic of IPython's, or what running it will refuse
        return cell


@lru_cache(maxsize=4096)
def without_idle(text: str, ran: frozenset[str]) -> str:
    """Return a module's syntax tree less the bodies of the functions that did not run.

    Of a class or function whose source is shown there is the text too, with its comments.

    Args:
        text: the module.
        ran: qualified names of functions; "Name.*" stands for the whole of a class or function
            whose source is shown.
    """
    shown = tuple(name.removesuffix("*") for name in ran if name.endswith("*"))
    sources = []

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                visit(child, prefix)
                continue
            name = prefix + child.name
            if f"{name}." in shown:
                start = min([child.lineno, *(one.lineno for one in child.decorator_list)])
                sources.extend(lines[start - 1 : child.end_lineno])
            if isinstance(child, ast.ClassDef):
                visit(child, f"{name}.")
            elif name in ran or f"{name}.".startswith(shown):
                visit(child, f"{name}.<locals>.")
            else:
                child.body = []

    tree, lines = ast.parse(text), text.splitlines()
    visit(tree, "")
    if ".*" in ran:  # the whole module is shown
        sources = lines
    return "\n".join([ast.dump(tree), *sources])


def modules_named(chapter: Chapter) -> list[str]:
    """The modules of the package that a chapter itself imports, in the order of their files."""
    return [module_name(path, chapter.root) for path in sorted({p for _, p in _imported(chapter)})]


def objects_named(chapter: Chapter) -> list[str]:
    """The classes and functions of the package that a chapter imports, where they are defined."""
    named = [(name, module_name(path, chapter.root)) for name, path in _imported(chapter)]
    found = [f"{module}.{name.rpartition('.')[2]}" for name, module in named if name != module]
    return list(dict.fromkeys(found))


def data_behind(chapter: Chapter, ran: Ran) -> list[Path]:
    """Return the files that a chapter's code may read: data next to its modules, results.

    A chapter whose code has the word "results" anywhere depends on all numbers in
    benchmarks/results/, so that no author has to say which file is read; prose there is for people.
    """
    folders = {(chapter.root / name).parent for name in ran}
    found = {path for folder in folders for path in folder.glob("*") if path.suffix != ".py"}
    if re.search(r"\bresults\b", chapter.code):
        every = (chapter.root / RESULTS).rglob("*")
        found.update(path for path in every if path.suffix != ".md")
    return sorted(path for path in found if path.is_file() and not path.name.startswith("."))


def module_name(path: Path, root: Path) -> str:
    """The dotted name of a file of the package."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package_files(root: Path) -> list[Path]:
    """All modules of our packages, in the order of their names."""
    return [path for name in PACKAGES for path in sorted((root / name).rglob("*.py"))]


def _parse(source: str) -> ast.Module:
    """Python, less the lines that only a notebook understands (`%magic`, `!command`)."""
    try:
        return ast.parse(re.sub(r"^(\s*)[%!].*$", r"\1pass", source, flags=re.MULTILINE))
    except SyntaxError:
        return ast.Module([], [])  # running it will say so, with the line


def _imported(chapter: Chapter) -> list[tuple[str, Path]]:
    """The dotted names of our packages that a chapter imports, each with the file of its source."""
    found = []
    for cell in chapter.code_cells:
        for name in _names_imported(cell.source):
            found += [(name, path) for path in files_of(name, chapter.root)]
    return found


@lru_cache(maxsize=2048)
def _names_imported(source: str) -> list[str]:
    names = set()
    for node in ast.walk(_parse(source)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            stem = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            names.update(stem + alias.name for alias in node.names)
    return sorted(name for name in names if name.split(".")[0] in PACKAGES)


def imported_names(init: Path) -> dict[str, str]:
    """Return where the names are defined that a file imports from modules."""
    return _imported_names(init.read_text(encoding="utf-8"))


@lru_cache(maxsize=256)
def _imported_names(text: str) -> dict[str, str]:
    return {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def files_of(name: str, root: Path) -> list[Path]:
    """The file that a dotted name stands for; for a name that a package hands on, its source."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        path = root.joinpath(*parts[:length])
        if path.with_suffix(".py").is_file():
            return [path.with_suffix(".py")]
        init = path / "__init__.py"
        if init.is_file():
            inner = parts[length] if length < len(parts) else ""
            origin = imported_names(init).get(inner, name)
            return [init] if origin == name else files_of(origin, root)
    return []
