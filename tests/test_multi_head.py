"""Multi-head attention, and cross-attention."""

import math

import loops
import pytest
import torch
from comparing import (
    D_K,
    D_SHARED,
    D_V,
    A,
    B,
    D,
    M,
    N,
    assert_same,
    assert_same_gradients,
    normal,
    randomized,
    uniform,
)
from twins import twin_attention

from slp_transformer import MultiHeadAttention, causal_mask, fused_attention, padding_mask
from slp_transformer.multi_head import join_heads, split_heads


def mha(**options) -> MultiHeadAttention:
    """Heads whose d_k and d_v differ from each other and from d/A."""
    return randomized(MultiHeadAttention(D, A, D_K, D_V, **options))


def shared(**options) -> MultiHeadAttention:
    """Heads that share d equally, as PyTorch's must."""
    return randomized(MultiHeadAttention(D_SHARED, A, **options))


def outputs(layer, *args, **options):
    """The fast path's output and the one that comes with the weights."""
    return [layer(*args, **options), layer(*args, **options, return_weights=True)[0]]


@pytest.mark.equations(
    "mh-qkv",
    "mh-score",
    "mh-alpha",
    "mh-head",
    "mh-concat",
    "mh-def",
    "mh-par-qkv",
    "mh-par-head",
    "mh-par-out",
)
@pytest.mark.parametrize("causal", [True, False])
def test_mh_par_out_equals_loop(causal):
    """Multi-head attention in matrix form equals the loop over heads and tokens."""
    layer, X = mha(), normal(N, D)
    visible = loops.causal if causal else loops.everything
    expected, alphas = loops.multi_head(X, layer, visible)
    for output in outputs(layer, X, causal=causal):
        assert_same_gradients(output, expected, [X, *layer.parameters()])
    _, alpha = layer(X, causal=causal, return_weights=True)
    assert_same(alpha, alphas)


@pytest.mark.equations("cross-QKV", "cross-attn")
@pytest.mark.parametrize("source", [5, M], ids=["shorter source", "longer source"])
def test_cross_attn_equals_loop(source):
    """Cross-attention equals its loop over heads and tokens."""
    layer, X, H_enc = mha(), normal(N, D), normal(source, D, seed=1)
    expected, alphas = loops.multi_head(X, layer, loops.everything, H_enc)
    for output in outputs(layer, X, H_enc=H_enc):
        assert_same_gradients(output, expected, [X, H_enc, *layer.parameters()])
    _, alpha = layer(X, H_enc=H_enc, return_weights=True)
    assert alpha.shape == (A, N, source)
    assert_same(alpha, alphas)


def additive(hidden: torch.Tensor) -> torch.Tensor:
    return torch.zeros(hidden.shape, dtype=torch.float64).masked_fill(hidden, -math.inf)


FUTURE = torch.ones(N, N, dtype=torch.bool).triu(1)
PADDED = torch.tensor([[False] * (N - 2) + [True] * 2, [False] * N])


@pytest.mark.equations("mh-par-out", "mh-def")
@pytest.mark.parametrize("masks", ["none", "causal", "padding", "both"])
def test_mh_par_out_equals_pytorch(masks):
    """Multi-head attention equals nn.MultiheadAttention with the same weights.

    (As a flag True hides here, the reverse of `scaled_dot_product_attention`, where True allows.)
    """
    layer = shared()
    twin, X = twin_attention(layer), normal(B, N, D_SHARED)
    ours, theirs = {}, {}
    if masks in ("causal", "both"):
        ours["causal"] = True
        theirs["attn_mask"] = FUTURE
    if masks in ("padding", "both"):
        ours["mask"] = padding_mask(PADDED.long(), 1)
        theirs["key_padding_mask"] = PADDED
    expected, weights = twin.theirs(X, X, X, average_attn_weights=False, **theirs)
    for output in outputs(layer, X, **ours):
        twin.assert_agrees(output, expected, [X])
    assert_same(layer(X, **ours, return_weights=True)[1], weights)


@pytest.mark.equations("cross-attn")
@pytest.mark.parametrize("source", [5, M], ids=["shorter source", "longer source"])
def test_cross_attn_equals_pytorch(source):
    """Cross-attention equals nn.MultiheadAttention with the same weights."""
    layer = shared()
    twin = twin_attention(layer)
    X, H_enc = normal(B, N, D_SHARED), normal(B, source, D_SHARED, seed=1)
    padded = torch.zeros(B, source, dtype=torch.bool)
    padded[1, -2:] = True
    expected, _ = twin.theirs(X, H_enc, H_enc, key_padding_mask=padded)
    for output in outputs(layer, X, padding_mask(padded.long(), 1), H_enc=H_enc):
        twin.assert_agrees(output, expected, [X, H_enc])


def test_fused_mask_per_sentence_and_per_head_equals_pytorch():
    """PyTorch takes a mask for each head as [B·A × N × M], sentence by sentence."""
    layer = shared()
    twin, X = twin_attention(layer), normal(B, N, D_SHARED)
    hidden = uniform(B, A, N, N, seed=6) < 0.3
    hidden[..., 0] = False
    expected, _ = twin.theirs(X, X, X, attn_mask=hidden.flatten(0, 1))
    for output in outputs(layer, X, additive(hidden)):
        twin.assert_agrees(output, expected, [X])
    expected, _ = twin.theirs(X, X, X, attn_mask=hidden[:, :1].expand(B, A, N, N).flatten(0, 1))
    for output in outputs(layer, X, additive(hidden[:, 0])):
        twin.assert_agrees(output, expected, [X])


def test_heads_set_is_what_the_layer_computes_with():
    """A layer filled head by head equals the loop over the matrices that were given."""
    layer, X = mha(), normal(N, D)
    parameters = list(layer.parameters())
    names = {"W_Q": (D, D_K), "W_K": (D, D_K), "W_V": (D, D_V), "W_O": (D_V, D)}
    expected = 0
    for c in range(A):
        given = {
            name: 0.4 * normal(*shape, seed=10 * c + k).detach()
            for k, (name, shape) in enumerate(names.items())
        }
        for name, W in given.items():
            setattr(layer.heads[c], name, W)
            assert torch.equal(getattr(layer.heads[c], name), W)
        values, _ = loops.one_head(X, given["W_Q"], given["W_K"], given["W_V"])
        expected = expected + values @ given["W_O"]
    assert_same(layer(X, causal=True), expected)
    assert all(a is b for a, b in zip(layer.parameters(), parameters, strict=True))


@pytest.mark.parametrize("key_dim, value_dim", [(None, None), (7, None), (None, 7), (7, 11)])
def test_d_k_and_d_v_are_independent_and_d_over_a_unless_given(key_dim, value_dim):
    layer = MultiHeadAttention(D_SHARED, A, key_dim, value_dim)
    assert (layer.key_dim, layer.value_dim) == (key_dim or D_K, value_dim or D_K)
    assert layer.W_Q.shape == layer.W_K.shape == (D_SHARED, A * layer.key_dim)
    assert layer.W_V.shape == (D_SHARED, A * layer.value_dim)
    assert layer.W_O.shape == (A * layer.value_dim, D_SHARED)


def test_split_heads_by_hand(memory):
    """Two tokens, three heads of two columns: head c takes columns 2c and 2c + 1 of each token."""
    X = torch.tensor([[0.0, 1, 2, 3, 4, 5], [10, 11, 12, 13, 14, 15]])
    heads = split_heads(X, 3)
    assert heads.tolist() == [[[0, 1], [10, 11]], [[2, 3], [12, 13]], [[4, 5], [14, 15]]]
    assert heads.untyped_storage().data_ptr() == X.untyped_storage().data_ptr()
    assert torch.equal(join_heads(heads), X)


def test_causal_with_left_padding_blinds_rows_without_nan():
    layer, X = mha(), normal(B, N, D)
    ids = torch.tensor([[0] * 3 + [1] * (N - 3), [1] * N])
    padding = padding_mask(ids, 0)
    for output in outputs(layer, X, padding, causal=True) + outputs(
        layer, X, padding + causal_mask(N)
    ):
        assert (output[0, :3] == 0).all()
        assert_same(output[0, 3:], layer(X[0, 3:], causal=True))
        for gradient in torch.autograd.grad(output.sum(), [X, *layer.parameters()]):
            assert gradient.isfinite().all() and gradient.abs().max() > 0
    _, alpha = layer(X, padding, causal=True, return_weights=True)
    assert (alpha[0, :, :3] == 0).all()
    sums = alpha.sum(-1)
    assert_same(sums[0, :, 3:], torch.ones_like(sums[0, :, 3:]))


@pytest.mark.parametrize("leading", [(B,), (B, 7)])
def test_leading_axes_are_taken_one_by_one(leading):
    layer, X, H_enc = mha(), normal(*leading, N, D), normal(*leading, M, D, seed=1)
    for output in outputs(layer, X, causal=True):
        each = [layer(x, causal=True) for x in X.reshape(-1, N, D)]
        assert_same(output.reshape(-1, N, D), torch.stack(each))
    output, alpha = layer(X, H_enc=H_enc, return_weights=True)
    assert alpha.shape == (*leading, A, N, M)
    pairs = zip(X.reshape(-1, N, D), H_enc.reshape(-1, M, D), strict=True)
    assert_same(output.reshape(-1, N, D), torch.stack([layer(x, H_enc=h) for x, h in pairs]))


def test_a_mask_with_some_of_the_leading_axes_is_one_for_each_sentence_never_for_each_head():
    """X has leading axes [B × A], so a mask [A × N × N] could be mistaken for one a head."""
    layer, X = mha(), normal(B, A, N, D)
    hidden = uniform(A, N, N, seed=6) < 0.3
    mask = additive(hidden)
    expected = torch.stack(
        [torch.stack([layer(X[b, a], mask[a]) for a in range(A)]) for b in (0, 1)]
    )
    for output in outputs(layer, X, mask):
        assert_same(output, expected)


def test_one_mask_for_each_head_of_one_sentence():
    layer, X = mha(), normal(N, D)
    hidden = uniform(A, N, N, seed=6) < 0.3
    _, alpha = layer(X, additive(hidden), return_weights=True)
    assert torch.equal(alpha == 0, hidden)
    assert_same(*outputs(layer, X, additive(hidden)))


def test_dropout_drops_its_share_of_the_weights_and_scales_the_rest():
    torch.manual_seed(0)
    layer = mha(dropout=0.25)
    X = normal(31, 61, D)
    _, alpha = layer(X, return_weights=True)
    _, whole = layer.eval()(X, return_weights=True)
    dropped = alpha == 0
    assert dropped.double().mean().item() == pytest.approx(0.25, abs=0.005)
    assert_same(alpha[~dropped], whole[~dropped] / 0.75)


def test_fused_dropout_drops_its_share_of_the_weights():
    """With V = I for d_v = M the values are the weights themselves."""
    torch.manual_seed(0)
    zeros = torch.zeros(7, 101, 3)
    values = fused_attention(zeros, zeros, torch.eye(101).expand(7, 101, 101), dropout=0.25)
    assert (values == 0).double().mean().item() == pytest.approx(0.25, abs=0.005)
    torch.testing.assert_close(values.max().item(), 1 / 101 / 0.75)
