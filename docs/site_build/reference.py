"""The pages of the reference: which there are, a cache of them, and the references in them.

Rendering the reference takes longer than all else that a server does between an edit and a page, so
a server renders a module only when it changed. A build renders all of it, so that it reports
whatever is wrong with a docstring.
"""

import ast
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path

import griffe

from slp_transformer._internal.plugins import PACKAGES as OURS

MODULES = [
    *("attention", "multi_head", "layer_norm", "feedforward", "block", "embedding", "config"),
    *("language_model", "encoder_decoder", "masks", "cache", "loss", "sampling", "scaling_laws"),
    *("model_sizes", "lora", "hooks"),
]
PACKAGES = [
    *("modern", "generation", "interpret", "data", "training", "slp_guitar", "tasks", "plotting"),
    "check",
]
LONG = ("slp_guitar.fingering", *(f"check.{n}" for n in ("diagnosing", "grading", "own", "tables")))
"""Packages within packages that are too long for one page."""
APART = ("cli.train", "cli.train_options")
"""Modules with a page of their own, without which their package's would be too long."""


@dataclass(frozen=True)
class ApiPage:
    """One page of the reference.

    Attributes:
        name: the module or package, as `short_name`: "attention", "slp_guitar.timing".
        modules: the dotted names of what the page describes, its own first.
    """

    name: str
    modules: tuple[str, ...]

    @property
    def path(self) -> str:
        """The page's source."""
        return f"api/{self.name}.md"

    @property
    def is_package(self) -> bool:
        """Tell if it is a folder."""
        return self.name in PACKAGES or len(self.modules) > 1

    @property
    def is_listed(self) -> bool:
        """Tell if the navigation names it; others are found by links and by the search.

        People use `cli` through commands, which have pages of their own.
        """
        return self.name in MODULES or self.name in PACKAGES


def arranged(modules: dict) -> list[ApiPage]:
    """All pages: modules of equations, packages, what is inside these, and what is not listed."""
    inside: dict[str, list[str]] = {}
    for name in sorted(modules):
        inside.setdefault(page_of(name), []).append(name)
    entries = [ApiPage(name, tuple(names)) for name, names in inside.items()]
    order = [*MODULES, *PACKAGES]

    def place(entry: ApiPage) -> tuple:
        known = order.index(entry.name) if entry.name in order else len(order)
        return (known, not entry.is_package, entry.name)

    return sorted(entries, key=place)


def short_name(name: str) -> str:
    """A name less the package of the book's code, whose pages need not say it."""
    return name.removeprefix("slp_transformer.")


def full_name(page: str) -> str:
    """The module or package that a page is named after: what `short_name` shortened."""
    return page if page.partition(".")[0] in OURS else f"slp_transformer.{page}"


def page_of(module: str) -> str:
    """The name of the page on which a module stands; each module of a package has its own."""
    parts = short_name(module).split(".")
    if (first_two := ".".join(parts[:2])) in LONG:
        return ".".join(parts[:3])
    return first_two if parts[0] in (*PACKAGES, "_internal") or first_two in APART else parts[0]


def is_within(module: str, entry: ApiPage) -> bool:
    """Tell if a page is about a module, or about a package that has it."""
    return module in entry.modules or module.startswith(f"{entry.modules[0]}.")


def url_of(module: str) -> str:
    """Return the address of a module."""
    name = page_of(module)
    return f"api/{name}/" if short_name(module) == name else f"api/{name}/#{module}"


def heading(entry: ApiPage) -> str:
    """The heading of a page, to which references to its module lead."""
    return f"# <code>{entry.name}</code> {{ #{full_name(entry.name)} }}"


def markdown(entry: ApiPage, members: dict[str, list[str]], inside: dict[str, str]) -> str:
    """A page for mkdocstrings: what a package offers, or a module, then those below it.

    Args:
        entry: what the page is about.
        members: what each module has that its package does not offer.
        inside: the pages of a package's modules, each with its first sentence.
    """
    own = full_name(entry.name)
    lines = [heading(entry), "", f"::: {own}", ""]
    if "." in entry.name:
        package = entry.name.partition(".")[0]
        lines[1:1] = ["", f"A module of [`{package}`]({package}.md)."]
        lines[5:] = ["    options:", f"      members: {members[own] or 'false'}", ""]
    if inside:
        lines += ["## Modules", ""]
        lines += [f"- [`{name}`]({name}.md): {text}" for name, text in inside.items()]
        lines += [""]
    for module in entry.modules[1:]:
        title = short_name(module).replace(".", ".<wbr>")  # where a line may break
        names = ", ".join(members[module])
        lines += [f"## <code>{title}</code> {{ #{module} }}", "", f"::: {module}", "    options:"]
        lines += [
            "      heading_level: 3",
            f"      members: [{names}]" if names else "      members: false",
            "",
        ]
    return "\n".join(lines)


ID = re.compile(rf'\bid="((?:{"|".join(OURS)})\b[\w.]*)"')


@lru_cache(maxsize=256)
def ids_in(content: str) -> list[str]:
    """Return the names of the objects that a page describes."""
    return ID.findall(content)


class Reference:
    """The pages of the reference by their path, as they were when their module last changed."""

    def __init__(self, path: Path):
        self.path = path
        try:
            self.pages: dict[str, dict] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            self.pages = {}

    def page(self, uri: str, key: str) -> dict | None:
        """Return what is kept of a page, if its key is still the same."""
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
    """Hash what a page depends on: its modules' source, settings, this code, mkdocstrings."""
    digest = hashlib.sha256(_code_digest())
    for path in (*modules, settings):
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:24]


@cache  # this code is that which runs, whatever its files say by now
def _code_digest() -> bytes:
    code = [path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))]
    return hashlib.sha256(b"\0".join([*code, version("mkdocstrings-python").encode()])).digest()


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


class ShapeStrings(griffe.Extension):
    """Quotes each shape once more, so that the page shows `Float[Tensor, "... #N #M"]` as written.

    Of a field that is a `setting` the page shows the default, as of any other.

    Griffe, which reads the package for mkdocstrings, takes a string in an annotation for a type
    that is defined further below, and parses it as Python: "... #N #M" as three dots and a comment.
    """

    def on_module_node(self, *, node: ast.AST, **kwargs) -> None:
        """Change a module's syntax tree before it is visited; the source on the page stays."""
        for found in ast.walk(node):
            if isinstance(found, ast.AnnAssign) and isinstance(found.value, ast.Call):
                if getattr(found.value.func, "id", "") == "setting":
                    default = found.value.args[0]
                    found.value = None if ast.unparse(default) == "MISSING" else default
            shape_types = ("Bool", "Float", "Int")
            if isinstance(found, ast.Subscript) and getattr(found.value, "id", "") in shape_types:
                for part in ast.walk(found.slice):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        part.value = repr(part.value)

    def on_module_members(self, *, node: ast.AST, mod: griffe.Module, **kwargs) -> None:
        """Take a name that is imported as itself for exported, as type checkers do."""
        names = [
            alias.name
            for found in ast.walk(node)
            if isinstance(found, ast.ImportFrom)
            for alias in found.names
            if alias.asname == alias.name
        ]
        mod.exports = names or mod.exports
