"""Draws wiring: boxes that lead to their equations, arrows, sums, frames; in SVG, without a color.

What a thing looks like is the style sheet's matter (`.slp-wiring`), so a drawing follows the page's
scheme, and paper. Letters have 13 pixels; a drawing for a phone is at most 350 pixels wide.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from math import hypot

# Where an equation is found: the address and what is said of it; None where it is not.
Link = Callable[[str], tuple[str, str] | None]
_LINE = 15.0  # from one line of text to the next


@dataclass
class Drawing:
    """A drawing that grows with each call.

    Attributes:
        width: in pixels, at the size in which its letters have 13.
        height: likewise.
        link: where an equation is found.
        here: the names of the parts that stand out.
    """

    width: float
    height: float
    link: Link
    here: frozenset[str] = frozenset()
    _back: list[str] = field(default_factory=list)
    _front: list[str] = field(default_factory=list)

    def box(
        self,
        center: tuple[float, float],
        size: tuple[float, float],
        lines: Sequence[str] | str,
        slug: str = "",
        part: str = "",
        kind: str = "box",
    ) -> None:
        """A named box; it leads to its equation, if it has one."""
        (x, y), (w, h) = center, size
        lines = [lines] if isinstance(lines, str) else list(lines)
        shape = (
            f'<rect class="w-{kind}" x="{x - w / 2:.0f}" y="{y - h / 2:.0f}" '
            f'width="{w:.0f}" height="{h:.0f}" rx="4"/>'
        )
        self._part(shape + self._lines(x, y, lines), " ".join(lines), slug, part)

    def plus(self, center: tuple[float, float], slug: str = "", part: str = "") -> None:
        """A sum; what the pointer has to meet is larger than the circle."""
        x, y = center
        shape = (
            f'<circle class="w-room" cx="{x:.0f}" cy="{y:.0f}" r="13"/>'
            f'<circle class="w-box" cx="{x:.0f}" cy="{y:.0f}" r="10"/>'
            f'<path class="w-line" d="M{x - 5:.0f} {y:.0f}h10M{x:.0f} {y - 5:.0f}v10"/>'
        )
        self._part(shape, "sum", slug, part)

    def words(self, at: tuple[float, float], lines: Sequence[str] | str, **how: str) -> None:
        """Words that lead nowhere; `anchor` is start, middle or end, `kind` quiet or none."""
        lines = [lines] if isinstance(lines, str) else list(lines)
        self._front.append(self._lines(*at, lines, **how))

    def part_words(self, at: tuple[float, float], lines: Sequence[str], part: str) -> None:
        """Words that may stand out, as a part does."""
        mark = ' class="w-here"' if part in self.here else ""
        self._front.append(f"<g{mark}>{self._lines(*at, lines)}</g>")

    def line(self, *points: tuple[float, float], kind: str = "line", arrow: bool = True) -> None:
        """A line through points, with a head at its end."""
        path = "M" + "L".join(f"{x:.0f} {y:.0f}" for x, y in points)
        self._back.append(f'<path class="w-{kind}" d="{path}"/>')
        if arrow:
            (a, b), (x, y) = points[-2:]
            far = hypot(x - a, y - b) or 1.0
            along, up = (x - a) / far, (y - b) / far
            sides = [(x - 6 * along + s * up, y - 6 * up - s * along) for s in (3, -3)]
            corners = "L".join(f"{p:.1f} {q:.1f}" for p, q in [(x, y), *sides])
            self._back.append(f'<path class="w-tip" d="M{corners}z"/>')

    def frame(self, corner: tuple[float, float], size: tuple[float, float], part: str = "") -> None:
        """A frame around what belongs together."""
        (x, y), (w, h) = corner, size
        mark = " w-here" if part and part in self.here else ""
        self._back.insert(
            0,
            f'<rect class="w-frame{mark}" x="{x:.0f}" y="{y:.0f}" width="{w:.0f}" '
            f'height="{h:.0f}" rx="8"/>',
        )

    def svg(self, name: str, kind: str = "") -> str:
        """The drawing, under the name that a screen reader reads out."""
        size = f'viewBox="0 0 {self.width:.0f} {self.height:.0f}"'
        style = f"--w: {self.width:.0f}px"
        return (
            f'<svg class="slp-wiring {kind}" {size} style="{style}" role="group" '
            f'aria-label="{escape(name, quote=True)}">'
            f"{''.join(self._back)}{''.join(self._front)}</svg>"
        )

    def _part(self, shape: str, words: str, slug: str, part: str) -> None:
        mark = ' class="w-here"' if part and part in self.here else ""
        found = self.link(slug) if slug else None
        if found:
            address, said = found
            label = escape(f"{words}: {said}", quote=True)
            shape = f'<a href="{escape(address)}" aria-label="{label}">{shape}</a>'
        self._front.append(f"<g{mark}>{shape}</g>")

    @staticmethod
    def _lines(x, y, lines: Sequence[str], anchor: str = "middle", kind: str = "") -> str:
        top = y - _LINE * (len(lines) - 1) / 2 + 4.5
        mark = f' class="w-{kind}"' if kind else ""
        return "".join(
            f'<text{mark} x="{x:.0f}" y="{top + _LINE * k:.1f}" text-anchor="{anchor}">'
            f"{escape(line)}</text>"
            for k, line in enumerate(lines)
        )
