"""What a file holds and a tab does not: named by construction, for every kind of file.

`contents.toml` lists for each kind what its reader reads and what may be skipped without loss, with
the reason. Whatever else is in a file is left out, and named as the file itself names it. A reader
looks into what it reads alone, so what nobody has heard of is named as well.
"""

import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from functools import cache
from importlib.resources import files
from typing import Any

TABLES: dict[str, Any] = tomllib.loads(
    files("slp_guitar").joinpath("contents.toml").read_text(encoding="utf-8")
)
Children = Callable[[Any], Iterable[tuple[tuple[str, ...], Any]]]
"""What is in a thing: for each part its names, the one to call it by first; and the part."""


class Contents:
    """What a kind of file may hold, by name.

    Attributes:
        read: what its reader reads; what is in that is looked into.
        skipped: what may be left out without loss, each with its reason.
    """

    def __init__(self, kind: str, children: Children = lambda thing: ()):
        """Take the lists of `contents.toml`.

        Args:
            kind: a table of it.
            children: what is in a thing of such a file.
        """
        self.children: Children = children
        self.read: frozenset[str] = frozenset(TABLES[kind]["read"])
        reasons = TABLES[kind]["skipped"].items()
        self.skipped: dict[str, str] = {name: why for why, names in reasons for name in names}

    def find_unread(self, thing: Any) -> list[str]:
        """Return what in a thing is neither read nor to be skipped, by name, as often as it is."""
        found, inside = [], [thing]
        while inside:
            for names, part in self.children(inside.pop()):
                if self.read.intersection(names):
                    inside.append(part)
                elif self.leaves_out(*names):
                    found.append(names[0])
        return found

    def leaves_out(self, *names: str) -> bool:
        """Return whether what has these names is neither read nor to be skipped."""
        return self.read.isdisjoint(names) and self.skipped.keys().isdisjoint(names)


class Omissions(dict[str, tuple[int, int]]):
    """By what was left out: how often it was, and the first bar, 0 for the whole piece."""

    def record(self, what: str, bar_number: int = 0, count: int = 1) -> None:
        """Count something that is left out.

        Args:
            what: what, and what is done instead: "grace notes are left out".
            bar_number: the bar, from 1; 0 for the whole piece.
            count: how many.
        """
        before, first = self.get(what, (0, bar_number))
        if count:
            self[what] = before + count, first

    def record_unread(self, names: Iterable[str], bar_number: int = 0) -> None:
        """Count what `Contents.find_unread` has found."""
        for name in names:
            self.record(f"{name} left out", bar_number)

    def sentences(self) -> list[str]:
        """Return what is left out, how often if more than once, and where first."""
        return [
            (f"{count} " if count > 1 else "") + what + (f" (the first in bar {n})" if n else "")
            for what, (count, n) in self.items()
        ]


def iter_xml_parts(element: ET.Element) -> Iterator[tuple[tuple[str, ...], ET.Element]]:
    """Yield the elements and attributes in an element.

    An element has the name of its tag, with its type or name where that says what it is
    (``Property Brush``); also behind its parent's (``Beat/Properties``), and before what it holds
    (``Dynamic=MF``, ``Lyrics=`` for nothing). An attribute is ``sound@tempo``, or ``@color``.
    """
    for child in element:
        tag = child.tag
        label = child.get("name") or (child.findtext("Type") if tag == "Automation" else None)
        whole = f"{tag} {label}" if label else tag
        value = "" if len(child) else (child.text or "").strip()
        if len(child):
            parts = (
                (each.text or "").strip() + "".join(each.attrib.values()) for each in child.iter()
            )
            value = "".join(parts).removeprefix("".join(child.attrib.values()))
        yield (whole, tag, f"{element.tag}/{tag}", f"{tag}={value}", f"{whole}={value}"), child
    for name, value in element.attrib.items():
        own = f"{element.tag}@{name}"
        yield (own, f"@{name}", f"{own}={value}"), _NOTHING


_NOTHING = ET.Element("nothing")


def iter_changed_fields(thing: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the fields of an object of attrs that differ from their defaults: ``Note.velocity``.

    One of several kinds is also called ``NoteEffect.harmonic NaturalHarmonic``, and one with a
    value ``MixTableChange.volume=13``.
    """
    for name, default in _usual_fields(type(thing)):  # type: ignore[arg-type]
        value = getattr(thing, name)
        for each in [] if value == default else value if isinstance(value, list) else [value]:
            whole = f"{type(thing).__name__}.{name}"
            kind = each.name if isinstance(each, Enum) else type(each).__name__
            yield (whole, f"{whole} {kind}", f"{whole}={getattr(each, 'value', each)}"), each


@cache
def _usual_fields(kind: type) -> list[tuple[str, Any]]:
    """Return the fields of a class of attrs, with their defaults.

    Those that do not count when objects are compared are not among them: they say where one is.
    """
    fields = [each for each in getattr(kind, "__attrs_attrs__", ()) if each.eq]
    made = ((each.name, getattr(each.default, "factory", None), each) for each in fields)
    return [
        (name, make() if make and not each.default.takes_self else each.default)
        for name, make, each in made
    ]
