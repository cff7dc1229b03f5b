"""The input: one-hot rows, token embeddings and positions."""

import math

import loops
import pytest
import torch
import torch.nn.functional as F
from comparing import B, D, M, N, V, assert_same_gradients, randomized, some_ids

from slp_transformer import InputEncoding, SinusoidalPositions, TokenEmbedding, sinusoidal_positions
from slp_transformer.embedding import one_hot_lookup


@pytest.mark.equations("onehot")
@pytest.mark.parametrize("shape", [(), (N,), (B, N)])
def test_onehot_equals_token_embedding_equals_pytorch(shape):
    """A one-hot row times E, a look-up in E, and nn.Embedding are the same, gradients too.

    A word that occurs twice gets the gradient of both places.
    """
    tokens, ids = randomized(TokenEmbedding(V, D)), some_ids(*shape)
    ids.view(-1)[0] = 0  # a word like any other
    expected = F.embedding(ids, tokens.E)
    assert_same_gradients(tokens(ids), expected, [tokens.E])
    assert_same_gradients(one_hot_lookup(ids, tokens.E), expected, [tokens.E])


def test_ids_of_32_bits_will_do():
    tokens, ids = TokenEmbedding(V, D), some_ids(N)
    assert torch.equal(tokens(ids.int()), tokens(ids))
    assert torch.equal(one_hot_lookup(ids.int(), tokens.E), tokens(ids))


@pytest.mark.equations("X")
def test_X_equals_loop():
    """Token plus position embedding equals the loop over positions."""
    encoding, ids = randomized(InputEncoding(V, M, D)), some_ids(N)
    expected = loops.input_rows(ids.tolist(), encoding)
    assert_same_gradients(encoding(ids), expected, list(encoding.parameters()))


@pytest.mark.parametrize("positions", ["learned", "sinusoidal"])
def test_X_from_a_later_start(positions):
    """What a key-value cache asks for: the second half of a sentence, where it stands."""
    encoding, ids = InputEncoding(V, M, D, positions), some_ids(B, N)
    assert torch.equal(encoding(ids[:, 3:], start=3), encoding(ids)[:, 3:])


@pytest.mark.equations("sinusoid")
def test_sinusoid_equals_the_papers_formula():
    """The sinusoids equal the paper's formula, number by number."""
    P = sinusoidal_positions(N, D)
    for pos in range(N):
        for column in range(D):
            angle = pos / 10000 ** (2 * (column // 2) / D)
            expected = math.cos(angle) if column % 2 else math.sin(angle)
            assert P[pos, column].item() == pytest.approx(expected, abs=1e-6)


def test_sinusoid_keeps_its_precision_far_out():
    far = sinusoidal_positions(50_001, 3)[50_000, 0].item()
    assert far == pytest.approx(math.sin(50_000), abs=1e-6)


def test_sinusoid_of_the_default_type():
    assert sinusoidal_positions(2, 3).dtype == torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        P = sinusoidal_positions(2, 3)
    finally:
        torch.set_default_dtype(torch.float32)
    assert P.dtype == torch.float64 and P[1, 0].item() == pytest.approx(math.sin(1), abs=1e-15)


def test_sinusoid_is_neither_learned_nor_saved_but_moves_with_the_model():
    positions = SinusoidalPositions(M, D)
    assert list(positions.parameters()) == [] and positions.state_dict() == {}
    assert positions.double().P.dtype == torch.float64


def test_initialization_is_gpt_2s():
    torch.manual_seed(0)
    encoding = InputEncoding(211, 101, 53)
    for matrix in (encoding.tokens.E, encoding.positions.P):
        assert matrix.std().item() == pytest.approx(0.02, rel=0.05)
        assert abs(matrix.mean().item()) < 0.002


def test_dropout_only_in_training():
    encoding, ids = InputEncoding(V, 101, 53, dropout=0.25), some_ids(7, 101)
    torch.manual_seed(0)
    X = encoding(ids)
    assert (X == 0).double().mean().item() == pytest.approx(0.25, abs=0.01)
    whole = encoding.eval()(ids)
    assert (whole != 0).all()
    kept = X != 0
    torch.testing.assert_close(X[kept], whole[kept] / 0.75)


def test_sinusoids_are_there_once_a_model_without_memory_has_some():
    with torch.device("meta"):
        positions = SinusoidalPositions(13, 7)
    positions = positions.to_empty(device="cpu")
    torch.testing.assert_close(positions.P, sinusoidal_positions(13, 7).cpu())
    assert positions.double().P.dtype == torch.float64  # and are left alone afterwards
