"""Llama (Touvron et al. 2023) and its relatives: RMSNorm, RoPE, shared keys and values, SwiGLU."""

from dataclasses import replace
from typing import Any

from slp_transformer.modern.families.family import HFFamily
from slp_transformer.modern.families.rope import read_rope, write_rope
from slp_transformer.modern.hf_config import HFConfigReader, SettingsTable


def read_llama(settings: HFConfigReader) -> dict[str, Any]:
    """Return the settings that are not in the table.

    Raises:
        ValueError: if the model has a part that we don't have.
    """
    for layer in settings.get("layer_types", list, []):
        if layer != "full_attention":
            settings.refuse("layer_types", layer, "only full_attention can be loaded here")
    return read_rope(settings)


LLAMA = HFFamily(
    "llama",
    title="Llama",
    architecture="LlamaForCausalLM",
    settings={
        "vocab_size": ("vocab_size", 32000),
        "context_length": ("max_position_embeddings", 2048),
        "model_dim": ("hidden_size", 4096),
        "num_heads": ("num_attention_heads", 32),
        "num_kv_heads": ("num_key_value_heads", int),
        "key_dim": ("head_dim", int),
        "value_dim": ("head_dim", int),
        "num_blocks": ("num_hidden_layers", 32),
        "hidden_dim": ("intermediate_size", 11008),
        "eps": ("rms_norm_eps", 1e-6),
        "tied": ("tie_word_embeddings", False),
        "attention_bias": ("attention_bias", False),
        "ffn_bias": ("mlp_bias", False),
    },
    activations=("hidden_act", {"silu": "swiglu"}),
    fixed={"norm": "pre", "normalization": "rms", "positions": "rotary"},
    required={
        **{"pretraining_tp": 1, "partial_rotary_factor": 1.0},
        **dict.fromkeys(["rope_interleaved", "use_sliding_window", "sliding_window"], False),
    },
    read=read_llama,
    write=write_rope,
    written=("rope_base", "rope_scaling"),
    params={
        "embedding.tokens.E": "model.embed_tokens",
        "stack.blocks.#.norm_1": "model.layers.#.input_layernorm",
        "stack.blocks.#.norm_2": "model.layers.#.post_attention_layernorm",
        "stack.blocks.#.attention.QKV": (
            "model.layers.#.self_attn.q_proj",
            "model.layers.#.self_attn.k_proj",
            "model.layers.#.self_attn.v_proj",
        ),
        "stack.blocks.#.attention.O": "model.layers.#.self_attn.o_proj",
        "stack.blocks.#.attention.norm_Q": "model.layers.#.self_attn.q_norm",
        "stack.blocks.#.attention.norm_K": "model.layers.#.self_attn.k_norm",
        "stack.blocks.#.ffn.1": "model.layers.#.mlp.gate_proj",
        "stack.blocks.#.ffn.2": "model.layers.#.mlp.up_proj",
        "stack.blocks.#.ffn.3": "model.layers.#.mlp.down_proj",
        "stack.final_norm": "model.norm",
        "E_out": "lm_head",
    },
    prefix="model.",
    tied={"lm_head.weight": "model.embed_tokens.weight"},
    ignored=("rotary_emb.inv_freq",),
)


def llama_settings(leave_out: tuple[str, ...] = (), **others: tuple[str, Any]) -> SettingsTable:
    """Return Llama's settings without some, and with others in their place."""
    kept = {ours: place for ours, place in LLAMA.settings.items() if ours not in leave_out}
    return kept | others


# --- Mistral (Jiang et al. 2023): Llama with windows, which not all of its models have -----------


def read_mistral(settings: HFConfigReader) -> dict[str, Any]:
    """Return the settings that are not in the table.

    Raises:
        ValueError: if the model has a part that we don't have.
    """
    if "sliding_window" not in settings.content:
        settings.refuse("sliding_window", 4096, "it is Mistral's default; null is none")
    return read_llama(settings)


MISTRAL = replace(
    LLAMA,
    model_type="mistral",
    title="Mistral",
    architecture="MistralForCausalLM",
    settings=llama_settings(
        ("attention_bias", "ffn_bias"),
        context_length=("max_position_embeddings", 131072),
        hidden_dim=("intermediate_size", 14336),
        num_kv_heads=("num_key_value_heads", 8),
    ),
    read=read_mistral,
)


# --- Qwen2 (Yang et al. 2024): biases of queries, keys and values ---------------------------------

QWEN2 = replace(
    LLAMA,
    model_type="qwen2",
    title="Qwen2",
    architecture="Qwen2ForCausalLM",
    settings=llama_settings(
        ("attention_bias", "ffn_bias", "key_dim", "value_dim"),
        vocab_size=("vocab_size", 151936),
        context_length=("max_position_embeddings", 32768),
        hidden_dim=("intermediate_size", 22016),
        num_kv_heads=("num_key_value_heads", 32),
    ),
    fixed=LLAMA.fixed | {"attention_bias": "qkv"},
    # Without use_sliding_window a sliding_window says nothing.
    required={name: usual for name, usual in LLAMA.required.items() if name != "sliding_window"},
)


# --- Qwen3 (arXiv 2505.09388): each head's queries and keys are normalized ------------------------

QWEN3 = replace(
    QWEN2,
    model_type="qwen3",
    title="Qwen3",
    architecture="Qwen3ForCausalLM",
    settings=QWEN2.settings
    | {"key_dim": ("head_dim", 128), "value_dim": ("head_dim", 128)}
    | {"attention_bias": ("attention_bias", False)},
    fixed=LLAMA.fixed | {"qk_norm": True},
)
