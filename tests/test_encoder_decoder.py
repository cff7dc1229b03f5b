"""The encoder-decoder and cross-attention: 13.11-13.12 in the Aug 2026 draft."""

import copy
import io

import loops
import pytest
import torch
from comparing import (
    D_FF,
    D_K,
    D_SHARED,
    D_V,
    A,
    B,
    D,
    M,
    N,
    V,
    assert_same,
    assert_same_with_gradients,
    randomized,
    some_ids,
)
from torch import nn
from twins import Twin, stack_pairs, twin_layer

from slp_transformer import EncoderDecoder, TransformerConfig, padding_mask, record_activations

V_SOURCE = 29
SMALL = {
    "vocab_size": V,
    "context_length": M,
    "model_dim": D,
    "num_heads": A,
    "num_blocks": 2,
    "key_dim": D_K,
    "value_dim": D_V,
    "hidden_dim": D_FF,
    "source_vocab_size": V_SOURCE,
    "num_encoder_blocks": 1,
}


def model(**changes) -> EncoderDecoder:
    return randomized(EncoderDecoder(TransformerConfig(**{**SMALL, **changes})))


def sentences() -> tuple[torch.Tensor, torch.Tensor]:
    """Sources [B×M] and targets [B×N], no id 0 among them."""
    return some_ids(B, M, below=V_SOURCE - 1, seed=8) + 1, some_ids(B, N, below=V - 1, seed=9) + 1


def by_loop(model: EncoderDecoder, source: list[int], target: list[int]) -> torch.Tensor:
    X_enc = loops.input_rows(source, model.source_embedding)
    H_enc = loops.stack(X_enc, model.encoder, loops.everything)
    X_dec = loops.input_rows(target, model.target_embedding)
    H = loops.stack(X_dec, model.decoder, loops.causal, H_enc=H_enc)
    return loops.logits(H, model.target_embedding.tokens.E)


def test_cross_attn_13_12_encoder_decoder_equals_loop():
    translator = model()
    source, target = (ids[0] for ids in sentences())
    expected = by_loop(translator, source.tolist(), target.tolist())
    U = translator(source, target)
    assert_same_with_gradients(U, expected, list(translator.parameters()))


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_stacks_equal_pytorchs_transformer(norm):
    """`nn.Transformer`, encoder and decoder at once; in post-norm it has two norms too many."""
    translator = randomized(
        EncoderDecoder(TransformerConfig(V, M, D_SHARED, A, 2, hidden_dim=D_FF, norm=norm))
    )
    encoder, decoder = translator.encoder, translator.decoder
    theirs = nn.Transformer(
        D_SHARED,
        A,
        custom_encoder=nn.TransformerEncoder(
            twin_layer(encoder.blocks[0]), 2, None, enable_nested_tensor=False
        ),
        custom_decoder=nn.TransformerDecoder(twin_layer(decoder.blocks[0]), 2, None),
        batch_first=True,
    )
    if norm == "pre":
        theirs.encoder.norm, theirs.decoder.norm = nn.LayerNorm(D_SHARED), nn.LayerNorm(D_SHARED)

    def pairs(ours, theirs):
        yield from stack_pairs(ours[0], theirs.encoder)
        yield from stack_pairs(ours[1], theirs.decoder)

    twin = Twin(nn.ModuleList([encoder, decoder]), theirs, pairs)
    source, target = sentences()
    source, target = source % V, target % V
    padded = torch.zeros(B, M, dtype=torch.bool)
    padded[0, -3:] = True
    X_enc = translator.source_embedding(source).detach().requires_grad_()
    X_dec = translator.target_embedding(target).detach().requires_grad_()
    expected = twin.theirs(
        X_enc,
        X_dec,
        tgt_mask=torch.ones(N, N, dtype=torch.bool).triu(1),
        src_key_padding_mask=padded,
        memory_key_padding_mask=padded,
    )
    mask = padding_mask(padded.long(), 1)
    H_enc = encoder(X_enc, mask)
    H = decoder(X_dec, causal=True, H_enc=H_enc, enc_mask=mask)
    twin.assert_agrees(H, expected, [X_enc, X_dec])
    U = translator(source, target, mask)
    assert_same(U, H @ translator.target_embedding.tokens.E.T)


def test_target_is_causal_and_source_is_not():
    translator = model()
    source, target = sentences()
    i = 3
    changed = target.clone()
    changed[:, i + 1 :] = changed[:, i + 1 :] % (V - 1) + 1
    U, other = translator(source, target), translator(source, changed)
    assert torch.equal(U[:, : i + 1], other[:, : i + 1])
    assert (U[:, i + 1 :] != other[:, i + 1 :]).any(-1).all()
    H_enc = translator.encode(source)
    last = source.clone()
    last[:, -1] = last[:, -1] % (V_SOURCE - 1) + 1
    assert (translator.encode(last) != H_enc).any(-1).all()
    assert (translator(last, target) != U).any(-1).all()


def test_every_decoder_block_reads_the_final_encoder_output():
    translator = model(num_encoder_blocks=2)
    source, target = sentences()
    with record_activations(translator) as encoder_trace:
        H_enc = translator.encode(source)
    assert len(encoder_trace) == 2
    assert_same(H_enc, translator.encoder.final_norm(encoder_trace[-1]["H"]))
    with record_activations(translator) as trace:
        U = translator.decode(target, H_enc)
    assert_same(U, translator(source, target))
    for block, steps in zip(translator.decoder.blocks, trace, strict=True):
        assert_same(steps["C2"], block.cross_attention(steps["C1"], H_enc=H_enc))
        assert steps["alpha_cross"].shape == (B, A, N, M)
        assert steps["alpha"].shape == (B, A, N, N)


def test_padded_batch_equals_each_pair_alone():
    translator = model()
    source, target = sentences()
    source[0, -4:] = 0
    target[0, -2:] = 0
    U = translator(source, target, padding_mask(source, 0))
    assert_same(U[0, : N - 2], translator(source[0, : M - 4], target[0, : N - 2]))
    assert_same(U[1], translator(source[1], target[1]))


def test_target_mask_hides_left_padding():
    translator = model()
    source, target = sentences()
    target[0, :2] = 0
    U = translator(source, target, target_mask=padding_mask(target, 0))
    X = translator.target_embedding(target[0, 2:], start=2)
    H = translator.decoder(X, causal=True, H_enc=translator.encode(source[0]))
    assert_same(U[0, 2:], H @ translator.target_embedding.tokens.E.T)
    assert U.isfinite().all()


def test_source_of_nothing_but_padding_gives_no_nan():
    translator = model()
    source, target = sentences()
    source[0] = 0
    U = translator(source, target, padding_mask(source, 0))
    assert U.isfinite().all()
    assert_same(U[1], translator(source[1], target[1]))
    for gradient in torch.autograd.grad(U.sum(), list(translator.parameters())):
        assert gradient.isfinite().all()


def test_vocabulary_is_shared_unless_the_source_has_its_own():
    own, both = model(), model(source_vocab_size=None)
    assert own.source_embedding.tokens.E.shape == (V_SOURCE, D)
    assert own.target_embedding.tokens.E.shape == (V, D)
    assert both.source_embedding.tokens is both.target_embedding.tokens
    assert both.source_embedding.positions is not both.target_embedding.positions


def test_sizes_of_both_stacks():
    translator = model()
    assert (len(translator.encoder.blocks), len(translator.decoder.blocks)) == (1, 2)
    assert len(model(num_encoder_blocks=None).encoder.blocks) == 2
    assert all(block.cross_attention is None for block in translator.encoder.blocks)
    assert all(block.cross_attention is not None for block in translator.decoder.blocks)


@pytest.mark.parametrize("source_vocab_size", [V_SOURCE, None])
def test_state_dict_round_trip_and_deepcopy(memory, source_vocab_size):
    translator = model(source_vocab_size=source_vocab_size)
    source, target = sentences()
    source = source % V
    file = io.BytesIO()
    torch.save(translator.state_dict(), file)
    file.seek(0)
    again = EncoderDecoder(TransformerConfig(**translator.config.to_dict())).double()
    again.load_state_dict(torch.load(file, weights_only=True))
    copied = copy.deepcopy(translator)
    expected = translator(source, target)
    assert torch.equal(again(source, target), expected)
    assert torch.equal(copied(source, target), expected)
    shared = copied.source_embedding.tokens is copied.target_embedding.tokens
    assert shared == (source_vocab_size is None)


def test_dropout_only_in_training():
    translator = model(dropout=0.3)
    source, target = sentences()
    torch.manual_seed(0)
    assert not torch.allclose(translator(source, target), translator(source, target))
    assert_same(translator.eval()(source, target), model()(source, target))


def test_bfloat16_stays_finite_and_close():
    translator = EncoderDecoder(TransformerConfig(V, M, D_SHARED, A, 2))
    source, target = sentences()
    source = source % V
    source[0] = 0
    expected = copy.deepcopy(translator).double()(source, target, padding_mask(source, 0))
    U = translator.bfloat16()(source, target, padding_mask(source, 0))
    assert U.dtype == torch.bfloat16 and U.isfinite().all()
    assert (U.double() - expected).abs().max() < 0.05 * expected.abs().max()
