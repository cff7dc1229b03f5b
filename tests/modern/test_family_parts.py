"""Parts of published families, by hand and by properties: windows, YaRN, other norms."""

import math

import pytest
import torch

from slp_transformer import KVCache
from slp_transformer.masks import causal_mask
from slp_transformer.modern import (
    ModernBlock,
    ModernConfig,
    ModernLM,
    RopeScaling,
    RotaryPositions,
)
from slp_transformer.modern.attention import GroupedQueryAttention, add_window_mask

D, A, N, V, W = 12, 3, 11, 23, 4
SIZES = {"model_dim": D, "num_heads": A, "num_blocks": 3}


def layer(**changes):
    torch.manual_seed(5)
    return GroupedQueryAttention(D, A, rotary=RotaryPositions(4), **changes).double()


def model(**changes):
    torch.manual_seed(5)
    lm = ModernLM(ModernConfig(V, N, **SIZES | changes)).double().eval()
    return lm.requires_grad_(False)


def test_the_mask_hides_what_is_a_window_or_more_before():
    Q, K = torch.zeros(1, 2, 8), torch.zeros(1, 5, 8)
    hidden = add_window_mask(None, Q, K, 3)
    assert hidden.tolist() == [[-math.inf, 0, 0, 0, 0], [-math.inf, -math.inf, 0, 0, 0]]
    assert add_window_mask(None, Q, K, 5) is None
    both = add_window_mask(torch.full((1, 5), 2.0), Q, K, 3)
    assert both.tolist()[1] == [-math.inf, -math.inf, 2, 2, 2]


def test_a_window_is_a_mask_and_a_window_of_one_sees_itself_alone():
    X = torch.randn(2, N, D, dtype=torch.float64)
    far = torch.ones(N, N, dtype=torch.bool).tril(-W)
    mask = causal_mask(N, dtype=torch.float64).masked_fill(far, -math.inf)
    expected = layer()(X, mask)
    torch.testing.assert_close(layer(window=W)(X, causal=True), expected)
    torch.testing.assert_close(layer(window=W)(X, torch.zeros(1, N), causal=True), expected)
    torch.testing.assert_close(layer(window=N)(X, causal=True), layer()(X, causal=True))
    alone = layer(window=1)
    torch.testing.assert_close(alone(X, causal=True), X @ alone.W_V @ alone.W_O)


@pytest.mark.parametrize("pieces", [[1] * N, [3, 1, 1, 5, 1], [7, 4]])
def test_with_a_cache_each_token_sees_the_same_window(pieces):
    lm, ids, cache = model(window=W, windowed_blocks=(0, 2)), torch.randint(V, (2, N)), KVCache()
    found = [lm(part, cache=cache) for part in ids.split(pieces, dim=1)]
    torch.testing.assert_close(torch.cat(found, dim=1), lm(ids))


def test_three_blocks_of_windows_see_no_farther_than_three_windows():
    lm, ids = model(window=3), torch.arange(N) % V
    other = ids.clone()
    other[0] += 1
    differs = ((lm(ids) - lm(other)).abs() > 1e-12).any(dim=-1)
    assert differs.tolist() == [True] * 7 + [False] * 4  # 1 + 3 · (3 − 1) tokens
    differs = ((model(window=3, windowed_blocks=(0,))(ids) - lm(ids)).abs() > 1e-12).any(dim=-1)
    assert differs.tolist() == [False] * 3 + [True] * 8


def test_a_block_without_rotations_does_not_see_the_order():
    lm = model(unrotated_blocks=(0,), num_blocks=1)
    ids = torch.tensor([1, 2, 3, 4, 5])
    swapped = ids[[1, 0, 2, 3, 4]]
    torch.testing.assert_close(lm(ids)[-1], lm(swapped)[-1])
    rotated = model(num_blocks=1)
    assert not torch.allclose(rotated(ids)[-1], rotated(swapped)[-1])
    positions = torch.arange(5) * 2
    assert lm(ids, position_ids=positions).isfinite().all()


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"window": 0}, "window must be a whole number of 1 or more, not 0"),
        ({"window": 2, "windowed_blocks": (3,)}, "windowed_blocks has block 3, but there are 3"),
        ({"unrotated_blocks": (-1,)}, "unrotated_blocks has block -1"),
    ],
)
def test_windows_and_blocks_that_there_cannot_be_are_refused(settings, why):
    with pytest.raises(ValueError, match=why):
        ModernConfig(V, N, **SIZES, **settings)


def test_yarn_keeps_fast_pairs_slows_slow_ones_and_lets_scores_grow():
    scaling = RopeScaling("yarn", 4.0, original_context_length=1000)
    plain, long = RotaryPositions(64), RotaryPositions(64, scaling=scaling)
    X, at = torch.ones(1, 64, dtype=torch.float64), torch.tensor([1])
    cos = [rotate._cos_sin(at, X)[0][0, :32] for rotate in (plain, long)]
    grown = 0.1 * math.log(4) + 1
    angles = [
        torch.acos((table / scale).clamp(-1, 1))
        for table, scale in zip(cos, (1, grown), strict=True)
    ]
    # Pair i turns 1000 θ_i / 2π times in 1000 tokens: more than 32 times up to pair 5, less than
    # once from pair 18 on (θ_i = 10000^(−i/32)).
    torch.testing.assert_close(angles[1][:6], angles[0][:6])
    torch.testing.assert_close(angles[1][18:], angles[0][18:] / 4, rtol=1e-4, atol=1e-7)
    between = angles[0][6:18] / angles[1][6:18]
    assert (between.diff() > 0).all() and 1 <= between[0] < between[-1] <= 4.001
    with pytest.raises(ValueError, match="beta_slow"):
        RopeScaling("yarn", 4.0, 1000, beta_slow=64.0)


def test_a_share_of_the_columns_is_rotated_and_the_others_stay():
    X = torch.randn(2, 5, 8, dtype=torch.float64)
    Y = RotaryPositions(4)(X, 3)
    torch.testing.assert_close(Y[..., :4], RotaryPositions(4)(X[..., :4], 3))
    assert torch.equal(Y[..., 4:], X[..., 4:])
    lm = model(rotary_share=0.5)
    assert lm.stack.blocks[0].attention.rotary.key_dim == 2
    with pytest.raises(ValueError, match="rotary_share must be even: not 1"):
        model(rotary_share=0.25)
    with pytest.raises(ValueError, match="rotary_share must be a share above 0"):
        model(rotary_share=0.0)


def test_norms_of_outputs_and_parallel_sublayers_by_hand():
    X = torch.randn(2, 5, D, dtype=torch.float64)
    block = model(norm="output").stack.blocks[0]
    T3 = X + block.norm_1(block.attention(X, causal=True))
    torch.testing.assert_close(block(X, causal=True), T3 + block.norm_2(block.ffn(T3)))
    block = model(norm="parallel").stack.blocks[0]
    read = block.attention(block.norm_1(X), causal=True), block.ffn(block.norm_2(X))
    torch.testing.assert_close(block(X, causal=True), X + read[0] + read[1])
    crossed = ModernBlock(ModernConfig(V, N, **SIZES, norm="output"), cross_attention=True)
    with pytest.raises(ValueError, match='"pre" or "post", not "output"'):
        crossed(X.float(), H_enc=X.float())


def test_a_joint_norm_is_of_all_heads_rows_at_once():
    attention = layer(qk_norm_eps=1e-6, qk_norm_joint=True, num_kv_heads=1)
    assert (attention.norm_Q.model_dim, attention.norm_K.model_dim) == (D, 4)
    X = torch.randn(5, D, dtype=torch.float64)
    Q = attention.norm_Q(X @ attention.W_Q).unflatten(-1, (A, -1)).transpose(-3, -2)
    torch.testing.assert_close(attention.project(X)[0], attention.rotary(Q, 0))
    with pytest.raises(ValueError, match="qk_norm_joint is about qk_norm"):
        ModernConfig(V, qk_norm_joint=True)
