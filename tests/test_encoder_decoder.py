"""The encoder-decoder and cross-attention."""

import loops
import torch
from comparing import (
    SIZES,
    A,
    B,
    D,
    M,
    N,
    V,
    assert_same,
    assert_same_gradients,
    randomized,
    some_ids,
)

from slp_transformer import EncoderDecoder, TransformerConfig, padding_mask

V_SOURCE = 29
ENCODER = {"source_vocab_size": V_SOURCE, "num_encoder_blocks": 1}


def model(**changes) -> EncoderDecoder:
    config = TransformerConfig(V, M, D, A, 2, **SIZES, **ENCODER | changes)
    return randomized(EncoderDecoder(config))


def sentences() -> tuple[torch.Tensor, torch.Tensor]:
    """Sources [B×M] and targets [B×N], no id 0 among them."""
    return some_ids(B, M, below=V_SOURCE - 1, seed=8) + 1, some_ids(B, N, below=V - 1, seed=9) + 1


def by_loop(model: EncoderDecoder, source: list[int], target: list[int]) -> torch.Tensor:
    X_enc = loops.input_rows(source, model.source_embedding)
    H_enc = loops.stack(X_enc, model.encoder, loops.everything)
    X_dec = loops.input_rows(target, model.target_embedding)
    H = loops.stack(X_dec, model.decoder, loops.causal, H_enc=H_enc)
    return loops.logits(H, model.target_embedding.tokens.E)


def test_encoder_decoder_equals_loop():
    translator = model()
    source, target = (ids[0] for ids in sentences())
    expected = by_loop(translator, source.tolist(), target.tolist())
    U = translator(source, target)
    assert_same_gradients(U, expected, list(translator.parameters()))


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


def test_padded_batch_equals_each_pair_alone():
    translator = model()
    source, target = sentences()
    source[0, -4:] = 0
    target[0, -2:] = 0
    U = translator(source, target, padding_mask(source, 0))
    assert_same(U[0, : N - 2], translator(source[0, : M - 4], target[0, : N - 2]))
    assert_same(U[1], translator(source[1], target[1]))


def test_vocabulary_is_shared_unless_the_source_has_its_own():
    own, both = model(), model(source_vocab_size=None)
    assert own.source_embedding.tokens.E.shape == (V_SOURCE, D)
    assert own.target_embedding.tokens.E.shape == (V, D)
    assert both.source_embedding.tokens is both.target_embedding.tokens
    assert both.source_embedding.positions is not both.target_embedding.positions
