"""Bad input gets a ValueError that says what was given and what would do.

The shape checks of the tests are off here: a reader has only the package's own.
"""

import re

import pytest
import torch
from whole import whole

from slp_transformer import (
    AttentionHead,
    EncoderDecoder,
    FeedForward,
    InputEncoding,
    LayerNorm,
    LearnedPositions,
    MultiHeadAttention,
    SinusoidalPositions,
    TokenEmbedding,
    TransformerBlock,
    TransformerConfig,
    TransformerLM,
    TransformerStack,
    causal_mask,
    fused_attention,
    lm_head,
    next_token_loss,
    padding_mask,
    sinusoidal_positions,
)
from slp_transformer.attention import attention
from slp_transformer.embedding import one_hot_lookup
from slp_transformer.modern import ModernConfig, ModernLM
from slp_transformer.training import TrainConfig

pytestmark = pytest.mark.usefixtures("unchecked")

D, A, N, M, V = 15, 3, 7, 11, 23


def rows(*shape: int) -> torch.Tensor:
    return torch.zeros(*shape)


def ids(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.int64)


def mha(**options) -> MultiHeadAttention:
    return MultiHeadAttention(D, A, **options)


def block(**options) -> TransformerBlock:
    return TransformerBlock(D, A, **options)


def stack(**options) -> TransformerStack:
    return TransformerStack(2, D, A, **options)


def config(**changes) -> TransformerConfig:
    sizes = {"vocab_size": V, "context_length": M, "model_dim": D, "num_heads": A}
    return TransformerConfig(**{**sizes, "num_blocks": 1, **changes})


def lm() -> TransformerLM:
    return TransformerLM(config())


def translator() -> EncoderDecoder:
    return EncoderDecoder(config(source_vocab_size=29))


LOWER = torch.ones(N, N).tril().bool()

# What is called, and its whole message, which names what was given, and what would do.
BAD = {
    # masks
    "causal_mask of -3": (
        lambda: causal_mask(-3),
        "causal_mask needs numbers of tokens of 0 or more, not -3.",
    ),
    "boolean mask": (
        lambda: attention(rows(N, 5), rows(N, 5), rows(N, 5), LOWER),
        "The mask has type torch.bool, but masks here are additive: a floating-point tensor "
        "that is 0 where attention is allowed and -inf where it is not, as made by "
        "causal_mask or padding_mask. From a boolean `allowed`, write "
        "torch.zeros(allowed.shape).masked_fill(~allowed, -torch.inf).…",
    ),
    "boolean mask, fused": (
        lambda: fused_attention(rows(N, 5), rows(N, 5), rows(N, 5), LOWER),
        "The mask has type torch.bool, but masks here are additive: a floating-point tensor "
        "that is 0 where attention is allowed and -inf where it is not, as made by "
        "causal_mask or padding_mask. From a boolean `allowed`, write "
        "torch.zeros(allowed.shape).masked_fill(~allowed, -torch.inf).…",
    ),
    "boolean mask, model": (
        lambda: lm()(ids(N), LOWER),
        "The mask has type torch.bool, but masks here are additive: a floating-point tensor "
        "that is 0 where attention is allowed and -inf where it is not, as made by "
        "causal_mask or padding_mask. From a boolean `allowed`, write "
        "torch.zeros(allowed.shape).masked_fill(~allowed, -torch.inf).…",
    ),
    "boolean mask of the encoder's output": (
        lambda: block(cross_attention=True)(
            rows(N, D), H_enc=rows(M, D), enc_mask=torch.ones(1, M).bool()
        ),
        "The mask has type torch.bool, but masks here are additive: a floating-point tensor "
        "that is 0 where attention is allowed and -inf where it is not, as made by "
        "causal_mask or padding_mask. From a boolean `allowed`, write "
        "torch.zeros(allowed.shape).masked_fill(~allowed, -torch.inf).…",
    ),
    "mask of ones and zeros": (
        lambda: mha()(rows(N, D), LOWER.float()),
        "The mask has ones and zeros, but masks here are additive: 0 where attention is "
        "allowed and -inf where it is not, as made by causal_mask or padding_mask. From "
        "`keep` with 1 where attention is allowed, write "
        "torch.zeros(keep.shape).masked_fill(keep == 0, -torch.inf).…",
    ),
    "mask of ones": (
        lambda: lm()(ids(2, N), torch.ones(2, 1, N)),
        "The mask has ones and zeros, but masks here are additive: 0 where attention is "
        "allowed and -inf where it is not, as made by causal_mask or padding_mask. From "
        "`keep` with 1 where attention is allowed, write "
        "torch.zeros(keep.shape).masked_fill(keep == 0, -torch.inf).…",
    ),
    "mask of ones and zeros, fused": (
        lambda: fused_attention(rows(N, 5), rows(N, 5), rows(N, 5), LOWER.double()),
        "The mask has ones and zeros, but masks here are additive: 0 where attention is "
        "allowed and -inf where it is not, as made by causal_mask or padding_mask. From "
        "`keep` with 1 where attention is allowed, write "
        "torch.zeros(keep.shape).masked_fill(keep == 0, -torch.inf).…",
    ),
    "list for ids": (
        lambda: lm()([1, 2, 3]),
        "Token ids must be a tensor, not a list: write torch.tensor(ids).",
    ),
    "text for ids": (
        lambda: lm()("abc"),
        "Token ids must be a tensor, not a str: encode the text first.",
    ),
    "positions for other tokens": (
        lambda: lm()(ids(2, N), position_ids=torch.arange(5)),
        "position_ids [5] must have one position for each of the 7 tokens.",
    ),
    "positions that are none": (
        lambda: lm()(ids(2, 3), position_ids=torch.tensor([0, 1, M])),
        "position_ids has 11, but positions go from 0 to 10.",
    ),
    "mask of other queries": (
        lambda: mha()(rows(N, D), rows(5, N)),
        "The mask has shape [5×7], but the scores have shape [7×7] (7 queries by 7 keys): its"
        " axes must match theirs or be 1, and those before the last two may be left out.",
    ),
    "mask of other keys": (
        lambda: mha()(rows(N, D), rows(N, 5)),
        "The mask has shape [7×5], but the scores have shape [7×7] (7 queries by 7 keys): its"
        " axes must match theirs or be 1, and those before the last two may be left out.",
    ),
    "transposed mask": (
        lambda: mha()(rows(N, D), rows(M, N), H_enc=rows(M, D)),
        "The mask has shape [11×7], but the scores have shape [7×11] (7 queries by 11 keys): "
        "its axes must match theirs or be 1, and those before the last two may be left out.",
    ),
    "mask of another batch": (
        lambda: mha()(rows(2, N, D), rows(5, N, N)),
        "The mask has shape [5×7×7], but the scores have shape [2×7×7] (7 queries by 7 keys):"
        " its axes must match theirs or be 1, and those before the last two may be left out.",
    ),
    "mask of other heads": (
        lambda: mha()(rows(2, N, D), rows(2, 5, N, N)),
        "The mask has shape [2×5×7×7], but the scores have shape [2×3×7×7] (7 queries by 7 "
        "keys): its axes must match theirs or be 1, and those before the last two may be left"
        " out.",
    ),
    "mask of texts padded on the left": (
        lambda: lm()(ids(3, N), padding_mask(torch.tensor([[0, 0, 1, 2, 3, 4, 5]] * 3), 0)),
        "The mask hides the first tokens from all others, as padding on the left does, but "
        "positions would be counted from them: pass position_ids=((ids != pad_id).cumsum(-1) "
        "- 1).clamp(min=0), or torch.arange(N) if they are to be counted so.…",
    ),
    # attention
    "queries and keys of different size": (
        lambda: attention(rows(N, 5), rows(N, 3), rows(N, 5)),
        "Q [... × N × d_k], K [... × M × d_k] and V [... × M × d_v] need at least two axes, "
        "the same axes before the last two, the same d_k and a value for each key, but have "
        "shapes [7×5], [7×3] and [7×5].",
    ),
    "more keys than values": (
        lambda: attention(rows(N, 5), rows(M, 5), rows(N, 5)),
        "Q [... × N × d_k], K [... × M × d_k] and V [... × M × d_v] need at least two axes, "
        "the same axes before the last two, the same d_k and a value for each key, but have "
        "shapes [7×5], [11×5] and [7×5].",
    ),
    "queries of one axis": (
        lambda: attention(rows(5), rows(N, 5), rows(N, 5)),
        "Q [... × N × d_k], K [... × M × d_k] and V [... × M × d_v] need at least two axes, "
        "the same axes before the last two, the same d_k and a value for each key, but have "
        "shapes [5], [7×5] and [7×5].",
    ),
    "batches of different size": (
        lambda: attention(rows(2, N, 5), rows(3, N, 5), rows(3, N, 5)),
        "Q [... × N × d_k], K [... × M × d_k] and V [... × M × d_v] need at least two axes, "
        "the same axes before the last two, the same d_k and a value for each key, but have "
        "shapes [2×7×5], [3×7×5] and [3×7×5].",
    ),
    "a batch of keys for one query": (
        lambda: fused_attention(rows(N, 5), rows(2, N, 5), rows(2, N, 5)),
        "Q [... × N × d_k], K [... × M × d_k] and V [... × M × d_v] need at least two axes, "
        "the same axes before the last two, the same d_k and a value for each key, but have "
        "shapes [7×5], [2×7×5] and [2×7×5].",
    ),
    "causal with more queries": (
        lambda: fused_attention(rows(M, 5), rows(N, 5), rows(N, 5), causal=True),
        "A causal mask needs a key for each query, but there are 11 queries and 7 keys.",
    ),
    "X of another size": (
        lambda: mha()(rows(N, 13)),
        "X has shape [7×13], but must be [... × tokens × 15]: model_dim is 15 here.",
    ),
    "H_enc of another size": (
        lambda: mha()(rows(N, D), H_enc=rows(M, 13)),
        "H_enc has shape [11×13], but must be [... × tokens × 15]: model_dim is 15 here.",
    ),
    "H_enc of another batch": (
        lambda: mha()(rows(2, N, D), H_enc=rows(5, M, D)),
        "X and H_enc must have the same axes before the last two, one source for each target,"
        " but have shapes [2×7×15] and [5×11×15].",
    ),
    "causal cross-attention": (
        lambda: mha()(rows(N, D), causal=True, H_enc=rows(N, D)),
        "Cross-attention has no future to hide, since the source is all there: leave out "
        "causal=True, or leave out H_enc.",
    ),
    "heads that do not divide d": (
        lambda: MultiHeadAttention(7, 3),
        "model_dim = 7 cannot be shared equally among num_heads = 3: choose a number of heads"
        " that divides it, or give key_dim and value_dim.",
    ),
    "heads that do not divide d, which one size still needs": (
        lambda: MultiHeadAttention(7, 3, key_dim=5),
        "model_dim = 7 cannot be shared equally among num_heads = 3: choose a number of heads"
        " that divides it, or give key_dim and value_dim.",
    ),
    "heads that do not divide d, model": (
        lambda: TransformerLM(config(num_heads=2)),
        "model_dim = 15 cannot be shared equally among num_heads = 2: choose a number of "
        "heads that divides it, or give key_dim and value_dim.",
    ),
    "head set in PyTorch's orientation": (
        lambda: setattr(mha(key_dim=7).heads[1], "W_K", rows(7, D)),
        "W_K of one head is [15×7], rows for inputs and columns for outputs, but the matrix "
        "given is [7×15].",
    ),
    # sizes
    "no heads": (
        lambda: MultiHeadAttention(D, 0),
        "num_heads must be a whole number of 1 or more, not 0.",
    ),
    "half a head": (
        lambda: MultiHeadAttention(D, 1.5),
        "num_heads must be a whole number of 1 or more, not 1.5.",
    ),
    "key_dim of 0": (
        lambda: AttentionHead(D, 0),
        "key_dim must be a whole number of 1 or more, not 0.",
    ),
    "value_dim of 0": (
        lambda: AttentionHead(D, 5, 0),
        "value_dim must be a whole number of 1 or more, not 0.",
    ),
    "value_dim of 0 in all": (
        lambda: MultiHeadAttention(D, 3, value_dim=0),
        "value_dim must be a whole number of 1 or more, not 0.",
    ),
    "head for no columns": (
        lambda: AttentionHead(0, 5),
        "model_dim must be a whole number of 1 or more, not 0.",
    ),
    "True for a size": (
        lambda: LayerNorm(True),
        "model_dim must be a whole number of 1 or more, not True.",
    ),
    "hidden_dim of 0": (
        lambda: FeedForward(D, 0),
        "hidden_dim must be a whole number of 1 or more, not 0.",
    ),
    "layer of no size": (
        lambda: FeedForward(0, 5),
        "model_dim must be a whole number of 1 or more, not 0.",
    ),
    "unknown initialization": (
        lambda: TransformerStack(2, D, A, initialization="zeros"),
        'initialization must be "gpt2" or "xavier" or "bert", not \'zeros\'.',
    ),
    "no words": (
        lambda: TokenEmbedding(0, D),
        "vocab_size must be a whole number of 1 or more, not 0.",
    ),
    "no positions": (
        lambda: LearnedPositions(0, D),
        "context_length must be a whole number of 1 or more, not 0.",
    ),
    "positions of no size": (
        lambda: LearnedPositions(N, 0),
        "model_dim must be a whole number of 1 or more, not 0.",
    ),
    "sinusoids of no size": (
        lambda: sinusoidal_positions(N, 0),
        "model_dim must be a whole number of 1 or more, not 0.",
    ),
    "no blocks": (
        lambda: TransformerStack(0, D, A),
        "num_blocks must be a whole number of 1 or more, not 0.",
    ),
    # the block and its parts
    "eps of -1": (
        lambda: LayerNorm(D, -1.0),
        "eps is added to a variance and must be 0 or more, not -1.0.",
    ),
    "unknown activation": (
        lambda: FeedForward(D, activation="tanh"),
        'activation must be "relu" or "gelu" or "gelu_tanh" or "relu2", not \'tanh\'.',
    ),
    "rows of another type": (
        lambda: block()(rows(N, D).double()),
        "X must have the type of the weights, torch.float32, not torch.float64: write "
        ".to(torch.float32), or give the model the other type.",
    ),
    "rows of another type, stack": (
        lambda: stack()(rows(N, D).half()),
        "X must have the type of the weights, torch.float32, not torch.float16: write "
        ".to(torch.float32), or give the model the other type.",
    ),
    "rows of another size, block": (
        lambda: block()(rows(N, 13)),
        "X has shape [7×13], but must be [... × tokens × 15]: model_dim is 15 here.",
    ),
    "rows on another device": (
        lambda: block()(rows(N, D).to("meta")),
        'X must be where the weights are, on cpu, not on meta: write .to("cpu"), or move the '
        "model.",
    ),
    "weights by PyTorch's names": (
        lambda: block().load_state_dict(torch.nn.TransformerEncoderLayer(D, A).state_dict()),
        "No weight of a TransformerBlock has a name as self_attn.in_proj_weight has: here "
        "they are called attention.W_QKV and so on, and matrices have rows for inputs. "
        "Published models are loaded by from_pretrained.…",
    ),
    "unknown norm": (lambda: block(norm="middle"), 'norm must be "pre" or "post", not \'middle\'.'),
    "dropout of 1": (
        lambda: mha(dropout=1.0),
        "dropout must be the share to drop, from 0 up to but not 1, not 1.0.",
    ),
    "dropout of attention": (
        lambda: attention(rows(N, 5), rows(N, 5), rows(N, 5), dropout=1.5),
        "dropout must be the share to drop, from 0 up to but not 1, not 1.5.",
    ),
    "dropout of fused attention": (
        lambda: fused_attention(*3 * [rows(67, 5).requires_grad_()], causal=True, dropout=-0.1),
        "dropout must be the share to drop, from 0 up to but not 1, not -0.1.",
    ),
    "missing H_enc": (
        lambda: block(cross_attention=True)(rows(N, D)),
        "This block has cross-attention and needs the encoder's output: pass H_enc.",
    ),
    "unwanted H_enc": (
        lambda: block()(rows(N, D), H_enc=rows(M, D)),
        "This block has no cross-attention, so it cannot read H_enc or enc_mask: build it "
        "with cross_attention=True, or leave them out.",
    ),
    "unwanted enc_mask": (
        lambda: block()(rows(N, D), enc_mask=rows(1, M)),
        "This block has no cross-attention, so it cannot read H_enc or enc_mask: build it "
        "with cross_attention=True, or leave them out.",
    ),
    # input and models
    "id outside the vocabulary": (
        lambda: lm()(torch.tensor([[1, 2, 3], [4, 23, 5]])),
        "Token id 23 at position [1, 1] is outside the vocabulary: ids go from 0 to 22.",
    ),
    "id outside the vocabulary, one-hot": (
        lambda: one_hot_lookup(torch.tensor([0, 23]), rows(V, D)),
        "Token id 23 at position [1] is outside the vocabulary: ids go from 0 to 22.",
    ),
    "target id outside its vocabulary": (
        lambda: translator()(ids(M), torch.tensor([23])),
        "Token id 23 at position [0] is outside the vocabulary: ids go from 0 to 22.",
    ),
    "ids that are floats": (
        lambda: lm()(rows(N)),
        "Token ids must be whole numbers of type torch.int64 or torch.int32, but these are of"
        " type torch.float32.",
    ),
    "an id that is no sequence": (
        lambda: lm()(torch.tensor(3)),
        "Token ids must be a sequence [... × N], but have shape [].",
    ),
    "too long a sequence": (
        lambda: lm()(ids(2, 12)),
        "The sequence has 12 tokens, but there are positions for 11, counted from 0 (this "
        "part has 12 and begins at 0): shorten it, or make the model with a larger "
        "context_length.",
    ),
    "too far from the start": (
        lambda: LearnedPositions(M, D)(5, start=7),
        "The sequence has 12 tokens, but there are positions for 11, counted from 0 (this "
        "part has 5 and begins at 7): shorten it, or make the model with a larger "
        "context_length.",
    ),
    "positions for -3 tokens": (
        lambda: SinusoidalPositions(M, D)(-3),
        "The sequence has -3 tokens, but there are positions for 11, counted from 0 (this "
        "part has -3 and begins at 0): shorten it, or make the model with a larger "
        "context_length.",
    ),
    "sources and targets of different number": (
        lambda: translator()(ids(3, M), ids(2, N)),
        "X and H_enc must have the same axes before the last two, one source for each target,"
        " but have shapes [2×7×15] and [3×11×15].",
    ),
    "H and E of different size": (
        lambda: lm_head(rows(N, 13), rows(V, D)),
        "Rows of H [7×13] and E [23×15] must have the same size d to be compared.",
    ),
    "targets that are floats": (
        lambda: next_token_loss(rows(2, N, V), rows(2, N)),
        "Targets are the ids of words, so they must be whole numbers, not torch.float32: "
        "write targets.long() if they are ids.",
    ),
    "targets that are booleans": (
        lambda: next_token_loss(rows(N, V), torch.ones(N).bool()),
        "Targets are the ids of words, so they must be whole numbers, not torch.bool: write "
        "targets.long() if they are ids.",
    ),
    "unknown positions": (
        lambda: InputEncoding(V, M, D, positions="rotary"),
        'positions must be "learned" or "sinusoidal", not \'rotary\'.',
    ),
}
CONFIG = {
    **dict.fromkeys(("vocab_size", "context_length", "model_dim", "num_heads", "num_blocks"), 0),
    **{"key_dim": 0, "value_dim": -5, "hidden_dim": 2.5},
    **{"source_vocab_size": 0, "num_encoder_blocks": 0, "dropout": 1.5},
    **{"activation": "tanh", "norm": "middle", "positions": "rotary"},
}


@pytest.mark.parametrize("name, value", CONFIG.items())
def test_a_configuration_names_the_field_and_its_value(name, value):
    with pytest.raises(ValueError, match=rf"{name}\b.*{value}"):
        config(**{name: value})


@pytest.mark.parametrize("call, message", BAD.values(), ids=BAD)
def test_message_names_what_was_given_and_what_would_do(call, message):
    with pytest.raises(ValueError) as caught:
        call()
    assert re.match(whole(message), str(caught.value)), str(caught.value)


def test_the_advice_of_the_boolean_mask_message_works():
    """The message says how to make an additive mask of a boolean one."""
    with pytest.raises(ValueError) as caught:
        mha()(rows(N, D), LOWER)
    advice = re.search("write (.*)\\. See", str(caught.value))[1]
    made = eval(advice, {"torch": torch, "allowed": LOWER})
    assert torch.equal(made, causal_mask(N))


def test_a_bad_call_leaves_the_heads_as_they_were():
    layer = mha(key_dim=7)
    before = layer.W_K.detach().clone()
    with pytest.raises(ValueError):
        layer.heads[1].W_K = torch.ones(7, D)
    assert torch.equal(layer.W_K, before)


def test_the_first_of_several_bad_ids_is_named():
    with pytest.raises(ValueError, match=r"Token id 40 at position \[0, 2\]"):
        lm()(torch.tensor([[0, 1, 40], [50, 2, 3]]))


def test_what_is_merely_unusual_is_taken():
    """No tokens, one token, a vocabulary of one word, a head of size one."""
    model = TransformerLM(TransformerConfig(1, 1, 1, 1, 1))
    assert model(ids(1)).shape == (1, 1)
    assert lm()(ids(2, 0)).shape == (2, 0, V)
    assert padding_mask(ids(2, 0), 0).shape == (2, 1, 0)
    assert MultiHeadAttention(7, 3, 5, 2)(rows(2, 1, 7), causal=True).shape == (2, 1, 7)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: config(d_model=7),
            "TransformerConfig has no setting d_model: here that is model_dim. See…",
        ),
        (
            lambda: config(n_heads=3),
            "TransformerConfig has no setting n_heads: here that is num_heads. See…",
        ),
        (
            lambda: config(num_layers=2),
            "TransformerConfig has no setting num_layers: here that is num_blocks. See…",
        ),
        (
            lambda: config(rope_theta=9.0),
            "TransformerConfig has no setting rope_theta: here that is rope_base, of "
            "TransformerConfig or of modern.ModernConfig. See…",
        ),
        (
            lambda: ModernConfig(V, head_dim=7),
            "ModernConfig has no setting head_dim: here that is key_dim and value_dim. See…",
        ),
        (
            lambda: TrainConfig(lr=1.0),
            "TrainConfig has no setting lr: here that is learning_rate.",
        ),
        (lambda: config(stray=1), "…unexpected keyword argument 'stray'"),  # in Python's words
        (lambda: block(n_heads=3), "…unexpected keyword argument 'n_heads'"),
    ],
)
def test_what_other_libraries_call_a_setting_is_answered_with_ours(make, sentence):
    with pytest.raises(TypeError, match=whole(sentence)):
        make()


@pytest.mark.parametrize("name", ["attention_mask", "attn_mask", "is_causal", "output_attentions"])
@pytest.mark.parametrize("make", [block, stack, lm, lambda: MultiHeadAttention(D, A)])
def test_what_other_libraries_call_an_argument_is_refused_by_its_name(make, name):
    """None is swallowed: each forward names all that it takes."""
    X = ids(2, N) if make is lm else rows(2, N, D)
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
        make()(X, **{name: LOWER})


def test_ids_on_another_device_are_refused_with_the_name_of_the_right_one(monkeypatch):
    """As on a GPU; PyTorch's device without memory would take them."""

    def refuse(*_):
        raise RuntimeError("Expected all tensors to be on the same device")

    monkeypatch.setattr(torch.nn.functional, "embedding", refuse)
    with pytest.raises(ValueError, match=r'Token ids .* on cpu, not on meta: write .to\("cpu"\)'):
        lm()(ids(N).to("meta"))
    with pytest.raises(RuntimeError, match="Expected all tensors"):  # another reason
        lm()(ids(N))


def test_rows_of_other_types_are_taken_under_autocast(monkeypatch):
    """There other errors stay what they are, and everywhere a lack of memory does."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert block()(rows(N, D), causal=True).shape == (N, D)
        assert block()(rows(N, D).bfloat16()).shape == (N, D)
    layer, error = block(), RuntimeError("something else")

    def fail(*_, **__):
        raise error

    layer.attention = torch.nn.Identity()
    monkeypatch.setattr(layer.attention, "forward", fail)
    with torch.autocast("cpu", dtype=torch.bfloat16), pytest.raises(RuntimeError, match="else"):
        layer(rows(N, D).bfloat16())
    layer.norm_1, error = torch.nn.Identity(), torch.OutOfMemoryError("no memory")
    with pytest.raises(torch.OutOfMemoryError):
        layer(rows(N, D).double())


def test_masks_that_hide_first_tokens_for_other_reasons_are_taken():
    """Rows of padding alone, one text after another, padding on the right, positions given."""
    model, pads = lm(), torch.tensor([[0, 0, 0], [1, 2, 0]])
    assert model(pads, padding_mask(pads, 0)).shape == (2, 3, V)
    text = torch.tensor([0, 0, 1, 1, 1])
    apart = torch.zeros(5, 5).masked_fill(text[:, None] != text, -torch.inf)
    assert model(ids(5), apart).shape == (5, V)
    left = padding_mask(torch.tensor([0, 1, 2]), 0)
    assert model(ids(3), left, position_ids=torch.arange(3)).shape == (3, V)
    rotary = ModernLM(ModernConfig(V, M, D + 1, 2, num_blocks=1))
    assert rotary(ids(3), left).shape == (3, V)  # distances are those of the words


def test_a_mask_of_ones_and_other_numbers_is_a_bias():
    """Only ones and zeros alone look like "keep" and "hide"."""
    X = torch.randn(N, D)
    bias = torch.zeros(N, N)
    bias[0, 1], bias[2, 3] = 1, 0.5
    heads = mha()
    assert not torch.equal(heads(X, bias), heads(X))


@pytest.mark.parametrize("make", [block, mha])
def test_rows_given_by_keyword_are_refused_alike(make):
    with pytest.raises(ValueError, match=f"X has shape .*{D - 1}"):
        make()(X=rows(N, D - 1))
