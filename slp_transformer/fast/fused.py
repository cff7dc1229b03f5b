"""Attention by PyTorch's fused kernel, which makes no matrix of weights."""

import math

import torch.nn.functional as F

from slp_transformer.masks import hide_future
from slp_transformer.refusals import check_mask, check_qkv
from slp_transformer.shapes import Float, Tensor
from slp_transformer.sizes import check_dropout


def fused_attention(
    Q: Float[Tensor, "*batch N d_k"],
    K: Float[Tensor, "*batch M d_k"],
    V: Float[Tensor, "*batch M d_v"],
    mask: Float[Tensor, "... #N #M"] | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> Float[Tensor, "*batch N d_v"]:
    """The same values as `slp_transformer.attention.attention`, without the weights.

    With `causal` and no mask the kernel is told so by a flag, and no N×N mask is ever made.

    Args:
        Q: queries.
        K: keys.
        V: values.
        mask: additive mask, broadcast to the scores.
        causal: also hide the future; where there are more keys than queries, the queries are those
            of the last tokens.
        dropout: share of the weights to drop.

    Returns:
        The gathered values; zeros for a query that may see nothing.

    Raises:
        ValueError: if the shapes do not fit together, the mask is not additive, dropout is no
            share below 1, or `causal` is asked for with more queries than keys.
    """
    check_qkv(Q, K, V)
    check_dropout(dropout)
    N, M = Q.shape[-2], K.shape[-2]
    if mask is not None:
        check_mask(mask, (*Q.shape[:-1], M))
    if causal and N > M:
        raise ValueError(
            f"A causal mask needs a key for each query, but there are {N} queries and {M} keys."
        )
    if causal and (mask is not None or N != M):
        mask, causal = hide_future(mask, Q, K), False
    leading = Q.shape[:-2]
    Q = Q if Q.stride(-1) == 1 else Q.contiguous()  # or PyTorch takes the way without a kernel
    Q, K, V = four_axes(Q), four_axes(K), four_axes(V)
    if mask is None:
        values = F.scaled_dot_product_attention(Q, K, V, dropout_p=dropout, is_causal=causal)
        return values.view(*leading, N, V.shape[-1])
    mask = four_axes(mask.expand(*leading, *mask.shape[-2:]) if len(leading) > 2 else mask)
    mask = mask.to(Q.dtype)
    # A row of nothing but -inf is NaN in some kernels: let it see everything, then blank it out.
    empty = (mask == -math.inf).all(dim=-1, keepdim=True)
    values = F.scaled_dot_product_attention(
        Q, K, V, attn_mask=mask.masked_fill(empty, 0.0), dropout_p=dropout
    )
    return values.masked_fill(empty, 0.0).view(*leading, N, V.shape[-1])


def four_axes(X: Float[Tensor, "*batch N d"]) -> Float[Tensor, "batch A N d"]:
    """What the kernel wants, [batch × heads × N × d_k]: axes of 1 for what is missing, or fewer."""
    return X[(None,) * (4 - X.dim())] if X.dim() < 5 else X.flatten(0, -4)
