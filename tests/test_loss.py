"""The loss and perplexity."""

import math
from contextlib import nullcontext

import pytest
import torch
import torch.nn.functional as F
from comparing import normal

from slp_transformer._internal.reference_mode import reference_mode
from slp_transformer.loss import IGNORE_INDEX, next_token_loss, perplexity


@pytest.mark.equations("ce-mean")
def test_ce_mean_by_hand():
    """The mean cross-entropy equals an example worked out by hand.

    The words that came next had the probabilities 1/2, 1/4 and 3/4.
    """
    U = torch.log(torch.tensor([[0.5, 0.5], [0.75, 0.25], [0.75, 0.25]]))
    loss = next_token_loss(U, torch.tensor([0, 1, 0]))
    assert loss.item() == pytest.approx((math.log(2) + math.log(4) - math.log(0.75)) / 3)


@pytest.mark.equations("ce-full", "ce")
def test_ce_full_and_ce_are_the_loss_of_one_position():
    """With a one-hot truth the full cross-entropy is −log of the true word's probability."""
    u = torch.tensor([0.3, -1.2, 2.0, 0.0, 0.7], dtype=torch.float64)
    y_hat = [math.exp(score) / sum(math.exp(s) for s in u.tolist()) for score in u.tolist()]
    for following in range(5):
        one_hot = [float(w == following) for w in range(5)]
        full = -sum(y * math.log(p) for y, p in zip(one_hot, y_hat, strict=True))
        loss = next_token_loss(u.unsqueeze(0), torch.tensor([following])).item()
        assert loss == pytest.approx(full) == pytest.approx(-math.log(y_hat[following]))


@pytest.mark.equations("perplexity", "likelihood")
def test_perplexity_is_the_inverse_probability_by_the_lengths_root():
    """Perplexity is the inverse probability of the text, its nth root."""
    chances = [1e-4, 2e-4, 5e-6, 1e-7]  # together 1e-20
    U = torch.tensor([[math.log(p), math.log1p(-p)] for p in chances], dtype=torch.float64)
    loss = next_token_loss(U, torch.zeros(4, dtype=torch.long)).item()
    assert perplexity(loss) == pytest.approx(1e5, rel=1e-4)


@pytest.mark.parametrize("choices", [1, 2, 65])
def test_perplexity_of_a_uniform_guess_is_the_number_of_words(choices):
    loss = next_token_loss(torch.zeros(3, choices), torch.zeros(3, dtype=torch.long)).item()
    assert perplexity(loss) == pytest.approx(choices, rel=1e-5)


def test_perplexity_of_no_number_and_of_too_large_a_loss():
    assert perplexity(1e4) == math.inf
    assert math.isinf(perplexity(math.inf))
    assert math.isnan(perplexity(math.nan))
    with pytest.raises(ValueError, match="-0.5"):
        perplexity(-0.5)


def test_loss_refuses_targets_of_another_length(unchecked):
    with pytest.raises(ValueError, match=r"\[3×2\].*\[4\]"):
        next_token_loss(torch.zeros(3, 2), torch.zeros(4, dtype=torch.long))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(
    ("word", "how", "said"),
    [
        (5, {}, r"Target 5 at position \[1, 2\] is outside the vocabulary: ids go from 0 to 4"),
        (-1, {}, r"Target -1 at position \[1, 2\]"),
        (0, {"label_smoothing": 1.5}, "label_smoothing is a share from 0 to 1, not 1.5"),
        (0, {"reduction": "none"}, 'reduction must be "mean" or "sum", not .none.'),
    ],
)
def test_what_the_plain_equation_would_swallow_is_refused_alike(word, how, said, plain):
    with torch.device("cpu"):  # elsewhere nobody waits to look at values
        U, targets = normal(2, 3, 5), torch.tensor([[1, 2, IGNORE_INDEX], [3, 4, word]])
    with reference_mode() if plain else nullcontext(), pytest.raises(ValueError, match=said):
        next_token_loss(U, targets, **how)


def test_ignored_targets_do_not_count():
    """As where they are left out, with label smoothing as well."""
    U = normal(2, 3, 5).detach()
    targets = torch.tensor([[1, 2, IGNORE_INDEX], [3, IGNORE_INDEX, IGNORE_INDEX]])
    kept = torch.stack([U[0, 0], U[0, 1], U[1, 0]])
    for smoothing in (0.0, 0.3):
        loss = next_token_loss(U, targets, label_smoothing=smoothing)
        expected = F.cross_entropy(kept, torch.tensor([1, 2, 3]), label_smoothing=smoothing)
        assert loss.item() == pytest.approx(expected.item())


def test_logits_in_bfloat16_are_summed_in_float32():
    torch.manual_seed(0)
    U, targets = torch.randn(2, 37, 1009, dtype=torch.bfloat16), torch.randint(1009, (2, 37))
    exact = next_token_loss(U.double().float(), targets)
    for reduction in ("mean", "sum"):
        loss = next_token_loss(U, targets, reduction=reduction)
        count = 1 if reduction == "mean" else targets.numel()
        assert loss.dtype == torch.float32
        torch.testing.assert_close(loss, exact * count, rtol=1e-6, atol=0)


@pytest.mark.equations("mlm-loss")
def test_masked_language_model_loss_counts_the_masked_places_alone():
    """The masked language model's loss averages over masked positions only."""
    U, x, masked = torch.randn(2, 5, 7), torch.randint(7, (2, 5)), [(0, 1), (0, 4), (1, 2)]
    targets = torch.full_like(x, IGNORE_INDEX)
    for place in masked:
        targets[place] = x[place]
    by_hand = -sum(U[place].log_softmax(dim=-1)[x[place]] for place in masked) / 3
    torch.testing.assert_close(next_token_loss(U, targets), by_hand)


def test_float64_stays_float64():
    """So that a loss can be checked by finite differences."""
    U = torch.randn(2, 3, 7, dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([[1, 6, IGNORE_INDEX], [0, 2, 5]])
    assert next_token_loss(U, targets).dtype == torch.float64
    assert torch.autograd.gradcheck(lambda U: next_token_loss(U, targets), U)
    assert next_token_loss(U.bfloat16(), targets).dtype == torch.float32


def test_targets_of_32_bits_are_targets():
    U, targets = torch.randn(2, 5, 7), torch.randint(7, (2, 5))
    assert torch.equal(next_token_loss(U, targets.int()), next_token_loss(U, targets))
