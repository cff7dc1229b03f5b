"""What the settings of models are called elsewhere, for whoever writes another library's name.

The page Reuse shows `SETTINGS_ELSEWHERE`; Hugging Face's own are in the records of
`slp_transformer.modern.families` too, as what is read from a config.json, and a test compares them.
"""

import inspect
from dataclasses import asdict
from typing import Any

from slp_transformer._internal.docs_sections import see

SETTINGS_ELSEWHERE: dict[str, tuple[str, str, str, str]] = {
    # ours: PyTorch's, nanoGPT's, TransformerLens's; Hugging Face's and others'
    "vocab_size": ("", "vocab_size", "d_vocab", ""),
    "context_length": (
        "",
        "block_size",
        "n_ctx",
        "max_position_embeddings, n_positions, max_seq_len",
    ),
    "model_dim": ("d_model", "n_embd", "d_model", "hidden_size, embed_dim"),
    "num_heads": ("nhead", "n_head", "n_heads", "num_attention_heads"),
    "num_kv_heads": ("", "", "n_key_value_heads", "num_key_value_heads, n_kv_heads"),
    "num_blocks": ("num_layers", "n_layer", "n_layers", "num_hidden_layers"),
    "key_dim, value_dim": ("", "", "d_head", "head_dim"),
    "hidden_dim": ("dim_feedforward", "", "d_mlp", "intermediate_size, n_inner, d_ff"),
    "activation": ("activation", "", "act_fn, gated_mlp", "hidden_act, activation_function"),
    "positions": ("", "", "positional_embedding_type", ""),
    "normalization": ("", "", "normalization_type", ""),
    "norm": ("norm_first", "", "", ""),
    "eps": ("layer_norm_eps", "", "eps", "rms_norm_eps, layer_norm_epsilon, layer_norm_eps"),
    "dropout": ("dropout", "dropout", "", "hidden_dropout_prob, resid_pdrop"),
    "qk_norm": ("", "", "use_qk_norm", ""),
    "attention_bias": ("bias", "bias", "", ""),
    "ffn_bias": ("bias", "bias", "", "mlp_bias"),
    "tied": ("", "", "", "tie_word_embeddings"),
    "rope_base": ("", "", "rotary_base", "rope_theta"),
    "window, windowed_blocks": ("", "", "window_size", "sliding_window"),
    "begin_id": ("", "", "", "bos_token_id"),
    "end_ids": ("", "", "", "eos_token_id"),
    "pad_id": ("", "", "", "pad_token_id"),
    "num_encoder_blocks": ("num_encoder_layers", "", "", ""),
}

OTHERS = {
    "key_dim": "d_k",
    "value_dim": "d_v",
    "learning_rate": "lr",
    "steps": "epochs, num_epochs, num_train_epochs, max_steps, max_iters",
    "batch_size": "per_device_train_batch_size",
    "eval_interval": "eval_steps",
    "max_grad_norm": "grad_clip",
    "schedule": "lr_scheduler_type",
    "warmup_steps": "warmup, warmup_iters",
    "adam_beta2": "beta2",
    "bf16": "fp16",
    "max_new_tokens, sequence_length": "max_length",
    "sequence_length": "max_seq_length",
    "out_dir": "output_dir",
    "init_from": "model, model_name_or_path",
    "lora_rank": "lora_r",
    "temperature": "do_sample",
    "stop": "eos_token, stop_strings",
}
"""What scripts of Hugging Face and nanoGPT call our flags and arguments of `train`; and papers."""


def list_foreign_names() -> dict[str, str]:
    """Return for each name of elsewhere the names of ours."""
    found: dict[str, str] = {}
    rows = {ours: (names,) for ours, names in OTHERS.items()} | SETTINGS_ELSEWHERE
    for ours, theirs in rows.items():
        for name in ", ".join(filter(None, theirs)).split(", "):
            known = found.get(name, "").split(", ")
            found[name] = ", ".join(dict.fromkeys(filter(None, [*known, ours])))
    return {name: ours for name, ours in found.items() if name and name != ours}


FOREIGN_NAMES = list_foreign_names()


class Configuration:
    """What a configuration of a model or of its training can do, besides having settings."""

    def __new__(cls, *_: Any, **given: Any) -> Any:
        """Refuse settings by the names of other libraries; Python refuses all others.

        Raises:
            TypeError: naming the first, and what it is here.
        """
        suspects = [name for name in given if name in FOREIGN_NAMES]
        known = inspect.signature(cls.__init__).parameters if suspects else given  # seldom asked
        for name in suspects:
            if name in known:
                continue
            ours = FOREIGN_NAMES[name].replace(", ", " and ")
            own = any(word in known for word in ours.split(" and "))
            where = "" if own else ", of TransformerConfig or of modern.ModernConfig"
            listed = ", ".join(SETTINGS_ELSEWHERE).split(", ")
            page = see("settings") if FOREIGN_NAMES[name].partition(",")[0] in listed else ""
            raise TypeError(
                f"{cls.__name__} has no setting {name}: here that is {ours}{where}.{page}"
            )
        return super().__new__(cls)

    def to_dict(self: Any) -> dict[str, Any]:
        """Return plain values for JSON; the class reads them by its keywords."""
        return asdict(self)


def find_flags_of_ours(flag: str) -> list[str]:
    """Return the flags that may be meant by one that another program has."""
    ours = FOREIGN_NAMES.get(flag.removeprefix("--").replace("-", "_"), "")
    return [f"--{name.replace('_', '-')}" for name in ours.split(", ") if name]
