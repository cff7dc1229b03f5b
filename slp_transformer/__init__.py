"""The Transformer chapter of Jurafsky and Martin's *Speech and Language Processing*, as code.

Each definition lives once, in the order of the book: `attention`, `multi_head`, `feedforward`,
`layer_norm`, `block`, `embedding`, `language_model`, `encoder_decoder`. The names below are the
ones that most readers reuse; the attention equation itself is behind its module's name,
`slp_transformer.attention.attention`.
"""

from typing import TYPE_CHECKING

from slp_transformer._internal.lazy import attach

if TYPE_CHECKING:
    from slp_transformer.block import BlockStack as BlockStack
    from slp_transformer.block import TransformerBlock as TransformerBlock
    from slp_transformer.block import TransformerStack as TransformerStack
    from slp_transformer.cache import KVCache as KVCache
    from slp_transformer.config import TransformerConfig as TransformerConfig
    from slp_transformer.embedding import InputEncoding as InputEncoding
    from slp_transformer.embedding import LearnedPositions as LearnedPositions
    from slp_transformer.embedding import SinusoidalPositions as SinusoidalPositions
    from slp_transformer.embedding import TokenEmbedding as TokenEmbedding
    from slp_transformer.embedding import sinusoidal_positions as sinusoidal_positions
    from slp_transformer.encoder_decoder import EncoderDecoder as EncoderDecoder
    from slp_transformer.fast import fused_attention as fused_attention
    from slp_transformer.feedforward import FeedForward as FeedForward
    from slp_transformer.feedforward import SwiGLU as SwiGLU
    from slp_transformer.generation.decoding import generate as generate
    from slp_transformer.generation.scoring import score as score
    from slp_transformer.hooks import record_activations as record_activations
    from slp_transformer.language_model import TransformerLM as TransformerLM
    from slp_transformer.language_model import lm_head as lm_head
    from slp_transformer.language_model import next_word_probabilities as next_word_probabilities
    from slp_transformer.layer_norm import LayerNorm as LayerNorm
    from slp_transformer.lora import add_lora as add_lora
    from slp_transformer.lora import merge_lora as merge_lora
    from slp_transformer.loss import next_token_loss as next_token_loss
    from slp_transformer.masks import causal_mask as causal_mask
    from slp_transformer.masks import padding_mask as padding_mask
    from slp_transformer.multi_head import AttentionHead as AttentionHead
    from slp_transformer.multi_head import MultiHeadAttention as MultiHeadAttention

__version__ = "0.3.0"

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = attach(__name__)
