"""Llama (Touvron et al. 2023) and Qwen3 (Yang et al. 2025): RMSNorm, RoPE, shared keys, SwiGLU."""

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
from slp_transformer.modern.rotary import Llama3RopeScaling

PREFIX = "model."
IGNORED_BUFFERS = ("rotary_emb.inv_freq",)
QWEN3_HEAD_DIM = 128  # of Qwen3, where config.json does not say
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
    qwen = settings.get("model_type", str) == "qwen3"
    settings.require_value("hidden_act", "silu")
    settings.require_value("pretraining_tp", 1)
    settings.require_value("partial_rotary_factor", 1.0)
    settings.refuse_keys(("rope_interleaved", "use_sliding_window"))
    if not qwen:  # there it is a size that use_sliding_window switches on
        settings.refuse_keys(("sliding_window",))
    for kind in settings.get_list("layer_types"):
        if kind != "full_attention":
            settings.refuse("layer_types", kind, "only full_attention can be loaded here")
    num_heads = settings.get("num_attention_heads", int, 32)
    head_dim = settings.get_optional("head_dim", int) or (QWEN3_HEAD_DIM if qwen else None)
    base, long = read_rope(settings)
    return ModernConfig(
        vocab_size=settings.get("vocab_size", int, 151936 if qwen else 32000),
        context_length=settings.get("max_position_embeddings", int, 32768 if qwen else 2048),
        model_dim=settings.get("hidden_size", int, 4096),
        num_heads=num_heads,
        num_kv_heads=settings.get("num_key_value_heads", int, num_heads),
        num_blocks=settings.get("num_hidden_layers", int, 32),
        key_dim=head_dim,
        value_dim=head_dim,
        hidden_dim=settings.get("intermediate_size", int, 22016 if qwen else 11008),
        eps=settings.get("rms_norm_eps", float, 1e-6),
        qk_norm=qwen,
        attention_bias=settings.get("attention_bias", bool, False),
        ffn_bias=not qwen and settings.get("mlp_bias", bool, False),
        tied=settings.get("tie_word_embeddings", bool, False),
        rope_base=base,
        rope_scaling=long,
        begin_id=next(iter(settings.get_token_ids("bos_token_id")), None),
        end_ids=settings.get_token_ids("eos_token_id"),
    )


def read_rope(settings: HFConfigReader) -> tuple[float, Llama3RopeScaling | None]:
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
    if kind != "llama3":
        rope.refuse("rope_type", kind, 'known are "default" and "llama3"')
    names = ("factor", "low_freq_factor", "high_freq_factor")
    old = rope.get("original_max_position_embeddings", int)
    return base, Llama3RopeScaling(*(rope.get(name, float) for name in names), old)


def to_hf_config(config: ModernConfig) -> dict[str, Any]:
    """Return the settings of their config.json for a model of ours.

    Raises:
        ValueError: if neither Llama nor Qwen3 has such a part.
    """
    usual = {"norm": "pre", "normalization": "rms", "positions": "rotary", "activation": "swiglu"}
    kind = "qwen3" if config.qk_norm else "llama"
    key_dim = config.key_dim or config.model_dim // config.num_heads
    value_dim = config.value_dim or config.model_dim // config.num_heads
    check_only(kind, config, **usual)
    if value_dim != key_dim or (kind == "qwen3" and config.ffn_bias):
        what = (
            "biases in its feedforward layers" if value_dim == key_dim else "value_dim of its own"
        )
        raise ValueError(f"{kind} has no {what}.")
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": config.rope_base}
    if (long := config.rope_scaling) is not None:
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
        "architectures": ["Qwen3ForCausalLM" if config.qk_norm else "LlamaForCausalLM"],
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
    return said if config.qk_norm else said | {"mlp_bias": config.ffn_bias}


def param_maps(config: ModernConfig) -> Iterator[ParamMap]:
    """Return the places of our tensors in their files, block by block."""
    yield map_tensor("embedding.tokens.E", f"{PREFIX}embed_tokens.weight")
    for i in range(config.num_blocks):
        ours, theirs = f"stack.blocks.{i}", f"{PREFIX}layers.{i}"
        block = map_norm(f"{ours}.norm_1", f"{theirs}.input_layernorm", offset=False)
        block |= map_norm(f"{ours}.norm_2", f"{theirs}.post_attention_layernorm", offset=False)
        names = tuple(f"{theirs}.self_attn.{letter}_proj" for letter in "qkv")
        block |= map_qkv(f"{ours}.attention", names, config)
        b = f"{ours}.attention.b_O" if config.attention_bias else None
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
