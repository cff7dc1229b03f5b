"""A model laid out anew for single tokens says what it says otherwise."""

import itertools

import pytest
import torch
from torch import nn

from slp_transformer import (
    EncoderDecoder,
    TransformerConfig,
    TransformerLM,
    decoding,
    generate,
)
from slp_transformer.cache import KVCache
from slp_transformer.decoding import Reader, pad
from slp_transformer.heads import split_heads
from slp_transformer.one_token import OneToken, SharedOut, can_be_laid_out

KINDS = list(itertools.product(("pre", "post"), ("relu", "gelu", "swiglu")))


def make(norm: str = "pre", activation: str = "gelu", of=TransformerLM, **changes) -> nn.Module:
    """A model of 2 blocks with every parameter, offsets too, far from zero."""
    torch.manual_seed(0)
    sizes = {"model_dim": 21, "num_heads": 3, "num_blocks": 2, "hidden_dim": 31}
    how = {"norm": norm, "activation": activation} | sizes | changes
    model = of(TransformerConfig(37, 43, **how))
    for W in model.parameters():
        nn.init.normal_(W, std=0.3)
    return model.eval()


@pytest.mark.parametrize("cores", [1, 2, 5, 7])
def test_a_matrix_shared_out_gives_the_same_products(monkeypatch, cores):
    monkeypatch.setattr(torch, "get_num_threads", lambda: cores)
    W, V, b = torch.randn(5, 7), torch.randn(5, 14), torch.randn(21)
    product = SharedOut(W, V, b=b)
    assert product.shares == {1: 1, 2: 1, 5: 3, 7: 7}[cores]  # what divides 21
    for rows in (1, 3):
        X = torch.randn(rows, 5)
        torch.testing.assert_close(product(X), torch.cat([X @ W, X @ V], dim=1) + b)
        torch.testing.assert_close(SharedOut(W, V)(X), torch.cat([X @ W, X @ V], dim=1))


@pytest.mark.parametrize(("norm", "activation"), KINDS)
@pytest.mark.parametrize("positions", ["learned", "sinusoidal"])
@torch.no_grad()
def test_logits_are_those_of_the_model(norm, activation, positions):
    model = make(norm, activation, positions=positions)
    assert can_be_laid_out(model)
    ids = torch.randint(37, (5, 43), generator=torch.Generator().manual_seed(1))
    cache, one_token, expected = KVCache(43), OneToken(model), model(ids)
    model(ids[:, :11], cache=cache)
    for place in range(11, 43):
        U = one_token(ids[:, place : place + 1], cache)
        torch.testing.assert_close(U, expected[:, place], atol=1e-5, rtol=1e-5)


SOURCES = [[7, 8, 9, 10, 11], [12, 13], [14, 15, 16]]


@pytest.mark.parametrize(("norm", "activation"), KINDS)
@pytest.mark.parametrize("sources", [SOURCES, [SOURCES[0]] * 3], ids=["padded", "unpadded"])
@torch.no_grad()
def test_logits_are_those_of_the_decoder(norm, activation, sources):
    model = make(norm, activation, EncoderDecoder, key_dim=5, value_dim=11, source_vocab_size=17)
    assert can_be_laid_out(model)
    source, mask = pad(sources, "cpu")
    assert (mask is None) == (len(set(map(len, sources))) == 1)
    H_enc = model.encode(source, mask)
    ids = torch.randint(37, (3, 43), generator=torch.Generator().manual_seed(1))
    one_token, expected = OneToken(model), model.decode(ids, H_enc, mask)
    for read in (0, 1, 11):  # by the model, before
        cache = KVCache(43)
        if read:
            model.decode(ids[:, :read], H_enc, mask, cache=cache)
        for place in range(read, 43):
            U = one_token(ids[:, place : place + 1], cache, H_enc, mask)
            torch.testing.assert_close(U, expected[:, place], atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_the_source_is_projected_once(monkeypatch):
    model, projected = make(of=EncoderDecoder), []
    H_enc, one_token, cache = model.encode(torch.tensor([SOURCES[0]])), OneToken(model), KVCache(3)

    def spy(Z, num_heads):
        projected.append(Z.shape[-2])
        return split_heads(Z, num_heads)

    monkeypatch.setattr("slp_transformer.one_token.split_heads", spy)
    for word in (1, 2, 3):
        one_token(torch.tensor([[word]]), cache, H_enc)
    assert sum(projected) == 2 * 2 * len(SOURCES[0])  # K and V, in two blocks


@torch.no_grad()
def test_heads_with_sizes_of_their_own():
    model = make(key_dim=5, value_dim=11)
    ids = torch.arange(3)[None]
    cache = KVCache(3)
    model(ids[:, :2], cache=cache)
    U = OneToken(model)(ids[:, 2:], cache)
    torch.testing.assert_close(U, model(ids)[:, -1], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("of", [TransformerLM, EncoderDecoder])
def test_written_with_and_without_it_the_words_are_the_same(monkeypatch, of):
    model, prompts = make(of=of), [[1, 2, 3], [4], [5, 6, 7, 8, 9]]
    used, sources = [], SOURCES if of is EncoderDecoder else None

    class Spy(OneToken):
        def __call__(self, ids, *reads):
            used.append(len(ids))
            return super().__call__(ids, *reads)

    monkeypatch.setattr(decoding, "OneToken", Spy)
    for beams in (None, 3):
        how = {"num_beams": beams} if beams else {"temperature": 0, "stop": 11}
        how["sources"] = sources
        plain = generate(model, prompts, 40, cached=False, **how)
        assert used == []
        assert [g.ids for g in generate(model, prompts, 40, **how)] == [g.ids for g in plain]
        assert used
        used.clear()


def test_between_single_tokens_several_may_be_read():
    model = make()
    (one,) = generate(model, [[1]], 1, temperature=0)
    prompts = [[1], [5, 6, 7, 8, 9], [5, 6, 7, 8]]  # the first ends at once: then a leap to 4
    how = {"temperature": 0, "stop": one.new[0]}
    plain = generate(model, prompts, 30, cached=False, **how)
    assert plain[0].ended == "stop" and len(plain[0].new) == 1
    assert [g.ids for g in generate(model, prompts, 30, **how)] == [g.ids for g in plain]


@torch.no_grad()
def test_a_few_words_are_not_worth_it():
    def laid_out(room: int) -> bool:
        reader = Reader(make(), None, room)
        for length in (1, 2):
            reader(torch.zeros(1, length, dtype=torch.long))
        return reader.one_token is not None

    assert laid_out(decoding.WORTH)
    assert not laid_out(decoding.WORTH - 1)


def test_changed_models_are_run_as_they_are():
    class Louder(nn.Module):
        def forward(self, X):
            return 2 * X

    model = make()
    model.stack.blocks[1].ffn = Louder()
    assert not can_be_laid_out(model)
    for register in ("register_forward_hook", "register_forward_pre_hook"):
        model = make()
        handle = getattr(model.stack.blocks[0].attention, register)(lambda *_: None)
        assert not can_be_laid_out(model)
        handle.remove()
        assert can_be_laid_out(model)
    handle = nn.modules.module.register_module_forward_hook(lambda *_: None)
    assert not can_be_laid_out(model)
    handle.remove()
    with torch.autocast("cpu", torch.bfloat16):
        assert not can_be_laid_out(model)
    model.stack.blocks[0].norm_2.forward = lambda X: X
    assert not can_be_laid_out(model)
    for name in ("encode", "decode", "forward"):
        model = make(of=EncoderDecoder)
        assert can_be_laid_out(model)
        setattr(model, name, lambda *_: None)
        assert not can_be_laid_out(model)


def test_what_a_hook_has_kept_can_be_learned_from():
    model, kept = make(), []
    model.stack.register_forward_hook(lambda _, __, H: kept.append(H))
    generate(model, [[1, 2]], 3)
    W = torch.ones(kept[-1].shape[-1], requires_grad=True)
    (kept[-1] * W).sum().backward()
    assert W.grad is not None


def test_a_model_that_has_written_still_learns():
    model = make()
    generate(model, [[1]], 40, temperature=0)
    model.train()(torch.arange(7)[None]).sum().backward()
    assert all(W.grad is not None for W in model.parameters())
