"""Causal attention in blocks says what `attention` says, and so does its gradient."""

import pytest
import torch

from slp_transformer import MultiHeadAttention, blockwise, dropping, fused_attention
from slp_transformer.attention import attention, causal_mask
from slp_transformer.blockwise import BLOCK, causal_in_blocks


def inputs(N: int, dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    """Q, K and V of 2 sequences and 3 heads, d_k = 5 and d_v = 7."""
    generator = torch.Generator().manual_seed(N)
    return [
        torch.randn(2, 3, N, d, generator=generator, dtype=dtype, requires_grad=True)
        for d in (5, 5, 7)
    ]


@pytest.mark.parametrize("N", [1, BLOCK - 1, BLOCK, BLOCK + 1, 131])
def test_values_and_gradients_are_those_of_the_equation(N):
    Q, K, V = inputs(N)
    expected, _ = attention(Q, K, V, causal_mask(N, dtype=Q.dtype))
    values = causal_in_blocks(Q, K, V)
    torch.testing.assert_close(values, expected)
    along = torch.randn(values.shape, generator=torch.Generator().manual_seed(0)).double()
    gradients = torch.autograd.grad(values, (Q, K, V), along)
    torch.testing.assert_close(gradients, torch.autograd.grad(expected, (Q, K, V), along))


def test_in_groups_of_sequences_it_is_the_same(monkeypatch):
    Q, K, V = inputs(67)
    along = torch.randn(2, 3, 67, 7, dtype=torch.float64)
    found = []
    for piece in (1, 2**18):  # one sequence after the other, and both together
        monkeypatch.setattr(blockwise, "PIECE", piece)
        monkeypatch.setattr(blockwise, "PER_CORE", 1 / torch.get_num_threads())
        assert len(list(blockwise.groups(2, blockwise.group_size(Q)))) == (2 if piece == 1 else 1)
        values = causal_in_blocks(Q, K, V)
        found.append([values, *torch.autograd.grad(values, (Q, K, V), along)])
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("piece", [1, 2**18])
@pytest.mark.parametrize("N", [67, 128, 131])
def test_dropped_weights_count_neither_there_nor_back(N, piece, monkeypatch):
    monkeypatch.setattr(blockwise, "PIECE", piece)
    monkeypatch.setattr(blockwise, "PER_CORE", 1e-9)
    drawn = []

    def draw_kept(shape, share):
        drawn.append(dropping.draw_kept(shape, share))
        return drawn[-1]

    monkeypatch.setattr(blockwise, "draw_kept", draw_kept)
    torch.manual_seed(0)
    Q, K, V = inputs(N)
    values = causal_in_blocks(Q, K, V, 0.25)
    kept = torch.zeros(2, 3, N, N, dtype=torch.float64)
    sequences = iter([slice(0, 1), slice(1, 2)] if piece == 1 else [slice(0, 2)])
    for keep in drawn:  # a group's blocks follow each other, the last of them up to N
        rows, end = keep.shape[1:]
        if end == rows:
            here = next(sequences)
        kept[here, :, end - rows : end, :end] = keep.view(-1, 3, rows, end).double()
    assert 0.7 < kept.tril().sum() / (3 * N * (N + 1)) < 0.8
    scores = Q @ K.mT * 5**-0.5 + causal_mask(N, dtype=torch.float64)
    expected = (torch.softmax(scores, -1) * kept * dropping.make_up(0.25)) @ V
    torch.testing.assert_close(values, expected)
    along = torch.randn_like(values)
    found = torch.autograd.grad(values, (Q, K, V), along)
    torch.testing.assert_close(found, torch.autograd.grad(expected, (Q, K, V), along))


def test_in_bfloat16_weights_are_dropped_too(monkeypatch):
    monkeypatch.setattr(blockwise, "has_bfloat16", lambda: False)
    Q, K, V = (Z.detach().bfloat16() for Z in inputs(67))
    assert not torch.equal(causal_in_blocks(Q, K, V, 0.5), causal_in_blocks(Q, K, V))


def test_groups_keep_every_core_at_work(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 16)
    Q = torch.empty(23, 3, 1031, 64)
    assert blockwise.group_size(Q) == 22  # 66 heads for 64
    assert [len(Q[group]) for group in blockwise.groups(23, 22)] == [22, 1]


def test_the_way_back_does_not_ask_anew_how_large_the_pieces_are(monkeypatch):
    monkeypatch.setattr(blockwise, "PIECE", 1)
    monkeypatch.setattr(blockwise, "PER_CORE", 1e-9)
    Q, K, V = inputs(67)
    values = causal_in_blocks(Q, K, V).square().sum()  # one sequence after the other
    expected = torch.autograd.grad(values, (Q, K, V), retain_graph=True)
    for name, other in {"PIECE": 2**18, "BLOCK": 7}.items():
        monkeypatch.setattr(blockwise, name, other)
    torch.testing.assert_close(torch.autograd.grad(values, (Q, K, V)), expected)


def test_no_sequences_at_all():
    layer = MultiHeadAttention(12, 3)
    layer(torch.zeros(0, 257, 12), causal=True).sum().backward()
    assert all(not W.grad.any() for W in layer.parameters())


def test_a_later_token_changes_nothing_earlier():
    Q, K, V = inputs(131)
    before = causal_in_blocks(Q, K, V)
    with torch.no_grad():
        for Z in (Q, K, V):
            Z[:, :, 97:] += 1
    after = causal_in_blocks(Q, K, V)
    assert torch.equal(before[:, :, :97], after[:, :, :97])
    assert not torch.equal(before[:, :, 97:], after[:, :, 97:])


@pytest.mark.parametrize(
    ("N", "learns", "dropout", "chosen"),
    [
        (257, True, 0.0, True),
        (251, True, 0.0, False),
        (257, False, 0.0, False),
        (257, True, 0.3, True),
        (67, True, 0.3, True),
        (61, True, 0.3, False),
        (257, False, 0.3, False),
    ],
)
def test_training_on_a_cpu_takes_the_blocks(monkeypatch, N, learns, dropout, chosen):
    taken = []

    def spy(Q, K, V, share):
        taken.append(share)
        return blockwise.causal_in_blocks(Q, K, V, share)

    monkeypatch.setattr("slp_transformer.attention.causal_in_blocks", spy)
    with torch.set_grad_enabled(learns):
        fused_attention(*inputs(N, torch.float32), causal=True, dropout=dropout)
    assert taken == [dropout] * chosen


def test_sequences_with_more_axes_and_with_fewer():
    Q, K, V = inputs(67)
    expected = causal_in_blocks(Q, K, V)
    more = causal_in_blocks(*(Z.unflatten(0, (2, 1)) for Z in (Q, K, V)))
    torch.testing.assert_close(more, expected.unflatten(0, (2, 1)))
    torch.testing.assert_close(causal_in_blocks(Q[1], K[1], V[1]), expected[1])


def test_mixed_precision_has_the_same_gradient_to_its_own_precision():
    X = torch.randn(2, 257, 13, generator=torch.Generator().manual_seed(0))
    layer = MultiHeadAttention(13, 3, key_dim=5, value_dim=7)

    def gradient(mixed: bool) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
            A = layer(X, causal=True)
        assert A.dtype == (torch.bfloat16 if mixed else torch.float32)
        found = torch.autograd.grad(A.float().square().sum(), list(layer.parameters()))
        return torch.cat([d.flatten() for d in found])

    exact = gradient(False)
    assert 0 < (gradient(True) - exact).norm() < 0.02 * exact.norm()


def test_a_second_derivative_is_refused_rather_than_wrong():
    Q, K, V = inputs(67)
    (d_Q,) = torch.autograd.grad(causal_in_blocks(Q, K, V).square().sum(), Q, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        d_Q.sum().backward()
