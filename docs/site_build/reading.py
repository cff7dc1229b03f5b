"""Chapters as they stand on the disk: percent scripts, read by Jupytext."""

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import exercises
import jupytext
import nbformat

from slp_transformer._internal.equations import GROUP, SLUG, Equations

PACKAGE = "slp_transformer"
LABEL = re.compile(r'(<span class="eq"(?: id="eq-[^"]+")?>)([^<]+)(</span>)')


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


def read_chapter(path: Path, root: Path) -> Chapter:
    """Reads one chapter, and the exercises that belong to it."""
    script = path.read_text(encoding="utf-8").rstrip("\n") + "\n"
    after = exercises.path_of(path)
    more = after.read_text(encoding="utf-8") if after.is_file() else ""
    return _read(path, root, script, more, equations_of(root))


@lru_cache(maxsize=64)
def _read(path: Path, root: Path, script: str, more: str, book: Equations) -> Chapter:
    notebook = jupytext.reads(script + more, fmt="py:percent")
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = with_numbers(cell.source, book)
    return Chapter(path, root, script, more, notebook)


def equations_of(root: Path) -> Equations:
    """What a project's `equations.toml` says; nothing if it has none."""
    path = root / PACKAGE / "equations.toml"
    return _equations(path.read_text(encoding="utf-8") if path.is_file() else NO_EQUATIONS)


NO_EQUATIONS = "[drafts]\n[equations]\n"
_equations = lru_cache(maxsize=8)(Equations)


def with_numbers(text: str, book: Equations) -> str:
    """Markdown whose labels, tags and exercises have the numbers of the equations that they name.

    A label `<span class="eq" id="eq-ln">ln</span>` gets all numbers, `\\tag{ln}` the first one, and
    "(`ln-mean` to `ln`)" at the beginning of a line those of both.
    """

    def label(match: re.Match) -> str:
        slug = match[2].strip()
        place = book.place(slug) if slug in book.slugs else ""
        return f"{match[1]}{' · '.join(filter(None, [slug, place]))}{match[3]}"

    def tag(match: re.Match) -> str:
        numbers = book.numbers(match[1]) if match[1] in book.slugs else []
        return f"\\tag{{{numbers[0]}}}" if numbers else match[0]

    def cited(match: re.Match) -> str:
        slugs = re.findall(SLUG, match[0])
        if not all(slug in book.slugs for slug in slugs):
            return match[0]
        return f"{match[0]} · {book.place(*slugs, span=' to `' in match[0])}"

    text = LABEL.sub(label, text)
    text = re.sub(r"\\tag\{([^}]+)\}", tag, text)
    return re.sub(rf"(?m)^\({GROUP.pattern}", cited, text)


def read_chapters(root: Path) -> list[Chapter]:
    """Reads all chapters, in the order of their numbers."""
    return [read_chapter(path, root) for path in sorted((root / "chapters").glob("[0-9]*.py"))]
