"""`slp-transformer fit-costs`: costs of the hand from tabs of one's own, and `tab --costs`."""

import json

import pytest
from commands import fine, refused

from slp_guitar.ascii.reader import read_tab_file
from slp_guitar.fingering.costs import MAX_WEIGHT, UNIT, load_weights
from slp_guitar.fingering.passages import passage_from_grips
from slp_guitar.formats.registry import write_tab
from slp_guitar.fretboard import STANDARD
from slp_guitar.tab import Bar, Event, Tab

pytest.importorskip("mido", reason="`tab` needs the guitar extra")
SCALE = (60, 62, 64, 65, 67, 69, 71, 72)


def at_the_fifth_fret(pitches):
    """As someone plays who never takes an open string: everything between frets 5 and 9."""
    for pitch in pitches:
        places = [note for note in STANDARD.positions_of(pitch) if 5 <= note.fret <= 9]
        yield (min(places, key=lambda note: note.fret),)


def write_tabs(folder):
    """Six scales, each beginning elsewhere, in files of a folder."""
    folder.mkdir()
    for k in range(6):
        row = SCALE[k:] + SCALE[: k + 1][::-1] + SCALE
        events = [Event(n, grip) for n, grip in enumerate(at_the_fifth_fret(row))]
        bar = Bar(len(events), tuple(events))
        write_tab(Tab(f"scale {k}", STANDARD, (bar,)), folder / f"scale{k}.txt")
    (folder / "notes.doc").write_text("no tab", encoding="utf-8")
    (folder / "words.txt").write_text("no tab either", encoding="utf-8")


def places(path):
    (tab,), _ = read_tab_file(path)
    return [event.notes for event in tab.iter_events()]


@pytest.mark.slow
def test_a_hand_learns_where_people_play(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_tabs(tmp_path / "mine")
    fine("fit-costs", "mine", "-o", "costs.json")
    said = capsys.readouterr().err
    assert "6 pieces, 102 moments" in said and "words.txt" in said
    content = json.loads((tmp_path / "costs.json").read_text(encoding="utf-8"))
    assert content["pieces"] == 6 and content["weights"].keys() == load_weights().keys()
    assert all(weight / UNIT == int(weight / UNIT) for weight in content["weights"].values())
    song = Tab("", STANDARD, (Bar(8, tuple(Event(n, grip) for n, grip in enumerate(
        at_the_fifth_fret(pitch - 7 for pitch in SCALE)))),))  # fmt: skip
    write_tab(song, "song.txt")
    fine("tab", "song.txt", "--refinger", "-o", "plain.txt")
    fine("tab", "song.txt", "--costs", "costs.json", "-o", "mine.txt")
    assert places("mine.txt") == places("song.txt") != places("plain.txt")


def test_composers_are_folders_or_names_of_files_and_no_titles(tmp_path, capsys, monkeypatch):
    cost_fitting = pytest.importorskip("slp_guitar.fingering.cost_fitting")
    monkeypatch.chdir(tmp_path)
    for name in ("sor/a", "sor/b_1", "tarrega_1", "tarrega_2"):
        (tmp_path / "mine" / name).parent.mkdir(parents=True, exist_ok=True)
        bar = Bar(1, (Event(0, (STANDARD.positions_of(60)[0],)),))
        write_tab(Tab("bach_air", STANDARD, (bar,)), tmp_path / "mine" / f"{name}.txt")
    chosen = []
    monkeypatch.setattr(cost_fitting, "fit_weights", lambda own, say: chosen.extend(own) or {})
    fine("fit-costs", "mine", "-o", "costs.json", "--pieces", "2")
    assert "2 pieces, 2 moments, of 2 composers: a folder below is one" in capsys.readouterr().err
    assert {passage.name[:3] for passage in chosen} == {"sor", "tar"}


def test_what_is_remembered_is_the_search_s_own(monkeypatch):
    """And not the written fingering: so the fit cannot trust it too much."""
    cost_fitting = pytest.importorskip("slp_guitar.fingering.cost_fitting")
    passage = passage_from_grips(STANDARD, list(at_the_fifth_fret(SCALE * 2)))
    asked = []

    def search(passage, costs):
        asked.append(dict(costs.weights))
        return list(passage.grips)

    monkeypatch.setattr(cost_fitting, "find_cheapest_fingering", search)
    said = []
    weights = cost_fitting.fit_weights([passage], said.append, rounds=2, steps=2)
    assert asked[0] == load_weights() != asked[1] and len(said) == 2
    assert weights.keys() == load_weights().keys() and weights != asked[1]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read"),
        ("{", "cannot be read"),
        ("[]", 'has no "weights"'),
        ({"weights": {"frest": 1.0}}, "weighs 'frest', which no cost is made of"),
        ({"weights": {"frets": "much"}}, f"frets must weigh -{MAX_WEIGHT} to {MAX_WEIGHT}"),
        ({"weights": {"frets": float("nan")}}, "frets must weigh"),
    ],
)
def test_other_files_are_refused_in_a_sentence(tmp_path, capsys, monkeypatch, content, said):
    monkeypatch.chdir(tmp_path)
    write_tab(Tab("", STANDARD, (Bar(1, (Event(0, (STANDARD.positions_of(60)[0],)),)),)), "a.txt")
    if content is not None:
        text = content if isinstance(content, str) else json.dumps(content)
        (tmp_path / "costs.json").write_text(text, encoding="utf-8")
    assert said in refused(capsys, "tab", "a.txt", "--costs", "costs.json")


def test_nothing_to_learn_from_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    out = ["-o", "costs.json"]
    write_tab(Tab("", STANDARD, (Bar(1, (Event(0, (STANDARD.positions_of(60)[0],)),)),)), "a.txt")
    assert "no tab with strings and frets in mine" in refused(capsys, "fit-costs", "mine", *out)
    assert "none.txt" in refused(capsys, "fit-costs", "none.txt", *out)
    assert "--pieces must be from 1" in refused(capsys, "fit-costs", "mine", "--pieces", "0", *out)
    assert "is a folder" in refused(capsys, "tab", "a.txt", "--costs", "mine")
    assert not (tmp_path / "costs.json").exists()
