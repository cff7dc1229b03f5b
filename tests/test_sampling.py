"""Choosing a word: the book's numbers, distributions made by hand, and how often words come."""

import itertools
import math
import random

import pytest
import torch
from torch import tensor

from slp_transformer.sampling import (
    filter_logits,
    greedy,
    mask_disallowed,
    repetition_penalty,
    sample,
    temperature,
    top_k,
    top_p,
)

U = tensor([1.2, 0.9, 0.1, -0.5])  # the book's logits, for: all, the, your, that
INF = math.inf


def logits(*probabilities: float) -> torch.Tensor:
    return tensor(probabilities, dtype=torch.float64).log()


def probabilities(u: torch.Tensor) -> list[float]:
    return torch.softmax(u, dim=-1).tolist()


def kept(u: torch.Tensor) -> list[int]:
    return (u > -INF).nonzero().flatten().tolist()


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.proves("temperature")
@pytest.mark.parametrize(
    ("tau", "expected"),
    [
        (1, [0.443, 0.328, 0.147, 0.081]),
        (0.5, [0.591, 0.324, 0.065, 0.020]),
        (0.2, [0.815, 0.182, 0.003, 0.000]),
        (0.1, [0.953, 0.047, 0.000, 0.000]),
        (2, [0.349, 0.300, 0.201, 0.149]),
    ],
)
def test_temperature_on_the_books_logits(tau, expected):
    """Temperature turns the book's logits into the book's probabilities."""
    assert probabilities(temperature(U, tau)) == pytest.approx(expected, abs=6e-4)


@pytest.mark.proves("top-k")
def test_top_k_keeps_the_k_largest_and_renormalizes():
    """Top-k keeps the k largest probabilities and renormalizes them."""
    u = logits(0.1, 0.4, 0.2, 0.3)
    assert top_k(u, 2).tolist() == [-INF, u[1], -INF, u[3]]
    assert probabilities(top_k(u, 2)) == pytest.approx([0, 4 / 7, 0, 3 / 7])


def test_top_k_of_rows_of_ties_and_of_too_many():
    rows = torch.stack([logits(0.1, 0.6, 0.3), logits(0.5, 0.2, 0.3)])
    assert [kept(row) for row in top_k(rows, 1)] == [[1], [0]]
    assert len(kept(top_k(torch.zeros(7), 3))) == 3
    assert torch.equal(top_k(U, 99), U)


@pytest.mark.proves("top-p")
@pytest.mark.parametrize(
    ("p", "expected"),
    [
        (0.1, [1]),
        (0.4999, [1]),
        (0.5, [1]),
        (0.5001, [1, 2]),
        (0.75, [1, 2]),
        (0.8, [0, 1, 2]),  # of two equal words the first stays
        (0.9, [0, 1, 2, 3]),
        (1.0, [0, 1, 2, 3]),
    ],
)
def test_top_p_keeps_the_word_that_reaches_p_and_none_after(p, expected):
    """Top-p keeps the word that reaches p, and none after it."""
    u = logits(0.125, 0.5, 0.25, 0.125)  # halves and quarters, so that sums are exact
    assert kept(top_p(u, p)) == expected


def test_top_p_on_the_books_logits_renormalizes():
    assert probabilities(top_p(U, 0.7)) == pytest.approx([0.5744, 0.4256, 0, 0], abs=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_top_p_keeps_no_word_more_where_a_sum_is_p_itself(dtype):
    """Twentieths have no exact binary form: 0.5 + 0.3 is 0.8, whichever way it rounds."""
    draw = random.Random(0)
    for _ in range(500):
        cuts = [0, *sorted(draw.sample(range(1, 20), 3)), 20]
        parts = [b - a for a, b in itertools.pairwise(cuts)]
        draw.shuffle(parts)
        sums = list(itertools.accumulate(sorted(parts, reverse=True)))
        left = kept(
            top_p((tensor(parts, dtype=dtype) / 20).log(), (p := draw.randrange(1, 20)) / 20)
        )
        assert len(left) == 1 + sum(total < p for total in sums), (parts, p)
    assert len(kept(top_p(U, 1e-9))) == 1


def test_top_p_of_1_keeps_the_rarest():
    u = tensor([20.0, 0.0, -20.0])
    assert torch.equal(top_p(u, 1.0), u)


def test_repetition_penalty_divides_what_is_above_0_and_multiplies_what_is_below():
    u = tensor([[1.2, 0.9, 0.1, -0.5]] * 2)
    seen = tensor([[0, 3, 0], [2, 2, 2]])
    expected = tensor([[0.6, 0.9, 0.1, -1.0], [1.2, 0.9, 0.05, -0.5]])
    torch.testing.assert_close(repetition_penalty(u, seen, 2.0), expected)
    torch.testing.assert_close(repetition_penalty(u, seen, 1.0), u)


def test_repetition_penalty_leaves_the_forbidden_forbidden():
    u = repetition_penalty(tensor([-INF, 0.0, 2.0]), tensor([0, 1]), 3.0)
    assert u.tolist() == [-INF, 0.0, 2.0]


def test_only_allowed_takes_ids_booleans_or_nothing():
    u, seen = torch.zeros(3, 4), tensor([[7, 7], [8, 8], [9, 9]])
    answers = {7: {1, 3}, 8: tensor([True, False, False, False]), 9: None}
    left = mask_disallowed(u, seen, lambda ids: answers[ids[0]])
    assert [kept(row) for row in left] == [[1, 3], [0], [0, 1, 2, 3]]


def test_nothing_allowed_is_an_error():
    with pytest.raises(ValueError, match="After 2 tokens, `allowed` allows no token at all"):
        mask_disallowed(torch.zeros(1, 4), tensor([[7, 7]]), lambda ids: ())


def test_an_id_that_is_not_in_the_vocabulary_is_named():
    with pytest.raises(ValueError, match=r"`allowed` named \[4\].*ids go from 0 to 3"):
        mask_disallowed(torch.zeros(1, 4), tensor([[7, 7]]), lambda ids: [1, 4])
    with pytest.raises(ValueError, match="booleans.*4 words"):
        mask_disallowed(torch.zeros(1, 4), tensor([[7]]), lambda ids: torch.ones(5).bool())


@pytest.mark.parametrize(
    ("filtered", "values", "message"),
    [
        (temperature, [0, -1, INF, math.nan], "temperature must be a number above 0"),
        (top_k, [0, -1, 2.5, True], "top_k must be a whole number of 1 or more"),
        (top_p, [0.0, -0.1, 1.1, math.nan], "top_p must be a share above 0 and at most 1"),
        (
            lambda u, theta: repetition_penalty(u, tensor([0]), theta),
            [0, -1, INF],
            "repetition_penalty must be a number above 0",
        ),
    ],
)
def test_what_filters_by_no_number_of_its_kind_is_refused(filtered, values, message, unchecked):
    for value in values:
        with pytest.raises(ValueError, match=message):
            filtered(U, value)


def test_filtered_does_top_k_before_top_p_and_what_is_allowed_before_both():
    u = logits(0.4, 0.3, 0.2, 0.1).unsqueeze(0)
    ids = tensor([[0]])
    # of 0.4 and 0.3, renormalised to 0.57 and 0.43, the first has more than a half
    assert kept(filter_logits(u, ids, k=2, p=0.5)[0]) == [0]
    assert kept(filter_logits(u, ids, p=0.5)[0]) == [0, 1]
    assert kept(filter_logits(u, ids, k=1, allowed=lambda ids: {2, 3})[0]) == [2]
    # sharper first: 0.4² / (0.4² + 0.3² + 0.2² + 0.1²) is more than a half
    assert kept(filter_logits(u, ids, tau=0.5, p=0.5)[0]) == [0]
    assert torch.equal(filter_logits(u, ids, tau=2.0)[0], u[0] / 2)
    penalised = filter_logits(torch.tensor([[2.0, 1.5]]), ids, theta=2.0, k=1)
    assert kept(penalised[0]) == [1]


def test_by_default_nothing_is_filtered():
    assert torch.equal(filter_logits(U.unsqueeze(0), tensor([[0]]))[0], U)


@pytest.mark.proves("greedy")
def test_greedy_takes_the_largest():
    """Greedy decoding takes the most probable word."""
    assert greedy(torch.stack([U, U.flip(0)])).tolist() == [0, 3]


@pytest.mark.proves("random")
def test_draw_takes_each_word_as_often_as_its_probability_says():
    """Sampling draws each word as often as its probability says."""
    y = tensor([0.5, 0.25, 0.15, 0.1, 0.0])
    rows = y.log().expand(40_000, 5)
    shares = torch.bincount(sample(rows, seeded()), minlength=5) / 40_000
    torch.testing.assert_close(shares, y, atol=0.01, rtol=0)
    assert shares[4] == 0


def test_each_row_may_have_a_generator_of_its_own():
    u = torch.zeros(3, 97)
    together = sample(u, [seeded(1), seeded(2), seeded(3)])
    alone = [sample(u[:1], [seeded(seed)]) for seed in (1, 2, 3)]
    assert torch.equal(together, torch.cat(alone))
