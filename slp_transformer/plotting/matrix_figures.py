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
_ROW_CELL_PX = 16.0  # where four matrices or more share a row
_MAX_CELLS = {True: 900, False: 200}  # with numbers, without: of more, each is a pixel
_MIN_LABEL_SPACING_PX = 13.0  # from one label to the next, at least
_GAP_PX = 10.0


class PanelLayout:
    """The sizes of a panel, in pixels.

    Attributes:
        panel: the panel.
        decimals: how many digits its numbers have after the point; 0 where all are integers.
        full: the value that gets the full color.
        row_labels: the width of its row labels.
        column_labels: the height of its column labels.
        vertical: whether column labels are vertical because they are too wide.
        cell_width: the width of a cell, as large as its numbers, smaller without.
        cell_height: its height.
        width: of the panel: its cells and row labels, or its title, or its shape.
        height: of its cells together.
    """

    def __init__(self, panel: Any, max_cell: float = _MAX_PLAIN_CELL_PX):
        self.panel = panel
        rows, columns = panel.values.shape
        finite = panel.values[torch.isfinite(panel.values)]
        self.decimals = 0 if bool((finite == finite.round()).all()) else panel.decimals
        self.full: float = full_color_value(panel)
        self.row_labels: float = 0.0
        if panel.rows is not None:
            self.row_labels = 7 + max_text_width_px(panel.rows, SMALL_FONT_PT)
        if panel.decimals is not None:
            shown = [format_number(x, self.decimals) for x in panel.values.flatten().tolist()]
            self.cell_width: float = max(23.0, max_text_width_px(shown, SMALL_FONT_PT) + 5)
            self.cell_height: float = 23.0
        else:
            side = min(max_cell, (MAX_WIDTH_PX - self.row_labels) / columns, 420 / rows)
            labels = [*(panel.rows or ()), *(panel.columns or ())]
            if not all(isinstance(label, int) for label in labels):
                side = max(side, _MIN_LABEL_SPACING_PX)  # each word is there, apart from the next
            self.cell_width = self.cell_height = side
        self.vertical: bool = False
        self.column_labels: float = 0.0
        if panel.columns is not None:
            widest = max_text_width_px(panel.columns, SMALL_FONT_PT)
            self.vertical = widest > self.cell_width - 2
            self.column_labels = 7 + widest if self.vertical else _LINE_HEIGHT_PX
        shape = text_width_px(f"[{panel.shape}]", SMALL_FONT_PT) if panel.shape else 0.0
        title = text_width_px(panel.title, LARGE_FONT_PT, bold=True)
        self.width: float = max(title, self.row_labels + max(columns * self.cell_width, shape))
        self.height: float = rows * self.cell_height

    def iter_narrow_pieces(self) -> Iterator["PanelLayout"]:
        """Yield pieces of columns that are no wider than a phone."""
        panel, columns = self.panel, self.panel.values.shape[1]
        if self.width <= MAX_WIDTH_PX or panel.values.numel() > _MAX_CELLS[True]:
            yield self
            return
        most = max(1, int((MAX_WIDTH_PX - self.row_labels) // self.cell_width))
        each = math.ceil(columns / math.ceil(columns / most))
        for start in range(0, columns, each):
            part = slice(start, start + each)
            labels = panel.columns and list(panel.columns)[part]
            title = panel.title if start == 0 or not panel.title else f"{panel.title} …"
            shape = panel.shape if start + each >= columns else ""
            changes = {"columns": labels, "title": title, "shape": shape, "top": self.full}
            yield PanelLayout(replace(panel, matrix=panel.values[:, part], **changes))

    def draw(self, axes: Any, start: float, room: float) -> None:
        """Draw the panel in the room that begins at `start`, halfway up at 0."""
        panel, side, rise = self.panel, self.cell_width, self.cell_height
        rows, columns = panel.values.shape
        half = self.height / 2
        x = start + self.row_labels + max(0.0, room - self.row_labels - columns * side) / 2
        if rows * columns > _MAX_CELLS[panel.decimals is not None]:
            self._draw_pixels(axes, x)
        else:
            for i in range(rows):
                for j in range(columns):
                    self._draw_cell(axes, i, j, x + j * side, half - (i + 1) * rise)
        # Numbers may be left out where there is no room for all.
        every = math.ceil(_MIN_LABEL_SPACING_PX / rise)
        for i, label in list(enumerate(panel.rows or ()))[::every]:
            y = half - (i + 0.5) * rise
            draw_text(axes, x - 5, y, label, align="right", size=SMALL_FONT_PT)
        for j, label in list(enumerate(panel.columns or ()))[::every]:
            turned: dict[str, Any] = {"rotation": 90, "va": "bottom"} if self.vertical else {}
            y = half + (5 if self.vertical else _LINE_HEIGHT_PX / 2)
            draw_text(axes, x + (j + 0.5) * side, y, label, size=SMALL_FONT_PT, **turned)
        center = x + columns * side / 2
        if panel.title:
            reach = text_width_px(panel.title, LARGE_FONT_PT, bold=True) / 2
            middle = min(max(center, start + reach), start + room - reach)  # all of it stays
            y = half + self.column_labels + 12
            draw_text(axes, middle, y, panel.title, size=LARGE_FONT_PT, weight="bold")
        if panel.shape:
            shape = f"[{panel.shape}]"
            draw_text(axes, center, -half - 13, shape, size=SMALL_FONT_PT, alpha=0.8)

    def _draw_cell(self, axes: Any, i: int, j: int, x: float, y: float) -> None:
        value, edge = self.panel.values[i, j].item(), 0.7
        width, height = self.cell_width - 2 * edge, self.cell_height - 2 * edge
        left, bottom = x + edge, y + edge
        draw_box(axes, (left, bottom), width, height, INK_COLOR, 0.06)
        if math.isfinite(value):
            color = POSITIVE_COLOR if value >= 0 else NEGATIVE_COLOR
            strength = 0.75 * min(1.0, abs(value) / self.full)
            draw_box(axes, (left, bottom), width, height, color, strength)
        else:
            for k in range(1, 8):  # hatching drawn by hand: an SVG pattern would not take the ink
                low, high = max(0, k - 4) / 4, min(4, k) / 4
                across = [left + low * width, left + high * width]
                up = [bottom + high * height, bottom + low * height]
                axes.plot(across, up, color=INK_COLOR, alpha=0.16, linewidth=0.7)
        if self.panel.decimals is not None:
            shown = format_number(value, self.decimals)
            middle = x + self.cell_width / 2, y + self.cell_height / 2 - 0.5
            draw_text(axes, *middle, shown, size=SMALL_FONT_PT)

    def _draw_pixels(self, axes: Any, x: float) -> None:
        """Draw a large matrix: one pixel for each cell, without numbers."""
        values, half = self.panel.values, self.height / 2
        pixels = torch.zeros(*values.shape, 4)
        for sign, color in ((1, POSITIVE_COLOR), (-1, NEGATIVE_COLOR)):
            rgb = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
            pixels[..., :3][torch.sign(values) == sign] = torch.tensor(rgb)
        pixels[..., 3] = (values.abs() / self.full).clamp(0, 1).nan_to_num(0.0)
        pixels[~torch.isfinite(values)] = torch.tensor([0.5, 0.5, 0.5, 0.35])
        extent = (x, x + values.shape[1] * self.cell_width, -half, half)
        axes.imshow(pixels.numpy(), extent=extent, interpolation="none", aspect="auto")


def draw_panels(parts: Sequence[Any]) -> Any:
    """Draw the parts of `plotting.panels` side by side on one canvas."""
    drawn = [part if isinstance(part, str) else PanelLayout(part) for part in parts]
    boxes = [part for part in drawn if not isinstance(part, str)]
    head, foot = _row_margins(boxes)
    half = max(box.height for box in boxes) / 2
    widths = [
        8 + text_width_px(part, 13) if isinstance(part, str) else part.width for part in drawn
    ]
    width = sum(widths) + _GAP_PX * (len(parts) - 1)
    axes = make_axes(width, -half - foot, half + head)
    x = 0.0
    for part, room in zip(drawn, widths, strict=True):
        if isinstance(part, str):
            draw_text(axes, x + room / 2, 0, part, size=13)
        else:
            part.draw(axes, x, room)
        x += room + _GAP_PX
    return axes.figure


def panels_to_html(parts: Sequence[Any]) -> str:
    """Draw the parts for a page: a picture for each matrix, in a row that may break."""
    several = sum(not isinstance(part, str) for part in parts) > 3
    cell = _ROW_CELL_PX if several else _MAX_PLAIN_CELL_PX
    drawn = [
        [part] if isinstance(part, str) else list(PanelLayout(part, cell).iter_narrow_pieces())
        for part in parts
    ]
    pieces = [piece for part in drawn for piece in part]
    head, foot = _row_margins([piece for piece in pieces if isinstance(piece, PanelLayout)])
    # On the height of the middle of the matrices, whatever stands above and below them.
    down = f"padding-top: calc(var(--slp-figure, 1) * {max(0.0, head - foot):.0f}px)"
    shown = []
    for piece in pieces:
        if isinstance(piece, PanelLayout):
            axes = make_axes(piece.width, -piece.height / 2 - foot, piece.height / 2 + head)
            piece.draw(axes, 0.0, piece.width)
            shown.append(figure_to_svg(axes.figure))
        elif piece.strip():
            shown.append(f'<span style="font-size: 1.1em; {down}">{piece}</span>')
    return "\n".join(shown)


def _row_margins(boxes: Sequence[PanelLayout]) -> tuple[float, float]:
    """Return the heights above and below the cells of panels in one row."""
    named = any(box.panel.title for box in boxes)
    head = max(box.column_labels for box in boxes) + (_LINE_HEIGHT_PX + 4 if named else 0.0)
    return head, _LINE_HEIGHT_PX + 2 if any(box.panel.shape for box in boxes) else 0.0


def full_color_value(panel: Any) -> float:
    """Return the value that gets the full color."""
    finite = panel.values[torch.isfinite(panel.values)].abs()
    return panel.top or (finite.max().item() if finite.numel() else 1.0) or 1.0
