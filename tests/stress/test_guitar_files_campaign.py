"""Damaged guitar files of every kind end in music or in one sentence, soon and in little memory."""

import sys
from pathlib import Path

import pytest

for needed in ("mido", "guitarpro", "safetensors", "tomli_w"):
    pytest.importorskip(needed, reason="the campaign needs the guitar and text extras")

sys.path.insert(0, str(Path(__file__).parent))

import guitar_files  # noqa: E402
from mutations import summary  # noqa: E402


@pytest.mark.slow
def test_nothing_is_lost_in_a_small_campaign():
    trials = guitar_files.campaign(25, seed=7)
    assert [str(trial) for trial in trials if trial.problem] == []
    for row in summary(trials):
        assert row["tried"] == 25 and row.get("refused", 0) + row.get("read in part", 0) > 2, row
