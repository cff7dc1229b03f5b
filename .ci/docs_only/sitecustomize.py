"""Hides what the extra `docs` does not install, so that the site is built without it.

Python imports this as it starts, in chapters' kernels too, where PYTHONPATH names its folder.
"""

import sys
import tomllib
from importlib import metadata
from importlib.machinery import PathFinder
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

SETTINGS = Path(__file__).parents[2] / "pyproject.toml"
PROJECT = tomllib.loads(SETTINGS.read_text("utf-8"))["project"]


def required(name: str, extra: str) -> list[str]:
    """What a distribution asks for, of itself or for one of its extras."""
    if name == PROJECT["name"]:
        return PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
    try:
        return metadata.requires(name) or []
    except metadata.PackageNotFoundError:  # for another system
        return []


def installed(name: str, extras: set[str]) -> set[str]:
    """The distributions that pip would install, by their names."""
    todo = [(canonicalize_name(name), extra) for extra in {"", *extras}]
    seen = set(todo)
    while todo:
        name, extra = todo.pop()
        for requirement in map(Requirement, required(name, extra)):
            if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
                continue
            found = {(canonicalize_name(requirement.name), e) for e in {"", *requirement.extras}}
            todo += found - seen
            seen |= found
    return {name for name, _ in seen} | {"pip", "setuptools"}


VISIBLE = installed(PROJECT["name"], {"docs"})
HIDDEN = {
    module
    for module, owners in metadata.packages_distributions().items()
    if VISIBLE.isdisjoint(map(canonicalize_name, owners))
}


class Finder(PathFinder):
    """Finds what is visible."""

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if fullname.partition(".")[0] in HIDDEN:
            return None
        return super().find_spec(fullname, path, target)


sys.meta_path = [Finder if finder is PathFinder else finder for finder in sys.meta_path]
