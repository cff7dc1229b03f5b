"""The language model of today: the book's, with a few of its parts exchanged."""

from torch import nn

from slp_transformer._internal.argument_checks import check_positions, check_token_axis
from slp_transformer._internal.shape_types import Float, Int, Tensor
from slp_transformer.block import BlockStack, ResidualBlock, has_final_norm
from slp_transformer.cache import KVCache
from slp_transformer.dropout import Dropout
from slp_transformer.embedding import InputEncoding, TokenEmbedding
from slp_transformer.feedforward import make_feedforward
from slp_transformer.language_model import TransformerLM, lm_head
from slp_transformer.layer_norm import LayerNorm
from slp_transformer.modern.attention import GroupedQueryAttention
from slp_transformer.modern.config import ModernConfig, turned_columns
from slp_transformer.modern.norm_orders import forward_output_norm, forward_parallel
from slp_transformer.modern.rms_norm import RMSNorm
from slp_transformer.modern.rotary import RotaryPositions, Unrotated

NORMS: dict[str, type[RMSNorm] | type[LayerNorm]] = {"layer": LayerNorm, "rms": RMSNorm}


def make_norm(config: ModernConfig) -> RMSNorm | LayerNorm:
    """Make a norm of the stream."""
    return NORMS[config.normalization](config.model_dim, config.eps)


class ModernBlock(ResidualBlock):
    """A block of the parts that a configuration names; the forward pass is the book's."""

    orders = ResidualBlock.orders | {
        "output": forward_output_norm,
        "parallel": forward_parallel,
    }

    def __init__(
        self,
        config: ModernConfig,
        rotary: RotaryPositions | Unrotated | None = None,
        *,
        cross_attention: bool = False,
        window: int | None = None,
    ):
        """Make a block.

        Args:
            config: its sizes and choices.
            rotary: rotations of its queries and keys, shared by all blocks.
            cross_attention: whether the block also reads from an encoder, whose positions are not
                its own: no rotations there.
            window: tokens that each token sees; all before it if None.

        Raises:
            ValueError: if the sizes do not fit together.
        """
        settings = config.attention_kwargs()
        attention = GroupedQueryAttention(**settings, rotary=rotary, window=window)
        sizes = (config.model_dim, config.hidden_dim)
        ffn = make_feedforward(*sizes, config.activation, config.ffn_bias)
        across = GroupedQueryAttention(**settings) if cross_attention else None
        super().__init__(
            attention,
            make_norm(config),
            ffn,
            make_norm(config),
            cross_attention=across,
            norm_cross=make_norm(config) if cross_attention else None,
            norm=config.norm,
            dropout=config.dropout,
        )


def make_stack(config: ModernConfig, *, cross_attention: bool = False) -> BlockStack:
    """Make the blocks, and the norm above them where there is one."""
    rotary = None
    if config.positions == "rotary":
        rotary = RotaryPositions(turned_columns(config), config.rope_base, config.rope_scaling)
    blocks = [
        ModernBlock(
            config,
            Unrotated() if rotary is not None and l in config.unrotated_blocks else rotary,
            cross_attention=cross_attention,
            window=config.window_of(l),
        )
        for l in range(config.num_blocks)
    ]
    stack = BlockStack(blocks, make_norm(config) if has_final_norm(config.norm) else None)
    if config.zero_init:
        for sublayer in [sublayer for block in blocks for sublayer in block.sublayers()]:
            nn.init.zeros_(sublayer.matrices[-1])
    return stack


class TokenEmbeddingOnly(nn.Module):
    """The input where attention encodes positions: a row of E for each token, and no more.

    Attributes:
        tokens: the token embedding.
        context_length: N, the longest sequence.
    """

    def __init__(self, vocab_size: int, context_length: int, model_dim: int, dropout: float = 0.0):
        """Make the token embedding.

        Raises:
            ValueError: if a size is not a positive whole number.
        """
        super().__init__()
        self.tokens: TokenEmbedding = TokenEmbedding(vocab_size, model_dim)
        self.context_length = context_length
        self.drop: Dropout = Dropout(dropout)

    def forward(self, ids: Int[Tensor, "*batch N"], start: int = 0) -> Float[Tensor, "*batch N d"]:
        """Look up the rows of E for a sequence of ids.

        Raises:
            ValueError: if an id is outside the vocabulary, or the sequence is too long.
        """
        check_token_axis(ids)
        check_positions(start, ids.shape[-1], self.context_length)
        return self.drop(self.tokens(ids))


def make_embedding(config: ModernConfig) -> InputEncoding | TokenEmbeddingOnly:
    """Make the input, with positions or without."""
    if config.positions == "rotary":
        sizes = (config.vocab_size, config.context_length, config.model_dim)
        return TokenEmbeddingOnly(*sizes, config.dropout)
    return InputEncoding(config.vocab_size, **config.embedding_kwargs())


class ModernLM(TransformerLM):
    """A decoder-only language model of today.

    Attributes:
        config: what it was made from.
        embedding: the input.
        stack: the blocks and the final norm.
        E_out: the head's own matrix [|V|×d]; None if it is E.
    """

    E_out: nn.Parameter | None

    def __init__(self, config: ModernConfig):
        """Make a language model.

        Args:
            config: its sizes and choices.

        Raises:
            ValueError: if the sizes do not fit together.
        """
        super().__init__(config, make_embedding(config), make_stack(config))
        own = None if config.tied else TokenEmbedding(config.vocab_size, config.model_dim).E
        self.register_parameter("E_out", own)

    @property
    def unembedding(self) -> Float[Tensor, "V d"]:
        """Return the matrix of the head: E, or one of its own."""
        return self.embedding.tokens.E if self.E_out is None else self.E_out

    def forward(
        self,
        ids: Int[Tensor, "*batch N"],
        mask: Float[Tensor, "... #N #T"] | None = None,
        *,
        cache: KVCache | None = None,
        position_ids: Int[Tensor, "... N"] | None = None,
    ) -> Float[Tensor, "*batch N V"]:
        """Compute logits for the word after each position; see `TransformerLM.forward`.

        Args:
            ids: token ids, left to right.
            mask: additive mask on top of the causal one.
            cache: what was computed of earlier tokens.
            position_ids: positions of the tokens where they do not follow one another.

        Raises:
            ValueError: as `TransformerLM.forward`.
        """
        if position_ids is None or self.config.positions != "rotary":
            return super().forward(ids, mask, cache=cache, position_ids=position_ids)
        X = self.embedding(ids, start=0 if cache is None else cache.length)
        H = self.stack(X, mask, causal=True, cache=cache, position_ids=position_ids)
        return lm_head(H, self.unembedding)
