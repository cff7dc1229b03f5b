"""The recorded scaling study: its laws follow from its runs, and its page says what they say."""

import csv
import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("scaling", ROOT / "benchmarks" / "scaling.py")
scaling = importlib.util.module_from_spec(spec)
spec.loader.exec_module(scaling)


def recorded() -> list[dict[str, float]]:
    rows = (
        (ROOT / "benchmarks" / "results" / "scaling" / "runs.csv")
        .read_text(encoding="utf-8")
        .splitlines()
    )
    return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(rows)]


def test_the_recorded_laws_are_those_of_the_recorded_runs():
    laws = json.loads(
        (ROOT / "benchmarks" / "results" / "scaling" / "laws.json").read_text(encoding="utf-8")
    )
    for name, law in scaling.fit(recorded()).items():
        for key, value in law.items():
            assert laws["laws"][name][key] == pytest.approx(value), f"{key} of {name}"


def test_the_chapter_and_the_results_page_give_the_recorded_numbers():
    record = ROOT / "benchmarks" / "results" / "scaling" / "README.md"
    text, misses = record.read_text(encoding="utf-8"), []
    for law in scaling.fit(recorded()).values():
        for number in (*law["foretold"], *law["found"]):
            assert f"{number:.3f}" in text or f"{number - 1e-9:.3f}" in text, number
        misses += [abs(a - b) for a, b in zip(law["foretold"], law["found"], strict=True)]
    chapter = (ROOT / "chapters" / "08_scale.py").read_text(encoding="utf-8")
    said = f"by {min(misses):.2f} to {max(misses):.2f} nats"
    assert said in chapter.replace("\n# ", " ")
