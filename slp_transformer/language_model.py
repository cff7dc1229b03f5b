"""The language model: input, a causal stack of blocks, and the head that predicts the next word."""

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from slp_transformer._internal.argument_checks import check_no_left_padding, check_same_rows
from slp_transformer._internal.shape_types import Float, Int, ShapedModule, Tensor
from slp_transformer.block import BlockStack, TransformerStack
from slp_transformer.cache import KVCache
from slp_transformer.config import TransformerConfig
from slp_transformer.embedding import InputEncoding


def lm_head(H: Float[Tensor, "*batch d"], E: Float[Tensor, "V d"]) -> Float[Tensor, "*batch V"]:
    r"""Score every word of the vocabulary against an output of the stack.

    $$\mathbf u=\mathbf h^L_N\,\mathbf E^\top$$

    Source: `logits`. Tied: E is the embedding matrix of the input. No bias.

    Args:
        H: one row for each position to predict from.
        E: the embedding matrix [|V|×d].

    Returns:
        The logits u, one score a word.

    Raises:
        ValueError: if rows of H and E have different sizes.
    """
    check_same_rows(H, E)
    return H @ E.T


def next_word_probabilities(U: Float[Tensor, "*batch V"]) -> Float[Tensor, "*batch V"]:
    r"""Return the distribution over the next word, $\mathbf y=\mathrm{softmax}(\mathbf u)$.

    Source: `probs`.
    """
    return torch.softmax(U, dim=-1)


class TransformerLM(ShapedModule):
    """The decoder-only language model of the book.

    One after the other, `InputEncoding`, `TransformerStack` and `lm_head`.

    Attributes:
        config: what it was made from.
        embedding: the input encoding, with E and P.
        stack: the blocks and the final layer norm.
    """

    embedding: Any  # an InputEncoding, or a module that reads ids and has `tokens.E` as well

    def __init__(
        self,
        config: TransformerConfig,
        embedding: nn.Module | None = None,
        stack: BlockStack | None = None,
    ):
        """Make a language model.

        Args:
            config: its sizes and choices; what concerns an encoder is not used.
            embedding: the input encoding; made from the configuration if not given.
            stack: the blocks; likewise.

        Raises:
            ValueError: if the sizes do not fit together.
        """
        super().__init__()
        self.config = config
        self.embedding = embedding or InputEncoding(config.vocab_size, **config.embedding_kwargs())
        self.stack: BlockStack | TransformerStack = stack or TransformerStack(
            config.num_blocks, **config.block_kwargs()
        )

    @property
    def unembedding(self) -> Float[Tensor, "V d"]:
        """Return the matrix of the head: E once more."""
        return self.embedding.tokens.E

    def forward(
        self,
        ids: Int[Tensor, "*batch N"],
        mask: Float[Tensor, "... #N #T"] | None = None,
        *,
        cache: KVCache | None = None,
        position_ids: Int[Tensor, "... N"] | None = None,
    ) -> Float[Tensor, "*batch N V"]:
        """Compute logits for the word after each position.

        Padding on the right is hidden by the causal mask already. Sequences padded on the left need
        `padding_mask(ids, pad_id)` as their mask and, since their first words are not at position
        0, `position_ids=((ids != pad_id).cumsum(-1) - 1).clamp(min=0)`.

        Args:
            ids: token ids, left to right.
            mask: additive mask on top of the causal one.
            cache: what was computed of earlier tokens; `ids` then go on from there, and their own
                keys and values are added to it.
            position_ids: positions of the tokens, where they do not follow one another.

        Returns:
            U, for every position the logits of the word that follows it.

        Raises:
            ValueError: if an id is outside the vocabulary, the sequence (with what the cache
                holds) is longer than `config.context_length`, the mask does not fit, or it is that
                of texts padded on the left, and positions are missing.
        """
        if isinstance(self.embedding, InputEncoding):  # it counts from the left
            check_no_left_padding(mask, position_ids)
        # An embedding of somebody's own, without positions, need not take `position_ids`.
        positions = {} if position_ids is None else {"position_ids": position_ids}
        X = self.embedding(ids, start=0 if cache is None else cache.length, **positions)
        H = self.stack(X, mask, causal=True, cache=cache)
        return lm_head(H, self.unembedding)

    if TYPE_CHECKING:
        __call__ = forward
