"""Figures to touch: their data travels with the page, which lets a reader choose and change.

Each is a still figure too. On paper, in a plain notebook and without JavaScript it stays one; on
the site `docs/assets/touch.js` puts native controls above it, and says in words what they have
done.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import torch

from slp_transformer._internal.sampling_table import SAMPLING
from slp_transformer.plotting.figures import Figure, bars, heatmap, lines


@dataclass(repr=False)
class InteractiveFigure:
    """A figure that a page lets its reader change.

    Attributes:
        kind: which controls it gets: "weights", "sampling", "scores", "lines" or "steps".
        values: what they work on.
        still_figure: the still figure.
        steps: the figures to choose from, for "steps".
    """

    kind: str
    values: dict[str, Any]
    still_figure: Figure
    steps: Sequence[Figure] = ()

    def __repr__(self) -> str:
        return f"<InteractiveFigure {self.kind!r}>"

    def _repr_html_(self) -> str:
        values = escape(json.dumps(self.values, ensure_ascii=False), quote=True)
        start = f'<div class="slp-touch" data-kind="{self.kind}" data-values="{values}">'
        steps = "".join(figure._repr_html_() for figure in self.steps)
        steps = f"<template>{steps}</template>" if steps else ""
        return f"{start}{self.still_figure._repr_html_()}{steps}</div>"


def interactive_weights(alpha: Any, words: Sequence[str], start: int = -1) -> InteractiveFigure:
    """Choose a token and a head, and see what the one reads through the other.

    Args:
        alpha: [heads × N × N], attention weights.
        words: N words.
        start: the token that is chosen at first, and that the still figure shows.

    Raises:
        ValueError: if the weights are not of N words by N.
    """
    numbers = torch.as_tensor(alpha).detach()
    if numbers.ndim != 3 or numbers.shape[1:] != (len(words), len(words)):
        raise ValueError(
            f"interactive_weights needs [heads × N × N] for {len(words)} words, but the weights "
            f"came with shape {tuple(numbers.shape)}."
        )
    chosen = start % len(words)
    names = [f"head {c + 1}" for c in range(len(numbers))]
    seen = slice(0, chosen + 1)
    still = heatmap(numbers[:, chosen, seen], names, list(words)[seen], words[chosen], top=1)
    values = {"alpha": _to_rounded_lists(numbers), "words": list(words), "start": chosen}
    return InteractiveFigure("weights", values, still)


def interactive_sampling(u: Any, words: Sequence[str]) -> InteractiveFigure:
    """Slide the sampling options that need no text so far over a distribution.

    Args:
        u: [|V|], logits.
        words: |V| words.

    Raises:
        ValueError: when there are not as many words as logits.
    """
    numbers = torch.as_tensor(u).detach()
    still = bars(torch.softmax(numbers, dim=-1), words, title="y", top=1)
    options = [
        {
            "name": name,
            "label": f"{name.replace('_', '-')} ({slider.symbol})",
            "low": slider.low,
            "high": slider.high or len(words),
            "step": slider.step,
            "off": len(words) if slider.off is None else slider.off,
        }
        for name, option in SAMPLING.items()
        if (slider := option.slider) and not option.reads_ids
    ]
    values = {"u": _to_rounded_lists(numbers), "words": list(words), "options": options}
    return InteractiveFigure("sampling", values, still)


def interactive_scores(
    X: Any, words: Sequence[str], features: Sequence[str], start: int = -1
) -> InteractiveFigure:
    """Change a word's numbers, and watch the scores and weights of the simplest attention.

    Args:
        X: [N × d], one row a word.
        words: N words.
        features: d names.
        start: the word that reads, at first.

    Raises:
        ValueError: if there is not one name for each row and column.
    """
    numbers = torch.as_tensor(X).detach()
    still = heatmap(numbers, words, features, "X", "N × d")
    chosen = start % len(words)
    values = {"X": _to_rounded_lists(numbers), "words": list(words), "features": list(features)}
    return InteractiveFigure("scores", values | {"start": chosen}, still)


def interactive_steps(
    name: str, states: Mapping[Any, tuple[Figure, str]], start: int = 0
) -> InteractiveFigure:
    """Move through figures: the steps of a computation, or the values of a setting.

    Args:
        name: what the control chooses, such as "step" or "dₖ".
        states: for each value of the control, a figure and a sentence that says what it shows.
        start: the place of the state that is shown at first, and that the still figure shows.

    Raises:
        ValueError: if there are fewer than two states.
    """
    if len(states) < 2:
        raise ValueError(
            f"interactive_steps needs at least two states to choose from, but got {len(states)}."
        )
    figures = [figure for figure, _ in states.values()]
    sentences = [sentence for _, sentence in states.values()]
    values = {"name": name, "labels": [str(label) for label in states], "said": sentences}
    return InteractiveFigure("steps", values | {"start": start}, figures[start], figures)


def interactive_lines(
    series: Mapping[str, Any], shown: Sequence[str], x: str, y: str
) -> InteractiveFigure:
    """Choose which curves are drawn.

    Args:
        series: the points [n × 2] of each curve under its name.
        shown: names of those drawn at first, and in the still figure.
        x: what the x axis shows, with its unit.
        y: what the y axis shows, with its unit.

    Raises:
        ValueError: if a name is not that of a curve, or a curve has no points.
    """
    if missing := [name for name in shown if name not in series]:
        raise ValueError(
            f"interactive_lines has no curve {missing[0]!r}, only {', '.join(series)}."
        )
    still = lines({name: series[name] for name in shown}, x, y)
    curves = [
        {"name": name, "points": _to_rounded_lists(torch.as_tensor(points)), "shown": name in shown}
        for name, points in series.items()
    ]
    return InteractiveFigure("lines", {"curves": curves, "x": x, "y": y}, still)


def _to_rounded_lists(numbers: torch.Tensor) -> Any:
    """Return lists, with the digits that a page can show."""
    return numbers.double().cpu().round(decimals=4).tolist()
