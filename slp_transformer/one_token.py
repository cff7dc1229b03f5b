"""One token more: a model's forward pass for the words that it writes, on a CPU.

The sums are the model's; their layout is another, for the bottleneck is another. Where hundreds of
rows are multiplied with a matrix, arithmetic takes the time. With one row for each sequence it is
reading the matrix from memory, and a plain product leaves much of the memory's speed unused: a
narrow matrix is read by one core alone. So the matrices are laid out anew, once for all the words
to come, such that each core reads a share of its own; W_Q, W_K and W_V side by side, as one.
"""

import torch
import torch.nn.functional as F
from torch import nn

from slp_transformer.attention import fused_attention
from slp_transformer.block import TransformerBlock, TransformerStack
from slp_transformer.cache import KVCache
from slp_transformer.dropping import Dropout
from slp_transformer.embedding import (
    InputEncoding,
    LearnedPositions,
    SinusoidalPositions,
    TokenEmbedding,
)
from slp_transformer.encoder_decoder import EncoderDecoder
from slp_transformer.feedforward import FeedForward, SwiGLU
from slp_transformer.heads import MultiHeadAttention, split_heads
from slp_transformer.language_model import TransformerLM
from slp_transformer.layer_norm import LayerNorm
from slp_transformer.shapes import Float, Int, Tensor

WORTH = 32  # words to come from which on it is worth laying the matrices out anew
KNOWN = {
    *(TransformerLM, EncoderDecoder),
    *(InputEncoding, TokenEmbedding, LearnedPositions, SinusoidalPositions),
    *(TransformerStack, TransformerBlock, MultiHeadAttention, FeedForward, SwiGLU, LayerNorm),
    *(Dropout, nn.ModuleList),
}


def can_be_laid_out(model: nn.Module) -> bool:
    """Whether `OneToken` is faster with this model and says the same: on a CPU, with it unchanged.

    A model with parts of the reader's own, or that somebody wants to look into, is run as it is.
    """
    if next(model.parameters()).device.type != "cpu" or torch.is_autocast_enabled("cpu"):
        return False
    if torch.nn.modules.module._has_any_global_hook():
        return False
    whole = type(model) in (TransformerLM, EncoderDecoder)
    return whole and all(map(unchanged, model.modules()))


def unchanged(part: nn.Module) -> bool:
    """Whether a part of a model is this package's own, with no hooks and no method replaced."""
    hooks = part._forward_hooks or part._forward_pre_hooks
    replaced = {"forward", "encode", "decode"} & vars(part).keys()
    return type(part) in KNOWN and not hooks and not replaced


class SharedOut:
    """X @ W + b, with W laid out so that every core reads a share of it."""

    def __init__(self, *W: Float[Tensor, "k _"], b: Float[Tensor, "n"] | None = None):
        """Lay the matrices out.

        Args:
            W: one or more matrices, to be read side by side as one [k×n].
            b: what to add to the rows.
        """
        rows = torch.cat([part.T for part in W])
        self.n, k = rows.shape
        cores = torch.get_num_threads()
        self.shares = max(s for s in range(1, cores + 1) if self.n % s == 0)
        self.W = rows.view(self.shares, -1, k)
        self.b = None if b is None else b.view(self.shares, -1, 1)

    def __call__(self, X: Float[Tensor, "rows k"]) -> Float[Tensor, "rows n"]:
        """The product."""
        columns = X.T.expand(self.shares, -1, -1)
        if self.b is None:
            Y = torch.bmm(self.W, columns)
        else:
            Y = torch.baddbmm(self.b, self.W, columns)
        return Y.view(self.n, -1).T


class OneToken:
    """A language model, or a decoder, that reads one token of each sequence at a time."""

    def __init__(self, model: TransformerLM | EncoderDecoder):
        """Lay out a model's matrices; later changes to the model are not seen.

        Args:
            model: one of which `can_be_laid_out` says yes.
        """
        if isinstance(model, EncoderDecoder):
            self.embedding, stack = model.target_embedding, model.decoder
        else:
            self.embedding, stack = model.embedding, model.stack
        self.final_norm = stack.final_norm
        self.blocks = [OneTokenBlock(block) for block in stack.blocks]
        self.head = SharedOut(self.embedding.tokens.E.T)

    def __call__(
        self,
        ids: Int[Tensor, "rows 1"],
        cache: KVCache,
        H_enc: Float[Tensor, "rows M d"] | None = None,
        source_mask: Float[Tensor, "rows 1 M"] | None = None,
    ) -> Float[Tensor, "rows V"]:
        """Logits for the word after these; their keys and values are added to the cache.

        Args:
            ids: the next token of each sequence.
            cache: what the model has computed of those before.
            H_enc: for a decoder, what the encoder made of the sources.
            source_mask: additive mask that hides the sources' padding.

        Raises:
            ValueError: if an id is outside the vocabulary, or there is no room for it.
        """
        X = self.embedding(ids, start=cache.length)[:, 0]
        for block in self.blocks:
            X = block(X, cache, H_enc, source_mask)
        return self.head(X if self.final_norm is None else self.final_norm(X))


class OneTokenBlock:
    """A block of such a model."""

    def __init__(self, block: TransformerBlock):
        """Lay out a block's matrices."""
        self.block, self.attention, ffn = block, block.attention, block.ffn
        W_Q, W_K, W_V = self.attention.W_Q, self.attention.W_K, self.attention.W_V
        self.sizes = [W.shape[1] for W in (W_Q, W_K, W_V)]
        self.project = SharedOut(W_Q, W_K, W_V)
        self.output = SharedOut(self.attention.W_O)
        self.first = SharedOut(ffn.W_1, b=ffn.b_1)
        self.second = SharedOut(ffn.W_2, b=ffn.b_2)
        self.third = SharedOut(ffn.W_3, b=ffn.b_3) if isinstance(ffn, SwiGLU) else None
        if block.cross_attention is not None:
            self.query_across = SharedOut(block.cross_attention.W_Q)
            self.output_across = SharedOut(block.cross_attention.W_O)

    def __call__(
        self,
        X: Float[Tensor, "rows d"],
        cache: KVCache,
        H_enc: Float[Tensor, "rows M d"] | None,
        source_mask: Float[Tensor, "rows 1 M"] | None,
    ) -> Float[Tensor, "rows d"]:
        """Pass the residual stream of one token through; see `TransformerBlock.forward`."""
        norm_1, norm_cross, norm_2 = self.block.norm_1, self.block.norm_cross, self.block.norm_2
        if self.block.norm == "pre":
            X = self.attend(norm_1(X), cache) + X
            if norm_cross is not None:
                X = self.attend_across(norm_cross(X), cache.source, H_enc, source_mask) + X
            return self.feed(norm_2(X)) + X
        X = norm_1(self.attend(X, cache) + X)
        if norm_cross is not None:
            X = norm_cross(self.attend_across(X, cache.source, H_enc, source_mask) + X)
        return norm_2(self.feed(X) + X)

    def attend(self, X: Float[Tensor, "rows d"], cache: KVCache) -> Float[Tensor, "rows d"]:
        """Attention of the new token to all so far, itself included."""
        projected = self.project(X).contiguous().split(self.sizes, dim=1)
        heads = (len(X), self.attention.num_heads, 1, -1)
        Q, K, V = (Z.view(heads) for Z in projected)
        K, V = cache.extend(self.attention, K, V)
        return self.output(F.scaled_dot_product_attention(Q, K, V).flatten(1))

    def attend_across(
        self,
        X: Float[Tensor, "rows d"],
        read: KVCache,
        H_enc: Float[Tensor, "rows M d"],
        source_mask: Float[Tensor, "rows 1 M"] | None,
    ) -> Float[Tensor, "rows d"]:
        """Attention of the new token to the source, whose keys and values are made only once."""
        across = self.block.cross_attention
        unread = H_enc[:, read.held(across) :]
        K, V = (split_heads(unread @ W, across.num_heads) for W in (across.W_K, across.W_V))
        K, V = read.extend(across, K, V)
        Q = self.query_across(X).contiguous().view(len(X), across.num_heads, 1, -1)
        mask = None if source_mask is None else source_mask[:, None]  # the same for every head
        return self.output_across(fused_attention(Q, K, V, mask).flatten(1))

    def feed(self, X: Float[Tensor, "rows d"]) -> Float[Tensor, "rows d"]:
        """The feedforward layer."""
        if self.third is None:
            return self.second(self.block.ffn.activation(self.first(X)))
        return self.third(F.silu(self.first(X)) * self.second(X))
