"""Dropout from random bits: the right share, each place by itself, and PyTorch's seeds."""

import pytest
import torch
import torch.nn.functional as F

from slp_transformer.dropping import Dropout, draw_kept, make_up


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.9])
def test_every_place_is_dropped_with_the_same_probability_and_by_itself(share):
    torch.manual_seed(0)
    count = 2**20
    kept = draw_kept((count,), share).double()
    deviation = (share * (1 - share)) ** 0.5
    lanes = kept.view(-1, 4)  # what comes of one number
    for places in (kept, *lanes.T, kept[: count // 2]):
        assert abs(places.mean() - (1 - share)) < 4 * deviation * len(places) ** -0.5
    for apart in (1, 2, 3, 4, 8):
        together = (kept[apart:] * kept[:-apart]).mean()
        assert abs(together - kept.mean() ** 2) < 5 * deviation * count**-0.5


def test_all_that_is_kept_makes_up_for_what_is_dropped():
    assert [make_up(share) for share in (0.0, 0.25, 0.5, 0.75)] == [1, 4 / 3, 2, 4]
    assert make_up(0.1) == 65536 / 58982 and make_up(0.999999999) == 65536  # in steps of 1/65,536
    assert draw_kept((7, 11), 0.0).all()


@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (2, 0, 3), (2, 3, 5, 7)])
def test_any_shape_and_the_seed_decides(shape):
    torch.manual_seed(3)
    first, second = draw_kept(shape, 0.5), draw_kept(shape, 0.5)
    torch.manual_seed(3)
    again = draw_kept(shape, 0.5)
    assert first.shape == shape and first.dtype == torch.bool and torch.equal(first, again)
    assert first.numel() < 100 or not torch.equal(first, second)


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


def test_nothing_and_everything():
    X = torch.rand(7, 5)
    assert torch.equal(Dropout(0.0)(X), X)
    assert torch.equal(Dropout(0.5).eval()(X), X)
    assert not Dropout(1.0)(X).any()


def test_in_place_means_in_place():
    X = torch.ones(7, 5)
    assert Dropout(0.5, inplace=True)(X) is X and 0 < (X == 0).sum() < 35


def test_compiled_and_transformed_it_is_pytorch_s(monkeypatch):
    X, layer = torch.rand(7, 5), Dropout(0.5)

    def theirs():
        torch.manual_seed(5)
        return F.dropout(X, 0.5)

    torch.manual_seed(5)
    assert not torch.equal(layer(X), theirs())
    torch.manual_seed(5)
    (Y,) = torch.func.vmap(layer, randomness="different")(X[None])
    assert 0 < (Y == 0).sum() < 35
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    torch.manual_seed(5)
    assert torch.equal(layer(X), theirs())
