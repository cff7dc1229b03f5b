"""The short path through the chapters: what it leaves out, and how long it takes.

The first cell of a chapter has the tag `path` or `more`. In a chapter on the path, a cell of
Markdown with the tag `more` begins what the path leaves out; its `gist` says what one gets there.
That ends at the next cell with the tag `path`, or at the next heading that is not below its own.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import chapter_source
import nbformat
from chapter_source import Chapter

PATH, MORE = "path", "more"
WORDS_PER_MINUTE = 100
LINES_PER_MINUTE = 6  # of code, blank ones not counted
DEEPEST = 7  # what begins without a heading ends at any


@dataclass(frozen=True)
class Mark:
    """What a cell is to the short path.

    Attributes:
        on_path: whether the path has it.
        gist: of a cell that begins what the path leaves out, what one gets there.
        ends: whether what the path leaves out ends before this cell.
    """

    on_path: bool
    gist: str = ""
    ends: bool = False


def marks_of(cells: Iterable[nbformat.NotebookNode]) -> list[Mark]:
    """Return the mark of each cell of a chapter.

    Raises:
        ValueError: for a cell that begins what is left out and does not say what one gets there.
    """
    found: list[Mark] = []
    leaves_out, level = False, DEEPEST  # the heading that began what is left out
    for cell in cells:
        tags = cell.metadata.get("tags", [])
        is_text = cell.cell_type == "markdown"
        if not found:  # the title: its tag is that of the chapter
            found.append(Mark(MORE not in tags))
            continue
        if not found[0].on_path:
            found.append(Mark(False))
            continue
        heading = re.match("(#+) ", cell.source) if is_text else None
        depth = len(heading[1]) if heading else DEEPEST
        begins = is_text and MORE in tags
        ends = leaves_out and (begins or PATH in tags or (heading is not None and depth <= level))
        if ends:
            leaves_out = False
        if begins:
            leaves_out, level = True, depth
            if not cell.metadata.get("gist"):
                raise ValueError(f"a cell with the tag {MORE!r} needs a gist: {cell.source[:60]!r}")
        found.append(Mark(not leaves_out, cell.metadata["gist"] if begins else "", ends))
    return found


def minutes_of(cells: Iterable[nbformat.NotebookNode]) -> float:
    """Return how long some cells take, by their words and their lines of code.

    With these rates all chapters together take what they said before there was a rule.
    """
    words = lines = 0
    for cell in cells:
        if cell.cell_type == "code":
            lines += sum(bool(line.strip()) for line in cell.source.splitlines())
        else:
            text = re.sub(r'\$\$.*?\$\$|<span class="eq".*?</span>', "", cell.source, flags=re.S)
            words += len(re.sub(r"<[^>]+>", "", text).split())
    return words / WORDS_PER_MINUTE + lines / LINES_PER_MINUTE


@dataclass(frozen=True)
class Times:
    """How long a chapter takes, in minutes.

    Attributes:
        whole: all of it, without its exercises.
        short: what the path has of it; 0 for a chapter that it leaves out.
    """

    whole: float
    short: float


def rounded(minutes: float) -> int:
    """Return minutes as they are said: to five."""
    return 5 * round(minutes / 5)


def in_hours(minutes: float) -> str:
    """Return minutes as they are said in hours: to half an hour."""
    halves = round(minutes / 30)
    return f"{halves // 2}{'½' * (halves % 2)} hours"


def cells_of(chapter: Chapter) -> list[nbformat.NotebookNode]:
    """Return a chapter's own cells, without its exercises."""
    return chapter_source.notebook_of(chapter.script).cells


def path_cells(chapter: Chapter) -> list[nbformat.NotebookNode]:
    """Return the cells that the path has of a chapter."""
    cells = cells_of(chapter)
    marks = marks_of(cells)
    return [cell for cell, mark in zip(cells, marks, strict=True) if mark.on_path]


@lru_cache(maxsize=64)
def times_of(chapter: Chapter) -> Times:
    """Return how long a chapter takes."""
    return Times(minutes_of(cells_of(chapter)), minutes_of(path_cells(chapter)))
