"""Damaged folders of published models end in work or in one sentence, soon and in little memory."""

import os
from pathlib import Path

import pytest
from own_process import python

CAMPAIGN = Path(__file__).with_name("published_folders.py")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the campaign forks")
def test_nothing_is_lost_in_a_small_campaign():
    pytest.importorskip("safetensors", reason="the campaign needs the text extra")
    done = python(CAMPAIGN, "--count", "80", "--seed", "7")
    assert done.returncode == 0 and "tried 80, kept 80" in done.stdout, done.stdout + done.stderr
