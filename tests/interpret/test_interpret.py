"""Looking inside: points read and changed, the lens, scores, circuits; nothing leaks."""

import math

import pytest
import torch

from slp_transformer import (
    EncoderDecoder,
    MultiHeadAttention,
    TransformerConfig,
    TransformerLM,
    causal_mask,
    lm_head,
)
from slp_transformer.hooks import HookedModule, pass_on, record_activations
from slp_transformer.interpret import (
    circuit_in_vocabulary,
    find_hook_points,
    induction_score,
    logit_lens,
    ov_circuit,
    patch_activations,
    previous_token_score,
    qk_circuit,
    repeated_tokens,
    residual_stream,
    zero_ablate,
)
from slp_transformer.modern import ModernConfig, ModernLM

CONFIG = TransformerConfig(23, 11, 15, 3, 2, value_dim=7)
IDS = torch.randint(23, (2, 11), generator=torch.Generator().manual_seed(1))


@pytest.fixture
def model() -> TransformerLM:
    torch.manual_seed(0)
    model = TransformerLM(CONFIG).eval()
    for W in model.parameters():  # large enough for every part to matter
        torch.nn.init.normal_(W, std=0.3)
    return model


def close(a, b):
    torch.testing.assert_close(a, b)


@pytest.mark.equations("T1", "T2", "T3", "T4", "T5", "T-H")
@torch.no_grad()
def test_T1_to_T_H_and_every_point_hold_what_the_equations_say(model):
    """The trace of a block holds T¹ to T⁵ and H as the equations define them."""
    with patch_activations(model) as seen:
        U = model(IDS)
    assert list(seen) and set(seen) == set(find_hook_points(model))
    X = model.embedding(IDS)
    for l, block in enumerate(model.stack.blocks):
        at = {name.removeprefix(f"{l}."): Z for name, Z in seen.items() if name[0] == str(l)}
        mha = block.attention
        close(at["X"], X)
        close(at["T1"], block.norm_1(X))
        for letter, size in (("Q", 5), ("K", 5), ("V", 7)):
            W = torch.stack([getattr(head, f"W_{letter}") for head in mha.heads])
            close(at[letter], at["T1"].unsqueeze(1) @ W)
            assert at[letter].shape == (2, 3, 11, size)
        close(at["scores"], at["Q"] @ at["K"].mT / math.sqrt(5))
        close(at["alpha"], torch.softmax(at["scores"] + causal_mask(11), dim=-1))
        close(at["head"], at["alpha"] @ at["V"])
        close(at["T2"], sum(at["head"][:, c] @ mha.heads[c].W_O for c in range(3)))
        close(at["T3"], at["T2"] + X)
        close(at["T4"], block.norm_2(at["T3"]))
        close(at["T5"], block.ffn(at["T4"]))
        close(at["H"], at["T5"] + at["T3"])
        X = at["H"]
    close(U, lm_head(model.stack.final_norm(X), model.embedding.tokens.E))


def test_only_what_is_asked_for_is_kept(model):
    with patch_activations(model, ["1.T3"]) as seen:
        model(IDS)
    assert list(seen) == ["1.T3"]
    with patch_activations(model, patches={"1.T3": zero_ablate()}) as seen:
        model(IDS)
    assert seen == {}


def test_the_points_of_an_encoder_decoder_say_which_stack():
    torch.manual_seed(0)
    model = EncoderDecoder(CONFIG).eval()
    with patch_activations(model) as seen:
        model(IDS, IDS[:, :7])
    assert set(seen) == set(find_hook_points(model))
    assert seen["encoder.1.alpha"].shape == (2, 3, 11, 11)
    assert seen["decoder.0.alpha"].shape == (2, 3, 7, 7)
    assert seen["decoder.0.alpha_cross"].shape == (2, 3, 7, 11)
    assert "encoder.0.C1" not in seen and "decoder.0.C1" in seen


@torch.no_grad()
def test_a_head_that_is_zeroed_is_a_head_whose_output_matrix_is_0(model):
    with patch_activations(model, patches={"1.head": zero_ablate(2)}):
        U = model(IDS)
    model.stack.blocks[1].attention.heads[2].W_O = torch.zeros(7, 15)
    close(U, model(IDS))


@torch.no_grad()
def test_weights_put_in_their_place_are_those_that_values_are_gathered_with(model):
    itself = torch.eye(11).expand(2, 3, 11, 11)
    with patch_activations(model, ["0.head", "0.V", "0.alpha"], {"0.alpha": itself}) as seen:
        model(IDS)
    close(seen["0.head"], seen["0.V"])
    assert torch.equal(seen["0.alpha"], itself)


@torch.no_grad()
def test_scores_put_in_their_place_are_masked_and_shared_out(model):
    def recent(scores):  # the last token alone, were the future not hidden
        return torch.zeros_like(scores).index_fill(-1, torch.tensor([10]), 99.0)

    with patch_activations(model, ["0.alpha"], {"0.scores": recent}) as seen:
        model(IDS)
    equal = torch.tril(torch.ones(11, 11)) / torch.arange(1, 12)[:, None]
    equal[10] = torch.eye(11)[10]
    close(seen["0.alpha"], equal.expand(2, 3, -1, -1))


def test_a_pattern_stands_for_all_points_of_such_names(model):
    names = ["*.alpha", "1.T[45]"]
    with patch_activations(model, names, {"*.head": zero_ablate()}) as seen:
        model(IDS)
    assert set(seen) == {"0.alpha", "1.alpha", "1.T4", "1.T5"}
    with patch_activations(model, ["?.T2"], {"*.head": zero_ablate()}) as seen:
        model(IDS)
    assert set(seen) == {"0.T2", "1.T2"} and not any(Z.any() for Z in seen.values())
    with pytest.raises(ValueError, match=r'no point "\*.alfa"'):
        with patch_activations(model, ["0.T1", "*.alfa"]):
            pass


@torch.no_grad()
def test_a_stream_put_in_its_place_is_gone_on_with(model):
    """What one run had after block 0, put into another's, gives the first one's words."""
    with patch_activations(model, ["0.H"]) as seen:
        U = model(IDS)
    with patch_activations(model, patches={"0.H": seen["0.H"]}):
        close(model(IDS.flip(0)), U)


def test_gradients_flow_through_points(model):
    with patch_activations(model, ["0.T3"]) as seen:
        U = model(IDS)
    (gradient,) = torch.autograd.grad(U.sum(), seen["0.T3"])
    assert gradient.shape == (2, 11, 15) and gradient.abs().sum() > 0


@torch.no_grad()
def test_who_does_not_ask_keeps_the_fused_kernel(model, kernel):
    model(IDS)
    assert len(kernel) == 2
    with patch_activations(model, ["0.T3", "1.T5"]):
        model(IDS)
    assert len(kernel) == 4, "the stream is no reason to compute weights"
    with patch_activations(model, ["1.alpha"]):
        model(IDS)
    assert len(kernel) == 5, "only the block that is asked for its weights computes them"
    model(IDS)
    assert len(kernel) == 7, "and afterwards none does"


@torch.no_grad()
def test_nothing_is_left_after_the_context_even_if_it_ends_in_an_error(model):
    U = model(IDS)
    with pytest.raises(RuntimeError, match="inside"), patch_activations(model):
        raise RuntimeError("inside")
    with patch_activations(model, patches={"0.T2": zero_ablate()}) as seen:
        model(IDS)
    seen.clear()
    assert torch.equal(model(IDS), U) and seen == {}
    assert all(part.hook is pass_on for part in model.modules() if isinstance(part, HookedModule))


@torch.no_grad()
def test_contexts_within_contexts_see_what_the_outer_ones_changed(model):
    with patch_activations(model, patches={"0.T2": zero_ablate()}):
        with record_activations(model):
            pass
        with patch_activations(model, ["0.T2"]) as seen:
            model(IDS)
        changed = model(IDS)
    assert (seen["0.T2"] == 0).all()
    with patch_activations(model, patches={"0.T2": torch.zeros(2, 11, 15)}):
        assert torch.equal(model(IDS), changed)


def test_points_that_there_are_not_are_refused_by_name(model):
    with pytest.raises(ValueError, match='no point "2.T1": there are 0.X, 0.T1'):
        with patch_activations(model, ["2.T1"]):
            pass
    with pytest.raises(ValueError, match='no point "0.C1"'):
        with patch_activations(model, patches={"0.C1": zero_ablate()}):
            pass


@pytest.mark.parametrize("change", [torch.zeros(1), lambda X: X[:, :5], lambda X: None])
def test_what_does_not_fit_a_point_is_refused(model, change):
    with pytest.raises(ValueError, match='At the point "0.T2" passes a tensor of \\[2×11×15\\]'):
        with patch_activations(model, patches={"0.T2": change}):
            model(IDS)
    assert model(IDS).shape == (2, 11, 23)


def test_a_head_that_there_is_not_is_refused(model):
    with pytest.raises(ValueError, match="no head 3: there are 3, from 0 on"):
        with patch_activations(model, patches={"0.head": zero_ablate(3)}):
            model(IDS)


@pytest.mark.equations("logit-lens")
@torch.no_grad()
def test_the_lens_on_the_topmost_stream_is_the_model_itself(model):
    """The logit lens on the last block's output is the model's own prediction."""
    stream = residual_stream(model, IDS)
    assert list(stream) == ["0.X", "0.T3", "0.H", "1.T3", "1.H"]
    close(logit_lens(model, stream["1.H"]), model(IDS))
    E = model.embedding.tokens.E
    close(logit_lens(model, stream["0.T3"], final_norm=False), stream["0.T3"] @ E.T)
    close(logit_lens(model, stream["0.X"]), model.stack.final_norm(stream["0.X"]) @ E.T)


def test_a_post_norm_model_has_no_stream_for_the_lens():
    model = TransformerLM(TransformerConfig(23, 11, 15, 3, 2, norm="post"))
    with pytest.raises(ValueError, match="post-norm"):
        residual_stream(model, IDS)


@torch.no_grad()
def test_points_and_the_lens_work_on_a_model_of_today():
    torch.manual_seed(0)
    model = ModernLM(ModernConfig(23, 11, 24, 6, 2, num_kv_heads=3, tied=False)).eval()
    U = model(IDS)
    with patch_activations(model) as seen:
        close(model(IDS), U)
    assert set(seen) == set(find_hook_points(model))
    close(seen["1.T2"] + seen["1.X"], seen["1.T3"])
    close(logit_lens(model, residual_stream(model, IDS)["1.H"]), U)
    with patch_activations(model, patches={"0.head": zero_ablate(5)}):
        assert not torch.equal(model(IDS), U)


@pytest.mark.equations("induction")
def test_scores_of_heads_that_look_at_one_place_each():
    """A head that always looks one token back, or where an induction head looks, scores 1."""
    N, P = 10, 5
    alpha = torch.zeros(3, 3, N, N)
    for i in range(N):
        alpha[:, 0, i, max(i - 1, 0)] = 1  # the token before
        alpha[:, 1, i, max(i - P + 1, 0)] = 1  # the token after this one's last time
        alpha[:, 2, i, : i + 1] = 1 / (i + 1)  # everywhere alike
    # Of the nine tokens that have one before them, the second head looks there from one.
    close(previous_token_score(alpha)[:2], torch.tensor([1.0, 1 / 9]))
    close(induction_score(alpha, P)[:2], torch.tensor([0.0, 1.0]))
    evenly = sum(1 / (i + 1) for i in range(P, N)) / (N - P)
    assert induction_score(alpha, P)[2].item() == pytest.approx(evenly)
    close(induction_score(alpha[0], P), induction_score(alpha, P))


def test_a_period_that_is_not_in_the_sequence_is_refused():
    with pytest.raises(ValueError, match="A period is from 2 up"):
        induction_score(torch.zeros(2, 7, 7), 7)


def test_repeated_tokens_are_different_and_repeat():
    ids = repeated_tokens(7, 5, 11, copies=3, generator=torch.Generator().manual_seed(0))
    assert ids.shape == (11, 15) and torch.equal(ids[:, :5], ids[:, 10:])
    assert all(len(row.unique()) == 5 for row in ids)
    assert len(ids.unique(dim=0)) == 11 and set(ids.unique().tolist()) == set(range(7))


def test_a_period_longer_than_the_vocabulary_is_refused():
    assert len(repeated_tokens(5, 5, 1)[0].unique()) == 5
    with pytest.raises(ValueError, match="all different, but the vocabulary has only 5"):
        repeated_tokens(5, 7, 1)


@torch.no_grad()
def test_circuits_are_what_a_head_does_with_two_tokens():
    torch.manual_seed(0)
    mha, X = MultiHeadAttention(15, 3, 5, 7), torch.randn(11, 15)
    seen = {}
    mha.hook = lambda name, Z: seen.setdefault(name, Z)
    mha(X, causal=True)
    for c in range(3):
        scores = X @ qk_circuit(mha, c) @ X.T / math.sqrt(5)
        close(seen["alpha"][c], torch.softmax(scores + causal_mask(11), dim=-1))
        written = seen["alpha"][c] @ X @ ov_circuit(mha, c)
        close(written, seen["head"][c] @ mha.heads[c].W_O)


@torch.no_grad()
def test_a_circuit_in_words_asks_each_word_about_each_other():
    torch.manual_seed(0)
    E, circuit = torch.randn(5, 3), torch.randn(3, 3)
    words = circuit_in_vocabulary(circuit, E)
    close(words[2, 4], E[2] @ circuit @ E[4])


def test_a_mapping_in_place_of_names_is_taken_for_patches():
    model, ids = ModernLM(ModernConfig(31, 32)).eval(), torch.randint(31, (2, 9))
    with patch_activations(model, patches={"0.T5": zero_ablate()}):
        expected = model(ids)
    with patch_activations(model, {"0.T5": zero_ablate()}) as seen:
        assert torch.equal(model(ids), expected) and not torch.equal(expected, model(ids) * 0)
    assert not seen and not torch.equal(model(ids), expected)
    with pytest.raises(ValueError, match="one mapping of patches, not two"):
        with patch_activations(model, {"0.T5": zero_ablate()}, {"1.T5": zero_ablate()}):
            pass
