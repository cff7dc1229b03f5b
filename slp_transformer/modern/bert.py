"""BERT: a stack without a causal mask, that says which words are hidden behind masks."""

from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn, zeros

from slp_transformer._internal.config_checks import check_size
from slp_transformer._internal.dropout import Dropout
from slp_transformer._internal.model_choices import (
    ACTIVATIONS,
    Activation,
    AttentionBias,
    Normalization,
    NormOrder,
    Positions,
    load,
)
from slp_transformer._internal.shape_types import Float, Int, ShapedModule, Tensor
from slp_transformer._internal.weight_matrices import affine, weight_matrix
from slp_transformer.language_model import lm_head
from slp_transformer.layer_norm import LayerNorm
from slp_transformer.modern.config import ModernConfig
from slp_transformer.modern.language_model import make_embedding, make_stack


@dataclass(frozen=True)
class BertConfig(ModernConfig):
    """The sizes and options of a BERT; the defaults are those of Devlin et al. 2019.

    It has every setting of `ModernConfig`.

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
    num_segments: int = 2

    def __post_init__(self) -> None:
        """Refuse what no model can be made from.

        Raises:
            ValueError: naming the setting, what it was and what would do.
        """
        super().__post_init__()
        check_size(num_segments=self.num_segments)


class Bert(ShapedModule):
    """The bidirectional encoder and its masked-word head (Devlin et al. 2019, arXiv 1810.04805).

    Every token sees every other, `bidirectional`. In post-norm, as the
    original Transformer; where the book's model has X = E + P, here a row for the segment is added
    and the sum is normalized.

    Attributes:
        config: what it was made from.
        embedding: tokens and positions, E and P.
        S: a row for each kind of segment [num_segments×d].
        norm_0: the norm of the input.
        stack: the blocks.
        W_head: the matrix before the head [d×d].
        b_head: its bias [d].
        norm_head: the norm after it.
        b_words: the bias of each word [|V|].
    """

    def __init__(self, config: BertConfig):
        """Make a BERT.

        Args:
            config: its sizes and choices.

        Raises:
            ValueError: if the sizes do not fit together.
        """
        super().__init__()
        self.config: BertConfig = config
        d = config.model_dim
        self.embedding: Any = make_embedding(replace(config, dropout=0.0))
        self.S = nn.Parameter(torch.randn(config.num_segments, d) * 0.02)
        self.norm_0: LayerNorm = LayerNorm(d, config.eps)
        self.norm_head: LayerNorm = LayerNorm(d, config.eps)
        self.drop: Dropout = Dropout(config.dropout)
        self.stack: nn.Module = make_stack(config)
        self.W_head: nn.Parameter = weight_matrix(d, d)
        self.b_head: nn.Parameter = nn.Parameter(zeros(d))
        self.b_words: nn.Parameter = nn.Parameter(zeros(config.vocab_size))

    def encode(
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

    def forward(
        self,
        ids: Int[Tensor, "*batch N"],
        mask: Float[Tensor, "... #N #N"] | None = None,
        segments: Int[Tensor, "*batch N"] | None = None,
    ) -> Float[Tensor, "*batch N V"]:
        """Compute logits of the word that is there, or hidden, at each position; see `encode`.

        Raises:
            ValueError: if an id is outside the vocabulary, or the sequence is too long.
        """
        hidden = affine(self.encode(ids, mask, segments), self.W_head, self.b_head)
        hidden = load(ACTIVATIONS[self.config.activation].function)(hidden)
        return lm_head(self.norm_head(hidden), self.embedding.tokens.E) + self.b_words
