"""The loss over many logits, a few rows at a time: PyTorch's numbers, gradients and refusals."""

import pytest
import torch
import torch.nn.functional as F

from slp_transformer import fast
from slp_transformer._internal.reference_mode import reference_mode
from slp_transformer.loss import IGNORE_INDEX, next_token_loss


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Eleven rows of thirteen words are many here, and four of them are a share of the cache."""
    monkeypatch.setattr(fast, "MIN_LOGITS", 100)
    monkeypatch.setattr(fast, "LOGITS_PER_CHUNK", 4 * 13 + 5)


@pytest.fixture
def taken(monkeypatch):
    """Counts the losses that are summed up a few rows at a time."""
    calls, real = [], fast.SummedCrossEntropy.apply
    monkeypatch.setattr(fast.SummedCrossEntropy, "apply", lambda *a: calls.append(1) or real(*a))
    return calls


def data() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    U = 3 * torch.randn(11, 13, generator=generator)
    targets = torch.randint(13, (11,), generator=generator)
    targets[[2, 7]] = IGNORE_INDEX
    return U.requires_grad_(), targets


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_the_loss_and_its_gradients_are_pytorch_s(smoothing, reduction, taken):
    U, targets = data()
    how = {"label_smoothing": smoothing, "reduction": reduction}
    theirs = F.cross_entropy(U, targets, ignore_index=IGNORE_INDEX, **how)
    (G_theirs,) = torch.autograd.grad(theirs, U)
    ours = next_token_loss(U, targets, **how)
    (G,) = torch.autograd.grad(ours, U, create_graph=True)
    (G_again,) = torch.autograd.grad(next_token_loss(U, targets, **how), U)
    assert len(taken) == 2
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(G, G_theirs)
    torch.testing.assert_close(G_again, G_theirs)
    assert not G_again[[2, 7]].any()
    plain = F.cross_entropy(U, targets, ignore_index=IGNORE_INDEX, **how)
    (before,) = torch.autograd.grad(plain, U, create_graph=True)
    second, expected = (torch.autograd.grad(g.square().sum(), U)[0] for g in (G, before))
    torch.testing.assert_close(second, expected)


def test_elsewhere_pytorch_s_way_is_taken(taken):
    U, targets = data()
    next_token_loss(U, targets)
    assert len(taken) == 1
    next_token_loss(U[:7], targets[:7])  # few
    next_token_loss(U.double(), targets)
    next_token_loss(U.detach(), targets)
    with torch.no_grad():
        next_token_loss(U, targets)
    each = torch.func.vmap(torch.func.grad(next_token_loss))(U.detach()[None], targets[None])
    with reference_mode():
        (whole,) = torch.autograd.grad(next_token_loss(U, targets), U)
    torch.testing.assert_close(each[0], whole)
    assert len(taken) == 1


def test_very_unlikely_words_have_their_price():
    U = torch.zeros(11, 13)
    U[:, 0] = 1e4
    U.requires_grad_()
    loss = next_token_loss(U, torch.full((11,), 5))
    loss.backward()
    assert loss.item() == 1e4
    assert U.grad[:, 0].tolist() == pytest.approx([1 / 11] * 11)
