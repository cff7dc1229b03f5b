"""Beam search against the enumeration of everything there is, and by hand."""

import itertools
import math

import pytest
import torch
from torch import tensor

from slp_transformer.generation.beam_search import beam_search, length_normalized_score

V = 4


class Bigrams:
    """Stands in for a model: the next word depends on the last one and where that stands."""

    def __init__(self, table):
        self.table, self.read = table, []

    def __call__(self, ids, rows):
        self.read.append((ids.shape[1], len(ids)))
        return self.table.expand(9, V, V)[ids.shape[1], ids[rows, -1]]


def random_table(seed: int) -> torch.Tensor:
    return 2 * torch.randn(9, V, V, generator=torch.Generator().manual_seed(seed))


def search(table, end=4, **options):
    read = Bigrams(table)
    (found,) = beam_search(read, lambda rows: None, [tensor([0])], [end], **options)
    return found, read


def enumerate_all(table, length: int, stop: int | None, alpha: float):
    """Every way to write: to the stop token, or else to `length` words; with its score."""
    y = torch.log_softmax(table, dim=-1)
    ways = {}
    for words in itertools.product(range(V), repeat=length):
        if stop in words:
            words = words[: words.index(stop) + 1]
        pairs = enumerate(itertools.pairwise((0, *words)), start=1)
        total = sum(y[n, a, b].item() for n, (a, b) in pairs)
        ways[words] = (total / len(words) ** alpha, words[-1] == stop)
    return ways


@pytest.mark.equations("beam-score")
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("stop", [None, 2])
def test_a_wide_beam_finds_what_enumeration_finds(seed, alpha, stop):
    """A wide enough beam finds the text that enumerating all texts finds."""
    table = random_table(seed)
    ways = enumerate_all(table, 3, stop, alpha)
    if stop is not None:  # what a stop token ended goes before what was cut off
        ways = {words: way for words, way in ways.items() if way[1]}
    best = sorted(ways, key=lambda words: ways[words][0], reverse=True)
    found, _ = search(table, width=V**3, alpha=alpha, stop=() if stop is None else {stop})
    assert [tuple(h.ids[1:]) for h in found] == best
    assert [h.score for h in found] == pytest.approx([ways[words][0] for words in best], abs=1e-5)
    assert all(h.hit_stop_token == (stop is not None) for h in found)


def test_it_sees_past_the_best_first_word():
    """The likeliest first word leads nowhere: greedy takes 1, 0.6 · 0.3; the best is 2, 0.4 · 1."""
    y = tensor([[0, 0.6, 0.4, 0], [0.3, 0.3, 0.3, 0.1], [0, 0, 0, 1], [1, 0, 0, 0]])
    (one, *_), _ = search(y.log(), end=3, width=1)
    (two, *_), _ = search(y.log(), end=3, width=2)
    assert one.ids[:2] == [0, 1] and math.exp(2 * one.score) == pytest.approx(0.18)
    assert two.ids == [0, 2, 3] and math.exp(2 * two.score) == pytest.approx(0.4)


@pytest.mark.equations("beam-norm")
def test_length_normalization_can_turn_the_choice():
    """Dividing by the length can change which hypothesis wins.

    Stop is 3. At once: 0.3. After 1, 1: 0.7 · 0.5 · 0.5 = 0.175, but a mean of 0.56 a word.
    """
    y = tensor([[0, 0.7, 0, 0.3], [0, 0.5, 0, 0.5], [1, 0, 0, 0], [1, 0, 0, 0]])
    plain, _ = search(y.log(), width=9, alpha=0.0, stop={3})
    mean, _ = search(y.log(), width=9, alpha=1.0, stop={3})
    assert plain[0].ids == [0, 1, 3] and math.exp(plain[0].score) == pytest.approx(0.35)
    assert mean[0].ids == [0, 1, 3] and math.exp(mean[0].score) == pytest.approx(0.35**0.5)
    assert [h.ids for h in plain] == [[0, 1, 3], [0, 3], [0, 1, 1, 3]]
    assert [h.ids for h in mean] == [[0, 1, 3], [0, 1, 1, 3], [0, 3]]
    assert length_normalized_score(math.log(0.25), 2) == pytest.approx(math.log(0.5))


def test_a_stop_word_that_cannot_come_ends_nothing():
    """Only word 1 can follow anything; the beam is wider than what is possible."""
    table = torch.full((V, V), -math.inf)
    table[:, 1] = 0.0
    found, _ = search(table, end=4, width=3, stop=[2])
    assert [(h.ids, h.hit_stop_token) for h in found] == [([0, 1, 1, 1], False)]


def test_logits_that_are_not_numbers_are_an_error():
    with pytest.raises(ValueError, match=r"not numbers, so no word can follow: \[0\]"):
        search(torch.full((V, V), math.nan), width=2)
