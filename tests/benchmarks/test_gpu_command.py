"""`benchmarks/gpu.py` without a GPU: every step on next to nothing, with little else installed."""

import json
import os
from pathlib import Path

import pytest
from own_process import python

ROOT = Path(__file__).resolve().parents[2]
BLOCKED = ("beartype", "mido", "pooch", "tokenizers", "tomli_w", "transformers")
AS_IF_NOT_INSTALLED = f"""
import importlib.machinery as machinery

real = machinery.PathFinder.find_spec

def find_spec(kind, name, *where):
    return None if name.partition(".")[0] in {BLOCKED} else real(name, *where)

machinery.PathFinder.find_spec = classmethod(find_spec)
"""
TAB = "e|-0-1-3-1-|\nB|---------|\nG|---------|\nD|---------|\nA|---------|\nE|-3-----3-|\n"


@pytest.fixture
def command(tmp_path):
    """Runs the command where some libraries are missing; gives what it said and wrote."""
    (tmp_path / "sitecustomize.py").write_text(AS_IF_NOT_INSTALLED, encoding="utf-8")
    (tmp_path / "tabs").mkdir()
    for number in range(12):
        (tmp_path / "tabs" / f"{number}.txt").write_text((TAB + "\n") * 4, encoding="utf-8")
    (tmp_path / "text.txt").write_text("to be, or not to be; " * 40, encoding="utf-8")
    paths = os.pathsep.join([str(tmp_path), str(ROOT)])

    def run(*words: str):
        words = ("--out", tmp_path / "out", "--device", "cpu", *words)
        told = python(ROOT / "benchmarks" / "gpu.py", *words, PYTHONPATH=paths)
        found = (tmp_path / "out").glob("*.json") if (tmp_path / "out").exists() else []
        return told, {path.stem: json.loads(path.read_text("utf-8")) for path in found}

    run.folder = tmp_path
    return run


STEPS = ["machine", "resume", "sharded", "decode-b1", "numbers", "train-12x768"]
STEPS += ["shakespeare", "guitar"]
ALIKE = ["decode-b64", "train-6x384"]  # others of them once more, if they are tiny


def test_all_steps_have_their_turn_unless_some_are_named(command):
    told, results = command("--minutes", 0)
    assert told.returncode == 0, told.stderr
    assert results.keys() == {*STEPS, *ALIKE}
    assert {result["skipped"] for result in results.values()} == {"no time was left"}


@pytest.mark.slow
def test_every_step_is_taken_and_what_is_missing_is_named(command):
    given = ("--tabs", command.folder / "tabs", "--text", command.folder / "text.txt")
    busy = ("--minutes", 90)  # a busy machine takes its time
    told, results = command("--tiny", *busy, *given, "--only", *STEPS)
    assert told.returncode == 0, told.stderr
    assert results.keys() == {*STEPS}
    bad = {"failed", "skipped", "cut off"}
    assert not {name: result for name, result in results.items() if bad & result.keys()}
    assert set(BLOCKED) <= results["machine"]["left out"].keys()
    assert "transformers not installed" in results["train-12x768"]["left out"]["Hugging Face"]
    assert results["resume"]["numbers"]["killed half-way and resumed"]["off"] == 0
    assert results["sharded"]["numbers"]["loss of ten steps"]["off"] < 1e-5
    assert {"slp_transformer, eager", "slp_transformer, compiled"} <= results["train-12x768"][
        "table"
    ].keys()
    assert "passed" in results["numbers"]["table"]["numerical tests"]
    for name in ("shakespeare", "guitar"):
        assert results[name]["table"]["the run"].startswith("to its end")
    report = (command.folder / "out" / "report.txt").read_text("utf-8")
    assert report in told.stdout and "slp_transformer, compiled" in report


def test_a_folder_that_is_not_there_is_named_before_anything_runs(command):
    told, results = command("--tabs", "nowhere")
    assert (told.returncode, results) == (2, {})
    assert "there is no nowhere" in told.stderr
