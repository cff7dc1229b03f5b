"""Small models of Hugging Face's own, with random weights, written as others publish them."""

from pathlib import Path

import torch
from torch import nn
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

V, WINDOW, BLOCKS, D_FF = 53, 41, 2, 19
GPT2 = {"vocab_size": V, "n_positions": WINDOW, "n_embd": 15, "n_layer": BLOCKS, "n_head": 3}
GPT2 |= {"bos_token_id": 1, "eos_token_id": 2}
GROUPED = {
    "vocab_size": V,
    "hidden_size": 18,
    "intermediate_size": D_FF,
    "num_hidden_layers": BLOCKS,
    "num_attention_heads": 6,
    "num_key_value_heads": 3,
    "head_dim": 10,
    "max_position_embeddings": WINDOW,
    "bos_token_id": 1,
    "eos_token_id": [2, 3],
}
ROPE = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0}
ROPE |= {"high_freq_factor": 4.0, "original_max_position_embeddings": 13}
BERT = {
    "vocab_size": V,
    "hidden_size": 15,
    "intermediate_size": D_FF,
    "num_hidden_layers": BLOCKS,
    "num_attention_heads": 3,
    "max_position_embeddings": WINDOW,
}

MODELS = {
    "gpt2": (GPT2LMHeadModel, GPT2Config, GPT2),
    "gpt2, its own head, n_inner, ReLU": (
        GPT2LMHeadModel,
        GPT2Config,
        GPT2 | {"tie_word_embeddings": False, "n_inner": D_FF, "activation_function": "relu"},
    ),
    "gpt2, squared ReLU": (GPT2LMHeadModel, GPT2Config, GPT2 | {"activation_function": "relu2"}),
    "llama": (LlamaForCausalLM, LlamaConfig, GROUPED),
    "llama 3, tied": (
        LlamaForCausalLM,
        LlamaConfig,
        GROUPED | {"rope_parameters": ROPE, "tie_word_embeddings": True},
    ),
    "llama, biases, a key for each head": (
        LlamaForCausalLM,
        LlamaConfig,
        GROUPED
        | {"attention_bias": True, "mlp_bias": True, "num_key_value_heads": 6, "head_dim": 4},
    ),
    "llama, linear scaling": (
        LlamaForCausalLM,
        LlamaConfig,
        GROUPED | {"rope_parameters": {"rope_type": "linear", "factor": 2.5, "rope_theta": 700.0}},
    ),
    "mistral": (MistralForCausalLM, MistralConfig, GROUPED | {"sliding_window": None}),
    "qwen2": (
        Qwen2ForCausalLM,
        Qwen2Config,
        {k: v for k, v in GROUPED.items() if k != "head_dim"} | {"hidden_size": 24},
    ),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config, GROUPED),
    "qwen3, tied, biases": (
        Qwen3ForCausalLM,
        Qwen3Config,
        GROUPED | {"tie_word_embeddings": True, "attention_bias": True},
    ),
    "bert": (BertForMaskedLM, BertConfig, BERT),
    "bert, tanh": (BertForMaskedLM, BertConfig, BERT | {"hidden_act": "gelu_new"}),
}
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
    kind = LlamaForCausalLM if name == "mistral" else MODELS[name][0]  # as which we write it
    model, info = kind.from_pretrained(folder, **how)
    assert not any(info.values()), info
    return model.eval()


def logits(model: nn.Module, ids: torch.Tensor) -> torch.Tensor:
    """The logits of a model of Hugging Face's."""
    with torch.no_grad():
        return model(ids).logits
