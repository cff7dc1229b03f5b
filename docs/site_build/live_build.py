"""What a server builds after a change: the pages that it concerns, and the rest when all is quiet.

A page alone takes a fraction of a second, the whole site some seconds. So an edit of a chapter or
of a page, and the outputs of a chapter that has run, are shown by their page alone; what else
depends on them (the search, the menu, links back from the reference) follows in one build of
everything, which nobody has to wait for: it goes into another folder, and is served from there when
it is finished.
"""

import os
import queue
import threading
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import chapter_source
import execution
from chapter_source import Chapter
from mkdocs.commands.build import _populate_page, get_context
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page
from serving import PageServer
from state import log, page_path, site

QUIET_S = 4.0  # without an edit, before everything is built again
OPENED_S = 10.0  # in which a page is opened after the start, before chapters run unasked
LOOK_S = 0.4  # between looks for an edit while everything is built
INDEX = "search.json"  # which needs all pages


class GaveWay(BaseException):
    """A build of everything has ended for an edit. No Exception, of which MkDocs logs each."""


@dataclass
class LastBuild:
    """What MkDocs made of the whole site, from which one page can be made again."""

    config: object = None
    files: Files | None = None
    nav: object = None
    env: object = None
    later: dict[str, File] = field(default_factory=dict)
    """The pages that a server builds once it answers, by their places in the built folder."""


last = LastBuild()


def leave_for_later(files: Files, first: Collection[str]) -> None:
    """Let MkDocs build some pages alone: the rest is built when somebody asks for it, or soon.

    Args:
        files: the site's files; a page of any is known from now on, with its title.
        first: the sources of the pages that are built at once.
    """
    pages = files.documentation_pages(inclusion=InclusionLevel.is_in_serve)
    last.later = {file.dest_uri: file for file in pages if file.src_uri not in first}
    for file in last.later.values():
        page = file.page or Page(None, file, last.config)
        if page.title is None:  # the menu has it
            page.read_source(last.config)
    at_once = [file for file in pages if file.src_uri in first]
    files.documentation_pages = lambda **_: at_once


class LiveBuild:
    """Builds what has changed, in the thread of the server's loop.

    Attributes:
        spare: the folder that the next build of everything goes to.
        wake: set when a chapter has finished.
        has_changes: tells if a file has changed since the last step.
    """

    def __init__(self, builder: Callable[[], None], server: PageServer) -> None:
        """Begin with a site that is built.

        Args:
            builder: builds everything, into `spare`.
            server: serves what is built.
        """
        self.wake = threading.Event()
        self.has_changes: Callable[[], bool] = lambda: False
        self._looked_at = time.monotonic()
        self._is_building_all = False
        self._builder = builder
        self._server = server
        self._own = TemporaryDirectory(prefix="slp_site_", ignore_cleanup_errors=True)
        self.spare = Path(self._own.name)
        self._finished: queue.SimpleQueue[Chapter] = queue.SimpleQueue()
        self._background = site.background = execution.Background(
            site.cache, log.info, self._on_finished, self._read
        )
        self._is_due = site.deferring  # whether something is left for a build of everything
        if last.later:
            server.expect([*last.later, INDEX], self.wake.set)
        self._begun_at = self._changed_at = time.monotonic()

    def close(self) -> None:
        """End what runs in the background, and remove the folder."""
        self._background.close()
        self._own.cleanup()

    def _on_finished(self, chapter: Chapter, key: str) -> None:
        if failure := self._background.failures.get(key):
            log.error(str(failure))
        self._finished.put(chapter)
        self.wake.set()

    def step(self, changed: set[Path]) -> None:
        """Build what some changed files concern, and what chapters that have finished do."""
        finished = set()
        while not self._finished.empty():
            chapter = self._finished.get()
            self._background.forget(chapter)
            finished.add(page_path(chapter.path.stem))
        if changed or finished:
            self._changed_at = time.monotonic()
            concerned = pages_of(changed)
            with chapter_source.PARSING:  # a chapter that ends now waits
                if concerned is None or not self._build_pages(concerned | finished):
                    self._build_all()
        elif last.later:
            self._build_later()
        elif self._is_due and self._is_quiet():
            with chapter_source.PARSING:
                self._build_all()
        self.run_chapters()

    def run_chapters(self) -> None:
        """Let the chapters run that have no outputs."""
        for chapter in site.chapters:
            stem = chapter.path.stem
            if site.outputs[stem] is None:
                self._background.want(chapter, site.keys[stem])
        self._background.begin()

    def _read(self) -> list[str] | None:
        """Return the stems of chapters that somebody has opened, the last one first.

        None for a while after the start: the page opened first may be a chapter, which then runs
        first.
        """
        opened = self._server.opened
        if not opened and time.monotonic() - self._begun_at < OPENED_S:
            return None
        return [one.removeprefix("chapters/").rstrip("/") for one in opened if "chapters/" in one]

    def _build_later(self) -> None:
        """Build pages that the first build has left, those first that somebody waits for."""
        end = time.monotonic() + LOOK_S
        while last.later and time.monotonic() < end:
            asked = self._server.next_asked()
            place = asked if asked in last.later else next(iter(last.later))
            try:
                with chapter_source.PARSING:
                    write_page(last.later[place])
            except Exception as error:
                log.error(f"{last.later[place].src_uri}: {error or repr(error)}")
            self._release(place)
        if not last.later:
            last.config.plugins.on_post_build(config=last.config)  # the search knows all pages now
            self._server.release(INDEX)
        self.wake.set()

    def _release(self, *places: str) -> None:
        for place in places:
            last.later.pop(place, None)
            self._server.release(place)

    def _is_quiet(self) -> bool:
        since = time.monotonic() - self._changed_at
        return since > QUIET_S and not self._background.is_busy

    def _build_pages(self, uris: Iterable[str]) -> bool:
        """Build some pages again, and tell if that was possible."""
        try:
            site.read(site.root)
            urls = []
            for uri in sorted(uris):
                file = last.files.get_file_from_path(uri)
                write_page(file)
                self._release(file.dest_uri)
                urls.append(file.url)
        except Exception as error:  # whatever it was, a build of everything tells it better
            log.debug(f"One page alone could not be built: {error!r}")
            return False
        self._is_due = True
        self._server.announce(urls)
        return True

    def give_way(self) -> None:
        """End a build of everything if a file has changed: that edit is shown first.

        Raises:
            GaveWay: if one has.
        """
        if self._is_building_all and time.monotonic() - self._looked_at > LOOK_S:
            if self.has_changes():
                raise GaveWay
            self._looked_at = time.monotonic()

    def _build_all(self) -> None:
        """Build everything into the spare folder, and serve that; later, if a file changes now."""
        self._is_due, self._is_building_all = False, True
        before = replace(last)
        try:
            self._builder()
        except (GaveWay, Exception, SystemExit) as error:
            vars(last).update(vars(before))  # a page is made from what is served
            self._is_due = isinstance(error, GaveWay)
            if not self._is_due:
                log.error(f"{error or repr(error)}\nPages stay as they were until this is mended.")
            return
        finally:
            self._is_building_all = False
        self._server.folder, self.spare = self.spare, self._server.folder
        self._release(*last.later, INDEX)
        self._server.announce(None)


def pages_of(changed: set[Path]) -> set[str] | None:
    """Return the pages that some files are the source of; None if one concerns more than a page."""
    found = set()
    docs = Path(last.config.docs_dir).resolve()
    for path in changed:
        inside = path.relative_to(docs).as_posix() if path.is_relative_to(docs) else ""
        chapters = (site.root / "chapters").resolve()
        if path.parent in (chapters, chapters / "exercises") and path.suffix == ".py":
            uri = page_path(path.stem)
        else:
            uri = inside if inside.endswith(".md") else ""
        if not path.is_file() or last.files.get_file_from_path(uri) is None:
            return None
        found.add(uri)
    return found


def write_page(file: File) -> None:
    """Build one page again, with the menu and everything else of the last build.

    MkDocs has no call for this: the steps are those of `mkdocs.commands.build.build`.
    """
    config, page = last.config, file.page
    assert isinstance(page, Page)
    _populate_page(page, config, last.files)
    config.plugins.on_env(last.env, config=config, files=Files([file]))  # references to objects
    page.active = True
    try:
        context = get_context(last.nav, Files.documentation_pages(last.files), config, page)
        template = last.env.get_template(page.meta.get("template", "main.html"))
        context = config.plugins.on_page_context(context, page=page, config=config, nav=last.nav)
        output = config.plugins.on_post_page(template.render(context), page=page, config=config)
    finally:
        page.active = False
    path = Path(file.abs_dest_path)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(output, encoding="utf-8", errors="xmlcharrefreplace")
    fresh.replace(path)  # a request gets the old page or the new one
