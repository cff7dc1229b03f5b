"""The matrices of all heads, side by side in memory, and each head's own share of them."""

from collections.abc import Callable

import torch
from torch import nn

from slp_transformer._internal.config_checks import resolve_head_sizes
from slp_transformer._internal.shape_types import ShapedModule, Tensor, format_shape
from slp_transformer._internal.weight_matrices import make_weight_matrix


class HeadMatrices(ShapedModule):
    """The matrices of A heads for queries, and of G for keys and values.

    The heads' matrices lie side by side, and so do those for queries, keys and values, so that all
    of them are one product; `heads[c].W_Q` is the book's W^{Qc} (heads are counted from 0).

    Attributes:
        W_QKV: all matrices that read the stream, side by side [d×(Ad_k+Gd_k+Gd_v)].
        W_Q: the query matrices of all heads in it [d×Ad_k]; a view.
        W_K: the key matrices, likewise [d×Gd_k].
        W_V: the value matrices, likewise [d×Gd_v].
        W_O: output matrix [Ad_v×d].
    """

    def __init__(
        self,
        model_dim: int,
        num_heads: int,
        num_kv_heads: int,
        key_dim: int | None,
        value_dim: int | None,
    ):
        """Draw them; key_dim and value_dim are d/A if not given.

        Raises:
            ValueError: if a size is not a positive whole number, or d/A is asked for and A does
                not divide d.
        """
        super().__init__()
        d_k, d_v = resolve_head_sizes(model_dim, num_heads, key_dim, value_dim)
        self.key_dim, self.value_dim = d_k, d_v
        self.model_dim, self.num_heads, self.num_kv_heads = model_dim, num_heads, num_kv_heads
        self.widths = (num_heads * d_k, num_kv_heads * d_k, num_kv_heads * d_v)
        # Each is drawn by itself, so that a seed gives what it would give to three parameters.
        self.W_QKV = nn.Parameter(
            torch.cat([make_weight_matrix(model_dim, w) for w in self.widths], dim=1)
        )
        self.W_O = make_weight_matrix(num_heads * d_v, model_dim)

    W_Q = property(lambda self: self.W_QKV.split(self.widths, dim=1)[0])
    W_K = property(lambda self: self.W_QKV.split(self.widths, dim=1)[1])
    W_V = property(lambda self: self.W_QKV.split(self.widths, dim=1)[2])

    @property
    def fused_layout(self) -> dict[str, dict[str, int]]:
        """Return the matrices that each fused matrix holds, and their numbers of columns."""
        return {"W_QKV": dict(zip(("W_Q", "W_K", "W_V"), self.widths, strict=True))}

    @property
    def matrices(self) -> list[Tensor]:
        """Return W_Q, W_K, W_V and W_O; the last writes to the residual stream."""
        return [self.W_Q, self.W_K, self.W_V, self.W_O]

    @property
    def heads(self) -> tuple["HeadView", ...]:
        """Return each head's own matrices, to read and to set: `mha.heads[2].W_K = W`."""
        return tuple(HeadView(self, c) for c in range(self.num_heads))


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

    def __init__(self, mha: HeadMatrices, c: int):
        """Look at head `c`, counted from 0, of `mha`."""
        self.mha, self.c = mha, c
        self.g: int = c * mha.num_kv_heads // mha.num_heads  # a group shares keys and values

    W_Q = head_matrix("W_Q", lambda of: of.mha.W_Q.chunk(of.mha.num_heads, dim=1)[of.c])
    W_K = head_matrix("W_K", lambda of: of.mha.W_K.chunk(of.mha.num_kv_heads, dim=1)[of.g])
    W_V = head_matrix("W_V", lambda of: of.mha.W_V.chunk(of.mha.num_kv_heads, dim=1)[of.g])
    W_O = head_matrix("W_O", lambda of: of.mha.W_O.chunk(of.mha.num_heads, dim=0)[of.c])
