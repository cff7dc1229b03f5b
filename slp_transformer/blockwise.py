"""Causal attention a block of queries at a time: the fast way to train on a CPU.

A block of queries is multiplied with the keys up to its own end and no further, so that nearly half
of the scores, the future, are never computed. What is left are plain products of matrices, which a
CPU computes at nearly its full speed; PyTorch's fused kernel, which keeps no weights, computes them
a second time on the way back.
"""

import math

import torch

from slp_transformer.shapes import Float, Tensor

BLOCK = 64  # queries at once; 32 and 128 were slower at 256 tokens on the machine of results/speed


class CausalInBlocks(torch.autograd.Function):
    """The forward and the backward pass; call `causal_in_blocks`."""

    @staticmethod
    def forward(Q, K, V):
        """Values of all queries, and the weights of each block, which the way back needs."""
        N, scale = Q.shape[1], Q.shape[2] ** -0.5
        future = Q.new_full((BLOCK, BLOCK), -math.inf).triu(1)
        values, weights = V.new_empty(V.shape), []
        for start in range(0, N, BLOCK):
            end = min(start + BLOCK, N)
            scores = torch.bmm(Q[:, start:end], K[:, :end].mT).mul_(scale)
            scores[..., start:] += future[: end - start, : end - start]
            alpha = torch.softmax(scores, dim=-1)
            values[:, start:end] = torch.bmm(alpha, V[:, :end])
            weights.append(alpha)
        return values, *weights

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Keep what the way back needs."""
        ctx.save_for_backward(*inputs, *output[1:])
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_values, *_):
        """The product rule, block by block, and the derivative of softmax in between."""
        Q, K, V, *weights = ctx.saved_tensors
        scale = Q.shape[2] ** -0.5
        d_Q, d_K, d_V = torch.empty_like(Q), torch.zeros_like(K), torch.zeros_like(V)
        start = 0
        for alpha in weights:
            end = alpha.shape[2]
            d_block = d_values[:, start:end]
            d_V[:, :end].baddbmm_(alpha.mT, d_block)
            d_alpha = torch.bmm(d_block, V[:, :end].mT)
            softmax_backward = torch.ops.aten._softmax_backward_data
            d_scores = softmax_backward(d_alpha, alpha, -1, alpha.dtype).mul_(scale)
            d_Q[:, start:end] = torch.bmm(d_scores, K[:, :end])
            d_K[:, :end].baddbmm_(d_scores.mT, Q[:, start:end])
            start = end
        return d_Q, d_K, d_V


def causal_in_blocks(
    Q: Float[Tensor, "*batch N d_k"],
    K: Float[Tensor, "*batch N d_k"],
    V: Float[Tensor, "*batch N d_v"],
) -> Float[Tensor, "*batch N d_v"]:
    """The values of `attention` with a causal mask, and their gradient.

    Source: `head-par` (8.33, 7.34). The gradient itself cannot be differentiated again.

    Args:
        Q: queries.
        K: as many keys.
        V: as many values.

    Returns:
        The gathered values.
    """
    flat = [Z.reshape(-1, *Z.shape[-2:]) for Z in (Q, K, V)]
    return CausalInBlocks.apply(*flat)[0].view(*Q.shape[:-1], V.shape[-1])
