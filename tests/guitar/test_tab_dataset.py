"""Tabs made ready to train on: what is learned, what is held out, and that the two never mix."""

import random

import pytest

from slp_transformer.guitar import TabTokenizer, practice_corpus, prepare_tabs, write_tab


@pytest.fixture
def folder(tmp_path):
    for number, tab in enumerate(practice_corpus(seed=1, pieces=11)):
        write_tab(tab, tmp_path / f"{number:02}.txt")
    (tmp_path / "notes.txt").write_text("No tab here.\n", encoding="utf-8")
    return tmp_path


def test_a_share_of_a_folder_is_held_out_always_the_same(folder):
    data = prepare_tabs(folder, held_out=0.3)
    assert len(data.learned_tabs) == 8 and len(data.held_out_tabs) == 3
    sources = [tab.source for tab in data.learned_tabs + data.held_out_tabs]
    assert sorted(sources) == [f"{number:02}.txt" for number in range(11)]
    assert sources != sorted(sources)  # drawn at random, since folders are sorted by composer
    assert prepare_tabs(folder, held_out=0.3).held_out_tabs == data.held_out_tabs
    assert [str(problem)[:9] for problem in data.problems] == ["notes.txt"]


def test_the_tokens_are_those_of_the_pieces_in_their_order(folder):
    data = prepare_tabs(folder, held_out=0.3, tokenizer=TabTokenizer(max_position=64))
    for stream, tabs in ((data.learned, data.learned_tabs), (data.held_out, data.held_out_tabs)):
        assert stream.tolist() == [i for tab in tabs for i in data.tokenizer.encode(tab)]
    assert data.tokenizer.max_position == 64


def test_another_folder_is_held_out_as_a_whole(folder, tmp_path):
    (other := tmp_path / "other.tab").write_text((folder / "00.txt").read_text("utf-8"), "utf-8")
    data = prepare_tabs(folder / "01.txt", held_out=other)
    assert [tab.source for tab in data.learned_tabs] == ["01.txt"]
    assert [tab.source for tab in data.held_out_tabs] == ["other.tab"]


def test_the_practice_corpus_is_split_as_chapter_12_has_recorded_it():
    tabs = practice_corpus(seed=0)
    random.Random(0).shuffle(tabs)
    data = prepare_tabs()
    assert data.held_out_tabs == tabs[:60] and data.learned_tabs == tabs[60:]


def test_at_least_one_piece_stays_on_each_side(folder):
    assert len(prepare_tabs(folder, held_out=0.001).held_out_tabs) == 1
    assert len(prepare_tabs(folder, held_out=0.999).learned_tabs) == 1


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1])
def test_no_share_at_all_is_refused(folder, share):
    with pytest.raises(ValueError, match="share between 0 and 1"):
        prepare_tabs(folder, held_out=share)


def test_a_single_piece_cannot_be_shared(folder):
    with pytest.raises(ValueError, match="only 1 piece"):
        prepare_tabs(folder / "00.txt")
