"""The book's equations: slugs, titles and the numbers of each draft, from `equations.toml`."""

import re
import tomllib
from functools import cache
from importlib.resources import files

FILE = files("slp_transformer") / "equations.toml"
SLUG = r"`([^`\s]+)`"
GROUP = re.compile(rf"{SLUG}(?:(?:, and|,| and| to) {SLUG})*")
NUMBER = re.compile(r"\d+\.\d+(?:-\d+\.\d+)?")


class Equations:
    """All equations of the book that the project names.

    Attributes:
        drafts: the names of the drafts by their keys, oldest first.
        chapters: of each draft the chapter of most equations: its number, title and months.
        slugs: what the file says of each equation, in the order of the book.
    """

    def __init__(self, text: str):
        """Read what a file says."""
        content = tomllib.loads(text)
        self.drafts: dict[str, str] = content["drafts"]
        self.chapters: dict[str, dict[str, object]] = content.get("chapters", {})
        self.slugs: dict[str, dict[str, str]] = content["equations"]

    def format_place(self, *slugs: str, span: bool = False) -> str:
        """Return the place of equations in the book: "8.33 · 7.34", "7.53 in the Aug 2026 draft".

        Args:
            slugs: the equations.
            span: whether they are the ends of a range.
        """
        found = {}
        for draft, name in self.drafts.items():
            own = [self.slugs[slug][draft] for slug in slugs if draft in self.slugs[slug]]
            own = list(dict.fromkeys(own))
            if own:
                found[name] = f"{own[0]}-{own[-1]}" if span and len(own) > 1 else ", ".join(own)
        if len(found) == len(self.drafts):
            return " · ".join(found.values())
        places = [f"{numbers} in the {name}" for name, numbers in found.items()]
        return ", ".join(places) or self.slugs[slugs[0]].get("where", "")

    def numbers_of(self, slug: str, *drafts: str) -> list[str]:
        """Return the numbers of an equation in some drafts or all; those of a range one by one."""
        found = []
        for draft in drafts or self.drafts:
            number = self.slugs[slug].get(draft, "")
            if NUMBER.fullmatch(number):
                chapter = number.partition(".")[0]
                first, last = (end.partition(".")[2] for end in (number.split("-") * 2)[:2])
                found += [f"{chapter}.{n}" for n in range(int(first), int(last) + 1)]
        return found

    def slugs_named_in(self, text: str) -> list[str]:
        """Return the slugs that a text names in backticks; "`ln-mean` to `ln`" names four."""
        found, order = [], list(self.slugs)
        for group in GROUP.finditer(text):
            slugs = [slug for slug in re.findall(SLUG, group[0]) if slug in self.slugs]
            found += slugs
            for first, last in re.findall(rf"{SLUG} to {SLUG}", group[0]):
                if first in self.slugs and last in self.slugs:
                    found += order[order.index(first) : order.index(last) + 1]
        return list(dict.fromkeys(found))

    def add_numbers_to(self, text: str) -> str:
        """Return a text whose slugs in backticks are followed by their numbers."""

        def cited(group: re.Match[str]) -> str:
            slugs = re.findall(SLUG, group[0])
            if not all(slug in self.slugs for slug in slugs):
                return group[0]
            place = self.format_place(*slugs, span=" to `" in group[0])
            return group[0].replace("`", "") + (f" ({place})" if place else "")

        return GROUP.sub(cited, text)


@cache
def load_equations() -> Equations:
    """Return the equations of the package's own file."""
    return Equations(FILE.read_text(encoding="utf-8"))
