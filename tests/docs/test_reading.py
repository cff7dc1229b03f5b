"""How much of a chapter is left: its minutes as it states them, and what the label says."""

import json
from pathlib import Path

import pytest
from test_chapters import CHAPTERS

pytest.importorskip("py_mini_racer", reason="the script runs in V8")
SCRIPT = Path(__file__).parents[2] / "docs" / "assets" / "reading.js"
BEFORE = {"share": 0.41, "place": "one-head", "title": "One head"}


@pytest.fixture(scope="module")
def reading():
    from py_mini_racer import MiniRacer

    engine = MiniRacer()
    engine.eval(SCRIPT.read_text("utf-8"))

    def call(name, *values):
        said = ", ".join(map(json.dumps, values))
        return json.loads(engine.eval(f"JSON.stringify(Reading.{name}({said}))"))

    yield call
    engine.close()


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("Ten minutes of PyTorch come first. About 70 minutes.", 70),
        ("About two hours; the comparison can wait.", 120),
        ("It says nothing of time, but has 13 figures.", 0),
    ],
)
def test_minutes_are_those_that_the_text_states(text, minutes, reading):
    assert reading("minutesIn", text) == minutes


def test_every_chapter_states_its_minutes_where_the_script_looks(reading):
    for path in CHAPTERS:
        head = path.read_text("utf-8").partition("# %%\n")[0]
        assert 30 <= reading("minutesIn", head) <= 120, path


@pytest.mark.parametrize(
    ("share", "minutes", "before", "moved", "text", "place"),
    [
        (0.0, 70, None, False, "70 min left", ""),
        (0.31, 70, None, True, "49 min left", ""),  # 48.3, rounded up
        (1.0, 70, None, True, "read", ""),
        (0.5, 0, None, True, "", ""),
        (0.02, 70, BEFORE, False, "Go on at “One head”", "one-head"),
        (0.02, 70, BEFORE, True, "69 min left", ""),  # who scrolls has gone on
        (0.37, 70, BEFORE, False, "45 min left", ""),  # is there already
        (0.02, 70, {**BEFORE, "share": 0.98}, False, "69 min left", ""),  # was through
        (0.02, 70, {**BEFORE, "place": ""}, False, "69 min left", ""),
    ],
)
def test_the_label_leads_on_or_says_what_is_left(
    share, minutes, before, moved, text, place, reading
):
    assert reading("label", share, minutes, before, moved) == {"text": text, "place": place}
