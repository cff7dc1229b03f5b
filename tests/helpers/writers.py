"""Small models that write, for the tests of decoding."""

import torch

from slp_transformer import TransformerConfig, TransformerLM

V, WINDOW = 11, 19
PROMPTS = [[3, 1, 4], [5], [9, 2, 6, 5, 3, 5, 8], [7]]
SOURCES = [[1, 2], [3, 4, 5, 6, 7], [8], [9, 1, 3]]


def make(kind=TransformerLM, seed: int = 0, **options):
    """A model whose words depend on what it has read: weights far from zero."""
    torch.manual_seed(seed)
    sizes = {"context_length": WINDOW, "model_dim": 10, "num_heads": 2, "num_blocks": 2}
    model = kind(TransformerConfig(V, **{**sizes, **options}))
    with torch.no_grad():
        for weights in model.parameters():
            weights.mul_(25 if weights.dim() == 2 else 1)
    return model.eval()


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
