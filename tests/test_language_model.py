"""The head and the whole language model."""

import copy

import loops
import pytest
import torch
import torch.nn.functional as F
from comparing import (
    D_SHARED,
    SIZES,
    A,
    B,
    D,
    M,
    N,
    V,
    assert_same,
    assert_same_gradients,
    gradients,
    normal,
    randomized,
    some_ids,
)

from slp_transformer import (
    KVCache,
    TransformerConfig,
    TransformerLM,
    lm_head,
    next_word_probabilities,
    padding_mask,
)
from slp_transformer.modern import ModernConfig, ModernLM


def model(**changes) -> TransformerLM:
    return randomized(TransformerLM(TransformerConfig(V, M, D, A, 2, **SIZES | changes)))


@pytest.mark.equations("logits")
def test_logits_by_hand():
    """Each logit is the dot product of h with a word's own row of E."""
    E = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, -1.0]])
    assert lm_head(torch.tensor([3.0, 5.0]), E).tolist() == [3.0, 5.0, 1.0]


@pytest.mark.equations("logits")
@pytest.mark.parametrize("leading", [(), (N,), (B, N)])
def test_logits_equals_loop_and_pytorch(leading):
    """The logits equal the loop over the vocabulary, and PyTorch's linear layer."""
    H, E = normal(*leading, D), normal(V, D, seed=1)
    U = lm_head(H, E)
    expected = loops.logits(H.reshape(-1, D), E).reshape(*leading, V)
    assert_same_gradients(U, expected, [H, E])
    assert_same_gradients(U, F.linear(H, E), [H, E])


@pytest.mark.equations("probs")
def test_probs_of_the_books_example():
    """The probabilities of the book's example are the book's.

    u of "all the your that" in S7's Figs 7.17-7.21.
    """
    y = next_word_probabilities(torch.tensor([1.2, 0.9, 0.1, -0.5]))
    assert [round(p, 2) for p in y.tolist()] == [0.44, 0.33, 0.15, 0.08]


@pytest.mark.equations("probs")
def test_probs_equals_loop():
    """The next-word probabilities equal the softmax as a loop."""
    U = normal(N, V)
    expected = torch.stack([torch.stack(loops.softmax(list(u))) for u in U])
    assert_same_gradients(next_word_probabilities(U), expected, [U])
    assert_same(expected.sum(-1), torch.ones(N, dtype=torch.float64))


def test_language_model_equals_loop():
    lm, ids = model(), some_ids(N)
    expected = loops.language_model(ids.tolist(), lm)
    assert_same_gradients(lm(ids), expected, list(lm.parameters()))


def test_head_is_tied_and_has_no_bias():
    """E is used twice, and its gradient is the sum of both uses."""
    lm, ids = model(), some_ids(N)
    names = {name for name, _ in lm.named_parameters() if not name.startswith("stack.")}
    assert names == {"embedding.tokens.E", "embedding.positions.P"}
    E = lm.embedding.tokens.E
    H = lm.stack(lm.embedding(ids), causal=True)
    U = lm(ids)
    (both,) = gradients(U, [E])
    (as_head,) = gradients(lm_head(H.detach(), E), [E])
    (as_input,) = gradients(lm_head(H, E.detach()), [E])
    assert_same(both, as_head + as_input)
    assert as_head.abs().max() > 0 and as_input.abs().max() > 0


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("positions", ["learned", "sinusoidal"])
def test_causal_by_perturbation(norm, positions):
    lm, ids = model(norm=norm, positions=positions), some_ids(B, N)
    i = 3
    changed = ids.clone()
    changed[:, i + 1 :] = (ids[:, i + 1 :] + 1) % V
    U, other = lm(ids), lm(changed)
    assert torch.equal(U[:, : i + 1], other[:, : i + 1])
    assert (U[:, i + 1 :] != other[:, i + 1 :]).any(-1).all()


@pytest.mark.parametrize("leading", [(B,), (B, 5)])
def test_batch_equals_each_sentence_alone(leading):
    lm, ids = model(), some_ids(*leading, N)
    each = torch.stack([lm(row) for row in ids.reshape(-1, N)])
    assert_same(lm(ids).reshape(-1, N, V), each)


def test_the_training_path_makes_no_n_by_n_mask(kernel, monkeypatch):
    monkeypatch.delattr("slp_transformer.masks.causal_mask")
    model()(some_ids(B, N)).sum().backward()
    assert [call["is_causal"] for call in kernel] == [True, True]
    assert all(call["attn_mask"] is None for call in kernel)


def test_options_reach_the_parts():
    lm = TransformerLM(
        TransformerConfig(V, M, D_SHARED, A, 2, activation="swiglu", eps=0.5, dropout=0.25)
    )
    assert lm.embedding.drop.p == 0.25
    assert [block.attention.dropout for block in lm.stack.blocks] == [0.25] * 2
    assert [block.drop.p for block in lm.stack.blocks] == [0.25] * 2
    assert lm.stack.final_norm.eps == lm.stack.blocks[1].norm_2.eps == 0.5
    assert not any(block.cross_attention for block in lm.stack.blocks)
    assert lm.config.activation == "swiglu"


def test_bfloat16_stays_finite_and_close():
    lm = TransformerLM(TransformerConfig(V, M, D_SHARED, A, 2))
    ids = some_ids(B, N, below=V - 1) + 1
    ids[0, :2] = 0
    mask, where = padding_mask(ids, 0), {"position_ids": torch.arange(N)}
    expected = copy.deepcopy(lm).double()(ids, mask, **where)
    half = lm.bfloat16()
    U = half(ids, mask, **where)
    assert U.dtype == torch.bfloat16 and U.isfinite().all()
    assert (U.double() - expected).abs().max() < 0.05 * expected.abs().max()
    U.float().sum().backward()
    assert all(p.grad.isfinite().all() for p in half.parameters())


def test_a_fresh_model_knows_nothing():
    """Its loss is near log |V|, that of guessing."""
    torch.manual_seed(0)
    lm, ids = TransformerLM(TransformerConfig(997, 101, 60, 3, 3)), some_ids(7, 101, below=997)
    loss = F.cross_entropy(lm(ids).flatten(0, 1), ids.roll(-1, 1).flatten())
    assert loss.item() == pytest.approx(torch.log(torch.tensor(997.0)).item(), abs=0.05)


PAD, LEFT = 0, 3


@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "modern learned", "rotary"])
def test_a_sequence_padded_on_the_left_is_read_as_if_alone(positions):
    """In one pass, and with a cache, whose later tokens take the positions that follow."""
    if positions in ("modern learned", "rotary"):
        kind = positions.removeprefix("modern ")
        sizes = {"model_dim": D_SHARED, "num_heads": A, "key_dim": 4, "num_blocks": 2}
        lm = ModernLM(ModernConfig(V, M, **sizes, positions=kind))
    else:
        lm = TransformerLM(TransformerConfig(V, M, D_SHARED, A, 2, positions=positions))
    lm = randomized(lm).eval()
    text = some_ids(2, 7, below=V - 1) + 1
    padded = torch.cat([torch.full((2, LEFT), PAD), text], dim=1)
    padded[1, LEFT] = PAD  # of two lengths
    mask, position_ids = padding_mask(padded, PAD), ((padded != PAD).cumsum(-1) - 1).clamp(min=0)
    with torch.no_grad():
        U = lm(padded, mask, position_ids=position_ids)
        assert_same(U[0, LEFT:], lm(text[0]))
        assert_same(U[1, LEFT + 1 :], lm(text[1, 1:]))
        if positions != "rotary":  # which compares positions, and knows no first one
            there = lm(padded, mask, position_ids=torch.arange(padded.shape[1]))
            assert not torch.allclose(there[0, LEFT:], lm(text[0]), atol=1e-3)
            if mask.device.type == "cpu":  # elsewhere looking at values would make it wait
                with pytest.raises(ValueError, match="hides the first tokens .* pass position_ids"):
                    lm(padded, mask)
        cache = KVCache()
        lm(padded[:, :6], mask[..., :6], cache=cache, position_ids=position_ids[:, :6])
        rest = lm(padded[:, 6:], mask, cache=cache, position_ids=position_ids[:, 6:])
        assert_same(rest, U[:, 6:])
