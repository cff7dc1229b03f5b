"""Tabs made ready to train on: what is learned, what is held out, and that the two never mix."""

import random

import pytest

from slp_guitar import (
    TabTokenizer,
    make_practice_corpus,
    prepare_tab_dataset,
    write_tab,
)
from slp_guitar.fretboard import Note
from slp_guitar.tab import Bar, Event, Tab
from slp_guitar.tab_dataset import read_tab_source


@pytest.fixture
def folder(tmp_path):
    for number, tab in enumerate(make_practice_corpus(seed=1, num_pieces=11)):
        write_tab(tab, tmp_path / f"{number:02}.txt")
    (tmp_path / "notes.txt").write_text("No tab here.\n", encoding="utf-8")
    return tmp_path


def test_a_share_of_a_folder_is_held_out_always_the_same(folder):
    data = prepare_tab_dataset(folder, val_split=0.3)
    assert len(data.train_tabs) == 8 and len(data.val_tabs) == 3
    sources = [tab.source for tab in data.train_tabs + data.val_tabs]
    assert sorted(sources) == [f"{number:02}.txt" for number in range(11)]
    assert sources != sorted(sources)  # drawn at random, since folders are sorted by composer
    assert prepare_tab_dataset(folder, val_split=0.3).val_tabs == data.val_tabs
    assert [str(problem)[:9] for problem in data.problems] == ["notes.txt"]


def test_the_tokens_are_those_of_the_pieces_in_their_order(folder):
    data = prepare_tab_dataset(folder, val_split=0.3, tokenizer=TabTokenizer(max_position=64))
    for stream, tabs in ((data.train_data, data.train_tabs), (data.val_data, data.val_tabs)):
        assert stream.tolist() == [i for tab in tabs for i in data.tokenizer.encode(tab)]
    assert data.tokenizer.max_position == 64


def test_another_folder_is_held_out_as_a_whole(folder, tmp_path):
    (other := tmp_path / "other.tab").write_text((folder / "00.txt").read_text("utf-8"), "utf-8")
    data = prepare_tab_dataset(folder / "01.txt", val_split=other)
    assert [tab.source for tab in data.train_tabs] == ["01.txt"]
    assert [tab.source for tab in data.val_tabs] == ["other.tab"]


@pytest.mark.slow
def test_the_practice_corpus_is_split_as_chapter_12_has_recorded_it():
    tabs = make_practice_corpus(seed=0)
    random.Random(0).shuffle(tabs)
    data = prepare_tab_dataset()
    assert data.val_tabs == tabs[:60] and data.train_tabs == tabs[60:]


def test_at_least_one_piece_stays_on_each_side(folder):
    assert len(prepare_tab_dataset(folder, val_split=0.001).val_tabs) == 1
    assert len(prepare_tab_dataset(folder, val_split=0.999).train_tabs) == 1


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1])
def test_no_share_at_all_is_refused(folder, share):
    with pytest.raises(ValueError, match="share between 0 and 1"):
        prepare_tab_dataset(folder, val_split=share)


def test_a_single_piece_cannot_be_shared(folder):
    with pytest.raises(ValueError, match="only 1 piece"):
        prepare_tab_dataset(folder / "00.txt")


def test_a_folder_may_hold_files_of_any_kind_and_what_has_no_strings_is_fingered(tmp_path):
    pytest.importorskip("mido")
    (piece,) = make_practice_corpus(seed=1, num_pieces=1)
    write_tab(piece, tmp_path / "b.musicxml")
    write_tab(piece, tmp_path / "c.mid", one_channel=True)
    write_tab(piece, tmp_path / "d.txt")
    write_tab(piece, tmp_path / "d.mid")  # the same piece once more
    (tmp_path / "e.mid").write_bytes(b"no MIDI")
    tabs, problems = read_tab_source(tmp_path)
    assert sorted(tab.source for tab in tabs) == ["b.musicxml", "c.mid", "d.txt"]
    assert [problem.source for problem in problems] == ["e.mid"]
    for tab in tabs:
        assert pitches(tab) == pitches(piece) and tab.is_fingered
    with pytest.raises(ValueError, match=r"No tablature in .* First problem: e.mid"):
        read_tab_source(tmp_path / "e.mid")


def pitches(tab):
    return [sorted(map(tab.tuning.pitch_of, event.notes)) for event in tab.iter_events()]


def test_a_grid_without_a_token_is_named_and_left_out(tmp_path):
    (piece,) = make_practice_corpus(seed=1, num_pieces=1)
    write_tab(piece, tmp_path / "a.musicxml")
    bar = Bar(5, tuple(Event(step, (Note(1, step),)) for step in range(5)), (1, 4))
    write_tab(Tab(bars=(bar,), steps_per_quarter=5), tmp_path / "b.atex")
    tabs, problems = read_tab_source(tmp_path)
    assert [tab.source for tab in tabs] == ["a.musicxml"]
    assert str(problems[0]) == "b.atex: 5 steps to a quarter note, which have no token"
