"""GPT-2 (Radford et al. 2019): the book's block with GELU and biases on all products."""

from collections.abc import Iterator
from typing import Any

from slp_transformer.modern.config import ModernConfig
from slp_transformer.modern.hf_mapping.config_reader import HFConfigReader
from slp_transformer.modern.hf_mapping.param_map import ParamMap, check_only, map_norm, map_tensor

PREFIX = "transformer."  # of every name but the head's; files of the bare model go without
ACTIVATIONS = {
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu": "gelu",
    "relu": "relu",
}
DROPOUTS = ("resid_pdrop", "embd_pdrop", "attn_pdrop")  # one here for all: the first
LINEAR_NAMES = {
    "attention.{}_QKV": "attn.c_attn",
    "attention.{}_O": "attn.c_proj",
    "ffn.{}_1": "mlp.c_fc",
    "ffn.{}_2": "mlp.c_proj",
}
IGNORED_BUFFERS = (
    "attn.bias",
    "attn.masked_bias",
)  # masks that older files keep with the weights


def from_hf_config(settings: HFConfigReader) -> ModernConfig:
    """Our configuration of such a model.

    Raises:
        ValueError: if it has a part that we don't have.
    """
    settings.require_value("scale_attn_weights", True)
    settings.refuse_keys(("scale_attn_by_inverse_layer_idx", "add_cross_attention"))
    return ModernConfig(
        vocab_size=settings.get("vocab_size", int, 50257),
        context_length=settings.get("n_positions", int, 1024),
        model_dim=settings.get("n_embd", int, 768),
        num_heads=settings.get("n_head", int, 12),
        num_blocks=settings.get("n_layer", int, 12),
        hidden_dim=settings.get_optional("n_inner", int),
        activation=settings.get_choice("activation_function", ACTIVATIONS, "gelu_new"),
        positions="learned",
        normalization="layer",
        dropout=settings.get(DROPOUTS[0], float, 0.1),
        eps=settings.get("layer_norm_epsilon", float, 1e-5),
        attention_bias=True,
        ffn_bias=True,
        tied=settings.get("tie_word_embeddings", bool, True),
        begin_id=next(iter(settings.get_token_ids("bos_token_id")), None),
        end_ids=settings.get_token_ids("eos_token_id"),
    )


def to_hf_config(config: ModernConfig) -> dict[str, Any]:
    """Return the settings of their config.json for a model of ours.

    Raises:
        ValueError: if GPT-2 has no such part.
    """
    names = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
    d, A = config.model_dim, config.num_heads
    usual = {
        "norm": "pre",
        "normalization": "layer",
        "qk_norm": False,
        "attention_bias": True,
        "ffn_bias": True,
    }
    sizes = {"num_kv_heads": A, "key_dim": d // A, "value_dim": d // A}
    given = {name: size for name, size in sizes.items() if getattr(config, name) is not None}
    check_only("GPT-2", config, **usual, **given)
    if config.activation not in names:
        raise ValueError(f"GPT-2 has no {config.activation}, only {', '.join(names)}.")
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": config.vocab_size,
        "n_positions": config.context_length,
        "n_embd": d,
        "n_head": A,
        "n_layer": config.num_blocks,
        "n_inner": config.hidden_dim,
        "activation_function": names[config.activation],
        "layer_norm_epsilon": config.eps,
        **dict.fromkeys(DROPOUTS, config.dropout),
        "tie_word_embeddings": config.tied,
        "bos_token_id": config.begin_id,
        "eos_token_id": list(config.end_ids) or None,
    }


def param_maps(config: ModernConfig) -> Iterator[ParamMap]:
    """Return the places of our tensors in their files, block by block."""
    yield map_tensor("embedding.tokens.E", f"{PREFIX}wte.weight")
    yield map_tensor("embedding.positions.P", f"{PREFIX}wpe.weight")
    for i in range(config.num_blocks):
        ours, theirs = f"stack.blocks.{i}", f"{PREFIX}h.{i}"
        block = map_norm(f"{ours}.norm_1", f"{theirs}.ln_1", offset=True)
        block |= map_norm(f"{ours}.norm_2", f"{theirs}.ln_2", offset=True)
        for product, name in LINEAR_NAMES.items():
            block |= map_tensor(f"{ours}.{product.format('W')}", f"{theirs}.{name}.weight")
            block |= map_tensor(f"{ours}.{product.format('b')}", f"{theirs}.{name}.bias")
        yield block
    yield map_norm("stack.final_norm", f"{PREFIX}ln_f", offset=True)
    if not config.tied:
        yield map_tensor("E_out", "lm_head.weight")
