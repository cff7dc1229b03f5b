"""The page "Break it": what became of chapter 5's model with each mistake."""

import json
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

MARK, QUIZ = "<!-- mistakes -->", "<!-- unnamed -->"
TESTS = {
    "shape": "shape",
    "rows": "rows",
    "causal": "causality",
    "equal": "equality",
    "cache": "cache",
}
UNNAMED = ("positions from 0 with a cache", "mask one too late", "targets not shifted")
WIDEST = 0.6  # nats at the right end of a bar


@cache
def results(root: Path) -> dict[str, Any]:
    """Return the recorded run, with the medians that the page shows."""
    run = json.loads(
        (root / "benchmarks" / "results" / "mistakes" / "mistakes.json").read_text("utf-8")
    )
    for mistake in run["mistakes"]:
        if mistake["loss"]:
            for key in ("loss", "prefix_loss", "sentences_of_the_text"):
                mistake[key] = median(mistake[key])
            mistake["width"] = min(100, 100 * mistake["loss"] / WIDEST)
            mistake["cheats"] = mistake["loss"] < run["floor"] - 0.005
    return run


def fill(content: str, root: Path) -> str:
    """Return the page with the mistakes, and those without a name, in their places."""
    folder = FileSystemLoader(Path(__file__).parent / "templates")
    environment = Environment(
        loader=folder, autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    run = results(root)
    named = {mistake["name"]: mistake for mistake in run["mistakes"]}
    template = environment.get_template("mistakes.html").module
    shown = {"run": run, "tests": TESTS, "floor": 100 * run["floor"] / WIDEST}
    table = template.table(run["mistakes"], **shown)
    quiz = template.quiz([named[name] for name in UNNAMED], **shown)
    return content.replace(MARK, str(table)).replace(QUIZ, str(quiz))
