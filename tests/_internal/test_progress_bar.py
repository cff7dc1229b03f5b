"""Bars of work that goes before training: on a terminal alone, and right about what is done."""

import io
import sys
from contextlib import contextmanager

import pytest

from slp_transformer._internal import progress_bar as progress_module
from slp_transformer._internal.progress_bar import progress_bar, progress_bars_disabled
from slp_transformer.data import load_moby_dick, text_corpus, text_files
from slp_transformer.data.text_corpus import prepare_corpus

TEXT = load_moby_dick()[:5003]


class Terminal(io.StringIO):
    """What stderr is when somebody looks at it."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def work(monkeypatch):
    """Some work; it returns what stderr, of that kind, shows of it."""
    monkeypatch.setattr(progress_module, "BAR_DELAY_S", 0)

    def do(kind=Terminal) -> str:
        monkeypatch.setattr(sys, "stderr", kind())  # now, since pytest has its own until the test
        with progress_bar("Digging", 7, " holes") as tell:
            tell(2)
            tell(1)
        return sys.stderr.getvalue()

    return do


def test_a_bar_comes_and_goes_again(work):
    pytest.importorskip("tqdm")
    said = work()
    assert "Digging:   0%" in said and "0.00/7.00" in said
    assert said.endswith("\r") and said.split("\r")[-2].strip() == ""


def test_work_that_is_soon_done_has_no_bar(work, monkeypatch):
    monkeypatch.setattr(progress_module, "BAR_DELAY_S", 60)
    assert work() == ""


def test_there_is_no_bar_without_a_terminal_or_tqdm_or_where_nobody_wants_one(work, monkeypatch):
    assert work(io.StringIO) == ""
    with progress_bars_disabled():
        assert work() == ""
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    assert work() == ""


@pytest.fixture
def told(monkeypatch):
    """The numbers that each bar gets, by its name; the first one is the total."""
    bars = {}

    @contextmanager
    def noted(work, total, unit="B"):
        bars[work] = [total]
        yield bars[work].append

    monkeypatch.setattr(text_corpus, "progress_bar", noted)
    return bars


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_corpus_is_counted_in_the_bytes_of_all_its_files(on_disk, told, tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(text_corpus, "CHUNK_TOKENS", 1000)
    (tmp_path / "texts").mkdir()
    for name, end in (("a", "\n"), ("b", "\r\n")):
        text = TEXT.replace("\n", end)
        (tmp_path / f"texts/{name}.txt").write_text(text, encoding="utf-8", newline="")
    size = sum(path.stat().st_size for path in (tmp_path / "texts").iterdir())
    corpus = prepare_corpus(tmp_path / "texts", output_dir=tmp_path / "run" if on_disk else None)
    totals = {"Vocabulary": size, "Tokens": size}
    assert {name: numbers[0] for name, numbers in told.items()} == totals
    for numbers in told.values():
        assert sum(numbers[1:]) == numbers[0] and max(numbers[1:]) <= 1000 < len(TEXT)
    prepare_corpus(tmp_path / "texts", tokenizer=corpus.tokenizer)
    assert sum(told["Tokens"][1:]) == size
