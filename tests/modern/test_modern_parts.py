"""The steps from the book's block to today's: each by hand, by its property, against a library."""

import json
import math
from functools import partial

import pytest
import torch
from comparing import D_K, B, D, M, N, assert_same, assert_same_gradients, normal, randomized
from torch import nn
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

from slp_transformer import (
    FeedForward,
    KVCache,
    MultiHeadAttention,
    TransformerConfig,
    TransformerLM,
    TransformerStack,
)
from slp_transformer.modern import (
    GroupedQueryAttention,
    ModernConfig,
    ModernLM,
    RMSNorm,
    RopeScaling,
    RotaryPositions,
)
from slp_transformer.modern.bert import Bert, BertConfig
from slp_transformer.modern.language_model import make_stack
from slp_transformer.modern.rotary import rotation_angles

HEADS, GROUPS, EVEN = 6, 3, 10  # heads, those with keys of their own, and an even d_k


def test_rms_norm_is_pytorchs():
    X, ours = normal(B, N, D), randomized(RMSNorm(D, eps=0.3))
    theirs = nn.RMSNorm(D, eps=0.3).double()
    theirs.weight = ours.gamma
    assert_same_gradients(ours(X), theirs(X), [X, ours.gamma])


def test_rms_norm_adds_a_millionth_unless_told_otherwise():
    X = 1e-3 * normal(N, D)  # so small that eps counts
    assert_same(RMSNorm(D).double()(X), nn.RMSNorm(D, eps=1e-6).double()(X))


@pytest.mark.filterwarnings("error")
def test_rows_of_bfloat16_and_a_gain_of_float32_are_normalized_in_float32():
    """As under autocast, where PyTorch would warn that no fused kernel takes both."""
    norm = randomized(RMSNorm(D)).float()
    X = normal(B, N, D).detach().bfloat16()
    assert torch.equal(norm(X), norm(X.float()).bfloat16())


def test_bert_begins_as_in_its_paper():
    """Its segments' rows have a deviation of 0.02, and dropout comes after the norm alone."""
    bert = Bert(BertConfig(29, 11, 600, 3, 1, num_segments=7, dropout=0.5))
    assert bert.S.std().item() == pytest.approx(0.02, rel=0.1)
    ids = torch.arange(11)
    assert_same(bert.train().embedding(ids), bert.eval().embedding(ids))


@pytest.mark.equations("rope")
def test_rotations_by_hand():
    """The rotations equal those worked out by hand.

    Of d_k = 4 and base 100, the first pair turns by 1 a position, the second by 1/10.
    """
    angles = rotation_angles(torch.tensor([0.0, 1.0, 2.0], dtype=torch.float64), 4, base=100.0)
    assert_same(angles, torch.tensor([[0, 0], [1, 0.1], [2, 0.2]], dtype=torch.float64))
    X = torch.tensor([[1.0, 0.0, 0.0, 1.0]], dtype=torch.float64)  # pairs (1, 0) and (0, 1)
    turned = RotaryPositions(4, base=100.0)(X, start=3)
    by_hand = [math.cos(3), -math.sin(0.3), math.sin(3), math.cos(0.3)]
    assert_same(turned, torch.tensor([by_hand], dtype=torch.float64))


@pytest.mark.parametrize(
    ("make", "wrong", "said"),
    [
        (
            ModernConfig,
            {"rope_base": 5e5},
            'rope_base belongs to positions = "rotary", not to "learned"',
        ),
        (ModernConfig, {"unrotated_blocks": (0,)}, "unrotated_blocks belongs to positions"),
        (BertConfig, {"rotary_share": 0.5}, "rotary_share belongs to positions"),
        (BertConfig, {"tied": False}, "tied must be True: BERT's head has the rows of E"),
    ],
)
def test_a_setting_that_no_part_reads_is_refused(make, wrong, said):
    with pytest.raises(ValueError, match=said):
        make(31, 19, model_dim=12, num_heads=3, num_blocks=2, positions="learned", **wrong)


@pytest.mark.equations("rope")
@pytest.mark.parametrize("long", [None, RopeScaling("llama3", 8.0, 13)])
def test_a_score_depends_on_the_distance_alone(long):
    """A score of rotated queries and keys depends on their distance alone.

    Wherever the two stand; and it does depend on that.
    """
    q, k = normal(1, EVEN).detach(), normal(1, EVEN, seed=1).detach()
    rotary = RotaryPositions(EVEN, base=50.0, scaling=long)

    def score(i, j):
        return (rotary(q, i) @ rotary(k, j).T).item()

    for i, j in ((0, 0), (5, 2), (2, 5), (11, 0)):
        for moved in (1, 7, 100):
            assert score(i + moved, j + moved) == pytest.approx(score(i, j), abs=1e-11)
    assert abs(score(5, 2) - score(5, 3)) > 1e-3 and abs(score(5, 2) - score(2, 5)) > 1e-3


SCALED = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0}
SCALED |= {"high_freq_factor": 4.0, "original_max_position_embeddings": 101}
PLAIN = {"rope_type": "default", "rope_theta": 500.0}


@pytest.mark.parametrize(
    ("rope", "long"), [(PLAIN, None), (SCALED, RopeScaling("llama3", 8.0, 101))]
)
def test_rotations_are_those_of_hugging_face(rope, long):
    sizes = {"hidden_size": 12, "num_attention_heads": 3, "head_dim": 26}
    theirs = LlamaRotaryEmbedding(LlamaConfig(**sizes, rope_parameters=rope))
    Q, K = torch.randn(B, HEADS, N, 26), torch.randn(B, GROUPS, N, 26)
    cos, sin = theirs(Q, torch.arange(M, M + N)[None])
    ours = RotaryPositions(26, 500.0, long)
    for mine, yours in zip((ours(Q, M), ours(K, M)), apply_rotary_pos_emb(Q, K, cos, sin),
                           strict=True):  # fmt: skip
        torch.testing.assert_close(mine, yours)


def test_what_is_kept_of_the_angles_serves_any_length_type_and_mode():
    """A table made in inference mode would spoil training afterwards."""
    rotary, X = RotaryPositions(EVEN), torch.randn(1, EVEN)
    with torch.inference_mode():
        rotary(X, 3)
    Y = X.clone().requires_grad_()
    rotary(Y, 3).sum().backward()
    assert Y.grad is not None
    exact = RotaryPositions(EVEN)(X.double(), 40)
    assert_same(rotary(X.double(), 40), exact)
    torch.testing.assert_close(rotary(X, 40).double(), exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("make", "wrong", "said"),
    [
        *((RMSNorm, options, "model_dim|eps") for options in ((0,), (5, -1.0))),
        *((RotaryPositions, options, "even|base") for options in ((5,), (4, 1.0))),
        (RotaryPositions, (0,), "key_dim"),
        (BertConfig, (29, 11, 0, 3, 1), "model_dim"),
        (partial(BertConfig, num_segments=0), (29, 11, 6, 3, 1), "num_segments"),
        *((RopeScaling, options, "factor") for options in (("llama3", 0.0, 8), ("linear", -1.0))),
        (RopeScaling, ("llama3", 8.0, 8, 4.0), "factor"),
        (RopeScaling, ("llama3", 8.0, 0), "original_context_length"),
        (RopeScaling, ("longrope", 2.0), "rope_type"),
        *((GroupedQueryAttention, (12, 6, groups), "num_kv_heads") for groups in (4, 7, 0)),
        (partial(ModernConfig, activation="silu"), (23,), "activation"),
        (partial(ModernConfig, positions="alibi"), (23,), "positions"),
        (partial(ModernConfig, normalization="batch"), (23,), "normalization"),
        (partial(ModernConfig, key_dim=5), (23,), "key_dim"),
        (partial(ModernConfig, num_kv_heads=3), (23,), "num_kv_heads"),
    ],
)
def test_parts_of_sizes_that_do_not_fit_are_refused(make, wrong, said, unchecked):
    with pytest.raises(ValueError, match=said):
        make(*wrong)


@pytest.mark.parametrize("groups", [1, 2, 3, 6])
def test_shared_keys_are_repeated_ones(groups):
    """The book's attention, with each W_K and W_V once for every head of the group."""
    ours = randomized(GroupedQueryAttention(D, HEADS, groups, D_K, 7))
    book = MultiHeadAttention(D, HEADS, D_K, 7).double()
    for c, head in enumerate(ours.heads):
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            setattr(book.heads[c], name, getattr(head, name))
    g = (HEADS - 1) * groups // HEADS
    assert_same(ours.heads[-1].W_K, ours.W_K[:, g * D_K : (g + 1) * D_K])
    X = normal(B, N, D)
    assert_same_gradients(ours(X, causal=True), book(X, causal=True), [X])
    whole, alpha = ours(X, causal=True, return_weights=True)
    assert_same(whole, ours(X, causal=True))
    assert alpha.shape == (B, HEADS, N, N)


def test_the_cache_holds_the_shared_keys_once():
    cache, ours = KVCache(N), GroupedQueryAttention(D, HEADS, GROUPS, EVEN, 7)
    with torch.no_grad():
        ours(torch.randn(B, N, D), causal=True, cache=cache[0].self_attention)
    assert cache[0].self_attention.K.shape == (B, GROUPS, N, EVEN)


def test_a_block_that_reads_an_encoder_is_the_books_with_the_books_choices():
    choices = {"activation": "relu", "positions": "learned", "normalization": "layer", "eps": 1e-5}
    config = ModernConfig(**SMALL, **choices, ffn_bias=True)
    book = randomized(TransformerStack(2, 18, 6, cross_attention=True))
    ours = make_stack(config, cross_attention=True).double()
    ours.load_state_dict(book.state_dict())
    X, H_enc = normal(B, N, 18), normal(B, M, 18, seed=1)
    hidden = torch.zeros(B, 1, M, dtype=torch.float64).index_fill(
        -1, torch.tensor([0, 2]), -torch.inf
    )
    reads = {"H_enc": H_enc, "enc_mask": hidden}
    expected = book(X, causal=True, **reads)
    assert_same_gradients(ours(X, causal=True, **reads), expected, [X, H_enc])


@pytest.mark.parametrize("options", [{}, {"attention_bias": True, "qk_norm": True, "norm": "post"}])
def test_what_a_rotary_decoder_reads_of_an_encoder_is_kept(options):
    config = ModernConfig(**SMALL, num_kv_heads=3, key_dim=4, value_dim=7, **options)
    stack = randomized(make_stack(config, cross_attention=True)).eval()
    X, H_enc, cache = normal(B, N, 18).detach(), normal(B, M, 18, seed=1).detach(), KVCache()
    with torch.no_grad():
        reads = {"causal": True, "H_enc": H_enc}
        whole = stack(X, **reads)
        parts = [stack(part, cache=cache, **reads) for part in (X[:, :2], X[:, 2:3], X[:, 3:])]
        assert_same(torch.cat(parts, dim=1), whole)
        assert not torch.allclose(stack(X, causal=True, H_enc=2 * H_enc + 1), whole)
    across = stack.blocks[0].cross_attention
    Q, K, V = across.project(X, H_enc=H_enc)
    if across.norm_K is None:
        assert_same(K.transpose(1, 2).flatten(-2), H_enc @ across.W_K)
    assert K.shape == (B, 3, M, 4) and V.shape == (B, 3, M, 7) and Q.shape == (B, 6, N, 4)


def test_rotations_are_for_one_sequence():
    turning = GroupedQueryAttention(
        D, HEADS, key_dim=EVEN, value_dim=7, rotary=RotaryPositions(EVEN)
    )
    with pytest.raises(ValueError, match="without rotary"):
        turning(torch.randn(N, D), H_enc=torch.randn(M, D))
    plain = GroupedQueryAttention(D, HEADS, key_dim=EVEN, value_dim=7)
    with pytest.raises(ValueError, match="position_ids.*has none"):
        plain(torch.randn(N, D), position_ids=torch.arange(N))


@pytest.mark.parametrize("scaling", [None, RopeScaling("llama3", 8.0, 13)])
def test_two_texts_side_by_side_are_read_as_if_each_were_alone(scaling):
    torch.manual_seed(0)
    model = ModernLM(ModernConfig(**SMALL, num_kv_heads=3, key_dim=4, rope_scaling=scaling)).eval()
    first, second = torch.randint(23, (5,)), torch.randint(23, (7,))
    text = torch.arange(2).repeat_interleave(torch.tensor([5, 7]))
    others = torch.zeros(12, 12).masked_fill(text[:, None] != text, -torch.inf)
    positions = torch.cat([torch.arange(5), torch.arange(7)])
    U = model(torch.cat([first, second]), others, position_ids=positions)
    assert_same(U, torch.cat([model(first), model(second)]))
    rows = torch.stack([positions, positions + 3])  # all further on, which changes no distance
    both = torch.cat([first, second]).expand(2, -1)
    assert_same(model(both, others, position_ids=rows), U.expand(2, -1, -1))
    stretched = model(both, others, position_ids=3 * rows)
    assert not torch.allclose(stretched[0, -1], U[-1])
    cache = KVCache()
    with torch.no_grad():
        model(first[:4], cache=cache)
        at_4 = model(first[4:], cache=cache, position_ids=torch.tensor([4]))
    assert_same(at_4, model(first)[4:])
    with pytest.raises(ValueError, match="context_length"):  # 5 in the cache, and a window of 19
        model(torch.randint(23, (15,)), cache=cache, position_ids=torch.arange(15))


SMALL = {"vocab_size": 23, "context_length": 19, "model_dim": 18, "num_heads": 6, "num_blocks": 2}


def test_with_the_books_choices_it_is_the_books_model():
    book = randomized(TransformerLM(TransformerConfig(**SMALL)))
    choices = {"activation": "relu", "positions": "learned", "normalization": "layer", "eps": 1e-5}
    ours = ModernLM(ModernConfig(**SMALL, **choices, ffn_bias=True)).double()
    ours.load_state_dict(book.state_dict())
    ids = torch.randint(23, (B, N))
    assert_same(ours(ids), book(ids))


def test_squared_relu_by_hand():
    ffn = FeedForward(1, 3, "relu2", bias=False)
    ffn.W_1.data = torch.tensor([[1.0, -1.0, 3.0]])
    ffn.W_2.data = torch.tensor([[1.0], [10.0], [100.0]])
    assert ffn(torch.tensor([[2.0]])).item() == 2**2 + 100 * 6**2
    assert ffn(torch.tensor([[-2.0]])).item() == 10 * 2**2


RECIPE = {"activation": "relu2", "qk_norm": True, "zero_init": True, "tied": False}


@pytest.mark.parametrize("options", [{"zero_init": True}, RECIPE])
def test_blocks_whose_projections_start_at_zero_start_as_the_identity_and_learn(options):
    torch.manual_seed(0)
    model, ids = ModernLM(ModernConfig(**SMALL, key_dim=4, **options)), torch.randint(23, (B, N))
    untouched = model.stack.final_norm(model.embedding(ids)) @ model.unembedding.T
    assert torch.equal(model(ids), untouched)
    model(ids).square().sum().backward()
    for block in model.stack.blocks:
        for sublayer in block.sublayers():
            output = sublayer.matrices[-1]
            assert not output.any() and output.grad.any()
    assert ModernLM(ModernConfig(**SMALL, key_dim=4)).stack.blocks[0].attention.W_O.any()


def test_a_configuration_comes_back_from_plain_values(unchecked):
    config = ModernConfig(
        23, key_dim=8, rope_scaling=RopeScaling("llama3", 8.0, 13), end_ids=(1, 2)
    )
    assert ModernConfig(**json.loads(json.dumps(config.to_dict()))) == config


def test_angles_are_exact_in_a_small_type_however_far_the_position():
    """bfloat16 has no whole numbers beyond 256 but even ones, so angles need a larger type."""
    X = torch.randn(3, EVEN, dtype=torch.bfloat16)
    rotary = RotaryPositions(EVEN)
    for start in (0, 300, 1001):
        exact = RotaryPositions(EVEN)(X.double(), start)
        torch.testing.assert_close(rotary(X, start).double(), exact, rtol=0.02, atol=0.02)
    assert rotary(X, 5).dtype == torch.bfloat16  # and the table that was kept serves no other type
    assert torch.equal(rotary(X.float(), 5), RotaryPositions(EVEN)(X.float(), 5))
