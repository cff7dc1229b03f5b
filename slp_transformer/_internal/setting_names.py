"""What the settings of models are called elsewhere, for whoever writes another library's name.

The page Reuse shows `SETTINGS_ELSEWHERE`; Hugging Face's own are in the records of
`slp_transformer.modern.families` too, as what is read from a config.json, and a test compares them.
"""

import inspect
from collections.abc import Iterable

from slp_transformer._internal.docs_sections import see

SETTINGS_ELSEWHERE: dict[str, tuple[str, str, str]] = {
    # ours: PyTorch's, nanoGPT's and TransformerLens's
    "vocab_size": ("", "vocab_size", "d_vocab"),
    "context_length": ("", "block_size", "n_ctx"),
    "model_dim": ("d_model", "n_embd", "d_model"),
    "num_heads": ("nhead", "n_head", "n_heads"),
    "num_kv_heads": ("", "", "n_key_value_heads"),
    "num_blocks": ("num_layers", "n_layer", "n_layers"),
    "key_dim, value_dim": ("", "", "d_head"),
    "hidden_dim": ("dim_feedforward", "", "d_mlp"),
    "activation": ("activation", "", "act_fn, gated_mlp"),
    "positions": ("", "", "positional_embedding_type"),
    "normalization": ("", "", "normalization_type"),
    "norm": ("norm_first", "", ""),
    "eps": ("layer_norm_eps", "", "eps"),
    "dropout": ("dropout", "dropout", ""),
    "qk_norm": ("", "", "use_qk_norm"),
    "attention_bias": ("bias", "bias", ""),
    "ffn_bias": ("bias", "bias", ""),
    "tied": ("", "", ""),
    "rope_base": ("", "", "rotary_base"),
    "rope_scaling": ("", "", ""),
    "rotary_share": ("", "", ""),
    "qk_norm_joint": ("", "", ""),
    "window, windowed_blocks": ("", "", "window_size"),
    "unrotated_blocks": ("", "", ""),
    "begin_id": ("", "", ""),
    "end_ids": ("", "", ""),
    "pad_id": ("", "", ""),
    "num_encoder_blocks": ("num_encoder_layers", "", ""),
}

HUGGING_FACE = {
    "hidden_size": "model_dim",
    "num_attention_heads": "num_heads",
    "num_hidden_layers": "num_blocks",
    "num_key_value_heads": "num_kv_heads",
    "head_dim": "key_dim, value_dim",
    "intermediate_size": "hidden_dim",
    "n_inner": "hidden_dim",
    "max_position_embeddings": "context_length",
    "n_positions": "context_length",
    "hidden_act": "activation",
    "hidden_dropout_prob": "dropout",
    "resid_pdrop": "dropout",
    "activation_function": "activation",
    "rms_norm_eps": "eps",
    "layer_norm_epsilon": "eps",
    "layer_norm_eps": "eps",
    "mlp_bias": "ffn_bias",
    "tie_word_embeddings": "tied",
    "rope_theta": "rope_base",
    "sliding_window": "window, windowed_blocks",
    "bos_token_id": "begin_id",
    "eos_token_id": "end_ids",
    "pad_token_id": "pad_id",
}

OTHERS = {
    "embed_dim": "model_dim",
    "d_k": "key_dim",
    "d_v": "value_dim",
    "d_ff": "hidden_dim",
    "n_kv_heads": "num_kv_heads",
    "max_seq_len": "context_length",
}

TRAINING = {
    "lr": "learning_rate",
    "epochs": "steps",
    "num_epochs": "steps",
    "num_train_epochs": "steps",
    "max_steps": "steps",
    "max_iters": "steps",
    "per_device_train_batch_size": "batch_size",
    "eval_steps": "eval_interval",
    "grad_clip": "max_grad_norm",
    "lr_scheduler_type": "schedule",
    "warmup": "warmup_steps",
    "warmup_iters": "warmup_steps",
    "beta2": "adam_beta2",
    "fp16": "bf16",
    "max_length": "max_new_tokens, sequence_length",
    "max_seq_length": "sequence_length",
    "output_dir": "out_dir",
    "model": "init_from",
    "model_name_or_path": "init_from",
    "lora_r": "lora_rank",
    "do_sample": "temperature",
    "eos_token": "stop",
    "stop_strings": "stop",
}
"""Names of flags, and of arguments of `train`, by those of Hugging Face's and nanoGPT's scripts."""


def list_foreign_names() -> dict[str, str]:
    """Return for each name of elsewhere the names of ours."""
    found = HUGGING_FACE | OTHERS | TRAINING
    for ours, rows in SETTINGS_ELSEWHERE.items():
        for name in ", ".join(filter(None, rows)).split(", "):
            known = found.get(name, "").split(", ")
            found[name] = ", ".join(dict.fromkeys(filter(None, [*known, ours])))
    return {name: ours for name, ours in found.items() if name and name != ours}


FOREIGN_NAMES = list_foreign_names()


def refuse_foreign_settings(made: type, given: Iterable[str]) -> None:
    """Refuse other libraries' names for the settings of a configuration; Python refuses all others.

    Args:
        made: the configuration's class.
        given: the names of the keyword arguments that it is to be made with.

    Raises:
        TypeError: naming the first, and what it is here.
    """
    suspects = [name for name in given if name in FOREIGN_NAMES]
    if not suspects:  # as always
        return
    known = inspect.signature(made.__init__).parameters  # type: ignore[misc]  # of that very class
    for name in suspects:
        if name in known:
            continue
        ours = FOREIGN_NAMES[name].replace(", ", " and ")
        own = any(word in known for word in ours.split(" and "))
        where = "" if own else ", of TransformerConfig or of modern.ModernConfig"
        page = "" if name in TRAINING else see("settings")
        raise TypeError(f"{made.__name__} has no setting {name}: here that is {ours}{where}.{page}")


def find_flags_of_ours(flag: str) -> list[str]:
    """Return the flags that may be meant by one that another program has."""
    ours = FOREIGN_NAMES.get(flag.removeprefix("--").replace("-", "_"), "")
    return [f"--{name.replace('_', '-')}" for name in ours.split(", ") if name]
