"""Bars of work that goes before training: on a terminal alone, and right about what is done."""

import io
import sys

import pytest

from slp_transformer._internal import progress_bar as progress_module
from slp_transformer._internal.progress_bar import progress_bar, progress_bars_disabled


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
