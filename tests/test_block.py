"""The block, post-norm, and cross-attention."""

import contextlib
from functools import partial

import loops
import pytest
import torch
from comparing import SIZES, A, B, D, M, N, assert_same, assert_same_gradients, normal, randomized

from slp_transformer import (
    TransformerBlock,
    TransformerStack,
    padding_mask,
    record_activations,
)
from slp_transformer.block import ResidualBlock

CROSS = pytest.mark.parametrize("cross", [False, True], ids=["self", "cross"])
NORMS = pytest.mark.parametrize("norm", ["pre", "post"])


def block(**options) -> TransformerBlock:
    return randomized(TransformerBlock(D, A, **SIZES, **options))


def test_nothing_is_dropped_unless_asked_for():
    """In training as well: the book has no dropout."""
    X, made = normal(B, N, D), block()
    composed = ResidualBlock(made.attention, made.norm_1, made.ffn, made.norm_2)
    for one in (made, composed):
        assert_same(one.train()(X), one.eval()(X))


@pytest.mark.equations("t1", "t2", "t3", "t4", "t5", "h", "H")
@pytest.mark.parametrize("visible", [loops.causal, loops.everything])
def test_H_equals_loop_t1_to_h(visible):
    """A block equals the loop that computes t¹ to h for one token at a time."""
    layer, X = block(), normal(N, D)
    expected = loops.pre_norm_block(X, layer, visible)
    output = layer(X, causal=visible is loops.causal)
    assert_same_gradients(output, expected, [X, *layer.parameters()])


@pytest.mark.equations("O", "H")
def test_H_equals_the_two_lines_O_and_H():
    """A block equals the two lines for O and H."""
    layer, X = block(), normal(B, N, D)
    O = X + layer.attention(layer.norm_1(X), causal=True)
    H = O + layer.ffn(layer.norm_2(O))
    assert_same_gradients(layer(X, causal=True), H, [X, *layer.parameters()])


@pytest.mark.equations("postnorm-t")
def test_postnorm_t_equals_loop():
    """A post-norm block equals its loop over tokens."""
    layer, X = block(norm="post"), normal(N, D)
    expected = loops.post_norm_block(X, layer)
    assert_same_gradients(layer(X, causal=True), expected, [X, *layer.parameters()])


def test_swiglu_block_equals_loop():
    layer, X = block(activation="swiglu"), normal(N, D)
    expected = loops.pre_norm_block(X, layer, ffn=loops.swiglu)
    assert_same_gradients(layer(X, causal=True), expected, [X, *layer.parameters()])


@NORMS
def test_decoder_block_equals_loop(norm):
    layer, X, H_enc = block(norm=norm, cross_attention=True), normal(N, D), normal(M, D, seed=1)
    by_hand = loops.pre_norm_block if norm == "pre" else loops.post_norm_block
    expected = by_hand(X, layer, H_enc=H_enc, enc_visible=lambda i, j: j < M - 2)
    enc_mask = padding_mask(torch.tensor([1] * (M - 2) + [0] * 2), 0)
    output = layer(X, causal=True, H_enc=H_enc, enc_mask=enc_mask)
    assert_same_gradients(output, expected, [X, H_enc, *layer.parameters()])


POINTS = {*"X T1 T2 T3 T4 T5 H Q K V scores alpha head".split()}
ACROSS = {*"C1 C2 C3 Q_cross K_cross V_cross scores_cross alpha_cross head_cross".split()}


@CROSS
def test_postnorm_t_from_the_trace(cross):
    layer, X = block(norm="post", cross_attention=cross), normal(B, N, D)
    H_enc = normal(B, M, D, seed=1) if cross else None
    with record_activations(layer) as steps:
        H = layer(X, causal=True, H_enc=H_enc)
    (trace,) = steps
    assert set(trace) == POINTS | (ACROSS if cross else set())
    assert_same(trace["T1"], layer.attention(X, causal=True))
    assert_same(trace["T2"], trace["T1"] + X)
    assert_same(trace["T3"], layer.norm_1(trace["T2"]))
    below = trace["T3"]
    if cross:
        assert_same(trace["C1"], layer.cross_attention(trace["T3"], H_enc=H_enc))
        assert_same(trace["C2"], trace["C1"] + trace["T3"])
        assert_same(trace["C3"], layer.norm_cross(trace["C2"]))
        below = trace["C3"]
    assert_same(trace["T4"], layer.ffn(below))
    assert_same(trace["T5"], trace["T4"] + below)
    assert_same(H, layer.norm_2(trace["T5"]))


@NORMS
@CROSS
def test_causal_by_perturbation_and_by_zero_gradient(norm, cross):
    layer, X = block(norm=norm, cross_attention=cross), normal(N, D)
    options = {"H_enc": normal(M, D, seed=1)} if cross else {}
    i = 3
    changed = X.detach().clone()
    changed[i + 1 :] += normal(N - i - 1, D, seed=5)
    output, other = (layer(x, causal=True, **options) for x in (X, changed))
    assert torch.equal(output[: i + 1], other[: i + 1])
    assert (output[i + 1 :] != other[i + 1 :]).any(-1).all()
    (gradient,) = torch.autograd.grad(output[i].sum(), X)
    assert (gradient[i + 1 :] == 0).all() and (gradient[: i + 1] != 0).any(-1).all()


def test_left_padding_and_empty_source_give_no_nan():
    layer = block(cross_attention=True)
    X, H_enc = normal(B, N, D), normal(B, M, D, seed=1)
    ids = torch.tensor([[0] * 3 + [1] * (N - 3), [1] * N])
    enc_mask = padding_mask(torch.tensor([[0] * M, [1] * M]), 0)
    for how in (contextlib.nullcontext(), record_activations(layer)):
        with how:
            output = layer(X, padding_mask(ids, 0), causal=True, H_enc=H_enc, enc_mask=enc_mask)
        assert output.isfinite().all()
        for gradient in torch.autograd.grad(output.sum(), [X, H_enc, *layer.parameters()]):
            assert gradient.isfinite().all()
        alone = layer(X[1], causal=True, H_enc=H_enc[1])
        assert_same(output[1], alone)


@NORMS
@CROSS
def test_dropout_only_in_training_and_on_every_sublayer(norm, cross):
    layer = block(norm=norm, cross_attention=cross, dropout=0.4)
    X = normal(B, N, D)
    options = {"H_enc": normal(B, M, D, seed=1)} if cross else {}
    layer.eval()
    assert_same(layer(X, **options), block(norm=norm, cross_attention=cross)(X, **options))
    layer.train()
    torch.manual_seed(0)
    with record_activations(layer) as steps:
        layer(X, **options)
    (trace,) = steps
    added = ["T2", "T5"] if norm == "pre" else ["T1", "T4"]
    added += ["C2" if norm == "pre" else "C1"] if cross else []
    for step in (*added, "alpha", *(["alpha_cross"] if cross else [])):
        assert (trace[step] == 0).double().mean().item() == pytest.approx(0.4, abs=0.12), step
    first, second = (layer(X, **options) for _ in range(2))
    assert not torch.allclose(first, second)


@NORMS
@CROSS
def test_dropout_of_everything_added_leaves_the_stream(norm, cross):
    """The untraced path drops them too: with nothing kept, only X is left, or its norms."""
    layer = block(norm=norm, cross_attention=cross, dropout=0.4).train()
    layer.drop.p = 1.0
    X = normal(B, N, D)
    options = {"H_enc": normal(B, M, D, seed=1)} if cross else {}
    expected = X
    if norm == "post":
        for layer_norm in (layer.norm_1, layer.norm_cross, layer.norm_2):
            expected = expected if layer_norm is None else layer_norm(expected)
    assert_same(layer(X, **options), expected)


@pytest.mark.parametrize("make", [TransformerBlock, partial(TransformerStack, 2)])
def test_what_only_attention_of_ones_own_takes_is_refused_by_its_name(make):
    """A block passes on what its `forward` names; a typo would be passed on, too."""
    for name in ("gate", "return_weights", "casual"):
        with pytest.raises(TypeError, match=name):
            make(10, 2)(torch.randn(N, 10), **{name: True})
