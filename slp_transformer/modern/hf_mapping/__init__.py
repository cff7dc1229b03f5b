"""How others keep their models: what their config.json means here, and what tensors are called.

One module a family: `gpt2`, `llama` (Qwen3, too) and `bert`. Each has `read`, from their settings
to a configuration of ours; `written`, the way back; and `places`, where each of our tensors is
found among theirs.
"""
