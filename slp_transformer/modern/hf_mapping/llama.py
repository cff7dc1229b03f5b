"""Llama (Touvron et al. 2023), Mistral, Qwen2 and Qwen3: RMSNorm, RoPE, shared keys, SwiGLU."""

from collections.abc import Iterator
from typing import Any

from slp_transformer.feedforward import SwiGLU
from slp_transformer.modern.config import ModernConfig
from slp_transformer.modern.hf_mapping.config_reader import HFConfigReader
from slp_transformer.modern.hf_mapping.param_map import (
    ParamMap,
    check_only,
    map_linear,
    map_norm,
    map_qkv,
    map_tensor,
)
from slp_transformer.modern.rotary import LinearRopeScaling, Llama3RopeScaling, RopeScaling

PREFIX = "model."
IGNORED_BUFFERS = ("rotary_emb.inv_freq",)
# What holds where config.json does not say: vocabulary, window, feedforward layer, key-value heads.
DEFAULTS = {
    "llama": (32000, 2048, 11008, None),
    "mistral": (32000, 131072, 14336, 8),
    "qwen2": (151936, 32768, 22016, 32),
    "qwen3": (151936, 32768, 22016, 32),
}
QWEN3_HEAD_DIM = 128
KNOWN_ROPE_KEYS = {
    "type",
    "rope_type",
    "rope_theta",
    "partial_rotary_factor",
    "factor",
    "low_freq_factor",
}
KNOWN_ROPE_KEYS |= {"high_freq_factor", "original_max_position_embeddings"}


def from_hf_config(settings: HFConfigReader) -> ModernConfig:
    """Our configuration of such a model.

    Raises:
        ValueError: if it has a part that we don't have.
    """
    kind = settings.get("model_type", str)
    vocab_size, window, hidden_dim, num_kv_heads = DEFAULTS[kind]
    settings.require_value("hidden_act", "silu")
    settings.require_value("pretraining_tp", 1)
    settings.require_value("partial_rotary_factor", 1.0)
    settings.refuse_keys(("rope_interleaved", "use_sliding_window"))
    if not kind.startswith("qwen"):  # there it is a size that use_sliding_window switches on
        settings.refuse_keys(("sliding_window",))
    if kind == "mistral" and "sliding_window" not in settings.content:
        settings.refuse("sliding_window", 4096, "it is Mistral's default; null is none")
    for layer in settings.get_list("layer_types"):
        if layer != "full_attention":
            settings.refuse("layer_types", layer, "only full_attention can be loaded here")
    num_heads = settings.get("num_attention_heads", int, 32)
    usual = QWEN3_HEAD_DIM if kind == "qwen3" else None
    head_dim = None if kind == "qwen2" else settings.get_optional("head_dim", int) or usual
    bias = "qkv" if kind == "qwen2" else False
    if kind in ("llama", "qwen3"):
        bias = settings.get("attention_bias", bool, False)
    base, long = read_rope(settings)
    return ModernConfig(
        vocab_size=settings.get("vocab_size", int, vocab_size),
        context_length=settings.get("max_position_embeddings", int, window),
        model_dim=settings.get("hidden_size", int, 4096),
        num_heads=num_heads,
        num_kv_heads=settings.get("num_key_value_heads", int, num_kv_heads or num_heads),
        num_blocks=settings.get("num_hidden_layers", int, 32),
        key_dim=head_dim,
        value_dim=head_dim,
        hidden_dim=settings.get("intermediate_size", int, hidden_dim),
        eps=settings.get("rms_norm_eps", float, 1e-6),
        qk_norm=kind == "qwen3",
        attention_bias=bias,
        ffn_bias=kind == "llama" and settings.get("mlp_bias", bool, False),
        tied=settings.get("tie_word_embeddings", bool, False),
        rope_base=base,
        rope_scaling=long,
        begin_id=next(iter(settings.get_token_ids("bos_token_id")), None),
        end_ids=settings.get_token_ids("eos_token_id"),
    )


def read_rope(settings: HFConfigReader) -> tuple[float, RopeScaling | None]:
    """Base of the frequencies, and how they are stretched; in the older form or the newer.

    Raises:
        ValueError: if they are stretched in a way that we don't have.
    """
    said = settings.get_dict("rope_scaling") | settings.get_dict("rope_parameters")
    rope = HFConfigReader(said, f"{settings.source}, rope_parameters")
    if unknown := set(said) - KNOWN_ROPE_KEYS:
        rope.refuse(min(unknown), said[min(unknown)], "there is no such part here")
    base = rope.get_optional("rope_theta", float) or settings.get("rope_theta", float, 10000.0)
    rope.require_value("partial_rotary_factor", 1.0)
    kind = rope.get_optional("rope_type", str) or rope.get("type", str, "default")
    if kind == "default":
        return base, None
    if kind == "linear":
        return base, LinearRopeScaling(rope.get("factor", float))
    if kind != "llama3":
        rope.refuse("rope_type", kind, 'known are "default", "linear" and "llama3"')
    names = ("factor", "low_freq_factor", "high_freq_factor")
    old = rope.get("original_max_position_embeddings", int)
    return base, Llama3RopeScaling(*(rope.get(name, float) for name in names), old)


def to_hf_config(config: ModernConfig) -> dict[str, Any]:
    """Return the settings of their config.json for a model of ours.

    Raises:
        ValueError: if none of Llama, Qwen2 and Qwen3 has such a part.
    """
    usual = {"norm": "pre", "normalization": "rms", "positions": "rotary", "activation": "swiglu"}
    kind = "qwen3" if config.qk_norm else "qwen2" if config.attention_bias == "qkv" else "llama"
    key_dim = config.key_dim or config.model_dim // config.num_heads
    value_dim = config.value_dim or config.model_dim // config.num_heads
    check_only(kind, config, **usual)
    missing = {
        "value_dim of its own": value_dim != key_dim,
        "biases in its feedforward layers": kind != "llama" and config.ffn_bias,
        "key_dim of its own": kind == "qwen2" and key_dim * config.num_heads != config.model_dim,
        "output without a bias beside others with one": kind == "qwen3"
        and config.attention_bias == "qkv",
    }
    for part, found in missing.items():
        if found:
            raise ValueError(f"{kind} has no {part}.")
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": config.rope_base}
    long = config.rope_scaling
    if isinstance(long, LinearRopeScaling):
        rope |= {"rope_type": "linear", "factor": long.factor}
    elif isinstance(long, Llama3RopeScaling):
        rope |= {
            "rope_type": "llama3",
            "factor": long.factor,
            "low_freq_factor": long.low_freq_factor,
        }
        rope |= {
            "high_freq_factor": long.high_freq_factor,
            "original_max_position_embeddings": long.original_context_length,
        }
    said = {
        "architectures": [f"{kind.capitalize()}ForCausalLM"],
        "model_type": kind,
        "vocab_size": config.vocab_size,
        "max_position_embeddings": config.context_length,
        "hidden_size": config.model_dim,
        "intermediate_size": config.hidden_dim or SwiGLU.default_hidden_dim(config.model_dim),
        "num_hidden_layers": config.num_blocks,
        "num_attention_heads": config.num_heads,
        "num_key_value_heads": config.num_kv_heads or config.num_heads,
        "head_dim": key_dim,
        "hidden_act": "silu",
        "rms_norm_eps": config.eps,
        "attention_bias": config.attention_bias,
        "tie_word_embeddings": config.tied,
        "rope_parameters": rope,
        "rope_theta": config.rope_base,  # here and below for readers of the older form
        "rope_scaling": None if config.rope_scaling is None else rope,
        "bos_token_id": config.begin_id,
        "eos_token_id": list(config.end_ids) or None,
    }
    if kind == "qwen2":  # its biases are no choice, nor is the size of its heads
        del said["attention_bias"], said["head_dim"]
    return said | {"mlp_bias": config.ffn_bias} if kind == "llama" else said


def param_maps(config: ModernConfig) -> Iterator[ParamMap]:
    """Return the places of our tensors in their files, block by block."""
    yield map_tensor("embedding.tokens.E", f"{PREFIX}embed_tokens.weight")
    for i in range(config.num_blocks):
        ours, theirs = f"stack.blocks.{i}", f"{PREFIX}layers.{i}"
        block = map_norm(f"{ours}.norm_1", f"{theirs}.input_layernorm", offset=False)
        block |= map_norm(f"{ours}.norm_2", f"{theirs}.post_attention_layernorm", offset=False)
        names = tuple(f"{theirs}.self_attn.{letter}_proj" for letter in "qkv")
        block |= map_qkv(f"{ours}.attention", names, config)
        b = f"{ours}.attention.b_O" if config.attention_bias is True else None
        block |= map_linear(f"{ours}.attention.W_O", b, f"{theirs}.self_attn.o_proj")
        if config.qk_norm:
            for letter in "QK":
                name = f"{theirs}.self_attn.{letter.lower()}_norm"
                block |= map_norm(f"{ours}.attention.norm_{letter}", name, offset=False)
        for number, name in ((1, "gate"), (2, "up"), (3, "down")):
            b = f"{ours}.ffn.b_{number}" if config.ffn_bias else None
            block |= map_linear(f"{ours}.ffn.W_{number}", b, f"{theirs}.mlp.{name}_proj")
        yield block
    yield map_norm("stack.final_norm", f"{PREFIX}norm", offset=False)
    if not config.tied:
        yield map_tensor("E_out", "lm_head.weight")
