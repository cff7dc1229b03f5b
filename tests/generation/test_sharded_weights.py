"""Single tokens read with matrices laid out for all cores: the same numbers, only where faster."""

import gc
import weakref

import pytest
import torch
from torch import nn
from writers import WINDOW, make

from slp_transformer import EncoderDecoder, KVCache, MultiHeadAttention, TransformerLM, generate
from slp_transformer._internal.reference_mode import plainly
from slp_transformer.generation import sharded_weights as module
from slp_transformer.generation.sharded_weights import SharedOut, laid_out, with_matrices_laid_out
from slp_transformer.language_model import lm_head


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    """As many shares, but no second thread, which tensors so small would only wait for."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)


@pytest.mark.parametrize("n", [7, 12, 1])
@pytest.mark.parametrize("leading", [(), (1,), (3,), (3, 1), (2, 3, 5)])
@torch.no_grad()
def test_a_few_rows_meet_the_shares_and_give_the_product(n, leading, monkeypatch):
    X, W, b = torch.randn(*leading, 5), torch.randn(5, n), torch.randn(n)
    laid = SharedOut.of(W)
    assert laid.shares.shape == ((2, 6, 5) if n == 12 else (1, n, 5))
    seen, real = [], module.product
    monkeypatch.setattr(module, "product", lambda *args: seen.append(1) or real(*args))
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
    twin = with_matrices_laid_out(model)
    ids, cache = torch.randint(7, (3, 6)), KVCache(WINDOW)
    H_enc = None if kind is TransformerLM else model.encode(torch.randint(7, (3, 5)))

    def read(model, ids, cache=None):
        return model(ids, cache=cache) if H_enc is None else model.decode(ids, H_enc, cache=cache)

    whole = read(model, ids)
    steps = [read(twin, token, cache) for token in ids.split(1, dim=1)]
    torch.testing.assert_close(torch.cat(steps, dim=1), whole)
    assert any(isinstance(W, SharedOut) for W in twin.parameters())
    assert not any(isinstance(W, SharedOut) for W in model.parameters())


@pytest.mark.parametrize("kind", [TransformerLM, EncoderDecoder])
def test_the_words_are_the_same(kind, monkeypatch):
    monkeypatch.setattr(module, "WORTH", 1)
    monkeypatch.setattr(module, "FASTER", {})
    model, chosen = make(kind), []
    monkeypatch.setattr(module, "timed", lambda X, W: float(not isinstance(W[0], SharedOut)))
    real = module.with_matrices_laid_out
    monkeypatch.setattr(module, "with_matrices_laid_out", lambda *a: chosen.append(1) or real(*a))
    sources = {} if kind is TransformerLM else {"sources": [[1, 2, 3], [4]]}
    for options in ({"temperature": 0}, {"num_beams": 3}):
        laid = [text.ids for text in generate(model, [[1, 2], [3]], **sources, **options)]
        assert chosen
        chosen.clear()
        with plainly():
            plain = generate(model, [[1, 2], [3]], **sources, **options)
        assert [text.ids for text in plain] == laid
        assert not chosen


def test_it_is_taken_only_where_it_was_measured_to_be_faster(monkeypatch):
    model = make(TransformerLM)
    for seconds, taken in (((1.0, 0.5), True), ((1.0, 0.98), False), ((1.0, 2.0), False)):
        monkeypatch.setattr(module, "FASTER", {})
        monkeypatch.setattr(module, "timed", lambda X, W, s=seconds: s[isinstance(W[0], SharedOut)])
        assert (laid_out(model, 1, 64) is not model) == taken
        assert laid_out(model, 1, 63) is model and laid_out(model, 65, 64) is model
        assert (
            laid_out(make(TransformerLM).double(), 1, 64).embedding.tokens.E.dtype == torch.float64
        )


def test_it_is_measured_once_for_models_of_one_size(monkeypatch):
    measured = []
    monkeypatch.setattr(module, "FASTER", {})
    monkeypatch.setattr(module, "is_faster", lambda *a: measured.append(a) or len(measured) == 1)
    first = make(TransformerLM)
    assert laid_out(first, 1, 64) is not first and laid_out(first, 1, 64) is not first
    assert laid_out(make(TransformerLM), 1, 64) is not first and len(measured) == 1
    assert laid_out(first, 2, 64) is first and laid_out(first, 2, 64) is first
    assert len(measured) == 2


@torch.no_grad()
def test_the_head_and_columns_are_read_by_shares(monkeypatch):
    model = make(TransformerLM)
    twin = with_matrices_laid_out(model)
    E, laid = model.unembedding, twin.unembedding
    assert laid.T.shares.data_ptr() == E.data_ptr()  # E is its own transpose's layout: no copy
    W_QKV, other = (m.stack.blocks[0].attention.W_QKV for m in (model, twin))
    seen, real = [], module.product
    monkeypatch.setattr(module, "product", lambda *args: seen.append(1) or real(*args))
    h, x = torch.randn(3, E.shape[1]), torch.randn(2, len(W_QKV))
    torch.testing.assert_close(lm_head(h, laid), lm_head(h, E))
    torch.testing.assert_close(x @ other.narrow(1, 2, 5), x @ W_QKV[:, 2:7])
    assert len(seen) == 2
    assert torch.equal(nn.functional.embedding(torch.tensor([4, 1]), laid), E[[4, 1]])


def test_parts_of_the_readers_own_are_left_alone():
    class Own(MultiHeadAttention):
        pass

    model = make(TransformerLM)
    model.stack.blocks[0].attention = Own(*(model.config.model_dim, model.config.num_heads))
    twin = with_matrices_laid_out(model)
    kinds = [type(block.attention.W_QKV) for block in twin.stack.blocks]
    assert kinds[0] is nn.Parameter and set(kinds[1:]) <= {SharedOut}


def test_a_part_in_two_places_stays_one():
    model = make(EncoderDecoder)
    twin = with_matrices_laid_out(model)
    assert (model.source_embedding.tokens is model.target_embedding.tokens) == (
        twin.source_embedding.tokens is twin.target_embedding.tokens
    )


def test_a_twin_that_nobody_holds_is_gone_at_once():
    """A cycle would keep its copies of the matrices until the collector comes round."""
    twin = with_matrices_laid_out(make(TransformerLM))
    held = weakref.ref(twin.stack.blocks[0].attention.W_QKV.shares)
    gc.disable()
    try:
        del twin
        assert held() is None
    finally:
        gc.enable()
