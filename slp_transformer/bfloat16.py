"""Matrix products in bfloat16, on CPUs without instructions for them too.

`torch.autocast` rounds both sides of a product to bfloat16, adds up in float32, and rounds the sum.
Where a CPU has no instructions for it, PyTorch does so number by number, and training takes
twenty to thirty times as long as in float32 (results/speed). The same sum comes from a product in
float32 of the rounded sides: every product of two bfloat16 numbers is exact there.
"""

import platform
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from slp_transformer.shapes import Tensor


def has_bfloat16() -> bool:
    """Whether this machine's CPU has instructions for products in bfloat16; True if unknown.

    Without them PyTorch computes the same numbers by other means, which take longer than float32.
    """
    # PyTorch has no public name for it. Of an x86 CPU, oneDNN also supports what it has to emulate.
    if platform.machine().lower() in ("x86_64", "amd64"):
        asked = torch.cpu, ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    else:
        asked = torch.ops.mkldnn, ("_is_mkldnn_bf16_supported",)
    probes = [getattr(asked[0], name, None) for name in asked[1]]
    return None in probes or any(probe() for probe in probes)


class bfloat16_products(torch.autocast):
    """A context in which matrix products are computed in bfloat16, as in `torch.autocast`.

    On a CPU without instructions for it, those that are written as `@`, `matmul`, `linear` or
    `scaled_dot_product_attention` go by way of float32. Only the forward pass belongs inside.
    """

    def __init__(self, device: str | torch.device):
        """Make a context, to be entered as often as wanted.

        Args:
            device: where the tensors are.
        """
        super().__init__(torch.device(device).type, torch.bfloat16)
        emulated = self.device == "cpu" and not has_bfloat16()
        self.products = ThroughFloat32() if emulated else nullcontext()

    def __enter__(self) -> None:
        """Begin to round."""
        super().__enter__()
        self.products.__enter__()

    def __exit__(self, *error: Any) -> None:
        """End it, whatever has happened."""
        self.products.__exit__(*error)
        super().__exit__(*error)


class ThroughFloat32(TorchFunctionMode):
    """While it lasts, PyTorch's products are those of this module."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        """What PyTorch calls in place of each of its functions."""
        return INSTEAD.get(func, func)(*args, **(kwargs or {}))


class RoundedProduct(torch.autograd.Function):
    """A @ B + b of bfloat16, added up in float32; call `linear` or `product`."""

    generate_vmap_rule = True

    @staticmethod
    def forward(A, B, b):
        """The sum, rounded once."""
        return in_float32(torch.matmul, A, B) if b is None else in_float32(torch.addmm, b, A, B)

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Keep the two sides, in half the memory that they take in float32."""
        ctx.save_for_backward(*inputs[:2])

    @staticmethod
    def backward(ctx, d):
        """The product rule, each of whose products is one of this kind again.

        Where a side was spread over a batch, autograd adds up what comes back.
        """
        A, B = ctx.saved_tensors
        needed = ctx.needs_input_grad
        return (
            RoundedProduct.apply(d, B.mT, None) if needed[0] else None,
            RoundedProduct.apply(A.mT, d, None) if needed[1] else None,
            in_float32(torch.sum, d, dim=0) if needed[2] else None,
        )


def in_float32(function: Callable[..., Tensor], *given: Tensor, **options: Any) -> Tensor:
    """A function of bfloat16 numbers, computed in float32 and rounded."""
    with torch.autocast("cpu", enabled=False):
        return function(*(Z.float() for Z in given), **options).bfloat16()


def concerned(*given: Tensor) -> bool:
    """Whether autocast would have a CPU round these: not if one is of whole numbers, or double."""
    return all(Z.device.type == "cpu" and Z.dtype in (torch.float32, torch.bfloat16) for Z in given)


def product(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`torch.matmul`."""
    if out is not None or min(input.dim(), other.dim()) < 2 or not concerned(input, other):
        return torch.matmul(input, other, out=out)
    if other.dim() == 2:
        return linear(input, other.mT)
    return RoundedProduct.apply(input.bfloat16(), other.bfloat16(), None)


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`torch.nn.functional.linear`."""
    given = [input, weight] if bias is None else [input, weight, bias]
    if weight.dim() < 2 or not concerned(*given):
        return F.linear(input, weight, bias)
    A, W, *b = (Z.bfloat16() for Z in given)
    Y = RoundedProduct.apply(A.reshape(-1, A.shape[-1]), W.mT, b[0] if b else None)
    return Y.view(*A.shape[:-1], W.shape[0])


def attend(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, **options: Any
) -> Tensor:
    """`torch.nn.functional.scaled_dot_product_attention`."""
    attention = F.scaled_dot_product_attention
    if not concerned(query, key, value):
        return attention(query, key, value, attn_mask, **options)
    if attn_mask is not None and attn_mask.is_floating_point():
        attn_mask = attn_mask.float()
    rounded = (Z.bfloat16() for Z in (query, key, value))
    return in_float32(attention, *rounded, attn_mask=attn_mask, **options)


INSTEAD = {
    torch.matmul: product,
    torch.Tensor.matmul: product,
    torch.Tensor.__matmul__: product,
    F.linear: linear,
    F.scaled_dot_product_attention: attend,
}
