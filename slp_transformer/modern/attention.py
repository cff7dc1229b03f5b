"""Attention as today's models have it: shared keys and values, rotated queries and keys."""

import math
from typing import TYPE_CHECKING

import torch
from torch import nn, zeros

from slp_transformer._internal.argument_checks import check_source
from slp_transformer._internal.config_checks import DROPOUT, check_range
from slp_transformer._internal.explained_refusals import (
    explain_refusals,
    refuse_unfit_rows,
)
from slp_transformer._internal.parts import AttentionBias
from slp_transformer._internal.reference_mode import is_traced
from slp_transformer._internal.shape_types import Float, Int, Tensor
from slp_transformer._internal.weight_matrices import affine
from slp_transformer.attention import attend
from slp_transformer.cache import LayerCache
from slp_transformer.hooks import HookedModule, pass_on
from slp_transformer.modern.config import check_num_kv_heads
from slp_transformer.modern.rms_norm import RMSNorm
from slp_transformer.modern.rotary import RotaryPositions, Unrotated
from slp_transformer.multi_head import HeadMatrices, join_heads, split_heads


def repeat_kv(
    K: Float[Tensor, "*batch G M d_k"], num_heads: int
) -> Float[Tensor, "*batch A M d_k"]:
    """Give each of A heads the keys (or values) of its group: every one of G is repeated A/G times.

    Ainslie et al. 2023 (arXiv 2305.13245). With G = A every head has its own, with G = 1 all share
    one (Shazeer 2019, arXiv 1911.02150).
    """
    repeats = num_heads // K.shape[-3]
    return K if repeats == 1 else K.repeat_interleave(repeats, dim=-3)


def add_window_mask(
    mask: Float[Tensor, "..."] | None,
    Q: Float[Tensor, "*batch A N d_k"],
    K: Float[Tensor, "*batch G M d_k"],
    window: int,
) -> Float[Tensor, "..."] | None:
    """Add to a mask what hides tokens that are `window` or more before each query.

    The queries are those of the last N of M tokens (Beltagy et al. 2020, arXiv 2004.05150; Mistral,
    Jiang et al. 2023). A token sees farther than that all the same: what another one has gathered
    in the block below comes with it.
    """
    N, M = Q.shape[-2], K.shape[-2]
    if not is_traced(Q) and M <= window:
        return mask
    far = torch.full((N, M), -math.inf, dtype=Q.dtype, device=Q.device).tril(M - N - window)
    far = far.masked_fill(torch.ones_like(far, dtype=torch.bool).triu(M - N - window + 1), 0.0)
    return far if mask is None else mask + far


class GroupedQueryAttention(HeadMatrices, HookedModule):
    r"""Multi-head attention with four small steps away from the book's, each of them optional.

    Heads share keys and values in groups (`repeat_kv`); queries and keys are rotated to where their
    tokens stand (`RotaryPositions`); a token sees a window of those before it
    (`add_window_mask`); each head's queries and keys are normalized (Qwen3, arXiv 2505.09388,
    section 2).

    Attributes:
        num_kv_heads: G, heads that have keys and values of their own.
        b_QKV: biases of W_Q, W_K and W_V, side by side, or None.
        b_O: bias of the output [d], or None.
        norm_Q: norm of each head's queries, or None.
        norm_K: norm of each head's keys, or None.
        rotary: the rotations, or None.
        window: tokens that each token sees; None for all.
    """

    def __init__(
        self,
        model_dim: int,
        num_heads: int,
        num_kv_heads: int | None = None,
        key_dim: int | None = None,
        value_dim: int | None = None,
        dropout: float = 0.0,
        *,
        bias: AttentionBias = False,
        qk_norm_eps: float | None = None,
        qk_norm_joint: bool = False,
        rotary: RotaryPositions | Unrotated | None = None,
        window: int | None = None,
    ):
        """Make the heads.

        Args:
            model_dim: d.
            num_heads: A.
            num_kv_heads: G; A if not given.
            key_dim: d_k of each head; d/A if not given.
            value_dim: d_v of each head; d/A if not given.
            dropout: share of the attention weights to drop in training.
            bias: whether the products have biases; "qkv" for all but the output's.
            qk_norm_eps: epsilon of the norms of queries and keys; None for no such norms.
            qk_norm_joint: whether these norms are of all heads' rows side by side.
            rotary: rotations of queries and keys; layers may share them.
            window: tokens that each token sees, itself and those before it; all if None.

        Raises:
            ValueError: if a size is not a positive whole number, d/A is asked for and A does not
                divide d, or G does not divide A.
        """
        num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        check_num_kv_heads(num_heads, num_kv_heads)
        check_range(DROPOUT, dropout=dropout)
        super().__init__(model_dim, num_heads, num_kv_heads, key_dim, value_dim)
        self.dropout = dropout
        qkv, output = {False: (False, False), True: (True, True), "qkv": (True, False)}[bias]
        self.b_QKV: nn.Parameter | None = nn.Parameter(zeros(sum(self.widths))) if qkv else None
        self.b_O: nn.Parameter | None = nn.Parameter(zeros(model_dim)) if output else None
        self.qk_norm_joint = qk_norm_joint
        widths = self.widths if qk_norm_joint else (self.key_dim, self.key_dim)
        norms = [None if qk_norm_eps is None else RMSNorm(w, qk_norm_eps) for w in widths[:2]]
        self.norm_Q: RMSNorm | None = norms[0]
        self.norm_K: RMSNorm | None = norms[1]
        self.rotary = rotary
        self.window = window

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
        position_ids: Int[Tensor, "... N"] | None = None,
    ) -> (
        Float[Tensor, "*batch N d"]
        | tuple[Float[Tensor, "*batch N d"], Float[Tensor, "*batch A N M"]]
    ):
        """Attend from each token of X to the tokens of X, or of `H_enc`.

        Args:
            X: one row a token.
            mask: see `MultiHeadAttention.forward`, as for what is not named here.
            causal: likewise.
            H_enc: likewise; attention with rotations has none.
            return_weights: likewise.
            cache: likewise.
            position_ids: positions of X's tokens, where they do not follow one another, as in
                several texts side by side; attention without rotations has no use for them.

        Raises:
            ValueError: if a shape does not fit, the mask is not additive, the cache refuses, or
                `H_enc` or `position_ids` are not for this kind of attention.
        """
        check_source(self.model_dim, X, H_enc, causal)
        if self.rotary is None and position_ids is not None:
            raise ValueError("position_ids are for rotations: this attention has none.")
        if self.rotary is not None and H_enc is not None:
            raise ValueError(
                "Rotations compare positions in one sequence, and H_enc is another: make the "
                "cross-attention without rotary."
            )
        start = 0 if cache is None else cache.length
        Q, K, V = self.project(X, H_enc, start if position_ids is None else position_ids)
        if cache is not None:
            K, V = cache.update(K, V)
        if self.window is not None:
            if X.shape[-2] == 1 and mask is None and not return_weights and self.hook is pass_on:
                K, V = K[..., -self.window :, :], V[..., -self.window :, :]  # a token in decoding
            mask = add_window_mask(mask, Q, K, self.window)
        head, alpha = self._attend(Q, K, V, mask, causal, return_weights)
        A = affine(join_heads(head), self.W_O, self.b_O)
        return A if alpha is None or not return_weights else (A, alpha)

    if TYPE_CHECKING:
        __call__ = forward

    def project(
        self,
        X: Float[Tensor, "*batch N d"],
        H_enc: Float[Tensor, "*batch M d"] | None = None,
        start: int | Int[Tensor, "... N"] = 0,
    ) -> tuple[
        Float[Tensor, "*batch A N d_k"],
        Float[Tensor, "*batch G new d_k"],
        Float[Tensor, "*batch G new d_v"],
    ]:
        """Compute the queries of A heads, and the keys and values of G.

        Args:
            X: one row a token.
            H_enc: where keys and values come from; from X too if not given.
            start: position of X's first token, or of each; or rows of `H_enc` whose keys and values
                a cache has already.
        """
        if H_enc is None:
            Q, K, V = affine(X, self.W_QKV, self.b_QKV).split(self.widths, dim=-1)
        else:
            W = self.W_QKV.split(self.widths, dim=1)
            b = [None] * 3 if self.b_QKV is None else self.b_QKV.split(self.widths)
            read = (X, H_enc[..., start:, :], H_enc[..., start:, :])
            Q, K, V = map(affine, read, W, b)
        G = self.num_kv_heads
        # OLMo normalizes the row of all heads together, Qwen each head's own.
        norms = (self.norm_Q, self.norm_K) if self.norm_Q and self.norm_K else None
        if norms and self.qk_norm_joint:
            Q, K = norms[0](Q), norms[1](K)
        Q, K, V = split_heads(Q, self.num_heads), split_heads(K, G), split_heads(V, G)
        if norms and not self.qk_norm_joint:
            Q, K = norms[0](Q), norms[1](K)
        if self.rotary is not None:
            Q, K = self.rotary(Q, start), self.rotary(K, start)
        return self.hook_point("Q", Q), self.hook_point("K", K), self.hook_point("V", V)

    def _attend(self, Q, K, V, mask, causal, return_weights):
        """Gather each head's values, from the keys and values of its group."""
        how = (self.dropout if self.training else 0.0, self.hook, return_weights)
        alike = mask is None or mask.dim() == 2  # for all heads
        if Q.shape[-2] == 1 and alike and not return_weights and self.hook is pass_on:
            return self._attend_one_query(Q, K, V, mask), None
        K, V = repeat_kv(K, self.num_heads), repeat_kv(V, self.num_heads)
        return attend(Q, K, V, mask, causal, *how)

    def _attend_one_query(self, Q, K, V, mask):
        """Do the same for a single token, as in decoding, and repeat nothing.

        The queries of a group are rows of one attention, all looking at the same keys.
        """
        rows = Q.squeeze(-2).unflatten(-2, (self.num_kv_heads, -1))
        dropout = self.dropout if self.training else 0.0
        return attend(rows, K, V, mask, False, dropout)[0].flatten(-3, -2).unsqueeze(-2)
