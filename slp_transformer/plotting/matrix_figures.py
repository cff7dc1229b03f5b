"""Draw matrices: their cells, labels, names and shapes.

A page gets each matrix as a picture of its own, so that those which do not fit beside each other
stand below each other; a file gets all of them as one.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from slp_transformer.plotting.canvas import (
    INK,
    LARGE,
    NEGATIVE,
    POSITIVE,
    SMALL,
    WIDE,
    box,
    canvas,
    longest,
    number,
    svg_of,
    text,
    width_of,
)

_LINE = 19.0  # the height of a line of small letters, in pixels
_PLAIN = 22.0  # the side of a cell without a number, at most
_MANY, _SOME = 900, 200  # from so many cells on they are drawn as pixels; the first with numbers
_APART = 13.0  # from one label to the next, at least


def draw_panels(parts: Sequence[Any], title: str) -> Any:
    """Draw what `plotting.panels` was given, side by side on one canvas."""
    boxes = [part for part in parts if not isinstance(part, str)]
    head, foot = _head(boxes), _foot(boxes)
    tallest = max(_height(panel) for panel in boxes)
    widths = [_sign_width(part) if isinstance(part, str) else _width(part) for part in parts]
    gap = 10.0
    width = sum(widths) + gap * (len(parts) - 1)
    top = tallest / 2 + head + (_LINE + 8 if title else 0.0)
    axes = canvas(width, -tallest / 2 - foot, top)
    if title:
        text(axes, width / 2, top - 10, title, size=LARGE, weight="bold")
    x = 0.0
    for part, room in zip(parts, widths, strict=True):
        if isinstance(part, str):
            text(axes, x + room / 2, 0, part, size=13)
        else:
            _draw(axes, part, x, room)
        x += room + gap
    return axes.figure


def page_of_panels(parts: Sequence[Any], title: str) -> str:
    """The same for a page: a picture for each matrix, in a row that breaks where it has to."""
    boxes = [piece for part in parts if not isinstance(part, str) for piece in _pieces(part)]
    head, foot = _head(boxes), _foot(boxes)
    shown = []
    if title:
        shown.append(f'<strong style="flex: 0 0 100%">{title}</strong>')
    for part in parts:
        if isinstance(part, str):
            # On the height of the middle of the matrices, whatever stands above and below them.
            down = f"padding-top: calc(var(--slp-figure, 1) * {max(0.0, head - foot):.0f}px)"
            sign = f'<span style="font-size: 1.1em; {down}">{part}</span>'
            shown.append(sign if part.strip() else "")
            continue
        for piece in _pieces(part):
            room, half = _width(piece), _height(piece) / 2
            axes = canvas(room, -half - foot, half + head)
            _draw(axes, piece, 0.0, room)
            shown.append(svg_of(axes.figure))
    return "\n".join(filter(None, shown))


def _pieces(panel: Any) -> Iterator[Any]:
    """A matrix that is wider than a phone in pieces of whole columns that are not."""
    columns, room = panel.values.shape[1], _width(panel)
    if room <= WIDE or panel.values.numel() > _MANY:
        yield panel
        return
    most = max(1, int((WIDE - _left(panel)) // _cell(panel)[0]))
    each = math.ceil(columns / math.ceil(columns / most))
    full = full_value(panel)
    for start in range(0, columns, each):
        part = slice(start, start + each)
        labels = panel.columns and list(panel.columns)[part]
        title = panel.title if start == 0 or not panel.title else f"{panel.title} …"
        last = start + each >= columns
        yield replace(
            panel, matrix=panel.values[:, part], columns=labels, title=title, top=full,
            shape=panel.shape if last else "",
        )  # fmt: skip


def _draw(axes: Any, panel: Any, x: float, room: float) -> None:
    """Draw a panel in the room that begins at x, halfway up at 0."""
    height, width = panel.values.shape
    side, rise = _cell(panel)
    half, start = height * rise / 2, x
    x += _left(panel) + max(0.0, room - _left(panel) - width * side) / 2
    if height * width > (_MANY if panel.decimals is not None else _SOME):
        _draw_pixels(axes, panel, x, half)
    else:
        for i in range(height):
            for j in range(width):
                _draw_cell(axes, panel, i, j, x + j * side, half - (i + 1) * rise)
    every = math.ceil(_APART / rise)  # numbers may be left out where there is no room for all
    for i, label in list(enumerate(panel.rows or ()))[::every]:
        text(axes, x - 5, half - (i + 0.5) * rise, label, align="right", size=SMALL)
    for j, label in list(enumerate(panel.columns or ()))[::every]:
        turned = {"rotation": 90, "va": "bottom"} if _upright(panel) else {}
        y = half + (5 if _upright(panel) else _LINE / 2)
        text(axes, x + (j + 0.5) * side, y, label, size=SMALL, **turned)
    middle = x + width * side / 2
    reach = width_of(panel.title, LARGE, bold=True) / 2
    middle = min(max(middle, start + reach), start + room - reach)  # all of the title stays
    if panel.title:
        y = half + _above(panel) + 12
        text(axes, middle, y, panel.title, size=LARGE, weight="bold")
    if panel.shape:
        below = x + width * side / 2
        text(axes, below, -half - 13, f"[{panel.shape}]", size=SMALL, alpha=0.8)


def _draw_cell(axes: Any, panel: Any, i: int, j: int, x: float, y: float) -> None:
    value = panel.values[i, j].item()
    side, rise = _cell(panel)
    edge = 0.7
    corner, width, height = (x + edge, y + edge), side - 2 * edge, rise - 2 * edge
    box(axes, corner, width, height, INK, 0.06)
    if math.isfinite(value):
        color = POSITIVE if value >= 0 else NEGATIVE
        strength = 0.75 * min(1.0, abs(value) / full_value(panel))
        box(axes, corner, width, height, color, strength)
    else:
        across, up = width / 4, height / 4
        for k in range(1, 8):  # hatching drawn by hand: an SVG pattern would not take the ink
            low, high = max(0, k - 4), min(4, k)
            axes.plot(
                [corner[0] + low * across, corner[0] + high * across],
                [corner[1] + high * up, corner[1] + low * up],
                color=INK, alpha=0.16, linewidth=0.7,
            )  # fmt: skip
    if panel.decimals is not None:
        shown = number(value, _decimals(panel))
        text(axes, x + side / 2, y + rise / 2 - 0.5, shown, size=SMALL)


def _draw_pixels(axes: Any, panel: Any, x: float, half: float) -> None:
    """A large matrix: one pixel for each cell, without numbers."""
    height, width = panel.values.shape
    pixels = torch.zeros(height, width, 4)
    for sign, color in ((1, POSITIVE), (-1, NEGATIVE)):
        chosen = torch.sign(panel.values) == sign
        rgb = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        pixels[..., :3][chosen] = torch.tensor(rgb)
    full = full_value(panel)
    pixels[..., 3] = (panel.values.abs() / full).clamp(0, 1).nan_to_num(0.0)
    pixels[~torch.isfinite(panel.values)] = torch.tensor([0.5, 0.5, 0.5, 0.35])
    extent = (x, x + width * _cell(panel)[0], -half, half)
    axes.imshow(pixels.numpy(), extent=extent, interpolation="none", aspect="auto")


def _cell(panel: Any) -> tuple[float, float]:
    """Return width and height of a cell: as large as its numbers, smaller without."""
    height, width = panel.values.shape
    if panel.decimals is not None:
        shown = [number(value, _decimals(panel)) for value in panel.values.flatten().tolist()]
        return max(23.0, longest(shown, SMALL) + 5), 23.0
    side = min(_PLAIN, (WIDE - _left(panel)) / width, 420 / height)
    labels = [*(panel.rows or ()), *(panel.columns or ())]
    if not all(isinstance(label, int) for label in labels):
        side = max(side, _APART)  # each word is there, and they do not touch
    return side, side


def _decimals(panel: Any) -> int:
    finite = panel.values[torch.isfinite(panel.values)]
    return 0 if bool((finite == finite.round()).all()) else panel.decimals


def _width(panel: Any) -> float:
    """Return the width of a panel: its cells and row labels, or its title, or its shape."""
    cells = _left(panel) + panel.values.shape[1] * _cell(panel)[0]
    shape = width_of(f"[{panel.shape}]", SMALL) if panel.shape else 0.0
    needed = max(panel.values.shape[1] * _cell(panel)[0], shape)
    return max(cells, width_of(panel.title, LARGE, bold=True), _left(panel) + needed)


def _height(panel: Any) -> float:
    return panel.values.shape[0] * _cell(panel)[1]


def _left(panel: Any) -> float:
    """Return the width of the row labels."""
    return 7 + longest(panel.rows, SMALL) if panel.rows is not None else 0.0


def _above(panel: Any) -> float:
    """Return the height of the column labels."""
    if panel.columns is None:
        return 0.0
    return 7 + longest(panel.columns, SMALL) if _upright(panel) else _LINE


def _head(panels: Sequence[Any]) -> float:
    """Return the height above the cells."""
    named = _LINE + 4 if any(panel.title for panel in panels) else 0.0
    return max(map(_above, panels)) + named


def _foot(panels: Sequence[Any]) -> float:
    """Return the height below the cells."""
    return _LINE + 2 if any(panel.shape for panel in panels) else 0.0


def _upright(panel: Any) -> bool:
    """Return whether the column labels are vertical because they are too wide."""
    if panel.columns is None:
        return False
    return longest(panel.columns, SMALL) > _cell(panel)[0] - 2


def _sign_width(sign: str) -> float:
    return 8 + width_of(sign, 13)


def full_value(panel: Any) -> float:
    """Return the value that gets the full color."""
    finite = panel.values[torch.isfinite(panel.values)].abs()
    return panel.top or (finite.max().item() if finite.numel() else 1.0) or 1.0
