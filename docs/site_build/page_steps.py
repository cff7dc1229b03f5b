"""What becomes of a page's content, step after step.

Each step takes the HTML that the step before it has left, and the page that it is about. The order
is that of the lists below, and matters only where a comment says so.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import figures
import model_pages
import pages
import postprocess
import previews
import reference
from chapter_source import Chapter
from state import Site, relative


@dataclass(frozen=True)
class PageContext:
    """What a step may ask for.

    Attributes:
        page: MkDocs' page.
        site: what is known of the whole site.
        chapter: the chapter that it shows, if it shows one.
    """

    page: Any
    site: Site
    chapter: Chapter | None = None

    def url(self, place: str) -> str:
        """Return the way to a place of the site from this page."""
        return relative(place, self.page)


Step = Callable[[str, PageContext], str]


# --- steps of chapters ----------------------------------------------------------------------------


def link_chapters(body: str, context: PageContext) -> str:
    """Make links from one script to the next those from one page to the next."""
    return re.sub(r'href="(\d\d[a-z]?_\w+)\.(?:py|ipynb|md)(?=[#"])', pages.to_chapter, body)


def link_guide(body: str, context: PageContext) -> str:
    """Make links from a script to a file of docs/, or to a recorded run, those to its page."""

    def page(match: re.Match[str]) -> str:
        place = match[1] or f"measurements/{match[2]}"
        return f'href="{context.url(f"{place}/")}'

    files = r"(?:docs/([\w-]+)|benchmarks/results/(\w+)/README)"
    return re.sub(rf'href="\.\./{files}\.md(?=[#"])', page, body)


def draw_wirings(body: str, context: PageContext) -> str:
    """Put the diagrams of the parts of a model before their equations."""
    found = context.site.figures[context.chapter.path.stem]
    return figures.with_wirings(body, found, pages.link_from(context.page))


def number_figures(body: str, context: PageContext) -> str:
    """Give references to figures their numbers."""
    stem = context.chapter.path.stem
    return figures.with_references(body, stem=stem, known=context.site.figures)


def add_tests(body: str, context: PageContext) -> str:
    """Add ways from each equation to its code and its test."""
    return pages.with_tests(body, context.page)


def add_head(body: str, context: PageContext) -> str:
    """Add what stands below the title: its files, the map of the model, notes on the last run."""
    chapter, page = context.chapter, context.page
    head = pages.line_below_title(chapter, page) + pages.you_are_here(chapter, page)
    head += pages.notes(chapter)
    body = pages.with_sections_first(pages.with_drafts(body, context.site.book))
    title = r'</h1>(\s*<p class="slp-sections">.*?</p>)?'
    body, found = re.subn(title, lambda m: m[0] + head, body, count=1, flags=re.DOTALL)
    return body if found else head + body


def add_ways_to_solve(body: str, context: PageContext) -> str:
    """Say below "Exercises" where they can be solved."""
    return pages.with_ways_to_solve(body, context.chapter)


def add_modules(body: str, context: PageContext) -> str:
    """Add the list of the modules that the chapter uses."""
    return body + pages.modules_used(context.chapter, context.page)


def add_player(body: str, context: PageContext) -> str:
    """Add what plays the tabs that cells print."""
    return model_pages.with_player(body, context.url("assets/alphatab/"))


def link_symbols(body: str, context: PageContext) -> str:
    """Link symbols to the notation."""
    return previews.with_symbols(body, context.site.symbols, context.url("notation/"))


def frame_chapter(body: str, context: PageContext) -> str:
    """Put a chapter into the element that styles and scripts know it by."""
    stale = " slp-stale" if pages.is_stale(context.chapter) else ""
    return f'<div class="slp-chapter{stale}">{body}</div>'


# --- steps of all pages ---------------------------------------------------------------------------


def add_model(content: str, context: PageContext) -> str:
    """Add what is computed in the page, if it is one of those."""
    return pages.with_model(content, context.page)


def add_siblings(content: str, context: PageContext) -> str:
    """Add the way from one live page to the others."""
    return pages.with_siblings(content, context.page)


def link_measurements(content: str, context: PageContext) -> str:
    """Lead from the name of a recorded run to what it says, whose tables have corners."""
    if context.page.file.src_uri.startswith("measurements/"):
        content = re.sub(r"<th\b([^>]*)></th>", r"<td\1></td>", content)
    return pages.with_measurements(content, context.page)


def rename_objects(content: str, context: PageContext) -> str:
    """Refer to objects of the package by the name that it offers them under."""
    return reference.renamed(content, pages.shown_as)


def draw_formulas(content: str, context: PageContext) -> str:
    """Draw formulas by KaTeX; in a menu, which has text alone, they stay letters."""

    def plain(match: re.Match[str]) -> str:
        return match[1] + re.sub(r"<[^>]+>", "", postprocess.as_text(match[2])) + match[3]

    drawn = postprocess.drawn(content)
    return re.sub(r"(<option\b[^>]*>)(.*?)(</option>)", plain, drawn, flags=re.DOTALL)


def link_equations(content: str, context: PageContext) -> str:
    """Make numbers of equations links to them."""
    if context.page.file.src_uri == "equations.md":  # each has its row
        return content
    return previews.linked(content, pages.link_from(context.page), context.site.book)


CHAPTER_STEPS: tuple[Step, ...] = (
    link_chapters,
    link_guide,
    draw_wirings,
    number_figures,  # after the diagrams, which are figures too
    add_tests,
    add_head,
    add_ways_to_solve,
    add_modules,
    add_player,
    link_measurements,
    link_symbols,  # before formulas are drawn, whose letters are no symbols in the text
    rename_objects,
    draw_formulas,  # after all that adds formulas
    link_equations,
    frame_chapter,
)
PAGE_STEPS: tuple[Step, ...] = (
    add_siblings,
    add_model,
    link_measurements,
    rename_objects,
    draw_formulas,
    link_equations,
)
