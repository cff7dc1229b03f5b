"""Points for a submission: what a file states, as Gradescope reads it."""

import json
import re

import pytest
from whole import whole

from slp_transformer.check import CHECKS
from slp_transformer.check.__main__ import main
from slp_transformer.check.grading import gradescope

POINTS = "softmax = 2\nffn = 3.5\nattention = 1\ntop_k = 1\nblock = 1\ncausal_mask = 1\n"
ROWS = [
    {
        "file": "a.py",
        "right": ["softmax"],
        "wrong": {"ffn": "b_2 is not used."},
        "missing": ["top_k"],
        "imported": {"causal_mask": "slp_transformer.causal_mask"},
        "uses the package": {"attention": ["slp_transformer.attention.attention"]},
        "not limited": ["No."],
    },
    {"file": "b.py", "right": ["ffn"], "wrong": {"softmax": "No."}, "missing": []},
]


def graded(tmp_path, monkeypatch, rows):
    """The tests of results.json by name, and all of it, for files that are reported on so."""
    (tmp_path / "points.toml").write_text(POINTS, encoding="utf-8")
    monkeypatch.setattr(gradescope, "report_on_class", lambda folder: {"files": rows})
    out = tmp_path / "results.json"
    command = [str(tmp_path), "--gradescope", str(tmp_path / "points.toml")]
    assert main([*command, "--results", str(out)]) == 0
    results = json.loads(out.read_text("utf-8"))
    return {one["name"]: one for one in results["tests"]}, results


def test_points_are_those_that_the_file_states(tmp_path, monkeypatch, capsys):
    tests, results = graded(tmp_path, monkeypatch, ROWS)
    said = f"Written to {tmp_path / 'results.json'}: 5.5 of 9.5 points.\n"
    assert capsys.readouterr().out == said
    assert {name: (one["score"], one["max_score"]) for name, one in tests.items()} == {
        "softmax": (2, 2), "ffn": (3.5, 3.5), "attention": (0, 1), "top_k": (0, 1),
        "block": (0, 1), "causal_mask": (0, 1),
    }  # fmt: skip
    uses = "It uses this course's package (slp_transformer.attention.attention); write it without."
    assert {name: (one["status"], one["output"]) for name, one in tests.items()} == {
        "softmax": ("passed", f"It agrees with {CHECKS['softmax'].source}."),
        "ffn": ("passed", f"It agrees with {CHECKS['ffn'].source}."),
        "attention": ("failed", uses),
        "top_k": ("failed", "It is not there: write top_k(u, k), or my_top_k(u, k)."),
        "block": (
            "failed",
            "It is not there: write block(X, attention, ffn, norm_1, norm_2), or "
            "my_block(X, attention, ffn, norm_1, norm_2).",
        ),
        "causal_mask": (
            "failed", "It is imported (slp_transformer.causal_mask); write it yourself."
        ),
    }  # fmt: skip
    del results["tests"]
    assert results == {"visibility": "visible", "extra_data": {"not limited": ["No."]}}
    wrong, _ = graded(tmp_path, monkeypatch, ROWS[:1])
    assert wrong["ffn"]["output"] == "b_2 is not used." and wrong["ffn"]["status"] == "failed"


def test_a_file_that_ends_early_is_said_and_has_no_points(tmp_path, monkeypatch):
    rows = [{"file": "a.py", "right": [], "wrong": {}, "missing": [], "error": "It ended."}]
    tests, results = graded(tmp_path, monkeypatch, rows)
    assert results["output"] == "a.py: It ended."
    assert {one["score"] for one in tests.values()} == {0}
    outputs = {one["output"] for one in tests.values()}
    assert outputs == {"It was not tried, or did not come to an end: see above."}
    nothing = "There is no script and no notebook in what was handed in."
    assert graded(tmp_path, monkeypatch, [])[1]["output"] == nothing


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("softmx = 1", ": there is no check named 'softmx'. Is it softmax?"),
        ("qqq = 1", ": there is no check named 'qqq'."),
        ('softmax = "2"', ": the points of softmax are no number: '2'."),
        ("softmax = true", ": the points of softmax are no number: True."),
        ("softmax = -1", ": the points of softmax should be from 0 to 1000000."),
        ("softmax = 1000000.5", ": the points of softmax should be from 0 to 1000000."),
        ("softmax = nan", ": the points of softmax should be from 0 to 1000000."),
        (
            "softmax = 0\ntop_k = 1000000\nffn = nan",
            ": the points of ffn should be from 0 to 1000000.",
        ),
        ("softmax", " is no TOML: …"),
        ("", " states no points: write a line such as `softmax = 2`."),
    ],
)
def test_points_that_cannot_be_given_are_refused(text, words, tmp_path, monkeypatch, capsys):
    path = tmp_path / "points.toml"
    path.write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main([str(tmp_path), "--gradescope", str(path)]) == 2
    said = capsys.readouterr().err
    assert re.match(whole(f"check: {path}{words}\n"), said) and said.count("\n") == 1
    assert not (tmp_path / "results.json").exists()


def test_results_write_over_no_submission(tmp_path, capsys):
    (tmp_path / "points.toml").write_text(POINTS, encoding="utf-8")
    (tmp_path / "a.py").write_text("pi = 3", encoding="utf-8")
    how = ["--gradescope", str(tmp_path / "points.toml"), "--results", str(tmp_path / "a.py")]
    assert main([str(tmp_path), *how]) == 2
    assert "--results would write over" in capsys.readouterr().err
    assert (tmp_path / "a.py").read_text(encoding="utf-8") == "pi = 3"
