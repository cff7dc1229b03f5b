"""The Transformer chapter of Jurafsky and Martin's *Speech and Language Processing*, as code.

Each definition lives once, in the order of the book: `attention`, `multi_head`, `feedforward`,
`layer_norm`, `block`, `embedding`, `language_model`, `encoder_decoder`. The names below are the
ones that most readers reuse; the attention equation itself is behind its module's name,
`slp_transformer.attention.attention`.
"""

from typing import TYPE_CHECKING

from slp_transformer._internal.lazy import attach

if TYPE_CHECKING:
    from slp_transformer.block import BlockStack, TransformerBlock, TransformerStack
    from slp_transformer.cache import KVCache
    from slp_transformer.config import TransformerConfig
    from slp_transformer.embedding import (
        InputEncoding,
        LearnedPositions,
        SinusoidalPositions,
        TokenEmbedding,
        sinusoidal_positions,
    )
    from slp_transformer.encoder_decoder import EncoderDecoder
    from slp_transformer.fast import fused_attention
    from slp_transformer.feedforward import FeedForward, SwiGLU
    from slp_transformer.generation.decoding import generate
    from slp_transformer.generation.scoring import score
    from slp_transformer.hooks import record_activations
    from slp_transformer.language_model import TransformerLM, lm_head, next_word_probabilities
    from slp_transformer.layer_norm import LayerNorm
    from slp_transformer.lora import add_lora, merge_lora
    from slp_transformer.loss import next_token_loss
    from slp_transformer.masks import causal_mask, padding_mask
    from slp_transformer.multi_head import AttentionHead, MultiHeadAttention

__version__ = "0.3.0"

__all__ = [
    "AttentionHead",
    "BlockStack",
    "EncoderDecoder",
    "FeedForward",
    "InputEncoding",
    "KVCache",
    "LayerNorm",
    "LearnedPositions",
    "MultiHeadAttention",
    "SinusoidalPositions",
    "SwiGLU",
    "TokenEmbedding",
    "TransformerBlock",
    "TransformerConfig",
    "TransformerLM",
    "TransformerStack",
    "add_lora",
    "causal_mask",
    "fused_attention",
    "generate",
    "lm_head",
    "merge_lora",
    "next_token_loss",
    "next_word_probabilities",
    "padding_mask",
    "record_activations",
    "score",
    "sinusoidal_positions",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__)
