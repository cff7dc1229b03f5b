"""Causal attention a block of queries at a time: the fast way to train on a CPU.

A block of queries is multiplied with the keys up to its own end and no further, so that nearly half
of the scores, the future, are never computed. What is left are plain products of matrices, which a
CPU computes at nearly its full speed; PyTorch's fused kernel, which keeps no weights, computes them
a second time on the way back. With dropout PyTorch has no such kernel on a CPU; here nearly half of
the random numbers, too, are never drawn.
"""

import math
from collections.abc import Iterator

import torch

from slp_transformer.bfloat16 import has_bfloat16, in_float32
from slp_transformer.dropping import draw_kept, make_up
from slp_transformer.shapes import Float, Tensor

BLOCK = 64  # queries at once; results/speed compares sizes
PIECE = 2**18  # numbers that the queries of the sequences computed together have: a mebibyte
PER_CORE = 4  # heads that each core has at least, when there are enough


class CausalInBlocks(torch.autograd.Function):
    """The forward and the backward pass; call `causal_in_blocks`."""

    @staticmethod
    def forward(Q, K, V, dropout):
        """Values of all queries, and what the way back needs of each block: the weights.

        With dropout, which of them are kept as well; what is kept is scaled up by way of V.
        """
        N, scale = Q.shape[2], Q.shape[3] ** -0.5
        future = Q.new_full((BLOCK, BLOCK), -math.inf).triu(1)
        values, weights, kept = side_by_side(V), [], []
        for group in groups(len(Q), group_size(Q)):
            q, k, v = (Z[group].flatten(0, 1) for Z in (Q, K, V))
            q, v, gathered = q * scale, v * make_up(dropout) if dropout else v, values[group]
            for start in range(0, N, BLOCK):
                end = min(start + BLOCK, N)
                scores = torch.bmm(q[:, start:end], k[:, :end].mT)
                scores[..., start:] += future[: end - start, : end - start]
                alpha = torch.softmax(scores, dim=-1)
                weights.append(alpha)
                if dropout:
                    kept.append(draw_kept(alpha.shape, dropout))
                    alpha = alpha * kept[-1]
                write(gathered[:, :, start:end], torch.bmm(alpha, v[:, :end]))
        return values, *weights, *kept

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Keep what the way back needs; the sizes too, for it may be gone in another thread."""
        ctx.block, ctx.group, ctx.dropout = BLOCK, group_size(inputs[0]), inputs[3]
        ctx.save_for_backward(*inputs[:3], *output[1:])
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_values, *_):
        """The product rule, block by block, and the derivative of softmax in between."""
        if d_values is None:  # nothing has come back
            return (None,) * 4
        Q, K, V, *saved = ctx.saved_tensors
        kept = saved[len(saved) // 2 :] if ctx.dropout else [None] * len(saved)
        weights = list(zip(saved, kept, strict=False))
        d_Q, d_K, d_V = gradients = tuple(side_by_side(Z) for Z in (Q, K, V))
        blocks = -(-Q.shape[2] // ctx.block)
        for number, group in enumerate(groups(len(Q), ctx.group)):
            q, k, v, d = (Z[group].flatten(0, 1) for Z in (Q, K, V, d_values))
            d = d * make_up(ctx.dropout) if ctx.dropout else d
            d_scaled = d * q.shape[2] ** -0.5
            # The last block sees every key, so it comes first: what it gives is written, not added.
            for alpha, keep in reversed(weights[number * blocks : (number + 1) * blocks]):
                rows, end = alpha.shape[1:]
                here = slice(end - rows, end)
                d_alpha, dropped = torch.bmm(d_scaled[:, here], v[:, :end].mT), alpha
                if keep is not None:
                    d_alpha, dropped = d_alpha.mul_(keep), alpha * keep
                d_scores = softmax_backward(d_alpha, alpha)
                write(d_Q[group][:, :, here], torch.bmm(d_scores, k[:, :end]))
                give = write if end == Q.shape[2] else add
                give(d_K[group][:, :, :end], torch.bmm(d_scores.mT, q[:, here]))
                give(d_V[group][:, :, :end], torch.bmm(dropped.mT, d[:, here]))
        return *gradients, None


def softmax_backward(d_alpha: Tensor, alpha: Tensor) -> Tensor:
    """What a gradient of the weights says of the scores."""
    return torch.ops.aten._softmax_backward_data(d_alpha, alpha, -1, alpha.dtype)


def write(place: Tensor, flat: Tensor) -> None:
    """Write to a group's place what was computed of all its heads in one row."""
    place.copy_(flat.view(place.shape))


def add(place: Tensor, flat: Tensor) -> None:
    """Add it there."""
    place.add_(flat.view(place.shape))


def side_by_side(Z: Float[Tensor, "batch A N share"]) -> Float[Tensor, "batch A N share"]:
    """New memory for such a tensor, in which the heads' parts of a row already lie together."""
    batch, A, N, share = Z.shape
    return Z.new_empty(batch, N, A, share).transpose(1, 2)


def group_size(Q: Float[Tensor, "batch A N d_k"]) -> int:
    """How many sequences to compute together: few, so that little memory is in use besides.

    Yet enough that every core has work to do.
    """
    _, A, N, d_k = Q.shape
    return max(PIECE // (A * N * d_k), math.ceil(PER_CORE * torch.get_num_threads() / A))


def groups(batch: int, size: int) -> Iterator[slice]:
    """The sequences of a batch, so many at a time."""
    return (slice(start, start + size) for start in range(0, batch, size))


def causal_in_blocks(
    Q: Float[Tensor, "*batch A N d_k"],
    K: Float[Tensor, "*batch A N d_k"],
    V: Float[Tensor, "*batch A N d_v"],
    dropout: float = 0.0,
) -> Float[Tensor, "*batch A N d_v"]:
    """The values of `attention` with a causal mask, and their gradient.

    Source: `head-par` (8.33, 7.34). The gradient itself cannot be differentiated again.

    Args:
        Q: queries of every head.
        K: as many keys.
        V: as many values.
        dropout: share of the weights to drop.

    Returns:
        The gathered values.
    """
    if Q.dtype == torch.bfloat16 and not has_bfloat16():
        return in_float32(causal_in_blocks, Q, K, V, dropout=dropout)
    flat = (Z.reshape(-1, *Z.shape[-3:]) for Z in (Q, K, V))
    values, *_ = CausalInBlocks.apply(*flat, dropout)
    return values.reshape(*Q.shape[:-1], V.shape[-1])
