"""Turns a chapter with its outputs into the HTML of a page.

nbconvert reads the Markdown, as JupyterLab does, and Pygments colors the code. What comes out has
the same elements and classes as Material's own pages, so code looks alike on chapter and API pages.
"""

import re
from dataclasses import dataclass, field
from html import escape, unescape

from markdown.extensions.toc import slugify, unique
from nbconvert.filters import ansi2html
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

# The richest form of an output that a page can show.
KINDS = ("text/markdown", "text/html", "image/svg+xml", "image/png", "image/jpeg", "text/plain")


@dataclass
class Woven:
    """A page.

    Attributes:
        html: its content.
        headings: a (level, id, text) for each heading.
    """

    html: str
    headings: list[tuple[int, str, str]] = field(default_factory=list)


def weave(cells: list, outputs: list | None) -> Woven:
    """Renders the cells of a chapter.

    Args:
        cells: the notebook's cells.
        outputs: one list of outputs for each code cell; None for a chapter that has not run.
    """
    rest = iter(outputs or [])
    parts = []
    for cell in cells:
        if cell.cell_type == "markdown":
            parts.append(markdown(cell.source))
        elif cell.cell_type == "code" and cell.source.strip():
            parts.append(code(cell.source))
            shown = [show(output, str(cell.metadata.get("alt", ""))) for output in next(rest, [])]
            if shown:
                inside = "\n".join(shown)
                parts.append(f'<div class="slp-output" data-search-exclude>\n{inside}\n</div>')
        elif cell.cell_type == "code":
            next(rest, None)
    return _with_anchors("\n".join(parts))


def markdown(text: str) -> str:
    """Markdown with `$…$`, as JupyterLab renders it; formulas are left for KaTeX."""
    renderer = IPythonRenderer(escape=False, exclude_anchor_links=True)
    html = MarkdownWithMath(renderer=renderer).render(text)
    html = re.sub(r'(<div class="highlight"><pre>(?:<span></span>)?)(.*?)(</pre>)',
                  r"\1<code>\2</code>\3", html, flags=re.DOTALL)  # fmt: skip
    # A wide table scrolls in a box of its own, which the keyboard can reach.
    return re.sub(r"<table.*?</table>", _table, html, flags=re.DOTALL)


def code(source: str) -> str:
    """Python, with the classes that Material colors and hangs its copy button on."""
    return highlight(source, PythonLexer(), HtmlFormatter(cssclass="highlight", wrapcode=True))


def show(output: dict, alt: str) -> str:
    """One output of a cell."""
    kind = output["output_type"]
    if kind == "stream":
        return _plain(output["text"], "slp-stderr" if output["name"] == "stderr" else "")
    if kind == "error":
        return _plain("\n".join(output["traceback"]), "slp-error")
    data = output.get("data", {})
    best = next((kind for kind in KINDS if kind in data), None)
    if best is None:
        return ""
    text = data[best] if isinstance(data[best], str) else "".join(data[best])
    name = escape(alt, quote=True)
    if best == "text/markdown":
        return f'<div class="slp-shown">{markdown(text)}</div>'
    if best in ("text/html", "image/svg+xml"):
        text = re.sub(r"<svg(?![^>]*\brole=)", f'<svg role="img" aria-label="{name}"', text)
        text = re.sub(r"<img(?![^>]*\balt=)", f'<img alt="{name}"', text)
        text = re.sub(r"<table.*?</table>", _table, text, flags=re.DOTALL)
        return text[text.index("<svg") :] if best == "image/svg+xml" else text
    if best.startswith("image/"):
        return f'<img alt="{name}" src="data:{best};base64,{text.strip()}">'
    return _plain(text)


def _plain(text: str, kind: str = "") -> str:
    classes = f"slp-text {kind}".strip()
    return f'<pre class="{classes}" tabindex="0">{ansi2html(text.rstrip())}</pre>'


def _table(match: re.Match) -> str:
    return f'<div class="slp-wide" tabindex="0">{match[0]}</div>'


def _with_anchors(html: str) -> Woven:
    """Gives each heading an id and a link to itself."""
    used: set[str] = set()
    headings = []

    def anchor(match: re.Match) -> str:
        level, inside = match[1], match[2]
        text = unescape(re.sub(r"<[^>]+>", "", inside)).strip()
        name = unique(slugify(text, "-"), used)
        headings.append((int(level), name, text))
        link = f'<a class="headerlink" href="#{name}" title="Link to this section">¶</a>'
        return f'<h{level} id="{name}">{inside}{link}</h{level}>'

    html = re.sub(r"<h([1-6])(?: [^>]*)?>(.*?)</h\1>", anchor, html, flags=re.DOTALL)
    return Woven(re.sub(r"<p>\s*</p>", "", html), headings)
