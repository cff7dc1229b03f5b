"""The settings of a run's model, of the book's block and of today's. Nothing here needs PyTorch."""

from dataclasses import dataclass, fields
from typing import Any, get_type_hints

from slp_transformer._internal.choices import allowed_values_of
from slp_transformer._internal.parts import (
    ROTARY_SETTINGS,
    Activation,
    Initialization,
    Normalization,
    NormOrder,
    Positions,
)
from slp_transformer.config import TransformerConfig
from slp_transformer.modern.config import ModernConfig

FROM_DATA = ("vocab_size", "source_vocab_size", "num_encoder_blocks")  # fields that no file sets


@dataclass(frozen=True)
class ModelSettings:
    """The sizes and options of a model, but for those that follow from the data.

    The defaults make a small model in the book's own form. A setting that the book's block does not
    have, at another value than its default, makes a model of today's blocks.

    Attributes:
        context_length: N, the longest sequence that has positions.
        model_dim: d, the size of a token's row.
        num_heads: A, attention heads in each block.
        num_blocks: L, blocks in the stack (in the decoder, for an encoder-decoder).
        key_dim: d_k of each head; d/A if None.
        value_dim: d_v of each head; d/A if None.
        hidden_dim: d_ff; 4d if None (8d/3 for "swiglu").
        activation: of the feedforward layers.
        norm: where the norms stand in a block.
        positions: how the model knows where its tokens stand.
        dropout: share dropped in training; not in the book.
        eps: epsilon of the norms; the book has none.
        scaled_embeddings: multiply the tokens' rows by √d (Vaswani et al. 2017); not in the book.
        initialization: how matrices begin; the book leaves it open.
        normalization: the norms.
        qk_norm: whether each head's queries and keys go through an RMSNorm (Qwen3).
        zero_init: whether the matrices that write to the residual stream begin with zeros, so that
            every block begins as the identity.
        tied: whether the head's matrix is E (the book's), or one of its own.
        num_kv_heads: how many heads have keys and values of their own, which the others share; as
            many as there are heads if None.
        ffn_bias: whether the feedforward layers have biases.
        rope_base: base of the rotary frequencies.
    """

    context_length: int = 128
    model_dim: int = 128
    num_heads: int = 4
    num_blocks: int = 4
    key_dim: int | None = None
    value_dim: int | None = None
    hidden_dim: int | None = None
    activation: Activation = "relu"
    norm: NormOrder = "pre"
    positions: Positions = "learned"
    dropout: float = 0.0
    eps: float = 1e-5
    scaled_embeddings: bool = False
    initialization: Initialization = "gpt2"
    normalization: Normalization = "layer"
    qk_norm: bool = False
    zero_init: bool = False
    tied: bool = True
    num_kv_heads: int | None = None
    ffn_bias: bool = True
    rope_base: float = 10000.0

    def __post_init__(self) -> None:
        """Refuse sizes and choices that no model can have.

        Raises:
            ValueError: naming the setting.
        """
        self.to_config(1)
        for each in fields(self) if self.positions != "rotary" else ():
            if each.name in ROTARY_SETTINGS and getattr(self, each.name) != each.default:
                raise ValueError(
                    f'{each.name} belongs to positions = "rotary", not to "{self.positions}".'
                )

    def modern_parts(self) -> list[str]:
        """Name the settings that the book's block does not know; any of them makes a `ModernLM`."""
        book = get_type_hints(TransformerConfig, include_extras=True)
        return [
            field.name
            for field in fields(self)
            if (value := getattr(self, field.name)) != field.default
            and (
                field.name not in book
                or value not in (allowed_values_of(book[field.name]) or [value])
            )
        ]

    def to_config(self, vocab_size: int, source_vocab_size: int | None = None) -> TransformerConfig:
        """Return the configuration of the model, once the data is known.

        Raises:
            ValueError: if no model can be made from it.
        """
        settings: dict[str, Any] = dict(vars(self))
        settings |= {"vocab_size": vocab_size, "source_vocab_size": source_vocab_size}
        if self.modern_parts():
            return ModernConfig(**settings)
        book = [field.name for field in fields(TransformerConfig)]
        return TransformerConfig(**{n: value for n, value in settings.items() if n in book})
