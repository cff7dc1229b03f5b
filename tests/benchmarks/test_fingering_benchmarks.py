"""Pitch to tab, measured: on keys of written tab, and on GuitarSet with each player left out."""

import json
from pathlib import Path

from own_process import python
from test_guitarset import jams

ROOT = Path(__file__).parents[2]


def lines_of(*words) -> list[dict]:
    done = python(ROOT / words[0], *words[1:])
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_baselines_are_measured_on_written_tab(tmp_path):
    """Three pieces of the first position: the hand gets all of it right."""
    frets = [(1, 3), (2, 0), (2, 2), (2, 3), (3, 0), (3, 2), (4, 0), (4, 1)]
    events = [[1, [list(place)]] for place in frets]
    piece = {"file": "a", "open_midi": [40, 45, 50, 55, 59, 64], "events": events}
    for split in ("train", "text", "valid"):
        (tmp_path / f"{split}.jsonl").write_text((json.dumps(piece) + "\n") * 3, encoding="utf-8")
    first, *ways = lines_of("benchmarks/pitch_to_tab.py", tmp_path, "--draws", 20)
    assert first["pieces"] == 3 and first["notes"] == 24 and first["people's events playable"] == 1
    found = {line["way"]: line for line in ways}
    assert found["hand-position Viterbi"]["strings"] == 1
    assert found["random legal"]["strings"] < 1 and found["random legal"]["pitch"] == 1
    assert found["P(string given pitch)"]["strings"] == 1
    assert found["random legal"]["gain 95 %"][1] < 0


def players(folder: Path) -> None:
    """Three players: two take E4 open, the third at the fifth fret of the second string."""
    for player, (string, place) in {"00": (5, 64), "01": (5, 64), "02": (4, 64)}.items():
        notes = [(string, k / 4, 0.2, float(place)) for k in range(8)]
        (folder / f"{player}_Rock1-120-C_solo.jams").write_bytes(jams(notes))
