"""A server keeps the pages that it rendered: an edit renders the pages that it changes, no others.

A page is made of its own source and of what any page may show: titles, equations, figures, proofs,
the package. While both stay the same, so do its HTML and what the search knows of it; in the build
it stands as it was. (`mkdocs serve --dirty` compares times of files, and loses the navigation.)
A build renders everything.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from jinja2 import ChoiceLoader, DictLoader, Environment, FileSystemBytecodeCache
from mkdocs.structure.toc import TableOfContents

TEMPLATE = "slp-kept.html"


@dataclass
class Kept:
    """A page as it was rendered.

    Attributes:
        key: what it was made of.
        html: the whole page.
        title: its title, which the navigation shows.
        toc: its headings.
        anchors: what can be linked to on it.
        found: what the search knows of it.
    """

    key: str
    html: str
    title: str | None
    toc: TableOfContents
    anchors: set[str] | None
    found: list[dict] = field(default_factory=list)


class Keeper:
    """The pages of a server, from one build to the next.

    Attributes:
        rendered: the sources of the pages that this build renders anew.
    """

    def __init__(self) -> None:
        self.shared = ""
        self.rendered: list[str] = []
        self._pages: dict[str, Kept] = {}

    def begin(self, *shared: object) -> None:
        """Begins a build, in which any page may show all this."""
        self.shared, self.rendered = _digest(map(repr, shared)), []

    def take(self, page, *own: object) -> None:
        """Lets a page stand as it was if nothing that it is made of has changed."""
        uri = page.file.src_uri
        page.key = _digest([self.shared, *map(repr, own)])
        page.kept = self._pages.get(uri)
        if page.kept is None or page.kept.key != page.key:
            page.kept = None
            self.rendered.append(uri)
            return
        kept = page.kept
        page.markdown, page.meta = "", {"template": TEMPLATE, "search": {"exclude": True}}
        page.title, page.toc, page.present_anchor_ids = kept.title, kept.toc, kept.anchors
        page.read_source = lambda config: None
        page.render = lambda config, files: setattr(page, "content", "")

    def keep(self, page, html: str, found: list[dict]) -> None:
        """Keeps a page that was rendered, and what the search knows of it."""
        anchors = page.present_anchor_ids
        kept = Kept(page.key, html, page.title, page.toc, anchors, found)
        self._pages[page.file.src_uri] = kept


def is_kept(page) -> bool:
    """Whether a page stands as it was."""
    return getattr(page, "kept", None) is not None


def prepare(env: Environment, folder: Path) -> None:
    """Gives the theme a template that shows a page as it was; its own are compiled just once."""
    env.loader = ChoiceLoader([DictLoader({TEMPLATE: "{{ page.kept.html }}"}), env.loader])
    folder.mkdir(parents=True, exist_ok=True)
    env.bytecode_cache = FileSystemBytecodeCache(str(folder))


def stamps(*folders: Path) -> dict[str, tuple[int, int]]:
    """When each file in some folders was written, and its size; of a file, its own."""
    found = {}
    for folder in folders:
        for path in [folder] if folder.is_file() else sorted(folder.rglob("*")):
            if "__pycache__" not in path.parts and path.is_file():
                status = path.stat()
                found[str(path)] = (status.st_mtime_ns, status.st_size)
    return found


def _digest(texts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode() + b"\0")
    return digest.hexdigest()
