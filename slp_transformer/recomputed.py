"""A feedforward layer that keeps half as much for the way back: the lean way to train on a CPU.

Of all that training has to remember, the hidden rows of the feedforward layers are the largest
part, and autograd keeps them twice: before GELU, for its derivative, and after it, for the gradient
of W_2. Here they are kept before GELU alone. GELU is computed a second time on the way back, and
its memory then serves for the gradient of the same rows.
"""

import torch
import torch.nn.functional as F

from slp_transformer.shapes import Float, Tensor


class GeluFFN(torch.autograd.Function):
    """The forward and the backward pass; call `gelu_ffn`."""

    @staticmethod
    def forward(X, W_1, b_1, W_2, b_2):
        """What the layer gives, and the hidden rows before GELU, which the way back needs."""
        hidden = torch.addmm(b_1, X, W_1)
        return torch.addmm(b_2, F.gelu(hidden), W_2), hidden

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Keep what the way back needs."""
        ctx.save_for_backward(*inputs, output[1])
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, d_Y, _):
        """The product rule, for what has a gradient."""
        if d_Y is None:  # nothing has come back
            return (None,) * 5
        *inputs, hidden = ctx.saved_tensors
        needed = ctx.needs_input_grad
        if torch.is_grad_enabled():  # the gradient is to be differentiated again
            wanted = [Z for Z, need in zip(inputs, needed, strict=True) if need]
            found = iter(torch.autograd.grad(plain(*inputs), wanted, d_Y, create_graph=True))
            return tuple(next(found) if need else None for need in needed)
        X, W_1, _, W_2, _ = inputs
        active = F.gelu(hidden)
        d_W_2 = active.T @ d_Y if needed[3] else None
        d_active = torch.mm(d_Y, W_2.T, out=active)
        gelu_backward = torch.ops.aten.gelu_backward.grad_input
        d_hidden = gelu_backward(d_active, hidden, grad_input=d_active)
        return (
            d_hidden @ W_1.T if needed[0] else None,
            X.T @ d_hidden if needed[1] else None,
            d_hidden.sum(0) if needed[2] else None,
            d_W_2,
            d_Y.sum(0) if needed[4] else None,
        )


def plain(X: Tensor, W_1: Tensor, b_1: Tensor, W_2: Tensor, b_2: Tensor) -> Tensor:
    """The equation itself."""
    return F.gelu(X @ W_1 + b_1) @ W_2 + b_2


def gelu_ffn(
    X: Float[Tensor, "*batch d"],
    W_1: Float[Tensor, "d d_ff"],
    b_1: Float[Tensor, "d_ff"],
    W_2: Float[Tensor, "d_ff d_out"],
    b_2: Float[Tensor, "d_out"],
) -> Float[Tensor, "*batch d_out"]:
    """GELU(X @ W_1 + b_1) @ W_2 + b_2, and its gradient.

    Source: `ffn` (8.21; the Aug 2026 draft has SwiGLU in its place), with GELU.

    Args:
        X: rows.
        W_1: first matrix.
        b_1: its offset.
        W_2: second matrix.
        b_2: its offset.

    Returns:
        A row for each of X.
    """
    Y, _ = GeluFFN.apply(X.reshape(-1, X.shape[-1]), W_1, b_1, W_2, b_2)
    return Y.view(*X.shape[:-1], W_2.shape[1])
