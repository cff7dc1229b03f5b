"""The key-value cache: exact, written in place, bounded, refusing what cannot be."""

import copy

import pytest
import torch

from slp_transformer import (
    EncoderDecoder,
    KVCache,
    MultiHeadAttention,
    TransformerConfig,
    TransformerLM,
    padding_mask,
)
from slp_transformer.cache import LayerCache

N = 13
PIECES = [(13,), (1,) * 13, (5, 1, 1, 4, 2), (1, 12)]  # how 13 tokens are read
KINDS = [{"norm": "pre", "positions": "learned"}, {"norm": "post", "positions": "sinusoidal"}]


def config(**options) -> TransformerConfig:
    sizes = {"model_dim": 10, "num_heads": 2, "key_dim": 3, "value_dim": 7, "num_blocks": 3}
    return TransformerConfig(11, **{"context_length": 17, **sizes, **options})


def sharpen(model):
    """Weights large enough for attention to choose, so that a wrong key would show."""
    with torch.no_grad():
        for weights in model.parameters():
            weights.mul_(8 if weights.dim() == 2 else 1)
    return model.eval()


def in_pieces(step, ids, pieces, cache):
    """Read `ids` piece by piece, and put the logits side by side."""
    with torch.no_grad():
        return torch.cat([step(part, cache) for part in ids.split(pieces, dim=-1)], dim=-2)


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"])
def exactness(request):
    torch.manual_seed(0)
    return {"dtype": request.param, "atol": 1e-5 if request.param == torch.float32 else 1e-12}


@pytest.mark.equations("kv-attn")
@pytest.mark.parametrize("pieces", PIECES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_language_model_reads_the_same_in_pieces(kind, pieces, exactness):
    """With a cache, reading a text in pieces gives the same logits as reading it at once."""
    model = sharpen(TransformerLM(config(**kind)).to(exactness["dtype"]))
    ids, cache = torch.randint(11, (5, N)), KVCache(17)
    logits = in_pieces(lambda part, c: model(part, cache=c), ids, pieces, cache)
    whole = model(ids).detach()
    torch.testing.assert_close(logits, whole, rtol=0, atol=exactness["atol"])
    assert cache.length == N
    assert whole.std() > 0.1  # not a comparison of zeros


@pytest.mark.parametrize("pieces", PIECES)
@pytest.mark.parametrize("kind", KINDS)
def test_an_encoder_decoder_reads_the_same_in_pieces(kind, pieces, exactness):
    model = sharpen(EncoderDecoder(config(**kind)).to(exactness["dtype"]))
    source, target, cache = torch.randint(11, (5, 7)), torch.randint(11, (5, N)), KVCache(17)
    mask = padding_mask(source, pad_id=3, dtype=exactness["dtype"])
    with torch.no_grad():
        H_enc = model.encode(source, mask)
        whole = model.decode(target, H_enc, mask)
    logits = in_pieces(
        lambda part, c: model.decode(part, H_enc, mask, cache=c), target, pieces, cache
    )
    torch.testing.assert_close(logits, whole, rtol=0, atol=exactness["atol"])
    assert cache.length == N and cache[0].cross_attention.length == 7
    assert list(cache) == [cache[l] for l in range(len(model.decoder.blocks))]


@pytest.mark.equations("kv-attn")
@pytest.mark.parametrize("pieces", [(3, 1, 4), (1,) * 8])
def test_weights_of_cached_attention_are_rows_of_the_whole_matrix(pieces):
    """The attention weights computed with a cache are rows of the full matrix."""
    torch.manual_seed(0)
    mha, X, cache = MultiHeadAttention(10, 2), torch.randn(3, 8, 10), LayerCache(8)
    _, whole = mha(X, causal=True, return_weights=True)
    done = 0
    with torch.no_grad():
        for part in X.split(pieces, dim=1):
            _, alpha = mha(part, causal=True, return_weights=True, cache=cache)
            cache.commit()
            end = done + part.shape[1]
            torch.testing.assert_close(alpha, whole[:, :, done:end, :end])
            done = end


def test_an_additive_mask_counts_the_keys_of_the_cache():
    torch.manual_seed(0)
    model = sharpen(TransformerLM(config()))
    ids = torch.randint(1, 11, (2, N))
    ids[0, :4] = 0
    mask, cache = padding_mask(ids, pad_id=0), KVCache(17)
    at = ((ids != 0).cumsum(-1) - 1).clamp(min=0)
    with torch.no_grad():
        whole = model(ids, mask, position_ids=at)
        first = model(ids[:, :6], mask[..., :6], cache=cache, position_ids=at[:, :6])
        second = model(ids[:, 6:], mask, cache=cache, position_ids=at[:, 6:])
    both = torch.cat([first, second], dim=1)
    torch.testing.assert_close(both[0, 4:], whole[0, 4:], rtol=0, atol=1e-5)
    torch.testing.assert_close(both[1], whole[1], rtol=0, atol=1e-5)


@pytest.mark.parametrize("rows", [[2, 0, 0, 1, 2], [2, 1], [2, 0, 1], [1, 1, 1], [0, 1, 2]])
def test_reorder_lets_each_row_go_on_from_another(rows):
    torch.manual_seed(0)
    model, rows = sharpen(EncoderDecoder(config())), torch.tensor(rows)
    source, target = torch.randint(11, (3, 7)), torch.randint(11, (3, 4))
    next_ids, cache = torch.randint(11, (len(rows), 2)), KVCache(17)
    with torch.no_grad():
        H_enc = model.encode(source)
        model.decode(target, H_enc, cache=cache)
        cache.reorder(rows)
        cached = model.decode(next_ids, H_enc[rows], cache=cache)
        whole = model.decode(torch.cat([target[rows], next_ids], dim=1), H_enc[rows])
    torch.testing.assert_close(cached, whole[:, 4:], rtol=0, atol=1e-5)


def test_a_copy_goes_on_by_itself():
    """One beginning, read once, and two ways to go on from it."""
    torch.manual_seed(0)
    model = sharpen(EncoderDecoder(config()))
    source, target = torch.randint(11, (2, 7)), torch.randint(11, (2, 8))
    cache = KVCache(17)
    with torch.no_grad():
        H_enc = model.encode(source)
        model.decode(target[:, :5], H_enc, cache=cache)
        other = copy.deepcopy(cache)
        one = model.decode(target[:, 5:], H_enc, cache=cache)
        two = model.decode(target[:, 5:].flip(1), H_enc, cache=other)
        whole = model.decode(target, H_enc)[:, 5:]
        flipped = model.decode(torch.cat([target[:, :5], target[:, 5:].flip(1)], 1), H_enc)[:, 5:]
    torch.testing.assert_close(one, whole, rtol=0, atol=1e-5)
    torch.testing.assert_close(two, flipped, rtol=0, atol=1e-5)


def test_a_pass_that_breaks_off_half_way_leaves_the_cache_as_it_was():
    torch.manual_seed(0)
    model = sharpen(TransformerLM(config()))
    ids, cache = torch.randint(11, (2, 8)), KVCache(17)

    def interrupt(*_):
        raise KeyboardInterrupt

    with torch.no_grad():
        whole = model(ids)
        model(ids[:, :3], cache=cache)
        broken = model.stack.blocks[1].register_forward_pre_hook(interrupt)
        with pytest.raises(KeyboardInterrupt):
            model(ids[:, 3:7], cache=cache)
        assert cache.length == 3
        broken.remove()
        again = model(ids[:, 3:], cache=cache)
    torch.testing.assert_close(again, whole[:, 3:], rtol=0, atol=1e-5)


def test_without_a_capacity_it_makes_room_as_it_goes():
    torch.manual_seed(0)
    model = sharpen(TransformerLM(config()))
    ids, cache = torch.randint(11, (2, N)), KVCache()
    with torch.no_grad():
        whole = model(ids)
    read = in_pieces(lambda part, c: model(part, cache=c), ids, (1,) * N, cache)
    torch.testing.assert_close(read, whole, rtol=0, atol=1e-5)
    assert cache.length == N and N <= cache[0].self_attention.K.shape[-2] < 2 * N


@pytest.mark.parametrize(
    ("capacity", "read", "more", "mask", "message"),
    [
        (99, 17, 1, None, "has 18 tokens, but there are positions for 17"),
        (5, 4, 2, None, "room for 5 tokens and holds 4: 2 more do not fit"),
        (9, 4, 2, torch.zeros(2, 5), r"scores have shape \[1×2×6\]"),
    ],
    ids=["past the window", "a full cache", "a wrong mask"],
)
@pytest.mark.parametrize("positions", ["learned", "sinusoidal"])
def test_what_cannot_be_read_leaves_the_cache_as_it_was(
    positions, capacity, read, more, mask, message
):
    model, cache = TransformerLM(config(positions=positions)).eval(), KVCache(capacity)
    ids = torch.zeros(1, 17, dtype=torch.long)
    with torch.no_grad():
        model(ids[:, :read], cache=cache)
        with pytest.raises(ValueError, match=message):
            model(ids[:, :more], mask, cache=cache)
    assert cache.length == read


def test_another_batch_and_gradients_are_refused(unchecked):
    model, cache = TransformerLM(config()).eval(), KVCache(9)
    ids = torch.zeros(3, 2, dtype=torch.long)
    with pytest.raises(ValueError, match=r"no gradient can flow.*torch\.no_grad"):
        model(ids[:2], cache=cache)
    assert cache.length == 0
    with torch.no_grad():
        model(ids, cache=cache)
        with pytest.raises(ValueError, match=r"\[3×2\], but these keys have \[1×2\]: one cache"):
            model(ids[:1], cache=cache)


@pytest.mark.parametrize("capacity", [0, -1, 2.5, True])
def test_the_capacity_is_a_number_of_tokens(capacity, unchecked):
    with pytest.raises(ValueError, match="capacity must be a whole number of 1 or more"):
        KVCache(capacity)
