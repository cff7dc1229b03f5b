"""Numbers of equations and symbols as links, and what is shown when one points at such a link.

A number in prose is one in brackets, "(8.33)" or "(in 8.35 to 8.37)", one with its twin, "8.33 ·
7.34", or one "in the Aug 2026 draft". Sections, figures and exercises have numbers of their own.
"""

import json
import re
from collections.abc import Callable
from html import escape, unescape
from itertools import count

import postprocess

from slp_transformer._internal.equations import Equations

# What has no prose: code, formulas, links, headings, and tags themselves.
NO_PROSE = re.compile(
    r"(<!-- tex -->.*?<!-- /tex -->|<(?P<tag>pre|code|script|style|svg|textarea|a|h[1-6]|button|"
    r'autoref)\b.*?</(?P=tag)>|<div class="slp-output">.*?<!-- /output -->|<[^>]*>)',
    re.DOTALL,
)
NUMBER = r"\d+\.\d+"
GROUP = re.compile(
    rf"(?:section {NUMBER} · )?"  # a section in one draft, an equation in the other
    rf"(?<![\w.])(?P<group>{NUMBER}(?:(?: · |, |-|–| to | and ){NUMBER})*)(?![\w.]*\w)"
)
OTHERS = re.compile(r"(?:Figs?\.?|Figures?|[Ss]ections?|[Ee]xercises?|[\d.]+ ?\() *$")
BEFORE = re.compile(r"(?:\((?:in )?|· )$")
AFTER = re.compile(r" in the \w+ \d+\s+draft")


def known(book: Equations) -> dict[str, dict]:
    """Return what each number stands for: its slug, and the number in each draft that has it."""
    found = {}
    for slug in book.slugs:
        own = {draft: book.numbers_of(slug, draft) for draft in book.drafts}
        for draft, numbers in own.items():
            for place, number in enumerate(numbers):
                twins = {key: other[place] for key, other in own.items() if place < len(other)}
                found[number] = {"slug": slug, "draft": draft, "twins": twins}
    return found


def linked(body: str, link: Callable[[str], tuple[str, str] | None], book: Equations) -> str:
    """Return a page whose numbers of equations lead to them.

    Args:
        body: the page, with its formulas drawn.
        link: where an equation is found, by its slug.
        book: the equations.
    """
    numbers = known(book)

    def to_equation(found: re.Match) -> str:
        group, before = found["group"], found.string[: found.start("group")]
        slugs = [numbers[n]["slug"] if n in numbers else "" for n in re.findall(NUMBER, group)]
        named = " · " in group or BEFORE.search(before) or AFTER.match(found.string, found.end())
        if "" in slugs or not named or OTHERS.search(before) or not (place := link(slugs[0])):
            return found[0]
        lead = found[0].removesuffix(group)
        return f'{lead}<a href="{escape(place[0])}">{group}</a>'

    return _with_links(body, GROUP, to_equation)


def _with_links(body: str, pattern: re.Pattern, link: Callable[[re.Match], str]) -> str:
    found, end = [], 0
    for match in NO_PROSE.finditer(body):
        found += [pattern.sub(link, body[end : match.start()]), match[0]]
        end = match.end()
    return "".join([*found, pattern.sub(link, body[end:])])


ROW = re.compile(r"^\| (?=\$)", re.MULTILINE)  # of the notation page, for a symbol
# A plain letter has too many uses: p is a probability, and the fret of a hand.
SYMBOL = re.compile(r"(?<![\\$\w])\$([^$\n]*[\\_^][^$\n]*)\$(?![\d$])")


def with_anchors(notation: str) -> str:
    """Return the notation page with an anchor in the row of each symbol."""
    rows = count()
    return ROW.sub(lambda _: f'| <span id="symbol-{next(rows)}"></span>', notation)


def symbols(notation: str) -> dict[str, list[str]]:
    """Return the row of each symbol of the notation page: its anchor, and its cells."""
    found: dict[str, list[str]] = {}
    for at, row in enumerate(ROW.split(notation)[1:]):
        cells = re.split(r" *\| *", row.partition("\n")[0])[:-1]
        for tex in re.findall(r"\$([^$]+)\$", cells[0]):
            for one in (tex, *tex.split(",")):
                found.setdefault(one, [f"symbol-{at}", *cells])
    return found


def with_symbols(body: str, known: dict[str, list[str]], url: str) -> str:
    """Return a chapter in which the first use of each symbol leads to the notation page."""
    seen = set()

    def to_symbol(found: re.Match) -> str:
        row = known.get(unescape(found[1]), [""])[0]
        if not row or row in seen:
            return found[0]
        seen.add(row)
        return f'<a class="slp-symbol" href="{url}#{row}" title="Notation">{found[0]}</a>'

    return _with_links(body, SYMBOL, to_symbol)


def as_json(
    equations: dict,
    book: Equations,
    ways: Callable[[str], list[list[str]]],
    symbols: dict[str, list[str]],
) -> str:
    """Return what a page shows of each equation and symbol, and what each number stands for.

    Args:
        equations: what is known of each, by its slug.
        book: the equations.
        symbols: the rows of the notation page.
        ways: the words and addresses of an equation's links, from the top of the site.
    """
    shown = {
        slug: {
            "title": escape(book.slugs[slug]["title"]),
            "formula": _formula(equation.tex),
            "place": _places(book, slug),
            "links": ways(slug),
        }
        for slug, equation in equations.items()
    }
    for row, letter, *shape, what, code, chapter in symbols.values():
        stem = re.search(r"chapters/\w+/", chapter)
        shown[row] = {
            "title": postprocess.drawn(what),
            "formula": postprocess.drawn(" ".join([letter, *shape])),
            "place": code.replace("`", ""),
            "links": [["Notation", f"notation/#{row}"], *([["Chapter", stem[0]]] if stem else [])],
        }
    data = {"drafts": book.drafts, "numbers": known(book), "equations": shown}
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def _formula(tex: str) -> str:
    try:
        return postprocess.drawn(f"$${escape(tex)}$$") if tex else ""
    except postprocess.FormulaError:
        return ""  # its own page says so, with its place


def _places(book: Equations, slug: str) -> str:
    """Where an equation is in each draft, in words."""
    entry = book.slugs[slug]
    own = [f"{entry[draft]} in the {name}" for draft, name in book.drafts.items() if draft in entry]
    return " · ".join(own) or entry.get("where", "")
