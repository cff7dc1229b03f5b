"""Draw bars, curves, and who looks at whom."""

import math
from typing import Any

from slp_transformer.plotting.canvas import (
    INK,
    LARGE,
    NEGATIVE,
    NORMAL,
    POSITIVE,
    SERIES,
    SMALL,
    WIDE,
    box,
    canvas,
    longest,
    matplotlib,
    number,
    text,
)
from slp_transformer.plotting.matrix_figures import full_value


def draw_bars(numbers, labels, title, top, decimals) -> Any:
    """Draw what `plotting.bars` was given: from a zero line, the negative to its left."""
    finite = [value for value in numbers if math.isfinite(value)]
    low, high = min([0.0, *finite]), max([0.0, *finite])
    high = top if top else high
    span = (high - low) or 1.0
    shown = [number(value, decimals) for value in numbers]
    beside = longest(labels) <= 0.4 * WIDE  # else each label stands above its bar
    left = longest(labels) + 8 if beside else 0.0
    length = WIDE - left - longest(shown, SMALL) - 8
    step = 24.0 if beside else 40.0
    axes = canvas(WIDE, -step * len(numbers), 26 if title else 0)
    if title:
        text(axes, left, 14, title, size=LARGE, weight="bold", align="left")
    zero = left - length * low / span
    for k, (label, value) in enumerate(zip(labels, numbers, strict=True)):
        y = -step * (k + 1) + 3
        share = min(1.0, max(-1.0, value / span)) if math.isfinite(value) else 0.0
        start, color = (zero, POSITIVE) if value >= 0 else (zero + length * share, NEGATIVE)
        box(axes, (left, y), length, 18, INK, 0.05)
        box(axes, (start, y), length * abs(share), 18, color, 0.75)
        if beside:
            text(axes, left - 8, y + 9, label, align="right")
        else:
            text(axes, left, y + 27, label, align="left")
        text(axes, left + length + 8, y + 9, shown[k], align="left", size=SMALL)
    if low < 0:
        axes.plot([zero, zero], [-step * len(numbers), 0], color=INK, alpha=0.6, linewidth=0.8)
    return axes.figure


def draw_flow(panel: Any, row: int | None) -> Any:
    """Draw what `plotting.flow` was given."""
    outputs, inputs = panel.values.shape
    tops = _labels(panel.rows, "a", outputs)
    lows = _labels(panel.columns, "x", inputs)
    widest = max(longest(tops), longest(lows))
    step = min(max(66.0, widest + 8), WIDE / max(outputs, inputs))
    turned = widest > step - 4
    room = widest + 14 if turned else 26.0
    rise, across = 110.0, step * max(outputs, inputs)
    axes = canvas(across, -room, rise + room + (24 if panel.title else 0))
    if panel.title:
        text(axes, across / 2, rise + room + 10, panel.title, size=LARGE, weight="bold")
    full = full_value(panel)
    for i in range(outputs):
        for j in range(inputs):
            share = panel.values[i, j].item() / full
            if not math.isfinite(share) or share <= 0:
                continue
            aside = row is not None and row != i
            axes.plot(
                [step * (j + 0.5), step * (i + 0.5)], [5, rise - 5],
                color=INK if aside else POSITIVE, linewidth=0.8 if aside else 0.6 + 2 * share,
                alpha=0.12 if aside else 0.25 + 0.6 * share, solid_capstyle="round",
            )  # fmt: skip
    for labels, y, sign in ((lows, 0, -1), (tops, rise, 1)):
        for k, label in enumerate(labels):
            x = step * (k + 0.5)
            chosen = y == rise and (row is None or row == k)
            axes.plot([x], [y], "o", color=POSITIVE if chosen else INK, markersize=5.5)
            if turned:
                side = "bottom" if sign > 0 else "top"
                text(axes, x, y + 9 * sign, label, rotation=90, va=side)
            else:
                text(axes, x, y + 16 * sign, label)
    return axes.figure


def draw_lines(curves, x, y, title, levels) -> Any:
    """Draw what `plotting.lines` was given."""
    size = (WIDE / 96, 2.75)
    figure = matplotlib().figure.Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("bottom", "left"):
        axes.spines[side].set(color=INK, alpha=0.4)
    axes.tick_params(colors=INK, labelsize=SMALL)
    axes.locator_params(axis="x", nbins=6)
    axes.grid(axis="y", color=INK, alpha=0.1)
    ends = []
    for k, (name, (across, up)) in enumerate(curves.items()):
        color = SERIES[k % len(SERIES)]
        mark = "o" if len(up) < 16 else None
        axes.plot(across, up, color=color, linewidth=1.8, marker=mark, markersize=3.5, label=name)
        ends.append((up[-1], name, color))
    for name, level in levels.items():
        style = {"color": INK, "alpha": 0.6, "linewidth": 1, "linestyle": (0, (4, 3))}
        axes.axhline(level, label=name, **style)
        ends.append((level, name, INK))
    axes.margins(x=0.01)
    axes.set_xlabel(x, color=INK, fontsize=NORMAL)
    axes.set_ylabel(y, color=INK, fontsize=NORMAL)
    if longest([name for _, name, _ in ends], SMALL) <= 0.2 * WIDE:
        _name_ends(axes, ends)
    else:
        _name_above(axes, [name for _, name, _ in ends])
    if title:
        figure.suptitle(title, color=INK, fontsize=LARGE, fontweight="bold", x=0.02, ha="left")
    return figure


def _name_ends(axes: Any, ends: list[tuple[float, str, str]]) -> None:
    """Write the curves' names at the right edge, far enough apart to be read."""
    low, high = axes.get_ylim()
    apart, last = 0.09 * (high - low), -math.inf
    place = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "va": "center"}
    for y, name, color in sorted(ends):
        if not name:
            continue
        last = max(y, last + apart)
        at = {"xy": (1, last), "annotation_clip": False, "fontsize": SMALL, **place}
        axes.annotate("▪", xytext=(3, 0), color=color, **at)  # the names are in ink, to be read
        axes.annotate(name, xytext=(10, 0), color=INK, **at)


def _name_above(axes: Any, names: list[str]) -> None:
    """Label the curves above the axes, in as few rows as possible."""
    widest = longest(names, SMALL) + 40
    columns = max(1, min(len(names), int((WIDE - 20) // widest)))
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, frameon=False, fontsize=SMALL,
        labelcolor=INK, handlelength=1.3, borderaxespad=0.3, columnspacing=1.2,
    )  # fmt: skip


def _labels(labels, letter: str, size: int) -> list[str]:
    if labels is not None:
        return [str(label) for label in labels]
    subscripts = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
    return [letter + str(k + 1).translate(subscripts) for k in range(size)]
