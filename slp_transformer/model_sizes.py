"""Sizes of models that others have published, to compare the book's parameter count with.

None of them is made here; several have parts that the book's block has not (gated feedforward
layers, queries that share keys and values).
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class PublishedModel:
    """A decoder-only model's sizes, and its parameters as its publisher counts them.

    Attributes:
        num_blocks: L.
        model_dim: d.
        hidden_dim: d_ff.
        num_heads: A, heads that ask.
        num_kv_heads: heads that answer: A, or fewer where several share keys and values.
        key_dim: d_k and d_v of a head.
        has_gated_ffn: whether the feedforward layer has three matrices (`swiglu`) instead of two.
        vocab_size: |V|.
        tied: whether the head is E itself (`logits`) rather than a matrix of its own.
        num_positions: rows of learned positions; 0 for those that turn queries and keys instead.
        total: parameters as published.
        source: where the sizes stand.
    """

    num_blocks: int
    model_dim: int
    hidden_dim: int
    num_heads: int
    num_kv_heads: int
    key_dim: int
    has_gated_ffn: bool
    vocab_size: int
    tied: bool
    num_positions: int
    total: int
    source: str

    @property
    def matrices(self) -> int:
        """Parameters in the matrices of attention and feedforward layers.

        With d_attn = A·d_k counted for queries and output, the shared heads for keys and values,
        and a third matrix where the layer is gated.
        """
        heads = 2 * (self.num_heads + self.num_kv_heads) * self.key_dim
        feedforward = (3 if self.has_gated_ffn else 2) * self.hidden_dim
        return self.num_blocks * self.model_dim * (heads + feedforward)

    @property
    def embeddings(self) -> int:
        """Parameters of E, of the head if it is not E, and of learned positions."""
        return self.model_dim * (self.vocab_size * (1 if self.tied else 2) + self.num_positions)

    def kv_cache_bytes(self, num_tokens: int) -> int:
        """Bytes of the keys and values of so many tokens (`kv-attn`), in bfloat16.

        Args:
            num_tokens: tokens in the cache, of all sequences together.
        """
        return num_tokens * 2 * self.num_blocks * self.num_kv_heads * self.key_dim * 2


_QWEN = "Qwen3 Technical Report (2025), Table 1, and the model's config.json"
_LLAMA = "The Llama 3 Herd of Models (2024), Table 3, and the model's config.json"

PUBLISHED_MODELS = {
    "GPT-2 XL": PublishedModel(
        48, 1600, 6400, 25, 25, 64, False, 50257, True, 1024, 1_557_611_200,
        "Radford et al. 2019, Table 2, and the released weights",
    ),
    "GPT-3": PublishedModel(
        96, 12288, 49152, 96, 96, 128, False, 50257, True, 2048, 175_000_000_000,
        "Brown et al. 2020, Table 2.1 (the total is rounded there)",
    ),
    "Qwen3-0.6B": PublishedModel(
        28, 1024, 3072, 16, 8, 128, True, 151936, True, 0, 596_049_920, _QWEN
    ),
    "Qwen3-32B": PublishedModel(
        64, 5120, 25600, 64, 8, 128, True, 151936, False, 0, 32_762_123_264, _QWEN
    ),
    "Llama 3.1 8B": PublishedModel(
        32, 4096, 14336, 32, 8, 128, True, 128256, False, 0, 8_030_261_248, _LLAMA
    ),
    "Llama 3.1 405B": PublishedModel(
        126, 16384, 53248, 128, 8, 128, True, 128256, False, 0, 405_853_388_800, _LLAMA
    ),
}  # fmt: skip
"""The six models of the book's table of configurations."""
