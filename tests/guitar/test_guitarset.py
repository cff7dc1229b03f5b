"""GuitarSet at the door: strings turned round, beats made steps, known errors corrected."""

import json
import os
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from slp_guitar.guitarset import read_guitarset_tabs, read_jams_tab
from slp_guitar.tab_task import TabData, TabTask
from slp_transformer.tasks.base import Dataset
from slp_transformer.tasks.config_files import load_config

REAL = os.environ.get("SLP_GUITARSET", "")
"""A folder with files of the publisher's, 00_BN1-129-Eb_comp and _solo among them."""


def prepare(source: Path, folder: Path) -> Dataset:
    config = load_config(task="tabs")
    config = replace(
        config, model=replace(config.model, context_length=20), data=TabData(str(source))
    )
    return TabTask().prepare(config, folder)


def jams(notes, beats=9, first=1, chords=(("C:maj", "C:maj/1"),)):
    """A made JAMS file: notes as (string, 0 the lowest, onset, duration, pitch)."""
    annotations = [
        {
            "namespace": "note_midi",
            "annotation_metadata": {"data_source": str(string)},
            "data": [
                {"time": onset, "duration": length, "value": pitch, "confidence": None}
                for own, onset, length, pitch in notes
                if own == string
            ],
        }
        for string in range(6)
    ]
    values = [
        {"position": (first - 1 + i) % 4 + 1, "measure": 1, "num_beats": 4, "beat_units": 4}
        for i in range(beats)
    ]
    annotations.append({
        "namespace": "beat_position",
        "data": [{"time": i / 2, "duration": 0.0, "value": v} for i, v in enumerate(values)],
    })  # fmt: skip
    for kind in range(2):
        data = [{"time": 0.0, "duration": 2.0, "value": names[kind]} for names in chords]
        annotations.append({"namespace": "chord", "data": data})
    return json.dumps({"annotations": annotations}).encode()


def events_of(excerpt):
    return [
        (number, event.step, [tuple(n) for n in event.notes], event.durations)
        for number, bar in enumerate(excerpt.bars)
        for event in bar.events
    ]


def test_an_excerpt_by_hand():
    notes = [(0, 0.004, 0.5, 43.1), (5, 0.021, 0.25, 67.2), (1, 0.51, 0.2, 45.0)]
    notes += [(2, 2.167, 1.0, 51.9)]
    excerpt, problems = read_jams_tab(jams(notes), "02_Rock3-120-F#_comp.jams")
    assert problems == []
    assert excerpt.title == "Rock3-120-F# comp"
    assert excerpt.style == "Rock"
    assert events_of(excerpt) == [
        (0, 0, [(6, 3), (1, 3)], (12, 6)),
        (0, 12, [(5, 0)], (5,)),
        (1, 4, [(4, 2)], (24,)),
    ]
    assert [(bar.steps, bar.time_signature, bar.tempo_bpm) for bar in excerpt.bars] == [
        (48, (4, 4), 120), (48, None, None), (48, None, None),
    ]  # fmt: skip
    assert excerpt.steps_per_quarter == 12


def test_bars_begin_where_the_beats_say():
    excerpt, _ = read_jams_tab(jams([(0, 0.5, 0.5, 40.0)], first=4), "00_BN1-120-C_solo.jams")
    assert [bar.steps for bar in excerpt.bars] == [12, 48, 48]
    assert events_of(excerpt) == [(1, 0, [(6, 0)], (12,))]


def test_what_no_guitar_has_is_left_out_and_told():
    notes = [(0, 0.0, 0.5, 39.0), (3, 1.0, 0.5, 80.0), (4, 1.5, 0.5, 59.0), (4, 1.52, 0.5, 60.0)]
    excerpt, problems = read_jams_tab(jams(notes), "00_BN1-120-C_solo.jams")
    assert [tuple(n) for event in excerpt.iter_events() for n in event.notes] == [(2, 0)]
    assert [str(problem) for problem in problems] == [
        "00_BN1-120-C_solo.jams: a note at 0.000 s is left out: string 6, fret -1",
        "00_BN1-120-C_solo.jams: a note at 1.000 s is left out: string 3, fret 25",
        "00_BN1-120-C_solo.jams: 1 notes begin on a string that is struck already",
    ]


def test_the_known_errors_are_corrected():
    twice = [(0, 10.860, 0.2, 43.0), (0, 10.860, 0.2, 43.0)]
    excerpt, problems = read_jams_tab(jams(twice, beats=30), "02_Funk2-119-G_comp.jams")
    assert len(list(excerpt.iter_events())) == 1
    assert "a note at 10.860 s is there twice; it is read once" in str(problems[0])
    for name, late in (("04_BN3-154-E_comp", 0.409), ("04_Jazz1-200-B_comp", 0.309)):
        for own, shift in ((name, late), (name.replace("comp", "solo"), 0.0)):
            excerpt, _ = read_jams_tab(jams([(0, 1.0 + late, 0.5, 40.0)]), f"{own}.jams")
            plain = jams([(0, 1.0 + late - shift, 0.5, 40.0)])
            expected, _ = read_jams_tab(plain, "00_BN1-120-C_solo.jams")
            assert events_of(excerpt) == events_of(expected) != []


def test_a_folder_and_an_archive_give_the_same(tmp_path):
    (tmp_path / "set" / "annotation").mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / "annotation.zip", "w") as archive:
        for name in ("01_SS1-100-A_solo", "00_BN1-120-C_comp"):
            content = jams([(5, 0.0, 0.4, 64.0), (5, 0.5, 0.4, 65.0)])
            (tmp_path / "set" / "annotation" / f"{name}.jams").write_bytes(content)
            archive.writestr(f"annotation/{name}.jams", content)
            archive.writestr(f"__MACOSX/._{name}.jams", b"x")
    folder, problems = read_guitarset_tabs(tmp_path / "set")
    archive, others = read_guitarset_tabs(tmp_path / "annotation.zip")
    assert folder == archive and problems == others == []
    assert [excerpt.source[:-5] for excerpt in folder] == ["00_BN1-120-C_comp", "01_SS1-100-A_solo"]


def test_a_recipe_reads_it_as_data(tmp_path):
    for player in range(3):
        notes = [(player, i / 4, 0.2, 40.0 + 5 * player + i % 7) for i in range(40)]
        (tmp_path / f"0{player}_SS1-120-A_solo.jams").write_bytes(jams(notes, beats=24))
    data = prepare(tmp_path, tmp_path / "tokens")
    names = data.tokenizer.to_tokens(data.train[:].tolist())
    assert names.count("<bos>") == 2 and names.count("STEPS<12>") == 2
    assert len(data.val_names) == 1 and data.warnings == []
    assert data.tokenizer.styles == ()  # all have the same
    (tmp_path / "notes.jams").write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match="holds no JAMS file of GuitarSet that can be read"):
        prepare(tmp_path / "notes.jams", tmp_path / "tokens")


def test_the_styles_of_learned_excerpts_get_tokens(tmp_path):
    for number, style in enumerate(("Jazz", "Funk", "Funk", "Jazz")):
        notes = [(number, i / 4, 0.2, 40.0 + 5 * number + i % 7) for i in range(40)]
        name = f"0{number}_{style}1-120-A_solo.jams"
        (tmp_path / name).write_bytes(jams(notes, beats=24))
    data = prepare(tmp_path, tmp_path / "tokens")
    assert data.tokenizer.styles == ("Funk", "Jazz")
    names = data.tokenizer.to_tokens([*data.train[:].tolist(), *data.val[:].tolist()])
    assert names.count("STYLE<Funk>") == names.count("STYLE<Jazz>") == 2


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "cannot be read as a JAMS file of GuitarSet"),
        (b"[" * 100_000, "recursion depth"),
        (b"{}", "annotations"),
        (jams([(0, float("nan"), 1.0, 40.0)]), "no moment of an excerpt"),
        (jams([(0, 1e300, 1.0, 40.0)]), "no moment of an excerpt"),
        (jams([(0, "soon", 1.0, 40.0)]), "should be a number of seconds"),
        (jams([], beats=1), "there should be beats"),
    ],
)
def test_what_is_no_excerpt_is_said_in_a_sentence(content, sentence):
    with pytest.raises(ValueError, match=sentence):
        read_jams_tab(content, "00_BN1-120-C_solo.jams")
    with pytest.raises(ValueError, match="not named as GuitarSet names excerpts"):
        read_jams_tab(content, "song.jams")


@pytest.mark.skipif(not REAL, reason="SLP_GUITARSET names no folder with the real files")
def test_the_real_files():
    excerpts, problems = read_guitarset_tabs(Path(REAL))
    counts = {e.source[:-5]: sum(len(event.notes) for event in e.iter_events()) for e in excerpts}
    assert all(excerpt.style in excerpt.source for excerpt in excerpts)
    assert counts["00_BN1-129-Eb_comp"] == 133 and counts["00_BN1-129-Eb_solo"] == 71
    for excerpt in excerpts[:2]:
        assert len(excerpt.bars) == 12
        assert excerpt.bars[0].tempo_bpm == 129
        starts = [step for step in range(0, 12 * 48, 48)]
        assert starts[-1] + excerpt.bars[-1].steps == 48 * 12
    assert all("fret 61" in problem.message for problem in problems)
