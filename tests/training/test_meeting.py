"""The meeting of a group: who is taken for dead, by a clock that the test sets."""

from types import SimpleNamespace

import pytest
import torch
from torch.distributed import HashStore

from slp_transformer.training import distributed
from slp_transformer.training.distributed import DDPStrategy


def meet(monkeypatch, look) -> int:
    """Rank 0 of three awaits the others; `look(n, store)` returns the seconds to its look n + 1."""
    store, clock, looks = HashStore(), [0.0], [0]

    def sleep(_: float) -> None:
        looks[0] += 1
        clock[0] += look(looks[0], store)

    fake = SimpleNamespace(monotonic=lambda: clock[0], sleep=sleep)
    monkeypatch.setattr(distributed, "time", fake)
    DDPStrategy(torch.device("cpu"), 0, 3, None).await_all(store)
    return looks[0]


def test_a_pause_of_all_is_nobodys_death(monkeypatch):
    """A closed lid, or SIGSTOP: this one wakes first, and sees the signs of before."""

    def look(n: int, store: HashStore) -> float:
        if n not in (5, 6, 7):  # asleep, and the first looks after it
            store.add("alive/1", 1)
        if n == 20:
            store.add("alive/2", 1)
        return 3600.0 if n == 5 else 0.1

    assert meet(monkeypatch, look) == 21  # it looks, and sleeps once more


def test_one_that_gives_no_sign_any_more_is_dead(monkeypatch):
    given = []

    def look(n: int, store: HashStore) -> float:
        given.append(n)
        if n < 5:
            store.add("alive/1", 1)
        return 0.1

    with pytest.raises(RuntimeError, match="process 1 has ended before all were there"):
        meet(monkeypatch, look)
    assert 100 <= len(given) <= 110  # ten seconds


def test_who_never_comes_is_not_waited_for_longer_than_the_group_waits(monkeypatch):
    with pytest.raises(RuntimeError, match="1 of 3 came in time"):
        meet(monkeypatch, lambda n, store: 0.9)
