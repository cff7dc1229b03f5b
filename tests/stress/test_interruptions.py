"""The campaign of interruptions, in small; and that it would notice a loss."""

import sys
from pathlib import Path

import pytest
from own_process import PLACES, python

CAMPAIGN = Path(__file__).with_name("interruptions.py")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="the commands are forked"),
]

# A run that loses its random state goes on to other weights.
FORGETFUL = f"""
import runpy, sys
sys.path[:0] = {[str(place) for place in PLACES]}
import slp_transformer.training.trainer as loop
loop.set_rng_state = lambda *_: None
sys.argv = [{str(CAMPAIGN)!r}, *"--kills 0 --signals 4 --races 0 --full-disks 0".split()]
runpy.run_path({str(CAMPAIGN)!r}, run_name="__main__")
"""


def test_nothing_is_lost():
    counts = ["--kills", "8", "--signals", "6", "--races", "2", "--full-disks", "4"]
    ended = python(CAMPAIGN, *counts)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.splitlines()[-4:] == [
        "kills: tried 8, kept 8, lost 0",
        "signals: tried 6, kept 6, lost 0",
        "races: tried 2, kept 2, lost 0",
        "full disks: tried 4, kept 4, lost 0",
    ]


def test_a_loss_is_noticed():
    ended = python("-c", FORGETFUL)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "lost, signals" in ended.stdout and "is another one" in ended.stdout
