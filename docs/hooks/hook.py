"""The site's MkDocs hook: chapters become pages, the package becomes its reference.

`mkdocs build` runs every chapter whose code changed, two at a time, and fails when one raises.
`mkdocs serve` shows a page at once, runs the chapter in the background and reloads the page.
"""

import hashlib
import logging
import re
from pathlib import Path

import chapter_page
import depending
import listing
import mkdocs_jupyter.config
import module_page
import nbformat
import reference
import running
import weaving
from mkdocs.exceptions import PluginError
from mkdocs.plugins import CombinedEvent, event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.toc import get_toc
from reading import PACKAGE, Chapter
from state import api_path, chapter_of, log, module_names, page_path, short_name, site

for name in ("mkdocs.mkdocs-jupyter", "mkdocs.plugins.mkdocs_jupyter"):
    logging.getLogger(name).setLevel(logging.WARNING)  # else it tells of each file four times


def on_startup(command, dirty):
    site.serving = command == "serve"


def on_config(config):
    site.settings = Path(config.config_file_path)
    site.read(site.settings.parent)
    if site.serving:
        folders = ("chapters", PACKAGE, depending.RESULTS)
        config.watch += [str(site.root / name) for name in folders if (site.root / name).is_dir()]
    _set_template(config)
    pages = [{f"{s.number} · {s.title}": page_path(s.stem)} for s in site.summaries.values()]
    modules = [{short_name(name): api_path(name)} for name in module_names()]
    config.nav = [
        {"Home": "index.md"},
        *([{"Chapters": pages}] if pages else []),
        {"Equations": "equations.md"},
        {"Train": ["command-line.md", "cluster.md"]},
        {"Reference": ["api/index.md", *modules]},
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
        outputs = site.outputs[stem] or chapter_page.failed_outputs(chapter)
        plain = site.deferring and outputs is None
        notebook = nbformat.writes(weaving.filled(chapter.notebook, outputs, plain))
        _write_if_new(folder / page_path(stem), notebook)
        files.append(File(page_path(stem), str(folder), config.site_dir, config.use_directory_urls))
        script = File.generated(config, f"chapters/{stem}/{stem}.py", content=chapter.text)
        files.append(script)
    for name in site.modules:
        render = not (site.deferring or module_page.kept(api_path(name)))
        title = name.replace(".", ".<wbr>")  # where a narrow screen may break it
        text = f"# <code>{title}</code>\n\n" + (f"::: {name}\n" if render else "")
        files.append(File.generated(config, api_path(name), content=text))
    return files


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


def _done(chapter: Chapter) -> None:
    failure = site.background.failures.get(depending.key_of(chapter))
    if failure:
        log.error(str(failure))
    site.finished.mkdir(parents=True, exist_ok=True)
    (site.finished / chapter.path.stem).write_text(depending.key_of(chapter), encoding="utf-8")


def on_page_markdown(markdown, page, config, files):
    """Fills in what the landing page and the index leave open."""
    path = page.file.src_uri
    if path == "index.md":
        cards = "\n".join(listing.card(s, page) for s in site.summaries.values())
        markdown = markdown.replace("<!-- chapters -->", f'<ol class="slp-cards">{cards}</ol>')
        return re.sub(r"<!-- source (\S+) -->", listing.source, markdown)
    if path == "equations.md":
        return markdown.replace("<!-- equations -->", listing.equation_table(page))
    if path == "api/index.md":
        return markdown.replace("<!-- modules -->", listing.module_table())
    return markdown


def on_page_content(content, page, config, files):
    """Puts the chapter into its page, and links from the reference back to the chapters."""
    chapter = chapter_of(page)
    if chapter is None:
        uri = page.file.src_uri
        if kept := module_page.kept(uri):
            page.toc = get_toc(kept["toc"])
            content = kept["content"]
        elif site.deferring and uri in site.reference_keys:
            content += module_page.PREPARING
        return module_page.resolved(content, page)
    body, headings = weaving.finished(content)
    body = re.sub(r'href="(\d\d_\w+)\.(?:py|ipynb|md)(?=[#"])', chapter_page.to_chapter, body)
    page.toc = get_toc(chapter_page.nested(headings))
    below_title = chapter_page.links(chapter, page) + chapter_page.notes(chapter)
    body, found = re.subn(r"</h1>", lambda _: f"</h1>{below_title}", body, count=1)
    body = body if found else below_title + body
    return f'<div class="slp-chapter">{module_page.resolved(body, page)}</div>'


@event_priority(100)
def _hide_from_search(context, page, config, nav):
    """Search gets prose and code: reading every number of every figure took most of the build."""
    uri = page.file.src_uri
    if uri in site.reference_keys:
        if not site.deferring and not module_page.kept(uri):
            toc = reference.tokens(page.toc.items)
            site.reference.keep(uri, site.reference_keys[uri], page.content, toc)
        page.content = module_page.with_links_back(page.content, page)
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
