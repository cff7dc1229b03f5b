"""Attention as pictures: a heat map for every layer and head, in a notebook or in a file.

The SVG is written here rather than by Matplotlib, so that the files need nothing but the package,
each weight can be read off where the pointer stands, and a page of hundreds of maps stays small.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import torch

from slp_transformer._internal.atomic_write import atomic_write
from slp_transformer.plotting.canvas import POSITIVE_COLOR

_CELL_PX, _GAP_PX, _LETTER_WIDTH_PX, _LINE_HEIGHT_PX = 14, 12, 6.8, 20  # in pixels
_MIN_SHOWN_WEIGHT = 0.01  # weights below are left blank

_PAGE_TEMPLATE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font-family: system-ui, sans-serif; margin: 1.5em; }}
section {{ overflow-x: auto; }}
svg {{ display: block; }}
</style>
</head>
<body>
<h1>{title}</h1>
{sections}
</body>
</html>
"""


@dataclass
class AttentionMaps:
    """The weights of one kind of attention, in every layer and head.

    Attributes:
        title: which attention, above its maps.
        weights: [layers × heads × rows × columns]: rows look, columns are looked at.
        rows: a word for each row.
        columns: a word for each column.
        note: a sentence below the title.

    Raises:
        ValueError: if there are no such weights, or not one word for each row and column.
    """

    title: str
    weights: Any
    rows: Sequence[str]
    columns: Sequence[str]
    note: str = ""

    def __post_init__(self) -> None:
        self.values = torch.as_tensor(self.weights, dtype=torch.float64).detach().cpu()
        if self.values.dim() != 4 or not self.values.numel():
            raise ValueError(
                f"The weights of {self.title!r} must be [layers × heads × rows × columns], not "
                f"{list(self.values.shape)}."
            )
        for what, words, size in zip(
            ("row", "column"), (self.rows, self.columns), self.values.shape[2:], strict=True
        ):
            if len(words) != size:
                raise ValueError(
                    f"The weights of {self.title!r} have {size} {what}s, but {len(words)} words "
                    f"were given for them; give one for each {what}."
                )


class AttentionFigure:
    """Maps of attention; an SVG in the color of its page where a notebook shows it."""

    def __init__(self, parts: Sequence[AttentionMaps], title: str = "Attention"):
        self.parts, self.title = list(parts), title

    def __repr__(self) -> str:
        return "<AttentionPicture>"

    def svg(self) -> str:
        """Return all maps in one SVG element."""
        inside, y, width = [], 0.0, 0.0
        for drawing in [_MapsDrawing(part, titled=True) for part in self.parts]:
            inside.append(f'<g transform="translate(0 {y:g})">{drawing.to_svg()}</g>')
            y, width = y + drawing.height + _GAP_PX, max(width, drawing.width)
        return _svg_element(width, y, "".join(inside))

    def html(self) -> str:
        """Return a self-contained page."""
        sections = []
        for part in self.parts:
            drawing, title = _MapsDrawing(part, titled=False), escape(part.title)
            note = f"<p>{escape(part.note)}</p>\n" if part.note else ""
            svg = _svg_element(drawing.width, drawing.height, drawing.to_svg())
            svg = svg.replace("<svg ", f'<svg role="img" aria-label="{title}" ', 1)
            sections.append(f"<h2>{title}</h2>\n{note}<section>\n{svg}\n</section>")
        return _PAGE_TEMPLATE.format(title=escape(self.title), sections="\n".join(sections))

    def _repr_html_(self) -> str:
        return f'<div class="slp-figure">{self.svg()}</div>'

    def save(self, path: str | Path) -> None:
        """Write a page (.html) or a drawing (.svg), whole.

        Raises:
            ValueError: if the name ends in something else.
        """
        path = Path(path)
        contents = {".html": self.html, ".svg": self.svg}
        if path.suffix not in contents:
            raise ValueError(f"Attention is drawn as .html or .svg, and {path.name} is neither.")
        text = contents[path.suffix]()
        if path.suffix == ".svg":  # alone it has no page whose color it could take
            name = f'role="img" aria-label="{escape(self.title)}"'
            text = text.replace(
                'style="',
                f'{name} style="background: white; color: black; font-family: sans-serif; ',
                1,
            )
        with atomic_write(path) as unfinished:
            unfinished.write_text(text + "\n", encoding="utf-8")


def attention_figure(*parts: AttentionMaps, title: str = "Attention") -> AttentionFigure:
    """Draw the weights of attention, every layer and head of each part.

    Args:
        parts: one for each kind of attention.
        title: of the page, and for those who do not see the drawing.

    Raises:
        ValueError: if there is none.
    """
    if not parts:
        raise ValueError("plotting.attention needs at least one plotting.Maps to draw.")
    return AttentionFigure(parts, title)


class _MapsDrawing:
    """The maps of one part: a row for each layer, a column for each head.

    Attributes:
        width: of all of it, in pixels.
        height: likewise.
    """

    def __init__(self, part: AttentionMaps, titled: bool):
        self.part = part
        self.layers, self.heads, rows, columns = part.values.shape
        self.title = [part.title, part.note] if part.note else [part.title]
        self.title = self.title if titled else []
        self.top = _LINE_HEIGHT_PX * len(self.title)
        self.left = _LETTER_WIDTH_PX * (max(map(len, part.rows)) + 1)
        self.above = _LETTER_WIDTH_PX * (max(map(len, part.columns)) + 1) + _LINE_HEIGHT_PX
        self.map_width, self.map_height = columns * _CELL_PX, rows * _CELL_PX
        self.step = max(self.map_width, _LETTER_WIDTH_PX * 16) + _GAP_PX
        longest = _LETTER_WIDTH_PX * max(map(len, self.title), default=0)
        self.width = max(self.left + self.heads * self.step, longest)
        self.height = self.top + self.layers * (self.above + self.map_height + _GAP_PX)

    def to_svg(self) -> str:
        """Return every map with its words, and the title above them if there is one."""
        parts = []
        for k, line in enumerate(self.title):
            how = 'font-weight="bold" font-size="13"' if k == 0 else 'font-size="11"'
            parts.append(_svg_text(0, _LINE_HEIGHT_PX * (k + 0.7), line, how))
        y = self.top + self.above
        for layer in range(self.layers):
            for head in range(self.heads):
                x = self.left + head * self.step
                parts.append(f'<g transform="translate({x:g} {y:g})">')
                parts += [*self._words(layer, head), *self._cells(layer, head), "</g>"]
            y += self.above + self.map_height + _GAP_PX
        return "".join(parts)

    def _words(self, layer: int, head: int) -> list[str]:
        small, right = 'font-size="11"', 'font-size="11" text-anchor="end"'
        said = [
            _svg_text(
                0, _LINE_HEIGHT_PX * 0.7 - self.above, f"layer {layer + 1}, head {head + 1}", small
            )
        ]
        for j, word in enumerate(self.part.columns):
            turned = f'transform="translate({(j + 0.7) * _CELL_PX:g} -4) rotate(-90)" {small}'
            said.append(f"<text {turned}>{escape(word)}</text>")
        for i, word in enumerate(self.part.rows if head == 0 else ()):
            said.append(_svg_text(-4, (i + 0.75) * _CELL_PX, word, right))
        return said

    def _cells(self, layer: int, head: int) -> list[str]:
        frame = f'width="{self.map_width}" height="{self.map_height}"'
        cells = [f'<rect {frame} fill="currentColor" fill-opacity="0.06"/>']
        for i, weights in enumerate(self.part.values[layer, head].tolist()):
            for j, weight in enumerate(weights):
                if weight >= _MIN_SHOWN_WEIGHT:
                    place = f'x="{j * _CELL_PX}" y="{i * _CELL_PX}" '
                    place += f'width="{_CELL_PX}" height="{_CELL_PX}"'
                    told = f"{self.part.rows[i]} → {self.part.columns[j]}: {weight:.2f}"
                    cells.append(
                        f'<rect {place} fill="{POSITIVE_COLOR}" fill-opacity="{weight:.2f}">'
                        f"<title>{escape(told)}</title></rect>"
                    )
        return cells


def _svg_text(x: float, y: float, text: str, how: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" {how}>{escape(text)}</text>'


def _svg_element(width: float, height: float, inside: str) -> str:
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    # Drawn smaller, its letters would be too small to read: the figure scrolls instead.
    how = f'style="min-width: {width:.0f}px" fill="currentColor"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {how}>{inside}</svg>'
