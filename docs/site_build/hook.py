"""The site's MkDocs hook: chapters become pages, the package becomes its reference.

`mkdocs build` runs every chapter whose code changed, two at a time, and fails when one raises.
`mkdocs serve` shows a page at once, runs the chapter in the background and changes the open page.
"""

import hashlib
import html
import logging
import re
import signal
from contextlib import suppress
from pathlib import Path

import cards
import chapter_source
import choice_tables
import constants
import execution
import exercises
import links
import mkdocs_jupyter.config
import mkdocs_jupyter.nbconvert2
import mkdocs_jupyter.plugin
import model_pages
import names_table
import nbformat
import notebook_html
import page_steps
import pages
import postprocess
import previews
import reference
from chapter_source import equations_of, with_numbers
from live_build import LiveBuild, last, leave_for_later
from live_cells import LiveCells
from live_server import LiveServer
from markdown.extensions.toc import nest_toc_tokens
from mkdocs.exceptions import Abort, PluginError
from mkdocs.plugins import CombinedEvent, event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.toc import get_toc
from mkdocs.utils import get_build_date, write_file
from page_steps import PageContext, Step
from serving import PageServer, check_address
from state import chapter_of, log, page_path, relative, site

from slp_transformer import __version__
from slp_transformer._internal.plugins import PACKAGES

for name in ("mkdocs.mkdocs-jupyter", "mkdocs.plugins.mkdocs_jupyter"):
    logging.getLogger(name).setLevel(logging.WARNING)  # else it tells of each file four times


# Pages that compute or play, each of one kind.
LIVE_PAGES = ("model.md", "write.md", "break-it.md", "hear.md", "fingering.md")
GUIDE = (
    "questions",
    "notation",
    "slips",
    "pytorch",
    "teachers",
    "measurements",
    "contributing",
    "decisions",
    "theme",
)


def on_startup(command, dirty):
    site.serving = command == "serve"


class NoServer(Abort):
    """The address that a server is to have cannot be had: said before anything is built."""

    exit_code = code = 2


def on_config(config):
    if site.serving and site.live is None and (sentence := check_address(*config.dev_addr)):
        raise NoServer(sentence)
    site.settings = Path(config.config_file_path)
    if site.live is not None:
        config.site_dir = str(site.live.spare)
    site.read(site.settings.parent)
    if site.serving:
        folders = ("chapters", *PACKAGES, chapter_source.RESULTS)
        config.watch += [str(site.root / name) for name in folders if (site.root / name).is_dir()]
    # The theme's own link would ask a code host for its stars on every page.
    site.repository = (config.repo_url or "").rstrip("/")
    config.repo_url = config.edit_uri = None
    config.copyright = f"slp_transformer {__version__}, built on {get_build_date()}"
    _set_template(config)
    pages = [{f"{s.number} · {s.title}": page_path(s.stem)} for s in site.summaries.values()]
    listed = [entry for entry in site.api_pages if entry.is_listed]
    modules = [{entry.name: entry.path} for entry in listed if not entry.is_package]
    packages = [{entry.name: entry.path} for entry in listed if entry.is_package]
    config.nav = [
        {"Home": "index.md"},
        *([{"Chapters": pages}] if pages else []),
        {"Live": list(LIVE_PAGES)},
        {"Equations": ["equations.md", "book.md", *(["tests.md"] if site.equation_tests else [])]},
        {"Guide": [f"{name}.md" for name in GUIDE]},
        {
            "Package": [
                "api/index.md",
                "reuse.md",
                "command-line.md",
                "own-task.md",
                "cluster.md",
                *([{"Equations, as code": modules}] if modules else []),
                *([{"Packages": packages}] if packages else []),
            ]
        },
    ]
    return config


def _set_template(config) -> None:
    """Gives mkdocs-jupyter our template and exporter, and a cache that knows of them."""
    templates = Path(__file__).parent / "templates"
    mkdocs_jupyter.config.settings.templates_dir = str(templates)
    mkdocs_jupyter.nbconvert2.HTMLExporter = notebook_html.ChapterExporter
    # For headings, which `finished` finds, it would render each chapter once more.
    mkdocs_jupyter.plugin._get_nb_toc_tokens = lambda path, depth: ([], None)
    digest = hashlib.sha256()
    for path in [*sorted(templates.rglob("*.j2")), Path(notebook_html.__file__)]:
        digest.update(path.read_bytes())
    rendered = site.root / ".cache" / f"rendered-{digest.hexdigest()[:8]}"
    config.plugins["mkdocs-jupyter"].config["cache_dir"] = str(rendered)


def on_serve(server, config, builder):
    """Serve by a server of our own: MkDocs' lets readers wait for each build, and reloads pages."""
    server.server_close()
    site.cells = LiveCells(site.root)
    served = PageServer(
        server.server_address, Path(config.site_dir), server.mount_path, site.cells.answer
    )
    site.live = LiveBuild(builder, served)
    ours = LiveServer(served, site.live.step, site.live.wake)
    site.live.has_changes = ours.has_changes
    for path in (config.docs_dir, config.config_file_path):
        ours.watch(path)
    with suppress(ValueError):  # not in the main thread
        # Kernels end with the server, and their files with them.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    log.info(f"Serving on {served.url if served.cells is None else served.live_url}")
    return ours


def on_shutdown():
    if site.live is not None:
        site.live.close()
        site.cells.close()


def on_nav(nav, config, files):
    last.config, last.nav, last.files = config, nav, files
    if site.serving and site.live is None:  # a server that has not answered yet
        leave_for_later(files, {"index.md", page_path(site.chapters[0].path.stem)})
        for entry in site.api_pages:
            register_names(entry, files.get_file_from_path(entry.path).page, config)
    return nav


def on_env(env, config, files):
    last.env = env
    return env


@event_priority(100)  # before mkdocs-jupyter, which then finds the notebooks among the pages
def on_files(files: Files, config) -> Files:
    run_chapters()
    folder = site.root / ".cache" / "pages"
    for chapter in site.chapters:
        stem = chapter.path.stem
        files.append(File(page_path(stem), str(folder), config.site_dir, config.use_directory_urls))
        downloads = {f"{stem}.py": exercises.handed_out(chapter.script)}
        if chapter.exercises:
            name = pages.exercises_name(chapter)
            downloads[name] = pages.exercises_notebook(chapter)
        for name, content in downloads.items():
            files.append(File.generated(config, f"chapters/{stem}/{name}", content=content))
    for entry in site.api_pages:
        give_way()
        render = not (site.deferring or pages.kept(entry.path))
        text = (
            reference.markdown(entry, site.members, pages.inside(entry))
            if render
            else reference.heading(entry)
        )
        files.append(File.generated(config, entry.path, content=text))
    for name in pages.measured():
        text = pages.measurement_page(name)
        files.append(File.generated(config, f"measurements/{name}.md", content=text))
    if site.equation_tests:
        loops = (site.root / "tests" / "helpers" / "loops.py").read_text(encoding="utf-8")
        text = links.tests_page(site.equation_tests, loops)
        files.append(File.generated(config, "tests.md", content=text))
    notation = site.root / "docs" / "notation.md"
    site.symbols = previews.symbols(notation.read_text("utf-8")) if notation.is_file() else {}
    shown = previews.as_json(site.equations, site.book, pages.ways_to, site.symbols)
    files.append(File.generated(config, "equations.json", content=pages.equations_json()))
    files.append(File.generated(config, "figures.json", content=pages.figures_json()))
    files.append(File.generated(config, "previews.json", content=shown))
    files.append(File.generated(config, constants.FILE, content=constants.as_module()))
    tab = model_pages.model_folder(site.root, "tab")
    for path in (*sorted(tab.iterdir()), tab.with_name("LICENSE.txt")):
        to = f"assets/model/tab/{path.name}"
        files.append(File.generated(config, to, abs_src_path=str(path)))
    return files


def run_chapters() -> None:
    """Runs what has to run: at once for a build, in the background for a server."""
    jobs = [(c, site.keys[c.path.stem]) for c in site.chapters if site.outputs[c.path.stem] is None]
    if site.serving:
        # The very first page should wait neither for the reference nor for colors, however many
        # chapters there are: the rebuild after the first run has them.
        site.deferring = bool(jobs) and not site.reference.pages
    else:
        fresh = len(site.chapters) - len(jobs)
        if jobs:
            log.info(f"{len(jobs)} chapters to run, two at a time; {fresh} unchanged")
        chapters = [chapter for chapter, _ in jobs]
        problems = [str(error) for error in execution.run_all(chapters, site.cache, log.info)]
        site.load()
        for chapter in site.chapters:
            outputs = site.outputs[chapter.path.stem]
            if outputs is not None:
                problems += execution.missing_alts(chapter, outputs)
        if problems:
            raise PluginError("\n".join(["The chapters have errors:", *problems]))


@event_priority(100)  # before mkdocs-jupyter, which reads it
def on_pre_page(page, config, files):
    """Writes a chapter's notebook when its page is built, which a server's first build leaves."""
    if chapter := chapter_of(page):
        pages.write(chapter, Path(page.file.abs_src_path))
    return page


@event_priority(-100)  # after the search has written its index
def on_post_build(config):
    site.reference.save()
    if site.live is not None or not last.later:
        postprocess.write_search(Path(config.site_dir), pages.equation_places())
    postprocess.style_once(Path(config.site_dir))
    if not site.serving:
        postprocess.cut(Path(config.site_dir))
        postprocess.name_landmarks(Path(config.site_dir))
        postprocess.drop_unused(Path(config.site_dir))
        postprocess.drop_styles(Path(config.site_dir))
        _write_notebooks(config)


def _write_notebooks(config) -> None:
    anchors = {
        name: pages.url_of_object(name)
        for module, path in site.modules.items()
        for name in [module, *links.public_names(path, site.root)]
    }
    anchors |= {name: anchors[to] for name, to in site.definitions.items() if to in anchors}
    for stem in site.outputs:
        path = Path(config.site_dir) / "chapters" / stem / f"{stem}.ipynb"
        own = nbformat.read(path, as_version=4)
        taken = notebook_html.to_take_away(own, site.repository, config.site_url or "", anchors)
        path.write_text(nbformat.writes(taken) + "\n", encoding="utf-8")


def give_way() -> None:
    """Ends a server's build of everything for an edit."""
    if site.live is not None:
        site.live.give_way()


def on_page_markdown(markdown, page, config, files):
    """Fills in what the landing page and the index leave open."""
    give_way()
    path, markdown = page.file.src_uri, choice_tables.fill(markdown)
    if path in ("index.md", "teachers.md"):
        markdown = pages.with_times(markdown)
    if path == "index.md":
        book = equations_of(site.root)
        markdown = pages.with_newest_numbers(with_numbers(markdown, book), book)
        clone = f"a clone of [its repository]({site.repository})" if site.repository else "a clone"
        markdown = markdown.replace("<!-- folder -->", f"{clone} or an unpacked archive")
        markdown = markdown.replace("<!-- draft -->", pages.draft_choice(book))
        cards = "\n".join(pages.card(s, page) for s in site.summaries.values())
        markdown = markdown.replace("<!-- chapters -->", f'<ol class="slp-cards">{cards}</ol>')
        markdown = markdown.replace("<!-- diagram -->", pages.diagram(page))
        return re.sub(r"<!-- source (\S+) -->", pages.source, markdown)
    if path == "notation.md":
        return previews.with_anchors(markdown)
    if path == "measurements.md":
        return markdown.replace("<!-- measurements -->", pages.measurements())
    if path == "equations.md":
        return markdown.replace("<!-- equations -->", pages.equation_table(page))
    contributing = site.root / "CONTRIBUTING.md"
    if path == "contributing.md" and contributing.is_file():
        text = contributing.read_text("utf-8").partition("\n")[2]
        text = text.partition("How a chapter is written")[0].replace("](docs/", "](")
        return markdown.replace("<!-- contributing -->", text)
    if path == "reuse.md" and not site.deferring:  # it builds models to look at their parameters
        return names_table.fill(markdown)
    if path == "api/index.md":
        return markdown.replace("<!-- modules -->", pages.page_table())
    return markdown


def on_page_content(content, page, config, files):
    """Puts the chapter into its page, and links from the reference back to the chapters."""
    give_way()
    chapter = chapter_of(page)
    if chapter is None:
        uri = page.file.src_uri
        if entry := next((entry for entry in site.api_pages if entry.path == uri), None):
            register_names(entry, page, config)
        if kept := pages.kept(uri):
            page.toc = get_toc(kept["toc"])
            return kept["content"]  # whose formulas are drawn: no step may do so twice
        if site.deferring and uri in site.reference_keys:
            content += pages.PREPARING
        return _with_steps(content, page_steps.PAGE_STEPS, PageContext(page, site))
    body, headings = notebook_html.finished(content)
    page.toc = get_toc(nest_toc_tokens(pages.with_equations(headings, body)))
    return _with_steps(body, page_steps.CHAPTER_STEPS, PageContext(page, site, chapter))


def register_names(entry: reference.ApiPage, page, config) -> None:
    """Lets other pages refer to what a page of the reference describes."""
    for name in pages.names_on(entry):
        config.plugins["autorefs"].register_anchor(page, name)


def _with_steps(content: str, steps: tuple[Step, ...], context: PageContext) -> str:
    """Return a page's content, changed; what is wrong in it fails a build, a server logs it."""
    for step in steps:
        try:
            content = step(content, context)
        except ValueError as error:
            name = context.chapter.name if context.chapter else context.page.file.src_uri
            if not site.serving:
                raise PluginError(f"{name}: {error}") from None
            log.error(f"{name}: {error}")
    return content


def on_post_template(output_content, **_):
    """The theme's dialog has no name, on a page that is missing either."""
    return output_content.replace('class="md-search" ', 'class="md-search" aria-label="Search" ', 1)


def on_post_page(output, page, config):
    """Only a page with formulas asks for KaTeX's styles; every page asks for its fonts at once."""
    give_way()
    if page.file.src_uri == "hear.md":
        for name, content in model_pages.files(site.root).items():
            write_file(content, str(Path(config.site_dir) / name))
    preload = ""
    for face in ("normal", "italic") if "<em>" in output else ("normal",):
        font = relative(f"assets/fonts/source-serif-4-latin-wght-{face}.woff2", page)
        preload += f'<link rel="preload" href="{font}" as="font" type="font/woff2" crossorigin>'
    # A browser that has the title alone would draw it, and the text when all scripts are there.
    if begun := re.search(r'<article(?:.*?</p>){1,3}.*?\bid="([^"]+)"', output, flags=re.DOTALL):
        preload += f'<link rel="expect" href="#{begun[1]}" blocking="render">'
    output = output.replace('<link rel="stylesheet"', f'{preload}<link rel="stylesheet"', 1)
    output = on_post_template(output)
    if '"doc doc-' not in output:  # it describes no object
        output = re.sub(r'<link rel="stylesheet" href="[^"]*_mkdocstrings\.css">', "", output)
    if postprocess.has_formulas(output):  # between the theme's styles and ours, which change both
        ours = f'<link rel="stylesheet" href="{relative("assets/site.css", page)}">'
        katex = ours.replace("site.css", "katex/katex.min.css")
        output = output.replace(ours, katex + ours, 1)
    page_js = ""
    if 'class="slp-chapter' in output or 'class="slp-cards"' in output:
        page_js += f'<script src="{relative("assets/reading.js", page)}" defer></script>'
    if 'class="slp-path"' in output:
        page_js += f'<script src="{relative("assets/short-path.js", page)}" defer></script>'
    if "#eq-" in output:
        page_js += f'<script src="{relative("assets/equations.js", page)}" defer></script>'
    if 'class="slp-chapter' in output:
        page_js += f'<script src="{relative("assets/book/way_back.js", page)}" defer></script>'
    if 'class="slp-touch"' in output:
        page_js += f'<script src="{relative("assets/touch.js", page)}" defer></script>'
    if model_pages.HEAR_STAGE in output:
        page_js += f'<script src="{relative("assets/alphatab/hear.js", page)}" defer></script>'
    if model_pages.BOOK_STAGE in output:
        folder = relative("assets/book/", page)
        page_js += f'<link rel="stylesheet" href="{folder}book.css">'
        page_js += f'<script src="{folder}book.js" type="module"></script>'
    for stage, name in model_pages.STAGES.items():
        if stage in output:
            folder = relative("assets/model/", page)
            page_js += f'<link rel="stylesheet" href="{folder}{name}.css">'
            page_js += f'<script src="{folder}{name}.js" type="module"></script>'
    output = output.replace("</head>", f"{page_js}</head>", 1)
    if chapter_of(page):
        # What stands below a section in the contents is clicked; keys reach it in the text.
        sections = {f"#{one.id}" for title in page.toc.items for one in title.children}
        output = re.sub(
            r'<a (?=href="(#[^"]+)" class="md-nav__link")',
            lambda found: found[0] if found[1] in sections else f'{found[0]}tabindex="-1" ',
            output,
        )
    return postprocess.slim(output)


@event_priority(100)
def _hide_from_search(context, page, config, nav):
    """Gives the search what it should know of a page, for as long as it looks."""
    uri = page.file.src_uri
    if uri in site.reference_keys:
        if not site.deferring and not pages.kept(uri):
            toc = reference.tokens(page.toc.items)
            site.reference.keep(uri, site.reference_keys[uri], page.content, toc)
        page.content = pages.with_links_back(page.content, page)
    page.all_content = page.content
    page.meta.setdefault("description", pages.description(page))
    if config.site_url and not site.serving:
        page.meta["card"] = f"assets/cards/{page.url.strip('/').replace('/', '-') or 'home'}.png"
        title = re.sub(r"<[^>]+>", "", str(page.title if page.url else config.site_name))
        about, card = html.unescape(page.meta["description"]), page.meta["card"]
        cards.draw(site.root, html.unescape(title), about, Path(config.site_dir) / card)
    kind = _kind(page)
    page.meta["search"] = {"boost": postprocess.BOOST[kind]} | page.meta.get("search", {})
    internal = uri.startswith(("api/_", "api/cli", "api/slp_guitar.commands"))
    if uri == "tests.md" or internal:  # each equation leads there, each command has its section
        page.meta["search"]["exclude"] = True
    page.content = postprocess.known(page.content, kind)
    return context


def _kind(page) -> str:
    if chapter_of(page):
        return "chapter"
    if page.file.src_uri == "equations.md":
        return "equations"
    return "reference" if page.file.src_uri.startswith("api/") else "page"


@event_priority(-100)
def _show_again(context, page, config, nav):
    page.content = page.all_content
    return context


on_page_context = CombinedEvent(_hide_from_search, _show_again)
