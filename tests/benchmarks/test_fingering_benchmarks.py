"""Pitch to tab, measured on keys of written tab."""

import json
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_baselines_are_measured_on_written_tab(tmp_path, monkeypatch, capsys):
    """Three pieces of the first position: the hand gets all of it right."""
    frets = [(1, 3), (2, 0), (2, 2), (2, 3), (3, 0), (3, 2), (4, 0), (4, 1)]
    events = [[1, [list(place)]] for place in frets]
    piece = {"file": "a", "open_midi": [40, 45, 50, 55, 59, 64], "events": events}
    for split in ("train", "text", "valid"):
        (tmp_path / f"{split}.jsonl").write_text((json.dumps(piece) + "\n") * 3, encoding="utf-8")
    monkeypatch.syspath_prepend(ROOT / "benchmarks")  # where it finds its own modules
    monkeypatch.setattr(sys, "argv", ["pitch_to_tab.py", str(tmp_path), "--draws", "20"])
    runpy.run_path(str(ROOT / "benchmarks" / "pitch_to_tab.py"), run_name="__main__")
    first, *ways = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["pieces"] == 3 and first["notes"] == 24 and first["people's events playable"] == 1
    found = {line["way"]: line for line in ways}
    assert found["costs set by hand, and notes ring"]["strings"] == 1
    assert found["random legal"]["strings"] < 1 and found["random legal"]["pitch"] == 1
    assert found["P(string given pitch)"]["strings"] == 1
    assert found["random legal"]["gain 95 %"][1] < 0
