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
import inspect
import itertools
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from slp_transformer import drawing
from slp_transformer.storage import whole_file

# --- Source --------------------------------------------------------------------------------------


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
        if not docstring:
            code = _without_docstrings(code)
        if len(objects) > 1 and "." in thing.__qualname__:
            code = f"# {thing.__qualname__}\n{code}"  # two methods may have the same name
        blocks.append(code)
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


# --- Figures -------------------------------------------------------------------------------------


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
        return drawing.svg_of(self.figure)

    def _repr_html_(self) -> str:
        return f'<div class="slp-figure">{self.svg()}</div>'

    def save(self, path: str | Path) -> None:
        """Writes the figure to a file, whole; the format is the one that the name ends in."""
        path = Path(path)
        with whole_file(path) as unfinished:
            self.figure.savefig(unfinished, format=path.suffix[1:])


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

    Raises:
        ValueError: if there is no panel among them.
    """
    boxes = [part for part in parts if isinstance(part, Panel)]
    if not boxes:
        raise ValueError("show.panels needs at least one show.Panel to draw.")
    return Picture(lambda: drawing.draw_panels(parts, title))


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
    return Picture(lambda: drawing.draw_bars(row[0].tolist(), labels, title, top, decimals))


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
    return Picture(lambda: drawing.draw_flow(panel, row))


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
    return Picture(lambda: drawing.draw_lines(curves, x, y, title, levels or {}))


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
