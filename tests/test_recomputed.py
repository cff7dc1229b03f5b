"""The lean feedforward layer says what the plain one says, and keeps half of it."""

import pytest
import torch
import torch.nn.functional as F

from slp_transformer import FeedForward
from slp_transformer.recomputed import gelu_ffn, plain


def inputs(frozen: tuple[int, ...] = ()) -> list[torch.Tensor]:
    """X of 2 sequences of 3 rows, and the layer's parameters, from 5 to 7 and on to 11."""
    generator = torch.Generator().manual_seed(3)
    shapes = [(2, 3, 5), (5, 7), (7,), (7, 11), (11,)]
    made = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
    return [Z.requires_grad_(i not in frozen) for i, Z in enumerate(made)]


@pytest.mark.parametrize("frozen", [(), (0,), (1,), (2,), (3,), (4,), (0, 1, 2), (1, 2, 3, 4)])
def test_values_and_gradients_are_those_of_the_equation(frozen):
    given = inputs(frozen)
    learning = [Z for Z in given if Z.requires_grad]
    Y, expected = gelu_ffn(*given), plain(*given)
    torch.testing.assert_close(Y, expected)
    along = torch.randn(Y.shape, generator=torch.Generator().manual_seed(0)).double()
    gradients = torch.autograd.grad(Y, learning, along)
    torch.testing.assert_close(gradients, torch.autograd.grad(expected, learning, along))


def test_the_second_derivative_too():
    given = inputs()
    assert torch.autograd.gradcheck(gelu_ffn, given)
    assert torch.autograd.gradgradcheck(gelu_ffn, given)


def test_the_way_back_can_be_gone_twice():
    given = inputs()
    Y = gelu_ffn(*given).square().sum()
    first = torch.autograd.grad(Y, given, retain_graph=True)
    assert all(map(torch.equal, first, torch.autograd.grad(Y, given)))


def kept(layer: FeedForward, X: torch.Tensor) -> int:
    """Different tensors of the hidden size that a layer keeps for the way back."""
    places = set()

    def note(Z: torch.Tensor) -> torch.Tensor:
        if Z.numel() == X.shape[0] * layer.W_1.shape[1]:
            places.add(Z.data_ptr())
        return Z

    with torch.autograd.graph.saved_tensors_hooks(note, lambda Z: Z):
        Y = layer(X)
    Y.sum().backward()
    return len(places)


def test_training_on_a_cpu_keeps_the_hidden_rows_once():
    X = torch.randn(17, 5)
    layer = FeedForward(5, 13, "gelu")
    assert kept(layer, X) == 1
    layer.activation = lambda Z: F.gelu(Z)  # not known to be GELU
    assert kept(layer, X) == 2


def test_no_rows_at_all():
    layer = FeedForward(5, 13, "gelu")
    Y = layer(torch.zeros(2, 0, 5))
    assert Y.shape == (2, 0, 5)
    Y.sum().backward()
    assert all(not W.grad.any() for W in layer.parameters())


def test_transforms_of_functions_and_forward_mode_are_left_to_pytorch():
    layer, X = FeedForward(5, 13, "gelu"), torch.randn(3, 2, 5)
    given = dict(layer.named_parameters())

    def loss(parameters, x):
        return torch.func.functional_call(layer, parameters, (x,)).square().sum()

    each = torch.func.vmap(torch.func.grad(loss), (None, 0))(given, X)
    for x, found in zip(X, each["W_1"], strict=True):
        (expected,) = torch.autograd.grad(loss(given, x), layer.W_1)
        torch.testing.assert_close(found, expected)
    X.requires_grad_()
    (D,) = torch.autograd.grad(layer(X).sum(), X)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(X, torch.ones_like(X))
        along = torch.autograd.forward_ad.unpack_dual(layer(dual).sum()).tangent
    torch.testing.assert_close(along, D.sum())


def test_mixed_precision_is_left_to_pytorch():
    layer, X = FeedForward(5, 13, "gelu"), torch.randn(17, 5)
    with torch.autocast("cpu", torch.bfloat16):
        Y = layer(X)
    assert Y.dtype == torch.bfloat16
    Y.float().sum().backward()
    assert layer.W_1.grad.dtype == torch.float32
