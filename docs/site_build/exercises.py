"""Exercises: their notebooks are made by cutting the marked lines out of tested solutions.

`chapters/exercises/NN_name.py` belongs to the chapter of the same name and runs without it. In a
cell with the tag "exercise" the reader writes the lines between `# solution` and `# end`.
`python docs/site_build/exercises.py [FOLDER]` writes all of them as notebooks, by default into
notebooks/; the site offers each below its chapter's title. Nothing generated is committed.

With SLP_ANSWERS=off in the environment, solutions and folded answers are left out of everything
that is made: pages, scripts, notebooks.
"""

import argparse
import os
import re
from collections.abc import Callable
from pathlib import Path

import jupytext
import nbformat

SOLUTION = re.compile(r"^( *)# solution\n.*?^ *# end(?:\n|$)", re.DOTALL | re.MULTILINE)
BLANK = r"\1...  # your lines here" + "\n"
TAG = "exercise"
NO_ANSWERS = ("The proof, step by step",)  # of what is folded; all else is an answer
FOLDED = re.compile(
    rf"^[# ]*<details><summary>(?!{'|'.join(NO_ANSWERS)})(?:(?!</details>).)*</details> *\n?",
    re.DOTALL | re.MULTILINE,
)


def path_of(chapter: Path) -> Path:
    """Return the path of a chapter's exercises, if it has any."""
    return chapter.parent / "exercises" / chapter.name


def is_exercise(cell: nbformat.NotebookNode) -> bool:
    """Tell if a cell holds a solution."""
    return TAG in cell.metadata.get("tags", [])


def hides_answers() -> bool:
    """Tell if the environment asks for a site without solutions and folded answers.

    Raises:
        ValueError: for another wish than on or off.
    """
    wish = os.environ.get("SLP_ANSWERS", "on")
    if wish not in ("on", "off"):
        raise ValueError(f"SLP_ANSWERS is on or off, not {wish!r}.")
    return wish == "off"


def handed_out(text: str) -> str:
    """A script or a cell of Markdown as readers get it: without answers if these are off."""
    return FOLDED.sub("", text) if hides_answers() else text


def hide_answers(cell: nbformat.NotebookNode) -> None:
    """Take the answers out of a cell: folded ones, a solution, and what the solution puts out."""
    if is_exercise(cell):
        cell.source, cell.outputs = cut(cell.source), []
        del cell.metadata["tags"]
    elif cell.cell_type == "markdown":
        cell.source = handed_out(cell.source)


def cut(source: str) -> str:
    """A cell's source without its solution."""
    return SOLUTION.sub(BLANK, source).strip("\n")


def unmarked(source: str) -> str:
    """A cell's source with its solution, without the marks around it."""
    return re.sub(r"^ *# (?:solution|end)\n?", "", source, flags=re.MULTILINE).strip("\n")


def install_cell(repository: str) -> nbformat.NotebookNode:
    """The cell with which a notebook installs the package, if the repository's address is known.

    By git from there: no index has the package, and a name alone could be another's.
    """
    source = f"slp-transformer[docs] @ git+{repository}"
    first = '# In a folder of the project, once: python -m pip install -e ".[docs]"'
    cell = nbformat.v4.new_code_cell(f'%pip install -q "{source}"' if repository else first)
    cell.id = "install"
    return cell


def notebook(
    text: str,
    title: str,
    show: Callable[[str], str] = lambda text: text,
    repository: str = "",
) -> nbformat.NotebookNode:
    """A reader's notebook: the exercises without their solutions.

    Args:
        text: a script from chapters/exercises/.
        title: its chapter's title.
        show: adds the equations that a cell of Markdown names to it.
        repository: where the project is kept, or "".
    """
    made = jupytext.reads(text, fmt="py:percent")
    first = nbformat.v4.new_markdown_cell(
        f"# Exercises: {title}\n\nThe first cell installs the package."
    )
    if not repository:
        first.source = (
            f"# Exercises: {title}\n\nThis needs the package: `pip install -e .` in its folder."
        )
    made.cells[:0] = [first, *([install_cell(repository)] if repository else [])]
    for number, cell in enumerate(made.cells):
        cell.id = f"cell-{number}"
        if is_exercise(cell):
            cell.source = cut(cell.source)
            del cell.metadata["tags"]
        else:
            cell.source = handed_out(cell.source)
        if cell.cell_type == "markdown":
            cell.source = show(cell.source)
    python = {"name": "python3", "display_name": "Python 3", "language": "python"}
    made.metadata = nbformat.from_dict({"kernelspec": python})
    return made


def title_of(text: str) -> str:
    """A chapter's title: `1 · Attention`."""
    return re.search(r"^# # (.+)$", text, flags=re.MULTILINE)[1]


def write_all(root: Path, folder: Path) -> list[Path]:
    """Writes the notebooks of all chapters that have exercises.

    Returns:
        the files written.
    """
    import links  # which imports this module
    from chapter_source import equations_of, read_chapters

    tex: dict[str, str] = {}
    for chapter in read_chapters(root):
        tex |= links.formulas(chapter)
    show, written = links.equations_shown(tex, equations_of(root)), []
    folder.mkdir(parents=True, exist_ok=True)
    for chapter in sorted((root / "chapters").glob("[0-9]*.py")):
        if not path_of(chapter).is_file():
            continue
        text = path_of(chapter).read_text(encoding="utf-8")
        made = notebook(text, title_of(chapter.read_text(encoding="utf-8")), show)
        path = folder / f"{chapter.stem}_exercises.ipynb"
        path.write_text(nbformat.writes(made), encoding="utf-8")
        written.append(path)
    return written


if __name__ == "__main__":
    here = Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description="Write the exercises as notebooks, unsolved.")
    parser.add_argument("folder", nargs="?", type=Path, default=here / "notebooks")
    for path in write_all(here, parser.parse_args().folder):
        print(path)
