"""Attention as today's models have it: shared keys and values, rotated queries and keys."""

import torch
from torch import nn, zeros

from slp_transformer._internal.config_checks import check_size
from slp_transformer._internal.shape_types import Float, Tensor
from slp_transformer._internal.weight_matrices import affine, matrix
from slp_transformer.modern.rms_norm import RMSNorm
from slp_transformer.modern.rotary import RotaryPositions
from slp_transformer.multi_head import HeadMatrices, MultiHeadAttention, split_heads


def shared(K: Float[Tensor, "*batch G M d_k"], num_heads: int) -> Float[Tensor, "*batch A M d_k"]:
    """Give each of A heads the keys (or values) of its group: every one of G is repeated A/G times.

    Ainslie et al. 2023 (arXiv 2305.13245). With G = A every head has its own, with G = 1 all share
    one (Shazeer 2019, arXiv 1911.02150).
    """
    each = num_heads // K.shape[-3]
    return K if each == 1 else K.repeat_interleave(each, dim=-3)


def check_groups(num_heads: int, num_kv_heads: int) -> None:
    """Refuse heads that cannot share keys and values in groups of one size.

    Raises:
        ValueError: if a number is not a positive whole number, or the second does not divide the
            first.
    """
    check_size(num_heads=num_heads, num_kv_heads=num_kv_heads)
    if num_heads % num_kv_heads:
        raise ValueError(
            f"num_kv_heads = {num_kv_heads} does not divide num_heads = {num_heads}: every key and "
            "value must be shared by the same number of heads."
        )


class TodaysAttention(MultiHeadAttention):
    r"""Multi-head attention with three small steps away from the book's, each of them optional.

    Heads share keys and values in groups (`shared`); queries and keys are rotated to where their
    tokens stand (`RotaryPositions`); each head's queries and keys are normalised (Qwen3, arXiv
    2505.09388, section 2). All else, the equation first, is `MultiHeadAttention`.

    Attributes:
        num_kv_heads: G, heads that have keys and values of their own.
        W_QKV: all matrices that read the stream, side by side [d×(Ad_k+Gd_k+Gd_v)].
        W_K: the key matrices in it [d×Gd_k].
        W_V: the value matrices in it [d×Gd_v].
        b_QKV: their biases, side by side, or None.
        b_O: bias of the output [d], or None.
        norm_Q: norm of each head's queries, or None.
        norm_K: norm of each head's keys, or None.
        rotary: the rotations, or None.
    """

    num_kv_heads: int | None = None

    def __init__(
        self,
        model_dim: int,
        num_heads: int,
        num_kv_heads: int | None = None,
        key_dim: int | None = None,
        value_dim: int | None = None,
        dropout: float = 0.0,
        *,
        bias: bool = False,
        qk_norm_eps: float | None = None,
        rotary: RotaryPositions | None = None,
    ):
        """Make the heads.

        Args:
            model_dim: d.
            num_heads: A.
            num_kv_heads: G; A if not given.
            key_dim: d_k of each head; d/A if not given.
            value_dim: d_v of each head; d/A if not given.
            dropout: share of the attention weights to drop in training.
            bias: whether the products have biases.
            qk_norm_eps: epsilon of the norms of queries and keys; None for no such norms.
            rotary: rotations of queries and keys; layers may share them.

        Raises:
            ValueError: if a size is not a positive whole number, d/A is asked for and A does not
                divide d, or G does not divide A.
        """
        super().__init__(model_dim, num_heads, key_dim, value_dim, dropout)
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        check_groups(num_heads, self.num_kv_heads)
        widths, normed = self._widths(), qk_norm_eps is not None
        self.W_QKV = nn.Parameter(torch.cat([matrix(model_dim, w) for w in widths], dim=1))
        self.b_QKV = nn.Parameter(zeros(sum(widths))) if bias else None
        self.b_O = nn.Parameter(zeros(model_dim)) if bias else None
        self.norm_Q = RMSNorm(self.key_dim, qk_norm_eps) if normed else None
        self.norm_K = RMSNorm(self.key_dim, qk_norm_eps) if normed else None
        self.rotary = rotary

    def _widths(self) -> list[int]:
        """Columns of W_Q, W_K and W_V in W_QKV: A heads' queries, keys and values of G."""
        A, G = self.num_heads, self.num_kv_heads or self.num_heads
        return [A * self.key_dim, G * self.key_dim, G * self.value_dim]

    @property
    def heads(self) -> tuple[HeadMatrices, ...]:
        """Each head's matrices; heads of one group have the same W_K and W_V."""
        return tuple(SharedMatrices(self, c) for c in range(self.num_heads))

    def project(
        self,
        X: Float[Tensor, "*batch N d"],
        H_enc: None = None,
        start: int = 0,
    ) -> tuple[
        Float[Tensor, "*batch A N d_k"],
        Float[Tensor, "*batch G N d_k"],
        Float[Tensor, "*batch G N d_v"],
    ]:
        """The queries of A heads, the keys and values of G.

        Args:
            X: one row a token.
            H_enc: there is no cross-attention here.
            start: position of X's first token.

        Raises:
            ValueError: if there is an `H_enc`.
        """
        if H_enc is not None:
            raise ValueError("This attention reads X alone: leave out H_enc.")
        Q, K, V = affine(X, self.W_QKV, self.b_QKV).split(self._widths(), dim=-1)
        Q, K, V = (split_heads(Z, Z.shape[-1] // size) for Z, size in
                   ((Q, self.key_dim), (K, self.key_dim), (V, self.value_dim)))  # fmt: skip
        if self.norm_Q is not None:
            Q, K = self.norm_Q(Q), self.norm_K(K)
        if self.rotary is not None:
            Q, K = self.rotary(Q, start), self.rotary(K, start)
        return self.see("Q", Q), self.see("K", K), self.see("V", V)

    def look(self, Q, K, V, mask, causal, return_weights=False):
        """What each head gathers, from the keys and values of its group."""
        if Q.shape[-2] == 1 and mask is None and not return_weights and self.watch is None:
            return self.look_from_one(Q, K, V), None
        K, V = shared(K, self.num_heads), shared(V, self.num_heads)
        return super().look(Q, K, V, mask, causal, return_weights)

    def look_from_one(
        self,
        Q: Float[Tensor, "*batch A 1 d_k"],
        K: Float[Tensor, "*batch G M d_k"],
        V: Float[Tensor, "*batch G M d_v"],
    ) -> Float[Tensor, "*batch A 1 d_v"]:
        """The same for a single token, as in decoding: nothing is repeated.

        The queries of a group are rows of one attention, all looking at the same keys.
        """
        rows = Q.squeeze(-2).unflatten(-2, (self.num_kv_heads, -1))
        gathered, _ = super().look(rows, K, V, None, False)
        return gathered.flatten(-3, -2).unsqueeze(-2)

    def forward(self, X, mask=None, **how):
        """As `MultiHeadAttention`, with the output's bias if there is one."""
        A = super().forward(X, mask, **how)
        if self.b_O is None:
            return A
        return (A[0] + self.b_O, A[1]) if isinstance(A, tuple) else A + self.b_O


class SharedMatrices(HeadMatrices):
    """One head's matrices where heads share keys and values: W_K and W_V are those of its group."""

    def __init__(self, mha: TodaysAttention, c: int):
        """Look at head `c`, counted from 0, of `mha`."""
        super().__init__(mha, c)
        g = c * mha.num_kv_heads // mha.num_heads
        every = slice(None)
        self._where |= {
            "W_K": (every, slice(g * mha.key_dim, (g + 1) * mha.key_dim)),
            "W_V": (every, slice(g * mha.value_dim, (g + 1) * mha.value_dim)),
        }
