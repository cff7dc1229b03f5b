"""The feedforward layer, and SwiGLU."""

import loops
import pytest
import torch
import torch.nn.functional as F
from comparing import D_FF, B, D, N, assert_same_gradients, normal, randomized

from slp_transformer import FeedForward, SwiGLU
from slp_transformer.feedforward import ACTIVATIONS


def fill(layer, **values):
    with torch.no_grad():
        for name, value in values.items():
            getattr(layer, name).copy_(torch.tensor(value))
    return layer


@pytest.mark.equations("ffn")
def test_ffn_by_hand():
    """The feedforward layer equals an example worked out by hand.

    x W_1 + b_1 = [-1, 4, 6]; ReLU cuts the first; W_2 and b_2 make [14, -3] of the others.
    """
    layer = fill(
        FeedForward(2, 3),
        W_1=[[1.0, 2.0, 0.0], [-1.0, 1.0, 3.0]],
        b_1=[0.0, 0.0, 0.0],
        W_2=[[100.0, 100.0], [2.0, 1.0], [1.0, -1.0]],
        b_2=[0.0, -1.0],
    )
    torch.testing.assert_close(layer(torch.tensor([[1.0, 2.0]])), torch.tensor([[14.0, -3.0]]))
    fill(layer, b_1=[1.0, -4.0, -5.0], b_2=[7.0, 8.0])
    torch.testing.assert_close(layer(torch.tensor([1.0, 2.0])), torch.tensor([8.0, 7.0]))


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_ffn_equals_loop(activation):
    layer, X = randomized(FeedForward(D, D_FF, activation)), normal(N, D)
    expected = torch.stack([loops.feedforward(x, layer, getattr(loops, activation)) for x in X])
    assert_same_gradients(layer(X), expected, [X, *layer.parameters()])


@pytest.mark.equations("ffn")
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_ffn_equals_pytorch(activation):
    """The feedforward layer equals nn.Linear, ReLU, nn.Linear."""
    layer, X = randomized(FeedForward(D, D_FF, activation)), normal(B, N, D)
    hidden = getattr(F, activation)(F.linear(X, layer.W_1.T, layer.b_1))
    expected = F.linear(hidden, layer.W_2.T, layer.b_2)
    assert_same_gradients(layer(X), expected, [X, *layer.parameters()])


# At −1 and at 2; Φ is the share of the normal distribution, and GPT-2's gelu has a tanh for it.
BY_HAND = {
    "relu": (0.0, 2.0),
    "gelu": (-0.158655, 2 * 0.977250),
    "gelu_tanh": (-0.158808, 2 * 0.977299),
    "relu2": (0.0, 4.0),
}


def test_every_activation_has_values_by_hand():
    for name, function in ACTIVATIONS.items():
        found = function(torch.tensor([-1.0, 2.0])).tolist()
        assert found == pytest.approx(BY_HAND[name], abs=2e-6), name


def test_relu_is_the_default_and_hidden_dim_is_4d():
    layer = FeedForward(D)
    assert layer.W_1.shape == (D, 4 * D) and layer.b_1.shape == (4 * D,)
    assert layer.W_2.shape == (4 * D, D) and layer.b_2.shape == (D,)
    fill(layer, W_1=0.0, b_1=-1.0, b_2=0.5)
    assert (layer(torch.ones(N, D)) == 0.5).all()


@pytest.mark.equations("swish")
def test_swish_by_hand():
    """Swish equals values worked out by hand.

    Swish(0) = 0, Swish(±log 3) = log 3 · 3/4 and −log 3 / 4, as the sigmoid is 3/4 and 1/4.
    """
    layer = fill(SwiGLU(1, 1), W_1=1.0, b_1=0.0, W_2=0.0, b_2=1.0, W_3=1.0, b_3=0.0)
    log_3 = 3.0**0.0 * torch.log(torch.tensor(3.0))
    X = torch.stack([torch.tensor(0.0), log_3, -log_3]).unsqueeze(1)
    expected = torch.stack([torch.tensor(0.0), log_3 * 3 / 4, -log_3 / 4]).unsqueeze(1)
    torch.testing.assert_close(layer(X), expected)


@pytest.mark.equations("swiglu")
def test_swiglu_equals_loop_and_pytorch():
    """SwiGLU equals its loop and PyTorch's functions."""
    layer, X = randomized(SwiGLU(D, D_FF)), normal(N, D)
    expected = torch.stack([loops.swiglu(x, layer) for x in X])
    assert_same_gradients(layer(X), expected, [X, *layer.parameters()])
    gate = F.silu(F.linear(X, layer.W_1.T, layer.b_1))
    expected = F.linear(gate * F.linear(X, layer.W_2.T, layer.b_2), layer.W_3.T, layer.b_3)
    assert_same_gradients(layer(X), expected, [X, *layer.parameters()])


def test_swiglu_without_biases_has_three_matrices_alone():
    layer, X = randomized(SwiGLU(D, D_FF, bias=False)), normal(N, D)
    W_1, W_2, W_3 = layer.parameters()
    torch.testing.assert_close(layer(X), (F.silu(X @ W_1) * (X @ W_2)) @ W_3)


@pytest.mark.parametrize("model_dim, hidden_dim", [(3, 8), (12, 32), (13, 35), (14, 38)])
def test_swiglu_hidden_dim_is_8d_over_3_rounded_up(model_dim, hidden_dim):
    layer = SwiGLU(model_dim)
    assert layer.W_1.shape == layer.W_2.shape == (model_dim, hidden_dim)
    assert layer.W_3.shape == (hidden_dim, model_dim)
    matrices = sum(W.numel() for W in layer.parameters() if W.dim() == 2)
    assert 0 <= matrices - 8 * model_dim**2 < 3 * model_dim
