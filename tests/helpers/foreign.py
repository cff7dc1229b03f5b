"""Small models of Hugging Face's own, with random weights, written as others publish them."""

import re
from pathlib import Path

import torch
from torch import nn
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Olmo2Config,
    Olmo2ForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    SmolLM3Config,
    SmolLM3ForCausalLM,
)

V, WINDOW, BLOCKS, D_FF = 53, 41, 2, 19
SIZES = {"vocab_size": V, "num_hidden_layers": BLOCKS, "max_position_embeddings": WINDOW}
SIZES |= {"intermediate_size": D_FF}
GPT2 = {"vocab_size": V, "n_positions": WINDOW, "n_embd": 15, "n_layer": BLOCKS, "n_head": 3}
GPT2 |= {"bos_token_id": 1, "eos_token_id": 2}
GROUPED = SIZES | {"hidden_size": 18, "num_attention_heads": 6, "num_key_value_heads": 3}
GROUPED |= {"head_dim": 10, "bos_token_id": 1, "eos_token_id": [2, 3]}
QWEN2 = {key: size for key, size in GROUPED.items() if key != "head_dim"} | {"hidden_size": 24}
SMOLLM3 = QWEN2 | {"no_rope_layers": [1, 0], "pad_token_id": 0}
BERT = SIZES | {"hidden_size": 15, "num_attention_heads": 3}
NEOX = SIZES | {"hidden_size": 24, "num_attention_heads": 3, "bos_token_id": 1}
NEOX |= {"eos_token_id": 2, "rotary_pct": 0.25, "rotary_emb_base": 900}
ROPE = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0}
ROPE |= {"high_freq_factor": 4.0, "original_max_position_embeddings": 13}
YARN = {"rope_type": "yarn", "rope_theta": 700.0, "factor": 3.0}
YARN |= {"original_max_position_embeddings": 13}
LINEAR = {"rope_type": "linear", "factor": 2.5, "rope_theta": 700.0}
LARGE = {"num_key_value_heads": 6, "head_dim": 4}
FAMILIES = {
    "gpt2": (GPT2LMHeadModel, GPT2Config, GPT2),
    "llama": (LlamaForCausalLM, LlamaConfig, GROUPED),
    "mistral": (MistralForCausalLM, MistralConfig, GROUPED | {"sliding_window": None}),
    "qwen2": (Qwen2ForCausalLM, Qwen2Config, QWEN2),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config, GROUPED),
    "smollm3": (
        SmolLM3ForCausalLM,
        SmolLM3Config,
        QWEN2 | {"no_rope_layers": [1, 0], "pad_token_id": 0},
    ),
    "phi3": (Phi3ForCausalLM, Phi3Config, QWEN2 | {"pad_token_id": 0}),
    "olmo2": (Olmo2ForCausalLM, Olmo2Config, QWEN2 | {"pad_token_id": 0}),
    "gpt_neox": (GPTNeoXForCausalLM, GPTNeoXConfig, NEOX),
    "bert": (BertForMaskedLM, BertConfig, BERT),
}
CHANGES = {
    "gpt2, its own head, n_inner, ReLU": {"tie_word_embeddings": False, "n_inner": D_FF}
    | {"activation_function": "relu"},
    "gpt2, squared ReLU": {"activation_function": "relu2"},
    "llama 3, tied": {"rope_parameters": ROPE, "tie_word_embeddings": True},
    "llama, biases, a key for each head": {"attention_bias": True, "mlp_bias": True} | LARGE,
    "llama, linear scaling": {"rope_parameters": LINEAR},
    "gpt_neox, one after the other, no biases": {"use_parallel_residual": False}
    | {"attention_bias": False, "hidden_act": "gelu_new", "rotary_pct": 0.5},
    "llama, yarn": {"rope_parameters": YARN},
    "qwen3, yarn, its own factors": {
        "rope_parameters": YARN | {"beta_fast": 3.0, "beta_slow": 0.5, "attention_factor": 1.5}
    },
    "mistral, windows": {"sliding_window": 4},
    "qwen2, windows in one block": {"use_sliding_window": True, "sliding_window": 5}
    | {"max_window_layers": 1},
    "phi3, windows": {"sliding_window": 6},
    "qwen3, tied, biases": {"tie_word_embeddings": True, "attention_bias": True},
    "bert, tanh": {"hidden_act": "gelu_new"},
}


def changed(name: str) -> tuple:
    kind, config, sizes = FAMILIES[re.match(r"\w+", name)[0]]
    return kind, config, sizes | CHANGES.get(name, {})


MODELS = {name: changed(name) for name in [*FAMILIES, *CHANGES]}
CAUSAL = [name for name in MODELS if not name.startswith("bert")]


def foreign(name: str, folder: Path, **saving) -> nn.Module:
    """One of them, with every parameter random, and its files in a folder."""
    kind, config, sizes = MODELS[name]
    torch.manual_seed(0)
    model = kind(config(**sizes, attn_implementation="eager")).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0.0, 0.4)
    model.save_pretrained(folder, **saving)
    return model


def load_again(name: str, folder: Path) -> nn.Module:
    """What Hugging Face makes of files that we wrote; nothing may be missing or left over."""
    how = {"attn_implementation": "eager", "output_loading_info": True}
    # As which we write it: the first family that has its parts.
    kind = LlamaForCausalLM if name in ("mistral", "phi3") else MODELS[name][0]
    kind = MistralForCausalLM if name == "phi3, windows" else kind
    model, info = kind.from_pretrained(folder, **how)
    assert not any(info.values()), info
    return model.eval()


def logits(model: nn.Module, ids: torch.Tensor) -> torch.Tensor:
    """The logits of a model of Hugging Face's."""
    with torch.no_grad():
        return model(ids).logits
