"""Damaged guitar files of every kind end in music or in one sentence, soon and in little memory."""

import random
import sys
from pathlib import Path

import pytest

for needed in ("mido", "guitarpro", "safetensors", "tomli_w"):
    pytest.importorskip(needed, reason="the campaign needs the guitar and text extras")

sys.path.insert(0, str(Path(__file__).parent))

import guitar_files  # noqa: E402


def test_a_file_that_is_not_damaged_is_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(guitar_files, "WAYS", (lambda path, draw: "nothing",))
    monkeypatch.setattr(guitar_files, "reword", lambda path, draw: "nothing")
    tabs = guitar_files.make_practice_corpus(0, 5)
    for kind in guitar_files.KINDS:
        trial = guitar_files.one_trial(tmp_path, kind, 0, 0, tabs)
        assert (trial.outcome, trial.problem) == ("read", ""), trial


def test_a_traceback_and_a_long_tale_are_lost(tmp_path, monkeypatch):
    tabs = guitar_files.make_practice_corpus(0, 5)
    for wrong in (KeyError("x"), ValueError("two\nlines"), ValueError("long " * 200)):

        def fail(path, wrong=wrong):
            raise wrong

        monkeypatch.setattr(guitar_files, "read_any_tab_file", fail)
        assert guitar_files.one_trial(tmp_path, ".mid", 0, 0, tabs).problem


@pytest.mark.parametrize("way", guitar_files.WAYS)
def test_damage_is_the_same_for_the_same_seed(tmp_path, way):
    contents = []
    for _ in range(2):
        path = tmp_path / "file.bin"
        path.write_bytes(bytes(range(200)))
        way(path, random.Random(3))
        contents.append(path.read_bytes())
    assert contents[0] == contents[1] != bytes(range(200))


@pytest.mark.slow
def test_nothing_is_lost_in_a_small_campaign():
    trials = guitar_files.campaign(25, seed=7)
    assert [str(trial) for trial in trials if trial.problem] == []
    for row in guitar_files.summary(trials):
        assert row["tried"] == 25 and row.get("refused", 0) + row.get("read in part", 0) > 2, row
