"""Single tokens read with matrices cut into a shard for each core: the same numbers."""

import pytest
import torch
from torch import nn
from writers import WINDOW, make

from slp_transformer import EncoderDecoder, KVCache, MultiHeadAttention, TransformerLM, generate
from slp_transformer._internal.reference_mode import reference_mode
from slp_transformer.generation import sharded_weights as module
from slp_transformer.generation.sharded_weights import (
    ShardedMatrix,
    copy_with_sharded_matrices,
    shard_weights_if_faster,
)


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    """As many shards, but no second thread, which tensors so small would only wait for."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    monkeypatch.setattr(module, "MIN_MATRIX_NUMEL", 1)


@pytest.mark.parametrize("n", [7, 12, 1])
@pytest.mark.parametrize("leading", [(), (1,), (3,), (3, 1), (2, 3, 5)])
@torch.no_grad()
def test_a_few_rows_meet_the_shares_and_give_the_product(n, leading, monkeypatch):
    X, W, b = torch.randn(*leading, 5), torch.randn(5, n), torch.randn(n)
    laid = ShardedMatrix.from_matrix(W)
    assert laid.shards.shape == ((2, 6, 5) if n == 12 else (1, n, 5))
    seen, real = [], module.sharded_matmul
    monkeypatch.setattr(module, "sharded_matmul", lambda *args: seen.append(1) or real(*args))
    torch.testing.assert_close(X @ laid, X @ W)
    torch.testing.assert_close(nn.functional.linear(X, laid.T, b), X @ W + b)
    assert len(seen) == 2
    many = torch.randn(67, 5)
    assert torch.equal(many @ laid, many @ W) and torch.equal(laid + 1, W + 1) and len(seen) == 2


@pytest.mark.parametrize("kind", [TransformerLM, EncoderDecoder])
@pytest.mark.parametrize("how", [{}, {"norm": "post", "activation": "swiglu"}])
@torch.no_grad()
def test_a_model_laid_out_says_the_same_and_is_untouched(kind, how):
    model = make(kind, **how)
    twin = copy_with_sharded_matrices(model)
    ids, cache = torch.randint(7, (3, 6)), KVCache(WINDOW)
    H_enc = None if kind is TransformerLM else model.encode(torch.randint(7, (3, 5)))

    def read(model, ids, cache=None):
        return model(ids, cache=cache) if H_enc is None else model.decode(ids, H_enc, cache=cache)

    whole = read(model, ids)
    steps = [read(twin, token, cache) for token in ids.split(1, dim=1)]
    torch.testing.assert_close(torch.cat(steps, dim=1), whole)
    assert any(isinstance(W, ShardedMatrix) for W in twin.parameters())
    assert not any(isinstance(W, ShardedMatrix) for W in model.parameters())


@pytest.mark.parametrize("kind", [TransformerLM, EncoderDecoder])
def test_the_words_are_the_same(kind, monkeypatch):
    monkeypatch.setattr(module, "MIN_NEW_TOKENS", 1)
    model, chosen, real = make(kind), [], module.copy_with_sharded_matrices
    monkeypatch.setattr(
        module, "copy_with_sharded_matrices", lambda *a: chosen.append(1) or real(*a)
    )
    sources = {} if kind is TransformerLM else {"sources": [[1, 2, 3], [4]]}
    for options in ({"temperature": 0}, {"num_beams": 3}):
        sharded = [text.ids for text in generate(model, [[1, 2], [3]], **sources, **options)]
        assert chosen
        chosen.clear()
        with reference_mode():
            plain = generate(model, [[1, 2], [3]], **sources, **options)
        assert [text.ids for text in plain] == sharded
        assert not chosen


def test_a_fixed_rule_decides(monkeypatch):
    model = make(TransformerLM)
    assert shard_weights_if_faster(model, 64, 64) is not model
    assert shard_weights_if_faster(model, 1, 63) is model
    assert shard_weights_if_faster(model, 65, 64) is model
    assert shard_weights_if_faster(double := make(TransformerLM).double(), 1, 64) is double
    with torch.autocast("cpu", torch.bfloat16):
        assert shard_weights_if_faster(model, 1, 64) is model
    with reference_mode():
        assert shard_weights_if_faster(model, 1, 64) is model
    handle = model.stack.register_forward_hook(lambda *args: None)
    assert shard_weights_if_faster(model, 1, 64) is model
    handle.remove()
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    assert shard_weights_if_faster(model, 1, 64) is model


def test_parts_of_the_readers_own_are_left_alone():
    class Own(MultiHeadAttention):
        pass

    model = make(TransformerLM)
    model.stack.blocks[0].attention = Own(*(model.config.model_dim, model.config.num_heads))
    assert shard_weights_if_faster(model, 1, 64) is model


def test_a_part_in_two_places_stays_one():
    model = make(EncoderDecoder)
    twin = copy_with_sharded_matrices(model)
    assert (model.source_embedding.tokens is model.target_embedding.tokens) == (
        twin.source_embedding.tokens is twin.target_embedding.tokens
    )
