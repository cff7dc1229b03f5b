"""Chapter 7 as a command: it climbs on the reader's own text, and says no in one sentence."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from own_process import environment

CHAPTER = Path(__file__).parents[2] / "chapters" / "07_training.py"
SMALL = ["--steps", "3", "--last-steps", "2", "--last-width", "8", "--last-blocks", "1"]
RUNGS = ["bigram", "one head", "four heads", "blocks", "more room"]


def run(*arguments, cwd) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, str(CHAPTER), *arguments],
        cwd=cwd,
        env={**environment(), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=600,
    )


def test_climbs_on_a_text_of_one_s_own(tmp_path):
    text = "the guitarist tuned the string because it was flat.\n" * 40
    (tmp_path / "own.txt").write_text(text, encoding="utf-8")
    ended = run("--corpus", "own.txt", *SMALL, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert re.findall(r"^(.+): [\d.]+ nats$", ended.stdout, re.M) == RUNGS


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--corpus", "nowhere.txt"], "nowhere.txt"),
        (["--steps", "0"], "steps must be a whole number of 1 or more, not 0"),
        (["--last-width", "7"], "model_dim = 7 cannot be shared equally among num_heads = 4"),
        (["--corpus", "short.txt"], "one window of 64"),
    ],
)
def test_bad_input_gets_one_sentence_and_exit_code_2(tmp_path, arguments, sentence):
    (tmp_path / "short.txt").write_text("a b " * 50, encoding="utf-8")
    ended = run(*arguments, cwd=tmp_path)
    assert ended.returncode == 2
    assert sentence in ended.stderr and "Traceback" not in ended.stderr
