"""Single tokens read with matrices cut into a shard for each core: the same numbers."""

import pytest
import torch
from writers import WINDOW, make

from slp_transformer import EncoderDecoder, KVCache, TransformerLM, generate
from slp_transformer._internal.reference_mode import reference_mode
from slp_transformer.generation import sharded_weights as module
from slp_transformer.generation.sharded_weights import (
    ShardedMatrix,
    shard_matrices,
    with_sharded_weights,
)


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    """As many shards, but no second thread, which tensors so small would only wait for."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    monkeypatch.setattr(module, "MIN_MATRIX_NUMEL", 1)


@pytest.mark.parametrize("kind", [TransformerLM, EncoderDecoder])
@pytest.mark.parametrize("how", [{}, {"norm": "post", "activation": "swiglu"}])
@torch.no_grad()
def test_a_model_laid_out_says_the_same_and_is_untouched(kind, how):
    model = make(kind, **how)
    twin = shard_matrices(model)
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
    model, chosen, real = make(kind), [], module.shard_matrices
    monkeypatch.setattr(module, "shard_matrices", lambda *a: chosen.append(1) or real(*a))
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
    assert with_sharded_weights(model, 64, 64) is not model
    assert with_sharded_weights(model, 1, 63) is model
    assert with_sharded_weights(model, 65, 64) is model
    assert with_sharded_weights(double := make(TransformerLM).double(), 1, 64) is double
    with torch.autocast("cpu", torch.bfloat16):
        assert with_sharded_weights(model, 1, 64) is model
    with reference_mode():
        assert with_sharded_weights(model, 1, 64) is model
    handle = model.stack.register_forward_hook(lambda *args: None)
    assert with_sharded_weights(model, 1, 64) is model
    handle.remove()
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    assert with_sharded_weights(model, 1, 64) is model
