"""The lists of the site: chapters on the landing page, equations, modules."""

import html
import re

import linking
from mkdocs.exceptions import PluginError
from state import api_url, module_names, relative, short_name, site


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
    """Every equation with its numbers, its chapters and its code."""
    rows = []
    for equation in site.equations.values():
        where = ", ".join(
            f'<a href="{relative(f"chapters/{stem}/", page)}#eq-{equation.slug}">'
            f"{html.escape(site.summaries[stem].title)}</a>"
            for stem in equation.chapters
        )
        objects = "<br>".join(
            f'<autoref identifier="{name}" optional><code>{_short(name)}</code></autoref>'
            for name in equation.objects
        )
        cells = (f"<code>{equation.slug}</code>", " · ".join(equation.numbers), where, objects)
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return (
        '<div class="slp-wide slp-equations" tabindex="0"><table><thead><tr><th>Equation</th>'
        "<th>Numbers</th><th>Chapter</th><th>Code</th></tr></thead><tbody>"
        + "".join(rows)
        + "</tbody></table></div>"
    )


def _short(name: str) -> str:
    """A dotted name without package and modules: `MultiHeadAttention.forward`."""
    module = max((m for m in module_names() if name.startswith(m + ".")), key=len, default="")
    return name.removeprefix(module + ".")


def module_table() -> str:
    """Every module with its first sentence."""
    rows = []
    for name in module_names():
        url = api_url(name).removeprefix("api/")
        link = f'<a href="{url}"><code>{short_name(name)}</code></a>'
        text = _code_marks(linking.first_sentence(site.modules[name]))
        rows.append(f"<tr><td>{link}</td><td>{text}</td></tr>")
    head = "<thead><tr><th>Module</th><th>What lives there</th></tr></thead>"
    table = f"<table>{head}<tbody>{''.join(rows)}</tbody></table>"
    return f'<div class="slp-wide slp-modules" tabindex="0">{table}</div>'


def _code_marks(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))
