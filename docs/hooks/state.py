"""What the hook knows between two events, and where each page is."""

import logging
from pathlib import Path

import depending
import linking
import reading
import reference
import running
from mkdocs.utils import get_relative_url
from reading import PACKAGE, Chapter

log = logging.getLogger("mkdocs.hooks.chapters")


class Site:
    """What the hook knows between two events of one build, and between two builds of a server."""

    def __init__(self) -> None:
        self.serving = False
        self.background: running.Background | None = None
        self.deferring = False
        self.settings = Path()
        self.waiting: list[tuple[Chapter, str]] = []
        self.warned: set[str] = set()

    def read(self, root: Path) -> None:
        """Reads the chapters and what is known of their outputs."""
        self.root = root
        self.cache = running.Cache(root / ".cache" / "chapters")
        self.chapters = reading.read_chapters(root)
        self.keys = {c.path.stem: depending.key_of(c) for c in self.chapters}
        self.summaries = {c.path.stem: linking.summarize(c) for c in self.chapters}
        self.modules = {depending.module_name(p, root): p for p in linking.modules(root)}
        self.reference_keys = {
            api_path(name): reference.key_of(path, self.settings)
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
            for name in depending.objects_named(chapter):
                self.used_in.setdefault(name, []).append(stem)
        self.equations = {e.slug: e for e in linking.equations(self.chapters, self.root)}

    @property
    def finished(self) -> Path:
        """A folder that a server watches: a chapter that has run leaves its mark there."""
        return self.root / ".cache" / "finished"


site = Site()


IN_THE_BOOK = [
    *("attention", "heads", "feedforward", "layer_norm", "block"),
    *("embedding", "language_model", "encoder_decoder", "config"),
]


def module_names() -> list[str]:
    """The modules of the package: first the book's, in its order, the guitar's last."""

    def place(name: str) -> tuple:
        room = name.split(".")[1:]
        first = room[0] if room else ""
        known = IN_THE_BOOK.index(first) if first in IN_THE_BOOK else len(IN_THE_BOOK)
        return (len(room) > 1 or room[:1] == ["guitar"], known, room)

    return sorted(site.modules, key=place)


def page_path(stem: str) -> str:
    """The notebook that becomes a chapter's page."""
    return f"chapters/{stem}.ipynb"


def chapter_of(page) -> Chapter | None:
    """The chapter that a page shows, if it shows one."""
    return next((c for c in site.chapters if page.file.src_uri == page_path(c.path.stem)), None)


def short_name(name: str) -> str:
    """A module's name within the package."""
    return name.removeprefix(PACKAGE + ".")


def api_path(name: str) -> str:
    """The source of a module's page in the reference."""
    return f"api/{short_name(name)}.md"


def api_url(name: str) -> str:
    """Where a module's page is found."""
    return api_path(name).removesuffix(".md") + "/"


def relative(url: str, page) -> str:
    """The way to a page from another."""
    return get_relative_url(url, page.url)
