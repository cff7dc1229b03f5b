"""Choosing a word: the book's numbers, distributions made by hand, and how often words come."""

import inspect
import itertools
import math
import random
import sys
import types

import pytest
import standin
import torch
from sampled import mostly_slow
from torch import tensor
from writers import make

from slp_transformer import generate
from slp_transformer._internal.sampling_table import SAMPLING, SamplingOption
from slp_transformer.sampling import (
    filter_logits,
    greedy,
    mask_disallowed,
    min_p,
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
    device = torch.get_default_device()  # the stand-in draws with the CPU's
    on = "cpu" if device.type == standin.NAME else device
    return torch.Generator(on).manual_seed(seed)


@pytest.mark.equations("temperature")
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


@pytest.mark.equations("top-k")
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


@pytest.mark.equations("top-p")
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
        (
            temperature,
            [0, -1, INF, math.nan, 1e-45],
            "temperature must be a number above 0, from 1e-6 on, not",
        ),
        (top_k, [0, -1, 2.5, True], "top_k must be a whole number of 1 or more"),
        (top_p, [0.0, -0.1, 1.1, math.nan], "top_p must be a share above 0 and at most 1"),
        (min_p, [0.0, -0.1, 1.1, math.nan, "x"], "min_p must be a share above 0 and at most 1"),
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
    assert kept(filter_logits(u, ids, top_k=2, top_p=0.5)[0]) == [0]
    assert kept(filter_logits(u, ids, top_p=0.5)[0]) == [0, 1]
    assert kept(filter_logits(u, ids, top_k=1, allowed=lambda ids: {2, 3})[0]) == [2]
    # sharper first: 0.4² / (0.4² + 0.3² + 0.2² + 0.1²) is more than a half
    assert kept(filter_logits(u, ids, temperature=0.5, top_p=0.5)[0]) == [0]
    assert torch.equal(filter_logits(u, ids, temperature=2.0)[0], u[0] / 2)
    penalised = filter_logits(torch.tensor([[2.0, 1.5]]), ids, repetition_penalty=2.0, top_k=1)
    assert kept(penalised[0]) == [1]


def test_by_default_nothing_is_filtered():
    assert torch.equal(filter_logits(U.unsqueeze(0), tensor([[0]]))[0], U)


@pytest.mark.equations("greedy")
def test_greedy_takes_the_largest():
    """Greedy decoding takes the most probable word."""
    assert greedy(torch.stack([U, U.flip(0)])).tolist() == [0, 3]


@pytest.mark.equations("random")
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


# --- The table ----------------------------------------------------------------------------------

EACH = {name: option.example for name, option in SAMPLING.items()}


# A number that is refused; and a value, with what it leaves of words with 0.4, 0.2, 0.1 and 0.3, of
# which the text has the first.
BY_HAND = {
    "repetition_penalty": (0, 2.0, [0.16 / 0.76, 0.2 / 0.76, 0.1 / 0.76, 0.3 / 0.76]),
    "temperature": (-0.5, 0.5, [0.16 / 0.3, 0.04 / 0.3, 0.01 / 0.3, 0.09 / 0.3]),
    "top_k": (1.5, 2, [4 / 7, 0, 0, 3 / 7]),
    "top_p": (1.1, 0.6, [4 / 7, 0, 0, 3 / 7]),
    "min_p": (1.1, 0.51, [4 / 7, 0, 0, 3 / 7]),
}


@pytest.mark.parametrize("name", SAMPLING)
def test_every_option_by_hand(name, unchecked):
    u, ids = logits(0.4, 0.2, 0.1, 0.3).unsqueeze(0), tensor([[0]])
    refused, value, expected = BY_HAND[name]
    filtered = filter_logits(u, ids, **{name: value})
    assert probabilities(filtered[0]) == pytest.approx(expected)
    for wrong in (refused, math.nan, "x"):
        with pytest.raises(ValueError, match=f"{name} must be .*, not {wrong!r}"):
            SAMPLING[name].apply(u, ids, wrong)


@pytest.mark.parametrize("name", SAMPLING)
def test_every_option_changes_the_logits_and_its_neutral_value_does_not(name):
    u, ids = torch.randn(2, 7, generator=seeded()), tensor([[1, 2], [3, 3]])
    filtered = filter_logits(u, ids, **{name: EACH[name]})
    assert not torch.equal(filtered, u) and filtered.isfinite().any(dim=-1).all()
    assert torch.equal(filter_logits(u, ids, **{name: SAMPLING[name].neutral}), u)


def test_the_tables_order_is_the_order_of_application():
    """That of Hugging Face's `generate`, and of the paper on each later one."""
    u, ids = torch.randn(5, 17, generator=seeded()) * 2, tensor([[1, 2]] * 5)
    v = temperature(repetition_penalty(u, ids, 1.5), 0.5)
    expected = min_p(top_p(top_k(v, 3), 0.6), 0.3)
    given = {"min_p": 0.3, "top_p": 0.6, "top_k": 3, "temperature": 0.5, "repetition_penalty": 1.5}
    assert torch.equal(filter_logits(u, ids, **given), expected)


@pytest.mark.parametrize("p", [0.01, 0.1, 0.35, 0.5, 0.999, 1.0])
def test_min_p_keeps_what_hugging_face_keeps(p):
    transformers = pytest.importorskip("transformers")
    u = torch.randn(200, 23, generator=seeded(), dtype=torch.float64) * 3
    theirs = transformers.MinPLogitsWarper(min_p=p)(torch.zeros(200, 1), u)
    assert torch.equal(min_p(u, p), theirs)
    assert 200 <= (theirs > -INF).sum() < u.numel()


def test_min_p_by_hand():
    u = logits(0.4, 0.2, 0.1, 0.3)  # at least 0.5 · 0.4: the rounding of the share decides nothing
    assert kept(min_p(u, 0.5)) == [0, 1, 3]
    assert probabilities(min_p(u, 0.51)) == pytest.approx([4 / 7, 0, 0, 3 / 7])
    assert kept(min_p(u, 1.0)) == [0] and kept(min_p(u, 1e-9)) == [0, 1, 2, 3]


def test_an_option_that_is_not_in_the_table_is_refused():
    with pytest.raises(TypeError, match="no sampling option topp: did you mean top_p"):
        filter_logits(U.unsqueeze(0), tensor([[0]]), topp=0.5)
    with pytest.raises(TypeError, match="no sampling option violins: repetition_penalty, temp"):
        generate(make(), [[3]], violins=0.5)


@pytest.mark.parametrize("drafted", mostly_slow([False, True], False))
@pytest.mark.parametrize("name", SAMPLING)
def test_every_option_makes_a_difference_to_generate(name, drafted):
    """With a draft model, too; and what only draws changes no greedy word, so it is refused."""
    option, model = SAMPLING[name], make()
    with torch.no_grad():
        model.embedding.tokens.E.mul_(0.4)  # no word is certain
    more = {"draft_model": make(seed=1)} if drafted else {}

    def write(seed, own):
        torch.manual_seed(seed)  # the device's own generator; not each kind can have another
        return generate(model, [[3, 1]], 9, **more, **own)[0].ids

    texts = [
        [write(seed, own) for seed in range(4)]
        for own in ({name: EACH[name]}, {name: option.neutral}, {})
    ]
    assert texts[0] != texts[1] == texts[2]
    how = {"temperature": 0, name: EACH[name]}
    if option.greedy_at is None and option.only_drawing:
        with pytest.raises(ValueError, match=f"{name} has no effect with temperature 0"):
            generate(model, [[3, 1]], **how)
    elif option.greedy_at is None:
        greedily, plain = (generate(model, [[3, 1]], **h) for h in (how, {"temperature": 0}))
        assert greedily != plain
    if option.only_drawing:
        with pytest.raises(ValueError, match=f"Beam search draws nothing.*{name}"):
            generate(model, [[3, 1]], num_beams=2, **{name: EACH[name]})


def test_generates_own_signature_has_the_tables_names_and_neutral_values():
    found = inspect.signature(generate).parameters
    for name, option in SAMPLING.items():
        assert found[name].default == option.neutral
        assert f"    {name}: " in inspect.getdoc(generate)


def keep_even(u: torch.Tensor, every: int) -> torch.Tensor:
    number = torch.ones_like(u).cumsum(-1) - 1
    return u.masked_fill(number % every > 0, -INF)


def test_an_entry_from_outside_is_an_option_of_filter_and_generate(monkeypatch, request):
    monkeypatch.setitem(sys.modules, "outside", types.SimpleNamespace(keep_even=keep_even))
    option = SamplingOption(
        "outside:keep_even", "keep each e-th word.", (lambda e: e > 1, "2 or more"), example=3
    )
    SAMPLING.add("keep_every", option)
    request.addfinalizer(lambda: SAMPLING.remove("keep_every"))
    assert kept(filter_logits(U.unsqueeze(0), tensor([[0]]), keep_every=2)[0]) == [0, 2]
    (text,) = generate(make(), [[3]], 9, keep_every=5)
    assert set(text.new_ids) <= {0, 5, 10}
    with pytest.raises(ValueError, match="keep_every must be 2 or more, not 1"):
        generate(make(), [[3]], keep_every=1)
    with pytest.raises(ValueError, match="keep_every has no effect with temperature 0"):
        generate(make(), [[3]], keep_every=2, temperature=0)
