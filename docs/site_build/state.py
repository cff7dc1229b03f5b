"""The hook's state between two events, and the places of pages."""

import logging
from pathlib import Path
from typing import Any

import chapter_source
import execution
import figures
import links
import reference
import short_path
from chapter_source import Chapter
from live_server import stamps
from mkdocs.utils import get_relative_url

from slp_transformer._internal.plugins import PACKAGES

log = logging.getLogger("mkdocs.hooks.chapters")


class Site:
    """The hook's state between two events of a build, and between two builds of a server."""

    def __init__(self) -> None:
        self.serving = False
        self.background: execution.Background | None = None
        self.live: Any = None  # a server's `LiveBuild`, from its first build on
        self.cells: Any = None  # and its `LiveCells`
        self.deferring = False
        self.settings = Path()
        self.repository = ""
        self.warned: set[str] = set()
        self.written: dict[str, tuple] = {}
        self.behind: dict[Path, tuple[int, int]] = {}
        self.symbols: dict[str, list[str]] = {}
        self._loaded: dict[str, tuple[str, list]] = {}

    def read(self, root: Path) -> None:
        """Reads the chapters and what is known of their outputs; again only what has changed."""
        self.root = root
        self.book = chapter_source.equations_of(root)
        self.cache = execution.Cache(root / ".cache" / "chapters")
        self.chapters = chapter_source.read_chapters(root)
        folders = (*PACKAGES, chapter_source.RESULTS, "tests", self.settings.name)
        behind = stamps([root / name for name in folders])
        if behind != self.behind:
            self.behind = behind
            self._read_package()
        # While its key is the same, a chapter that has failed is not tried again.
        everything = str(sorted(behind.items()))
        self.keys = {c.path.stem: f"{hash((c.code, everything)):x}" for c in self.chapters}
        self.summaries = {c.path.stem: links.summarize(c) for c in self.chapters}
        self.times = {c.path.stem: short_path.times_of(c) for c in self.chapters}
        self.load()

    def _read_package(self) -> None:
        root = self.root
        found = {chapter_source.module_name(path, root): path for path in links.modules(root)}
        self.api_pages = reference.arranged(found)
        self.modules = {name: found[name] for entry in self.api_pages for name in entry.modules}
        self.definitions = links.offered(root)
        # Where a thing that a package offers is shown, by where it is defined.
        packages = {e.modules[0] for e in self.api_pages if "." not in e.name}
        offers = self.definitions.items()
        self.shown_as = {to: name for name, to in offers if name.rpartition(".")[0] in packages}
        self.members = {
            name: [n for n in links.own_names(path, root) if f"{name}.{n}" not in self.shown_as]
            for name, path in self.modules.items()
        }
        # A package's page has the first sentence of each module, whose page is another.
        inner = {e.name: [n for n in found if reference.is_within(n, e)] for e in self.api_pages}
        self.reference_keys = {
            e.path: reference.key_of([found[name] for name in inner[e.name]], self.settings)
            for e in self.api_pages
        }
        self.reference = reference.Reference(root / ".cache" / "reference.json")
        self.equation_tests = links.equation_tests(root)

    def _load_outputs(self, chapter: Chapter) -> list | None:
        stem = chapter.path.stem
        if self._loaded.get(stem, ("", None))[0] != self.keys[stem]:
            outputs = self.cache.load(chapter)
            if outputs is None:
                return None
            self._loaded[stem] = (self.keys[stem], outputs)
        return self._loaded[stem][1]

    def load(self) -> None:
        """Takes the outputs that the cache has."""
        self.outputs = {c.path.stem: self._load_outputs(c) for c in self.chapters}
        self.explained_in: dict[str, list[str]] = {}
        self.used_in: dict[str, list[str]] = {}
        for chapter in self.chapters:
            stem = chapter.path.stem
            for name in links.explained(chapter.notebook.cells, self.outputs[stem]):
                name = self.definitions.get(name, name)
                if stem not in self.explained_in.setdefault(name, []):
                    self.explained_in[name].append(stem)
            for name in chapter_source.objects_named(chapter):
                self.used_in.setdefault(name, []).append(stem)
        self.equations = {e.slug: e for e in links.list_equations(self.chapters, self.root)}
        self.figures: dict[str, list[figures.Figure]] = {}
        for chapter in self.chapters:
            taken = {figure.slug for found in self.figures.values() for figure in found}
            self.figures[chapter.path.stem] = figures.of(chapter, taken)

    def tests_of(self, slug: str) -> list[links.EquationTest]:
        """The tests of an equation."""
        return [test for test in self.equation_tests if slug in test.slugs]


site = Site()


def page_path(stem: str) -> str:
    """The notebook that becomes a chapter's page."""
    return f"chapters/{stem}.ipynb"


def chapter_of(page) -> Chapter | None:
    """The chapter that a page shows, if it shows one."""
    return next((c for c in site.chapters if page.file.src_uri == page_path(c.path.stem)), None)


def relative(url: str, page) -> str:
    """The way to a page from another."""
    return get_relative_url(url, page.url)
