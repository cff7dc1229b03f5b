"""Figures of real tensors, as a chapter displays them.

Matplotlib is imported when the first one is drawn.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from slp_transformer._internal.atomic_write import atomic_write
from slp_transformer.plotting import canvas, matrix_figures, plots

# What does not fit into a page's width goes on below; what is still too wide scrolls.
_ROW_STYLE = (
    "display: flex; flex-wrap: wrap; align-items: center; gap: 0.4em 0.7em; overflow-x: auto"
)


class Figure:
    """A figure that is drawn when a notebook shows it: SVG in the font and color of its page.

    So a chapter that runs as a script needs no Matplotlib and spends no time on drawing.
    """

    def __init__(self, draw: Callable[[], Any], page: Callable[[], str] | None = None):
        self._draw, self._page = draw, page

    def __repr__(self) -> str:
        return "<Figure>"

    @cached_property
    def figure(self) -> Any:
        """The `import_matplotlib.figure.Figure`, for whoever wants to add to it."""
        return self._draw()

    def svg(self) -> str:
        """Return the figure as an SVG element: transparent, text as text, ids of its own."""
        return canvas.figure_to_svg(self.figure)

    def _repr_html_(self) -> str:
        content = self._page() if self._page else self.svg()
        return f'<div class="slp-figure" style="{_ROW_STYLE}">{content}</div>'

    def save(self, path: str | Path) -> None:
        """Write the figure to a file, whole; the format is the one that the name ends in."""
        path = Path(path)
        with atomic_write(path) as file:
            self.figure.savefig(file, format=path.suffix[1:])


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

    Raises:
        ValueError: if there is no matrix, or not one label for each row or column.
    """

    matrix: Any
    title: str = ""
    shape: str | None = None
    rows: Sequence[Any] | None = None
    columns: Sequence[Any] | None = None
    top: float | None = None
    decimals: int | None = 2

    def __post_init__(self) -> None:
        self.values: torch.Tensor = _to_matrix(self.matrix, self.title)
        height, width = self.values.shape
        for name, labels, size in (("row", self.rows, height), ("column", self.columns, width)):
            if labels is not None and len(labels) != size:
                raise ValueError(
                    f"Matrix {self.title!r} has {size} {name}s, but {len(labels)} {name} labels "
                    f"were given; give one for each {name}."
                )
        if self.shape is None:
            self.shape = f"{height} × {width}"


def heatmap(
    matrix: Any,
    rows: Sequence[Any] | None = None,
    columns: Sequence[Any] | None = None,
    title: str = "",
    shape: str = "",
    top: float | None = None,
    decimals: int | None = 2,
) -> Figure:
    """Draw one matrix, its numbers in its cells; −∞ is hatched.

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


def panels(*parts: Panel | str) -> Figure:
    """Draw several matrices side by side, with what stands between them ("×", "+", "=", "→").

    Args:
        parts: panels and texts, from left to right.

    Raises:
        ValueError: if there is no panel among them.
    """
    boxes = [part for part in parts if isinstance(part, Panel)]
    if not boxes:
        raise ValueError("plotting.panels needs at least one plotting.Panel to draw.")
    return Figure(
        lambda: matrix_figures.draw_panels(parts), lambda: matrix_figures.panels_to_html(parts)
    )


def bars(
    values: Any, labels: Sequence[Any], title: str = "", top: float | None = None, decimals: int = 3
) -> Figure:
    """Draw a distribution, or any list of numbers, as one bar for each label.

    Args:
        values: [n], such as the probabilities of n words.
        labels: n labels.
        title: above the bars.
        top: the value of a full-length bar; the default is the largest magnitude.
        decimals: digits after the point.

    Raises:
        ValueError: when there are not as many labels as values.
    """
    row = _to_matrix(values, title)
    if row.shape[0] != 1 or row.shape[1] != len(labels):
        raise ValueError(
            f"plotting.bars needs one label for each value, but got values of shape "
            f"{tuple(torch.as_tensor(values).shape)} and {len(labels)} labels."
        )
    return Figure(lambda: plots.draw_bars(row[0].tolist(), labels, title, top, decimals))


def flow(
    weights: Any,
    rows: Sequence[Any] | None = None,
    columns: Sequence[Any] | None = None,
    row: int | None = None,
) -> Figure:
    """Draw who looks at whom: inputs below, outputs above, a line where the weight is not 0.

    Args:
        weights: [outputs × inputs], the attention weights, or True where attention is allowed.
        rows: a label for each output.
        columns: a label for each input.
        row: the output whose lines stand out; all do by default.

    Raises:
        ValueError: for what is not a matrix, or the wrong number of labels.
    """
    panel = Panel(weights, rows=rows, columns=columns)
    return Figure(lambda: plots.draw_flow(panel, row))


def lines(
    series: Mapping[str, Any] | Any,
    x: str = "",
    y: str = "",
    title: str = "",
    at: Sequence[float] | None = None,
    levels: Mapping[str, float] | None = None,
) -> Figure:
    """Draw curves, such as a loss over the steps, each named at its right end.

    Args:
        series: the values [n] under their names, or the values of one curve; values given as
            pairs [n × 2] bring their own places on the x axis.
        x: what the x axis shows, with its unit.
        y: what the y axis shows, with its unit.
        title: above the figure.
        at: [n] places on the x axis; the default is 0, 1, 2, ...
        levels: dashed and dotted lines at a height, under their names (such as a chance level).

    Raises:
        ValueError: if a curve has no values, or not one for each place on the x axis.
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
    return Figure(lambda: plots.draw_lines(curves, x, y, title, levels or {}))


def _to_matrix(matrix: Any, name: str) -> torch.Tensor:
    values = torch.as_tensor(matrix, dtype=torch.float64).detach().cpu().clone()
    if values.ndim == 1:
        values = values[None, :]
    if values.ndim != 2 or values.numel() == 0:
        raise ValueError(
            f"A figure needs a matrix or a vector, but {name or 'the values'} came with shape "
            f"{tuple(values.shape)}; choose one, for example with an index."
        )
    return values
