"""What stands around a chapter in its page: links, notes, and the way to its headings."""

import html
import re
from functools import lru_cache
from pathlib import Path

import depending
import exercises
import nbformat
import running
import weaving
from reading import Chapter
from rooms import url_of
from state import log, relative, short_name, site


def links(chapter: Chapter, page) -> str:
    """The line below a chapter's title: its notebook, its script, the modules that it uses."""
    stem = chapter.path.stem
    here = [
        f'<a href="{stem}.ipynb" download>Notebook</a>',
        f'<a href="{stem}.py" download>Script</a>',
    ]
    if chapter.exercises:
        name = exercises_name(chapter)
        here.append(f'<a href="{name}" download>Exercises as a notebook</a>')
    if site.repository:
        place = site.repository.partition("://")[2].partition("/")[2]
        here.append(f'<a href="{site.repository}/blob/main/{chapter.name}">Source</a>')
        there = f"github/{place}/blob/gh-pages/chapters/{stem}/{stem}.ipynb"
        here.append(f'<a href="https://colab.research.google.com/{there}">Colab</a>')
    modules = [
        f'<a href="{relative(url_of(name), page)}"><code>{short_name(name)}</code></a>'
        for name in depending.modules_named(chapter)
        if name in site.modules and ".plotting" not in name
    ]
    uses = f"<span>Uses {' '.join(modules)}</span>" if modules else ""
    return f'<p class="slp-links" data-search-exclude>{" ".join(here)} {uses}</p>'


def exercises_name(chapter: Chapter) -> str:
    """The file name of a chapter's exercises, without their solutions."""
    return f"{chapter.path.stem}_exercises.ipynb"


def with_proofs(body: str, page) -> str:
    """A chapter with a way from each of its equations to its code and to its proof."""

    def ways(match: re.Match) -> str:
        equation, proofs = site.equations.get(match[2]), site.proofs_of(match[2])
        found = []
        for name in equation.objects[:1] if equation else []:
            found.append(f'<autoref identifier="{name}" optional>code</autoref>')
        if proofs:
            url = f"{relative('proofs/', page)}#{proofs[0].name}"
            found.append(f'<a href="{url}">proof</a>')
        if not found:
            return match[0]
        return f'{match[0]} <span class="slp-ways-on" data-search-exclude>{" ".join(found)}</span>'

    return re.sub(r'(<span class="eq" id="eq-([^"]+)">.*?</span>)', ways, body)


def notes(chapter: Chapter) -> str:
    """What a reader of a chapter should know that has not run, has failed, or lacks an alt text."""
    outputs = site.outputs[chapter.path.stem]
    if outputs is None:
        failure = _failure(chapter)
        return _failed(failure) if failure else _RUNNING
    found = ""
    if site.serving:
        for sentence in running.missing_alts(chapter, outputs):
            found += note("failure", "A figure without alt text", f"<p>{html.escape(sentence)}</p>")
            if sentence not in site.warned:
                site.warned.add(sentence)
                log.error(sentence)
    return found


def note(kind: str, title: str, body: str) -> str:
    """Something to be told in a box, which the search does not find."""
    return (
        f'<div class="admonition {kind}" data-search-exclude>'
        f'<p class="admonition-title">{title}</p>{body}</div>'
    )


_RUNNING = note(
    "slp-running",
    "Running …",
    "<p>This chapter is being executed. Its outputs appear here when it is done.</p>",
)


def _failed(failure: running.ChapterError) -> str:
    return note("failure", "This chapter failed", f"<pre>{html.escape(str(failure))}</pre>")


def _failure(chapter: Chapter) -> running.ChapterError | None:
    key = site.keys[chapter.path.stem]
    return site.background.failures.get(key) if site.background else None


def failed_outputs(chapter: Chapter) -> list | None:
    """The outputs up to the cell that raised."""
    failure = _failure(chapter)
    return failure.outputs if failure and failure.outputs else None


def to_chapter(match: re.Match) -> str:
    """A link from one script to the next is a link from one page to the next."""
    return f'href="../{match[1]}/' if match[1] in site.summaries else match[0]


def nested(headings: list[tuple[int, str, str]]) -> list[dict]:
    """The headings as the tree that MkDocs wants."""
    root: list[dict] = []
    open_levels: list[tuple[int, list[dict]]] = [(0, root)]
    for level, name, text in headings:
        while open_levels[-1][0] >= level:
            open_levels.pop()
        token = {"level": level, "id": name, "name": html.escape(text), "children": []}
        open_levels[-1][1].append(token)
        open_levels.append((level, token["children"]))
    return root


def write(chapter: Chapter, path: Path) -> None:
    """Writes a chapter's notebook for mkdocs-jupyter, if it has changed."""
    stem = chapter.path.stem
    outputs = site.outputs[stem] or failed_outputs(chapter)
    plain = site.deferring and outputs is None
    made_of = (chapter, id(outputs), plain, site.figures[stem])
    if path.is_file() and site.written.get(stem) == made_of:
        return
    filled = weaving.filled(chapter.notebook, outputs, plain, site.figures[stem])
    path.parent.mkdir(parents=True, exist_ok=True)
    text = nbformat.writes(filled)
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
    site.written[stem] = made_of


@lru_cache(maxsize=64)
def exercises_notebook(chapter: Chapter) -> str:
    """A chapter's exercises without their solutions, as a file."""
    made = exercises.notebook(chapter.exercises, exercises.title_of(chapter.script))
    return nbformat.writes(made)
