"""The campaign of interruptions, in small; and that it would notice a loss."""

import sys
from pathlib import Path

import pytest
from own_process import python

CAMPAIGN = Path(__file__).with_name("interruptions.py")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="the commands are forked"),
]


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


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from Linux's /proc")
def test_a_long_run_that_much_goes_wrong_with_ends_as_one_left_alone():
    ended = python(CAMPAIGN.with_name("soak.py"), "--steps", "200")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "the same after" in ended.stdout
