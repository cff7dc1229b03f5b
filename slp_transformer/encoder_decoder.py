"""The encoder-decoder: one stack reads the source, another writes the target and looks across."""

from typing import TYPE_CHECKING

from torch import nn

from slp_transformer._internal.shape_types import Float, Int, Tensor
from slp_transformer.block import TransformerStack
from slp_transformer.cache import KVCache
from slp_transformer.config import TransformerConfig
from slp_transformer.embedding import InputEncoding
from slp_transformer.language_model import lm_head


class EncoderDecoder(nn.Module):
    """The encoder-decoder of the translation chapter.

    The encoder's self-attention sees the whole source; the decoder's sees the target so far; its
    cross-attention, in every block, sees the final output of the encoder.

    The equations of cross-attention, which is `MultiHeadAttention`, write H^{dec[ℓ−1]} for the
    queries; as in the book's figure, the queries here come from what the self-attention sublayer
    left in the stream.

    Attributes:
        config: what it was made from.
        source_embedding: the encoder's input.
        target_embedding: the decoder's input, whose E is also the head's.
        encoder: the encoder's stack.
        decoder: the decoder's stack, with cross-attention in every block.
    """

    def __init__(self, config: TransformerConfig):
        """Make an encoder-decoder.

        Args:
            config: its sizes and choices; encoder and decoder share all but the number of blocks.
                With no `source_vocab_size`, source and target share one embedding matrix E.

        Raises:
            ValueError: if the sizes do not fit together.
        """
        super().__init__()
        self.config = config
        shared = config.embedding_kwargs()
        source_vocab_size = config.source_vocab_size or config.vocab_size
        self.source_embedding: InputEncoding = InputEncoding(source_vocab_size, **shared)
        self.target_embedding: InputEncoding = InputEncoding(config.vocab_size, **shared)
        if config.source_vocab_size is None:  # one vocabulary, and one matrix that both sides train
            self.source_embedding.tokens = self.target_embedding.tokens
        options = config.block_kwargs()
        self.encoder: TransformerStack = TransformerStack(
            config.num_encoder_blocks or config.num_blocks, **options
        )
        self.decoder: TransformerStack = TransformerStack(
            config.num_blocks, cross_attention=True, **options
        )

    def encode(
        self,
        source: Int[Tensor, "*batch M"],
        source_mask: Float[Tensor, "... #M #M"] | None = None,
    ) -> Float[Tensor, "*batch M d"]:
        """Read the source.

        Args:
            source: token ids of the source.
            source_mask: additive mask, `padding_mask(source, pad_id)` where sources are padded.

        Returns:
            H_enc, one row for each source token.

        Raises:
            ValueError: if an id is outside the vocabulary, or the source is too long.
        """
        return self.encoder(self.source_embedding(source), source_mask)

    def decode(
        self,
        target: Int[Tensor, "*batch N"],
        H_enc: Float[Tensor, "*batch M d"],
        source_mask: Float[Tensor, "... #N #M"] | None = None,
        *,
        cache: KVCache | None = None,
    ) -> Float[Tensor, "*batch N V"]:
        """Compute logits for the word after each position of the target.

        Args:
            target: token ids of the target so far.
            H_enc: what `encode` returned.
            source_mask: the same mask that `encode` was given.
            cache: what was computed of earlier target tokens, and of `H_enc`; `target` then goes on
                from there.

        Returns:
            U, for every target position the logits of the word that follows it.

        Raises:
            ValueError: if an id is outside the vocabulary, or the target is too long.
        """
        X = self.target_embedding(target, start=0 if cache is None else cache.length)
        H = self.decoder(X, causal=True, H_enc=H_enc, enc_mask=source_mask, cache=cache)
        return lm_head(H, self.target_embedding.tokens.E)

    def forward(
        self,
        source: Int[Tensor, "*batch M"],
        target: Int[Tensor, "*batch N"],
        source_mask: Float[Tensor, "... 1 #M"] | None = None,
    ) -> Float[Tensor, "*batch N V"]:
        """`encode`, then `decode`: the logits of a whole target at once, as in training.

        Raises:
            ValueError: if an id is outside its vocabulary, or a sequence is too long.
        """
        return self.decode(target, self.encode(source, source_mask), source_mask)

    if TYPE_CHECKING:
        __call__ = forward
