"""Draw matrices: their cells, labels, names and shapes.

A page gets each matrix as a picture of its own, so that those which do not fit next to each other
stand below each other; a file gets all of them as one.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from slp_transformer.plotting.canvas import (
    INK_COLOR,
    LARGE_FONT_PT,
    MAX_WIDTH_PX,
    NEGATIVE_COLOR,
    POSITIVE_COLOR,
    SMALL_FONT_PT,
    draw_box,
    draw_text,
    figure_to_svg,
    format_number,
    make_axes,
    max_text_width_px,
    text_width_px,
)

_LINE_HEIGHT_PX = 19.0  # the height of a line of small letters, in pixels
_MAX_PLAIN_CELL_PX = 22.0  # the side of a cell without a number, at most
_MAX_NUMBERED_CELLS, _MAX_PLAIN_CELLS = (
    900,
    200,
)  # from so many cells on they are drawn as pixels; the first with numbers
_MIN_LABEL_SPACING_PX = 13.0  # from one label to the next, at least


def draw_panels(parts: Sequence[Any], title: str) -> Any:
    """Draw what `plotting.panels` was given, side by side on one canvas."""
    boxes = [part for part in parts if not isinstance(part, str)]
    head, foot = _header_height(boxes), _footer_height(boxes)
    tallest = max(_panel_height(panel) for panel in boxes)
    widths = [_sign_width(part) if isinstance(part, str) else _panel_width(part) for part in parts]
    gap = 10.0
    width = sum(widths) + gap * (len(parts) - 1)
    top = tallest / 2 + head + (_LINE_HEIGHT_PX + 8 if title else 0.0)
    axes = make_axes(width, -tallest / 2 - foot, top)
    if title:
        draw_text(axes, width / 2, top - 10, title, size=LARGE_FONT_PT, weight="bold")
    x = 0.0
    for part, room in zip(parts, widths, strict=True):
        if isinstance(part, str):
            draw_text(axes, x + room / 2, 0, part, size=13)
        else:
            _draw_panel(axes, part, x, room)
        x += room + gap
    return axes.figure


def panels_to_html(parts: Sequence[Any], title: str) -> str:
    """The same for a page: a picture for each matrix, in a row that breaks where it has to."""
    boxes = [
        piece for part in parts if not isinstance(part, str) for piece in _split_wide_panel(part)
    ]
    head, foot = _header_height(boxes), _footer_height(boxes)
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
        for piece in _split_wide_panel(part):
            room, half = _panel_width(piece), _panel_height(piece) / 2
            axes = make_axes(room, -half - foot, half + head)
            _draw_panel(axes, piece, 0.0, room)
            shown.append(figure_to_svg(axes.figure))
    return "\n".join(filter(None, shown))


def _split_wide_panel(panel: Any) -> Iterator[Any]:
    """A matrix that is wider than a phone in pieces of whole columns that are not."""
    columns, room = panel.values.shape[1], _panel_width(panel)
    if room <= MAX_WIDTH_PX or panel.values.numel() > _MAX_NUMBERED_CELLS:
        yield panel
        return
    most = max(1, int((MAX_WIDTH_PX - _row_label_width(panel)) // _cell_size(panel)[0]))
    each = math.ceil(columns / math.ceil(columns / most))
    full = full_color_value(panel)
    for start in range(0, columns, each):
        part = slice(start, start + each)
        labels = panel.columns and list(panel.columns)[part]
        title = panel.title if start == 0 or not panel.title else f"{panel.title} …"
        last = start + each >= columns
        yield replace(
            panel, matrix=panel.values[:, part], columns=labels, title=title, top=full,
            shape=panel.shape if last else "",
        )  # fmt: skip


def _draw_panel(axes: Any, panel: Any, x: float, room: float) -> None:
    """Draw a panel in the room that begins at x, halfway up at 0."""
    height, width = panel.values.shape
    side, rise = _cell_size(panel)
    half, start = height * rise / 2, x
    x += _row_label_width(panel) + max(0.0, room - _row_label_width(panel) - width * side) / 2
    if height * width > (_MAX_NUMBERED_CELLS if panel.decimals is not None else _MAX_PLAIN_CELLS):
        _draw_pixels(axes, panel, x, half)
    else:
        for i in range(height):
            for j in range(width):
                _draw_cell(axes, panel, i, j, x + j * side, half - (i + 1) * rise)
    every = math.ceil(
        _MIN_LABEL_SPACING_PX / rise
    )  # numbers may be left out where there is no room for all
    for i, label in list(enumerate(panel.rows or ()))[::every]:
        draw_text(axes, x - 5, half - (i + 0.5) * rise, label, align="right", size=SMALL_FONT_PT)
    for j, label in list(enumerate(panel.columns or ()))[::every]:
        turned = {"rotation": 90, "va": "bottom"} if _has_vertical_labels(panel) else {}
        y = half + (5 if _has_vertical_labels(panel) else _LINE_HEIGHT_PX / 2)
        draw_text(axes, x + (j + 0.5) * side, y, label, size=SMALL_FONT_PT, **turned)
    middle = x + width * side / 2
    reach = text_width_px(panel.title, LARGE_FONT_PT, bold=True) / 2
    middle = min(max(middle, start + reach), start + room - reach)  # all of the title stays
    if panel.title:
        y = half + _column_label_height(panel) + 12
        draw_text(axes, middle, y, panel.title, size=LARGE_FONT_PT, weight="bold")
    if panel.shape:
        below = x + width * side / 2
        draw_text(axes, below, -half - 13, f"[{panel.shape}]", size=SMALL_FONT_PT, alpha=0.8)


def _draw_cell(axes: Any, panel: Any, i: int, j: int, x: float, y: float) -> None:
    value = panel.values[i, j].item()
    side, rise = _cell_size(panel)
    edge = 0.7
    corner, width, height = (x + edge, y + edge), side - 2 * edge, rise - 2 * edge
    draw_box(axes, corner, width, height, INK_COLOR, 0.06)
    if math.isfinite(value):
        color = POSITIVE_COLOR if value >= 0 else NEGATIVE_COLOR
        strength = 0.75 * min(1.0, abs(value) / full_color_value(panel))
        draw_box(axes, corner, width, height, color, strength)
    else:
        across, up = width / 4, height / 4
        for k in range(1, 8):  # hatching drawn by hand: an SVG pattern would not take the ink
            low, high = max(0, k - 4), min(4, k)
            axes.plot(
                [corner[0] + low * across, corner[0] + high * across],
                [corner[1] + high * up, corner[1] + low * up],
                color=INK_COLOR, alpha=0.16, linewidth=0.7,
            )  # fmt: skip
    if panel.decimals is not None:
        shown = format_number(value, _shown_decimals(panel))
        draw_text(axes, x + side / 2, y + rise / 2 - 0.5, shown, size=SMALL_FONT_PT)


def _draw_pixels(axes: Any, panel: Any, x: float, half: float) -> None:
    """A large matrix: one pixel for each cell, without numbers."""
    height, width = panel.values.shape
    pixels = torch.zeros(height, width, 4)
    for sign, color in ((1, POSITIVE_COLOR), (-1, NEGATIVE_COLOR)):
        chosen = torch.sign(panel.values) == sign
        rgb = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        pixels[..., :3][chosen] = torch.tensor(rgb)
    full = full_color_value(panel)
    pixels[..., 3] = (panel.values.abs() / full).clamp(0, 1).nan_to_num(0.0)
    pixels[~torch.isfinite(panel.values)] = torch.tensor([0.5, 0.5, 0.5, 0.35])
    extent = (x, x + width * _cell_size(panel)[0], -half, half)
    axes.imshow(pixels.numpy(), extent=extent, interpolation="none", aspect="auto")


def _cell_size(panel: Any) -> tuple[float, float]:
    """Return width and height of a cell: as large as its numbers, smaller without."""
    height, width = panel.values.shape
    if panel.decimals is not None:
        shown = [
            format_number(value, _shown_decimals(panel))
            for value in panel.values.flatten().tolist()
        ]
        return max(23.0, max_text_width_px(shown, SMALL_FONT_PT) + 5), 23.0
    side = min(_MAX_PLAIN_CELL_PX, (MAX_WIDTH_PX - _row_label_width(panel)) / width, 420 / height)
    labels = [*(panel.rows or ()), *(panel.columns or ())]
    if not all(isinstance(label, int) for label in labels):
        side = max(side, _MIN_LABEL_SPACING_PX)  # each word is there, and they do not touch
    return side, side


def _shown_decimals(panel: Any) -> int:
    finite = panel.values[torch.isfinite(panel.values)]
    return 0 if bool((finite == finite.round()).all()) else panel.decimals


def _panel_width(panel: Any) -> float:
    """Return the width of a panel: its cells and row labels, or its title, or its shape."""
    cells = _row_label_width(panel) + panel.values.shape[1] * _cell_size(panel)[0]
    shape = text_width_px(f"[{panel.shape}]", SMALL_FONT_PT) if panel.shape else 0.0
    needed = max(panel.values.shape[1] * _cell_size(panel)[0], shape)
    return max(
        cells,
        text_width_px(panel.title, LARGE_FONT_PT, bold=True),
        _row_label_width(panel) + needed,
    )


def _panel_height(panel: Any) -> float:
    return panel.values.shape[0] * _cell_size(panel)[1]


def _row_label_width(panel: Any) -> float:
    """Return the width of the row labels."""
    return 7 + max_text_width_px(panel.rows, SMALL_FONT_PT) if panel.rows is not None else 0.0


def _column_label_height(panel: Any) -> float:
    """Return the height of the column labels."""
    if panel.columns is None:
        return 0.0
    return (
        7 + max_text_width_px(panel.columns, SMALL_FONT_PT)
        if _has_vertical_labels(panel)
        else _LINE_HEIGHT_PX
    )


def _header_height(panels: Sequence[Any]) -> float:
    """Return the height above the cells."""
    named = _LINE_HEIGHT_PX + 4 if any(panel.title for panel in panels) else 0.0
    return max(map(_column_label_height, panels)) + named


def _footer_height(panels: Sequence[Any]) -> float:
    """Return the height below the cells."""
    return _LINE_HEIGHT_PX + 2 if any(panel.shape for panel in panels) else 0.0


def _has_vertical_labels(panel: Any) -> bool:
    """Return whether the column labels are vertical because they are too wide."""
    if panel.columns is None:
        return False
    return max_text_width_px(panel.columns, SMALL_FONT_PT) > _cell_size(panel)[0] - 2


def _sign_width(sign: str) -> float:
    return 8 + text_width_px(sign, 13)


def full_color_value(panel: Any) -> float:
    """Return the value that gets the full color."""
    finite = panel.values[torch.isfinite(panel.values)].abs()
    return panel.top or (finite.max().item() if finite.numel() else 1.0) or 1.0
