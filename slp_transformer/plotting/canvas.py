"""The drawing tools of all figures here: a canvas, boxes, text, and SVG.

Matplotlib is imported when the first figure is drawn. A figure is at most as wide as a phone, and
its letters are never smaller than eleven pixels; wide screens enlarge it. Text and lines have no
color of their own: they take that of the page, so that a figure can stand on light and on dark
ones.
"""

import hashlib
import io
import math
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from slp_transformer._internal.extras import import_extra

# A middling blue and orange, laid on with an opacity that grows with the value, so that text in
# the page's own color stays readable on light and on dark pages, and to color-blind readers.
POSITIVE_COLOR, NEGATIVE_COLOR = "#2f7fc1", "#dd7a2a"
SERIES_COLORS = (POSITIVE_COLOR, NEGATIVE_COLOR, "#4f9d69", "#a566b0", "#8a8f3c", "#c8556b")

# Matplotlib has no word for "the color of the surrounding text", so this one is replaced by it.
INK_COLOR = "#010203"
MAX_WIDTH_PX = 354.0  # the most that a figure should take, in pixels: the text of a phone's page
SMALL_FONT_PT, NORMAL_FONT_PT, LARGE_FONT_PT = 8.5, 9.0, 10.5  # points, of 4/3 pixels
MIN_SCALE = 8.25 / SMALL_FONT_PT  # the smallest scale, at which small letters have eleven pixels


def import_matplotlib() -> Any:
    """Import Matplotlib.

    Raises:
        ImportError: naming the extra, if it is not installed.
    """
    import_extra("matplotlib.figure", "Figures", "docs")
    return import_extra("matplotlib", "Figures", "docs")


def figure_to_svg(figure: Any) -> str:
    """Return the figure as an SVG element: transparent, text as text, ids of its own."""
    settings = {"svg.fonttype": "none", "svg.hashsalt": "slp", "font.family": "sans-serif"}
    buffer = io.StringIO()
    with import_matplotlib().rc_context(settings):
        metadata = {"Date": None, "Creator": None}
        figure.savefig(buffer, format="svg", transparent=True, metadata=metadata)
    return _clean_svg(buffer.getvalue(), figure.get_figwidth() * 96)


def _clean_svg(svg: str, width: float) -> str:
    """Clean Matplotlib's SVG file so that it can be embedded in a page with other figures."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*|<style.*?</style>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"\s*\n\s*", " ", svg).replace("> <", ">\n<")
    # A page may enlarge figures by --slp-figure. Narrower than the least, letters get too small to
    # read: then the figure scrolls instead.
    style = (
        f"stroke-linejoin: round; flex: none; height: auto; max-width: 100%; "
        f"width: calc(var(--slp-figure, 1) * {width:.0f}px); min-width: {MIN_SCALE * width:.0f}px"
    )
    svg = svg.replace("<svg ", f'<svg style="{style}" ', 1)
    svg = re.sub(r'<path d="[^"]*" style="fill: none"/>\s*', "", svg, count=1)  # behind everything
    # Tenths of a point are enough, and groups that say nothing need not travel.
    svg = re.sub(r' d="[^"]*"', lambda d: re.sub(r"(\.\d)\d+", r"\1", d[0]), svg)
    svg = svg.replace(INK_COLOR, "currentColor")
    svg = re.sub(r"font: ([\d.]+px|[^;\"']*?([\d.]+px))[^;\"]*", r"font-size: \g<1>", svg)
    svg = re.sub(r"font-family: [^;\"]*", "font-family: inherit", svg)
    # Two figures on a page must not share an id: keep those that are referred to, made unique.
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
    mark = hashlib.sha256(svg.encode()).hexdigest()[:8]
    svg = re.sub(r' id="([^"]*)"', lambda m: f' id="f{mark}-{m[1]}"' if m[1] in used else "", svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\g<1>f{mark}-", svg).strip()
    return svg if "<g " in svg else re.sub(r"</?g>\s*|<defs/>\s*", "", svg)


def make_axes(width: float, bottom: float, top: float) -> Any:
    """Return axes without a frame, in pixels, from 0 to the right and from bottom to top."""
    margin = 2.0
    size = ((width + 2 * margin) / 96, (top - bottom + 2 * margin) / 96)
    figure = import_matplotlib().figure.Figure(figsize=size)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    limits = {"xlim": (-margin, width + margin), "ylim": (bottom - margin, top + margin)}
    axes.set(**limits, autoscale_on=False)
    return axes


def draw_box(
    axes: Any, corner: tuple[float, float], width: float, height: float, color: str, alpha: float
) -> None:
    """Draw a rectangle without a border, unless it would be invisible."""
    from matplotlib.patches import Rectangle

    if width and alpha:
        box = Rectangle(corner, width, height, facecolor=color, alpha=alpha)
        axes.add_patch(box).set(linewidth=0, clip_on=False)


def draw_text(
    axes: Any,
    x: float,
    y: float,
    words: str,
    size: float = NORMAL_FONT_PT,
    align: str = "center",
    weight: str = "normal",
    alpha: float = 1.0,
    **more: Any,
) -> None:
    """Draw text in the color of the page."""
    options = {"ha": align, "va": "center", "fontsize": size, "fontweight": weight, **more}
    # A lone dollar sign would begin TeX.
    axes.text(x, y, str(words).replace("$", r"\$"), color=INK_COLOR, alpha=alpha, **options)


@cache
def text_width_px(words: str, size: float = NORMAL_FONT_PT, bold: bool = False) -> float:
    """Return the width of words in pixels; the font of a page is hardly ever wider."""
    import_matplotlib()
    from matplotlib.font_manager import FontProperties, findfont, get_font

    face = FontProperties(family="sans-serif", weight="bold" if bold else "normal")
    font = get_font(findfont(face))
    font.set_size(size, 96)
    font.set_text(words, 0.0)
    return font.get_width_height()[0] / 64


def max_text_width_px(labels: Sequence[Any] | None, size: float = NORMAL_FONT_PT) -> float:
    """Return the width of the widest label, in pixels."""
    return max((text_width_px(str(label), size) for label in labels or ()), default=0.0)


def format_number(value: float, decimals: int) -> str:
    """Format a number for a figure, with a real minus sign."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    shown = f"{value:.{decimals}f}"
    return shown.replace("-", "−") if float(shown) else shown.lstrip("-")
