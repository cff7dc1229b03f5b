"""The model of "Attention is all you need", as PyTorch's `nn.Transformer` computes it."""

import math

import pytest
import torch
from comparing import assert_same, randomized, some_ids
from torch import Tensor, nn
from twins import Pair, Twin, stack_pairs, twin_layer

from slp_transformer import EncoderDecoder, TransformerConfig, TransformerLM, padding_mask
from slp_transformer.embedding import ScaledEmbedding
from slp_transformer.modern.config import ModernConfig
from slp_transformer.training.optimizers import make_optimizer
from slp_transformer.training.train_config import TrainConfig

V, B, M, N, D, A, D_FF = 23, 3, 13, 11, 14, 2, 19
SMALL = {"model_dim": D, "num_heads": A, "num_blocks": 2, "hidden_dim": D_FF, "dropout": 0.0}


def of_2017(**changes) -> EncoderDecoder:
    return randomized(EncoderDecoder(TransformerConfig.of_2017(V, 17, **SMALL | changes)))


class PyTorchs(nn.Module):
    """PyTorch's tutorial on translation: its layers, its way to scale, the sines by hand.

    `nn.Transformer` would put a norm above either stack, which the paper has not.
    """

    def __init__(self, ours: EncoderDecoder):
        super().__init__()
        stacks = (ours.encoder, nn.TransformerEncoder), (ours.decoder, nn.TransformerDecoder)
        extra = ({"enable_nested_tensor": False}, {})
        encoder, decoder = (
            kind(twin_layer(stack.blocks[0]), len(stack.blocks), None, **more)
            for (stack, kind), more in zip(stacks, extra, strict=True)
        )
        custom = {"custom_encoder": encoder, "custom_decoder": decoder}
        self.stacks = nn.Transformer(D, A, **custom, batch_first=True)
        self.E = nn.Embedding(V, D)

    def rows(self, ids: Tensor) -> Tensor:
        P = torch.tensor(
            [
                [
                    (math.cos if i % 2 else math.sin)(pos / 10000 ** ((i - i % 2) / D))
                    for i in range(D)
                ]
                for pos in range(ids.shape[1])
            ],
            dtype=torch.float32,  # as the model was made
        )
        return self.E(ids) * math.sqrt(D) + P.double()

    def forward(self, source: Tensor, target: Tensor, padded: Tensor) -> Tensor:
        future = nn.Transformer.generate_square_subsequent_mask(target.shape[1]).double()
        hidden = {"src_key_padding_mask": padded, "memory_key_padding_mask": padded}
        H = self.stacks(self.rows(source), self.rows(target), tgt_mask=future, **hidden)
        return H @ self.E.weight.T


def pairs(ours: EncoderDecoder, theirs: PyTorchs):
    yield from stack_pairs(ours.encoder, theirs.stacks.encoder)
    yield from stack_pairs(ours.decoder, theirs.stacks.decoder)
    embedding = ours.target_embedding.tokens.E
    yield Embedding(embedding, theirs.E.weight)


class Embedding(Pair):
    """The one matrix that both libraries keep the same way round."""

    def in_our_orientation(self, theirs: Tensor) -> Tensor:
        return theirs


@pytest.mark.parametrize("num_encoder_blocks", [None, 3])
def test_the_whole_model_equals_pytorchs_forwards_and_gradients(num_encoder_blocks):
    ours = of_2017(num_encoder_blocks=num_encoder_blocks)
    twin = Twin(ours, PyTorchs(ours), pairs)
    source, target = some_ids(B, M, below=V), some_ids(B, N, below=V, seed=9)
    padded = torch.zeros(B, M, dtype=torch.bool)
    padded[0, -3:] = padded[2, -7:] = True
    U = ours(source, target, padding_mask(padded.long(), 1))
    twin.assert_agrees(U, twin.theirs(source, target, padded), [])


def test_named_settings_are_those_of_table_3():
    config = TransformerConfig.of_2017(37_000)
    sizes = (config.model_dim, config.num_heads, config.num_blocks, config.hidden_dim)
    assert sizes == (512, 8, 6, None) and config.dropout == 0.1  # d_ff is 4d, 2048
    assert (config.norm, config.positions, config.activation) == ("post", "sinusoidal", "relu")
    with torch.device("meta"):
        model = EncoderDecoder(config)
    assert model.encoder.final_norm is None and model.decoder.final_norm is None
    assert model.source_embedding.tokens is model.target_embedding.tokens
    # 65 million by the paper's table, whose rounding we don't know; 63 without attention's biases.
    assert round(sum(p.numel() for p in model.parameters()) / 1e6) == 63
    big = {"model_dim": 1024, "num_heads": 16, "dropout": 0.3}
    assert TransformerConfig.of_2017(37_000, **big).hidden_dim is None  # 4d, as in the big model


def test_xaviers_start_is_uniform_by_each_matrixs_own_sizes():
    torch.manual_seed(1)
    config = TransformerConfig.of_2017(211, 101, model_dim=60, num_heads=3, num_blocks=1)
    model = EncoderDecoder(config)
    for block in (*model.encoder.blocks, *model.decoder.blocks):
        for W in [W for sublayer in block.sublayers() for W in sublayer.matrices]:
            bound = math.sqrt(6 / sum(W.shape))
            assert 0.97 * bound < W.abs().max() <= bound
            assert W.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)
    E = model.target_embedding.tokens.E
    assert isinstance(model.target_embedding.tokens, ScaledEmbedding)
    assert E.std().item() == pytest.approx(60**-0.5, rel=0.05)
    X = model.target_embedding.tokens(torch.arange(211))
    assert X.std().item() == pytest.approx(1.0, rel=0.05)


def test_berts_start_is_equally_small_everywhere():
    """As Hugging Face's Marian, which is post-norm and has sines and cosines, begins."""
    torch.manual_seed(1)
    how = {"model_dim": 60, "num_heads": 3, "num_blocks": 1, "initialization": "bert"}
    model = EncoderDecoder(TransformerConfig.of_2017(211, 101, **how))
    for block in (*model.encoder.blocks, *model.decoder.blocks):
        for W in [W for sublayer in block.sublayers() for W in sublayer.matrices]:
            assert W.std().item() == pytest.approx(0.02, rel=0.05)
            assert W.abs().max() > 0.05  # normal, not uniform
    assert model.target_embedding.tokens.E.std().item() == pytest.approx(0.02, rel=0.05)
    languages = TransformerLM(TransformerConfig(211, 17, 60, 3, 1, initialization="bert"))
    assert languages.stack.blocks[0].ffn.W_2.std().item() == pytest.approx(0.02, rel=0.05)


def test_a_language_model_takes_the_same_choices():
    config = TransformerConfig(V, 17, D, A, 1, scaled_embeddings=True, initialization="xavier")
    model, ids = randomized(TransformerLM(config)), some_ids(N)
    P = model.embedding.positions(N)
    assert_same(model.embedding(ids), math.sqrt(D) * model.embedding.tokens.E[ids] + P)


def test_choices_that_nothing_goes_by_are_refused(unchecked):
    with pytest.raises(ValueError, match="initialization must be .gpt2. or .xavier.*, not 'he'"):
        TransformerConfig(V, initialization="he")
    for changes in ({"scaled_embeddings": True}, {"initialization": "xavier"}):
        with pytest.raises(ValueError, match="belong to the book's models and that of 2017"):
            ModernConfig(V, **changes)


def test_the_rate_is_the_papers_equation():
    settings = TrainConfig.of_2017(512, steps=100_000, warmup_steps=4000)
    for step in (1, 2, 3999, 4000, 4001, 100_000):
        lrate = 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
        assert settings.learning_rate_at(step - 1) == pytest.approx(lrate, rel=1e-12)
    rates = [settings.learning_rate_at(step) for step in range(0, 20_000, 100)]
    assert max(rates) <= settings.learning_rate_at(4000 - 1)


def test_adam_is_the_papers():
    settings = TrainConfig.of_2017(64, steps=9)
    assert (settings.weight_decay, settings.max_grad_norm, settings.label_smoothing) == (
        0.0,
        None,
        0.1,
    )
    optimizer = make_optimizer(of_2017(), settings)
    assert {group["betas"] for group in optimizer.param_groups} == {(0.9, 0.98)}
    assert {group["weight_decay"] for group in optimizer.param_groups} == {0.0}
