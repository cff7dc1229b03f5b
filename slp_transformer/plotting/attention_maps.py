"""Attention as pictures: a heat map for every layer and head, in a notebook or in a file.

The SVG is written here rather than by Matplotlib, so that the files need nothing but the package,
each weight can be read off where the pointer stands, and a page of hundreds of maps stays small.
"""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

import torch

from slp_transformer._internal.atomic_write import write_file
from slp_transformer._internal.shape_types import Float, Tensor
from slp_transformer.encoder_decoder import EncoderDecoder
from slp_transformer.interpret.translation_attention import translation_attention_weights
from slp_transformer.plotting.canvas import POSITIVE_COLOR

_CELL_PX, _GAP_PX, _LETTER_WIDTH_PX, _LINE_HEIGHT_PX = 14, 12, 6.8, 20
_MIN_SHOWN_WEIGHT = 0.01  # weights below are left blank

_PAGE_TEMPLATE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font-family: system-ui, sans-serif; margin: 1.5em; overflow-x: auto; }}
</style>
</head>
<body>
<h1>{title}</h1>
{svg}
</body>
</html>
"""


class AttentionMaps(NamedTuple):
    """The weights of one kind of attention, in every layer and head.

    Attributes:
        title: which attention, above its maps.
        note: a sentence below the title.
        weights: rows look, columns are looked at.
        rows: a word for each row.
        columns: a word for each column.
    """

    title: str
    note: str
    weights: Float[Tensor, "layers heads rows columns"]
    rows: Sequence[str]
    columns: Sequence[str]


class AttentionFigure:
    """Maps of attention; an SVG in the color of its page where a notebook shows it."""

    def __init__(self, parts: Sequence[AttentionMaps], title: str):
        self.parts: list[AttentionMaps] = list(parts)
        self.title: str = title

    def __repr__(self) -> str:
        return f"<AttentionFigure {self.title!r}>"

    def svg(self, style: str = "") -> str:
        """Return all maps in one SVG element, with more of a style than its least width."""
        drawn, height, width = [], 0.0, 0.0
        for part in self.parts:
            inside, right, bottom = _maps_to_svg(part)
            drawn.append(f'<g transform="translate(0 {height:g})">{inside}</g>')
            height, width = height + bottom + _GAP_PX, max(width, right)
        size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
        # Drawn smaller, its letters would be too small to read: the figure scrolls instead.
        style = f'style="{style}min-width: {width:.0f}px" fill="currentColor"'
        name = f'role="img" aria-label="{escape(self.title)}"'
        inside = "".join(drawn)
        return f'<svg xmlns="http://www.w3.org/2000/svg" {name} {size} {style}>{inside}</svg>'

    def _repr_html_(self) -> str:
        return f'<div class="slp-figure">{self.svg()}</div>'

    def save(self, path: str | Path) -> None:
        """Write a page (.html) or a drawing (.svg), whole or not at all.

        Raises:
            ValueError: if the name ends in something else.
        """
        path = Path(path)
        if path.suffix.lower() == ".html":
            text = _PAGE_TEMPLATE.format(title=escape(self.title), svg=self.svg())
        elif path.suffix.lower() == ".svg":  # alone it has no page whose colors it could take
            text = self.svg("background: white; color: black; font-family: sans-serif; ") + "\n"
        else:
            raise ValueError(f"Attention is drawn as .html or .svg, and {path.name} is neither.")
        write_file(path, text)


def _maps_to_svg(part: AttentionMaps) -> tuple[str, float, float]:
    """Draw the maps of one part, a row for each layer; return them with their width and height."""
    layers, heads, rows, columns = part.weights.shape
    drawn = [
        _text_element(0, _LINE_HEIGHT_PX * 0.7, part.title, 'font-weight="bold" font-size="13"')
    ]
    drawn.append(_text_element(0, _LINE_HEIGHT_PX * 1.7, part.note, 'font-size="11"'))
    top = _LINE_HEIGHT_PX * (2 if part.note else 1)
    left = _LETTER_WIDTH_PX * (max(map(len, part.rows)) + 1)
    above = _LETTER_WIDTH_PX * (max(map(len, part.columns)) + 1) + _LINE_HEIGHT_PX
    step_x = max(columns * _CELL_PX, _LETTER_WIDTH_PX * 16) + _GAP_PX
    step_y = above + rows * _CELL_PX + _GAP_PX
    for layer in range(layers):
        y = top + above + layer * step_y
        for i, word in enumerate(part.rows):
            place = left - 4, y + (i + 0.75) * _CELL_PX
            drawn.append(_text_element(*place, word, 'font-size="11" text-anchor="end"'))
        for head in range(heads):
            drawn.append(f'<g transform="translate({left + head * step_x:g} {y:g})">')
            name = f"layer {layer + 1}, head {head + 1}"
            drawn.append(_text_element(0, _LINE_HEIGHT_PX * 0.7 - above, name, 'font-size="11"'))
            for j, word in enumerate(part.columns):
                turned = f"translate({(j + 0.7) * _CELL_PX:g} -4) rotate(-90)"
                drawn.append(_text_element(0, 0, word, f'transform="{turned}" font-size="11"'))
            drawn += [*_draw_cells(part, part.weights[layer, head].tolist()), "</g>"]
    longest = _LETTER_WIDTH_PX * max(len(part.title), len(part.note))
    return "".join(drawn), max(left + heads * step_x, longest), top + layers * step_y


def _draw_cells(part: AttentionMaps, weights: list[list[float]]) -> list[str]:
    frame = f'width="{len(part.columns) * _CELL_PX}" height="{len(part.rows) * _CELL_PX}"'
    cells = [f'<rect {frame} fill="currentColor" fill-opacity="0.06"/>']
    for i, row in enumerate(weights):
        for j, weight in enumerate(row):
            if weight >= _MIN_SHOWN_WEIGHT:
                place = f'x="{j * _CELL_PX}" y="{i * _CELL_PX}" '
                place += f'width="{_CELL_PX}" height="{_CELL_PX}"'
                name = escape(f"{part.rows[i]} → {part.columns[j]}: {weight:.2f}")
                fill = f'fill="{POSITIVE_COLOR}" fill-opacity="{weight:.2f}"'
                cells.append(f"<rect {place} {fill}><title>{name}</title></rect>")
    return cells


def _text_element(x: float, y: float, text: str, how: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" {how}>{escape(text)}</text>' if text else ""


def translation_attention_figure(
    model: EncoderDecoder,
    source: Sequence[int],
    target: Sequence[int],
    source_words: Sequence[str],
    target_words: Sequence[str],
) -> AttentionFigure:
    """Draw all three attentions of an encoder-decoder, every layer and head.

    A notebook shows them, and `save("attention.html")` or `save("attention.svg")` keeps them.

    Args:
        model: an encoder-decoder.
        source: ids that the encoder reads.
        target: ids of a complete translation, from its start token to its last, which is only
            written.
        source_words: a word for each id of the source.
        target_words: a word for each id of the target, the start token included.

    Raises:
        ValueError: if the target is not a start token and more, a sentence is too long, an id is
            outside its vocabulary, or there is not one word for each id.
    """
    if len(target) < 2:
        raise ValueError("A translation has a start token and one word more, or there is no look.")
    for name, ids, words in (("source", source, source_words), ("target", target, target_words)):
        if len(words) != len(ids):
            raise ValueError(f"There are {len(ids)} ids of the {name} and {len(words)} words.")
    device = next(model.parameters()).device
    read, written = target_words[:-1], target_words[1:]
    rows = [torch.as_tensor(each, device=device) for each in (source, target[:-1])]
    weights = translation_attention_weights(model, *rows)
    across = "A row for each word as it is written: where in the source the decoder looks."
    both = "A row for each word of the source: it looks both ways."
    back = "A row for each word as it is read: it looks at itself and back."
    parts = [
        ("Cross-attention", across, weights["cross"], written, source_words),
        ("Encoder self-attention", both, weights["encoder"], source_words, source_words),
        ("Decoder self-attention", back, weights["decoder"], read, read),
    ]
    title = "Attention of every layer and head"
    return AttentionFigure([AttentionMaps(*part) for part in parts], title)
