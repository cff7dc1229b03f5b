"""Each head's own share of the matrices of all heads, which lie side by side in memory."""

from collections.abc import Callable
from typing import Any

import torch

from slp_transformer._internal.shape_types import Tensor, format_shape


def head_matrix(name: str, share: Callable[["HeadView"], Tensor]) -> property:
    """Make a property: a head's share of a matrix, a view, into which setting copies."""

    @torch.no_grad()
    def copy_into(head: "HeadView", W: Tensor) -> None:
        view = share(head)
        if W.shape != view.shape:
            raise ValueError(
                f"{name} of one head is {format_shape(view)}, rows for inputs and columns for "
                f"outputs, but the matrix given is {format_shape(W)}."
            )
        view.copy_(W)

    return property(share, copy_into)


class HeadView:
    """One head's share of attention's matrices, in the book's orientation.

    Its `W_Q`, `W_K` [d×d_k], `W_V` [d×d_v] and `W_O`, the rows that its output meets [d_v×d], are
    views, through which gradients flow; setting one copies into the shared matrix.
    """

    def __init__(self, mha: Any, c: int):
        """Look at head `c`, counted from 0, of `mha`, which has `HeadMatrices`."""
        self.mha, self.c = mha, c
        self.g: int = c * mha.num_kv_heads // mha.num_heads  # a group shares keys and values

    W_Q = head_matrix("W_Q", lambda of: of.mha.W_Q.chunk(of.mha.num_heads, dim=1)[of.c])
    W_K = head_matrix("W_K", lambda of: of.mha.W_K.chunk(of.mha.num_kv_heads, dim=1)[of.g])
    W_V = head_matrix("W_V", lambda of: of.mha.W_V.chunk(of.mha.num_kv_heads, dim=1)[of.g])
    W_O = head_matrix("W_O", lambda of: of.mha.W_O.chunk(of.mha.num_heads, dim=0)[of.c])
