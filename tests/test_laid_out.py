"""Single tokens read with matrices laid out for all cores: the same numbers, only where faster."""

import pytest
import torch
from torch import nn
from writers import WINDOW, make

from slp_transformer import EncoderDecoder, KVCache, MultiHeadAttention, TransformerLM, generate
from slp_transformer.decoding import laid_out as module
from slp_transformer.decoding.laid_out import SharedOut, laid_out, with_matrices_laid_out
from slp_transformer.fast import plainly


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
    many = torch.randn(41, 5)
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
    for seconds, taken in (((1.0, 0.5), True), ((1.0, 0.95), False), ((1.0, 2.0), False)):
        monkeypatch.setattr(module, "timed", lambda X, W, s=seconds: s[isinstance(W[0], SharedOut)])
        assert (laid_out(model, 1, 64) is not model) == taken
        assert laid_out(model, 1, 63) is model and laid_out(model, 33, 64) is model
        assert (
            laid_out(make(TransformerLM).double(), 1, 64).embedding.tokens.E.dtype == torch.float64
        )


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
