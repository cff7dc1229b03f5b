"""Llama (Touvron et al. 2023) and its relatives: RMSNorm, RoPE, shared keys and values, SwiGLU."""

from dataclasses import replace
from typing import Any

from slp_transformer.modern.config import ModernConfig
from slp_transformer.modern.families.family import HFFamily
from slp_transformer.modern.families.rope import rope_from_hf, rope_to_hf
from slp_transformer.modern.hf_config import HFConfigReader, SettingsTable

FULL, SLIDING = "full_attention", "sliding_attention"


def llama_extras_from_hf(settings: HFConfigReader, window: int | None = None) -> dict[str, Any]:
    """Return the settings that are not in the table.

    Raises:
        ValueError: if the model has a part that we don't have, or layers have a window and none.
    """
    for layer in settings.get("layer_types", list, []):
        if layer != FULL or window is not None:
            settings.refuse("layer_types", layer, f"only {FULL} can be, with no sliding_window")
    return rope_from_hf(settings)


def windows_from_hf(
    settings: HFConfigReader, window: int | None, layers: list[bool]
) -> dict[str, Any]:
    """Return the windows that tokens see, and the blocks that have some.

    Args:
        settings: those of the model.
        window: the size of its windows; None if it has none.
        layers: for each block whether it has one, if layer_types do not say.

    Raises:
        ValueError: if layer_types are of another kind, or have windows of no size.
    """
    types, known = settings.get("layer_types", list, []), [FULL, *[SLIDING] * (window is not None)]
    for layer in types:
        if layer not in known:
            settings.refuse("layer_types", layer, f"with {window=}, known are {', '.join(known)}")
    has_one = [layer == SLIDING for layer in types] or layers
    blocks = tuple(l for l, windowed in enumerate(has_one) if windowed)
    if window is None or not blocks:
        return {}
    return {"window": window} | ({} if all(has_one) else {"windowed_blocks": blocks})


def windows_to_hf(config: ModernConfig) -> dict[str, Any]:
    """Return the settings of windows in some blocks."""
    layers = [config.window_of(l) for l in range(config.num_blocks)]
    return {
        "use_sliding_window": config.window is not None,
        "sliding_window": config.window,
        "max_window_layers": 0,
        "layer_types": [FULL if window is None else SLIDING for window in layers],
    }


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
    read=llama_extras_from_hf,
    write=rope_to_hf,
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


def llama_settings_table(
    leave_out: tuple[str, ...] = (), **others: tuple[str, Any]
) -> SettingsTable:
    """Return Llama's settings without some, and with others in their place."""
    kept = {ours: place for ours, place in LLAMA.settings.items() if ours not in leave_out}
    return kept | others


# --- Mistral (Jiang et al. 2023): Llama with windows, which not all of its models have -----------


def mistral_extras_from_hf(settings: HFConfigReader) -> dict[str, Any]:
    """Return the settings that are not in the table.

    Raises:
        ValueError: if the model has a part that we don't have.
    """
    window = settings.get_optional("sliding_window", int)
    if "sliding_window" not in settings.content:
        window = 4096
    return llama_extras_from_hf(settings, window) | {"window": window}


WITH_WINDOWS = {name: usual for name, usual in LLAMA.required.items() if "window" not in name}
MISTRAL = replace(
    LLAMA,
    model_type="mistral",
    title="Mistral",
    architecture="MistralForCausalLM",
    settings=llama_settings_table(
        ("attention_bias", "ffn_bias"),
        context_length=("max_position_embeddings", 131072),
        hidden_dim=("intermediate_size", 14336),
        num_kv_heads=("num_key_value_heads", 8),
    ),
    required=WITH_WINDOWS,
    read=mistral_extras_from_hf,
    write=lambda config: rope_to_hf(config) | {"sliding_window": config.window},
    written=(*LLAMA.written, "window"),
)


# --- Qwen2 (Yang et al. 2024): biases of queries, keys and values ---------------------------------


def qwen_from_hf(settings: HFConfigReader) -> dict[str, Any]:
    """Return the settings that are not in the table.

    Raises:
        ValueError: if the model has a part that we don't have.
    """
    window = None
    if settings.get("use_sliding_window", bool, False):  # without it a sliding_window says nothing
        window = settings.get("sliding_window", int, 4096)
    first = settings.content.get("max_window_layers", 28)
    blocks = settings.get("num_hidden_layers", int, 32)
    if type(first) is not int:
        settings.refuse("max_window_layers", first, "it must be a whole number")
    layers = [l >= first for l in range(blocks)]
    return rope_from_hf(settings) | windows_from_hf(settings, window, layers)


QWEN2 = replace(
    LLAMA,
    model_type="qwen2",
    title="Qwen2",
    architecture="Qwen2ForCausalLM",
    settings=llama_settings_table(
        ("attention_bias", "ffn_bias", "key_dim", "value_dim"),
        vocab_size=("vocab_size", 151936),
        context_length=("max_position_embeddings", 32768),
        hidden_dim=("intermediate_size", 22016),
        num_kv_heads=("num_key_value_heads", 32),
    ),
    fixed=LLAMA.fixed | {"attention_bias": "qkv"},
    required=WITH_WINDOWS,
    read=qwen_from_hf,
    write=lambda config: rope_to_hf(config) | windows_to_hf(config),
    written=(*LLAMA.written, "window", "windowed_blocks"),
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


# --- SmolLM3 (2025): Llama whose every fourth block has no rotations ------------------------------


def smollm3_extras_from_hf(settings: HFConfigReader) -> dict[str, Any]:
    """Return the settings that are not in the table.

    Raises:
        ValueError: if the model has a part that we don't have.
    """
    blocks = settings.get("num_hidden_layers", int, 36)
    every = settings.get("no_rope_layer_interval", int, 4)
    rotated = settings.get("no_rope_layers", list, [(l + 1) % every != 0 for l in range(blocks)])
    if any(one not in (0, 1) for one in rotated) or len(rotated) != blocks:
        settings.refuse("no_rope_layers", rotated, f"it must have a 0 or 1 for {blocks} layers")
    window = None
    if settings.get("use_sliding_window", bool, False):
        window = settings.get_optional("sliding_window", int)
    found = {"unrotated_blocks": tuple(l for l, one in enumerate(rotated) if not one)}
    windows = windows_from_hf(settings, window, [not one for one in rotated])
    return found | rope_from_hf(settings, default_base=2e6) | windows


def smollm3_extras_to_hf(config: ModernConfig) -> dict[str, Any]:
    """Return the settings that are not in the table."""
    rotated = [int(l not in config.unrotated_blocks) for l in range(config.num_blocks)]
    return rope_to_hf(config) | windows_to_hf(config) | {"no_rope_layers": rotated}


SMOLLM3 = replace(
    LLAMA,
    model_type="smollm3",
    title="SmolLM3",
    architecture="SmolLM3ForCausalLM",
    settings=llama_settings_table(
        vocab_size=("vocab_size", 128256),
        context_length=("max_position_embeddings", 32768),
        model_dim=("hidden_size", 2048),
        num_heads=("num_attention_heads", 16),
        num_kv_heads=("num_key_value_heads", 4),
        num_blocks=("num_hidden_layers", 36),
        tied=("tie_word_embeddings", True),
    ),
    required=WITH_WINDOWS,
    read=smollm3_extras_from_hf,
    write=smollm3_extras_to_hf,
    written=(*LLAMA.written, "window", "windowed_blocks", "unrotated_blocks"),
)


# --- Phi-3 (Abdin et al. 2024): Llama with windows, and with fewer and larger matrices ------------


def phi3_extras_from_hf(settings: HFConfigReader) -> dict[str, Any]:
    """Return the settings that are not in the table.

    Raises:
        ValueError: if the model has a part that we don't have.
    """
    window = settings.get_optional("sliding_window", int)
    return llama_extras_from_hf(settings, window) | {"window": window}


PHI3 = replace(
    MISTRAL,
    model_type="phi3",
    title="Phi-3",
    architecture="Phi3ForCausalLM",
    settings=llama_settings_table(
        ("attention_bias", "ffn_bias", "key_dim", "value_dim"),
        vocab_size=("vocab_size", 32064),
        context_length=("max_position_embeddings", 4096),
        model_dim=("hidden_size", 3072),
        hidden_dim=("intermediate_size", 8192),
        eps=("rms_norm_eps", 1e-5),
    ),
    read=phi3_extras_from_hf,
    params=LLAMA.params
    | {
        "stack.blocks.#.attention.QKV": "model.layers.#.self_attn.qkv_proj",
        "stack.blocks.#.ffn.1": "model.layers.#.mlp.gate_up_proj[0/2]",
        "stack.blocks.#.ffn.2": "model.layers.#.mlp.gate_up_proj[1/2]",
    },
)


# --- OLMo 2 (arXiv 2501.00656): norms of what sublayers add, and of all heads' queries and keys ---

OLMO2 = replace(
    LLAMA,
    model_type="olmo2",
    title="OLMo 2",
    architecture="Olmo2ForCausalLM",
    settings=llama_settings_table(
        ("ffn_bias", "key_dim", "value_dim"),
        vocab_size=("vocab_size", 50304),
        eps=("rms_norm_eps", 1e-5),
    ),
    fixed=LLAMA.fixed | {"norm": "output", "qk_norm": True, "qk_norm_joint": True},
    params=LLAMA.params
    | {
        "stack.blocks.#.norm_1": "model.layers.#.post_attention_layernorm",
        "stack.blocks.#.norm_2": "model.layers.#.post_feedforward_layernorm",
    },
)
