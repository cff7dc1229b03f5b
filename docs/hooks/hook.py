"""The site's MkDocs hook: chapters become pages, the package becomes its reference.

`mkdocs build` runs every chapter whose code changed, two at a time, and fails when one raises.
`mkdocs serve` shows a page at once, runs the chapter in the background and reloads the page.
"""

import hashlib
import html
import logging
import re
from pathlib import Path

import linking
import mkdocs_jupyter.config
import nbformat
import reference
import running
import weaving
from mkdocs.exceptions import PluginError
from mkdocs.plugins import CombinedEvent, event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.toc import get_toc
from mkdocs.utils import get_relative_url

log = logging.getLogger("mkdocs.hooks.chapters")
for name in ("mkdocs.mkdocs-jupyter", "mkdocs.plugins.mkdocs_jupyter"):
    logging.getLogger(name).setLevel(logging.WARNING)  # else it tells of each file four times


class Site:
    """What the hook knows between two events of one build, and between two builds of a server."""

    def __init__(self) -> None:
        self.serving = False
        self.background: running.Background | None = None
        self.deferring = False
        self.settings = Path()
        self.waiting: list[tuple[running.Chapter, str]] = []
        self.warned: set[str] = set()

    def read(self, root: Path) -> None:
        """Reads the chapters and what is known of their outputs."""
        self.root = root
        self.cache = running.Cache(root / ".cache" / "chapters")
        self.chapters = running.read_chapters(root)
        self.keys = {c.path.stem: running.key_of(c) for c in self.chapters}
        self.summaries = {c.path.stem: linking.summarize(c) for c in self.chapters}
        self.modules = {running.module_name(p, root): p for p in linking.modules(root)}
        self.reference_keys = {
            _api_path(name): reference.key_of(path, self.settings)
            for name, path in self.modules.items()
        }
        self.reference = reference.Reference(root / ".cache" / "reference.json")
        self.load()

    def load(self) -> None:
        """Takes the outputs that the cache has."""
        self.outputs = {
            c.path.stem: self.cache.load(c, self.keys[c.path.stem]) for c in self.chapters
        }
        self.explained_in: dict[str, list[str]] = {}
        self.used_in: dict[str, list[str]] = {}
        for chapter in self.chapters:
            stem = chapter.path.stem
            for name in linking.explained(chapter.notebook.cells, self.outputs[stem]):
                self.explained_in.setdefault(name, []).append(stem)
            for name in running.objects_named(chapter):
                self.used_in.setdefault(name, []).append(stem)
        self.equations = {e.slug: e for e in linking.equations(self.chapters, self.root)}

    @property
    def finished(self) -> Path:
        """A folder that a server watches: a chapter that has run leaves its mark there."""
        return self.root / ".cache" / "finished"


site = Site()


def on_startup(command, dirty):
    site.serving = command == "serve"


def on_config(config):
    site.settings = Path(config.config_file_path)
    site.read(site.settings.parent)
    if site.serving:
        folders = ("chapters", running.PACKAGE, running.RESULTS)
        config.watch += [str(site.root / name) for name in folders if (site.root / name).is_dir()]
    _set_template(config)
    chapters = [{f"{s.number} · {s.title}": _page(s.stem)} for s in site.summaries.values()]
    reference = [{name.partition(".")[2]: _api_path(name)} for name in _module_names()]
    config.nav = [
        {"Home": "index.md"},
        *([{"Chapters": chapters}] if chapters else []),
        {"Equations": "equations.md"},
        {"Train": ["command-line.md", "cluster.md"]},
        {"Reference": ["api/index.md", *reference]},
    ]
    return config


def _set_template(config) -> None:
    """Gives mkdocs-jupyter the template beside this file, and a cache that knows of it."""
    templates = Path(__file__).parent / "templates"
    mkdocs_jupyter.config.settings.templates_dir = str(templates)
    digest = hashlib.sha256()
    for path in sorted(templates.rglob("*.j2")):
        digest.update(path.read_bytes())
    rendered = site.root / ".cache" / f"rendered-{digest.hexdigest()[:8]}"
    config.plugins["mkdocs-jupyter"].config["cache_dir"] = str(rendered)


def on_serve(server, config, builder):
    site.finished.mkdir(parents=True, exist_ok=True)
    server.watch(str(site.finished))
    return server


@event_priority(100)  # before mkdocs-jupyter, which then finds the notebooks among the pages
def on_files(files: Files, config) -> Files:
    run_chapters()
    folder = site.root / ".cache" / "pages"
    for chapter in site.chapters:
        stem = chapter.path.stem
        outputs = site.outputs[stem] or _failed_outputs(chapter)
        plain = site.deferring and outputs is None
        notebook = nbformat.writes(weaving.filled(chapter.notebook, outputs, plain))
        _write_if_new(folder / _page(stem), notebook)
        files.append(File(_page(stem), str(folder), config.site_dir, config.use_directory_urls))
        script = File.generated(config, f"chapters/{stem}/{stem}.py", content=chapter.text)
        files.append(script)
    for name in site.modules:
        render = not (site.deferring or _kept(_api_path(name)))
        title = name.replace(".", ".<wbr>")  # where a narrow screen may break it
        text = f"# <code>{title}</code>\n\n" + (f"::: {name}\n" if render else "")
        files.append(File.generated(config, _api_path(name), content=text))
    return files


def _page(stem: str) -> str:
    return f"chapters/{stem}.ipynb"


def _write_if_new(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def run_chapters() -> None:
    """Runs what has to run: now for a build, beside the server for a server."""
    jobs = [(c, site.keys[c.path.stem]) for c in site.chapters if site.outputs[c.path.stem] is None]
    if site.serving:
        if site.background is None:
            site.background = running.Background(site.cache, log.info, _done)
        # The very first page should wait neither for the reference nor for colors, however many
        # chapters there are: the rebuild after the first run has them.
        site.deferring = bool(jobs) and not site.reference.pages
        site.waiting = jobs
    else:
        fresh = len(site.chapters) - len(jobs)
        if jobs:
            log.info(f"{len(jobs)} chapters to run, two at a time; {fresh} unchanged")
        problems = [str(error) for error in running.run_all(jobs, site.cache, log.info)]
        site.load()
        for chapter in site.chapters:
            outputs = site.outputs[chapter.path.stem]
            if outputs is not None:
                problems += running.missing_alts(chapter, outputs)
        if problems:
            raise PluginError("\n".join(["The chapters have errors:", *problems]))


def on_post_build(config):
    """Now that there is something to read, lets the chapters run: the first page comes first."""
    site.reference.save()
    for job in site.waiting:
        site.background.want(*job)


def _done(chapter: running.Chapter) -> None:
    failure = site.background.failures.get(running.key_of(chapter))
    if failure:
        log.error(str(failure))
    site.finished.mkdir(parents=True, exist_ok=True)
    (site.finished / chapter.path.stem).write_text(running.key_of(chapter), encoding="utf-8")


# ---------------------------------------------------------------------------- pages


def on_page_markdown(markdown, page, config, files):
    """Fills in what the landing page and the index leave open."""
    path = page.file.src_uri
    if path == "index.md":
        cards = "\n".join(_card(s, page) for s in site.summaries.values())
        markdown = markdown.replace("<!-- chapters -->", f'<ol class="slp-cards">{cards}</ol>')
        return re.sub(r"<!-- source (\S+) -->", _source, markdown)
    if path == "equations.md":
        return markdown.replace("<!-- equations -->", _equation_table(page))
    if path == "api/index.md":
        return markdown.replace("<!-- modules -->", _module_table())
    return markdown


def on_page_content(content, page, config, files):
    """Puts the chapter into its page, and links from the reference back to the chapters."""
    chapter = _chapter_of(page)
    if chapter is None:
        uri = page.file.src_uri
        if kept := _kept(uri):
            page.toc = get_toc(kept["toc"])
            content = kept["content"]
        elif site.deferring and uri in site.reference_keys:
            content += _PREPARING
        return _resolved(content, page)
    body, headings = weaving.finished(content)
    body = re.sub(r'href="(\d\d_\w+)\.(?:py|ipynb|md)(?=[#"])', _to_chapter, body)
    page.toc = get_toc(_nested(headings))
    below_title = _links(chapter, page) + _notes(chapter)
    body, found = re.subn(r"</h1>", lambda _: f"</h1>{below_title}", body, count=1)
    body = body if found else below_title + body
    return f'<div class="slp-chapter">{_resolved(body, page)}</div>'


def _resolved(content: str, page) -> str:
    """Links to the kept pages of the reference, of which the autorefs plugin has not heard."""
    if "<autoref" not in content:
        return content
    urls = {}
    for module, path in site.modules.items():
        uri = _api_path(module)
        url, kept = _relative(_api_url(module), page), _kept(uri)
        if kept:
            names = reference.ID.findall(kept["content"])
        else:
            names = linking.public_names(path, site.root) if site.deferring else []
        urls |= {name: f"{url}#{name}" for name in names}
    return reference.resolve(content, urls, forget=site.deferring)


def _kept(uri: str) -> dict | None:
    """What a server still has of a page of the reference; a build renders all afresh."""
    key = site.reference_keys.get(uri) if site.serving else None
    return site.reference.page(uri, key) if key else None


def _notes(chapter: running.Chapter) -> str:
    """What a reader of a chapter should know that has not run, has failed, or lacks an alt text."""
    outputs = site.outputs[chapter.path.stem]
    if outputs is None:
        failure = _failure(chapter)
        return _failed(failure) if failure else _RUNNING
    notes = ""
    if site.serving:
        for sentence in running.missing_alts(chapter, outputs):
            notes += _note(
                "failure", "A figure without alt text", f"<p>{html.escape(sentence)}</p>"
            )
            if sentence not in site.warned:
                site.warned.add(sentence)
                log.error(sentence)
    return notes


def _failure(chapter: running.Chapter) -> running.ChapterError | None:
    key = site.keys[chapter.path.stem]
    return site.background.failures.get(key) if site.background else None


def _failed_outputs(chapter: running.Chapter) -> list | None:
    """The outputs up to the cell that raised."""
    failure = _failure(chapter)
    return failure.outputs if failure and failure.outputs else None


def _to_chapter(match: re.Match) -> str:
    """A link from one script to the next is a link from one page to the next."""
    return f'href="../{match[1]}/' if match[1] in site.summaries else match[0]


def _chapter_of(page) -> running.Chapter | None:
    return next((c for c in site.chapters if page.file.src_uri == _page(c.path.stem)), None)


def _nested(headings: list[tuple[int, str, str]]) -> list[dict]:
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


_RUNNING = (
    '<div class="admonition slp-running" data-search-exclude>'
    '<p class="admonition-title">Running …</p>'
    "<p>This chapter is being executed. Its outputs appear here when it is done.</p></div>"
)


_PREPARING = (
    '<div class="admonition slp-running" data-search-exclude>'
    '<p class="admonition-title">Soon …</p>'
    "<p>The reference is prepared while the first chapter runs.</p></div>"
)


def _note(kind: str, title: str, body: str) -> str:
    return (
        f'<div class="admonition {kind}" data-search-exclude>'
        f'<p class="admonition-title">{title}</p>{body}</div>'
    )


def _failed(failure: running.ChapterError) -> str:
    return _note("failure", "This chapter failed", f"<pre>{html.escape(str(failure))}</pre>")


def _links(chapter: running.Chapter, page) -> str:
    """The line below a chapter's title: its notebook, its script, the modules that it uses."""
    stem = chapter.path.stem
    here = [
        f'<a href="{stem}.ipynb" download>Notebook</a>',
        f'<a href="{stem}.py" download>Script</a>',
    ]
    modules = [
        f'<a href="{_relative(_api_url(name), page)}"><code>{name.partition(".")[2]}</code></a>'
        for name in running.modules_named(chapter)
        if "." in name and not name.endswith(".show")
    ]
    uses = f"<span>Uses {' '.join(modules)}</span>" if modules else ""
    return f'<p class="slp-links" data-search-exclude>{" ".join(here)} {uses}</p>'


def _card(summary: linking.Summary, page) -> str:
    url = _relative(f"chapters/{summary.stem}/", page)
    equations = f'<span class="slp-card-eq">{summary.equations}</span>' if summary.equations else ""
    return (
        f'<li><a href="{url}"><span class="slp-card-number">{summary.number}</span>'
        f"<strong>{html.escape(summary.title)}</strong>{equations}"
        f"<span>{_code_marks(summary.text)}</span></a></li>"
    )


def _code_marks(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))


def _source(match: re.Match) -> str:
    try:
        code = linking.source_of(match[1], site.root)
    except KeyError:
        raise PluginError(f"docs/index.md asks for {match[1]}, which the package lacks.") from None
    return f"```python\n{code}\n```"


def _equation_table(page) -> str:
    rows = []
    for equation in site.equations.values():
        where = ", ".join(
            f'<a href="{_relative(f"chapters/{stem}/", page)}#eq-{equation.slug}">'
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
    module = max((m for m in _module_names() if name.startswith(m + ".")), key=len, default="")
    return name.removeprefix(module + ".")


def _with_links_back(content: str, page) -> str:
    def back(match: re.Match) -> str:
        word = "Explained" if match[2] in site.explained_in else "Used"
        stems = site.explained_in.get(match[2]) or site.used_in.get(match[2], [])
        links = ", ".join(
            f'<a href="{_relative(f"chapters/{stem}/", page)}">{html.escape(title)}</a>'
            for stem in stems
            for title in [f"{site.summaries[stem].number} · {site.summaries[stem].title}"]
        )
        after = f'<p class="slp-explained">{word} in: {links}</p>' if links else ""
        return match[0] + after

    def to_equation(match: re.Match) -> str:
        equation = site.equations.get(match[1])
        if equation is None or not equation.chapters:
            return match[0]
        url = _relative(f"chapters/{equation.chapters[0]}/", page) + f"#eq-{match[1]}"
        return f'<a href="{url}"><code>{match[1]}</code></a>'

    # Shapes and other strings in types in double quotes, as the source has them.
    content = re.sub(r"(?<=[\[ ])(?:'|&#39;)([^'&<>\n]*)(?:'|&#39;)(?=[\],])", r'"\1"', content)
    content = re.sub(r"(<span class=\"s)1\">'([^'<]*)'</span>", r'\g<1>2">"\2"</span>', content)
    content = re.sub(r"<code>([A-Za-z][\w^-]*)</code>(?=\s*\()", to_equation, content)
    pattern = r'<h([2-6]) id="([^"]+)" class="doc doc-heading">.*?</h\1>'
    return re.sub(pattern, back, content, flags=re.DOTALL)


@event_priority(100)
def _hide_from_search(context, page, config, nav):
    """Search gets prose and code: reading every number of every figure took most of the build."""
    uri = page.file.src_uri
    if uri in site.reference_keys:
        if not site.deferring and not _kept(uri):
            toc = reference.tokens(page.toc.items)
            site.reference.keep(uri, site.reference_keys[uri], page.content, toc)
        page.content = _with_links_back(page.content, page)
    page.all_content = page.content
    page.content = weaving.without_outputs(page.content)
    page.content = re.sub(
        r'<details class="mkdocstrings-source">.*?</details>', "", page.content, flags=re.DOTALL
    )
    return context


@event_priority(-100)
def _show_again(context, page, config, nav):
    page.content = page.all_content
    return context


on_page_context = CombinedEvent(_hide_from_search, _show_again)


# ---------------------------------------------------------------------------- reference


def _module_names() -> list[str]:
    order = ["attention", "block", "embedding", "language_model", "encoder_decoder", "config"]

    def place(name: str) -> tuple:
        room = name.split(".")[1:]
        first = room[0] if room else ""
        known = order.index(first) if first in order else len(order)
        return (len(room) > 1 or room[:1] == ["guitar"], known, room)

    return sorted(site.modules, key=place)


def _module_table() -> str:
    rows = []
    for name in _module_names():
        link = f'<a href="{_api_url(name).removeprefix("api/")}"><code>{name}</code></a>'
        text = _code_marks(linking.first_sentence(site.modules[name]))
        rows.append(f"<tr><td>{link}</td><td>{text}</td></tr>")
    head = "<thead><tr><th>Module</th><th>What lives there</th></tr></thead>"
    table = f"<table>{head}<tbody>{''.join(rows)}</tbody></table>"
    return f'<div class="slp-wide" tabindex="0">{table}</div>'


def _api_path(name: str) -> str:
    return f"api/{name.removeprefix(running.PACKAGE + '.')}.md"


def _api_url(name: str) -> str:
    return _api_path(name).removesuffix(".md") + "/"


def _relative(url: str, page) -> str:
    return get_relative_url(url, page.url)
