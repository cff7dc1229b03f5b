"""Attention: how one token's stream reads from the others.

In the order of the book: masks, the attention equation itself, one head, and many heads at once.
Row vectors throughout: a token is a row of X [N×d], and weights multiply on the right, so
`Q = X @ W_Q` reads as the book reads.

Masks are additive: 0 where attention is allowed, −∞ where it is not. They are added to the scores
before the softmax, and to each other.
"""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import nn

from slp_transformer.blockwise import causal_in_blocks
from slp_transformer.cache import KVCache
from slp_transformer.choices import better_in_blocks
from slp_transformer.shapes import Float, Int, Tensor, shape_of

# --- Masks -------------------------------------------------------------------------------------


def causal_mask(
    N: int, *, dtype: torch.dtype | None = None, device: torch.device | str | None = None
) -> Float[Tensor, "N N"]:
    """The mask that hides the future: 0 on and below the diagonal, −∞ above it.

    Source: `mask` (in the prose before 8.33 and 7.34, and Fig. 8.10, 7.10).

    Args:
        N: number of tokens.
        dtype: floating type of the mask; torch's default if not given.
        device: where the mask lives.

    Returns:
        M [N×N], with M[i, j] = −∞ where j > i and 0 elsewhere.

    Raises:
        ValueError: if N is negative.
    """
    if N < 0:
        raise ValueError(f"causal_mask needs a number of tokens of 0 or more, not {N}.")
    return torch.full((N, N), -math.inf, dtype=dtype, device=device).triu(diagonal=1)


def padding_mask(
    ids: Int[Tensor, "*batch M"], pad_id: int, *, dtype: torch.dtype | None = None
) -> Float[Tensor, "*batch 1 M"]:
    """The mask that hides padding from every query: −∞ wherever `ids` holds `pad_id`.

    Add it to `causal_mask(N)` to hide both padding and the future. Not in the book, which never
    batches sentences of different lengths.

    Args:
        ids: token ids, padded to one length.
        pad_id: the id that stands for "no token here".
        dtype: floating type of the mask; torch's default if not given.

    Returns:
        The mask, with an axis of size 1 for the queries, since all of them see the same padding.
    """
    mask = torch.zeros(ids.shape, dtype=dtype or torch.get_default_dtype(), device=ids.device)
    return mask.masked_fill(ids == pad_id, -math.inf).unsqueeze(-2)


def check_mask(mask: Tensor, shape: Sequence[int]) -> None:
    """Refuse a mask that is not additive or cannot be broadcast to `shape`, [... × N × M].

    Raises:
        ValueError: if the mask is boolean or of whole numbers, or its axes do not fit.
    """
    if not mask.is_floating_point():
        raise ValueError(
            f"The mask has type {mask.dtype}, but masks here are additive: a floating-point "
            "tensor that is 0 where attention is allowed and -inf where it is not, as made by "
            "causal_mask or padding_mask. From a boolean `allowed`, write "
            "torch.zeros(allowed.shape).masked_fill(~allowed, -torch.inf)."
        )
    *leading, N, M = shape
    if mask.dim() < 2 or mask.shape[-2] not in (1, N) or mask.shape[-1] not in (1, M):
        raise ValueError(
            f"The mask has shape {shape_of(mask)}, but its last two axes must be [{N}×{M}] "
            f"({N} queries by {M} keys), or 1 where all share the same values."
        )
    if mask.dim() > len(shape) or any(
        size not in (1, axis)
        for size, axis in zip(mask.shape[-3::-1], reversed(leading), strict=False)
    ):
        raise ValueError(
            f"The mask has shape {shape_of(mask)}, but what it masks has shape "
            f"{shape_of(shape)}: axes before the last two may be left out, or must be the same, "
            "or 1."
        )


# --- The equation ------------------------------------------------------------------------------


def masked_softmax(scores: Float[Tensor, "*scores N M"]) -> Float[Tensor, "*scores N M"]:
    """Softmax over each row, in which a row of nothing but −∞ gives zeros.

    A query that may look at nothing (a row of padding, say) has no distribution over keys: plain
    softmax would divide 0 by 0, and its NaN would spread backwards to every weight.
    """
    empty = (scores == -math.inf).all(dim=-1, keepdim=True)
    return torch.softmax(scores.masked_fill(empty, 0.0), dim=-1).masked_fill(empty, 0.0)


def attention(
    Q: Float[Tensor, "*batch N d_k"],
    K: Float[Tensor, "*batch M d_k"],
    V: Float[Tensor, "*batch M d_v"],
    mask: Float[Tensor, "... #N #M"] | None = None,
    dropout: float = 0.0,
) -> tuple[Float[Tensor, "*batch N d_v"], Float[Tensor, "*batch N M"]]:
    r"""Scaled dot-product attention, as the equation reads.

    $$\mathbf{head} = \mathrm{softmax}\left(\mathrm{mask}\left(
    \frac{\mathbf Q\mathbf K^\top}{\sqrt{d_k}}\right)\right)\mathbf V$$

    Source: `head-par` (8.33, 7.34); with no mask, `bidirectional` (9.2 in the Aug 2026 draft).

    Args:
        Q: what each token asks, one row a query.
        K: what each token offers to be found by, one row a key.
        V: what each token passes on when it is found, one row a value.
        mask: additive mask, broadcast to the scores; None lets every query see every key.
        dropout: share of the weights to drop, as in Vaswani et al. 2017; not in the book.

    Returns:
        The values that each query gathered, and the weights it gathered them with. A query that
        the mask lets see nothing gathers zeros.

    Raises:
        ValueError: if the shapes do not fit together, the mask is not additive, or dropout is no
            share below 1.
    """
    check_qkv(Q, K, V)
    check_dropout(dropout)
    d_k = Q.shape[-1]
    scores = Q @ K.transpose(-2, -1) / math.sqrt(d_k)
    if mask is None:
        alpha = torch.softmax(scores, dim=-1)
    else:
        check_mask(mask, scores.shape)
        alpha = masked_softmax(scores + mask.to(scores.dtype))
    alpha = F.dropout(alpha, dropout)
    return alpha @ V, alpha


def fused_attention(
    Q: Float[Tensor, "*batch N d_k"],
    K: Float[Tensor, "*batch M d_k"],
    V: Float[Tensor, "*batch M d_v"],
    mask: Float[Tensor, "... #N #M"] | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> Float[Tensor, "*batch N d_v"]:
    """The same values as `attention`, without the weights, in the way that is fastest here.

    Mostly that is PyTorch's fused kernel. With `causal` and no mask it is told so by a flag, and no
    N×N mask is ever made. Training on a CPU goes another way: see `better_in_blocks`.

    Args:
        Q: queries.
        K: keys.
        V: values.
        mask: additive mask, broadcast to the scores.
        causal: also hide the future; needs as many keys as queries.
        dropout: share of the weights to drop.

    Returns:
        The gathered values; zeros for a query that may see nothing.

    Raises:
        ValueError: if the shapes do not fit together, the mask is not additive, or dropout is no
            share below 1.
    """
    check_qkv(Q, K, V)
    check_dropout(dropout)
    N, M = Q.shape[-2], K.shape[-2]
    if causal and N != M:
        raise ValueError(
            f"A causal mask needs as many keys as queries, but there are {N} queries and {M} keys."
        )
    if Q.dim() < 4:  # the kernels want [batch × heads × N × d_k]: axes of 1 for what is missing
        more = (None,) * (4 - Q.dim())
        values = fused_attention(Q[more], K[more], V[more], mask, causal, dropout)
        return values.reshape(*Q.shape[:-1], V.shape[-1])
    if causal and mask is None and better_in_blocks(Q, K, V, dropout):
        return causal_in_blocks(Q, K, V, dropout)
    if mask is None:
        return F.scaled_dot_product_attention(Q, K, V, dropout_p=dropout, is_causal=causal)
    check_mask(mask, (*Q.shape[:-1], M))
    mask = mask.to(Q.dtype)
    if causal:
        mask = mask + causal_mask(N, dtype=Q.dtype, device=Q.device)
    # A row of nothing but -inf is NaN in some kernels: let it see everything, then blank it out.
    empty = (mask == -math.inf).all(dim=-1, keepdim=True)
    values = F.scaled_dot_product_attention(
        Q, K, V, attn_mask=mask.masked_fill(empty, 0.0), dropout_p=dropout
    )
    return values.masked_fill(empty, 0.0)


def check_qkv(Q: Tensor, K: Tensor, V: Tensor) -> None:
    """Refuse queries, keys and values that do not fit together.

    Raises:
        ValueError: naming the two shapes that disagree.
    """
    if Q.dim() < 2 or K.dim() < 2 or V.dim() < 2:
        raise ValueError(
            "Q, K and V need at least two axes, [tokens × features], but have shapes "
            f"{shape_of(Q)}, {shape_of(K)} and {shape_of(V)}."
        )
    if Q.shape[-1] != K.shape[-1]:
        raise ValueError(
            f"Queries and keys must have the same size d_k to be multiplied, but Q is "
            f"{shape_of(Q)} and K is {shape_of(K)}."
        )
    if K.shape[-2] != V.shape[-2]:
        raise ValueError(
            f"Each key needs one value, but K is {shape_of(K)} ({K.shape[-2]} keys) and V is "
            f"{shape_of(V)} ({V.shape[-2]} values)."
        )
    if not Q.shape[:-2] == K.shape[:-2] == V.shape[:-2]:
        raise ValueError(
            "Q, K and V must have the same axes before the last two, but have shapes "
            f"{shape_of(Q)}, {shape_of(K)} and {shape_of(V)}."
        )


# --- Modules -----------------------------------------------------------------------------------


def matrix(rows: int, columns: int) -> nn.Parameter:
    """A weight matrix in the book's orientation, [rows×columns], for `x @ W`.

    Drawn from a normal distribution of variance 1/rows, so that a row vector of unit variance
    keeps it. The book leaves initialisation open.
    """
    return nn.Parameter(torch.randn(rows, columns) * rows**-0.5)


def check_features(name: str, X: Tensor, model_dim: int, axes: int = 2) -> None:
    """Refuse an input with fewer than `axes` axes, or whose rows are not of size `model_dim`.

    Raises:
        ValueError: naming the input, its shape and the shape it should have.
    """
    if X.dim() < axes or X.shape[-1] != model_dim:
        raise ValueError(
            f"{name} has shape {shape_of(X)}, but must be [... × tokens × {model_dim}]: "
            f"model_dim is {model_dim} here."
        )


def check_size(**sizes: int) -> None:
    """Refuse a size that is not a positive whole number.

    Raises:
        ValueError: naming the first such size.
    """
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ValueError(f"{name} must be a whole number of 1 or more, not {size!r}.")


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


def check_dropout(dropout: float) -> None:
    """Refuse a share to drop that is not between 0 and 1.

    Raises:
        ValueError: naming the share.
    """
    if not 0.0 <= dropout < 1.0:
        raise ValueError(f"dropout is the share to drop, from 0 up to but not 1, not {dropout!r}.")


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
