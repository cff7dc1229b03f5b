"""What the hook knows between two events, and where each page is."""

import logging
from pathlib import Path

import depending
import figures
import linking
import proving
import reading
import reference
import rooms
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
        self.repository = ""
        self.waiting: list[tuple[Chapter, str]] = []
        self.warned: set[str] = set()

    def read(self, root: Path) -> None:
        """Reads the chapters and what is known of their outputs."""
        self.root = root
        self.cache = running.Cache(root / ".cache" / "chapters")
        self.chapters = reading.read_chapters(root)
        self.keys = {c.path.stem: depending.key_of(c) for c in self.chapters}
        self.summaries = {c.path.stem: linking.summarize(c) for c in self.chapters}
        found = {depending.module_name(path, root): path for path in linking.modules(root)}
        self.rooms = rooms.arranged(found)
        self.modules = {name: found[name] for room in self.rooms for name in room.modules}
        self.definitions = linking.offered(root)
        # Where a thing that a wing offers is shown, by where it is defined.
        wings = {f"{PACKAGE}.{room.name}" for room in self.rooms}
        offers = self.definitions.items()
        self.shown_as = {to: name for name, to in offers if name.rpartition(".")[0] in wings}
        self.members = {
            name: [n for n in linking.own_names(path, root) if f"{name}.{n}" not in self.shown_as]
            for name, path in self.modules.items()
        }
        self.reference_keys = {
            room.path: reference.key_of([found[name] for name in room.modules], self.settings)
            for room in self.rooms
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
                name = self.definitions.get(name, name)
                if stem not in self.explained_in.setdefault(name, []):
                    self.explained_in[name].append(stem)
            for name in depending.objects_named(chapter):
                self.used_in.setdefault(name, []).append(stem)
        self.equations = {e.slug: e for e in linking.equations(self.chapters, self.root)}
        self.proofs = proving.proofs(self.root)
        self.figures: dict[str, list[figures.Figure]] = {}
        for chapter in self.chapters:
            taken = {figure.slug for found in self.figures.values() for figure in found}
            self.figures[chapter.path.stem] = figures.of(chapter, taken)

    def proofs_of(self, slug: str) -> list[proving.Proof]:
        """The tests that prove an equation."""
        return [proof for proof in self.proofs if slug in proof.slugs]

    @property
    def finished(self) -> Path:
        """A folder that a server watches: a chapter that has run leaves its mark there."""
        return self.root / ".cache" / "finished"


site = Site()


def page_path(stem: str) -> str:
    """The notebook that becomes a chapter's page."""
    return f"chapters/{stem}.ipynb"


def chapter_of(page) -> Chapter | None:
    """The chapter that a page shows, if it shows one."""
    return next((c for c in site.chapters if page.file.src_uri == page_path(c.path.stem)), None)


def short_name(name: str) -> str:
    """A module's name within the package."""
    return name.removeprefix(PACKAGE + ".")


def relative(url: str, page) -> str:
    """The way to a page from another."""
    return get_relative_url(url, page.url)
