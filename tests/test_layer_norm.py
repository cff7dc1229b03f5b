"""LayerNorm."""

import loops
import pytest
import torch
from comparing import B, D, N, assert_same, assert_same_gradients, normal, randomized
from torch import nn
from twins import Twin, norm_pairs

from slp_transformer import LayerNorm


@pytest.mark.equations("ln-hat", "ln-std")
def test_ln_hat_by_hand_divides_by_d():
    """The standard deviation divides by d, not by d − 1: an example by hand.

    [1, 3, 5, 7]: mean 4, deviation √5 if divided by d = 4 (it would be √(20/3) with d−1).
    """
    X = torch.tensor([1.0, 3.0, 5.0, 7.0], dtype=torch.float64)
    expected = torch.tensor([-3.0, -1.0, 1.0, 3.0], dtype=torch.float64) / 5**0.5
    assert_same(LayerNorm(4, eps=0).double()(X), expected)


def test_ln_by_hand_with_gain_and_offset():
    """Deviation 4, epsilon 9: the root of 16 + 9 is 5."""
    norm = LayerNorm(2, eps=9.0)
    with torch.no_grad():
        norm.gamma.copy_(torch.tensor([10.0, 100.0]))
        norm.beta.copy_(torch.tensor([1.0, 2.0]))
    torch.testing.assert_close(norm(torch.tensor([[-3.0, 5.0]])), torch.tensor([[-7.0, 82.0]]))


@pytest.mark.equations("ln")
@pytest.mark.parametrize("eps", [0.0, 1e-5, 0.3])
def test_ln_equals_loop(eps):
    """Layer norm equals the loop over features."""
    norm, X = randomized(LayerNorm(D, eps)), normal(N, D)
    expected = torch.stack([loops.layer_norm(x_i, norm) for x_i in X])
    assert_same_gradients(norm(X), expected, [X, norm.gamma, norm.beta])


@pytest.mark.equations("ln")
@pytest.mark.parametrize("eps", [1e-5, 0.3])
def test_ln_equals_pytorch(eps):
    """Layer norm equals nn.LayerNorm."""
    norm, X = randomized(LayerNorm(D, eps)), normal(B, N, D)
    twin = Twin(norm, nn.LayerNorm(D, eps), norm_pairs)
    twin.assert_agrees(norm(X), twin.theirs(X), [X])


def test_default_epsilon_gain_and_offset_are_pytorchs():
    X = 1e-3 * normal(B, N, D).detach().float()  # so small that epsilon matters
    assert torch.equal(LayerNorm(D)(X), nn.LayerNorm(D)(X))


@pytest.mark.equations("ln-mean", "ln-std")
def test_ln_mean_and_std_become_0_and_1():
    """After layer norm each row has mean 0 and standard deviation 1."""
    output = LayerNorm(D, eps=0).double()(5 + 3 * normal(B, N, D))
    zeros = torch.zeros(B, N, dtype=torch.float64)
    assert_same(output.mean(-1), zeros)
    assert_same(output.std(-1, correction=0), zeros + 1)


def test_constant_row_stays_finite_with_the_default_epsilon():
    X = torch.full((N, D), 3.0, requires_grad=True)
    norm = LayerNorm(D)
    output = norm(X)
    output.sum().backward()
    assert (output == 0).all() and X.grad.isfinite().all()
    assert LayerNorm(D, eps=0)(X).isnan().all(), "the book's equation divides 0 by 0"
