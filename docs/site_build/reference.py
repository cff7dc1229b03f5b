"""Keeps the rendered pages of the reference: a server renders a module only when it changed.

Rendering the reference takes longer than all else that a server does between an edit and a page.
A build renders it afresh, so that whatever is wrong with a docstring is said each time.
"""

import hashlib
import json
import re
from collections.abc import Callable
from html import escape
from importlib.metadata import version
from pathlib import Path

ID = re.compile(r'\bid="(slp_transformer[\w.]*)"')
AUTOREF = re.compile(r"<autoref ([^>]*)>(.*?)</autoref>", flags=re.DOTALL)
IDENTIFIER = re.compile(r'\bidentifier="?([^"\s>]+)"?')


class Reference:
    """The pages of the reference by their path, as they were when their module last changed."""

    def __init__(self, path: Path):
        self.path = path
        try:
            self.pages: dict[str, dict] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            self.pages = {}

    def page(self, uri: str, key: str) -> dict | None:
        """What is kept of a page, if its key is still the same."""
        kept = self.pages.get(uri)
        return kept if kept and kept["key"] == key else None

    def keep(self, uri: str, key: str, content: str, toc: list[dict]) -> None:
        """Keeps a page."""
        self.pages[uri] = {"key": key, "content": content, "toc": toc}

    def save(self) -> None:
        """Writes what is kept."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_suffix(".tmp")
        fresh.write_text(json.dumps(self.pages), encoding="utf-8")
        fresh.replace(self.path)


def key_of(modules: list[Path], settings: Path) -> str:
    """What a page depends on: its modules' source, the settings, this code, and mkdocstrings."""
    digest = hashlib.sha256()
    for path in (*modules, settings, *sorted(Path(__file__).parent.glob("*.py"))):
        digest.update(path.read_bytes() + b"\0")
    digest.update(version("mkdocstrings-python").encode())
    return digest.hexdigest()[:24]


def tokens(anchors: list) -> list[dict]:
    """A table of contents as MkDocs reads it."""
    return [
        {"name": a.title, "id": a.id, "level": a.level, "children": tokens(a.children)}
        for a in anchors
    ]


def renamed(content: str, shown_as: Callable[[str], str]) -> str:
    """A page whose references ask for each object by the name under which it is shown."""

    def name(match: re.Match) -> str:
        return match[1] + shown_as(match[2])

    return re.sub(r'(<autoref [^>]*?identifier="?)([^"\s>]+)', name, content)


def resolve(content: str, urls: dict[str, str], forget: bool) -> str:
    """Makes links of the references to known objects.

    Args:
        content: a page.
        urls: where each known object is found.
        forget: whether to make plain text of the others, rather than leave them to autorefs.
    """

    def link(match: re.Match) -> str:
        name = IDENTIFIER.search(match[1])
        if name and name[1] in urls:
            return f'<a href="{escape(urls[name[1]])}">{match[2]}</a>'
        return match[2] if forget else match[0]

    return AUTOREF.sub(link, content)
