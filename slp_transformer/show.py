"""What a chapter displays: the package's real source, and figures drawn from real tensors.

Nothing here is needed to use a model. Matplotlib is imported when the first figure is drawn.

Usage, each as the last expression of a cell (a figure's cell names its alt text: `# %% alt="..."`):

    show.source(causal_mask, attention)                  # one or more functions, classes, methods
    show.heatmap(alpha, rows=words, columns=words, title="α", top=1)
    show.panels(show.Panel(Q, "Q", "N × dₖ"), "×", show.Panel(K.T, "Kᵀ", "dₖ × N"),
                "=", show.Panel(Q @ K.T, "QKᵀ", "N × N"))
    show.bars(probabilities, words, title="y")           # a distribution
    show.flow(causal_mask(5) == 0, columns=inputs, rows=outputs)    # who may look at whom
    show.lines({"training": losses, "validation": others}, x="step", y="loss in nats")

In a plain script these lines draw nothing and print nothing. Titles and labels are plain Unicode
(Kᵀ, √dₖ, x₁), not TeX: the figures take the font and the color of the page they stand on.
"""

import ast
import hashlib
import inspect
import io
import itertools
import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
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


# ---------------------------------------------------------------------------- source


class Source:
    """Source code that a notebook shows as a block of Python with links to its API pages."""

    def __init__(self, code: str, names: Sequence[str]):
        self.code = code
        self.names = tuple(names)

    def __str__(self) -> str:
        return self.code

    def _repr_markdown_(self) -> str:
        links = ", ".join(
            f'<autoref identifier="{name}"><code>{name}</code></autoref>' for name in self.names
        )
        below = f'\n\n<small class="slp-source">{links}</small>' if links else ""
        return f"```python\n{self.code}\n```{below}"


def source(*objects: Any, docstring: bool = False) -> Source:
    """Shows the source of functions, classes, methods or properties, as it stands in the package.

    Args:
        objects: what to show, in this order.
        docstring: keep the docstrings; without them an equation's code fits on one screen.

    Returns:
        an object that a notebook displays; `str()` of it is the code.

    Raises:
        ValueError: without any object, or for one that has no Python source.

    Example:
        show.source(MultiHeadAttention.forward)
    """
    if not objects:
        raise ValueError("show.source needs at least one function, class or method to show.")
    blocks, names = [], []
    for thing in objects:
        if isinstance(thing, property):
            thing = thing.fget
        try:
            code = textwrap.dedent(inspect.getsource(thing)).rstrip()
        except (TypeError, OSError):
            raise ValueError(
                f"show.source can show only what was written in Python, and {thing!r} was not."
            ) from None
        blocks.append(code if docstring else _without_docstrings(code))
        if thing.__module__.split(".")[0] == __name__.split(".")[0]:
            # A private method has no entry of its own in the reference: link to its class.
            public = itertools.takewhile(
                lambda part: not part.startswith("_"), thing.__qualname__.split(".")
            )
            names.append(".".join([thing.__module__, *public]))
    return Source("\n\n\n".join(blocks), names)


def _without_docstrings(code: str) -> str:
    """The same code, less the docstrings of the definition and of all that stands inside it."""
    lines = code.splitlines()
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if ast.get_docstring(node, clean=False) is None or len(node.body) == 1:
            continue
        text = node.body[0]
        for number in range(text.lineno - 1, text.end_lineno):
            lines[number] = None
        if text.end_lineno < len(lines) and lines[text.end_lineno] == "":
            lines[text.end_lineno] = None  # the blank line below it
    return "\n".join(line for line in lines if line is not None)


# ---------------------------------------------------------------------------- figures


class Picture:
    """A figure that is drawn when a notebook shows it: SVG in the font and color of its page.

    So a chapter that runs as a script needs no Matplotlib and spends no time on drawing.
    """

    def __init__(self, draw: Callable[[], Any]):
        self._draw = draw

    def __repr__(self) -> str:
        return "<Picture>"

    @cached_property
    def figure(self) -> Any:
        """The `matplotlib.figure.Figure`, for whoever wants to add to it."""
        return self._draw()

    def svg(self) -> str:
        """The figure as an SVG element: transparent, text as text, ids of its own."""
        matplotlib = _matplotlib()
        settings = {"svg.fonttype": "none", "svg.hashsalt": "slp", "font.family": "sans-serif"}
        buffer = io.StringIO()
        with matplotlib.rc_context(settings):
            self.figure.savefig(
                buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
            )
        return _tidy(buffer.getvalue())

    def _repr_html_(self) -> str:
        return f'<div class="slp-figure">{self.svg()}</div>'

    def save(self, path: str | Path) -> None:
        """Writes the figure to a file; the format is the one that the name ends in."""
        self.figure.savefig(path)


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


def _tidy(svg: str) -> str:
    """Makes Matplotlib's SVG file fit to stand in a page, beside other figures."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*|<style.*?</style>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"\s*\n\s*", " ", svg).replace("> <", ">\n<")
    svg = svg.replace("<svg ", '<svg style="stroke-linejoin: round" ', 1)
    svg = svg.replace(_INK, "currentColor")
    svg = re.sub(r"font: ([\d.]+px|[^;\"']*?([\d.]+px))[^;\"]*", r"font-size: \g<1>", svg)
    svg = re.sub(r"font-family: [^;\"]*", "font-family: inherit", svg)
    # Two figures on a page must not share an id: keep those that are referred to, made unique.
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
    mark = hashlib.sha256(svg.encode()).hexdigest()[:8]
    svg = re.sub(r' id="([^"]*)"', lambda m: f' id="f{mark}-{m[1]}"' if m[1] in used else "", svg)
    return re.sub(r'(href="#|url\(#)', rf"\g<1>f{mark}-", svg).strip()


@dataclass
class Panel:
    """One matrix of a figure.

    Attributes:
        matrix: [rows × columns], or a vector, which is taken as one row; tensor, array or lists.
        title: its name, above it.
        shape: its shape in letters, below it, such as "N × dₖ"; the default is in numbers.
        rows: a label for each row.
        columns: a label for each column.
        top: the value that gets the full color; the default is the largest magnitude.
        decimals: how many digits after the point; None leaves the cells without numbers.
    """

    matrix: Any
    title: str = ""
    shape: str | None = None
    rows: Sequence[Any] | None = None
    columns: Sequence[Any] | None = None
    top: float | None = None
    decimals: int | None = 2

    def __post_init__(self) -> None:
        self.values = _tensor(self.matrix, self.title)
        height, width = self.values.shape
        for name, labels, size in (("row", self.rows, height), ("column", self.columns, width)):
            if labels is not None and len(labels) != size:
                raise ValueError(
                    f"Matrix {self.title!r} has {size} {name}s, but {len(labels)} {name} labels "
                    f"were given; give one for each {name}."
                )
        if self.shape is None:
            self.shape = f"{height} × {width}"

    @property
    def cell(self) -> float:
        """The side of a cell: smaller where no number has to fit in."""
        return 1.0 if self.decimals is not None else min(0.6, 14 / max(self.values.shape))

    @property
    def left(self) -> float:
        """The room that the row labels take."""
        return 0.15 + _LETTER * _longest(self.rows) if self.rows is not None else 0.0

    @property
    def above(self) -> float:
        """The room that the column labels take."""
        if self.columns is None:
            return 0.0
        return 0.15 + _LETTER * _longest(self.columns) if self._upright else 0.5

    @property
    def _upright(self) -> bool:
        return self.columns is not None and _LETTER * _longest(self.columns) > self.cell


def heatmap(
    matrix: Any,
    rows: Sequence[Any] | None = None,
    columns: Sequence[Any] | None = None,
    title: str = "",
    shape: str = "",
    top: float | None = None,
    decimals: int | None = 2,
) -> Picture:
    """Draws one matrix, its numbers in its cells; −∞ is hatched.

    Args:
        matrix: [rows × columns]; tensor, array or lists.
        rows: a label for each row, at its left.
        columns: a label for each column, above it.
        title: above the matrix.
        shape: below the matrix, such as "N × N".
        top: the value that gets the full color (1 for attention weights).
        decimals: digits after the point; None leaves the cells without numbers.

    Raises:
        ValueError: for what is not a matrix, or the wrong number of labels.
    """
    return panels(Panel(matrix, title, shape, rows, columns, top, decimals))


def panels(*parts: Panel | str, title: str = "") -> Picture:
    """Draws several matrices side by side, with what stands between them ("×", "+", "=", "→").

    Args:
        parts: panels and texts, from left to right.
        title: above them all.
    """
    boxes = [part for part in parts if isinstance(part, Panel)]
    if not boxes:
        raise ValueError("show.panels needs at least one show.Panel to draw.")
    return Picture(lambda: _draw_panels(parts, boxes, title))


def _draw_panels(parts: Sequence[Panel | str], boxes: Sequence[Panel], title: str) -> Any:
    tallest = max(box.values.shape[0] * box.cell for box in boxes)
    above = max(box.above for box in boxes)
    head = above + (0.75 if any(box.title for box in boxes) else 0.0)
    foot = 0.6 if any(box.shape for box in boxes) else 0.0
    widths = [
        part.left + part.values.shape[1] * part.cell
        if isinstance(part, Panel)
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
        if isinstance(part, Panel):
            _draw(axes, part, x + part.left)
        else:
            _text(axes, x + room / 2, 0, part, size=14)
        x += room + gap
    return axes.figure


def _draw(axes: Any, panel: Panel, x: float) -> None:
    """Draws a panel whose cells begin at x, halfway up at 0."""
    height, width = panel.values.shape
    side, half = panel.cell, height * panel.cell / 2
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
        turned = {"rotation": 90, "va": "bottom"} if panel._upright else {}
        y = half + (0.12 if panel._upright else 0.28)
        _text(axes, x + (j + 0.5) * side, y, label, size=_SMALL, **turned)
    if panel.title:
        _text(axes, middle, half + panel.above + 0.32, panel.title, size=11, weight="bold")
    if panel.shape:
        _text(axes, middle, -half - 0.35, f"[{panel.shape}]", size=_SMALL, alpha=0.75)


def _draw_cell(axes: Any, panel: Panel, i: int, j: int, x: float, y: float) -> None:
    value = panel.values[i, j].item()
    side, edge = panel.cell, 0.03 * panel.cell
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


def _draw_pixels(axes: Any, panel: Panel, x: float, half: float) -> None:
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
    extent = (x, x + width * panel.cell, -half, half)
    axes.imshow(pixels.numpy(), extent=extent, interpolation="none", aspect="auto")


def bars(
    values: Any, labels: Sequence[Any], title: str = "", top: float | None = None, decimals: int = 3
) -> Picture:
    """Draws a distribution, or any list of numbers, as one bar for each label.

    Args:
        values: [n], such as the probabilities of n words.
        labels: n labels.
        title: above the bars.
        top: the value of a full-length bar; the default is the largest magnitude.
        decimals: digits after the point.

    Raises:
        ValueError: when there are not as many labels as values.
    """
    row = _tensor(values, title)
    if row.shape[0] != 1 or row.shape[1] != len(labels):
        raise ValueError(
            f"show.bars needs one label for each value, but got values of shape "
            f"{tuple(torch.as_tensor(values).shape)} and {len(labels)} labels."
        )
    return Picture(lambda: _draw_bars(row[0].tolist(), labels, title, top, decimals))


def _draw_bars(numbers, labels, title, top, decimals) -> Any:
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


def flow(
    weights: Any,
    rows: Sequence[Any] | None = None,
    columns: Sequence[Any] | None = None,
    title: str = "",
    row: int | None = None,
) -> Picture:
    """Draws who looks at whom: inputs below, outputs above, a line where the weight is not 0.

    Args:
        weights: [outputs × inputs], the attention weights, or True where attention is allowed.
        rows: a label for each output.
        columns: a label for each input.
        title: above the figure.
        row: the output whose lines stand out; all do by default.

    Raises:
        ValueError: for what is not a matrix, or the wrong number of labels.
    """
    panel = Panel(weights, title, rows=rows, columns=columns)
    return Picture(lambda: _draw_flow(panel, row))


def _draw_flow(panel: Panel, row: int | None) -> Any:
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


def lines(
    series: Mapping[str, Any] | Any,
    x: str = "",
    y: str = "",
    title: str = "",
    at: Sequence[float] | None = None,
    levels: Mapping[str, float] | None = None,
) -> Picture:
    """Draws curves, such as a loss over the steps, each named at its right end.

    Args:
        series: the values [n] under their names, or the values of one curve; values given as
            pairs [n × 2] bring their own places on the x axis.
        x: what the x axis shows, with its unit.
        y: what the y axis shows, with its unit.
        title: above the figure.
        at: [n] places on the x axis; the default is 0, 1, 2, ...
        levels: dashed lines at a height, under their names (such as a chance level).
    """
    curves = {}
    for name, values in (series if isinstance(series, Mapping) else {"": series}).items():
        values = torch.as_tensor(values, dtype=torch.float64).detach().cpu()
        if values.ndim == 2 and values.shape[1] == 2:
            across, up = values[:, 0].tolist(), values[:, 1].tolist()
        else:
            up = values.flatten().tolist()
            across = list(at) if at is not None else list(range(len(up)))
        if len(across) != len(up) or not up:
            raise ValueError(
                f"Curve {name!r} has {len(up)} values for {len(across)} places on the x axis; "
                "it needs one value for each, and at least one."
            )
        curves[name] = (across, up)
    return Picture(lambda: _draw_lines(curves, x, y, title, levels or {}))


def _draw_lines(curves, x, y, title, levels) -> Any:
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


def _canvas(left: float, right: float, bottom: float, top: float) -> Any:
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


def _tensor(matrix: Any, name: str) -> torch.Tensor:
    values = torch.as_tensor(matrix, dtype=torch.float64).detach().cpu().clone()
    if values.ndim == 1:
        values = values[None, :]
    if values.ndim != 2 or values.numel() == 0:
        raise ValueError(
            f"A figure needs a matrix or a vector, but {name or 'the values'} came with shape "
            f"{tuple(values.shape)}; choose one, for example with an index."
        )
    return values


def _full(panel: Panel) -> float:
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
