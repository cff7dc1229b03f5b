"""Parameter counts: 8.52 (exercise 7.1c), to the last parameter."""

import pytest
import torch

from slp_transformer import EncoderDecoder, TransformerConfig, TransformerLM
from slp_transformer.scale import approximate_parameters, count_parameters

LANGUAGE_MODELS = {
    "defaults": {},
    "one block, one head": {"num_blocks": 1, "num_heads": 1},
    "d_k and d_v of their own": {"key_dim": 5, "value_dim": 17},
    "d_k of its own": {"key_dim": 5},
    "hidden_dim": {"hidden_dim": 19},
    "gelu": {"activation": "gelu"},
    "swiglu": {"activation": "swiglu"},
    "swiglu, hidden_dim": {"activation": "swiglu", "hidden_dim": 19},
    "post-norm": {"norm": "post"},
    "sinusoidal": {"positions": "sinusoidal"},
    "everything": {
        "key_dim": 5,
        "value_dim": 17,
        "hidden_dim": 19,
        "activation": "swiglu",
        "norm": "post",
        "positions": "sinusoidal",
    },
}
TRANSLATORS = {
    **LANGUAGE_MODELS,
    "own source vocabulary": {"source_vocab_size": 29},
    "own source vocabulary of the same size": {"source_vocab_size": 23},
    "shallow encoder": {"num_encoder_blocks": 1},
    "deep encoder, post-norm": {"num_encoder_blocks": 5, "norm": "post", "source_vocab_size": 29},
    "sinusoidal, own vocabulary": {"positions": "sinusoidal", "source_vocab_size": 29},
}


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


@pytest.mark.parametrize("changes", LANGUAGE_MODELS.values(), ids=LANGUAGE_MODELS)
def test_param_count_8_52_of_a_language_model(changes):
    check(count_parameters(config(**changes)), TransformerLM(config(**changes)))


def test_param_count_8_52_leaves_an_encoders_settings_out():
    changes = {"source_vocab_size": 29, "num_encoder_blocks": 5}
    check(count_parameters(config(**changes)), TransformerLM(config(**changes)))


@pytest.mark.parametrize("changes", TRANSLATORS.values(), ids=TRANSLATORS)
def test_param_count_8_52_of_an_encoder_decoder(changes):
    count = count_parameters(config(**changes), encoder_decoder=True)
    check(count, EncoderDecoder(config(**changes)))


def test_param_count_8_52_is_the_books_formula():
    """2 d n_layer (2 d_attn + d_ff), with d_attn = A·d_k = A·d_v."""
    count = count_parameters(config(key_dim=5, value_dim=5, hidden_dim=19, num_blocks=3))
    assert count.matrices == 2 * 21 * 3 * (2 * 3 * 5 + 19)
    assert count_parameters(config()).matrices == approximate_parameters(2, 21) == 12 * 2 * 21**2


def test_heads_do_not_matter_while_they_share_d():
    assert len({count_parameters(config(num_heads=A)).total for A in (1, 3, 7, 21)}) == 1


def test_param_count_8_52_of_gpt_3():
    """12 · 96 · 12288², which the book rounds to 175 billion."""
    gpt_3 = TransformerConfig(50257, 2048, 12288, 96, 96, activation="gelu")
    assert count_parameters(gpt_3).matrices == 173_946_175_488
    assert approximate_parameters(96, 12288) == 173_946_175_488


def test_param_count_8_52_of_gpt_2_xl():
    """What is published counts a bias for each of W^Q, W^K, W^V and W^O; the book has none."""
    gpt_2_xl = TransformerConfig(50257, 1024, 1600, 25, 48, activation="gelu")
    count = count_parameters(gpt_2_xl)
    assert count.total == 1_557_611_200 - 48 * 4 * 1600
    assert count.matrices == 1_474_560_000


@pytest.mark.parametrize("layers, d, heads, published", [(12, 768, 12, 124_439_808)])
def test_param_count_8_52_of_gpt_2_small(layers, d, heads, published):
    count = count_parameters(TransformerConfig(50257, 1024, d, heads, layers, activation="gelu"))
    assert count.total == published - layers * 4 * d
