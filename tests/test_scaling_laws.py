"""Parameter counts to the last parameter; scaling laws."""

import math

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from slp_transformer import EncoderDecoder, TransformerConfig, TransformerLM
from slp_transformer.model_sizes import PUBLISHED_MODELS
from slp_transformer.scaling_laws import (
    KAPLAN,
    PowerLaw,
    approximate_parameters,
    count_parameters,
    total_training_flops,
    training_flops_per_token,
)

SETTINGS = [
    {},
    {"num_blocks": 1, "num_heads": 1},
    {"key_dim": 5},
    {"activation": "gelu", "key_dim": 5, "value_dim": 17, "hidden_dim": 19},
    {"activation": "swiglu", "norm": "post"},
    {"activation": "swiglu", "hidden_dim": 19, "positions": "sinusoidal"},
    {"source_vocab_size": 29, "positions": "sinusoidal"},
    {"source_vocab_size": 23},  # of its own, if of the same size
    {"num_encoder_blocks": 1},
    {"num_encoder_blocks": 5, "norm": "post", "source_vocab_size": 29},
]


def config(**changes) -> TransformerConfig:
    sizes = {"vocab_size": 23, "context_length": 11, "model_dim": 21, "num_heads": 3}
    return TransformerConfig(**{**sizes, "num_blocks": 2, **changes})


def parts(model: torch.nn.Module) -> dict[str, int]:
    """PyTorch's own count, sorted by what the parameters do."""
    counts = dict.fromkeys(("attention", "feedforward", "biases", "norms", "embeddings"), 0)
    for name, parameter in model.named_parameters():
        if "norm" in name:
            part = "norms"
        elif "embedding" in name:
            part = "embeddings"
        elif "attention" in name:
            part = "attention"
        else:
            part = "biases" if ".b_" in name else "feedforward"
        counts[part] += parameter.numel()
    return counts


def check(count, model: torch.nn.Module) -> None:
    assert {name: getattr(count, name) for name in parts(model)} == parts(model)
    assert count.total == sum(p.numel() for p in model.parameters())
    assert count.matrices == count.attention + count.feedforward


@pytest.mark.parametrize("changes", SETTINGS)  # an encoder's settings change nothing
def test_param_count_of_a_language_model(changes):
    check(count_parameters(config(**changes)), TransformerLM(config(**changes)))


@pytest.mark.parametrize("changes", SETTINGS)
def test_param_count_of_an_encoder_decoder(changes):
    count = count_parameters(config(**changes), encoder_decoder=True)
    check(count, EncoderDecoder(config(**changes)))


@pytest.mark.equations("param-count")
def test_param_count_is_the_books_formula():
    """The blocks have as many parameters as the book's formula says.

    2 d n_layer (2 d_attn + d_ff), with d_attn = A·d_k = A·d_v.
    """
    count = count_parameters(config(key_dim=5, value_dim=5, hidden_dim=19, num_blocks=3))
    assert count.matrices == 2 * 21 * 3 * (2 * 3 * 5 + 19)
    assert count_parameters(config()).matrices == approximate_parameters(2, 21) == 12 * 2 * 21**2


@pytest.mark.parametrize(
    ("layers", "d", "heads", "published"),
    [(12, 768, 12, 124_439_808), (48, 1600, 25, 1_557_611_200)],
    ids=["small", "XL"],
)
def test_param_count_of_gpt_2(layers, d, heads, published):
    """What is published counts a bias for each of W^Q, W^K, W^V and W^O; the book has none."""
    count = count_parameters(TransformerConfig(50257, 1024, d, heads, layers, activation="gelu"))
    assert count.total == published - layers * 4 * d
    assert count.matrices == 12 * layers * d**2


@pytest.mark.parametrize(
    ("name", "left_out"),
    [
        # Biases of W^Q to W^O, 4d, and of the feedforward layer, 5d; two norms of 2d; a last one.
        ("GPT-2 XL", 48 * (4 + 5 + 4) * 1600 + 2 * 1600),
        # Two norms of d a block and a last one; in Qwen3 also one for queries and one for keys.
        ("Qwen3-0.6B", (2 * 28 + 1) * 1024 + 28 * 2 * 128),
        ("Qwen3-32B", (2 * 64 + 1) * 5120 + 64 * 2 * 128),
        ("Llama 3.1 8B", (2 * 32 + 1) * 4096),
        ("Llama 3.1 405B", (2 * 126 + 1) * 16384),
    ],
)
def test_param_count_of_published_models_to_the_last_parameter(name, left_out):
    model = PUBLISHED_MODELS[name]
    assert model.matrices + model.embeddings + left_out == model.total


def test_param_count_of_published_models_is_the_books_where_they_are_the_books():
    for name in ("GPT-2 XL", "GPT-3"):
        model = PUBLISHED_MODELS[name]
        assert model.matrices == approximate_parameters(model.num_blocks, model.model_dim)
    gpt_3 = PUBLISHED_MODELS["GPT-3"]
    assert abs(gpt_3.matrices + gpt_3.embeddings - gpt_3.total) < 0.005 * gpt_3.total


def test_published_caches_hold_a_key_and_a_value_for_each_shared_head():
    assert PUBLISHED_MODELS["GPT-2 XL"].kv_cache_bytes(1) == 2 * 48 * 25 * 64 * 2
    assert PUBLISHED_MODELS["Llama 3.1 8B"].kv_cache_bytes(7) == 7 * 2 * 32 * 8 * 128 * 2


@pytest.mark.equations("L(N)")
def test_L_N_by_hand():
    """The loss by parameters equals values worked out by hand."""
    law = PowerLaw(scale=1600.0, exponent=0.5)
    assert law(100.0) == 4.0 and law(1600.0) == 1.0 and law(6400.0) == 0.5 and law(0.25) == 80.0
    with pytest.raises(ValueError, match="begins above 0, so it has no loss for 0"):
        law(0)


@pytest.mark.equations("L(N)", "L(D)", "L(C)")
@pytest.mark.parametrize(
    ("law", "twice"), [("parameters", 0.9487), ("tokens", 0.9363), ("compute", 0.9659)]
)
def test_L_N_L_D_and_L_C_have_the_books_constants(law, twice):
    """The scaling laws have the book's constants.

    The factor that doubling brings is 2^−α whatever the scale; at the scale the loss is 1.
    """
    law = KAPLAN[law]
    assert law(2e9) / law(1e9) == pytest.approx(twice, abs=5e-5)
    assert law(law.scale) == 1.0
    assert (KAPLAN["parameters"].scale, KAPLAN["tokens"].scale) == (8.8e13, 5.4e13)
    assert KAPLAN["compute"].scale == 3.1e8


def test_a_fit_is_the_least_squares_line_through_the_logarithms():
    sizes, losses = [2.0, 3.0, 7.0, 31.0], [5.0, 4.0, 4.5, 2.0]
    law = PowerLaw.fit(sizes, losses)
    points = torch.tensor([[math.log(x), 1.0] for x in sizes], dtype=torch.float64)
    heights = torch.tensor(losses, dtype=torch.float64).log().unsqueeze(1)
    slope, height = torch.linalg.lstsq(points, heights).solution.flatten().tolist()
    assert law.exponent == pytest.approx(-slope)
    assert law.exponent * math.log(law.scale) == pytest.approx(height)


@pytest.mark.parametrize(
    ("sizes", "losses", "sentence"),
    [
        ([1.0], [2.0], "two or more sizes"),
        ([3.0, 3.0], [2.0, 1.0], "two or more sizes"),
        ([1.0, 2.0], [2.0], "two or more sizes"),
        ([0.0, 2.0], [2.0, 1.0], "two or more sizes"),
        ([1.0, 2.0], [2.0, 2.0], "do not fall"),
    ],
)
def test_losses_that_no_law_fits_are_refused(sizes, losses, sentence):
    with pytest.raises(ValueError, match=sentence):
        PowerLaw.fit(sizes, losses)


def test_training_compute_is_counted_by_pytorch_too():
    """Six operations for each parameter in a matrix and token; what is left out counted apart."""
    config = TransformerConfig(7, 11, 21, 3, 2)
    model, ids = TransformerLM(config), torch.zeros(5, 11, dtype=torch.long)
    with FlopCounterMode(display=False) as counted:
        model(ids).sum().backward()
    tokens, size = 5 * 11, count_parameters(config).matrices
    logits = 6 * tokens * 7 * 21
    # On a CPU, PyTorch does not count the inside of its fused attention.
    assert counted.get_total_flops() == total_training_flops(size, tokens) + logits


def test_compute_per_token_by_hand():
    """12 d² a block and d |V| for the head; keys of 5 and values of 2 in a window of 11."""
    config = TransformerConfig(7, 13, model_dim=6, num_heads=2, num_blocks=3)
    assert training_flops_per_token(config, 11) == 6 * (3 * 12 * 36 + 42) + 12 * 3 * 2 * 3 * 11
    uneven = TransformerConfig(
        7, 13, model_dim=6, num_heads=2, num_blocks=3, key_dim=5, value_dim=2
    )
    weights = 3 * (2 * 6 * 10 + 2 * 6 * 4 + 8 * 36) + 42
    assert training_flops_per_token(uneven, 11) == 6 * weights + 6 * 3 * 2 * (5 + 2) * 11
