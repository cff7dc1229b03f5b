"""The lists of the site: chapters on the landing page, equations, modules."""

import html
import json
import re

import linking
from mkdocs.exceptions import PluginError
from rooms import Room
from state import relative, site


def card(summary: linking.Summary, page) -> str:
    """A chapter on the landing page."""
    url = relative(f"chapters/{summary.stem}/", page)
    equations = f'<span class="slp-card-eq">{summary.equations}</span>' if summary.equations else ""
    return (
        f'<li><a href="{url}"><span class="slp-card-number">{summary.number}</span>'
        f"<strong>{html.escape(summary.title)}</strong>{equations}"
        f"<span>{_code_marks(summary.text)}</span></a></li>"
    )


def source(match: re.Match) -> str:
    """The source of an object that the landing page asks for."""
    try:
        code = linking.source_of(match[1], site.root)
    except KeyError:
        raise PluginError(f"docs/index.md asks for {match[1]}, which the package lacks.") from None
    return f"```python\n{code}\n```"


def equation_table(page) -> str:
    """Every equation: its formula and numbers, its chapter, its code, and its proof."""
    rows = []
    for equation in site.equations.values():
        if equation.slug not in site.book.slugs:
            raise PluginError(f"equations.toml has no {equation.slug!r}.")
        where = ", ".join(
            f'<a href="{relative(f"chapters/{stem}/", page)}#eq-{equation.slug}">'
            f"{html.escape(site.summaries[stem].title)}</a>"
            for stem in equation.chapters
        )
        objects = "<br>".join(
            f'<autoref identifier="{name}" optional><code>{_short(name)}</code></autoref>'
            for name in equation.objects
        )
        tests = "<br>".join(
            f'<a href="{relative("proofs/", page)}#{proof.name}">{_spoken(proof.name)}</a>'
            for proof in site.proofs_of(equation.slug)
        )
        numbers = f'<span class="slp-quiet">{" · ".join(equation.numbers)}</span>'
        name = f'<code id="{html.escape(equation.slug)}">{html.escape(equation.slug)}</code>'
        name += f"<br>{html.escape(site.book.slugs[equation.slug]['title'])}"
        formula = f"$\\displaystyle {html.escape(equation.tex)}$" if equation.tex else ""
        if equation.tex.startswith("\\begin{align"):
            formula = f"$${html.escape(equation.tex)}$$"
        cells = (f"{name}<br>{numbers}", formula, where or "to come", objects)
        # On a phone, where rows are cards, each names what it is.
        heads = ("", "", ' data-head="Chapter"', ' data-head="Code"')
        row = "".join(f"<td{head}>{cell}</td>" for head, cell in zip(heads, cells, strict=True))
        rows.append(f'<tr>{row}<td data-head="Proof" data-search-exclude>{tests}</td></tr>')
    return (
        '<div class="slp-wide slp-equations" tabindex="0"><table><thead><tr><th>Equation</th>'
        "<th>Formula</th><th>Chapter</th><th>Code</th><th>Proof</th></tr></thead><tbody>"
        + "".join(rows)
        + "</tbody></table></div>"
    )


def _spoken(test: str) -> str:
    """A test's name as a sentence, with the number of its equation: "head par 8.33 equals loop"."""
    words = test.removeprefix("test_").replace("_", " ")
    return html.escape(re.sub(r"(?<=\d) (?=\d)", ".", words))


def equations_json() -> str:
    """The index of equations for programs."""
    return json.dumps(
        [
            {
                "slug": equation.slug,
                "title": site.book.slugs[equation.slug]["title"],
                "numbers": equation.numbers,
                "tex": equation.tex,
                "chapters": [f"chapters/{stem}/#eq-{equation.slug}" for stem in equation.chapters],
                "code": equation.objects,
                "tests": [proof.id for proof in site.proofs_of(equation.slug)],
            }
            for equation in site.equations.values()
        ],
        indent=1,
        ensure_ascii=False,
    )


def _short(name: str) -> str:
    """A dotted name without package and modules: `MultiHeadAttention.forward`."""
    module = max((m for m in site.modules if name.startswith(m + ".")), key=len, default="")
    return name.removeprefix(module + ".")


def page_table() -> str:
    """Every listed module and package with its first sentence."""
    listed = [page for page in site.rooms if page.is_listed]
    kinds = {
        "The equations": [page for page in listed if not page.is_package],
        "Packages": [page for page in listed if page.is_package],
    }
    return "\n\n".join(f"## {kind}\n\n{_rooms(found)}" for kind, found in kinds.items() if found)


def _rooms(rooms: list[Room]) -> str:
    rows = []
    for room in rooms:
        link = f'<a href="{room.name}/"><code>{room.name}</code></a>'
        text = _code_marks(linking.first_sentence(site.modules[room.modules[0]]))
        rows.append(f"<tr><td>{link}</td><td>{text}</td></tr>")
    head = "<thead><tr><th>Module</th><th>Contents</th></tr></thead>"
    table = f"<table>{head}<tbody>{''.join(rows)}</tbody></table>"
    return f'<div class="slp-wide slp-modules" tabindex="0">{table}</div>'


def _code_marks(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))
