"""Which way to compute the same thing in training: chosen by device, type and shape, in one place.

PyTorch's own way serves everywhere. On a CPU, training goes others that were faster or took less
memory there (results/speed). Other devices have not been measured. Two choices are not made here,
since they are made once rather than for each call: how products are computed in bfloat16
(`slp_transformer.bfloat16.bfloat16_products`), and how single tokens are read in decoding
(`slp_transformer.one_token.can_be_laid_out`).
"""

import torch
from torch.autograd import forward_ad

from slp_transformer.shapes import Tensor

ENOUGH = 256  # queries from which on attention is faster in blocks than in PyTorch's kernel
ENOUGH_TO_DROP = 64  # the same with dropout, which the kernel does not have


def learns_on_a_cpu(*given: Tensor) -> bool:
    """Whether a CPU computes something of which a gradient will be wanted, in the plain way."""
    wanted = torch.is_grad_enabled() and any(Z.requires_grad for Z in given)
    return wanted and on_a_plain_cpu(*given)


def on_a_plain_cpu(*given: Tensor) -> bool:
    """Whether a CPU computes something in the plain way.

    Not plain are compiled models, for which PyTorch decides by itself what to fuse and what to
    compute again, and transforms that a gradient written by hand does not know: those of
    `torch.func`, and derivatives in forward mode.
    """
    return (
        all(Z.device.type == "cpu" for Z in given)
        and not torch.compiler.is_compiling()
        and not torch._C._are_functorch_transforms_active()
        and all(forward_ad.unpack_dual(Z).tangent is None for Z in given)
    )


def better_in_blocks(Q: Tensor, K: Tensor, V: Tensor, dropout: float) -> bool:
    """Whether causal attention goes in blocks rather than to PyTorch's fused kernel.

    With gradients that is as fast or faster from 256 tokens on; with fewer there is little to leave
    out. Without gradients the kernel has nothing to compute a second time. Where weights are
    dropped, PyTorch has no fused kernel, and blocks need fewer random numbers: there 64 are enough.
    """
    enough = ENOUGH_TO_DROP if dropout else ENOUGH
    return Q.shape[-2] >= enough and learns_on_a_cpu(Q, K, V)


def better_recomputed(*given: Tensor) -> bool:
    """Whether a feedforward layer keeps less for the way back, and computes GELU again.

    Mixed precision is left to PyTorch.
    """
    return not torch.is_autocast_enabled("cpu") and learns_on_a_cpu(*given)
