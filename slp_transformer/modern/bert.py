"""BERT: a stack without a causal mask, that says which words are hidden behind masks."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn, zeros

from slp_transformer._internal.config_checks import SIZE, check_positive_sizes
from slp_transformer._internal.parts import (
    Activation,
    AttentionBias,
    Normalization,
    NormOrder,
    Positions,
)
from slp_transformer._internal.settings import setting, settings
from slp_transformer._internal.shape_types import Float, Int, ShapedModule, Tensor
from slp_transformer._internal.weight_matrices import affine, make_weight_matrix
from slp_transformer.dropout import Dropout
from slp_transformer.feedforward import ACTIVATIONS
from slp_transformer.language_model import lm_head
from slp_transformer.layer_norm import LayerNorm
from slp_transformer.modern.config import ModernConfig
from slp_transformer.modern.language_model import make_embedding, make_stack


@settings
@dataclass(frozen=True)
class BertConfig(ModernConfig):
    """The sizes and options of a BERT; the defaults are those of Devlin et al. 2019.

    It has every setting of `ModernConfig`; `tied` stays True.

    Attributes:
        num_segments: kinds of segment that a token can belong to.
    """

    activation: Activation = "gelu"
    positions: Positions = "learned"
    normalization: Normalization = "layer"
    norm: NormOrder = "post"
    eps: float = 1e-12
    attention_bias: AttentionBias = True
    ffn_bias: bool = True
    num_segments: int = setting(2, SIZE, example=3)

    def __post_init__(self) -> None:
        """Refuse what no model can be made from.

        Raises:
            ValueError: naming the setting, what it was and what would do.
        """
        super().__post_init__()
        if not self.tied:
            raise ValueError("tied must be True: BERT's head has the rows of E.")


class BertEncoder(ShapedModule):
    """The bidirectional encoder of BERT (Devlin et al. 2019, arXiv 1810.04805), without a head.

    Every token sees every other, `bidirectional`. In post-norm, as the
    original Transformer; where the book's model has X = E + P, here a row for the segment is added
    and the sum is normalized.

    Attributes:
        config: what it was made from.
        embedding: tokens and positions, E and P.
        S: a row for each kind of segment [num_segments×d].
        norm_0: the norm of the input.
        stack: the blocks.
    """

    def __init__(self, config: BertConfig):
        """Make the encoder.

        Args:
            config: its sizes and choices.

        Raises:
            ValueError: if the sizes do not fit together.
        """
        super().__init__()
        self.config: BertConfig = config
        self.embedding: Any = make_embedding(replace(config, dropout=0.0))
        self.S = nn.Parameter(torch.randn(config.num_segments, config.model_dim) * 0.02)
        self.norm_0: LayerNorm = LayerNorm(config.model_dim, config.eps)
        self.drop: Dropout = Dropout(config.dropout)
        self.stack: nn.Module = make_stack(config)

    def forward(
        self,
        ids: Int[Tensor, "*batch N"],
        mask: Float[Tensor, "... #N #N"] | None = None,
        segments: Int[Tensor, "*batch N"] | None = None,
    ) -> Float[Tensor, "*batch N d"]:
        """Return a row for each token, which all the others had a part in.

        Args:
            ids: token ids.
            mask: additive mask, `padding_mask(ids, pad_id)` where sentences are padded.
            segments: which segment each token belongs to; all to the first if not given.

        Raises:
            ValueError: if an id is outside the vocabulary, or the sequence is too long.
        """
        segments = torch.zeros_like(ids) if segments is None else segments
        X = self.norm_0(self.embedding(ids) + F.embedding(segments, self.S))
        return self.stack(self.drop(X), mask)


class Bert(BertEncoder):
    """BERT's encoder and its head for masked words.

    Attributes:
        W_head: the matrix before the head [d×d].
        b_head: its bias [d].
        activation: the function after it, before the norm.
        norm_head: the norm of the head.
        b_words: the bias of each word [|V|].
    """

    def __init__(self, config: BertConfig):
        """Make a BERT.

        Args:
            config: its sizes and choices.

        Raises:
            ValueError: if the sizes do not fit together.
        """
        super().__init__(config)
        d = config.model_dim
        self.norm_head: LayerNorm = LayerNorm(d, config.eps)
        self.W_head: nn.Parameter = make_weight_matrix(d, d)
        self.b_head: nn.Parameter = nn.Parameter(zeros(d))
        functions = ACTIVATIONS | {"swiglu": F.silu}  # a head has no gate, so only its function
        self.activation: Callable[[Tensor], Tensor] = functions[config.activation]
        self.b_words: nn.Parameter = nn.Parameter(zeros(config.vocab_size))

    def forward(
        self,
        ids: Int[Tensor, "*batch N"],
        mask: Float[Tensor, "... #N #N"] | None = None,
        segments: Int[Tensor, "*batch N"] | None = None,
    ) -> Float[Tensor, "*batch N V"]:
        """Compute logits of the word that is there, or hidden, at each position; see `BertEncoder`.

        Raises:
            ValueError: if an id is outside the vocabulary, or the sequence is too long.
        """
        hidden = affine(super().forward(ids, mask, segments), self.W_head, self.b_head)
        return (
            lm_head(self.norm_head(self.activation(hidden)), self.embedding.tokens.E) + self.b_words
        )


class BertClassifier(BertEncoder):
    """BERT's encoder, whose first token says which class a text is of.

    Attributes:
        W_pool: the matrix of the first token [d×d].
        b_pool: its bias [d].
        W_classes: the head [d×classes].
        b_classes: its bias [classes].
        class_names: what the classes are called, for those who read them.
    """

    def __init__(self, config: BertConfig, num_classes: int):
        """Make the encoder and the head.

        Raises:
            ValueError: if the sizes do not fit together.
        """
        super().__init__(config)
        check_positive_sizes(num_classes=num_classes)
        d = config.model_dim
        self.W_pool: nn.Parameter = make_weight_matrix(d, d)
        self.b_pool: nn.Parameter = nn.Parameter(zeros(d))
        self.W_classes: nn.Parameter = make_weight_matrix(d, num_classes)
        self.b_classes: nn.Parameter = nn.Parameter(zeros(num_classes))
        self.class_names: tuple[str, ...] = tuple(f"LABEL_{k}" for k in range(num_classes))

    def forward(
        self,
        ids: Int[Tensor, "*batch N"],
        mask: Float[Tensor, "... #N #N"] | None = None,
        segments: Int[Tensor, "*batch N"] | None = None,
    ) -> Float[Tensor, "*batch classes"]:
        """Compute a logit for each class; see `BertEncoder`.

        Raises:
            ValueError: if an id is outside the vocabulary, or the sequence is too long.
        """
        first = super().forward(ids, mask, segments)[..., 0, :]
        pooled = self.drop(torch.tanh(affine(first, self.W_pool, self.b_pool)))
        return affine(pooled, self.W_classes, self.b_classes)
