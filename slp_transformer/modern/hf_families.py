"""GPT-2, Llama and its relatives, and BERT: their settings and the names of their tensors."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from slp_transformer.feedforward import SwiGLU
from slp_transformer.modern.bert import BertConfig
from slp_transformer.modern.config import ModernConfig, RopeScaling
from slp_transformer.modern.hf_config import HFConfigReader, SettingsTable


@dataclass(frozen=True)
class HFTensor:
    """A tensor of a published model, which is ours or some of its columns.

    Attributes:
        name: its name there.
        transposed: whether it has rows for outputs, as in `torch.nn.Linear`.
        columns: how many columns of ours it is; None for all.
    """

    name: str
    transposed: bool = False
    columns: int | None = None


@dataclass(frozen=True)
class HFFamily:
    """A family of published models.

    Attributes:
        model_type: its name in config.json.
        settings: what is read and written as it is.
        activations: its setting for the activation, and ours for each of its words; the first is
            the default.
        fixed: settings of ours that it has in one way only.
        required: settings of its own that can be loaded in one way only.
        read: our settings that take more than a name.
        write: its settings that take more than a name; refuses what it has no place for.
        params: for modules of ours its modules, "#" standing for the number of a block; three of
            them where its queries, keys and values are matrices of their own.
        prefix: how names of tensors begin, but the head's; files of the bare model go without.
        tied: tensors that a file may hold a second time, if the head is E.
        ignored: endings of names that are not loaded.
        transposed: whether its matrices have rows for outputs, as in `torch.nn.Linear`.
        config_class: our class of its configuration.
    """

    model_type: str
    settings: SettingsTable
    activations: tuple[str, dict[str, str]]
    fixed: dict[str, Any]
    required: dict[str, Any]
    read: Callable[[HFConfigReader], dict[str, Any]]
    write: Callable[[Any], dict[str, Any]]
    params: dict[str, str | tuple[str, str, str]]
    prefix: str
    tied: dict[str, str]
    ignored: tuple[str, ...]
    transposed: bool = True
    config_class: type[ModernConfig] = ModernConfig

    def read_config(self, settings: HFConfigReader) -> ModernConfig:
        """Return our configuration of such a model.

        Raises:
            ValueError: if it has a part that we don't have.
        """
        settings.require(**self.required, quantization_config=False)
        found = settings.read(self.settings) | self.fixed | settings.read_token_ids()
        name, known = self.activations
        found["activation"] = settings.get_choice(name, known, next(iter(known)))
        return self.config_class(**found | self.read(settings))

    def write_config(self, config: ModernConfig) -> dict[str, Any]:
        """Return the settings of config.json for a model of ours.

        Raises:
            ValueError: if the family has no such part.
        """
        for name, value in self.fixed.items():
            if getattr(config, name) != value:
                ours = getattr(config, name)
                raise ValueError(f"{self.model_type} has no {name} = {ours!r}, only {value!r}.")
        activation, known = self.activations
        words = [word for word, ours in known.items() if ours == config.activation]
        if not words:
            only = ", ".join(dict.fromkeys(known.values()))
            raise ValueError(f"{self.model_type} has no {config.activation}, only {only}.")
        return {
            "model_type": self.model_type,
            activation: words[0],
            **{theirs: getattr(config, ours) for ours, (theirs, _) in self.settings.items()},
            "bos_token_id": config.begin_id,
            "eos_token_id": list(config.end_ids) or None,
            **self.write(config),
        }

    def find_param(self, ours: str, config: ModernConfig) -> tuple[HFTensor, ...]:
        """Return the tensors that one of ours is made of, side by side."""
        owner, _, leaf = ours.rpartition(".")
        if leaf in ("gamma", "beta"):
            module = owner
        else:
            module = f"{owner}.{leaf[2:]}".lstrip(".") if leaf[:2] in ("W_", "b_") else ours
        block = re.search(r"blocks\.(\d+)", module)
        number = block[1] if block else ""
        place = self.params[re.sub(r"blocks\.\d+", "blocks.#", module)]
        suffix = "bias" if leaf == "beta" or leaf.startswith("b_") else "weight"
        names = [place] if isinstance(place, str) else place
        widths = [None] if isinstance(place, str) else config.qkv_widths()
        transposed = self.transposed and leaf.startswith("W_")
        return tuple(
            HFTensor(f"{name.replace('#', number)}.{suffix}", transposed, width)
            for name, width in zip(names, widths, strict=True)
        )


# --- GPT-2 (Radford et al. 2019): the book's block with GELU and biases on all products ----------

GPT2_ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh"}
GPT2_ACTIVATIONS |= {name: name for name in ("gelu", "relu", "relu2")}


def write_gpt2(config: ModernConfig) -> dict[str, Any]:
    """Return the settings of GPT-2 that are not in its table.

    Raises:
        ValueError: if it has no such part.
    """
    if set(config.qkv_widths()) != {config.model_dim}:
        raise ValueError("gpt2 has no num_kv_heads, key_dim or value_dim of its own.")
    return {
        "architectures": ["GPT2LMHeadModel"],
        "embd_pdrop": config.dropout,
        "attn_pdrop": config.dropout,
    }


LAYER_NORMS = {"normalization": "layer", "qk_norm": False, "attention_bias": True, "ffn_bias": True}
GPT2 = HFFamily(
    "gpt2",
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
    activations=("activation_function", GPT2_ACTIVATIONS),
    fixed={"norm": "pre", **LAYER_NORMS},
    required={
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "add_cross_attention": False,
    },
    read=lambda settings: {"positions": "learned"},  # sinusoids are written as learned ones
    write=write_gpt2,
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


# --- BERT (Devlin et al. 2019): post-norm, bidirectional, with a row for each segment ------------


def write_bert(config: BertConfig) -> dict[str, Any]:
    """Return the settings of BERT that are not in its table."""
    return {
        "architectures": ["BertForMaskedLM"],
        "intermediate_size": config.hidden_dim or 4 * config.model_dim,
        "attention_probs_dropout_prob": config.dropout,
        "tie_word_embeddings": True,
    }


BERT = HFFamily(
    "bert",
    settings={
        "vocab_size": ("vocab_size", 30522),
        "context_length": ("max_position_embeddings", 512),
        "model_dim": ("hidden_size", 768),
        "num_heads": ("num_attention_heads", 12),
        "num_blocks": ("num_hidden_layers", 12),
        "hidden_dim": ("intermediate_size", 3072),
        "dropout": ("hidden_dropout_prob", 0.1),  # of two shares, which are one here
        "eps": ("layer_norm_eps", 1e-12),
        "num_segments": ("type_vocab_size", 2),
    },
    activations=("hidden_act", {"gelu": "gelu", "gelu_new": "gelu_tanh", "relu": "relu"}),
    fixed={"norm": "post", "positions": "learned", **LAYER_NORMS},
    required={
        "position_embedding_type": "absolute",
        "tie_word_embeddings": True,
        "is_decoder": False,
        "add_cross_attention": False,
    },
    read=lambda settings: {},
    write=write_bert,
    params={
        "embedding.tokens.E": "bert.embeddings.word_embeddings",
        "embedding.positions.P": "bert.embeddings.position_embeddings",
        "S": "bert.embeddings.token_type_embeddings",
        "norm_0": "bert.embeddings.LayerNorm",
        "stack.blocks.#.norm_1": "bert.encoder.layer.#.attention.output.LayerNorm",
        "stack.blocks.#.norm_2": "bert.encoder.layer.#.output.LayerNorm",
        "stack.blocks.#.attention.QKV": (
            "bert.encoder.layer.#.attention.self.query",
            "bert.encoder.layer.#.attention.self.key",
            "bert.encoder.layer.#.attention.self.value",
        ),
        "stack.blocks.#.attention.O": "bert.encoder.layer.#.attention.output.dense",
        "stack.blocks.#.ffn.1": "bert.encoder.layer.#.intermediate.dense",
        "stack.blocks.#.ffn.2": "bert.encoder.layer.#.output.dense",
        "head": "cls.predictions.transform.dense",
        "norm_head": "cls.predictions.transform.LayerNorm",
        "words": "cls.predictions",
    },
    prefix="bert.",
    tied={
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    ignored=(
        "embeddings.position_ids",
        # The head for the next sentence, which the first BERTs hold too.
        *("pooler.dense.weight", "pooler.dense.bias"),
        *("seq_relationship.weight", "seq_relationship.bias"),
    ),
    config_class=BertConfig,
)


# --- Llama (Touvron et al. 2023), Mistral, Qwen2 and Qwen3: RMSNorm, RoPE, shared keys, SwiGLU ----

ORIGINAL_LENGTH_KEY = "original_max_position_embeddings"
SCALING_KEYS = {
    "linear": ["factor"],
    "llama3": ["factor", "low_freq_factor", "high_freq_factor"],
}


def read_rope(settings: HFConfigReader) -> dict[str, Any]:
    """Return the base of the frequencies and their scaling, in the older form or the newer.

    Raises:
        ValueError: if they are scaled in a way that we don't have, or in two ways.
    """
    older, newer = (settings.get(name, dict, {}) for name in ("rope_scaling", "rope_parameters"))
    same = (newer.get("rope_type" if name == "type" else name) == older[name] for name in older)
    if newer and not all(same):
        settings.refuse("rope_scaling", older, "rope_parameters say otherwise: keep one of the two")
    content = older | newer
    rope = HFConfigReader(content, f"{settings.source}, rope_parameters")
    known = {"type", "rope_type", "rope_theta", "partial_rotary_factor", ORIGINAL_LENGTH_KEY}
    if unknown := set(content) - known - set(SCALING_KEYS["llama3"]):
        rope.refuse(min(unknown), content[min(unknown)], "there is no such part here")
    base = rope.get_optional("rope_theta", float) or settings.get("rope_theta", float, 10000.0)
    rope.require(partial_rotary_factor=1.0)
    rope_type = rope.get_optional("rope_type", str) or rope.get("type", str, "default")
    if rope_type == "default":
        return {"rope_base": base}
    if rope_type not in SCALING_KEYS:
        rope.refuse("rope_type", rope_type, f"known are default, {', '.join(SCALING_KEYS)}")
    numbers = {name: rope.get(name, float) for name in SCALING_KEYS[rope_type]}
    if rope_type == "llama3":
        numbers["original_context_length"] = rope.get(ORIGINAL_LENGTH_KEY, int)
    return {"rope_base": base, "rope_scaling": RopeScaling(rope_type, **numbers)}


def write_rope(config: ModernConfig) -> dict[str, Any]:
    """Return the settings of the rotations, in the newer form and the older."""
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": config.rope_base}
    written = {"rope_parameters": rope, "rope_theta": config.rope_base}
    if (scaling := config.rope_scaling) is not None:
        rope |= {name: getattr(scaling, name) for name in SCALING_KEYS[scaling.rope_type]}
        rope["rope_type"] = scaling.rope_type
        written["rope_scaling"] = rope
        if scaling.rope_type == "llama3":
            rope[ORIGINAL_LENGTH_KEY] = scaling.original_context_length
    return written


def read_llama(kind: str, settings: HFConfigReader) -> dict[str, Any]:
    """Return the settings that are not in the table.

    Raises:
        ValueError: if the model has a part that we don't have.
    """
    if kind == "mistral" and "sliding_window" not in settings.content:
        settings.refuse("sliding_window", 4096, "it is Mistral's default; null is none")
    for layer in settings.get("layer_types", list, []):
        if layer != "full_attention":
            settings.refuse("layer_types", layer, "only full_attention can be loaded here")
    heads = settings.get("num_attention_heads", int, 32)
    usual = {"llama": heads, "mistral": 8}.get(kind, 32)
    found = {"num_kv_heads": settings.get("num_key_value_heads", int, usual), **read_rope(settings)}
    if kind == "qwen2":
        return found
    head_dim = settings.get_optional("head_dim", int) or (128 if kind == "qwen3" else None)
    return found | {"key_dim": head_dim, "value_dim": head_dim}


def write_llama(kind: str, config: ModernConfig) -> dict[str, Any]:
    """Return the settings that are not in the table.

    Raises:
        ValueError: if the family has no such part.
    """
    key_dim = config.key_dim or config.model_dim // config.num_heads
    value_dim = config.value_dim or config.model_dim // config.num_heads
    missing = {
        "value_dim of its own": value_dim != key_dim,
        "biases in its feedforward layers": kind != "llama" and config.ffn_bias,
        "key_dim of its own": kind == "qwen2" and key_dim * config.num_heads != config.model_dim,
        "output without a bias": kind == "qwen3" and config.attention_bias == "qkv",
    }
    for part, found in missing.items():
        if found:
            raise ValueError(f"{kind} has no {part}.")
    return {
        "architectures": [f"{kind.capitalize()}ForCausalLM"],
        "intermediate_size": config.hidden_dim or SwiGLU.default_hidden_dim(config.model_dim),
        "num_key_value_heads": config.num_kv_heads or config.num_heads,
        **write_rope(config),
        **({} if kind == "qwen2" else {"head_dim": key_dim}),
    }


def llama_family(
    kind: str,
    fixed: dict[str, Any],
    vocab_size: int,
    context_length: int,
    hidden_dim: int,
    **more: tuple[str, Any],
) -> HFFamily:
    """Return Llama or one of its relatives.

    Args:
        kind: its `model_type`.
        fixed: settings of ours that it has in one way only.
        vocab_size: the default.
        context_length: likewise.
        hidden_dim: likewise.
        **more: settings that not all have.
    """
    attention = "model.layers.#.self_attn."
    qkv = (f"{attention}q_proj", f"{attention}k_proj", f"{attention}v_proj")
    fixed = {"norm": "pre", "normalization": "rms", "positions": "rotary", **fixed}
    # Without use_sliding_window a Qwen's sliding_window says nothing.
    windows = ["use_sliding_window"] if "qwen" in kind else ["use_sliding_window", "sliding_window"]
    return HFFamily(
        kind,
        settings={
            "vocab_size": ("vocab_size", vocab_size),
            "context_length": ("max_position_embeddings", context_length),
            "model_dim": ("hidden_size", 4096),
            "num_heads": ("num_attention_heads", 32),
            "num_blocks": ("num_hidden_layers", 32),
            "hidden_dim": ("intermediate_size", hidden_dim),
            "eps": ("rms_norm_eps", 1e-6),
            "tied": ("tie_word_embeddings", False),
            **more,
        },
        activations=("hidden_act", {"silu": "swiglu"}),
        fixed=fixed,
        required={
            **{"pretraining_tp": 1, "partial_rotary_factor": 1.0},
            **dict.fromkeys(["rope_interleaved", *windows], False),
        },
        read=partial(read_llama, kind),
        write=partial(write_llama, kind),
        params={
            "embedding.tokens.E": "model.embed_tokens",
            "stack.blocks.#.norm_1": "model.layers.#.input_layernorm",
            "stack.blocks.#.norm_2": "model.layers.#.post_attention_layernorm",
            "stack.blocks.#.attention.QKV": qkv,
            "stack.blocks.#.attention.O": f"{attention}o_proj",
            "stack.blocks.#.attention.norm_Q": f"{attention}q_norm",
            "stack.blocks.#.attention.norm_K": f"{attention}k_norm",
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


BIAS, FFN_BIAS = ("attention_bias", False), ("mlp_bias", False)
QWEN = (151936, 32768, 22016)
LLAMAS = [
    llama_family("llama", {}, 32000, 2048, 11008, attention_bias=BIAS, ffn_bias=FFN_BIAS),
    llama_family("mistral", {}, 32000, 131072, 14336),
    llama_family("qwen2", {"attention_bias": "qkv"}, *QWEN),
    llama_family("qwen3", {"qk_norm": True}, *QWEN, attention_bias=BIAS),
]
HF_FAMILIES = {family.model_type: family for family in [GPT2, *LLAMAS, BERT]}


def choose_family(config: ModernConfig) -> HFFamily:
    """Return the family that has the parts of a model of ours, as far as one has."""
    if isinstance(config, BertConfig):
        return BERT
    if config.positions != "rotary":
        return GPT2
    kind = "qwen3" if config.qk_norm else "qwen2" if config.attention_bias == "qkv" else "llama"
    return HF_FAMILIES[kind]
