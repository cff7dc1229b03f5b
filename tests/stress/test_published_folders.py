"""Damaged folders of published models end in work or in one sentence, soon and in little memory."""

import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("safetensors", reason="the campaign needs the text extra")
if not hasattr(os, "fork"):
    pytest.skip("the campaign forks", allow_module_level=True)
sys.path.insert(0, str(Path(__file__).parent))

import published_folders  # noqa: E402


@pytest.mark.slow
def test_nothing_is_lost_in_a_small_campaign():
    counts, lost = published_folders.campaign(100, seed=7)
    assert lost == []
    assert counts["ended with 0"] > 10 and counts["ended with 2"] > 30
