"""Hugging Face's layouts: the meaning of config.json here, and the names of tensors.

One module a family: `gpt2`, `llama` (Qwen3, too) and `bert`. Each has `from_hf_config`, from their
settings to a configuration of ours; `to_hf_config`, the way back; and `param_maps`, from the names
of our tensors to theirs.
"""
