"""GPT-2 (Radford et al. 2019): the book's block with GELU, and biases on all products."""

from typing import Any

from slp_transformer.modern.config import ModernConfig
from slp_transformer.modern.families.family import HFFamily

LAYER_NORMS = {"normalization": "layer", "attention_bias": True, "ffn_bias": True}


def gpt2_extras_to_hf(config: ModernConfig) -> dict[str, Any]:
    """Return the shares that are dropped, which are one here, and the default of n_inner."""
    return {
        "embd_pdrop": config.dropout,
        "attn_pdrop": config.dropout,
        "n_inner": config.hidden_dim,
    }


GPT2 = HFFamily(
    "gpt2",
    title="GPT-2",
    architecture="GPT2LMHeadModel",
    settings={
        "vocab_size": ("vocab_size", 50257),
        "context_length": ("n_positions", 1024),
        "model_dim": ("n_embd", 768),
        "num_heads": ("n_head", 12),
        "num_blocks": ("n_layer", 12),
        "hidden_dim": ("n_inner", int),
        "dropout": ("resid_pdrop", 0.1),  # of three shares, which are one here
        "eps": ("layer_norm_epsilon", 1e-5),
        "tied": ("tie_word_embeddings", True),
    },
    activations=(
        "activation_function",
        {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh"}
        | {name: name for name in ("gelu", "relu", "relu2")},
    ),
    fixed={"norm": "pre", "positions": "learned", **LAYER_NORMS},
    stored={"positions": ("sinusoidal",)},  # as rows that could have been learned
    required={
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "add_cross_attention": False,
    },
    write=gpt2_extras_to_hf,
    params={
        "embedding.tokens.E": "transformer.wte",
        "embedding.positions.P": "transformer.wpe",
        "stack.blocks.#.norm_1": "transformer.h.#.ln_1",
        "stack.blocks.#.norm_2": "transformer.h.#.ln_2",
        "stack.blocks.#.attention.QKV": "transformer.h.#.attn.c_attn",
        "stack.blocks.#.attention.O": "transformer.h.#.attn.c_proj",
        "stack.blocks.#.ffn.1": "transformer.h.#.mlp.c_fc",
        "stack.blocks.#.ffn.2": "transformer.h.#.mlp.c_proj",
        "stack.final_norm": "transformer.ln_f",
        "E_out": "lm_head",
    },
    prefix="transformer.",
    tied={"lm_head.weight": "transformer.wte.weight"},
    ignored=("attn.bias", "attn.masked_bias"),  # masks that older files keep
    transposed=False,
)
