"""Attention: how one token's stream reads from the others.

`attention` is the equation. A model asks `attend`, which takes PyTorch's fused kernel
(`slp_transformer.fast`) where nobody looks at the weights, and `attention` where somebody does;
the tests compare the two. The heads that make queries, keys and values are in
`slp_transformer.multi_head`. Row vectors throughout: a token is a row of X [N×d].
"""

import math

import torch

from slp_transformer._internal.argument_checks import check_attention
from slp_transformer._internal.shape_types import Float, Tensor
from slp_transformer.dropout import apply_dropout
from slp_transformer.fast import fused_kernel, has_fused_kernel
from slp_transformer.hooks import Hook, pass_on
from slp_transformer.masks import add_causal_mask, expand_mask_to_heads


def attention(
    Q: Float[Tensor, "*batch N d_k"],
    K: Float[Tensor, "*batch M d_k"],
    V: Float[Tensor, "*batch M d_v"],
    mask: Float[Tensor, "... #N #M"] | None = None,
    dropout: float = 0.0,
    point: Hook = pass_on,
) -> tuple[Float[Tensor, "*batch N d_v"], Float[Tensor, "*batch N M"]]:
    r"""Scaled dot-product attention, as the equation reads.

    $$\mathbf{head} = \mathrm{softmax}\left(\mathrm{mask}\left(
    \frac{\mathbf Q\mathbf K^\top}{\sqrt{d_k}}\right)\right)\mathbf V$$

    Source: `head-par`, with the scores `QK^T`; again as `causal`, and with no mask `bidirectional`.
    With X in the place of Q, K and V, and Q times √d: `simple-sum`, `simple-score` and
    `simple-softmax`.

    Args:
        Q: what each token asks, one row a query.
        K: what each token offers to be found by, one row a key.
        V: what each token passes on when it is found, one row a value.
        mask: additive mask, broadcast to the scores; None lets every query see every key.
        dropout: share of the weights to drop, as in Vaswani et al. 2017; not in the book.
        point: sees each step by its name, and may change it (`slp_transformer.hooks`).

    Returns:
        The values that each query gathered, and the weights it gathered them with. A query that
        the mask lets see nothing gathers zeros.

    Raises:
        ValueError: if the shapes do not fit together, the mask is not additive, or dropout is no
            share below 1.
    """
    check_attention(Q, K, V, mask, dropout)
    d_k = Q.shape[-1]
    scores = point("scores", Q @ K.mT / math.sqrt(d_k))
    alpha = point("alpha", apply_dropout(masked_softmax(scores, mask), dropout))
    return point("head", alpha @ V), alpha


def attend(
    Q: Float[Tensor, "*batch A N d_k"],
    K: Float[Tensor, "*batch A M d_k"],
    V: Float[Tensor, "*batch A M d_v"],
    mask: Float[Tensor, "..."] | None = None,
    causal: bool = False,
    dropout: float = 0.0,
    point: Hook = pass_on,
    return_weights: bool = False,
) -> tuple[Float[Tensor, "*batch A N d_v"], Float[Tensor, "*batch A N M"] | None]:
    """Compute the `attention` of heads by the fused kernel, unless its weights are asked for.

    Args:
        Q: as for `attention`, like all that is not named here.
        K: likewise.
        V: likewise.
        mask: likewise, with an axis for the heads or without.
        causal: hide the future too: the queries are those of the last N of M tokens.
        dropout: likewise.
        point: likewise.
        return_weights: whether the weights are needed; the kernel has none.

    Returns:
        The values, and the weights or None.

    Raises:
        ValueError: if the mask is not additive or does not fit.
    """
    mask = expand_mask_to_heads(mask, Q, K)
    if point is pass_on and not return_weights and has_fused_kernel(Q, dropout):
        return fused_kernel(Q, K, V, mask, causal, dropout), None
    return attention(Q, K, V, add_causal_mask(mask, Q, K) if causal else mask, dropout, point)


def masked_softmax(
    scores: Float[Tensor, "*scores N M"], mask: Float[Tensor, "... #N #M"] | None
) -> Float[Tensor, "*scores N M"]:
    """Softmax over each row of scores + mask; where the mask leaves nothing, a row of zeros.

    A query that may look at nothing (a row of padding, say) has no distribution over keys: plain
    softmax would divide 0 by 0, and its NaN would spread backwards to every weight.
    """
    if mask is None:
        return torch.softmax(scores, dim=-1)
    # Under autocast the scores are bfloat16; a mask of float32 would make all of them float32.
    mask = mask.to(scores.dtype)
    # Zeros in place of a row of −∞ keep NaN out of the backward pass too; hiding it afterwards
    # would not, since 0 times NaN is NaN.
    empty = (mask == -math.inf).all(dim=-1, keepdim=True)
    return torch.softmax(scores + mask.masked_fill(empty, 0.0), dim=-1).masked_fill(empty, 0.0)
