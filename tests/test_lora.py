"""LoRA in the book's orientation, frozen, trained, merged, and as peft has it."""

from copy import deepcopy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from slp_transformer import EncoderDecoder, MultiHeadAttention, TransformerConfig, TransformerLM
from slp_transformer.lora import (
    ATTENTION_MATRICES,
    LoRA,
    add_lora,
    iter_lora,
    lora,
    lora_state_dict,
    merge_lora,
    remove_lora,
)
from slp_transformer.training import train

CONFIG = TransformerConfig(23, 11, 15, 3, 2, value_dim=7)
IDS = torch.randint(23, (3, 11), generator=torch.Generator().manual_seed(1))


def made(rank: int = 2, seed: int = 0) -> TransformerLM:
    """A model with A and B beside its matrices, B no longer 0."""
    torch.manual_seed(seed)
    model = TransformerLM(CONFIG)
    add_lora(model, rank)
    for name, W in lora_state_dict(model).items():
        if name.endswith(".B"):
            nn.init.normal_(W)
    return model


@pytest.mark.equations("lora")
def test_lora_by_hand():
    """LoRA's output equals an example worked out by hand."""
    x = torch.tensor([[1.0, 2.0]])
    W = torch.tensor([[1.0, 0.0, 3.0], [0.0, 1.0, 1.0]])
    A, B = torch.tensor([[2.0], [1.0]]), torch.tensor([[1.0, 10.0, 100.0]])
    # xW = (1, 2, 5); xA = 4; xAB = (4, 40, 400)
    assert lora(x, W, A, B).tolist() == [[5.0, 42.0, 405.0]]


def test_a_model_begins_as_the_one_it_is_made_from():
    torch.manual_seed(0)
    model = TransformerLM(CONFIG)
    before = model(IDS)
    add_lora(model, 2)
    assert torch.equal(model(IDS), before)
    assert all((W == 0).all() == name.endswith(".B") for name, W in lora_state_dict(model).items())


def test_a_keeps_the_variance_of_a_row_and_b_is_0():
    torch.manual_seed(0)
    pair = LoRA(401, 307, rank=199)
    assert (torch.randn(1009, 401) @ pair.A).var().item() == pytest.approx(1.0, abs=0.03)
    assert not pair.B.any()


def test_only_a_and_b_learn_and_the_base_comes_back_to_the_last_bit():
    torch.manual_seed(0)
    model = TransformerLM(CONFIG)
    before = deepcopy(model.state_dict())
    add_lora(model, 2)
    started = {name: W.clone() for name, W in lora_state_dict(model).items()}
    learning = [W for W in model.parameters() if W.requires_grad]
    assert {id(W) for W in learning} == {id(W) for W in lora_state_dict(model).values()}
    stream = IDS.flatten()
    train(model, stream, stream, steps=3, sequence_length=7, batch_size=2, learning_rate=0.1)
    assert all(not torch.equal(W, started[name]) for name, W in lora_state_dict(model).items())
    remove_lora(model)
    assert {name: W.tolist() for name, W in model.state_dict().items()} == {
        name: W.tolist() for name, W in before.items()
    }
    assert all(W.requires_grad for W in model.parameters())


def test_merged_and_unmerged_say_the_same():
    model = made()
    names, U = set(TransformerLM(CONFIG).state_dict()), model(IDS)
    base = deepcopy(model)
    remove_lora(base)
    assert (base(IDS) - U).abs().max() > 0.01, "A and B must matter for this test"
    assert torch.equal(model(IDS), U), "a copy is another model"
    merge_lora(model)
    torch.testing.assert_close(model(IDS), U)
    assert set(model.state_dict()) == names and not lora_state_dict(model)
    assert type(model.stack.blocks[0].attention) is MultiHeadAttention


def test_only_the_columns_of_the_matrices_that_were_named_change():
    """W_Q, W_K and W_V stand side by side in one matrix: [15×15], [15×15] and [15×21]."""
    mha = MultiHeadAttention(15, 3, value_dim=7)
    before = [W.detach().clone() for W in (mha.W_Q, mha.W_K, mha.W_V)]
    add_lora(mha, 2, ["W_K", "W_V"])
    weights = lora_state_dict(mha)
    assert set(weights) == {f"{W}.{letter}" for W in ("W_K", "W_V") for letter in "AB"}
    for name, W in weights.items():
        if name.endswith(".B"):
            nn.init.normal_(W)
    torch.testing.assert_close(mha.W_Q, before[0])
    torch.testing.assert_close(mha.W_K, before[1] + weights["W_K.A"] @ weights["W_K.B"])
    assert (mha.W_V - before[2]).abs().min() > 0


def test_any_matrices_by_name_and_in_cross_attention_too():
    model = EncoderDecoder(CONFIG)
    add_lora(model, 1, ["W_V", "W_2"])
    names = {name.split(".")[-2] for name in lora_state_dict(model)}
    assert names == {"W_V", "W_2"}
    assert any("cross_attention.W_V" in name for name in lora_state_dict(model))


@pytest.mark.parametrize(
    ("rank", "targets", "sentence"),
    [
        (16, ATTENTION_MATRICES, "rank must be at most 15 for a matrix of \\[15×15\\], not 16"),
        (0, ATTENTION_MATRICES, "rank must be a whole number of 1 or more, not 0"),
        (2, ["W_Q", "W_X"], "No matrix of the model is called W_X: here queries, .* W_Q"),
        (2, ["gamma"], "No matrix of the model is called gamma"),
    ],
)
def test_what_cannot_be_is_refused_and_the_model_untouched(rank, targets, sentence):
    model = TransformerLM(CONFIG)
    with pytest.raises(ValueError, match=sentence):
        add_lora(model, rank, targets)
    assert not lora_state_dict(model) and all(W.requires_grad for W in model.parameters())


def test_twice_is_refused():
    model = made()
    with pytest.raises(ValueError, match="already"):
        add_lora(model, 2)
    assert LoRA(7, 5, rank=5).A.shape == (7, 5)  # a rank may be as large as the matrix


class Peer(nn.Module):
    """Causal attention of 3 heads out of `nn.Linear`s, which peft knows how to adapt."""

    def __init__(self, d: int):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(d, d, bias=False) for _ in range(4))

    def forward(self, X):
        Q, K, V = (W(X).unflatten(-1, (3, -1)).transpose(-3, -2) for W in (self.q, self.k, self.v))
        heads = F.scaled_dot_product_attention(Q, K, V, is_causal=True)
        return self.o(heads.transpose(-3, -2).flatten(-2))


@pytest.mark.equations("lora")
def test_lora_is_what_peft_computes_with_the_same_weights():
    """LoRA equals Hugging Face's peft with the same weights.

    Theirs: W and the factors transposed, A and B by each other's names, α/r = 1.
    """
    peft = pytest.importorskip("peft")
    torch.manual_seed(0)
    ours = MultiHeadAttention(15, 3)
    how = peft.LoraConfig(r=2, lora_alpha=2, target_modules=["q", "k", "v", "o"])
    theirs = peft.get_peft_model(Peer(15), how)
    plain = deepcopy(ours)
    add_lora(ours, 2)
    pairs = []
    factors = dict(iter_lora(ours))
    frozen = dict(zip("QKVO", plain.matrices, strict=True))
    for letter in "QKVO":
        beside = factors[f"W_{letter}"]
        layer = getattr(theirs.base_model.model, letter.lower())
        nn.init.normal_(beside.B)
        same = [
            (beside.A, layer.lora_A["default"].weight),
            (beside.B, layer.lora_B["default"].weight),
        ]
        for mine, other in [(frozen[letter], layer.base_layer.weight), *same]:
            other.data.copy_(mine.detach().T)
        pairs += same
    X = torch.randn(2, 7, 15)
    mine, other = ours(X, causal=True), theirs(X)
    torch.testing.assert_close(mine, other)
    mine.square().mean().backward()
    other.square().mean().backward()
    for a, b in pairs:
        torch.testing.assert_close(a.grad, b.grad.T)
    merge_lora(ours)
    torch.testing.assert_close(ours(X, causal=True), theirs.merge_and_unload()(X))
