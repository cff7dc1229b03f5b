"""Attention: how one token's stream reads from the others.

First masks, then the attention equation itself. The heads that make its queries, keys and values
are in `slp_transformer.heads`. Row vectors throughout: a token is a row of X [N×d].

Masks are additive: 0 where attention is allowed, −∞ where it is not. They are added to the scores
before the softmax, and to each other.
"""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F

from slp_transformer.blockwise import causal_in_blocks
from slp_transformer.choices import better_in_blocks
from slp_transformer.dropping import check_dropout
from slp_transformer.shapes import Float, Int, Tensor, shape_of

# --- Masks -------------------------------------------------------------------------------------


def causal_mask(
    N: int, *, dtype: torch.dtype | None = None, device: torch.device | str | None = None
) -> Float[Tensor, "N N"]:
    """The mask that hides the future: 0 on and below the diagonal, −∞ above it.

    Source: `mask` (in the prose before 8.33 and 7.34, and Fig. 8.10, 7.10).

    Args:
        N: number of tokens.
        dtype: floating type of the mask; torch's default if not given.
        device: where the mask lives.

    Returns:
        M [N×N], with M[i, j] = −∞ where j > i and 0 elsewhere.

    Raises:
        ValueError: if N is negative.
    """
    if N < 0:
        raise ValueError(f"causal_mask needs a number of tokens of 0 or more, not {N}.")
    return torch.full((N, N), -math.inf, dtype=dtype, device=device).triu(diagonal=1)


def padding_mask(
    ids: Int[Tensor, "*batch M"], pad_id: int, *, dtype: torch.dtype | None = None
) -> Float[Tensor, "*batch 1 M"]:
    """The mask that hides padding from every query: −∞ wherever `ids` holds `pad_id`.

    Add it to `causal_mask(N)` to hide both padding and the future. Not in the book, which never
    batches sentences of different lengths.

    Args:
        ids: token ids, padded to one length.
        pad_id: the id that stands for "no token here".
        dtype: floating type of the mask; torch's default if not given.

    Returns:
        The mask, with an axis of size 1 for the queries, since all of them see the same padding.
    """
    mask = torch.zeros(ids.shape, dtype=dtype or torch.get_default_dtype(), device=ids.device)
    return mask.masked_fill(ids == pad_id, -math.inf).unsqueeze(-2)


def check_mask(mask: Tensor, shape: Sequence[int]) -> None:
    """Refuse a mask that is not additive or cannot be broadcast to `shape`, [... × N × M].

    Raises:
        ValueError: if the mask is boolean or of whole numbers, or its axes do not fit.
    """
    if not mask.is_floating_point():
        raise ValueError(
            f"The mask has type {mask.dtype}, but masks here are additive: a floating-point "
            "tensor that is 0 where attention is allowed and -inf where it is not, as made by "
            "causal_mask or padding_mask. From a boolean `allowed`, write "
            "torch.zeros(allowed.shape).masked_fill(~allowed, -torch.inf)."
        )
    *leading, N, M = shape
    if mask.dim() < 2 or mask.shape[-2] not in (1, N) or mask.shape[-1] not in (1, M):
        raise ValueError(
            f"The mask has shape {shape_of(mask)}, but its last two axes must be [{N}×{M}] "
            f"({N} queries by {M} keys), or 1 where all share the same values."
        )
    if mask.dim() > len(shape) or any(
        size not in (1, axis)
        for size, axis in zip(mask.shape[-3::-1], reversed(leading), strict=False)
    ):
        raise ValueError(
            f"The mask has shape {shape_of(mask)}, but what it masks has shape "
            f"{shape_of(shape)}: axes before the last two may be left out, or must be the same, "
            "or 1."
        )


# --- The equation ------------------------------------------------------------------------------


def masked_softmax(scores: Float[Tensor, "*scores N M"]) -> Float[Tensor, "*scores N M"]:
    """Softmax over each row, in which a row of nothing but −∞ gives zeros.

    A query that may look at nothing (a row of padding, say) has no distribution over keys: plain
    softmax would divide 0 by 0, and its NaN would spread backwards to every weight.
    """
    empty = (scores == -math.inf).all(dim=-1, keepdim=True)
    return torch.softmax(scores.masked_fill(empty, 0.0), dim=-1).masked_fill(empty, 0.0)


def attention(
    Q: Float[Tensor, "*batch N d_k"],
    K: Float[Tensor, "*batch M d_k"],
    V: Float[Tensor, "*batch M d_v"],
    mask: Float[Tensor, "... #N #M"] | None = None,
    dropout: float = 0.0,
) -> tuple[Float[Tensor, "*batch N d_v"], Float[Tensor, "*batch N M"]]:
    r"""Scaled dot-product attention, as the equation reads.

    $$\mathbf{head} = \mathrm{softmax}\left(\mathrm{mask}\left(
    \frac{\mathbf Q\mathbf K^\top}{\sqrt{d_k}}\right)\right)\mathbf V$$

    Source: `head-par` (8.33, 7.34); with no mask, `bidirectional` (9.2 in the Aug 2026 draft).

    Args:
        Q: what each token asks, one row a query.
        K: what each token offers to be found by, one row a key.
        V: what each token passes on when it is found, one row a value.
        mask: additive mask, broadcast to the scores; None lets every query see every key.
        dropout: share of the weights to drop, as in Vaswani et al. 2017; not in the book.

    Returns:
        The values that each query gathered, and the weights it gathered them with. A query that
        the mask lets see nothing gathers zeros.

    Raises:
        ValueError: if the shapes do not fit together, the mask is not additive, or dropout is no
            share below 1.
    """
    check_qkv(Q, K, V)
    check_dropout(dropout)
    d_k = Q.shape[-1]
    scores = Q @ K.transpose(-2, -1) / math.sqrt(d_k)
    if mask is None:
        alpha = torch.softmax(scores, dim=-1)
    else:
        check_mask(mask, scores.shape)
        alpha = masked_softmax(scores + mask.to(scores.dtype))
    alpha = F.dropout(alpha, dropout)
    return alpha @ V, alpha


def fused_attention(
    Q: Float[Tensor, "*batch N d_k"],
    K: Float[Tensor, "*batch M d_k"],
    V: Float[Tensor, "*batch M d_v"],
    mask: Float[Tensor, "... #N #M"] | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> Float[Tensor, "*batch N d_v"]:
    """The same values as `attention`, without the weights, in the way that is fastest here.

    Mostly that is PyTorch's fused kernel. With `causal` and no mask it is told so by a flag, and no
    N×N mask is ever made. Training on a CPU goes another way: see `better_in_blocks`.

    Args:
        Q: queries.
        K: keys.
        V: values.
        mask: additive mask, broadcast to the scores.
        causal: also hide the future; needs as many keys as queries.
        dropout: share of the weights to drop.

    Returns:
        The gathered values; zeros for a query that may see nothing.

    Raises:
        ValueError: if the shapes do not fit together, the mask is not additive, or dropout is no
            share below 1.
    """
    check_qkv(Q, K, V)
    check_dropout(dropout)
    N, M = Q.shape[-2], K.shape[-2]
    if causal and N != M:
        raise ValueError(
            f"A causal mask needs as many keys as queries, but there are {N} queries and {M} keys."
        )
    if Q.dim() < 4:  # the kernels want [batch × heads × N × d_k]: axes of 1 for what is missing
        more = (None,) * (4 - Q.dim())
        values = fused_attention(Q[more], K[more], V[more], mask, causal, dropout)
        return values.reshape(*Q.shape[:-1], V.shape[-1])
    if causal and mask is None and better_in_blocks(Q, K, V, dropout):
        return causal_in_blocks(Q, K, V, dropout)
    if mask is None:
        return F.scaled_dot_product_attention(Q, K, V, dropout_p=dropout, is_causal=causal)
    check_mask(mask, (*Q.shape[:-1], M))
    mask = mask.to(Q.dtype)
    if causal:
        mask = mask + causal_mask(N, dtype=Q.dtype, device=Q.device)
    # A row of nothing but -inf is NaN in some kernels: let it see everything, then blank it out.
    empty = (mask == -math.inf).all(dim=-1, keepdim=True)
    values = F.scaled_dot_product_attention(
        Q, K, V, attn_mask=mask.masked_fill(empty, 0.0), dropout_p=dropout
    )
    return values.masked_fill(empty, 0.0)


def check_qkv(Q: Tensor, K: Tensor, V: Tensor) -> None:
    """Refuse queries, keys and values that do not fit together.

    Raises:
        ValueError: naming the two shapes that disagree.
    """
    if Q.dim() < 2 or K.dim() < 2 or V.dim() < 2:
        raise ValueError(
            "Q, K and V need at least two axes, [tokens × features], but have shapes "
            f"{shape_of(Q)}, {shape_of(K)} and {shape_of(V)}."
        )
    if Q.shape[-1] != K.shape[-1]:
        raise ValueError(
            f"Queries and keys must have the same size d_k to be multiplied, but Q is "
            f"{shape_of(Q)} and K is {shape_of(K)}."
        )
    if K.shape[-2] != V.shape[-2]:
        raise ValueError(
            f"Each key needs one value, but K is {shape_of(K)} ({K.shape[-2]} keys) and V is "
            f"{shape_of(V)} ({V.shape[-2]} values)."
        )
    if not Q.shape[:-2] == K.shape[:-2] == V.shape[:-2]:
        raise ValueError(
            "Q, K and V must have the same axes before the last two, but have shapes "
            f"{shape_of(Q)}, {shape_of(K)} and {shape_of(V)}."
        )
