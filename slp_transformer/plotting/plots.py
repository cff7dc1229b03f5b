"""Draw bars, curves, and who looks at whom."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from slp_transformer.plotting.canvas import (
    INK_COLOR,
    LARGE_FONT_PT,
    MAX_WIDTH_PX,
    NEGATIVE_COLOR,
    NORMAL_FONT_PT,
    POSITIVE_COLOR,
    SERIES_COLORS,
    SMALL_FONT_PT,
    draw_box,
    draw_text,
    format_number,
    import_matplotlib,
    make_axes,
    max_text_width_px,
)
from slp_transformer.plotting.matrix_figures import full_color_value


def draw_bars(
    numbers: Sequence[float], labels: Sequence[Any], title: str, top: float | None, decimals: int
) -> Any:
    """Draw bars from a zero line, the negative to its left."""
    finite = [value for value in numbers if math.isfinite(value)]
    low, high = min([0.0, *finite]), max([0.0, *finite])
    high = top if top else high
    span = (high - low) or 1.0
    shown = [format_number(value, decimals) for value in numbers]
    aligned = max_text_width_px(labels) <= 0.4 * MAX_WIDTH_PX  # else each label is above its bar
    left = max_text_width_px(labels) + 8 if aligned else 0.0
    length = MAX_WIDTH_PX - left - max_text_width_px(shown, SMALL_FONT_PT) - 8
    step = 24.0 if aligned else 40.0
    axes = make_axes(MAX_WIDTH_PX, -step * len(numbers), 26 if title else 0)
    if title:
        draw_text(axes, left, 14, title, size=LARGE_FONT_PT, weight="bold", align="left")
    zero = left - length * low / span
    for k, (label, value) in enumerate(zip(labels, numbers, strict=True)):
        y = -step * (k + 1) + 3
        share = min(1.0, max(-1.0, value / span)) if math.isfinite(value) else 0.0
        start, color = (
            (zero, POSITIVE_COLOR) if value >= 0 else (zero + length * share, NEGATIVE_COLOR)
        )
        draw_box(axes, (left, y), length, 18, INK_COLOR, 0.05)
        draw_box(axes, (start, y), length * abs(share), 18, color, 0.75)
        if aligned:
            draw_text(axes, left - 8, y + 9, label, align="right")
        else:
            draw_text(axes, left, y + 27, label, align="left")
        draw_text(axes, left + length + 8, y + 9, shown[k], align="left", size=SMALL_FONT_PT)
    if low < 0:
        axes.plot(
            [zero, zero], [-step * len(numbers), 0], color=INK_COLOR, alpha=0.6, linewidth=0.8
        )
    return axes.figure


def draw_flow(panel: Any, row: int | None) -> Any:
    """Draw lines from inputs below to outputs above."""
    outputs, inputs = panel.values.shape
    tops = _labels_or_default(panel.rows, "a", outputs)
    lows = _labels_or_default(panel.columns, "x", inputs)
    widest = max(max_text_width_px(tops), max_text_width_px(lows))
    step = min(max(66.0, widest + 8), MAX_WIDTH_PX / max(outputs, inputs))
    turned = widest > step - 4
    room = widest + 14 if turned else 26.0
    rise, across = 110.0, step * max(outputs, inputs)
    axes = make_axes(across, -room, rise + room)
    full = full_color_value(panel)
    for i in range(outputs):
        for j in range(inputs):
            share = panel.values[i, j].item() / full
            if not math.isfinite(share) or share <= 0:
                continue
            aside = row is not None and row != i
            axes.plot(
                [step * (j + 0.5), step * (i + 0.5)], [5, rise - 5],
                color=INK_COLOR if aside else POSITIVE_COLOR, linewidth=0.8 if aside else 0.6 + 2 *
                share, alpha=0.12 if aside else 0.25 + 0.6 * share, solid_capstyle="round",
            )  # fmt: skip
    for labels, y, sign in ((lows, 0, -1), (tops, rise, 1)):
        for k, label in enumerate(labels):
            x = step * (k + 0.5)
            chosen = y == rise and (row is None or row == k)
            axes.plot([x], [y], "o", color=POSITIVE_COLOR if chosen else INK_COLOR, markersize=5.5)
            if turned:
                side = "bottom" if sign > 0 else "top"
                draw_text(axes, x, y + 9 * sign, label, rotation=90, va=side)
            else:
                draw_text(axes, x, y + 16 * sign, label)
    return axes.figure


def draw_lines(curves: Any, x: str, y: str, title: str, levels: Mapping[str, float]) -> Any:
    """Draw curves, and levels dashed or dotted."""
    size = (MAX_WIDTH_PX / 96, 2.75)
    figure = import_matplotlib().figure.Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["bottom", "left"]].set(color=INK_COLOR, alpha=0.4)
    axes.tick_params(colors=INK_COLOR, labelsize=SMALL_FONT_PT)
    axes.locator_params(axis="x", nbins=6)
    axes.grid(axis="y", color=INK_COLOR, alpha=0.1)
    ends = []
    for k, (name, (across, up)) in enumerate(curves.items()):
        color = SERIES_COLORS[k % len(SERIES_COLORS)]
        mark = "o" if len(up) < 16 else None
        axes.plot(across, up, color=color, linewidth=1.8, marker=mark, markersize=3.5, label=name)
        ends.append((up[-1], name, color))
    for k, (name, level) in enumerate(levels.items()):
        dashes = (0, ((4, 3), (1, 2))[k % 2])
        style = {"color": INK_COLOR, "alpha": 0.6, "linewidth": 1, "linestyle": dashes}
        axes.axhline(level, label=name, **style)
        ends.append((level, name, INK_COLOR))
    axes.margins(x=0.01)
    axes.set_xlabel(x, color=INK_COLOR, fontsize=NORMAL_FONT_PT)
    axes.set_ylabel(y, color=INK_COLOR, fontsize=NORMAL_FONT_PT)
    if max_text_width_px([name for _, name, _ in ends], SMALL_FONT_PT) <= 0.2 * MAX_WIDTH_PX:
        _label_line_ends(axes, ends)
    else:
        _add_legend_above(axes, [name for _, name, _ in ends])
    if title:
        figure.suptitle(
            title, color=INK_COLOR, fontsize=LARGE_FONT_PT, fontweight="bold", x=0.02, ha="left"
        )
    return figure


def _label_line_ends(axes: Any, ends: list[tuple[float, str, str]]) -> None:
    """Write the curves' names at the right edge, far enough apart to be read."""
    low, high = axes.get_ylim()
    apart, last = 0.09 * (high - low), -math.inf
    place = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "va": "center"}
    for y, name, color in sorted(ends):
        if not name:
            continue
        last = max(y, last + apart)
        at = {"xy": (1, last), "annotation_clip": False, "fontsize": SMALL_FONT_PT, **place}
        axes.annotate("▪", xytext=(3, 0), color=color, **at)  # the names are in ink, to be read
        axes.annotate(name, xytext=(10, 0), color=INK_COLOR, **at)


def _add_legend_above(axes: Any, names: list[str]) -> None:
    """Label the curves above the axes, in as few rows as possible."""
    widest = max_text_width_px(names, SMALL_FONT_PT) + 40
    columns = max(1, min(len(names), int((MAX_WIDTH_PX - 20) // widest)))
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, frameon=False,
        fontsize=SMALL_FONT_PT, labelcolor=INK_COLOR, handlelength=1.3, borderaxespad=0.3,
        columnspacing=1.2,
    )  # fmt: skip


def _labels_or_default(labels, letter: str, size: int) -> list[str]:
    if labels is not None:
        return [str(label) for label in labels]
    subscripts = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
    return [letter + str(k + 1).translate(subscripts) for k in range(size)]
