"""Draws the figures of `slp_transformer.show` with Matplotlib, which is imported when one is drawn.

All but the curves are drawn on one plain canvas whose unit is a matrix cell, so that the letters
of all figures have one size. Figures have no colors of their own for text and lines: these take
the color of the page, so that a figure can stand on light and on dark ones.
"""

import hashlib
import io
import math
import re
from collections.abc import Sequence
from typing import Any

import torch

# A middling blue and orange, laid on with an opacity that grows with the value, so that text in
# the page's own color stays readable on light and on dark pages, and to color-blind readers.
POSITIVE, NEGATIVE = "#2f7fc1", "#dd7a2a"
SERIES = (POSITIVE, NEGATIVE, "#4f9d69", "#a566b0", "#8a8f3c", "#c8556b")

# Matplotlib has no word for "the color of the surrounding text", so this one stands in for it.
_INK = "#010203"
_CELL = 0.46  # the side of a matrix cell, in inches
_LETTER = 0.145  # the usual width of a letter, in cells
_SMALL, _NORMAL = 8.5, 10.0  # font sizes, in points


def _matplotlib():
    try:
        import matplotlib
        import matplotlib.figure
    except ImportError:
        raise ImportError(
            "Figures need Matplotlib, which comes with the docs extra: "
            'python -m pip install "slp-transformer[docs]".'
        ) from None
    return matplotlib


def svg_of(figure: Any) -> str:
    """The figure as an SVG element: transparent, text as text, ids of its own."""
    settings = {"svg.fonttype": "none", "svg.hashsalt": "slp", "font.family": "sans-serif"}
    buffer = io.StringIO()
    with _matplotlib().rc_context(settings):
        figure.savefig(
            buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
        )
    return _tidy(buffer.getvalue())


def _tidy(svg: str) -> str:
    """Makes Matplotlib's SVG file fit to stand in a page, beside other figures."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*|<style.*?</style>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"\s*\n\s*", " ", svg).replace("> <", ">\n<")
    # Narrower than this, letters get too small to read: the figure scrolls instead.
    least = 0.72 * float(re.search(r'width="([\d.]+)pt"', svg)[1])
    svg = svg.replace("<svg ", f'<svg style="stroke-linejoin: round; min-width: {least:.0f}pt" ', 1)
    svg = svg.replace(_INK, "currentColor")
    svg = re.sub(r"font: ([\d.]+px|[^;\"']*?([\d.]+px))[^;\"]*", r"font-size: \g<1>", svg)
    svg = re.sub(r"font-family: [^;\"]*", "font-family: inherit", svg)
    # Two figures on a page must not share an id: keep those that are referred to, made unique.
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
    mark = hashlib.sha256(svg.encode()).hexdigest()[:8]
    svg = re.sub(r' id="([^"]*)"', lambda m: f' id="f{mark}-{m[1]}"' if m[1] in used else "", svg)
    return re.sub(r'(href="#|url\(#)', rf"\g<1>f{mark}-", svg).strip()


def draw_panels(parts: Sequence[Any], title: str) -> Any:
    """Draws what `show.panels` was given."""
    boxes = [part for part in parts if not isinstance(part, str)]
    tallest = max(box.values.shape[0] * _cell(box) for box in boxes)
    above = max(_above(box) for box in boxes)
    head = above + (0.75 if any(box.title for box in boxes) else 0.0)
    foot = 0.6 if any(box.shape for box in boxes) else 0.0
    widths = [
        _left(part) + part.values.shape[1] * _cell(part)
        if not isinstance(part, str)
        else 0.5 + 0.2 * len(part)
        for part in parts
    ]
    gap = 0.25
    width = sum(widths) + gap * (len(parts) - 1)
    top = tallest / 2 + head + (0.7 if title else 0.0)
    axes = _canvas(0, width, -tallest / 2 - foot, top)
    if title:
        _text(axes, width / 2, top - 0.3, title, weight="bold")
    x = 0.0
    for part, room in zip(parts, widths, strict=True):
        if not isinstance(part, str):
            _draw(axes, part, x + _left(part))
        else:
            _text(axes, x + room / 2, 0, part, size=14)
        x += room + gap
    return axes.figure


def _draw(axes: Any, panel: Any, x: float) -> None:
    """Draws a panel whose cells begin at x, halfway up at 0."""
    height, width = panel.values.shape
    side, half = _cell(panel), height * _cell(panel) / 2
    middle = x + width * side / 2
    if height * width > 900:
        _draw_pixels(axes, panel, x, half)
    else:
        for i in range(height):
            for j in range(width):
                _draw_cell(axes, panel, i, j, x + j * side, half - (i + 1) * side)
    for i, label in enumerate(panel.rows or ()):
        _text(axes, x - 0.15, half - (i + 0.5) * side, label, align="right", size=_SMALL)
    for j, label in enumerate(panel.columns or ()):
        turned = {"rotation": 90, "va": "bottom"} if _upright(panel) else {}
        y = half + (0.12 if _upright(panel) else 0.28)
        _text(axes, x + (j + 0.5) * side, y, label, size=_SMALL, **turned)
    if panel.title:
        _text(axes, middle, half + _above(panel) + 0.32, panel.title, size=11, weight="bold")
    if panel.shape:
        _text(axes, middle, -half - 0.35, f"[{panel.shape}]", size=_SMALL, alpha=0.75)


def _draw_cell(axes: Any, panel: Any, i: int, j: int, x: float, y: float) -> None:
    value = panel.values[i, j].item()
    side, edge = _cell(panel), 0.03 * _cell(panel)
    corner, size = (x + edge, y + edge), side - 2 * edge
    _box(axes, corner, size, size, _INK, 0.06)
    if math.isfinite(value):
        color = POSITIVE if value >= 0 else NEGATIVE
        strength = 0.75 * min(1.0, abs(value) / _full(panel))
        _box(axes, corner, size, size, color, strength)
    else:
        step = size / 4
        for k in range(1, 8):  # hatching drawn by hand: an SVG pattern would not take the ink
            low, high = max(0, k - 4) * step, min(4, k) * step
            axes.plot(
                [corner[0] + low, corner[0] + high],
                [corner[1] + high, corner[1] + low],
                color=_INK, alpha=0.16, linewidth=0.7,
            )  # fmt: skip
    if panel.decimals is not None:
        text = _number(value, 0 if _whole(panel.values) else panel.decimals)
        _text(axes, x + side / 2, y + side / 2 - 0.02, text, size=_SMALL)


def _draw_pixels(axes: Any, panel: Any, x: float, half: float) -> None:
    """A large matrix: one pixel for each cell, without numbers."""
    height, width = panel.values.shape
    pixels = torch.zeros(height, width, 4)
    for sign, color in ((1, POSITIVE), (-1, NEGATIVE)):
        chosen = torch.sign(panel.values) == sign
        rgb = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        pixels[..., :3][chosen] = torch.tensor(rgb)
    full = _full(panel)
    pixels[..., 3] = (panel.values.abs() / full).clamp(0, 1).nan_to_num(0.0)
    pixels[~torch.isfinite(panel.values)] = torch.tensor([0.5, 0.5, 0.5, 0.35])
    extent = (x, x + width * _cell(panel), -half, half)
    axes.imshow(pixels.numpy(), extent=extent, interpolation="none", aspect="auto")


def _cell(panel: Any) -> float:
    """The side of a cell: smaller where no number has to fit in."""
    return 1.0 if panel.decimals is not None else min(0.6, 14 / max(panel.values.shape))


def _left(panel: Any) -> float:
    """The room that the row labels take."""
    return 0.15 + _LETTER * _longest(panel.rows) if panel.rows is not None else 0.0


def _above(panel: Any) -> float:
    """The room that the column labels take."""
    if panel.columns is None:
        return 0.0
    return 0.15 + _LETTER * _longest(panel.columns) if _upright(panel) else 0.5


def _upright(panel: Any) -> bool:
    """Whether the column labels stand upright, for want of room."""
    return panel.columns is not None and _LETTER * _longest(panel.columns) > _cell(panel)


def draw_bars(numbers, labels, title, top, decimals) -> Any:
    """Draws what `show.bars` was given."""
    finite = [abs(value) for value in numbers if math.isfinite(value)]
    full = top or max(finite, default=1.0) or 1.0
    left, length, step = 0.3 + _LETTER * _longest(labels), 8.0, 0.62
    bottom = -step * len(numbers)
    axes = _canvas(-left, length + 1.4, bottom, 0.8 if title else 0.1)
    if title:
        _text(axes, 0, 0.42, title, size=11, weight="bold", align="left")
    for k, (label, value) in enumerate(zip(labels, numbers, strict=True)):
        y = -step * (k + 0.5)
        width = length * min(1.0, abs(value) / full) if math.isfinite(value) else 0.0
        corner, color = (0, y - 0.36 * step), POSITIVE if value >= 0 else NEGATIVE
        _box(axes, corner, length, 0.72 * step, _INK, 0.05)
        _box(axes, corner, width, 0.72 * step, color, 0.75)
        _text(axes, -0.18, y, label, align="right", size=_NORMAL)
        _text(axes, length + 0.18, y, _number(value, decimals), align="left", size=_SMALL)
    return axes.figure


def draw_flow(panel: Any, row: int | None) -> Any:
    """Draws what `show.flow` was given."""
    outputs, inputs = panel.values.shape
    tops = _labels(panel.rows, "a", outputs)
    lows = _labels(panel.columns, "x", inputs)
    step = max(1.5, 0.5 + _LETTER * 1.15 * max(_longest(tops), _longest(lows)))
    rise, across = 2.6, step * max(outputs, inputs)
    axes = _canvas(0, across, -0.6, rise + (1.3 if panel.title else 0.6))
    if panel.title:
        _text(axes, across / 2, rise + 1.0, panel.title, size=11, weight="bold")
    full = _full(panel)
    for i in range(outputs):
        for j in range(inputs):
            share = panel.values[i, j].item() / full
            if not math.isfinite(share) or share <= 0:
                continue
            aside = row is not None and row != i
            ends = [step * (j + 0.5), step * (i + 0.5)]
            axes.plot(
                ends, [0.12, rise - 0.12],
                color=_INK if aside else POSITIVE, linewidth=0.8 if aside else 0.6 + 2 * share,
                alpha=0.12 if aside else 0.25 + 0.6 * share, solid_capstyle="round",
            )  # fmt: skip
    for labels, y, shift in ((lows, 0, -0.32), (tops, rise, 0.32)):
        for k, label in enumerate(labels):
            x = step * (k + 0.5)
            chosen = y == rise and (row is None or row == k)
            axes.plot([x], [y], "o", color=POSITIVE if chosen else _INK, markersize=6.5)
            _text(axes, x, y + shift, label)
    return axes.figure


def draw_lines(curves, x, y, title, levels) -> Any:
    """Draws what `show.lines` was given."""
    figure = _matplotlib().figure.Figure(figsize=(6.6, 3.3), layout="constrained")
    axes = figure.add_subplot()
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("bottom", "left"):
        axes.spines[side].set(color=_INK, alpha=0.4)
    axes.tick_params(colors=_INK, labelsize=_SMALL)
    axes.grid(axis="y", color=_INK, alpha=0.1)
    ends = []
    for k, (name, (across, up)) in enumerate(curves.items()):
        color = SERIES[k % len(SERIES)]
        mark = "o" if len(up) < 16 else None
        axes.plot(across, up, color=color, linewidth=1.8, marker=mark, markersize=3.5)
        ends.append((up[-1], name, color))
    for name, level in levels.items():
        axes.axhline(level, color=_INK, alpha=0.5, linewidth=1, linestyle=(0, (4, 3)))
        ends.append((level, name, _INK))
    axes.margins(x=0.01)
    _name_ends(axes, ends)
    axes.set_xlabel(x, color=_INK, fontsize=_NORMAL)
    axes.set_ylabel(y, color=_INK, fontsize=_NORMAL)
    if title:
        axes.set_title(title, color=_INK, fontsize=11, fontweight="bold", loc="left")
    return figure


def _name_ends(axes: Any, ends: list[tuple[float, str, str]]) -> None:
    """Writes the curves' names at the right edge, far enough apart to be read."""
    low, high = axes.get_ylim()
    apart, last = 0.06 * (high - low), -math.inf
    for y, name, color in sorted(ends):
        last = max(y, last + apart)
        axes.annotate(
            name, (1, last), xycoords=("axes fraction", "data"), xytext=(6, 0),
            textcoords="offset points", va="center", color=color, fontsize=_SMALL,
            annotation_clip=False,
        )  # fmt: skip


def _canvas(left, right, bottom, top) -> Any:
    """Axes without a frame whose unit is one cell, so that all figures have letters of one size."""
    figure_class = _matplotlib().figure.Figure
    margin = 0.1
    left, right, bottom, top = left - margin, right + margin, bottom - margin, top + margin
    figure = figure_class(figsize=((right - left) * _CELL, (top - bottom) * _CELL))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set(xlim=(left, right), ylim=(bottom, top), autoscale_on=False)
    return axes


def _box(axes, corner, width, height, color, alpha):
    from matplotlib.patches import Rectangle

    if width and alpha:
        options = {"facecolor": color, "alpha": alpha, "linewidth": 0, "clip_on": False}
        axes.add_patch(Rectangle(corner, width, height, **options))


def _text(axes, x, y, text, size=_NORMAL, align="center", weight="normal", alpha=1.0, **more):
    options = {"ha": align, "va": "center", "fontsize": size, "fontweight": weight, **more}
    # A lone dollar sign would begin TeX.
    axes.text(x, y, str(text).replace("$", r"\$"), color=_INK, alpha=alpha, **options)


def _full(panel: Any) -> float:
    finite = panel.values[torch.isfinite(panel.values)].abs()
    return panel.top or (finite.max().item() if finite.numel() else 1.0) or 1.0


def _whole(values: torch.Tensor) -> bool:
    finite = values[torch.isfinite(values)]
    return bool((finite == finite.round()).all())


def _number(value: float, decimals: int) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:.{decimals}f}"
    return text.replace("-", "−") if float(text) else text.lstrip("-")


def _labels(labels: Sequence[Any] | None, letter: str, size: int) -> list[str]:
    if labels is not None:
        return [str(label) for label in labels]
    subscripts = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
    return [letter + str(k + 1).translate(subscripts) for k in range(size)]


def _longest(labels: Sequence[Any] | None) -> int:
    return max((len(str(label)) for label in labels or ()), default=0)
