"""The one configuration that every model is made from."""

from dataclasses import MISSING, dataclass, fields
from typing import Any

from slp_transformer._internal.config_checks import DROPOUT, EPS, SIZE
from slp_transformer._internal.parts import (
    BookActivation,
    BookNormOrder,
    BookPositions,
    Initialization,
)
from slp_transformer._internal.setting_names import Configuration
from slp_transformer._internal.settings import check_settings, setting, settings


@settings
@dataclass(frozen=True)
class TransformerConfig(Configuration):
    """The sizes and options of a model.

    `TransformerLM(config)` and `EncoderDecoder(config)` both take it. Only the vocabulary has no
    default; the other defaults make a small model in the book's own form.

    Attributes:
        vocab_size: |V|, words in the vocabulary (of the target language, for an encoder-decoder).
        context_length: N, the longest sequence that has positions.
        model_dim: d, the size of a token's row.
        num_heads: A, attention heads in each block.
        num_blocks: L, blocks in the stack (in the decoder, for an encoder-decoder).
        key_dim: d_k of each head; d/A if None.
        value_dim: d_v of each head; d/A if None.
        hidden_dim: d_ff; 4d if None (8d/3 for "swiglu").
        activation: "relu" (`ffn`), "gelu", or "swiglu" (`swiglu`).
        norm: "pre" (the book's) or "post" (Vaswani et al. 2017).
        positions: "learned" (the book's) or "sinusoidal" (Vaswani et al. 2017).
        dropout: share dropped in training; not in the book.
        eps: epsilon of the layer norms; the book has none.
        scaled_embeddings: multiply the tokens' rows by √d (Vaswani et al. 2017); not in the book.
        initialization: how matrices begin, "gpt2" (small normal numbers, the smaller the deeper the
            stack where they write to the stream), "xavier" (uniform, by their sizes: Glorot and
            Bengio 2010) or "bert" (equally small normal numbers, scaled embeddings too: Devlin et
            al. 2019); the book leaves it open.
        source_vocab_size: words in the source vocabulary of an encoder-decoder; None if source and
            target share one vocabulary, and with it the matrix E.
        num_encoder_blocks: blocks in the encoder; as many as in the decoder if None.
    """

    vocab_size: int = setting(MISSING, SIZE, example=23)
    context_length: int = setting(128, SIZE, example=64)
    model_dim: int = setting(128, SIZE, example=96)
    num_heads: int = setting(4, SIZE, example=2)
    num_blocks: int = setting(4, SIZE, example=2)
    key_dim: int | None = setting(None, SIZE, example=16)
    value_dim: int | None = setting(None, SIZE, example=16)
    hidden_dim: int | None = setting(None, SIZE, example=200)
    activation: BookActivation = setting("relu", example="gelu")
    norm: BookNormOrder = setting("pre", example="post")
    positions: BookPositions = setting("learned", example="sinusoidal")
    dropout: float = setting(0.0, DROPOUT, example=0.3)
    eps: float = setting(1e-05, EPS, example=0.1)
    scaled_embeddings: bool = setting(False, example=True)
    initialization: Initialization = setting("gpt2", example="xavier")
    source_vocab_size: int | None = setting(None, SIZE, example=17)
    num_encoder_blocks: int | None = setting(None, SIZE, example=2)

    def __post_init__(self) -> None:
        """Refuse sizes and choices that no model can be made from.

        Raises:
            ValueError: naming the setting, what it was and what would do. (The modules check how
                the sizes fit together.)
        """
        check_settings(self)

    @classmethod
    def of_2017(
        cls, vocab_size: int, context_length: int = 512, **changes: Any
    ) -> "TransformerConfig":
        """Return the base model of Vaswani et al. 2017, "Attention is all you need".

        Post-norm, sines and cosines for positions, embeddings times √d that source, target and head
        share, ReLU, Xavier's start, dropout of 0.1; six blocks of width 512 in either stack. Its
        schedule of learning rates is `TrainConfig.of_2017`'s.

        Args:
            vocab_size: |V|, of both languages together.
            context_length: N, the longest sentence; the paper has no limit.
            **changes: settings to be others than the paper's.

        Raises:
            ValueError: if no model can be made from them.
        """
        paper: dict[str, Any] = {"model_dim": 512, "num_heads": 8, "num_blocks": 6}
        paper |= {"norm": "post", "positions": "sinusoidal", "dropout": 0.1}
        paper |= {"scaled_embeddings": True, "initialization": "xavier"}
        return cls(vocab_size, context_length, **paper | changes)

    def block_kwargs(self) -> dict[str, Any]:
        """Return the settings of the blocks, as `TransformerStack` takes them.

        They are all that no other part takes, so a new setting that nobody reads is refused there.
        """
        names = {field.name for field in fields(TransformerConfig)}
        names -= {"vocab_size", "source_vocab_size", "context_length", "num_blocks"}
        names -= {"num_encoder_blocks", "positions", "scaled_embeddings"}
        return {name: getattr(self, name) for name in names}

    def embedding_kwargs(self) -> dict[str, Any]:
        """Return the settings of the input, as `InputEncoding` takes them."""
        names = ("context_length", "model_dim", "positions", "dropout", "scaled_embeddings")
        return {name: getattr(self, name) for name in (*names, "initialization")}
