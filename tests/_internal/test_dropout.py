"""Dropout from random bits: the right share, each place by itself, and PyTorch's seeds."""

import pytest
import torch
import torch.nn.functional as F

from slp_transformer._internal.reference_mode import reference_mode
from slp_transformer.dropout import Dropout, sample_keep_mask


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.9])
def test_every_place_is_dropped_with_the_same_probability_and_by_itself(share):
    torch.manual_seed(0)
    count = 2**20
    kept = sample_keep_mask((count,), share).double()
    deviation = (share * (1 - share)) ** 0.5
    lanes = kept.view(-1, 4)  # what comes of one number
    for places in (kept, *lanes.T, kept[: count // 2]):
        assert abs(places.mean() - (1 - share)) < 4 * deviation * len(places) ** -0.5
    for apart in (1, 2, 3, 4, 8):
        together = (kept[apart:] * kept[:-apart]).mean()
        assert abs(together - kept.mean() ** 2) < 5 * deviation * count**-0.5


@pytest.mark.parametrize("share", [1.0, -0.1, float("nan")])
def test_no_share_beyond_0_to_1_is_taken(share):
    with pytest.raises(ValueError, match="dropout"):
        Dropout(share)


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75, 0.1, 0.999999999])
def test_all_that_is_kept_makes_up_for_what_is_dropped(share):
    X = Dropout(share)(torch.ones(100_003))
    steps = min(round(share * 65536), 65535)  # in steps of 1/65,536, but never all of them
    torch.testing.assert_close(X[X != 0], torch.full_like(X[X != 0], 65536 / (65536 - steps)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_rest_is_scaled_up_and_so_is_its_gradient(dtype):
    X = (1 + torch.rand(53, 31)).to(dtype).requires_grad_()
    Y = Dropout(0.25)(X)
    assert Y.dtype == dtype and 0.15 < (Y == 0).float().mean() < 0.35
    scaled = torch.where(Y == 0, 0, 4 / 3).to(dtype)
    torch.testing.assert_close(
        Y, X * scaled, rtol=1e-2 if dtype == torch.bfloat16 else 1e-6, atol=0
    )
    (D,) = torch.autograd.grad(Y.sum(), X)
    torch.testing.assert_close(D, scaled)


def theirs(X):
    torch.manual_seed(5)
    return F.dropout(X, 0.5)


def ours(X, layer):
    torch.manual_seed(5)
    return layer(X)


def test_compiled_transformed_or_plainly_it_is_pytorch_s(monkeypatch):
    X, layer = torch.rand(7, 5), Dropout(0.5)
    assert not torch.equal(ours(X, layer), theirs(X))
    (Y,) = torch.func.vmap(layer, randomness="different")(X[None])
    assert 0 < (Y == 0).sum() < 35
    with reference_mode():
        assert torch.equal(ours(X, layer), theirs(X))
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert torch.equal(ours(X, layer), theirs(X))


def test_what_is_computed_again_for_the_way_back_drops_the_same():
    """The re-entrant kind of checkpoint runs first without gradients, then with them."""
    from torch.utils.checkpoint import checkpoint

    from slp_transformer import TransformerBlock

    torch.manual_seed(7)
    block = TransformerBlock(30, 3, dropout=0.3)
    X = torch.randn(2, 71, 30, requires_grad=True)

    def gradients(run):
        torch.manual_seed(11)
        return torch.autograd.grad(run(X).square().sum(), [X, *block.parameters()])

    plain = gradients(lambda X: block(X, causal=True))
    again = gradients(lambda X: checkpoint(lambda X: block(X, causal=True), X, use_reentrant=False))
    for one, other in zip(plain, again, strict=True):
        torch.testing.assert_close(one, other)
    torch.manual_seed(11)
    checkpoint(lambda X: block(X, causal=True), X, use_reentrant=True).square().sum().backward()
    torch.testing.assert_close(X.grad, plain[0])
    torch.testing.assert_close(block.attention.W_QKV.grad, plain[1])
