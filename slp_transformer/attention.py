"""Attention: how one token's stream reads from the others.

The equation, and PyTorch's fused kernel, which computes the same without a matrix of weights;
`attend` chooses between them. The heads that make queries, keys and values are in
`slp_transformer.multi_head`, masks in `slp_transformer.masks`. Row vectors throughout: a token is a
row of X [N×d].
"""

import math
from contextlib import AbstractContextManager, nullcontext

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from slp_transformer._internal.argument_checks import check_mask, check_qkv
from slp_transformer._internal.config_checks import check_dropout
from slp_transformer._internal.dropout import apply_dropout
from slp_transformer._internal.reference_mode import fast_paths_enabled, is_forward_mode, is_traced
from slp_transformer._internal.shape_types import Float, Tensor
from slp_transformer.masks import add_causal_mask

KERNELS_FOR_ANY_LENGTH = [
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.MATH,
]
QUERIES_PER_CHUNK = 1024  # where padding and the future are hidden together: see `_fused_kernel`


def masked_softmax(
    scores: Float[Tensor, "*scores N M"], mask: Float[Tensor, "... #N #M"]
) -> Float[Tensor, "*scores N M"]:
    """Softmax over each row of scores + mask; where the mask leaves nothing, a row of zeros.

    A query that may look at nothing (a row of padding, say) has no distribution over keys: plain
    softmax would divide 0 by 0, and its NaN would spread backwards to every weight.
    """
    # Zeros in place of a row of −∞ keep NaN out of the backward pass too; hiding it afterwards
    # would not, since 0 times NaN is NaN.
    empty = (mask == -math.inf).all(dim=-1, keepdim=True)
    return torch.softmax(scores + mask.masked_fill(empty, 0.0), dim=-1).masked_fill(empty, 0.0)


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

    Source: `head-par`, with the scores `QK^T`; again as `causal`, and with no mask
    `bidirectional`. With X in the place of Q,
    K and V, and Q times √d: `simple-sum`, `simple-score` and `simple-softmax`.

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
        # Under autocast the scores are bfloat16; a mask of float32 would make all of them float32.
        alpha = masked_softmax(scores, mask.to(scores.dtype))
    alpha = apply_dropout(alpha, dropout)
    return alpha @ V, alpha


def attend(
    Q: Float[Tensor, "*batch N d_k"],
    K: Float[Tensor, "*batch M d_k"],
    V: Float[Tensor, "*batch M d_v"],
    mask: Float[Tensor, "... #N #M"] | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> Float[Tensor, "*batch N d_v"]:
    """Compute the values of `attention` alone, with the fused kernel where there is one.

    PyTorch has no kernel that drops weights on a CPU, and none with forward-mode derivatives. The
    arguments are not checked: the modules that call this have checked theirs.

    Args:
        Q: queries.
        K: keys.
        V: values.
        mask: additive mask.
        causal: also hide the future; the queries are those of the last tokens.
        dropout: share of the weights to drop.

    Returns:
        The gathered values.
    """
    without_kernel = (dropout and Q.device.type == "cpu") or is_forward_mode()
    if fast_paths_enabled() and not without_kernel:
        return _fused_kernel(Q, K, V, mask, causal, dropout)
    return attention(Q, K, V, add_causal_mask(mask, Q, K) if causal else mask, dropout)[0]


def fused_attention(
    Q: Float[Tensor, "*batch N d_k"],
    K: Float[Tensor, "*batch M d_k"],
    V: Float[Tensor, "*batch M d_v"],
    mask: Float[Tensor, "... #N #M"] | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> Float[Tensor, "*batch N d_v"]:
    """Compute the values of `attention` with PyTorch's fused kernel, without the weights.

    With `causal` and no mask the kernel gets a flag, and no N×N mask is ever made.

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
    return _fused_kernel(Q, K, V, mask, causal, dropout)


def _fused_kernel(Q, K, V, mask, causal, dropout):
    shape = (*Q.shape[:-1], V.shape[-1])
    # The kernel's flag stands alone, without a mask, and takes the first query for the first token;
    # after a cache the queries are the last tokens. In these cases the future goes into the mask.
    if causal and (mask is not None or Q.shape[-2] != K.shape[-2]):
        # A row of padding is small, but with the future it becomes a mask of all queries by all
        # keys, for each sequence. While a graph is traced the number of chunks would be fixed.
        if mask is not None and mask.shape[-2] == 1 and not is_traced(Q):
            if Q.shape[-2] > QUERIES_PER_CHUNK:
                return _fused_kernel_in_chunks(Q, K, V, mask, dropout)
        mask, causal = add_causal_mask(mask, Q, K), False
    Q = Q if Q.stride(-1) == 1 else Q.contiguous()  # or PyTorch takes the way without a kernel
    if len(shape) != 4:  # PyTorch has kernels for four axes alone
        Q, K, V = to_4d(Q), to_4d(K), to_4d(V)
    if mask is None:
        with _kernels_for_any_length(Q) if Q.shape[-2] != K.shape[-2] else nullcontext():
            values = F.scaled_dot_product_attention(Q, K, V, dropout_p=dropout, is_causal=causal)
        return values.view(shape)
    # Axes that are to be flattened must have their full size; others the kernel broadcasts itself.
    mask = mask.expand(*shape[:-2], *mask.shape[-2:]) if len(shape) > 4 else mask
    mask = to_4d(mask).to(Q.dtype)
    # A row of nothing but -inf is NaN in some kernels: let it see everything, then blank it out.
    empty = (mask == -math.inf).all(dim=-1, keepdim=True)
    with _kernels_for_any_length(Q):
        values = F.scaled_dot_product_attention(
            Q, K, V, attn_mask=mask.masked_fill(empty, 0.0), dropout_p=dropout
        )
    return values.masked_fill(empty, 0.0).view(shape)


def _kernels_for_any_length(Q: Tensor) -> AbstractContextManager[None]:
    """Leave out cuDNN's kernel, which PyTorch prefers on an H100 and its successors.

    For each pair of lengths that it has not met it makes a plan, which takes a hundred times as
    long as the kernel: after a cache each token's number of keys is new, and so are most batches
    of padded pairs.
    """
    return sdpa_kernel(KERNELS_FOR_ANY_LENGTH) if Q.is_cuda else nullcontext()


def _fused_kernel_in_chunks(Q, K, V, mask, dropout):
    """Hide padding and the future without a mask of all queries by all keys.

    A chunk of queries needs only the keys up to the last of them, and a mask of that size.
    """
    mask, found, end = mask.expand(*mask.shape[:-1], K.shape[-2]), [], K.shape[-2] - Q.shape[-2]
    for rows in Q.split(QUERIES_PER_CHUNK, dim=-2):
        end += rows.shape[-2]
        seen = (rows, K[..., :end, :], V[..., :end, :], mask[..., :end])
        found.append(_fused_kernel(*seen, True, dropout))
    return torch.cat(found, dim=-2)


def to_4d(X: Float[Tensor, "*batch N d"]) -> Float[Tensor, "batch A N d"]:
    """Reshape to [batch × heads × N × d_k], the kernel's: pad with axes of 1, or flatten."""
    return X[(None,) * (4 - X.dim())] if X.dim() < 5 else X.flatten(0, -4)
