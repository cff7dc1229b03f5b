"""Attention heads: the matrices that make queries, keys and values, for one head and for many.

`AttentionHead` is one head with matrices of its own. In `MultiHeadAttention` all heads are computed
in one product: their matrices lie side by side.
"""

from typing import TYPE_CHECKING

import torch
from torch import nn

from slp_transformer._internal.argument_checks import check_feature_axis, check_source
from slp_transformer._internal.config_checks import (
    DROPOUT,
    check_positive_sizes,
    check_range,
    resolve_head_sizes,
)
from slp_transformer._internal.explained_refusals import (
    explain_refusals,
    refuse_unfit_rows,
)
from slp_transformer._internal.head_views import HeadView
from slp_transformer._internal.shape_types import Float, ShapedModule, Tensor
from slp_transformer._internal.weight_matrices import make_weight_matrix
from slp_transformer.attention import attend, attention
from slp_transformer.cache import LayerCache
from slp_transformer.hooks import HookedModule


class AttentionHead(ShapedModule):
    """One attention head with its own output matrix.

    Source: `qkv` to `head-out` one token at a time, `QKV` and `A-out` for all tokens at once, with
    `attention` in between. No biases, as in the book.

    Attributes:
        W_Q: query matrix [d×d_k].
        W_K: key matrix [d×d_k].
        W_V: value matrix [d×d_v].
        W_O: output matrix [d_v×d].
    """

    def __init__(self, model_dim: int, key_dim: int, value_dim: int | None = None):
        """Make a head.

        Args:
            model_dim: d, the size of a token's row.
            key_dim: d_k, the size of queries and keys.
            value_dim: d_v, the size of values; d_k if not given.

        Raises:
            ValueError: if a size is not a positive whole number.
        """
        super().__init__()
        value_dim = key_dim if value_dim is None else value_dim
        check_positive_sizes(model_dim=model_dim, key_dim=key_dim, value_dim=value_dim)
        self.model_dim = model_dim
        self.W_Q = make_weight_matrix(model_dim, key_dim)
        self.W_K = make_weight_matrix(model_dim, key_dim)
        self.W_V = make_weight_matrix(model_dim, value_dim)
        self.W_O = make_weight_matrix(value_dim, model_dim)

    def forward(
        self, X: Float[Tensor, "*batch N d"], mask: Float[Tensor, "... #N #N"] | None = None
    ) -> tuple[Float[Tensor, "*batch N d"], Float[Tensor, "*batch N N"]]:
        """Attend from every token of X to the tokens of X that the mask allows.

        Args:
            X: one row a token.
            mask: additive mask; `causal_mask(N)` for the book's left-to-right attention.

        Returns:
            A, the head's output for each token, and the attention weights.

        Raises:
            ValueError: if X is not [... × N × d], or the mask does not fit.
        """
        check_feature_axis("X", X, self.model_dim)
        Q, K, V = X @ self.W_Q, X @ self.W_K, X @ self.W_V
        head, alpha = attention(Q, K, V, mask)
        return head @ self.W_O, alpha


def split_heads(
    X: Float[Tensor, "*batch N features"], num_heads: int
) -> Float[Tensor, "*batch A N share"]:
    """Give each head its own share of the columns: [N×Ad_k] becomes [A×N×d_k].

    Head c takes columns c·d_k up to (c+1)·d_k. Nothing is copied: the result is a view.
    """
    return X.unflatten(-1, (num_heads, -1)).transpose(-3, -2)


def join_heads(heads: Float[Tensor, "*batch A N share"]) -> Float[Tensor, "*batch N features"]:
    """Put the heads side by side again, head¹ ⊕ … ⊕ headᴬ: [A×N×d_v] becomes [N×Ad_v].

    The transpose must come first. It usually leaves the parts of a row apart in memory, and then
    joining them makes a copy.
    """
    return heads.transpose(-3, -2).flatten(-2)


class HeadMatrices(ShapedModule):
    """The matrices of A heads for queries, and of G for keys and values.

    The heads' matrices lie side by side, and so do those for queries, keys and values, so that all
    of them are one product; `heads[c].W_Q` is the book's W^{Qc} (heads are counted from 0).

    Attributes:
        W_QKV: all matrices that read the stream, side by side [d×(Ad_k+Gd_k+Gd_v)].
        W_Q: the query matrices of all heads in it [d×Ad_k]; a view.
        W_K: the key matrices, likewise [d×Gd_k].
        W_V: the value matrices, likewise [d×Gd_v].
        W_O: output matrix [Ad_v×d].
    """

    def __init__(
        self,
        model_dim: int,
        num_heads: int,
        num_kv_heads: int,
        key_dim: int | None,
        value_dim: int | None,
    ):
        """Draw them; key_dim and value_dim are d/A if not given.

        Raises:
            ValueError: if a size is not a positive whole number, or d/A is asked for and A does
                not divide d.
        """
        super().__init__()
        d_k, d_v = resolve_head_sizes(model_dim, num_heads, key_dim, value_dim)
        self.key_dim, self.value_dim = d_k, d_v
        self.model_dim, self.num_heads, self.num_kv_heads = model_dim, num_heads, num_kv_heads
        self.widths = (num_heads * d_k, num_kv_heads * d_k, num_kv_heads * d_v)
        # Each is drawn by itself, so that a seed gives what it would give to three parameters.
        self.W_QKV = nn.Parameter(
            torch.cat([make_weight_matrix(model_dim, w) for w in self.widths], dim=1)
        )
        self.W_O = make_weight_matrix(num_heads * d_v, model_dim)

    W_Q = property(lambda self: self.W_QKV.split(self.widths, dim=1)[0])
    W_K = property(lambda self: self.W_QKV.split(self.widths, dim=1)[1])
    W_V = property(lambda self: self.W_QKV.split(self.widths, dim=1)[2])

    @property
    def fused_layout(self) -> dict[str, dict[str, int]]:
        """Return the matrices that each fused matrix holds, and their numbers of columns."""
        return {"W_QKV": dict(zip(("W_Q", "W_K", "W_V"), self.widths, strict=True))}

    @property
    def matrices(self) -> list[Tensor]:
        """Return W_Q, W_K, W_V and W_O; the last writes to the residual stream."""
        return [self.W_Q, self.W_K, self.W_V, self.W_O]

    @property
    def heads(self) -> tuple[HeadView, ...]:
        """Return each head's own matrices, to read and to set: `mha.heads[2].W_K = W`."""
        return tuple(HeadView(self, c) for c in range(self.num_heads))


class MultiHeadAttention(HeadMatrices, HookedModule):
    r"""A heads that attend side by side, each with matrices of its own.

    $$\mathrm{MHA}(\mathbf X) = (\mathbf{head}_1\oplus\dots\oplus\mathbf{head}_A)\mathbf W^O$$

    Source: `mh-qkv` to `mh-def` one token at a time, `mh-par-qkv` to `mh-par-out` in parallel;
    given an encoder's output, `cross-QKV` and `cross-attn`. No biases, as in the book.

    Attention's named points (`slp_transformer.hooks`) are "Q", "K", "V", "scores" (before the
    mask), "alpha" and "head".

    Attributes:
        dropout: share of the attention weights that is dropped in training.
    """

    def __init__(
        self,
        model_dim: int,
        num_heads: int,
        key_dim: int | None = None,
        value_dim: int | None = None,
        dropout: float = 0.0,
    ):
        """Make the heads.

        Args:
            model_dim: d, the size of a token's row.
            num_heads: A.
            key_dim: d_k of each head; d/A if not given.
            value_dim: d_v of each head; d/A if not given.
            dropout: share of the attention weights to drop in training; not in the book.

        Raises:
            ValueError: if a size is not a positive whole number, or d/A is asked for and A does
                not divide d.
        """
        check_range(DROPOUT, dropout=dropout)
        super().__init__(model_dim, num_heads, num_heads, key_dim, value_dim)
        self.dropout = dropout

    @explain_refusals(refuse_unfit_rows)
    def forward(
        self,
        X: Float[Tensor, "*batch N d"],
        mask: Float[Tensor, "... #N #M"] | None = None,
        *,
        causal: bool = False,
        H_enc: Float[Tensor, "*batch M d"] | None = None,
        return_weights: bool = False,
        cache: LayerCache | None = None,
    ) -> (
        Float[Tensor, "*batch N d"]
        | tuple[Float[Tensor, "*batch N d"], Float[Tensor, "*batch A N M"]]
    ):
        """Attend from each token of X to the tokens of X, or of `H_enc`.

        Args:
            X: one row a token; the queries come from here.
            mask: additive mask [N×M], or with X's leading axes [... × N × M], the same for every
                head; one with an axis more [... × A × N × M] gives each head its own.
            causal: hide the future. Faster than passing `causal_mask(N)`, and the same.
            H_enc: the encoder's output, for cross-attention; keys and values then come from here.
            return_weights: also return the weights. The output is the same to rounding, but the
                fused kernel, which keeps no weights, cannot be used.
            cache: what this layer has computed of earlier tokens; X then goes on from there, M
                counts those tokens too, and `H_enc` is read only the first time.

        Returns:
            A [... × N × d], or (A, weights) with weights [... × A × N × M].

        Raises:
            ValueError: if a shape does not fit, the mask is not additive, `causal` is asked of
                cross-attention, or the cache refuses (see `LayerCache.update`).
        """
        check_source(self.model_dim, X, H_enc, causal)
        Q, K, V = self.project(X, H_enc, 0 if cache is None else cache.length)
        if cache is not None:
            K, V = cache.update(K, V)
        dropout = self.dropout if self.training else 0.0
        head, alpha = attend(Q, K, V, mask, causal, dropout, self.hook, return_weights)
        A = join_heads(head) @ self.W_O
        return A if alpha is None or not return_weights else (A, alpha)

    if TYPE_CHECKING:
        __call__ = forward

    def project(
        self,
        X: Float[Tensor, "*batch N d"],
        H_enc: Float[Tensor, "*batch M d"] | None = None,
        num_read: int = 0,
    ) -> tuple[
        Float[Tensor, "*batch A N d_k"],
        Float[Tensor, "*batch A new d_k"],
        Float[Tensor, "*batch A new d_v"],
    ]:
        """Compute the queries, keys and values of every head.

        Args:
            X: where the queries come from.
            H_enc: where keys and values come from; from X too if not given.
            num_read: rows of `H_enc` whose keys and values a cache has already.
        """
        if H_enc is None:  # one wide product takes less time than three
            Q, K, V = (X @ self.W_QKV).split(self.widths, dim=-1)
        else:  # source and target differ, so no one product can serve both
            W_Q, W_K, W_V = self.W_QKV.split(self.widths, dim=1)
            Q, K, V = X @ W_Q, H_enc[..., num_read:, :] @ W_K, H_enc[..., num_read:, :] @ W_V
        A = self.num_heads
        Q, K, V = split_heads(Q, A), split_heads(K, A), split_heads(V, A)
        return self.hook_point("Q", Q), self.hook_point("K", K), self.hook_point("V", V)
