"""Run folders that an earlier version wrote open as ever: their files are no import names.

`runs_of_0.3.0.zip` has three, by the commands of 0.3.0 when the guitar was a part of
`slp_transformer`: a text, practice tabs, and pairs of numbers, two steps each.
"""

import zipfile
from pathlib import Path

import pytest
from commands import fine

ZIP = Path(__file__).with_name("runs_of_0.3.0.zip")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("before")
    with zipfile.ZipFile(ZIP) as archive:
        archive.extractall(folder)
    return folder


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("evaluate text --samples 1 --max-new-tokens 3", "3.538"),  # as 0.3.0 said
        ("generate text --prompt The --temperature 0 --max-new-tokens 9", "The"),
        ("evaluate tabs --samples 1 --max-new-tokens 8", "6.692"),
        ("generate tabs --temperature 0 --max-new-tokens 12", "tuning: E A D G B E"),
        ("translate pairs five", ""),
        ("train --out-dir text --resume --steps 3", "val loss 3.534"),
    ],
)
def test_a_run_of_0_3_0_is_evaluated_writes_and_goes_on(words, said, runs, monkeypatch, capfd):
    monkeypatch.chdir(runs)
    fine(*words.split())
    shown = capfd.readouterr()
    assert said in shown.out + shown.err
