"""Checks for heads: their matrices, splitting and joining, many at once, the cache (1, 3, 6)."""

from typing import Any

import torch
from torch import Tensor

from slp_transformer.check.diagnosing.diagnosis import Formula, Inputs, Mistakes, check
from slp_transformer.check.diagnosing.random_inputs import matrix, seeded_randn, vector
from slp_transformer.check.tables.attention_checks import OF_EVERY_HEAD, SCALES, attention
from slp_transformer.check.tables.mask_checks import INF

CAUSAL_HEADS: tuple[str | Formula, ...] = (
    *SCALES,
    *OF_EVERY_HEAD,
    "scaled by √N: The scores are divided by the root of the number of tokens, not by √d_k.",
    "no softmax: The scores are used as weights, without softmax.",
    "all entries: The softmax is taken of the whole matrix; each row should sum to 1.",
    "no mask [no + mask]: The future is not hidden: token i should read tokens j ≤ i only.",
    "mask turned: The past is hidden and the future visible: token i should read j ≤ i.",
    "itself hidden: A token does not read itself: only j > i is hidden.",
    "itself hidden (zeros): …",
    "mask after softmax: The mask is applied after the softmax, so a row no longer sums to 1.",
    "hidden scores 0: Hidden scores are 0 instead of −∞: exp(0) = 1 still gives weight, as when "
    "scores are multiplied by ones and zeros.",
    "finite mask: A finite number stands for −∞: if all visible scores are lower, hidden tokens "
    "are read.",
    "finite mask (added): …",
    "W_Q and W_K swapped: W_Q and W_K are swapped: the token that asks uses W_Q.",
    "itself hidden (but the first): …",
    lambda X, W_V, W_O, solve: _with_first_row(X[:1] @ W_V @ W_O, solve("itself hidden (zeros)")),
    "itself hidden (all at first): …",
    lambda X, W_V, W_O, solve: _with_first_row(
        X.mean(0, keepdim=True) @ W_V @ W_O, solve("itself hidden (zeros)")
    ),
    "equal weights [W_Q = 0]: All visible tokens get the same weight; the weights are the softmax "
    "of the scores.",
    "itself alone [no @ alpha]: Each token reads itself alone; it should read all tokens up to "
    "itself.",
)


def _head_cases() -> list[Inputs]:
    draw = seeded_randn(11)

    def made(N: int, d: int, d_k: int, d_v: int) -> Inputs:
        return draw(N, d), draw(d, d_k), draw(d, d_k), draw(d, d_v), draw(d_v, d)

    eye = torch.eye(2)
    by_hand = matrix((1, 0), (0, 2)), 2 * eye.flip(0), eye, eye, 2 * eye
    large = matrix((1, 0), (200, 0), (-200, 0)), eye, eye, eye, eye
    low = matrix((20, 0), (20, 1)), eye, -eye, eye, eye
    sizes = ((2, 3, 2, 2), (3, 5, 2, 7), (4, 3, 3, 3), (3, 3, 7, 5), (11, 3, 2, 2))
    return [by_hand, *(made(*one) for one in sizes), large, low]


@check(
    "`qkv-final` to `head-out`",
    _head_cases,
    *CAUSAL_HEADS,
    "scaled by √d: The scores are divided by √d, the size of a token's row, not √d_k.",
    lambda W_Q, solve: solve(W_Q=W_Q * (W_Q.shape[1] / len(W_Q)) ** 0.5),
    "one too late [2 for 1]: The mask begins one column too late: each token sees the next one.",
    "then + X: X is added: that is the block's business, not the head's.",
    "no W_V [no @ W_V]: The rows of X themselves are mixed, without W_V.",
    "no W_O [no @ W_O]: The last step is missing: the head times W_O brings it back to size d.",
    "zeros and ones added: A mask of ones and zeros is added: hidden scores need −∞.",
    "other axis: The softmax runs over the wrong axis: each row of weights should sum to 1.",
    "transposed weights: A weight matrix is transposed: write X @ W, without .T.",
    lambda W_Q, W_K, W_V, W_O, solve: solve(W_Q=W_Q.T, W_K=W_K.T, W_V=W_V.T, W_O=W_O.T),
    "weights for X: The weights are multiplied with X itself, without W_V and W_O.",
    lambda X, solve: solve(W_V=(eye := torch.eye(X.shape[1]).to(X)), W_O=eye),
)
def head(
    X: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor, W_O: Tensor, mistakes: Mistakes
) -> Tensor:
    """Check `head(X, W_Q, W_K, W_V, W_O)`: return one causal head for all tokens, [N×d]."""
    return _causal_attention(X @ W_Q, X @ W_K, X @ W_V, mistakes) @ W_O


def _with_first_row(first: Tensor, rows: Tensor) -> Tensor:
    return torch.cat([first, rows[1:]])


def _causal_attention(Q: Tensor, K: Tensor, V: Tensor, mistakes: Mistakes) -> Tensor:
    """One head or several, or what mistakes make of their mask and their attention."""
    hidden = 0 if mistakes & {"itself hidden", "itself hidden (zeros)"} else 1
    mask = torch.full((Q.shape[-2], Q.shape[-2]), -INF).triu(hidden)
    mask = mask.T if "mask turned" in mistakes else mask
    mask = torch.ones_like(mask).tril() if "zeros and ones added" in mistakes else mask
    mask = mask.clamp(min=-100) if "finite mask (added)" in mistakes else mask
    if "itself hidden" in mistakes:
        mistakes = mistakes | {"nothing seen is NaN"}
    return attention.solve(Q, K, V, mask, mistakes=mistakes - {"mask turned"})


def _split_cases() -> list[Inputs]:
    draw, by_hand = seeded_randn(12), torch.arange(8.0).reshape(2, 4)
    return [(by_hand, 2), (draw(5, 6), 3), (draw(3, 6), 2), (draw(4, 4), 1)]


@check(
    "`mh-par-qkv`",
    _split_cases,
    "view without transpose: A view or reshape straight to [A×N×d_k] mixes the tokens, and a head "
    "gets rows of other tokens: first view as [N×A×d_k], then transpose.",
    lambda X, A: X.reshape(A, len(X), -1),
    "then transposed: Each head is [d_k × N]; it should be [N × d_k].",
    "columns dealt out: The columns are dealt out in turn: head c should get the d_k columns from "
    "c·d_k on, side by side.",
    lambda X, A: X.reshape(len(X), -1, A).permute(2, 0, 1),
    "not transposed [1 for 0]: The axes are [N×A×d_k]: transpose, so that heads come first, "
    "[A×N×d_k].",
    "then reversed: The heads are in reverse order: head 0 takes the first columns.",
    "first columns: All heads get the first d_k columns; head c's begin at c·d_k.",
    lambda X, A, right: right[:1].expand_as(right),
    "rows cut: The rows are cut into heads; cut the columns.",
    lambda X, A: torch.stack(X.chunk(A)),
    "rows cut (as a view): …",
    lambda X, A: torch.stack(X.split(len(X) // A)),
    "sizes confused: The columns are cut into d_k heads of size A, not A heads of d_k.",
    lambda X, A: X.reshape(len(X), -1, A).transpose(0, 1),
)
def split_heads(X: Tensor, A: int) -> Tensor:
    """Check `split_heads(X, A)`: [N×A·d_k] becomes [A×N×d_k], head c from columns c·d_k on."""
    return X.reshape(len(X), A, -1).transpose(0, 1)


def _join_cases() -> list[Inputs]:
    draw = seeded_randn(13)
    return [(torch.arange(8.0).reshape(2, 2, 2),), (draw(3, 5, 2),), (draw(2, 3, 5),)]


@check(
    "`mh-par-out`",
    _join_cases,
    "view without transpose [1 for 0]: A view or reshape alone makes a row mix tokens: transpose "
    "to [N×A×d_v] first, then join the last two axes.",
    "interleaved: The heads' columns are interleaved; keep each head's d_v columns together.",
    lambda heads: heads.permute(1, 2, 0).flatten(1),
    "heads reversed: The heads are joined in reverse order: head 1 comes first.",
    lambda heads, solve: solve(heads=heads.flip(0)),
    "one below the other: The heads are stacked as rows; concatenate their columns.",
    lambda heads: heads.flatten(0, 1),
    "added: The heads are added; they should be concatenated.",
    lambda heads: heads.sum(0),
    "mean: The heads are averaged; they should be concatenated.",
    lambda heads: heads.mean(0),
    "largest: The largest of the heads' numbers is taken; concatenate the heads.",
    lambda heads: heads.amax(0),
    "last alone: Only the last head is left; concatenate all of them.",
    lambda heads: heads[-1],
)
def join_heads(heads: Tensor) -> Tensor:
    """Check `join_heads(heads)`: [A×N×d_v] becomes [N×A·d_v], head 1 in the first columns."""
    return heads.transpose(0, 1).reshape(heads.shape[1], -1)


def _many_cases(d: int = 0, A: int = 1, d_k: int = 1, d_v: int = 1) -> list[Inputs]:
    draw = seeded_randn(14)

    def made(N: int, d: int, A: int, d_k: int, d_v: int) -> Inputs:
        keys, values = A * d_k, A * d_v
        return draw(N, d), draw(d, keys), draw(d, keys), draw(d, values), draw(values, d), A

    if d:  # a module has sizes of its own
        return [made(N, d, A, d_k, d_v) for N in (2, 3, 5)]
    sizes = ((2, 2, 2, 1, 1), (3, 6, 3, 1, 3), (5, 7, 2, 4, 5), (4, 4, 2, 2, 2), (11, 4, 2, 2, 2))
    eye = torch.eye(2)
    large = matrix((1, 2), (200, 0), (-200, -2)), eye, eye, eye, eye, 2
    low = matrix((20, 20), (20, 19)), eye, -eye, eye, eye, 2
    return [*(made(*one) for one in sizes), large, low]


def _first_rows_alone(W_O: Tensor, A: int) -> Tensor:
    """W_O with zeros in the rows of all heads but the first."""
    return W_O.index_fill(0, torch.arange(len(W_O) // A, len(W_O)), 0.0)


def _multi_head_sizes(shapes: dict[str, tuple[int, ...]], module: Any) -> dict[str, int]:
    names = ("A", "num_heads", "n_heads", "n_head", "heads")
    A = next((n for a in names if isinstance(n := getattr(module, a, None), int)), 1)
    d, keys = shapes.get("W_Q", (6, 6))
    return {"d": d, "A": A, "d_k": keys // A, "d_v": shapes.get("W_V", (d, keys))[1] // A}


@check(
    "`mh-par-qkv` to `mh-par-out`",
    _many_cases,
    *CAUSAL_HEADS,
    "scaled by all heads: The scores are divided by the root of A·d_k, the size of all heads "
    "together; it should be that of one head, √d_k.",
    lambda W_Q, A, solve: solve(W_Q=W_Q / A**0.5),
    "scaled by √d: The scores are divided by √d, the size of a token's row, not √d_k.",
    lambda W_Q, A, solve: solve(W_Q=W_Q * (W_Q.shape[1] / A / len(W_Q)) ** 0.5),
    "scaled by √(d/A): The scores are divided by √(d/A). W_Q has A·d_k columns, so d_k is its "
    "width divided by A, whatever d is.",
    lambda W_Q, A, solve: solve(W_Q=W_Q * (W_Q.shape[1] / A / (len(W_Q) // A)) ** 0.5),
    "scaled by √(d/A) (not rounded): …",
    lambda W_Q, solve: solve(W_Q=W_Q * (W_Q.shape[1] / len(W_Q)) ** 0.5),
    "view without transpose: The heads are cut with view or reshape alone, so that a head gets "
    "rows of other tokens: cut into [N×A×d_k], then transpose.",
    "joined without transpose: The heads are joined with view or reshape alone, so that a row "
    "mixes tokens: transpose to [N×A×d_v] first.",
    "heads reversed: The heads are concatenated in reverse order: W_O expects head 1 first.",
    lambda W_O, A, solve: solve(W_O=W_O.unflatten(0, (A, -1)).flip(0).flatten(0, 1)),
    "one head [A = 1]: This is one head of size A·d_k: each head should have its own scores.",
    "one head (scaled by √d_k): …",
    lambda W_Q, A, solve: solve(W_Q=W_Q * A**0.5, A=1),
    "first head alone: Only the first head is used; join all A of them.",
    lambda W_O, A, solve: solve(W_O=_first_rows_alone(W_O, A)),
    "heads for tokens: The heads of one token read each other: transpose to [A×N×d_k] before the "
    "scores, which should be [A×N×N].",
    lambda X, W_Q, W_K, W_V, W_O, A: (
        attention.solve(
            *((X @ W).unflatten(1, (A, -1)) for W in (W_Q, W_K, W_V)), torch.zeros(A, A)
        ).flatten(1)
        @ W_O
    ),
    "no W_O [no @ W_O]: The last step is missing: the joined heads times W_O.",
    "head 0 for all: All heads are head 0: head c has its own columns of W_Q, W_K and W_V.",
    "shared K and V: All heads read the keys and values of head 0; each has its own.",
    "added: The heads are added; concatenate them before W_O.",
    "added (to one head): …",  # which only the first d_v rows of W_O fit
    lambda W_O, A, solve: solve("added", W_O=_first_rows_alone(W_O, A)),
    "mean: The heads are averaged; concatenate them before W_O.",
    "then + X: The input is added at the end: that is the block's work, not attention's.",
    "softmax over heads: The softmax runs over the heads; it should run over the keys.",
    "softmax over heads (zeros): …",
    "softmax over heads (-1e9): …",  # which is the same in all heads, so that each gets 1/A
    lambda solve: solve("softmax over heads (zeros)", "hidden scores 0"),
    "softmax over heads (added): …",  # a finite mask that is added cancels
    lambda solve: solve("softmax over heads (zeros)", "no mask"),
    "softmax over queries: The softmax runs over the queries; it should run over the keys.",
    "scaled by √A: The scores are divided by the root of the number of heads, not by √d_k.",
    lambda W_Q, A, solve: solve(W_Q=W_Q * (W_Q.shape[1] / A**2) ** 0.5),
    "columns dealt out: The columns are dealt out to the heads in turn: head c should get d_k "
    "columns side by side, from c·d_k on.",
    "queries of head 0: All heads have the queries of head 0; each has its own.",
    lambda W_Q, A, solve: solve(W_Q=W_Q[:, : W_Q.shape[1] // A].repeat(1, A)),
    "values of head 0: All heads read the values of head 0; each has its own.",
    lambda W_V, A, solve: solve(W_V=W_V[:, : W_V.shape[1] // A].repeat(1, A)),
    "keys of head 0: All heads read the keys of head 0; each has its own.",
    lambda W_K, A, solve: solve(W_K=W_K[:, : W_K.shape[1] // A].repeat(1, A)),
    "last head left out: The last head is left out: c goes up to A − 1, which range(A) ends with.",
    lambda W_V, A, solve: solve(
        W_V=W_V.index_fill(1, torch.arange(W_V.shape[1])[-W_V.shape[1] // A :], 0.0)
    ),
    "keys of the next head: The heads read the keys of the next head; each has its own.",
    lambda W_K, A, solve: solve(W_K=W_K.roll(-(W_K.shape[1] // A), 1)),
    "first head left out: The first head is left out: count from 0.",
    lambda W_V, A, solve: solve(W_V=W_V.index_fill(1, torch.arange(W_V.shape[1] // A), 0.0)),
    "joined in turn: The heads' columns are joined in turn; keep each head's d_v columns together.",
    lambda W_O, A, solve: solve(W_O=W_O.unflatten(0, (-1, A)).transpose(0, 1).flatten(0, 1)),
    sizes_from_module=_multi_head_sizes,
)
def multi_head_attention(
    X: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor, W_O: Tensor, A: int, mistakes: Mistakes
) -> Tensor:
    """Check `multi_head_attention(X, W_Q, W_K, W_V, W_O, A)`: apply A causal heads, [N×d].

    The heads' matrices lie side by side: W_Q is [d×A·d_k], head c having the columns from c·d_k on.
    """
    cut = mistakes & {"view without transpose", "columns dealt out"}
    Q, K, V = (split_heads.solve(X @ W, A, mistakes=cut) for W in (W_Q, W_K, W_V))
    if mistakes & {"head 0 for all", "shared K and V"}:
        K, V = K[:1].expand_as(K), V[:1].expand_as(V)
    Q = Q[:1].expand_as(Q) if "head 0 for all" in mistakes else Q
    heads = _causal_attention(Q, K, V, mistakes)
    if mistakes & {"added", "mean"}:
        heads = heads.mean(0, keepdim=True).expand_as(heads) * (A if "added" in mistakes else 1)
    if "joined without transpose" in mistakes:
        return heads.reshape(len(X), -1) @ W_O
    return join_heads.solve(heads) @ W_O


def _cache_cases() -> list[Inputs]:
    draw, eye = seeded_randn(15), torch.eye(2)

    def made(held: int, d: int, d_k: int, d_v: int) -> Inputs:
        return draw(d), draw(d, d_k), draw(d, d_k), draw(d, d_v), draw(held, d_k), draw(held, d_v)

    sizes = ((1, 2, 2, 2), (2, 3, 2, 2), (4, 5, 7, 2), (3, 2, 2, 5), (11, 2, 3, 2))
    return [*(made(*one) for one in sizes), (vector(200, 0), eye, eye, eye, eye, eye)]


@check(
    "`kv-attn`",
    _cache_cases,
    *SCALES,
    "scaled by √T [scaled by √N (keys)]: The scores are divided by the root of the number of "
    "keys, not √d_k.",
    "new token not read: The new token does not read itself: add its key and value first.",
    lambda x, W_Q, K, V, right: (
        torch.softmax(x @ W_Q @ K.T / W_Q.shape[1] ** 0.5, -1) @ V,
        *right[1:],
    ),
    "equal weights [W_Q = 0]: All tokens get the same weight; the weights are the softmax of the "
    "scores.",
    "weights 1: All weights are 1, as if the softmax ran over features: add the products of a key "
    "up to one score first; the softmax runs over the tokens.",
    lambda right: (right[2].sum(0), *right[1:]),
    "new value left out: The new token's weight is dropped before the product with V: its own "
    "value counts, too.",
    lambda V, right, solve: (right[0] - solve(V=0 * V)[0], *right[1:]),
    "not kept: The new key and value are used but not kept: return the longer K and V.",
    lambda K, V, right: (right[0], K, V),
    "put in front: The new key and value are put in front; they belong at the end.",
    lambda right: (right[0], right[1].roll(1, 0), right[2].roll(1, 0)),
    "only itself: The new token reads only itself, not the cached tokens.",
    lambda x, W_V, right: (x @ W_V, *right[1:]),
    "last replaced: The last entry of the cache is replaced; append the new one.",
    lambda K, V, solve: solve(K=K[:-1], V=V[:-1]),
    "scaled by √d: The scores are divided by √d, the size of x, not by √d_k.",
    lambda x, W_Q, solve: solve(W_Q=W_Q * (W_Q.shape[1] / len(x)) ** 0.5),
    "no softmax: The scores are used as weights, without softmax.",
    *OF_EVERY_HEAD,
    "results 2 and 3 swapped: K and V are swapped: return the output, then K, then V.",
    "new ones alone: Only the new key and value are returned; return all keys and values.",
    lambda x, W_K, W_V, right: (right[0], (x @ W_K)[None], (x @ W_V)[None]),
    "value in front: The new value is put in front, but the new key at the end; both belong there.",
    lambda x, W_Q, right: (
        attention.solve((x @ W_Q)[None], right[1], V := right[2].roll(1, 0), torch.zeros(()))[0],
        right[1],
        V,
    ),
    "oldest dropped: The first cached token is dropped; keep all of them.",
    lambda K, V, solve: solve(K=K[1:], V=V[1:]),
    "appended twice: The new key and value are appended twice.",
    lambda right, solve: solve(K=right[1], V=right[2]),
    "oldest not kept: The first cached token is read but not returned; keep all of them.",
    lambda right: (right[0], right[1][1:], right[2][1:]),
    "key not kept: The new key is used but not kept: return the longer K.",
    lambda K, right: (right[0], K, right[2]),
    "value not kept: The new value is used but not kept: return the longer V.",
    lambda V, right: (*right[:2], V),
    may_be_empty=("K", "V"),
)
def cached_step(
    x: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor, K: Tensor, V: Tensor, mistakes: Mistakes
) -> tuple[Tensor, Tensor, Tensor]:
    """Check `cached_step(x, W_Q, W_K, W_V, K, V)`: return a new token's head, and the longer K, V.

    K and V hold the keys and values of the tokens before; x is the new token's row.
    """
    K, V = torch.cat([K, (x @ W_K)[None]]), torch.cat([V, (x @ W_V)[None]])
    gathered = attention.solve((x @ W_Q)[None], K, V, torch.zeros(1, len(K)), mistakes=mistakes)
    return gathered[0], K, V
