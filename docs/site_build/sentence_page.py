"""The page "One sentence": its matrices with their equations and code, and a still picture."""

import json
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import diagrams
from jinja2 import Environment, FileSystemLoader, StrictUndefined

MARK = "<!-- sentence -->"
STAGE = 'id="slp-sentence"'
FIRST = "the guitarist tightened the string because it was"


TITLES = {"input": "The input", "block": "A block", "top": "The top"}
WEIGHTS = {
    "W_Q": "W<sup>Q</sup>",
    "W_K": "W<sup>K</sup>",
    "W_V": "W<sup>V</sup>",
    "W_O": "W<sup>O</sup>",
    "W_1": "W<sub>1</sub>",
    "W_2": "W<sub>2</sub>",
}


class Matrix(NamedTuple):
    """A matrix of the page.

    Attributes:
        key: its name in sentence.js.
        letter: its name in the book, as HTML.
        what: what it is, in a few words.
        slugs: its equations; the first one's formula is shown.
        object: what computes it in the package.
        code: a part of the line that does, which no other line of the object has.
    """

    key: str
    letter: str
    what: str
    slugs: list[str]
    object: str
    code: str


@cache
def groups() -> dict[str, list[Matrix]]:
    """Return the matrices of each part of the page."""
    table = tomllib.loads(Path(__file__).with_name("sentence.toml").read_text("utf-8"))
    return {part: [Matrix(**entry) for entry in table[part]] for part in TITLES}


# Where a part of the map leads, if not to the matrix that shows its equation.
ON_THE_MAP = {
    **{"t4": "m-T4", "mh-par-out": "m-alpha", "O": "m-T3", "ffn": "m-T5", "H": "m-H"},
    **{"top-p": "next-word", "probs": "m-y"},
}


def map_link(slug: str) -> tuple[str, str] | None:
    """Return where a part of the map leads on this page."""
    place = ON_THE_MAP.get(slug) or places().get(slug)
    return (f"#{place}", "its numbers") if place else None


def places() -> dict[str, str]:
    """Return the matrix that shows an equation, by the equation's slug."""
    found: dict[str, str] = {}
    for matrices in groups().values():
        for matrix in matrices:
            for slug in matrix.slugs:
                found.setdefault(slug, f"m-{matrix.key}")
    return found


def code_line(source: str, matrix: Matrix) -> str:
    """Return the line of an object's source that computes a matrix.

    Raises:
        ValueError: if no line, or more than one, has the words that it is known by.
    """
    lines = [line.strip() for line in source.splitlines() if matrix.code in line]
    if len(lines) != 1:
        raise ValueError(
            f"{matrix.object} has {len(lines)} lines with {matrix.code!r}, which the page "
            f'"One sentence" shows for {matrix.key}: change its table in sentence_page.py.'
        )
    return lines[0]


@cache
def still(folder: Path) -> dict[str, Any]:
    """Compute what a page without JavaScript shows of the first sentence."""
    import torch
    from safetensors.torch import load_file

    from slp_transformer import TransformerConfig, TransformerLM, record_activations

    spec = json.loads((folder / "config.json").read_text("utf-8"))
    words = json.loads((folder / "words.json").read_text("utf-8"))
    model = TransformerLM(TransformerConfig(**spec["config"]))
    model.load_state_dict(load_file(folder / "model.safetensors"))
    ids = torch.tensor([words["vocabulary"].index(word) for word in FIRST.split()])
    with torch.no_grad(), record_activations(model) as trace:
        y = model(ids)[-1].softmax(dim=-1)
    return {
        "words": FIRST.split(),
        "vocabulary": words["vocabulary"],
        "y": y.tolist(),
        "alpha": [steps["alpha"].tolist() for steps in trace],
    }


def fill(
    content: str,
    root: Path,
    equations: dict[str, Any],
    link: Callable[[str], tuple[str, str] | None],
    source_of: Callable[[str], str],
    assets: str,
) -> str:
    """Return the page with its matrices in their place.

    Args:
        content: the page as Markdown made it.
        root: the top of the repository.
        equations: what is known of each equation, by slug.
        link: where an equation is found.
        source_of: the source of an object of the package.
        assets: the address of the engine's folder.

    Raises:
        ValueError: if a line of code that the page shows is gone.
    """

    def shown(matrix: Matrix) -> dict[str, Any]:
        first = equations[matrix.slugs[0]]
        said = [(equations[slug], link(slug)) for slug in matrix.slugs]
        return {
            **matrix._asdict(),
            "line": code_line(source_of(matrix.object), matrix),
            "tex": first.tex,
            "displayed": first.tex.startswith("\\begin{align"),
            "equations": [(one.numbers, where and where[0]) for one, where in said],
        }

    folder = FileSystemLoader(Path(__file__).parent / "templates")
    environment = Environment(
        loader=folder, autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    page = environment.get_template("sentence.html").render(
        groups={key: (TITLES[key], map(shown, some)) for key, some in groups().items()},
        weights=WEIGHTS,
        still=still(root / "docs" / "assets" / "model" / "chapter5"),
        first=FIRST,
        assets=assets,
        maps=[diagrams.drawing(map_link, frozenset(), upright) for upright in (False, True)],
    )
    return content.replace(MARK, page)
