"""Masks, the attention equation and one head."""

import math

import loops
import pytest
import torch
import torch.nn.functional as F
from comparing import D_K, D_V, A, B, D, M, N, assert_same, assert_same_gradients, normal, uniform

from slp_transformer import (
    AttentionHead,
    MultiHeadAttention,
    causal_mask,
    fused_attention,
    padding_mask,
)
from slp_transformer._internal.weight_matrices import make_weight_matrix
from slp_transformer.attention import attention
from slp_transformer.masks import add_causal_mask

INF = math.inf


def qkv(*leading: int, keys: int = M):
    return (
        normal(*leading, N, D_K, seed=1),
        normal(*leading, keys, D_K, seed=2),
        normal(*leading, keys, D_V, seed=3),
    )


def additive(allowed: torch.Tensor) -> torch.Tensor:
    return torch.zeros(allowed.shape, dtype=torch.float64).masked_fill(~allowed, -INF)


def some_allowed(*shape: int, seed: int = 4) -> torch.Tensor:
    """A random boolean mask, True where attention is allowed, with no row that sees nothing."""
    allowed = uniform(*shape, seed=seed) < 0.6
    allowed[..., 0] |= ~allowed.any(-1)
    return allowed


def attended(Q, K, V, mask):
    """The output of `attention` without the weights."""
    return attention(Q, K, V, mask)[0]


FORMS = pytest.mark.parametrize("form", [attended, fused_attention])


@pytest.mark.equations("mask")
def test_mask_by_hand():
    """The causal mask equals one written out by hand."""
    assert causal_mask(0).shape == (0, 0)
    assert causal_mask(3).tolist() == [[0.0, -INF, -INF], [0.0, 0.0, -INF], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_masks_take_a_type(dtype):
    assert causal_mask(3, dtype=dtype).dtype == dtype
    ids = torch.tensor([[1, 0]])
    assert padding_mask(ids, 0, dtype=dtype).dtype == dtype


def test_padding_mask_by_hand():
    ids = torch.tensor([[4, 2, 9], [3, 9, 9]])
    assert padding_mask(ids, 9).tolist() == [[[0.0, 0.0, -INF]], [[0.0, -INF, -INF]]]
    assert padding_mask(ids[0], 9).tolist() == [[0.0, 0.0, -INF]]


@pytest.mark.equations("simple-sum", "simple-score", "simple-softmax")
def test_simple_sum_is_attention_with_q_k_and_v_all_x():
    """Simple attention is attention with Q = K = V = X and unscaled scores.

    Multiplying Q by √d undoes the division by √d_k.
    """
    X = normal(N, D)
    rows = []
    for i in range(N):
        weights = loops.softmax([X[i] @ X[j] for j in range(i + 1)])
        rows.append(sum(alpha * X[j] for j, alpha in enumerate(weights)))
    A_, _ = attention(X * math.sqrt(D), X, X, causal_mask(N))
    assert_same_gradients(A_, torch.stack(rows), [X])


@pytest.mark.equations("scaled-score")
def test_scaled_score_by_hand():
    """Scores are divided by the root of a key's size: weights worked out by hand.

    d_k = 4 and q·k = 0 or 2 give scores of 0 and 1, so the weights are [1, e] / (1 + e).
    """
    Q = torch.tensor([[1.0, 1.0, 0.0, 0.0]])
    K = torch.tensor([[0.0, 0.0, 5.0, 7.0], [2.0, 0.0, 3.0, 0.0]])
    V = torch.tensor([[1.0, 0.0, 10.0], [0.0, 1.0, 20.0]])
    head, alpha = attention(Q, K, V)
    expected = torch.tensor([[1.0, math.e]]) / (1 + math.e)
    torch.testing.assert_close(alpha, expected)
    torch.testing.assert_close(head, expected @ V)
    torch.testing.assert_close(fused_attention(Q, K, V), expected @ V)


@pytest.mark.equations("score-unscaled")
def test_scores_without_the_division_are_those_of_queries_times_its_root():
    """Scores of 0 and ln 3, which are not divided, give the weights 1/4 and 3/4."""
    q, K = torch.tensor([[math.log(3), 5.0, 0.0]]), torch.tensor([[0.0, 0.0, 7.0], [1.0, 0.0, 2.0]])
    _, alpha = attention(q * math.sqrt(3), K, K)
    weights = loops.softmax([q[0] @ k_j for k_j in K])
    assert [float(weight) for weight in weights] == pytest.approx([1 / 4, 3 / 4])
    torch.testing.assert_close(alpha, torch.tensor([[1 / 4, 3 / 4]]))


@pytest.mark.equations("alpha")
def test_alpha_by_hand_with_a_mask():
    """Equal scores share the weight equally among the visible tokens: 1, a half, a third each."""
    Q = K = torch.ones(3, 2)
    V = torch.tensor([[6.0], [12.0], [30.0]])
    head, alpha = attention(Q, K, V, causal_mask(3))
    expected = [[1.0, 0.0, 0.0], [1 / 2, 1 / 2, 0.0], [1 / 3, 1 / 3, 1 / 3]]
    torch.testing.assert_close(alpha, torch.tensor(expected))
    torch.testing.assert_close(head, torch.tensor([[6.0], [9.0], [16.0]]))
    assert (alpha.triu(1) == 0).all()


@pytest.mark.equations("head-par", "head", "QK^T")
def test_head_par_equals_loop():
    """A head in matrix form equals the loop over tokens."""
    Q, K, V = qkv(keys=N)
    heads, alphas = loops.attend(list(Q), list(K), list(V), loops.causal)
    values, alpha = attention(Q, K, V, causal_mask(N))
    assert_same_gradients(values, heads, [Q, K, V])
    assert_same(alpha, alphas)
    assert_same_gradients(fused_attention(Q, K, V, causal=True), heads, [Q, K, V])
    assert_same_gradients(fused_attention(Q, K, V, causal_mask(N)), heads, [Q, K, V])


@pytest.mark.equations("bidirectional", "causal")
def test_bidirectional_equals_loop():
    """Bidirectional and causal attention equal their loops.

    Without a mask, and with another number of keys than of queries.
    """
    Q, K, V = qkv()
    heads, alphas = loops.attend(list(Q), list(K), list(V), loops.everything)
    values, alpha = attention(Q, K, V)
    assert_same_gradients(values, heads, [Q, K, V])
    assert_same(alpha, alphas)
    assert_same_gradients(fused_attention(Q, K, V), heads, [Q, K, V])


@pytest.mark.equations("head-par")
@FORMS
@pytest.mark.parametrize("leading", [(), (B,), (B, A)])
def test_head_par_equals_pytorch(form, leading):
    """A head equals PyTorch's scaled_dot_product_attention.

    Under both of PyTorch's conventions: additive, and boolean with True where allowed.
    """
    Q, K, V = qkv(*leading)
    allowed = some_allowed(*leading, N, M)
    values = form(Q, K, V, additive(allowed))
    for theirs in (allowed, additive(allowed)):
        expected = F.scaled_dot_product_attention(Q, K, V, attn_mask=theirs)
        assert_same_gradients(values, expected, [Q, K, V])


@pytest.mark.parametrize(
    "shape", [(N, M), (1, M), (N, 1), (1, 1), (B, 1, M), (B, 1, 1, M), (A, N, M), (1, A, 1, M)]
)
def test_masks_broadcast_alike_in_both_forms(shape):
    """A mask [N×1] of zeros and minus infinity blinds whole queries: their rows are zeros."""
    Q, K, V = (t.detach() for t in qkv(B, A))
    if len(shape) == 3 and shape[0] == B:
        Q, K, V = Q[:, 0], K[:, 0], V[:, 0]
    allowed = uniform(*shape, seed=5) < 0.6
    mask = additive(allowed)
    values, alpha = attention(Q, K, V, mask)
    assert_same(fused_attention(Q, K, V, mask), values)
    assert ((alpha > 0) == allowed.broadcast_to(alpha.shape)).all()


def test_mask_of_another_precision_is_taken_as_it_is():
    Q, K, V = qkv(keys=N)
    mask = causal_mask(N, dtype=torch.bfloat16)
    assert_same(attention(Q, K, V, mask)[0], fused_attention(Q, K, V, causal=True))
    assert_same(fused_attention(Q, K, V, mask), fused_attention(Q, K, V, causal=True))


@pytest.mark.usefixtures("memory")  # the stand-in's tensors are a subclass, which gets one mask
@pytest.mark.parametrize("past", [0, 37])
def test_padding_and_a_long_window_need_no_square_mask(kernel, past):
    torch.manual_seed(0)
    N, M = 1409, 1409 + past
    Q, K, X = torch.randn(1, 2, N, 4), torch.randn(1, 2, M, 4), torch.randn(1, 2, M, 3)
    mask = torch.zeros(1, 1, 1, M).index_fill(-1, torch.arange(17), -torch.inf)
    values = fused_attention(Q, K, X, mask, causal=True)
    assert max(call["attn_mask"].numel() for call in kernel) <= 1024 * M
    expected = attention(Q, K, X, add_causal_mask(mask, Q, K))[0]
    torch.testing.assert_close(values, expected)


@FORMS
def test_a_query_that_sees_nothing_gathers_zeros_and_sends_no_gradient(form):
    Q, K, V = qkv(B)
    allowed = some_allowed(B, N, M)
    blind = (1, 3)
    allowed[blind] = False
    values = form(Q, K, V, additive(allowed))
    assert (values[blind] == 0).all()
    seeing = torch.ones(B, N, dtype=torch.bool)
    seeing[blind] = False
    open_mask = additive(allowed | ~seeing.unsqueeze(-1))
    expected = F.scaled_dot_product_attention(Q, K, V, attn_mask=open_mask)
    expected = expected * seeing.unsqueeze(-1)
    assert_same_gradients(values, expected, [Q, K, V])
    (gradient,) = torch.autograd.grad(values.sum(), [Q], retain_graph=True)
    assert (gradient[blind] == 0).all()


def test_fused_never_shows_the_kernel_a_row_of_nothing_but_minus_infinity(kernel):
    """Some kernels give NaN for such a row, if not the one that runs here."""
    padding = padding_mask(torch.tensor([0, 0] + [5] * (N - 2)), 0)
    fused_attention(*qkv(B, keys=N), padding, causal=True)
    (call,) = kernel
    assert not (call["attn_mask"] == -INF).all(-1).any()


def test_dropout_takes_no_kernel_on_a_cpu(kernel):
    """PyTorch has none that drops weights there."""
    mha, X = MultiHeadAttention(D, A, D_K, D_V, dropout=0.5).cpu(), normal(N, D).float().cpu()
    mha(X)
    assert kernel == []
    mha.eval()(X)
    assert len(kernel) == 1


def head_parts(head: AttentionHead, X: torch.Tensor) -> list[torch.Tensor]:
    return [X, head.W_Q, head.W_K, head.W_V, head.W_O]


def one_head() -> AttentionHead:
    torch.manual_seed(0)
    return AttentionHead(D, D_K, D_V).double()


@pytest.mark.equations("qkv", "qkv-final", "head", "head-out", "A-out")
@pytest.mark.parametrize("visible", [loops.causal, loops.everything])
def test_A_out_equals_loop(visible):
    """One head with its output matrix equals the loop that follows one token at a time."""
    head, X = one_head(), normal(N, D)
    heads, alphas = loops.one_head(X, head.W_Q, head.W_K, head.W_V, visible)
    expected = torch.stack([head_i @ head.W_O for head_i in heads])
    mask = causal_mask(N) if visible is loops.causal else None
    output, alpha = head(X, mask)
    assert_same_gradients(output, expected, head_parts(head, X))
    assert_same(alpha, alphas)


@pytest.mark.equations("QKV")
def test_QKV_shapes_and_no_bias():
    """The matrices of queries, keys and values have the book's shapes, and no bias."""
    shapes = {name: tuple(W.shape) for name, W in one_head().named_parameters()}
    assert shapes == {"W_Q": (D, D_K), "W_K": (D, D_K), "W_V": (D, D_V), "W_O": (D_V, D)}


def test_value_dim_is_key_dim_unless_given():
    assert AttentionHead(D, D_K).W_V.shape == (D, D_K)


def test_matrix_keeps_the_variance_of_a_row():
    """Rows of unit variance times a fresh [d×m] matrix have unit variance again."""
    torch.manual_seed(0)
    W = make_weight_matrix(401, 307)
    assert W.shape == (401, 307)
    assert (torch.randn(1009, 401) @ W).var().item() == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize("slope", [0.3, -0.3])
@pytest.mark.parametrize("past", [0, 4])
def test_a_finite_bias_is_added_to_the_causal_mask(past, slope):
    """Press et al. 2022 (ALiBi): the bias follows the distance, and the future stays hidden."""
    Q, K, V = normal(N, D_K, seed=1), normal(N + past, D_K, seed=2), normal(N + past, D_V, seed=3)
    places = torch.arange(N + past, dtype=torch.float64)
    bias = slope * (places - places[past:, None])
    scores = Q @ K.T / math.sqrt(D_K) + bias
    for i in range(N):
        scores[i, past + i + 1 :] = -INF
    expected = scores.softmax(-1) @ V
    assert_same(fused_attention(Q, K, V, bias, causal=True), expected)
    assert_same(attention(Q, K, V, add_causal_mask(bias, Q, K))[0], expected)
