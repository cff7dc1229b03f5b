"""Blocks above each other, and the final layer norm."""

import loops
import pytest
import torch
from comparing import (
    D_FF,
    D_SHARED,
    SIZES,
    A,
    B,
    D,
    M,
    N,
    assert_same,
    assert_same_gradients,
    normal,
    randomized,
)
from twins import twin_stack

from slp_transformer import (
    TransformerBlock,
    TransformerStack,
    causal_mask,
    padding_mask,
    record_activations,
)

L = 3


def stack(**options) -> TransformerStack:
    return randomized(TransformerStack(2, D, A, **SIZES, **options))


def shared(**options) -> TransformerStack:
    return randomized(TransformerStack(L, D_SHARED, A, hidden_dim=D_FF, **options))


@pytest.mark.equations("stack")
def test_stack_equals_loop():
    """A stack equals a loop over its blocks."""
    layers, X = stack(), normal(N, D)
    expected = loops.stack(X, layers)
    assert_same_gradients(layers(X, causal=True), expected, [X, *layers.parameters()])


PADDED = torch.tensor([[False] * (N - 2) + [True] * 2, [False] * N])
ENC_PADDED = torch.tensor([[False] * M, [False] * (M - 3) + [True] * 3])
NORMS = pytest.mark.parametrize("norm", ["pre", "post"])


@pytest.mark.equations("H")
@NORMS
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("causal", [True, False], ids=["causal", "both ways"])
def test_stack_equals_transformer_encoder(norm, activation, causal):
    """A stack equals nn.TransformerEncoder, pre-norm and post-norm, with a mask and without."""
    layers = shared(norm=norm, activation=activation)
    twin, X = twin_stack(layers, activation), normal(B, N, D_SHARED)
    future = torch.ones(N, N, dtype=torch.bool).triu(1) if causal else None
    expected = twin.theirs(X, mask=future, src_key_padding_mask=PADDED)
    mask = padding_mask(PADDED.long(), 1)
    twin.assert_agrees(layers(X, mask, causal=causal), expected, [X])
    with record_activations(layers):
        output = layers(X, mask, causal=causal)
    twin.assert_agrees(output, expected, [X])


@NORMS
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_stack_equals_transformer_decoder(norm, activation):
    layers = shared(norm=norm, activation=activation, cross_attention=True)
    twin = twin_stack(layers, activation)
    X, H_enc = normal(B, N, D_SHARED), normal(B, M, D_SHARED, seed=1)
    expected = twin.theirs(
        X, H_enc, tgt_mask=causal_mask(N, dtype=torch.float64), memory_key_padding_mask=ENC_PADDED
    )
    output = layers(X, causal=True, H_enc=H_enc, enc_mask=padding_mask(ENC_PADDED.long(), 1))
    twin.assert_agrees(output, expected, [X, H_enc])


@pytest.mark.equations("final-ln")
def test_final_ln_normalizes_what_the_last_block_left():
    """The final layer norm is applied to the last block's output."""
    layers, X = stack(), normal(B, N, D)
    with record_activations(layers) as trace:
        H = layers(X, causal=True)
    assert_same(H, layers.final_norm(trace[-1]["H"]))


@pytest.mark.parametrize("activation", ["relu", "swiglu"])
@pytest.mark.parametrize("cross", [False, True])
def test_initialization_is_gpt_2s(activation, cross):
    """Deviation 0.02; for what writes to the stream, narrower by the root of how many write."""
    torch.manual_seed(0)
    layers = TransformerStack(5, 60, 3, activation=activation, cross_attention=cross)
    writers = 5 * (3 if cross else 2)
    for block in layers.blocks:
        for sublayer in block.sublayers():
            named = dict(sublayer.named_parameters())
            output = next(named[name] for name in ("W_O", "W_3", "W_2") if name in named)
            for parameter in named.values():
                if parameter.dim() == 1:
                    assert (parameter == 0).all()
                    continue
                narrower = writers**-0.5 if parameter is output else 1.0
                assert parameter.std().item() == pytest.approx(0.02 * narrower, rel=0.07)
                assert abs(parameter.mean().item()) < 0.002
    assert (layers.final_norm.gamma == 1).all()
    alone = TransformerBlock(60, 3).ffn  # a part by itself keeps the size of its input
    for W in (alone.W_1, alone.W_2):
        assert W.std().item() == pytest.approx(len(W) ** -0.5, rel=0.1)
