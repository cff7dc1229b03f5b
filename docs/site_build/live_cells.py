"""The cells of a chapter's page, for a reader who runs them: which they are, how they look."""

import copy
import json
import re
from collections.abc import Iterator
from functools import cached_property, lru_cache
from html import escape
from pathlib import Path
from typing import Any

import chapter_source
import exercises
import mkdocs_jupyter.nbconvert2
import nbformat
import notebook_html
import postprocess
from cell_names import assigned_in, find_bases, statements_of
from chapter_source import Chapter
from page_kernels import Event, Kernels
from state import site


class LiveCells:
    """Runs the cells that a page asks for, and returns what they put out as the page shows it.

    It is asked by `serving.PageServer`, from several threads.
    """

    def __init__(self, root: Path) -> None:
        """Begin without a kernel.

        Args:
            root: the project's folder.
        """
        self.kernels = Kernels(root)

    @cached_property
    def _exporter(self) -> notebook_html.ChapterExporter:
        return notebook_html.ChapterExporter(
            template_file="mkdocs_html/notebook.html.j2",
            extra_template_paths=[str(Path(__file__).with_name("templates"))],
            filters={
                "highlight_code": mkdocs_jupyter.nbconvert2.mk_custom_highlight_code(),
                "clean_html": lambda element: element,
            },
        )

    def answer(self, action: str, asked: dict[str, Any]) -> Iterator[Event]:
        """Do what a page asks for.

        Args:
            action: "run", "stop", "restart", or "bases" for what the results of cells rest on.
            asked: "chapter", and to run a cell its number "cell" and "texts", those of the cells
                that the reader has changed, by their numbers; "follows" if what is checked is also
                to take its part's place in a model.

        Yields:
            Events for the page: those of `Kernels.run`, with "html" in place of outputs; or
            "bases", what `find_bases` finds, by the cells' numbers. An "end" has "has_part" if
            the cell checks a part of chapter 5's model, which can then be asked to follow.

        Raises:
            ValueError: if there is no such chapter, cell or action.
        """
        stem = asked.get("chapter")
        chapter = next((c for c in site.chapters if c.path.stem == stem), None)
        number = asked.get("cell")
        if chapter is None or not isinstance(number, int):
            raise ValueError("There is no such chapter.")
        cells = chapter.code_cells
        if not 0 <= number < len(cells):
            raise ValueError("There is no such cell.")
        part = part_of(chapter, number)
        key = (chapter.path.stem, part)
        texts = {int(place): str(text) for place, text in asked.get("texts", {}).items()}
        if action == "stop":
            self.kernels.interrupt(key)
        elif action == "restart":
            self.kernels.restart(key)
        elif action == "bases":
            places = places_of(chapter, number)
            sources = [shown_source(cells[place]) for place in places]
            changed = {at: texts[place] for at, place in enumerate(places) if place in texts}
            found = find_bases(sources, changed)
            yield {"kind": "bases", "bases": dict(zip(places, found, strict=True))}
        elif action == "run":
            source = texts.get(number, shown_source(cells[number]))
            own = number if exercises.is_exercise(cells[number]) else None
            check = "" if own is None else check_of(shown_source(cells[number]))
            has_line = (statements_of(check) or {}).keys() <= (statements_of(source) or {}).keys()
            has_part = checks_a_part(source)
            if has_part and asked.get("follows"):
                source = FOLLOWED.sub(FOLLOW, source)
            above = above_of(chapter, number)
            before = [texts.get(place, cells[place].source) for place in above]
            called = called_above(chapter, number, source, texts)
            for event in self.kernels.run(key, before, source, called, own):
                if "outputs" in event:
                    is_built = number not in texts
                    shown = self.as_html(chapter, number, event.pop("outputs"), is_built)
                    event |= {"kind": "html", "html": shown}
                    check = "" if VERDICT in shown and has_line else check
                if check and event.get("state") == "ok":
                    said = [NOT_CHECKED.format(check), event.get("text", "")]
                    event["text"] = " ".join(filter(None, said))
                if event.get("state") == "ok":
                    event["has_part"] = has_part
                if event.get("state") == "failed above":
                    event["at"] = [*above, *called][event["at"]]
                yield event
        else:
            raise ValueError("There is no such action.")

    def as_html(
        self, chapter: Chapter, number: int, outputs: list[Any], is_built: bool = True
    ) -> str:
        """Return a cell's outputs as its page shows them.

        Args:
            chapter: the chapter.
            number: the cell's.
            outputs: what it has put out.
            is_built: whether its text is the page's: then its figure has the caption that says so.
        """
        shown: list[list] = [[] for _ in chapter.code_cells]
        kept = copy.deepcopy(outputs)
        for output in kept:
            output.pop("display_id", None)
            if gif := output.get("data", {}).get("image/gif"):  # as animations are, unlike figures
                output.data["text/html"] = f'<img src="data:image/gif;base64,{escape(gif)}" alt="">'
            if output.output_type == "stream":
                output.text = output.text.rstrip("\r")  # what it would write over is still there
        shown[number] = json.loads(json.dumps(kept))
        stem = chapter.path.stem
        whole = notebook_html.filled(
            chapter.notebook, shown, figures=site.figures[stem] if is_built else ()
        )
        cell = [cell for cell in whole.cells if cell.cell_type == "code"][number]
        cell.metadata.pop("blank", None)
        whole.cells = [cell]
        html, _ = self._exporter.from_notebook_node(nbformat.from_dict(whole))
        html, _ = notebook_html.finished(html)
        start, end = html.find("<!-- output -->"), html.rfind("<!-- /output -->")
        html = notebook_html.REFERENCE.sub(r"\2", html[start:end] if start >= 0 else "")
        return postprocess.drawn(html, keep_unreadable=True)

    def close(self) -> None:
        """End all kernels."""
        self.kernels.close()


@lru_cache(maxsize=64)
def num_own_cells(chapter: Chapter) -> int:
    """Return how many code cells are the chapter's own; those of its exercises follow them."""
    own = chapter_source.notebook_of(chapter.script).cells
    return sum(cell.cell_type == "code" for cell in own)


def part_of(chapter: Chapter, number: int) -> str:
    """Return the part of a cell: exercises run without the chapter, in a kernel of their own."""
    return "chapter" if number < num_own_cells(chapter) else "exercises"


def places_of(chapter: Chapter, number: int) -> range:
    """Return the numbers of all cells of a cell's part."""
    own = num_own_cells(chapter)
    return range(own) if number < own else range(own, len(chapter.code_cells))


def above_of(chapter: Chapter, number: int) -> list[int]:
    """Return the numbers of the cells to run before one: those above in its part, no exercises."""
    cells = chapter.code_cells
    above = range(places_of(chapter, number).start, number)
    return [place for place in above if not exercises.is_exercise(cells[place])]


def called_above(
    chapter: Chapter, number: int, source: str, texts: dict[int, str]
) -> dict[int, str]:
    """Return the exercises above whose functions a cell calls, as the reader has written them.

    Args:
        chapter: the chapter.
        number: the cell's.
        source: of the cell.
        texts: what the reader has changed, by the cells' numbers.
    """
    found: dict[int, str] = {}
    given = assigned_in(*(chapter.code_cells[place].source for place in above_of(chapter, number)))
    for place in sorted((place for place in texts if place < number), reverse=True):
        if not exercises.is_exercise(chapter.code_cells[place]):
            continue
        names = assigned_in(texts[place]) - given
        if names and re.search(rf"\b({'|'.join(names)})\b", "\n".join([source, *found.values()])):
            found[place] = texts[place]
    return dict(sorted(found.items()))


# The line that checks a function; it shows the verdict, and what the function does in a model.
FOLLOWED = re.compile(r"^check\.(\w+)\((\w+)(, one_row=True)?\)\s*\Z", re.MULTILINE)
FOLLOW = r"""display(check.\1(\2\3))
from slp_transformer.check.own.wrong_part import follow
print(follow("\1", \2))"""
VERDICT = 'class="slp-verdict"'
NOT_CHECKED = "The exercise was not checked: its last line is to be {}"


def checks_a_part(source: str) -> bool:
    """Tell if a cell checks a function that has a place in chapter 5's model."""
    from slp_transformer.check.own.wrong_part import PLACES  # which loads all checks

    found = FOLLOWED.search(source)
    return found is not None and found[1] in PLACES


def check_of(source: str) -> str:
    """Return the line of an exercise that checks it; nothing if it has none."""
    last = source.rstrip().rpartition("\n")[2]
    return last if last.startswith("check.") else ""


def shown_source(cell: nbformat.NotebookNode) -> str:
    """Return what the page shows of a cell: of an exercise what is given, never its solution."""
    return exercises.cut(cell.source) if exercises.is_exercise(cell) else cell.source
