"""Attention heads: the matrices that make queries, keys and values, for one head and for many.

`AttentionHead` is one head with matrices of its own. In `MultiHeadAttention` all heads are computed
in one product: their matrices lie side by side.
"""

import torch
from torch import nn

from slp_transformer.attention import attention, causal_mask, check_mask, fused_attention
from slp_transformer.cache import KVCache
from slp_transformer.dropping import check_dropout
from slp_transformer.matrices import check_features, check_size, matrix
from slp_transformer.shapes import Float, Tensor, shape_of


def head_sizes(
    model_dim: int, num_heads: int, key_dim: int | None, value_dim: int | None
) -> tuple[int, int]:
    """d_k and d_v of each of `num_heads` heads: what was asked for, or d/A where nothing was.

    Raises:
        ValueError: if a size is not a positive whole number, or d/A is needed and A does not
            divide d.
    """
    check_size(model_dim=model_dim, num_heads=num_heads)
    if (key_dim is None or value_dim is None) and model_dim % num_heads:
        raise ValueError(
            f"model_dim = {model_dim} cannot be shared equally among num_heads = {num_heads}: "
            "choose a number of heads that divides it, or give key_dim and value_dim."
        )
    share = model_dim // num_heads
    key_dim = share if key_dim is None else key_dim
    value_dim = share if value_dim is None else value_dim
    check_size(key_dim=key_dim, value_dim=value_dim)
    return key_dim, value_dim


class AttentionHead(nn.Module):
    """One attention head with its own output matrix.

    Source: `qkv-final` to `head-out` (8.10-8.14, 7.10-7.14) one token at a time, `QKV`, `head-par`
    and `A-out` (8.32-8.34, 7.33-7.35) for all tokens at once. No biases, as in the book.

    Attributes:
        W_Q: query matrix [d×d_k].
        W_K: key matrix [d×d_k].
        W_V: value matrix [d×d_v].
        W_O: output matrix [d_v×d].
    """

    def __init__(self, model_dim: int, key_dim: int, value_dim: int | None = None):
        """Make a head.

        Args:
            model_dim: d, the size of a token's row.
            key_dim: d_k, the size of queries and keys.
            value_dim: d_v, the size of values; d_k if not given.

        Raises:
            ValueError: if a size is not a positive whole number.
        """
        super().__init__()
        value_dim = key_dim if value_dim is None else value_dim
        check_size(model_dim=model_dim, key_dim=key_dim, value_dim=value_dim)
        self.model_dim = model_dim
        self.W_Q = matrix(model_dim, key_dim)
        self.W_K = matrix(model_dim, key_dim)
        self.W_V = matrix(model_dim, value_dim)
        self.W_O = matrix(value_dim, model_dim)

    def forward(
        self, X: Float[Tensor, "*batch N d"], mask: Float[Tensor, "... #N #N"] | None = None
    ) -> tuple[Float[Tensor, "*batch N d"], Float[Tensor, "*batch N N"]]:
        """Attend from every token of X to the tokens of X that the mask allows.

        Args:
            X: one row a token.
            mask: additive mask; `causal_mask(N)` for the book's left-to-right attention.

        Returns:
            A, the head's output for each token, and the attention weights.

        Raises:
            ValueError: if X is not [... × N × d], or the mask does not fit.
        """
        check_features("X", X, self.model_dim)
        Q, K, V = X @ self.W_Q, X @ self.W_K, X @ self.W_V
        head, alpha = attention(Q, K, V, mask)
        return head @ self.W_O, alpha


def split_heads(
    X: Float[Tensor, "*batch N features"], num_heads: int
) -> Float[Tensor, "*batch A N share"]:
    """Give each head its own share of the columns: [N×Ad_k] becomes [A×N×d_k].

    Head c takes columns c·d_k up to (c+1)·d_k. Nothing is copied: the result is a view.
    """
    return X.unflatten(-1, (num_heads, -1)).transpose(-3, -2)


def join_heads(heads: Float[Tensor, "*batch A N share"]) -> Float[Tensor, "*batch N features"]:
    """Put the heads side by side again, head¹ ⊕ … ⊕ headᴬ: [A×N×d_v] becomes [N×Ad_v].

    The transpose must come first. It usually leaves the parts of a row apart in memory, and then
    joining them makes a copy.
    """
    return heads.transpose(-3, -2).flatten(-2)


class MultiHeadAttention(nn.Module):
    r"""A heads that attend side by side, each with matrices of its own.

    $$\mathrm{MHA}(\mathbf X) = (\mathbf{head}_1\oplus\dots\oplus\mathbf{head}_A)\mathbf W^O$$

    Source: `mh-qkv` to `mh-def` (8.15-8.20, 7.15-7.20) one token at a time, `mh-par-qkv` to
    `mh-par-out` (8.35-8.37, 7.36-7.38) in parallel; with `H_enc`, `cross-QKV` and `cross-attn`
    (13.11 and 13.12 in the Aug 2026 draft). No biases, as in the book.

    The heads' matrices lie side by side in one matrix each, so that all heads are computed in one
    product; `heads[c].W_Q` is the book's W^{Qc} (heads are counted from 0).

    Attributes:
        W_Q: query matrices of all heads, side by side [d×Ad_k].
        W_K: key matrices, likewise [d×Ad_k].
        W_V: value matrices, likewise [d×Ad_v].
        W_O: output matrix [Ad_v×d].
        dropout: share of the attention weights that is dropped in training.
    """

    def __init__(
        self,
        model_dim: int,
        num_heads: int,
        key_dim: int | None = None,
        value_dim: int | None = None,
        dropout: float = 0.0,
    ):
        """Make the heads.

        Args:
            model_dim: d, the size of a token's row.
            num_heads: A.
            key_dim: d_k of each head; d/A if not given.
            value_dim: d_v of each head; d/A if not given.
            dropout: share of the attention weights to drop in training; not in the book.

        Raises:
            ValueError: if a size is not a positive whole number, or d/A is asked for and A does
                not divide d.
        """
        super().__init__()
        check_dropout(dropout)
        key_dim, value_dim = head_sizes(model_dim, num_heads, key_dim, value_dim)
        self.model_dim, self.num_heads = model_dim, num_heads
        self.key_dim, self.value_dim = key_dim, value_dim
        self.dropout = dropout
        self.W_Q = matrix(model_dim, num_heads * key_dim)
        self.W_K = matrix(model_dim, num_heads * key_dim)
        self.W_V = matrix(model_dim, num_heads * value_dim)
        self.W_O = matrix(num_heads * value_dim, model_dim)

    @property
    def output_matrix(self) -> nn.Parameter:
        """The matrix that writes to the residual stream."""
        return self.W_O

    @property
    def heads(self) -> tuple["HeadMatrices", ...]:
        """Each head's own matrices, to read and to set: `mha.heads[2].W_K = W`."""
        return tuple(HeadMatrices(self, c) for c in range(self.num_heads))

    def forward(
        self,
        X: Float[Tensor, "*batch N d"],
        mask: Float[Tensor, "... #N #M"] | None = None,
        *,
        causal: bool = False,
        H_enc: Float[Tensor, "*batch M d"] | None = None,
        return_weights: bool = False,
        cache: KVCache | None = None,
    ) -> (
        Float[Tensor, "*batch N d"]
        | tuple[Float[Tensor, "*batch N d"], Float[Tensor, "*batch A N M"]]
    ):
        """Attend from each token of X to the tokens of X, or of `H_enc`.

        Args:
            X: one row a token; the queries come from here.
            mask: additive mask [N×M], or with X's leading axes [... × N × M], the same for every
                head; one with an axis more [... × A × N × M] gives each head its own.
            causal: hide the future. Faster than passing `causal_mask(N)`, and the same.
            H_enc: the encoder's output, for cross-attention; keys and values then come from here.
            return_weights: also return the weights. The output is the same to rounding, but the
                fused kernel, which keeps no weights, cannot be used.
            cache: what this layer has computed of earlier tokens; X then goes on from there, M
                counts those tokens too, and `H_enc` is read only the first time.

        Returns:
            A [... × N × d], or (A, weights) with weights [... × A × N × M].

        Raises:
            ValueError: if a shape does not fit, the mask is not additive, `causal` is asked of
                cross-attention, or the cache refuses (see `KVCache.extend`).
        """
        self._check(X, H_enc, causal)
        held = 0 if cache is None else cache.held(self)
        source = X if H_enc is None else H_enc[..., held:, :]
        N, M = X.shape[-2], held + source.shape[-2]
        mask = self._for_heads(mask, X, M)
        Q = split_heads(X @ self.W_Q, self.num_heads)
        K = split_heads(source @ self.W_K, self.num_heads)
        V = split_heads(source @ self.W_V, self.num_heads)
        if cache is not None:
            K, V = cache.extend(self, K, V)
        causal = causal and N > 1  # the last token has no future to hide
        if causal and (return_weights or N < M):
            future = causal_mask(M, dtype=X.dtype, device=X.device)[-N:]
            mask, causal = future if mask is None else mask + future, False
        dropout = self.dropout if self.training else 0.0
        if not return_weights:
            heads = fused_attention(Q, K, V, mask, causal, dropout)
            return join_heads(heads) @ self.W_O
        heads, alpha = attention(Q, K, V, mask, dropout)
        return join_heads(heads) @ self.W_O, alpha

    def _check(self, X: Tensor, H_enc: Tensor | None, causal: bool) -> None:
        """Refuse inputs that do not fit the matrices, or each other."""
        check_features("X", X, self.model_dim)
        if H_enc is None:
            return
        check_features("H_enc", H_enc, self.model_dim)
        if H_enc.shape[:-2] != X.shape[:-2]:
            raise ValueError(
                "X and H_enc must have the same axes before the last two, one source for each "
                f"target, but have shapes {shape_of(X)} and {shape_of(H_enc)}."
            )
        if causal:
            raise ValueError(
                "Cross-attention has no future to hide, since the source is all there: "
                "leave out causal=True, or leave out H_enc."
            )

    def _for_heads(self, mask: Tensor | None, X: Tensor, M: int) -> Tensor | None:
        """The mask with an axis for the heads, if it has leading axes but none for them."""
        if mask is None:
            return None
        per_head = (self.num_heads,) if mask.dim() > X.dim() else ()
        check_mask(mask, (*X.shape[:-2], *per_head, X.shape[-2], M))
        return mask.unsqueeze(-3) if mask.dim() > 2 and not per_head else mask


class HeadMatrices:
    """One head's share of a `MultiHeadAttention`'s matrices, in the book's orientation.

    Reading gives a view, through which gradients flow; setting copies into the shared matrix.

    Attributes:
        W_Q: W^{Qc} [d×d_k].
        W_K: W^{Kc} [d×d_k].
        W_V: W^{Vc} [d×d_v].
        W_O: the rows of W^O that this head's output meets [d_v×d].
    """

    def __init__(self, mha: MultiHeadAttention, c: int):
        """Look at head `c`, counted from 0, of `mha`."""
        self._mha = mha
        keys = slice(c * mha.key_dim, (c + 1) * mha.key_dim)
        values = slice(c * mha.value_dim, (c + 1) * mha.value_dim)
        every = slice(None)
        self._where = {
            "W_Q": (every, keys),
            "W_K": (every, keys),
            "W_V": (every, values),
            "W_O": (values, every),
        }

    def _get(self, name: str) -> Tensor:
        return getattr(self._mha, name)[self._where[name]]

    @torch.no_grad()
    def _set(self, name: str, W: Tensor) -> None:
        view = self._get(name)
        if W.shape != view.shape:
            raise ValueError(
                f"{name} of one head is {shape_of(view)}, rows for inputs and columns for "
                f"outputs, but the matrix given is {shape_of(W)}."
            )
        view.copy_(W)

    W_Q = property(lambda self: self._get("W_Q"), lambda self, W: self._set("W_Q", W))
    W_K = property(lambda self: self._get("W_K"), lambda self, W: self._set("W_K", W))
    W_V = property(lambda self: self._get("W_V"), lambda self, W: self._set("W_V", W))
    W_O = property(lambda self: self._get("W_O"), lambda self, W: self._set("W_O", W))
