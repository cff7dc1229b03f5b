"""n-grams: by hand, and probabilities that sum to 1."""

import math
import random
from itertools import product

import pytest

from slp_transformer.data.ngrams import PAD_ID, NGramModel


def test_a_unigram_by_hand():
    model = NGramModel([[0, 1, 1, 2, 3], [0, 1]], order=1, vocab_size=5)
    # Counts 3, 1, 1 of five; two grams once, none twice: the discount is 1/2, and 3/2 are shared.
    shared = (3 * 0.5) / 5 / 5
    assert model.probability((1,)) == pytest.approx(2.5 / 5 + shared)
    assert model.probability((3,)) == pytest.approx(0.5 / 5 + shared)
    assert model.probability((4,)) == pytest.approx(shared)


def test_a_bigram_by_hand():
    model = NGramModel([[0, 1, 2, 1, 2], [0, 2, 1, 3, 1]], order=2, vocab_size=4)
    # Bigrams: 01 1, 12 2, 21 2, 02 1, 13 1, 31 1. Four once and two twice: D = 4/8.
    # Different tokens before 1: three (0, 2, 3); before 2: two; before 3: one. Once 1, twice 1:
    # D = 1/3, and below it one fourth each.
    left = 3 * (1 / 3) / 6
    one, two, three = ((c - 1 / 3) / 6 + left / 4 for c in (3, 2, 1))
    assert model.probability((1, 2)) == pytest.approx(1.5 / 3 + 2 * 0.5 / 3 * two)
    assert model.probability((1, 3)) == pytest.approx(0.5 / 3 + 2 * 0.5 / 3 * three)
    assert model.probability((1, 1)) == pytest.approx(2 * 0.5 / 3 * one)
    bits = -math.log2(model.probability((0, 1))) - math.log2(model.probability((1, 2)))
    assert model.total_bits([0, 1, 2]) == pytest.approx(bits)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_the_probabilities_sum_to_one_after_anything(order):
    rng = random.Random(order)
    rows = [
        [0, *(rng.choice([1, 2, 2, 3, 5]) for _ in range(rng.randint(1, 30)))] for _ in range(7)
    ]
    model = NGramModel(rows, order, vocab_size=7)
    contexts = product((PAD_ID, 0, 2, 3, 6), repeat=order - 1)
    for context in list(contexts)[:200]:
        chances = [model.probability((*context, token)) for token in range(7)]
        assert sum(chances) == pytest.approx(1) and min(chances) > 0


def test_no_gram_reaches_into_the_next_row():
    model = NGramModel([[0, 1], [0, 2]], order=2, vocab_size=3)
    assert (1, 0) not in model.levels[0] and len(model.levels[0]) == 2


@pytest.mark.parametrize(("rows", "order"), [([[0, 1]], 0), ([[0]], 2), ([], 1)])
def test_nothing_to_count_is_refused(rows, order):
    with pytest.raises(ValueError, match="order must be|nothing to count"):
        NGramModel(rows, order, 3)
