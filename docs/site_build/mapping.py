"""The drawing of a whole Transformer on the landing page, and at the head of each chapter."""

from html import escape

import linking
import whole as drawn
from reading import Chapter
from state import relative, site
from wiring import Link


def link_from(page) -> Link:
    """Where an equation is found, seen from a page."""

    def found(slug: str) -> tuple[str, str] | None:
        equation = site.equations.get(slug)
        if equation is None or not equation.chapters:
            return None
        stem = equation.chapters[0]
        url = relative(f"chapters/{stem}/", page)
        url = f"{'' if url == './' else url}#eq-{slug}"
        number = equation.numbers[0] if equation.numbers else slug
        short = number.partition(" in the ")[0]
        said = f"({short})" if short.replace(".", "").replace("-", "").isdigit() else number
        return url, f"{said} in chapter {site.summaries[stem].number}"

    return found


def ways_from(page) -> dict[str, str]:
    """The links to the code and to the proof of each equation."""
    found = {}
    for slug, equation in site.equations.items():
        ways = [f'<autoref identifier="{n}" optional>code</autoref>' for n in equation.objects[:1]]
        if proofs := site.proofs_of(slug):
            ways.append(f'<a href="{relative("proofs/", page)}#{proofs[0].name}">proof</a>')
        found[slug] = " ".join(ways)
    return found


def whole(page) -> str:
    """The drawing with its parts in words."""
    link = link_from(page)
    drawings = "".join(drawn.drawing(link, frozenset(), upright) for upright in (False, True))
    parts = drawn.parts_list(link, ways_from(page))
    return f'<figure class="slp-map">{drawings}</figure>\n{parts}'


def you_are_here(chapter: Chapter, page) -> str:
    """The drawing at the head of a chapter, its parts marked; folded on a phone."""
    declared = {slug for slug, _ in linking.declared(chapter)}
    parts = drawn.here(site.summaries[chapter.path.stem].number, declared)
    named = drawn.named(parts) or "the whole"
    link = link_from(page)
    said = f"<strong>You are here:</strong> {escape(named)}"
    return (
        f'<figure class="slp-map" data-search-exclude>{drawn.drawing(link, parts, False)}'
        f"<figcaption>{said}. Each part leads to its equation.</figcaption></figure>"
        f'<details class="slp-map-small" data-search-exclude><summary>{said}</summary>'
        f"{drawn.drawing(link, parts, True)}</details>"
    )
