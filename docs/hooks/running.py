"""Runs chapters: only when their code or the package behind it changed, and says what failed where.

A chapter is a percent script. Jupytext reads it, nbclient executes its cells, and the outputs are
kept in a cache. The key to the cache is what the outputs depend on: the chapter's code cells, the
modules of the package that it imports (and those that they import), the data that lies beside them,
the recorded runs in results/ if its code names that folder, and the versions of Python, PyTorch and
Matplotlib. Prose, headings and alt texts are not part of it.
"""

import ast
import hashlib
import json
import os
import platform
import queue
import re
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from traitlets.config import Config

PACKAGE = "slp_transformer"
RESULTS = "results"
WORKERS = 2


class ChapterError(Exception):
    """A cell that raised, or a figure without alt text; the message names chapter, line and cell.

    Attributes:
        outputs: the outputs up to the failure, one list for each code cell; empty if it never ran.
    """

    def __init__(self, message: str, outputs: list | None = None):
        super().__init__(message)
        self.outputs = outputs or []


@dataclass(frozen=True, eq=False)
class Chapter:
    """One script of chapters/, as read from disk.

    Attributes:
        path: where it stands.
        root: the project's folder.
        text: what it says.
        notebook: its cells, without outputs.
    """

    path: Path
    root: Path
    text: str
    notebook: nbformat.NotebookNode

    @property
    def name(self) -> str:
        """The path from the project's folder, for messages."""
        return self.path.relative_to(self.root).as_posix()

    @property
    def code_cells(self) -> list[nbformat.NotebookNode]:
        """The cells that are executed, in their order."""
        return [cell for cell in self.notebook.cells if cell.cell_type == "code"]

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


def read_chapter(path: Path, root: Path) -> Chapter:
    """Reads one chapter."""
    text = path.read_text(encoding="utf-8")
    return Chapter(path, root, text, jupytext.reads(text, fmt="py:percent"))


def read_chapters(root: Path) -> list[Chapter]:
    """Reads all chapters, in the order of their numbers."""
    return [read_chapter(path, root) for path in sorted((root / "chapters").glob("[0-9]*.py"))]


# ---------------------------------------------------------------------------- what it depends on


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

    A chapter that names results/ anywhere in its code depends on all of that folder, so that no
    author has to say which file is read.
    """
    folders = {path.parent for path in modules_behind(chapter)}
    found = {path for folder in folders for path in folder.iterdir() if path.suffix != ".py"}
    if any(re.search(rf"\b{RESULTS}\b", cell.source) for cell in chapter.code_cells):
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


# ---------------------------------------------------------------------------- the cache


class Cache:
    """The outputs of chapters, in a folder that git ignores; one file for each chapter."""

    def __init__(self, folder: Path):
        self.folder = folder

    def load(self, chapter: Chapter, key: str) -> list | None:
        """The outputs of each code cell, or None if the chapter has to run."""
        try:
            text = self._path(chapter).read_text(encoding="utf-8")
            kept = json.loads(text)
        except (OSError, ValueError):
            return None
        return kept["outputs"] if kept.get("key") == key else None

    def store(self, chapter: Chapter, key: str, outputs: list) -> None:
        """Keeps the outputs in place of what was kept before."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self._path(chapter)
        fresh = path.with_suffix(f".{os.getpid()}.tmp")
        fresh.write_text(json.dumps({"key": key, "outputs": outputs}), encoding="utf-8")
        fresh.replace(path)

    def _path(self, chapter: Chapter) -> Path:
        return self.folder / f"{chapter.path.stem}.json"


# ---------------------------------------------------------------------------- running


def run_chapter(chapter: Chapter) -> list:
    """Executes a chapter in a fresh kernel.

    Returns:
        the outputs of each code cell.

    Raises:
        ChapterError: when a cell raises or the kernel dies.
    """
    notebook = nbformat.from_dict(chapter.notebook)
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=None,
        coalesce_streams=True,
        resources={"metadata": {"path": str(chapter.root)}},
        # The kernel listens on this machine alone; without this word it warns about that.
        config=Config({"KernelManager": {"transport_encryption": "auto"}}),
    )
    # One thread each, so that two chapters on two cores do not get into each other's way; and the
    # package from this folder, wherever another copy may be installed.
    path = os.pathsep.join(filter(None, [str(chapter.root), os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "PYTHONPATH": path}
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    try:
        client.execute(env=env)
    except (CellExecutionError, DeadKernelError) as error:
        outputs = _outputs(cells)
        raise ChapterError(_failure(chapter, cells, error), outputs) from None
    return _outputs(cells)


def _outputs(cells: list) -> list:
    return [json.loads(json.dumps(cell.outputs)) for cell in cells]


def _failure(chapter: Chapter, cells: list, error: Exception) -> str:
    for index, cell in enumerate(cells):
        for output in cell.outputs:
            if output.output_type == "error":
                number, line = chapter.place(index)
                trace = re.sub(r"\x1b\[[\d;]*m", "", "\n".join(output.traceback))
                within = re.search(r"(?:Cell In\[\d+\]|<ipython-input[^>]*>), line (\d+)", trace)
                line += int(within[1]) - 1 if within else 0
                what = f"{output.ename}: {output.evalue}".strip().rstrip(":")
                return f"{chapter.name}, line {line} (cell {number}): {what}"
    started = [i for i, cell in enumerate(cells) if cell.get("execution_count")]
    number, line = chapter.place(min(started[-1] + 1, len(cells) - 1) if started else 0)
    return f"{chapter.name}, line {line} (cell {number}) or below: the kernel died ({error})"


def run_all(
    jobs: list[tuple[Chapter, str]], cache: Cache, say: Callable[[str], None]
) -> list[ChapterError]:
    """Runs chapters, two at a time, until all are done, and keeps their outputs.

    Returns:
        the failures, in the order of the chapters.
    """
    failures = {}

    def work(chapter: Chapter, key: str) -> float:
        start = time.perf_counter()
        say(f"Running {chapter.name}")
        cache.store(chapter, key, run_chapter(chapter))
        return time.perf_counter() - start

    with ThreadPoolExecutor(WORKERS) as pool:
        running = {pool.submit(work, *job): job[0] for job in jobs}
        for done, future in enumerate(as_completed(running), start=1):
            chapter = running[future]
            try:
                seconds = future.result()
            except ChapterError as error:
                failures[chapter.name] = error
                say(f"Failed {chapter.name}")
            else:
                say(f"Ran {chapter.name} in {seconds:.0f} s ({done} of {len(jobs)})")
    return [failures[name] for name in sorted(failures)]


class Background:
    """Runs chapters beside a server, two at a time, the last wish for each chapter alone.

    Attributes:
        failures: what went wrong, by key; a chapter is not tried again until its key changes.
    """

    def __init__(self, cache: Cache, say: Callable[[str], None], done: Callable[[Chapter], None]):
        self.cache, self.say, self.done = cache, say, done
        self.failures: dict[str, ChapterError] = {}
        self._wanted: dict[str, str] = {}
        self._queue: queue.Queue[tuple[Chapter, str]] = queue.Queue()
        self._threads: list[threading.Thread] = []

    def want(self, chapter: Chapter, key: str) -> None:
        """Asks for a chapter to be run, unless it already is or has failed."""
        if self._wanted.get(chapter.name) == key or key in self.failures:
            return
        self._wanted[chapter.name] = key
        self._queue.put((chapter, key))
        while len(self._threads) < WORKERS:
            self._threads.append(threading.Thread(target=self._work, daemon=True))
            self._threads[-1].start()

    def _work(self) -> None:
        while True:
            chapter, key = self._queue.get()
            if self._wanted.get(chapter.name) != key:
                continue  # edited again before its turn came
            self.say(f"Running {chapter.name} in the background")
            try:
                self.cache.store(chapter, key, run_chapter(chapter))
                self.say(f"Ran {chapter.name}")
            except ChapterError as error:
                self.failures[key] = error
            except Exception as error:  # a thread that dies would say nothing
                self.failures[key] = ChapterError(f"{chapter.name}: {error!r}")
            if self._wanted.get(chapter.name) == key:
                del self._wanted[chapter.name]
                self.done(chapter)


# ---------------------------------------------------------------------------- alt texts


def shows_picture(outputs: list) -> bool:
    """Whether a cell's outputs contain an image or an inline SVG figure."""
    for output in outputs:
        for kind, data in output.get("data", {}).items():
            text = "".join(data) if isinstance(data, list) else str(data)
            if kind.startswith("image/") or (kind == "text/html" and re.search("<(svg|img)", text)):
                return True
    return False


def missing_alts(chapter: Chapter, outputs: list) -> list[str]:
    """One sentence for each cell that shows a figure and has no alt text."""
    sentences = []
    for index, (cell, shown) in enumerate(zip(chapter.code_cells, outputs, strict=True)):
        if shows_picture(shown) and not str(cell.metadata.get("alt", "")).strip():
            number, line = chapter.place(index)
            sentences.append(
                f"{chapter.name}, line {line} (cell {number}): shows a figure without alt text; "
                'say what it shows in the cell\'s first line: # %% alt="..."'
            )
    return sentences
