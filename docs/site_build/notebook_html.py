"""Finishes what mkdocs-jupyter makes of a chapter: alt texts before it, headings after.

mkdocs-jupyter renders with the template next to this file, so that a chapter's code and text have
the elements and classes of Material's own pages and look like the rest of the site.
"""

import copy
import re
from collections.abc import Iterable
from html import escape, unescape
from typing import Any

import exercises
import figures
import nbformat
import short_path
from markdown.extensions.toc import slugify, unique
from nbconvert.exporters.html import HTMLExporter
from nbconvert.exporters.templateexporter import TemplateExporter
from nbconvert.filters.widgetsdatatypefilter import WidgetsDataTypeFilter

Heading = dict[str, Any]  # its level, id and name, as Markdown's table of contents has them


def filled(
    notebook: nbformat.NotebookNode,
    outputs: list | None,
    plain: bool = False,
    figures: Iterable[figures.Figure] = (),
    live: bool = False,
) -> nbformat.NotebookNode:
    """A notebook with its outputs, its figures described, numbered and with a caption.

    Args:
        notebook: a chapter's cells.
        outputs: one list of outputs for each code cell; None for a chapter that has not run.
        plain: whether to leave the code without colors, which takes a third of the time.
        figures: the chapter's figures.
        live: whether each code cell has a mark, where a server's page lets a reader run it.
    """
    notebook = copy.deepcopy(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    of_cell = {id(notebook.cells[f.cell]): f for f in figures if f.cell is not None}
    for cell, shown in zip(cells, outputs or [[]] * len(cells), strict=True):
        figure = of_cell.get(id(cell))
        cell.outputs = [_described(nbformat.from_dict(output), figure) for output in shown]
    for cell in notebook.cells if exercises.hides_answers() else ():
        exercises.hide_answers(cell)
    for cell in filter(exercises.is_exercise, cells):
        cell.metadata["blank"] = exercises.cut(cell.source)
        cell.source = exercises.unmarked(cell.source)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"  # Jupytext invents new ones at each reading
    for cell, mark in zip(notebook.cells, short_path.marks_of(notebook.cells), strict=True):
        if mark.ends:
            cell.metadata["ends_more"] = True
    python = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook.metadata["kernelspec"] = python
    if plain:
        notebook.metadata["plain"] = True
    if live:
        notebook.metadata["live"] = True
        for number, cell in enumerate(cells):
            cell.metadata["number"] = number
    return notebook


def _described(
    output: nbformat.NotebookNode, figure: figures.Figure | None
) -> nbformat.NotebookNode:
    data = output.get("data", {})
    if "text/plain" in data:  # an address is another one in each run
        data["text/plain"] = re.sub(r" at 0x[0-9a-fA-F]+", "", data["text/plain"])
    for kind in ("text/html", "image/svg+xml"):
        if figure and kind in data:
            data[kind] = figures.described(data[kind], figure)
    return output


class ChapterExporter(HTMLExporter):
    """The exporter of nbconvert without the parser of whole pages, most of the time of an export.

    That gives pictures an alt text, which a chapter's have, and JupyterLab's cells a tab stop.
    """

    def from_notebook_node(
        self, nb: nbformat.NotebookNode, resources: dict[str, Any] | None = None, **kw: Any
    ) -> tuple[str, dict[str, Any]]:
        """Return a notebook as HTML, its text without needless escapes."""
        resources = self._init_resources(resources)
        types = WidgetsDataTypeFilter(
            notebook_metadata=self._nb_metadata, parent=self, resources=resources
        )
        self.register_filter("highlight_code", self.filters["highlight_code"])
        self.register_filter("filter_data_type", types)
        html, resources = TemplateExporter.from_notebook_node(self, nb, resources, **kw)
        html = TEXT.sub(lambda text: ESCAPED.sub(lambda one: unescape(one[0]), text[0]), html)
        return html, resources


TEXT = re.compile(r">[^<]*&[^<]*<")
ESCAPED = re.compile(r"&(?!(?:lt|gt|amp|#60|#62|#38);)#?\w+;")


def finished(html: str) -> tuple[str, list[Heading]]:
    """A chapter's HTML as it stands on its page, and the headings in it."""
    # mkdocs-jupyter adds JupyterLab's styles to each page, and each cell's text a second time.
    html = re.sub(r"<style.*?</style>", "", html, flags=re.DOTALL)
    html = re.sub(r'<div [^>]*class="clipboard-copy-txt".*?</div>', "", html, flags=re.DOTALL)
    html = re.sub(r'<div class="highlight-ipynb[^"]*"', '<div class="highlight"', html)
    html = CODE.sub(_block, html)
    # A wide table scrolls in a box of its own, which the keyboard can reach.
    html = re.sub(
        r"<table.*?</table>",
        lambda match: f'<div class="slp-wide" tabindex="0">{match[0]}</div>',
        html,
        flags=re.DOTALL,
    )
    # A label such as "head-par · 8.33 · 7.34" links to itself, so that it can be copied.
    html = re.sub(
        r'(<span class="eq" id="([^"]+)">)(.*?)(</span>)',
        r'\1<a href="#\2" title="Link to this equation">\3</a>\4',
        html,
    )
    html, headings = _with_anchors(html)
    return _with_folds(html), headings


MORE = re.compile(r"<!-- more (.*?) -->\s*(<h[2-6] [^>]*>.*?</h[2-6]>)?", re.DOTALL)
END_OF_MORE = "<!-- /more -->"


def _with_folds(html: str) -> str:
    """Fold what the short path leaves out; its heading stays."""
    fold = r'\2<details class="slp-more"><summary data-search-exclude>\1</summary>'
    html, num_folds = MORE.subn(fold, html)
    html = html.replace(END_OF_MORE, f"</details>{END_OF_MORE}")
    is_open = num_folds > html.count(END_OF_MORE)  # the last one, to the end of the page
    return f"{html}</details>{END_OF_MORE}" if is_open else html


def without_folds(html: str) -> str:
    """A page whose folds of the short path are gone, and all that is in them is there."""
    html = re.sub(r'<details class="slp-more"[^>]*>.*?</summary>', "", html, flags=re.DOTALL)
    return html.replace(f"</details>{END_OF_MORE}", "")


CODE = re.compile(
    r'(<div class="slp-shown">)?<div class="highlight"><pre>(?:<span></span>)?(.*?)</pre>\s*</div>',
    re.DOTALL,
)
OPEN_LINES = {"source": 12, "plotting": 4}  # longer code is folded


def _block(match: re.Match) -> str:
    """A block of code with its height in lines, which a browser leaves room for until it is drawn.

    The package's source and calls that only draw a figure are folded if they are long.
    """
    shown, code = match[1] or "", match[2]
    lines = code.strip().split("\n")
    block = (
        f'<div class="highlight"><pre><code style="--lines: {len(lines)}">{code}</code></pre></div>'
    )
    calls = [line for line in lines if line and "import" not in line]
    is_plotting = calls and re.sub(r"<[^>]+>", "", calls[0]).startswith("plotting.")
    kind = "source" if shown else "plotting" if is_plotting else ""
    if kind and len(lines) > OPEN_LINES[kind]:
        first = calls[0] if is_plotting else lines[0]
        first += "…)" if re.sub(r"<[^>]+>", "", first).endswith("(") else ""
        block = (
            f'<details class="slp-fold"><summary><code>{first}</code></summary>{block}</details>'
        )
    return shown + block


def _with_anchors(html: str) -> tuple[str, list[Heading]]:
    """Gives each heading an id that MkDocs would give it, and a link to itself."""
    used: set[str] = set()
    headings = []

    def anchor(match: re.Match) -> str:
        level = match[1]
        inside = re.sub(r'<a class="anchor-link".*?</a>', "", match[2])
        text = unescape(re.sub(r"<[^>]+>", "", inside)).strip()
        name = unique(slugify(text, "-"), used)
        headings.append({"level": int(level), "id": name, "name": escape(text)})
        link = f'<a class="headerlink" href="#{name}" title="Link to this section">¶</a>'
        return f'<h{level} id="{name}">{inside}{link}</h{level}>'

    html = re.sub(r"<h([1-6])(?: [^>]*)?>(.*?)</h\1>", anchor, html, flags=re.DOTALL)
    return html, headings


def without_outputs(html: str) -> str:
    """A page less what its cells put out."""
    return re.sub(r"<!-- output -->.*?<!-- /output -->", "", html, flags=re.DOTALL)


REFERENCE = re.compile(r'<autoref [^>]*?identifier="?([^"\s>]+)"?[^>]*>(.*?)</autoref>', re.DOTALL)


def to_take_away(
    notebook: nbformat.NotebookNode, repository: str, site: str, anchors: dict[str, str]
) -> nbformat.NotebookNode:
    """A chapter's notebook on its own.

    Args:
        notebook: the chapter's, with its outputs.
        repository: where the project is kept, or "".
        site: where the site is published, or "".
        anchors: the place within the site of each object that the notebook may refer to.
    """
    taken = nbformat.from_dict(notebook)
    taken.cells = [exercises.install_cell(repository), *taken.cells]

    def chapter(match: re.Match) -> str:
        return f"]({site}chapters/{match[1]}/"

    def reference(match: re.Match) -> str:
        if not site or match[1] not in anchors:
            return match[2]
        return f'<a href="{site}{anchors[match[1]]}">{match[2]}</a>'

    def page(match: re.Match) -> str:
        return f"]({site}{match[1]}/" if site else match[0]

    for cell in taken.cells:
        texts = [output.get("data", {}) for output in cell.get("outputs", [])]
        if cell.cell_type == "markdown":
            cell.source = REFERENCE.sub(reference, cell.source)
            if site:
                cell.source = re.sub(r"\]\((\d\d[a-z]?_\w+)\.(?:py|ipynb|md)", chapter, cell.source)
                record = r"\]\(\.\./benchmarks/results/(\w+)/README\.md"
                cell.source = re.sub(record, rf"]({site}measurements/\1/", cell.source)
                cell.source = re.sub(r"\]\(\.\./(?:docs/)?([\w-]+)(?:\.md|/)", page, cell.source)
        for data in texts:
            if "text/markdown" in data:
                data["text/markdown"] = REFERENCE.sub(reference, data["text/markdown"])
    return taken
