"""The fast ways: what PyTorch computes as the equations do, but sooner. A reader may skip how.

Each equation stands in its own module and meets its fast way in one `if`; `reference_mode` (or
SLP_TRANSFORMER_PLAIN=1) takes none of them, and the tests compare the two.
"""

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from slp_transformer._internal.argument_checks import check_attention, check_causal_lengths
from slp_transformer._internal.reference_mode import fast_paths_enabled, is_forward_mode, is_traced
from slp_transformer._internal.shape_types import Float, Int, Tensor
from slp_transformer.masks import add_causal_mask

KERNELS_FOR_ANY_LENGTH = [
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.MATH,
]
QUERIES_PER_CHUNK = 1024  # where padding and the future are hidden together: see `fused_kernel`
MIN_LOGITS = 2**22  # logits from which on they outgrow a cache
LOGITS_PER_CHUNK = 2**18  # logits for each thread that fit into one


# Attention, without a matrix of weights.


def has_fused_kernel(Q: Float[Tensor, "*batch N d_k"], dropout: float) -> bool:
    """Tell if there is one: PyTorch has none that drops weights on a CPU, or derives forwards."""
    without_kernel = (dropout and Q.device.type == "cpu") or is_forward_mode()
    return fast_paths_enabled() and not without_kernel


def fused_attention(
    Q: Float[Tensor, "*batch N d_k"],
    K: Float[Tensor, "*batch M d_k"],
    V: Float[Tensor, "*batch M d_v"],
    mask: Float[Tensor, "... #N #M"] | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> Float[Tensor, "*batch N d_v"]:
    """Compute the values of `attention` with PyTorch's fused kernel, without a matrix of weights.

    `causal` also hides the future; where there are more keys than queries, the queries are those of
    the last tokens. Without a mask the kernel gets a flag, and no N×N mask is ever made.

    Raises:
        ValueError: as `attention`, and if `causal` is asked for with more queries than keys.
    """
    check_attention(Q, K, V, mask, dropout)
    if causal:
        check_causal_lengths(Q, K)
    return fused_kernel(Q, K, V, mask, causal, dropout)


def fused_kernel(Q, K, V, mask, causal, dropout):
    """Compute `fused_attention` for modules that have checked their arguments."""
    shape = (*Q.shape[:-1], V.shape[-1])
    # The kernel's flag stands alone, without a mask, and takes the first query for the first token;
    # after a cache the queries are the last tokens. In these cases the future goes into the mask.
    if causal and (mask is not None or Q.shape[-2] != K.shape[-2]):
        # A row of padding is small, but with the future it becomes a mask of all queries by all
        # keys, for each sequence. While a graph is traced the number of chunks would be fixed.
        if mask is not None and mask.shape[-2] == 1 and not is_traced(Q):
            if Q.shape[-2] > QUERIES_PER_CHUNK:
                return fused_kernel_in_chunks(Q, K, V, mask, dropout)
        mask, causal = add_causal_mask(mask, Q, K), False
    Q = Q if Q.stride(-1) == 1 else Q.contiguous()  # or PyTorch takes the way without a kernel
    if len(shape) != 4:  # PyTorch has kernels for four axes alone
        Q, K, V = to_4d(Q), to_4d(K), to_4d(V)
    if mask is None:
        with kernels_for_any_length(Q) if Q.shape[-2] != K.shape[-2] else nullcontext():
            values = F.scaled_dot_product_attention(Q, K, V, dropout_p=dropout, is_causal=causal)
        return values.view(shape)
    # Axes that are to be flattened must have their full size; others the kernel broadcasts itself.
    mask = mask.expand(*shape[:-2], *mask.shape[-2:]) if len(shape) > 4 else mask
    mask = to_4d(mask).to(Q.dtype)
    # A row of nothing but -inf is NaN in some kernels: let it see everything, then blank it out.
    empty = (mask == -math.inf).all(dim=-1, keepdim=True)
    with kernels_for_any_length(Q):
        values = F.scaled_dot_product_attention(
            Q, K, V, attn_mask=mask.masked_fill(empty, 0.0), dropout_p=dropout
        )
    return values.masked_fill(empty, 0.0).view(shape)


def kernels_for_any_length(Q: Tensor) -> AbstractContextManager[None]:
    """Leave out cuDNN's kernel, which PyTorch prefers on an H100 and its successors.

    For each pair of lengths that it has not met it makes a plan, which takes a hundred times as
    long as the kernel: after a cache each token's number of keys is new, and so are most batches
    of padded pairs.
    """
    return sdpa_kernel(KERNELS_FOR_ANY_LENGTH) if Q.is_cuda else nullcontext()


def fused_kernel_in_chunks(Q, K, V, mask, dropout):
    """Hide padding and the future without a mask of all queries by all keys.

    A chunk of queries needs only the keys up to the last of them, and a mask of that size.
    """
    mask, found, end = mask.expand(*mask.shape[:-1], K.shape[-2]), [], K.shape[-2] - Q.shape[-2]
    for rows in Q.split(QUERIES_PER_CHUNK, dim=-2):
        end += rows.shape[-2]
        seen = (rows, K[..., :end, :], V[..., :end, :], mask[..., :end])
        found.append(fused_kernel(*seen, True, dropout))
    return torch.cat(found, dim=-2)


def to_4d(X: Float[Tensor, "*batch N d"]) -> Float[Tensor, "batch A N d"]:
    """Reshape to [batch × heads × N × d_k], the kernel's: pad with axes of 1, or flatten."""
    return X[(None,) * (4 - X.dim())] if X.dim() < 5 else X.flatten(0, -4)


# The loss over a large vocabulary on a CPU, where moving the logits takes longer than arithmetic.
# PyTorch's cross-entropy makes three arrays of the logits' size, forwards and back. Here it is one:
# forwards a few rows at a time stay in the cache, and the way back begins from the logits.


def fast_cross_entropy(
    U: Float[Tensor, "rows V"],
    targets: Int[Tensor, "rows"],
    label_smoothing: float,
    ignore_index: int,
    reduction: str,
) -> Float[Tensor, ""]:
    """Compute `next_token_loss`, whose arguments have been checked, in the fastest way there is."""
    # For few logits PyTorch's own way is as fast, and elsewhere it is the only one: in other types,
    # on other devices, without gradients, in compiled models, in the transforms of `torch.func`.
    many = U.device.type == "cpu" and U.dtype == torch.float32 and U.numel() >= MIN_LOGITS
    if not (many and U.requires_grad and torch.is_grad_enabled()) or is_traced(U):
        return F.cross_entropy(
            U,
            targets,
            ignore_index=ignore_index,
            reduction=reduction,
            label_smoothing=label_smoothing,
        )
    counts = targets != ignore_index
    words = targets.where(counts, 0).unsqueeze(1)
    total = SummedCrossEntropy.apply(U, words, counts.unsqueeze(1), label_smoothing)
    return total if reduction == "sum" else total / counts.sum()


class SummedCrossEntropy(torch.autograd.Function):
    """The sum, and its gradient: the probabilities less what they should be."""

    @staticmethod
    def forward(ctx, U, words, counts, smoothing):
        """Sum, a few rows at a time."""
        ctx.save_for_backward(U, words, counts)
        ctx.smoothing = smoothing
        found = []
        for rows in iter_row_chunks(U):
            log_y = U[rows].log_softmax(dim=1)
            right = log_y.gather(1, words[rows])
            if smoothing:
                right = (1 - smoothing) * right + smoothing * log_y.mean(dim=1, keepdim=True)
            found.append(right)
        return -torch.cat(found).where(counts, 0.0).sum()

    @staticmethod
    def backward(ctx, grad_output):
        """Return the gradient of the logits; the others have none."""
        U, words, counts = ctx.saved_tensors
        weights, smoothed = grad_output * counts, ctx.smoothing / U.shape[1]
        at_target = torch.full_like(words, ctx.smoothing - 1, dtype=U.dtype)
        # In place no gradient could flow back through this one, for a second derivative.
        if torch.is_grad_enabled():
            y = U.softmax(dim=1)
            return weights * (y - smoothed).scatter_add(1, words, at_target), *[None] * 3
        G = torch.empty_like(U)
        for rows in iter_row_chunks(U):
            y = torch.softmax(U[rows], dim=1, out=G[rows])
            if smoothed:
                y.sub_(smoothed)
            y.scatter_add_(1, words[rows], at_target[rows]).mul_(weights[rows])
        return G, None, None, None


def iter_row_chunks(U: Float[Tensor, "rows V"]) -> Iterator[slice]:
    """Yield ranges of rows that fit into a cache together."""
    count = max(1, LOGITS_PER_CHUNK * torch.get_num_threads() // U.shape[1])
    for first in range(0, len(U), count):
        yield slice(first, first + count)
