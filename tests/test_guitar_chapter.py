"""Chapter 12 as a command: it learns from a folder of tabs, and says no in one sentence."""

import subprocess
import sys
from pathlib import Path

import pytest

from slp_transformer.guitar import practice_corpus, read_tabs, write_tab

CHAPTER = Path(__file__).parents[1] / "chapters" / "12_guitar_tab.py"


def run(*arguments, cwd) -> subprocess.CompletedProcess:
    command = [sys.executable, str(CHAPTER), *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, encoding="utf-8", timeout=600
    )


def test_learns_from_a_folder_of_tabs_and_writes_tabs_that_can_be_read(tmp_path):
    folder = tmp_path / "tabs"
    folder.mkdir()
    for number, tab in enumerate(practice_corpus(seed=3, pieces=12)):
        write_tab(tab, folder / f"{number:02}.txt")
    (folder / "notes.txt").write_text("No tab here.\n", encoding="utf-8")
    small = ["--steps", 3, "--width", 8, "--blocks", 1, "--context", 40]
    ended = run("tabs", *small, "--save", "out", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "12 pieces read from tabs" in ended.stdout
    assert "step     3" in ended.stdout
    assert (tmp_path / "out" / "loss.svg").stat().st_size > 0
    tabs, problems = read_tabs(tmp_path / "out")
    assert tabs and not problems


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "There is no folder nowhere"),
        (["--held-out", "."], "No tablature in ."),
        (["--steps", "0"], "steps must be a whole number of 1 or more, not 0"),
        (["--width", "7"], "model_dim = 7 cannot be shared equally among num_heads = 4"),
        (["--context", "90000"], "one window of 90000"),
    ],
)
def test_bad_input_gets_one_sentence_and_exit_code_2(tmp_path, arguments, sentence):
    ended = run(*arguments, "--save", "out", cwd=tmp_path)
    assert ended.returncode == 2
    assert sentence in ended.stderr and "Traceback" not in ended.stderr
    assert list(tmp_path.iterdir()) == []
