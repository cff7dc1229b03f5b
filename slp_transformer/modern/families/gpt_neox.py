"""GPT-NeoX (Black et al. 2022) and Pythia: parallel sublayers, and a share of columns rotated."""

from typing import Any

from slp_transformer.modern.config import ModernConfig
from slp_transformer.modern.families.family import HFFamily
from slp_transformer.modern.families.rope import rope_from_hf, rope_to_hf
from slp_transformer.modern.hf_config import HFConfigReader


def gpt_neox_extras_from_hf(settings: HFConfigReader) -> dict[str, Any]:
    """Return the settings that are not in the table.

    Raises:
        ValueError: if the model has a part that we don't have.
    """
    share = settings.get("rotary_pct", float, 0.25)
    norm = "parallel" if settings.get("use_parallel_residual", bool, True) else "pre"
    return {"norm": norm, **rope_from_hf(settings, "rotary_emb_base", share)}


def gpt_neox_extras_to_hf(config: ModernConfig) -> dict[str, Any]:
    """Return the settings that are not in the table, those of rotations under older names too."""
    written = rope_to_hf(config)
    written["rope_parameters"]["partial_rotary_factor"] = config.rotary_share
    written |= {"rotary_emb_base": written.pop("rope_theta"), "rotary_pct": config.rotary_share}
    return written | {"use_parallel_residual": config.norm != "pre"}


BLOCK = "gpt_neox.layers.#."
GPT_NEOX = HFFamily(
    "gpt_neox",
    title="GPT-NeoX, Pythia",
    architecture="GPTNeoXForCausalLM",
    settings={
        "vocab_size": ("vocab_size", 50432),
        "context_length": ("max_position_embeddings", 2048),
        "model_dim": ("hidden_size", 6144),
        "num_heads": ("num_attention_heads", 64),
        "num_blocks": ("num_hidden_layers", 44),
        "hidden_dim": ("intermediate_size", 24576),
        "eps": ("layer_norm_eps", 1e-5),
        "tied": ("tie_word_embeddings", False),
        "attention_bias": ("attention_bias", True),
    },
    activations=(
        "hidden_act",
        {"gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_fast": "gelu_tanh", "relu": "relu"},
    ),
    fixed={"norm": "parallel", "positions": "rotary", "normalization": "layer", "ffn_bias": True},
    stored={"norm": ("pre",)},
    required={},
    read=gpt_neox_extras_from_hf,
    write=gpt_neox_extras_to_hf,
    written=("rope_base", "rope_scaling", "rotary_share"),
    params={
        "embedding.tokens.E": "gpt_neox.embed_in",
        "stack.blocks.#.norm_1": f"{BLOCK}input_layernorm",
        "stack.blocks.#.norm_2": f"{BLOCK}post_attention_layernorm",
        "stack.blocks.#.attention.QKV": f"{BLOCK}attention.query_key_value",
        "stack.blocks.#.attention.O": f"{BLOCK}attention.dense",
        "stack.blocks.#.ffn.1": f"{BLOCK}mlp.dense_h_to_4h",
        "stack.blocks.#.ffn.2": f"{BLOCK}mlp.dense_4h_to_h",
        "stack.final_norm": "gpt_neox.final_layer_norm",
        "E_out": "embed_out",
    },
    prefix="gpt_neox.",
    tied={"embed_out.weight": "gpt_neox.embed_in.weight"},
    ignored=("attention.bias", "attention.masked_bias", "rotary_emb.inv_freq"),  # of older files
    by_head=True,
)
