"""The loss over a large vocabulary on a CPU, where moving the logits takes longer than arithmetic.

PyTorch's cross-entropy makes three arrays of the logits' size, forwards and back. Here it is one:
forwards a few rows at a time stay in the cache, and the way back begins from the logits themselves.
"""

from collections.abc import Iterator

import torch

from slp_transformer._internal.reference_mode import is_traced
from slp_transformer._internal.shape_types import Float, Int, Tensor

MIN_LOGITS = 2**22  # logits from which on they outgrow a cache
LOGITS_PER_CHUNK = 2**18  # logits for each thread that fit into one


def try_fast_cross_entropy_sum(
    U: Float[Tensor, "rows V"],
    targets: Int[Tensor, "rows"],
    label_smoothing: float,
    ignore_index: int,
) -> Float[Tensor, ""] | None:
    """Sum cross-entropies, as `torch.nn.functional.cross_entropy` has it.

    Args:
        U: logits.
        targets: the right word of each row.
        label_smoothing: the share of each target's probability that is spread over all words.
        ignore_index: the target of rows that do not count.

    Returns:
        The sum; None where PyTorch's own way is the faster one, or the only one: for few logits, of
        other kinds, without gradients, on other devices, in compiled models, within the transforms
        of `torch.func`, and for targets that are no words or a strange share, which it refuses.
    """
    plain = U.device.type == "cpu" and U.dtype == torch.float32 and not is_traced(U)
    learns = U.requires_grad and torch.is_grad_enabled() and targets.dtype == torch.int64
    if not (plain and learns and U.numel() >= MIN_LOGITS and 0 <= label_smoothing <= 1):
        return None
    counts = targets != ignore_index
    words = targets.where(counts, 0)
    if words.min() < 0 or words.max() >= U.shape[1]:
        return None
    return SummedCrossEntropy.apply(U, words.unsqueeze(1), counts.unsqueeze(1), label_smoothing)


class SummedCrossEntropy(torch.autograd.Function):
    """The sum, and its gradient: the probabilities less what they should be."""

    @staticmethod
    def forward(ctx, U, words, counts, smoothing):
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
    def backward(ctx, above):
        U, words, counts = ctx.saved_tensors
        weights, share = above * counts, ctx.smoothing / U.shape[1]
        less = torch.full_like(words, ctx.smoothing - 1, dtype=U.dtype)
        if torch.is_grad_enabled():  # to be differentiated once more
            return weights * (U.softmax(dim=1) - share).scatter_add(1, words, less), *[None] * 3
        G = torch.empty_like(U)
        for rows in iter_row_chunks(U):
            its = torch.softmax(U[rows], dim=1, out=G[rows])
            if share:
                its.sub_(share)
            its.scatter_add_(1, words[rows], less[rows]).mul_(weights[rows])
        return G, None, None, None


def iter_row_chunks(U: Float[Tensor, "rows V"]) -> Iterator[slice]:
    """Yield ranges of rows that fit into a cache together."""
    count = max(1, LOGITS_PER_CHUNK * torch.get_num_threads() // U.shape[1])
    for first in range(0, len(U), count):
        yield slice(first, first + count)
