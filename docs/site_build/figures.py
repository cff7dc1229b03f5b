"""The figures of the chapters: their numbers, their captions, and the way to each.

A cell with an alt text shows a figure, and a picture of wiring stands before its equation. Both are
counted in the order of the page: "Figure 3.2". A caption is the cell's `caption="…"`, or else the
first sentence of its alt text. With `figure="name"` other text can refer to it: in the chapter
`[Figure](#fig-name)`, in another `[Figure](03_one_matrix.py#fig-name)`, becomes "Figure 3.2".
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

import diagrams
import links
from chapter_source import Chapter, number_of

from slp_transformer._internal.equations import Equations


@dataclass(frozen=True)
class Figure:
    """A figure of a chapter.

    Attributes:
        number: as "3.2".
        name: its anchor is `fig-` and this.
        caption: what stands below it.
        alt: what it shows, for those who do not see it.
        cell: the place of its cell in the notebook; None for wiring.
        slug: the equation before which a picture of wiring stands; "" for a cell's.
    """

    number: str
    name: str
    caption: str
    alt: str
    cell: int | None = None
    slug: str = ""


def of(chapter: Chapter, taken: Iterable[str] = ()) -> list[Figure]:
    """The figures of a chapter, in order.

    Args:
        chapter: a chapter.
        taken: equations whose picture another chapter has.
    """
    first = number_of(chapter.path.stem)
    found: list[Figure] = []

    def add(name: str, caption: str, alt: str, cell: int | None, slug: str = "") -> None:
        number = f"{first}.{len(found) + 1}"
        name = name or number.replace(".", "-")
        found.append(Figure(number, name, caption, alt, cell, slug))

    for place, cell in enumerate(chapter.notebook.cells):
        alt = str(cell.metadata.get("alt", ""))
        if cell.cell_type == "code" and alt:
            caption = str(cell.metadata.get("caption", "")) or first_sentence(alt)
            add(str(cell.metadata.get("figure", "")), caption, alt, place)
        elif cell.cell_type == "markdown":
            for slug, _ in links.LABEL.findall(cell.source):
                if slug in diagrams.BEFORE and slug not in taken:
                    wiring = diagrams.BEFORE[slug]
                    add(f"wiring-{slug}", wiring.caption, wiring.text, None, slug)
    return found


def of_the_book(caption: str, book: Equations) -> list[tuple[str, str]]:
    """The (draft, number) of each figure of the book that a caption names.

    "(Figs 8.1 and 8.7 · 7.1 and 7.7)" has those of each draft in turn; "(Fig. 8.19)" has those of
    one draft: that whose own chapter it is in, or else that which has equations of that chapter.
    """
    named = re.search(r"\(Figs?\.? ([^)]*)\)", caption)
    if not named:
        return []
    parts = [re.findall(r"\d+\.\d+", part) for part in named[1].split(" · ")]
    if len(parts) == len(book.drafts):
        both = zip(book.drafts, parts, strict=True)
        return [(draft, number) for draft, numbers in both for number in numbers]
    found = []
    for number in parts[0]:
        chapter = number.partition(".")[0]
        own = [draft for draft, one in book.chapters.items() if one["number"] == chapter]
        others = [
            draft
            for draft in book.drafts
            for slug in book.slugs
            if any(known.startswith(f"{chapter}.") for known in book.numbers_of(slug, draft))
        ]
        found += [(draft, number) for draft in (own or others)[:1]]
    return found


def first_sentence(text: str) -> str:
    """The first sentence, without its full stop."""
    return re.split(r"(?<=[.!?:])\s", text, maxsplit=1)[0].rstrip(".:")


def framed(content: str, figure: Figure) -> str:
    """A figure with its number and caption."""
    link = f'<a href="#fig-{figure.name}" title="Link to this figure">Figure {figure.number}</a>'
    return (
        f'<figure class="slp-fig" id="fig-{figure.name}">{content}'
        f"<figcaption>{link}. {escape(figure.caption)}.</figcaption></figure>"
    )


def described(content: str, figure: Figure) -> str:
    """Return a cell's HTML with alt text, number and caption, if it has a picture.

    Several drawings side by side are one figure, so one text stands for all.
    """
    if not re.search("<(?:svg|img)", content):
        return content
    content = DRAWING.sub(lambda drawing: leaner(drawing[0]), content)
    content = SHAPE.sub(r'<svg \3style="aspect-ratio: \1 / \2; ', content)
    alt = f'role="img" aria-label="{escape(figure.alt, quote=True)}"'
    start = '<div class="slp-figure"'
    if start in content:
        content = re.sub(r"<svg(?![^>]*\brole=)", '<svg aria-hidden="true"', content)
        above, *drawn = content.split(start)
        drawn = [one.replace("display: flex", f"{_fit(one)}display: flex", 1) for one in drawn]
        content = start.join([above, f" {alt}{drawn[0]}", *drawn[1:]])
    else:
        content = re.sub(r"<svg(?![^>]*\brole=)", f"<svg {alt}", content)
        name = escape(figure.alt, quote=True)
        content = re.sub(r"<img(?![^>]*\balt=)", f'<img alt="{name}"', content)
    return framed(content, figure)


DRAWING = re.compile(r"<svg .*?</svg>", re.DOTALL)
UNSEEN = re.compile(r'<path [^>]*opacity: 0(?:\.00\d*)?"/>')
BOX = re.compile(r'd="M ([\d.]+) ([\d.]+) L ([\d.]+) \2 L \3 ([\d.]+) L \1 \4 z "')


def leaner(svg: str) -> str:
    """The same drawing in two thirds of the bytes, as Matplotlib writes each box and number out."""
    svg = UNSEEN.sub("", svg)
    svg = BOX.sub(r'd="M\1 \2H\3V\4H\1z"', svg)
    svg = re.sub(r' transform="rotate\(-0 [^)]*\)"', "", svg)
    svg = re.sub(r'(\b[xy]="-?\d+\.\d)\d+', r"\1", svg)
    svg = re.sub(r'style="[^"]*"', lambda style: re.sub("([:;]) ", r"\1", style[0]), svg)
    svg = svg.replace(' version="1.1"', "")
    if "xlink:href" not in svg:
        svg = svg.replace(' xmlns:xlink="http://www.w3.org/1999/xlink"', "")
    svg = re.sub(r"<defs>\s*</defs>", "", svg)
    return re.sub(r">\s+<", "><", svg)


# While a drawing is off the screen nothing of it is computed, so its box says its shape.
SHAPE = re.compile(r'<svg (?=[^>]*viewBox="0 0 (\S+) (\S+?)")([^>]*)style="')
COLUMN, GAP = 724, 13  # pixels: of a page's text, between two drawings
DRAWN = re.compile(r"--slp-figure, 1\) \* (\d+)px\); ?min-width: ?(\d+)px")


def _fit(content: str) -> str:
    """The scale at which drawings that belong together stand side by side, if they can be read."""
    sizes = [(int(wide), int(least)) for wide, least in DRAWN.findall(content)]
    signs = re.findall(r'<span style="font-size[^>]*>(.*?)</span>', content, flags=re.DOTALL)
    room = COLUMN - GAP * (len(sizes) + len(signs) - 1) - sum(8 + 12 * len(s) for s in signs)
    wide, least = (sum(size) for size in zip(*sizes, strict=True)) if sizes else (0, 0)
    return f"--slp-fit: {room / wide:.3f}; " if len(sizes) > 1 and least <= room else ""


def with_wirings(body: str, figures: list[Figure], link: diagrams.Link) -> str:
    """A chapter's page with each picture of wiring before its equation."""
    for figure in (figure for figure in figures if figure.slug):
        place = body.find(f'id="eq-{figure.slug}"')
        start = body.rfind("<p", 0, place)
        if place < 0 or start < 0:
            continue
        picture = diagrams.BEFORE[figure.slug].svg(link)
        framed_picture = framed(f'<div class="slp-drawing">{picture}</div>', figure)
        body = f"{body[:start]}{framed_picture}{body[start:]}"
    return body


def with_references(body: str, stem: str, known: dict[str, list[Figure]]) -> str:
    """A page whose references to figures have their numbers.

    Raises:
        ValueError: for a reference to a figure that there is not.
    """

    def numbered(match: re.Match) -> str:
        there = match[2] or stem
        for figure in known.get(there, []):
            if figure.name == match[3]:
                return f"{match[1]}Figure {figure.number}</a>"
        raise ValueError(f"There is no figure {match[3]!r} in {there}.")

    pattern = r'(<a href="(?:(?:\.\./)?(\d\d[a-z]?_\w+)(?:/|\.py))?#fig-([\w^-]+)">)Figure</a>'
    return re.sub(pattern, numbered, body)
