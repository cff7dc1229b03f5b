"""Masks: who may look at whom.

Masks are additive: 0 where attention is allowed, −∞ where it is not. They are added to the scores
before the softmax, and to each other.
"""

import math

import torch

from slp_transformer._internal.argument_checks import check_mask, check_token_counts
from slp_transformer._internal.shape_types import Float, Int, Tensor


def causal_mask(
    N: int,
    num_past_tokens: int = 0,
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> Float[Tensor, "N T"]:
    """Return the mask that hides the future: 0 on and below the diagonal, −∞ above it.

    Source: `mask`.

    Args:
        N: number of tokens.
        num_past_tokens: tokens that stand before these and can be looked at, as those in a cache.
        dtype: floating type of the mask; torch's default if not given.
        device: where the mask lives.

    Returns:
        M [N×N], with M[i, j] = −∞ where j > i and 0 elsewhere; with `num_past_tokens`, as many
        columns of 0 in front.

    Raises:
        ValueError: if a number is negative.
    """
    check_token_counts("causal_mask", N, num_past_tokens)
    M = torch.full((N, num_past_tokens + N), -math.inf, dtype=dtype, device=device)
    return M.triu(diagonal=num_past_tokens + 1)


def add_causal_mask(
    mask: Float[Tensor, "..."] | None,
    Q: Float[Tensor, "*batch N d_k"],
    K: Float[Tensor, "*batch M d_k"],
) -> Float[Tensor, "..."] | None:
    """Add the causal mask to a mask: the queries are those of the last N of M tokens.

    The last token has no future to hide, so for a single query nothing is added.
    """
    N, M = Q.shape[-2], K.shape[-2]
    if N == 1:
        return mask
    future = causal_mask(N, M - N, dtype=Q.dtype, device=Q.device)
    return future if mask is None else mask + future


def padding_mask(
    ids: Int[Tensor, "*batch M"], pad_id: int, *, dtype: torch.dtype | None = None
) -> Float[Tensor, "*batch 1 M"]:
    """Return the mask that hides padding from every query: −∞ wherever `ids` holds `pad_id`.

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


def expand_mask_to_heads(
    mask: Float[Tensor, "..."] | None,
    Q: Float[Tensor, "*batch A N d_k"],
    K: Float[Tensor, "*batch _ M d_k"],
) -> Float[Tensor, "..."] | None:
    """Give a mask an axis for the heads, if it has leading axes but none for them.

    Raises:
        ValueError: if the mask is not additive, or does not fit.
    """
    if mask is None:
        return None
    # A mask with as many axes as the queries, of which one is the heads', has one for them already;
    # one without leading axes [N×M] is the same for all and broadcasts by itself.
    per_head = mask.dim() >= Q.dim()
    shape = (*Q.shape[:-1], K.shape[-2])
    check_mask(mask, shape if per_head else (*shape[:-3], *shape[-2:]))
    return mask.unsqueeze(-3) if mask.dim() > 2 and not per_head else mask
