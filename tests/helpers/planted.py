"""Attempts at the exercises as readers write them, right and wrong: what the checks are tried on.

Each was written from the exercise and its mistake, not from the package's own table of mistakes.
"""

import math

import torch
import torch.nn.functional as F
from planted_marks import ALL, Planted, right, wrong
from torch import nn


def tril(N, M=None):
    return torch.tril(torch.ones(N, M or N))


# --- softmax and sums --------------------------------------------------------------------------


right("softmax", "PyTorch's own")(lambda z: F.softmax(z, dim=-1))


@right("softmax", "one row, as in the chapter", one_row=True)
def _(scores):
    powers = torch.exp(scores - max(scores))
    return powers / sum(powers)


@right("softmax", "by logarithms, in float64")
def _(s):
    s = s.double()
    return (s - torch.logsumexp(s, -1, keepdim=True)).exp()


@right("softmax", "a module")
class _softmax(nn.Module):
    def forward(self, logits, eps=0.0):
        return torch.softmax(logits, dim=-1)


ALL[-1] = Planted("softmax", "a module", None, _softmax())


wrong("softmax", "overflow", "exp over the sum, as printed")(
    lambda scores: torch.exp(scores) / torch.exp(scores).sum(-1, keepdim=True)
)


@wrong("softmax", "overflow", "one row, exp over the sum", one_row=True)
def _(scores):
    e = [math.e**s for s in scores]
    return torch.stack(e) / sum(e)


wrong("softmax", "other axis", "dim=0")(lambda scores: scores.softmax(dim=0))


@wrong("softmax", "all entries", "no axis")
def _(scores):
    e = torch.exp(scores - scores.max())
    return e / e.sum()


wrong("softmax", "not normalized", "forgot to divide")(
    lambda scores: torch.exp(scores - scores.max(-1, keepdim=True)[0])
)
wrong("softmax", "logarithm", "log_softmax")(lambda scores: F.log_softmax(scores, -1))
wrong("softmax", "plain shares", "no exp")(lambda scores: scores / scores.sum(-1, keepdim=True))


@right("weighted_sum", "a loop")
def _(alpha, vectors):
    total = 0
    for a, v in zip(alpha, vectors, strict=False):
        total += a * v
    return total


right("weighted_sum", "a product")(lambda alpha_i, rows: alpha_i @ rows[: len(alpha_i)])
wrong("weighted_sum", "no weights", "sum of the rows")(
    lambda alpha_i, rows: rows[: len(alpha_i)].sum(0)
)


@wrong("weighted_sum", "mean", "mean instead of sum")
def _(alpha_i, rows):
    n = len(alpha_i)
    return (alpha_i.unsqueeze(1) * rows[:n]).mean(0)


wrong("weighted_sum", "last row left out", "range(len − 1)")(
    lambda alpha_i, rows: sum(alpha_i[j] * rows[j] for j in range(len(alpha_i) - 1))
)


@wrong("weighted_sum", "sum over features", "dim=1")
def _(alpha_i, rows):
    n = len(alpha_i)
    return (alpha_i.unsqueeze(1) * rows[:n]).sum(dim=1)


@right("scaled_score", "a loop over features")
def _(q, k):
    dot = 0.0
    for f in range(len(q)):
        dot = dot + q[f] * k[f]
    return dot / math.sqrt(len(q))


right("scaled_score", "einsum")(
    lambda q_i, k_j: torch.einsum("d,d->", q_i, k_j) * q_i.numel() ** -0.5
)
wrong("scaled_score", "no scaling", "plain dot product")(lambda q_i, k_j: torch.dot(q_i, k_j))
wrong("scaled_score", "scaled by d_k", "no root")(lambda q_i, k_j: q_i.dot(k_j) / len(q_i))
wrong("scaled_score", "cosine", "cosine similarity")(
    lambda q_i, k_j: F.cosine_similarity(q_i, k_j, dim=0)
)
wrong("scaled_score", "not summed", "elementwise product")(
    lambda q_i, k_j: q_i * k_j / math.sqrt(len(k_j))
)


@right("simple_attention", "all rows at once")
def _(X, i):
    S = (X @ X.T).masked_fill(torch.triu(torch.ones(len(X), len(X)), 1) > 0, -torch.inf)
    return (S.softmax(-1) @ X)[i]


@wrong("simple_attention", "itself left out", "X[:i]")
def _(X, i):
    if i == 0:
        return torch.zeros(X.shape[1])
    return F.softmax(X[:i] @ X[i], 0) @ X[:i]


wrong("simple_attention", "the future", "no limit")(lambda X, i: F.softmax(X @ X[i], 0) @ X)


@wrong("simple_attention", "scaled", "divides by √d")
def _(X, i):
    past = X[: i + 1]
    return F.softmax(past @ X[i] / math.sqrt(X.shape[-1]), 0) @ past


wrong("simple_attention", "no softmax", "scores as weights")(
    lambda X, i: sum((X[j] @ X[i]) * X[j] for j in range(i + 1))
)


# --- masks -------------------------------------------------------------------------------------


right("causal_mask", "two loops")(
    lambda N: [[0.0 if j <= i else -math.inf for j in range(N)] for i in range(N)]
)
right("causal_mask", "masked_fill, float64")(
    lambda n: torch.zeros(n, n, dtype=torch.float64).masked_fill(tril(n) == 0, float("-inf"))
)
wrong("causal_mask", "wrong way round", "tril")(lambda N: torch.full((N, N), -math.inf).tril(-1))
wrong("causal_mask", "diagonal", "triu(0)")(lambda N: torch.full((N, N), -math.inf).triu())
wrong("causal_mask", "zeros and ones", "tril of ones")(lambda N: tril(N))
wrong("causal_mask", "ones and zeros", "triu of ones")(lambda N: 1 - tril(N))
wrong("causal_mask", "booleans", "what is allowed")(lambda N: tril(N).bool())
wrong("causal_mask", "-1e9", "−1e9")(lambda N: (1 - tril(N)) * -1e9)
wrong("causal_mask", "not a number", "0 · ∞")(
    lambda N: torch.triu(torch.ones(N, N), 1) * float("-inf")
)
wrong("causal_mask", "plus", "+∞")(lambda N: torch.full((N, N), float("inf")).triu(1))


@right("mask_after", "by places")
def _(N, held):
    queries = torch.arange(held, held + N)[:, None]
    return torch.where(torch.arange(held + N) <= queries, 0.0, -torch.inf)


wrong("mask_after", "not shifted", "as if nothing were held")(
    lambda N, held: torch.where(tril(N, held + N) > 0, 0.0, -torch.inf)
)
wrong("mask_after", "new tokens only", "square")(
    lambda N, held: torch.full((N, N), -torch.inf).triu(1)
)
wrong("mask_after", "nothing hidden", "no mask")(lambda N, held: torch.zeros(N, N + held))
right("padding_mask", "where")(
    lambda ids, pad: torch.where(ids == pad, -torch.inf, 0.0).unsqueeze(0)
)
wrong("padding_mask", "wrong way round", "!=")(
    lambda ids, pad_id: torch.zeros(ids.shape).masked_fill(ids != pad_id, -torch.inf)
)
wrong("padding_mask", "always 0", "ids == 0")(
    lambda ids, pad_id: torch.zeros(ids.shape).masked_fill(ids == 0, -torch.inf)
)
wrong("padding_mask", "booleans", "ids != pad_id")(lambda ids, pad_id: ids != pad_id)


# --- attention ---------------------------------------------------------------------------------


right("attention", "the equation")(
    lambda Q, K, V, mask: F.softmax(Q @ K.T / math.sqrt(K.shape[-1]) + mask, dim=-1) @ V
)


@right("attention", "other names, other order, weights too")
def _(mask, values, keys, queries):
    scores = torch.einsum("nd,md->nm", queries, keys) / queries.size(-1) ** 0.5
    weights = (scores + mask).softmax(-1)
    return torch.einsum("nm,mv->nv", weights, values), weights


@right("attention", "loops, hidden keys skipped")
def _(Q, K, V, m):
    out = torch.zeros(len(Q), V.shape[1])
    for i in range(len(Q)):
        seen = [j for j in range(len(K)) if m[i, j] == 0]
        if not seen:
            continue
        s = torch.stack([Q[i] @ K[j] / Q.shape[1] ** 0.5 for j in seen])
        for a, j in zip(s.softmax(0), seen, strict=True):
            out[i] += a * V[j]
    return out


right("attention", "PyTorch's kernel in float64")(
    lambda Q, K, V, mask=None: F.scaled_dot_product_attention(
        Q.double(), K.double(), V.double(), mask.double()
    )
)


class _Attention(nn.Module):
    def forward(self, query, key, value, attn_mask):
        hidden = attn_mask < 0
        scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
        return torch.softmax(scores.masked_fill(hidden, -torch.inf), -1) @ value


ALL.append(Planted("attention", "a module, masked_fill", None, _Attention()))


wrong("attention", "no scaling", "no √d_k")(
    lambda Q, K, V, mask: torch.softmax(Q @ K.T + mask, -1) @ V
)
wrong("attention", "scaled by d_k", "/ d_k")(
    lambda Q, K, V, mask: torch.softmax(Q @ K.T / Q.size(-1) + mask, -1) @ V
)
wrong("attention", "scaled by √d_v", "√ of the wrong size")(
    lambda Q, K, V, mask: torch.softmax(Q @ K.T / math.sqrt(V.size(-1)) + mask, -1) @ V
)
wrong("attention", "other axis", "dim=0")(
    lambda Q, K, V, mask: torch.softmax(Q @ K.T / math.sqrt(Q.size(-1)) + mask, dim=0) @ V
)


@wrong("attention", "mask after softmax", "weights set to 0")
def _(Q, K, V, mask):
    alpha = torch.softmax(Q @ K.T / Q.size(-1) ** 0.5, -1)
    return alpha.masked_fill(mask.isinf(), 0.0) @ V


wrong("attention", "mask added after softmax", "weights + mask")(
    lambda Q, K, V, mask: (torch.softmax(Q @ K.T / Q.size(-1) ** 0.5, -1) + mask) @ V
)


@wrong("attention", "mask turned", "masked_fill(mask == 0)")
def _(Q, K, V, mask):
    scores = Q @ K.T / Q.size(-1) ** 0.5
    return torch.softmax(scores.masked_fill(mask == 0, -torch.inf), -1) @ V


@wrong("attention", "hidden scores 0", "0 for −∞")
def _(Q, K, V, mask):
    scores = Q @ K.T / Q.size(-1) ** 0.5
    scores[mask != 0] = 0
    return torch.softmax(scores, -1) @ V


@wrong("attention", "-1e9", "−1e9 for −∞")
def _(Q, K, V, mask):
    scores = Q @ K.T / Q.size(-1) ** 0.5
    return torch.softmax(scores.masked_fill(mask != 0, -1e9), -1) @ V


wrong("attention", "no mask", "mask unused")(
    lambda Q, K, V, mask: torch.softmax(Q @ K.T / Q.size(-1) ** 0.5, -1) @ V
)
wrong("attention", "mask multiplied", "scores * mask")(
    lambda Q, K, V, mask: torch.softmax((Q @ K.T / Q.size(-1) ** 0.5) * mask, -1) @ V
)
wrong("attention", "mask subtracted", "scores − mask")(
    lambda Q, K, V, mask: torch.softmax(Q @ K.T / Q.size(-1) ** 0.5 - mask, -1) @ V
)


@wrong("attention", "overflow", "exp over the sum")
def _(Q, K, V, mask):
    e = torch.exp(Q @ K.T / Q.size(-1) ** 0.5 + mask)
    return e / e.sum(-1, keepdim=True) @ V


wrong("attention", "no softmax", "linear attention")(
    lambda Q, K, V, mask: (Q @ K.T / Q.size(-1) ** 0.5 + mask) @ V
)
wrong("attention", "keys as values", "alpha @ K")(
    lambda Q, K, V, mask: torch.softmax(Q @ K.T / Q.size(-1) ** 0.5 + mask, -1) @ K
)
wrong("attention", "the weights", "stops early")(
    lambda Q, K, V, mask: torch.softmax(Q @ K.T / Q.size(-1) ** 0.5 + mask, -1)
)


# --- heads -------------------------------------------------------------------------------------


@right("head", "one token after the other")
def _(X, W_Q, W_K, W_V, W_O):
    out = []
    for i, x in enumerate(X):
        q, past = x @ W_Q, X[: i + 1]
        a = F.softmax((past @ W_K) @ q / math.sqrt(len(q)), dim=0)
        out.append(a @ (past @ W_V) @ W_O)
    return torch.stack(out)


def _plain_head(X, Q, K, V, W_O, mask=True, root=None):
    s = Q @ K.T / (root or math.sqrt(K.shape[-1]))
    s = s.masked_fill(tril(len(X)) == 0, -torch.inf) if mask else s
    return s.softmax(-1) @ V @ W_O


wrong("head", "no mask", "sees the future")(
    lambda X, W_Q, W_K, W_V, W_O: _plain_head(X, X @ W_Q, X @ W_K, X @ W_V, W_O, mask=False)
)
wrong("head", "scaled by √d", "√ of the model's size")(
    lambda X, W_Q, W_K, W_V, W_O: _plain_head(
        X, X @ W_Q, X @ W_K, X @ W_V, W_O, root=X.shape[1] ** 0.5
    )
)
wrong("head", "roles of Q and K", "W_Q and W_K swapped")(
    lambda X, W_Q, W_K, W_V, W_O: _plain_head(X, X @ W_K, X @ W_Q, X @ W_V, W_O)
)
wrong("head", "no W_O", "no last product")(
    lambda X, W_Q, W_K, W_V, W_O: _plain_head(X, X @ W_Q, X @ W_K, X @ W_V, torch.eye(W_V.shape[1]))
)
wrong("head", "V from W_K", "V = X W_K")(
    lambda X, W_Q, W_K, W_V, W_O: _plain_head(X, X @ W_Q, X @ W_K, X @ W_K, W_O)
)


@right("split_heads", "slices")
def _(X, n_heads):
    share = X.shape[1] // n_heads
    return torch.stack([X[:, c * share : (c + 1) * share] for c in range(n_heads)])


right("split_heads", "chunk")(lambda X, A: list(X.chunk(A, dim=-1)))
wrong("split_heads", "view without transpose", "view")(lambda X, A: X.view(A, X.shape[0], -1))
wrong("split_heads", "not transposed", "no transpose")(lambda X, A: X.reshape(X.shape[0], A, -1))
wrong("split_heads", "columns dealt out", "every A-th column")(
    lambda X, A: torch.stack([X[:, c::A] for c in range(A)])
)
right("join_heads", "cat")(lambda heads: torch.cat(list(heads), dim=-1))
wrong("join_heads", "view without transpose", "reshape")(
    lambda heads: heads.reshape(heads.shape[1], -1)
)
wrong("join_heads", "interleaved", "stack")(
    lambda heads: torch.stack(list(heads), dim=-1).flatten(-2)
)
wrong("join_heads", "heads reversed", "last head first")(
    lambda heads: torch.cat([heads[c] for c in reversed(range(len(heads)))], dim=1)
)
wrong("join_heads", "one below the other", "cat along tokens")(
    lambda heads: torch.cat(tuple(heads))
)
wrong("join_heads", "added", "sum of heads")(lambda heads: sum(heads))


def _mha(X, W_Q, W_K, W_V, W_O, A, split, join, root=None, mask=True, axis=-1):
    Q, K, V = split(X @ W_Q), split(X @ W_K), split(X @ W_V)
    s = Q @ K.transpose(-1, -2) / (root or math.sqrt(K.shape[-1]))
    s = s + torch.full((len(X), len(X)), -torch.inf).triu(1) if mask else s
    return join(s.softmax(axis) @ V) @ W_O


def _cut(A):
    return lambda Z: Z.unflatten(-1, (A, -1)).transpose(0, 1)


def _join(H):
    return H.transpose(0, 1).flatten(1)


@right("multi_head_attention", "a loop over heads")
def _(X, W_Q, W_K, W_V, W_O, A):
    heads = []
    for q, k, v in zip(W_Q.chunk(A, 1), W_K.chunk(A, 1), W_V.chunk(A, 1), strict=True):
        heads.append(_plain_head(X, X @ q, X @ k, X @ v, torch.eye(v.shape[1])))
    return torch.cat(heads, -1) @ W_O


class _Mha(nn.Module):
    """A module with linear layers and sizes of its own."""

    def __init__(self, d, num_heads):
        super().__init__()
        self.num_heads = num_heads
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            setattr(self, name, nn.Linear(d, d, bias=False))

    def forward(self, X):
        split = _cut(self.num_heads)
        Q, K, V = split(self.W_Q(X)), split(self.W_K(X)), split(self.W_V(X))
        return self.W_O(_join(F.scaled_dot_product_attention(Q, K, V, is_causal=True)))


ALL.append(Planted("multi_head_attention", "a module with linear layers", None, _Mha(6, 2)))


wrong("multi_head_attention", "view without transpose", "view")(
    lambda X, W_Q, W_K, W_V, W_O, A: _mha(
        X, W_Q, W_K, W_V, W_O, A, lambda Z: Z.view(A, len(X), -1), _join
    )
)
wrong("multi_head_attention", "joined without transpose", "reshape at the end")(
    lambda X, W_Q, W_K, W_V, W_O, A: _mha(
        X, W_Q, W_K, W_V, W_O, A, _cut(A), lambda H: H.reshape(len(X), -1)
    )
)
wrong("multi_head_attention", "scaled by all heads", "√(A·d_k)")(
    lambda X, W_Q, W_K, W_V, W_O, A: _mha(
        X, W_Q, W_K, W_V, W_O, A, _cut(A), _join, root=W_Q.shape[1] ** 0.5
    )
)
wrong("multi_head_attention", "no mask", "sees the future")(
    lambda X, W_Q, W_K, W_V, W_O, A: _mha(X, W_Q, W_K, W_V, W_O, A, _cut(A), _join, mask=False)
)
wrong("multi_head_attention", "heads reversed", "cat in reverse order")(
    lambda X, W_Q, W_K, W_V, W_O, A: _mha(
        X, W_Q, W_K, W_V, W_O, A, _cut(A), lambda H: torch.cat(list(H)[::-1], -1)
    )
)
wrong("multi_head_attention", "one head", "never split")(
    lambda X, W_Q, W_K, W_V, W_O, A: _plain_head(X, X @ W_Q, X @ W_K, X @ W_V, W_O)
)
wrong("multi_head_attention", "softmax over heads", "dim=0")(
    lambda X, W_Q, W_K, W_V, W_O, A: _mha(X, W_Q, W_K, W_V, W_O, A, _cut(A), _join, axis=0)
)


@right("cached_step", "einsum and vstack")
def _(x, W_Q, W_K, W_V, K, V):
    K, V = torch.vstack([K, x @ W_K]), torch.vstack([V, x @ W_V])
    alpha = F.softmax(torch.einsum("k,nk->n", x @ W_Q, K) / K.shape[1] ** 0.5, 0)
    return torch.einsum("n,nv->v", alpha, V), K, V


def _step(q, K, V):
    return F.softmax(K @ q / math.sqrt(len(q)), 0) @ V


@wrong("cached_step", "new token not read", "attends before adding")
def _(x, W_Q, W_K, W_V, K, V):
    head = _step(x @ W_Q, K, V)
    return head, torch.vstack([K, x @ W_K]), torch.vstack([V, x @ W_V])


wrong("cached_step", "not kept", "returns the old cache")(
    lambda x, W_Q, W_K, W_V, K, V: (
        _step(x @ W_Q, torch.vstack([K, x @ W_K]), torch.vstack([V, x @ W_V])),
        K,
        V,
    )
)


@wrong("cached_step", "put in front", "vstack the wrong way")
def _(x, W_Q, W_K, W_V, K, V):
    K, V = torch.vstack([x @ W_K, K]), torch.vstack([x @ W_V, V])
    return _step(x @ W_Q, K, V), K, V


# --- the block ---------------------------------------------------------------------------------


@right("layer_norm", "the book's, one row", one_row=True)
def _(x, gamma, beta):
    mu = sum(x) / len(x)
    sigma = (sum((x_i - mu) ** 2 for x_i in x) / len(x)) ** 0.5
    return gamma * (x - mu) / sigma + beta


right("layer_norm", "PyTorch's function")(lambda x, g, b: F.layer_norm(x, x.shape[-1:], g, b))


ALL.append(Planted("layer_norm", "PyTorch's module", None, nn.LayerNorm(7)))


wrong("layer_norm", "unbiased", "std()")(
    lambda x, gamma, beta: gamma * (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True) + beta
)


@wrong("layer_norm", "unbiased", "var() with eps")
def _(x, gamma, beta):
    v = x.var(-1, keepdim=True)
    return gamma * (x - x.mean(-1, keepdim=True)) / torch.sqrt(v + 1e-5) + beta


@wrong("layer_norm", "eps outside", "σ + 1e-5")
def _(x, gamma, beta):
    sigma = x.std(-1, keepdim=True, correction=0)
    return gamma * (x - x.mean(-1, keepdim=True)) / (sigma + 1e-5) + beta


@wrong("layer_norm", "eps outside", "σ + 1e-6")
def _(x, gamma, beta):
    sigma = x.std(-1, keepdim=True, correction=0)
    return gamma * (x - x.mean(-1, keepdim=True)) / (sigma + 1e-6) + beta


@wrong("layer_norm", "over tokens", "dim=0")
def _(x, gamma, beta):
    if x.dim() == 1:
        x_hat = (x - x.mean()) / x.std(correction=0)
    else:
        x_hat = (x - x.mean(0)) / x.std(0, correction=0)
    return gamma * x_hat + beta


wrong("layer_norm", "all rows together", "no axis")(
    lambda x, gamma, beta: gamma * (x - x.mean()) / x.std(correction=0) + beta
)
wrong("layer_norm", "no gain", "γ forgotten")(
    lambda x, gamma, beta: F.layer_norm(x, x.shape[-1:]) + beta
)


@wrong("layer_norm", "variance", "no root")
def _(x, gamma, beta):
    v = ((x - x.mean(-1, keepdim=True)) ** 2).mean(-1, keepdim=True)
    return gamma * (x - x.mean(-1, keepdim=True)) / (v + 1e-5) + beta


wrong("layer_norm", "gain on the offset", "a bracket too many")(
    lambda x, gamma, beta: gamma * (F.layer_norm(x, x.shape[-1:]) + beta)
)
wrong("layer_norm", "root mean square", "RMSNorm")(
    lambda x, gamma, beta: gamma * x / x.pow(2).mean(-1, keepdim=True).add(1e-6).sqrt() + beta
)


@right("ffn", "a loop over units")
def _(x, W_1, b_1, W_2, b_2):
    out = b_2
    for u in range(len(b_1)):
        out = out + torch.relu(x @ W_1[:, u] + b_1[u])[..., None] * W_2[u]
    return out


class _FFN(nn.Module):
    def __init__(self):
        super().__init__()
        self.W_1, self.b_1 = nn.Parameter(torch.zeros(5, 11)), nn.Parameter(torch.zeros(11))
        self.W_2, self.b_2 = nn.Parameter(torch.zeros(11, 5)), nn.Parameter(torch.zeros(5))

    def forward(self, x):
        return (x @ self.W_1 + self.b_1).clamp(min=0) @ self.W_2 + self.b_2


ALL.append(Planted("ffn", "a module", None, _FFN()))


wrong("ffn", "no ReLU", "linear")(lambda x, W_1, b_1, W_2, b_2: (x @ W_1 + b_1) @ W_2 + b_2)
wrong("ffn", "ReLU at the end", "ReLU of everything")(
    lambda x, W_1, b_1, W_2, b_2: torch.relu((x @ W_1 + b_1) @ W_2 + b_2)
)
wrong("ffn", "GELU", "GPT-2's")(lambda x, W_1, b_1, W_2, b_2: F.gelu(x @ W_1 + b_1) @ W_2 + b_2)
wrong("ffn", "no b_2", "b_2 forgotten")(
    lambda x, W_1, b_1, W_2, b_2: torch.relu(x @ W_1 + b_1) @ W_2
)
wrong("ffn", "ReLU before b_1", "bracket")(
    lambda x, W_1, b_1, W_2, b_2: (torch.relu(x @ W_1) + b_1) @ W_2 + b_2
)
right("unchanged", "X itself")(lambda X, W_1, b_1, W_2, b_2: X.clone())
wrong("unchanged", "b_2 left", "0 · W_2 alone")(
    lambda X, W_1, b_1, W_2, b_2: X + torch.relu(X @ W_1 + b_1) @ (0 * W_2) + b_2
)


@right("swiglu", "spelled out")
def _(x, W_1, b_1, W_2, b_2, W_3, b_3):
    a = x @ W_1 + b_1
    return (a / (1 + torch.exp(-a)) * (x @ W_2 + b_2)) @ W_3 + b_3


wrong("swiglu", "gate on the other side", "Swish on W_2")(
    lambda x, W_1, b_1, W_2, b_2, W_3, b_3: ((x @ W_1 + b_1) * F.silu(x @ W_2 + b_2)) @ W_3 + b_3
)
wrong("swiglu", "sigmoid", "GLU")(
    lambda x, W_1, b_1, W_2, b_2, W_3, b_3: (
        (torch.sigmoid(x @ W_1 + b_1) * (x @ W_2 + b_2)) @ W_3 + b_3
    )
)
wrong("swiglu", "added", "+ for ⊗")(
    lambda x, W_1, b_1, W_2, b_2, W_3, b_3: (F.silu(x @ W_1 + b_1) + x @ W_2 + b_2) @ W_3 + b_3
)


@right("block", "two lines")
def _(X, attention, ffn, norm_1, norm_2):
    X = X + attention(norm_1(X))
    return X + ffn(norm_2(X))


@wrong("block", "post-norm", "2017")
def _(X, attention, ffn, norm_1, norm_2):
    X = norm_1(X + attention(X))
    return norm_2(X + ffn(X))


@wrong("block", "no first residual", "attention replaces X")
def _(X, attention, ffn, norm_1, norm_2):
    O = attention(norm_1(X))
    return O + ffn(norm_2(O))


wrong("block", "no second residual", "FFN replaces O")(
    lambda X, attention, ffn, norm_1, norm_2: ffn(norm_2(X + attention(norm_1(X))))
)


@wrong("block", "norm on the residual", "X overwritten by its norm")
def _(X, attention, ffn, norm_1, norm_2):
    X = norm_1(X)
    O = X + attention(X)
    return O + ffn(norm_2(O))


@wrong("block", "X instead of O", "adds X twice")
def _(X, attention, ffn, norm_1, norm_2):
    O = X + attention(norm_1(X))
    return X + ffn(norm_2(O))


@wrong("block", "no second norm", "FFN(T³), as one draft's text has it")
def _(X, attention, ffn, norm_1, norm_2):
    T3 = X + attention(norm_1(X))
    return T3 + ffn(T3)


wrong("block", "parallel", "GPT-J's form")(
    lambda X, attention, ffn, norm_1, norm_2: X + attention(norm_1(X)) + ffn(norm_2(X))
)


@wrong("block", "norms swapped", "norm_2 first")
def _(X, attention, ffn, norm_1, norm_2):
    O = X + attention(norm_2(X))
    return O + ffn(norm_1(O))


# --- input and head ----------------------------------------------------------------------------


right("one_hot_lookup", "one_hot")(
    lambda word, emb: F.one_hot(torch.tensor(word), len(emb)).float() @ emb
)
wrong("one_hot_lookup", "counted from 1", "E[w − 1]")(lambda w, E: E[w - 1])
wrong("one_hot_lookup", "column", "E[:, w]")(lambda w, E: E[:, w])
right("input_encoding", "a loop")(
    lambda ids, E, P, start=0: torch.stack([E[w] + P[start + i] for i, w in enumerate(ids)])
)
wrong("input_encoding", "not offset", "start ignored")(
    lambda ids, E, P, start: E[ids] + P[: len(ids)]
)
wrong("input_encoding", "counted from 1", "P[i + 1]")(
    lambda ids, E, P, start: E[ids] + P[start + 1 : start + 1 + len(ids)]
)
wrong("input_encoding", "times √d", "as in the paper")(
    lambda ids, E, P, start: E[ids] * E.shape[-1] ** 0.5 + P[start : start + len(ids)]
)
wrong("input_encoding", "positions by word", "P[ids]")(lambda ids, E, P, start: E[ids] + P[ids])
wrong("input_encoding", "no positions", "E alone")(lambda ids, E, P, start: F.embedding(ids, E))
wrong("input_encoding", "side by side", "cat")(
    lambda ids, E, P, start: torch.cat([E[ids], P[start : start + len(ids)]], dim=1)
)


@right("sinusoid", "interleaved by stack")
def _(N, d):
    angle = torch.arange(N)[:, None] * torch.exp(-math.log(10000) * torch.arange(0, d, 2) / d)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)


@wrong("sinusoid", "halves", "cat of sines and cosines")
def _(N, d):
    angle = torch.arange(N)[:, None] / 10000 ** (torch.arange(0, d, 2) / d)
    return torch.cat([angle.sin(), angle.cos()], -1)


@wrong("sinusoid", "column as i", "2i with i the column")
def _(N, d):
    P = torch.zeros(N, d)
    for pos in range(N):
        for c in range(d):
            f = math.sin if c % 2 == 0 else math.cos
            P[pos, c] = f(pos / 10000 ** (c / d))
    return P


@right("shift_position", "a rotation of pairs")
def _(row, k):
    d = len(row)
    out = []
    for i in range(d // 2):
        b = torch.tensor(k / 10000 ** (2 * i / d))
        turn = torch.stack([torch.stack([b.cos(), b.sin()]), torch.stack([-b.sin(), b.cos()])])
        out.append(turn @ row[2 * i : 2 * i + 2])
    return torch.cat(out)


@wrong("shift_position", "backwards", "− k")
def _(row, k):
    b = -k / 10000 ** (torch.arange(0, len(row), 2) / len(row))
    s, c = row[::2], row[1::2]
    return torch.stack([s * b.cos() + c * b.sin(), c * b.cos() - s * b.sin()], 1).flatten()


@wrong("shift_position", "all alike", "one angle")
def _(row, k):
    s, c = row[::2], row[1::2]
    sin, cos = math.sin(k), math.cos(k)
    return torch.stack([s * cos + c * sin, c * cos - s * sin], 1).flatten()


right("lm_head", "a loop over words")(
    lambda hidden, E: torch.stack([hidden @ e for e in E], dim=-1)
)
wrong("lm_head", "probabilities", "softmax inside")(lambda H, E: F.softmax(H @ E.T, -1))
wrong("lm_head", "last position only", "H[−1]")(lambda H, E: H[-1] @ E.T)
wrong("lm_head", "not transposed", "H @ E")(lambda H, E: H @ E)


@right("stack", "a loop")
def _(X, blocks, final_norm):
    for b in blocks:
        X = b(X)
    return final_norm(X)


@wrong("stack", "no final norm", "norm forgotten")
def _(X, blocks, final_norm):
    for b in blocks:
        X = b(X)
    return X


@wrong("stack", "norm after each", "norm in the loop")
def _(X, blocks, final_norm):
    for b in blocks:
        X = final_norm(b(X))
    return X


@wrong("stack", "last only", "H = b(X)")
def _(X, blocks, final_norm):
    for b in blocks:
        H = b(X)
    return final_norm(H)


right("parameters", "matrix by matrix")(
    lambda L, d: (
        L * sum(rows * columns for rows, columns in [(d, d)] * 4 + [(d, 4 * d), (4 * d, d)])
    )
)
wrong("parameters", "no W_O", "11Ld²")(lambda L, d: L * (3 * d * d + 2 * d * 4 * d))
wrong("parameters", "one matrix of the feedforward layer", "8Ld²")(
    lambda L, d: L * (4 * d**2 + 4 * d**2)
)


# --- choosing ----------------------------------------------------------------------------------


right("temperature", "PyTorch's softmax")(lambda logits, t: F.softmax(logits / t, dim=-1))
wrong("temperature", "multiplied", "u · τ")(lambda u, tau: F.softmax(u * tau, -1))
wrong("temperature", "after softmax", "y / τ")(lambda u, tau: F.softmax(u, -1) / tau)


@wrong("temperature", "no effect", "y / τ, renormalised")
def _(u, tau):
    y = F.softmax(u, -1) / tau
    return y / y.sum()


wrong("temperature", "overflow", "exp over the sum")(
    lambda u, tau: torch.exp(u / tau) / torch.exp(u / tau).sum()
)
right("limits_of_temperature", "lists")(lambda: ([1, 0, 0, 0], [0.25] * 4))
wrong("limits_of_temperature", "swapped", "hot and cold")(lambda: ([0.25] * 4, [1, 0, 0, 0]))


@right("top_k", "probabilities cut and renormalised")
def _(u, k):
    y = F.softmax(u, -1)
    y = torch.where(y >= y.topk(k).values[-1], y, 0)
    return y / y.sum()


@wrong("top_k", "not renormalised", "cut after softmax")
def _(u, k):
    y = F.softmax(u, -1)
    return torch.where(y >= y.topk(k).values[-1], y, 0)


wrong("top_k", "logits 0", "0 for −∞")(
    lambda u, k: F.softmax(torch.where(u >= u.topk(k).values[-1], u, 0.0), -1)
)


@wrong("top_k", "smallest", "largest=False")
def _(u, k):
    keep = u.topk(k, largest=False).indices
    return torch.full_like(u, -torch.inf).scatter(0, keep, u[keep]).softmax(-1)


@wrong("top_k", "one too few", ">")
def _(u, k):
    y = u.masked_fill(u <= u.topk(k).values[-1], -torch.inf)
    return y.softmax(-1)


@right("top_p", "a loop")
def _(u, p):
    y = F.softmax(u, -1)
    kept, total = torch.zeros_like(y), 0.0
    for w in y.argsort(descending=True):
        if total < p - 1e-6:
            kept[w] = y[w]
        total += y[w].item()
    return kept / kept.sum()


@wrong("top_p", "crossing word dropped", "cumsum ≤ p")
def _(u, p):
    y, order = F.softmax(u, -1).sort(descending=True)
    y[y.cumsum(-1) > p] = 0
    out = torch.zeros_like(y).scatter(-1, order, y)
    return out / out.sum()


@wrong("top_p", "not renormalised", "left as it is")
def _(u, p):
    y, order = F.softmax(u, -1).sort(descending=True)
    y[y.cumsum(-1) - y >= p - 1e-6] = 0
    return torch.zeros_like(y).scatter(-1, order, y)


wrong("top_p", "each above p", "y ≥ p")(
    lambda u, p: u.masked_fill(F.softmax(u, -1) < p, -torch.inf).softmax(-1)
)


@wrong("top_p", "not sorted", "cumsum of the words as they stand")
def _(u, p):
    y = F.softmax(u, -1)
    return u.masked_fill(y.cumsum(0) - y >= p - 1e-6, -torch.inf).softmax(-1)


@wrong("top_p", "sorted", "never put back")
def _(u, p):
    y = F.softmax(u, -1).sort(descending=True).values
    y[y.cumsum(-1) - y >= p - 1e-6] = 0
    return y / y.sum()


@right("leak", "as asked")
def _(scores, seen):
    s = torch.cat([scores[:seen], torch.zeros(len(scores) - seen)])
    return 1 - F.softmax(s, 0)[:seen].sum()


@wrong("leak", "visible share", "the other part")
def _(scores, seen):
    s = torch.cat([scores[:seen], torch.zeros(len(scores) - seen)])
    return F.softmax(s, 0)[:seen].sum()


# --- loss --------------------------------------------------------------------------------------


right("next_token_loss", "cross_entropy")(
    lambda logits, tokens: F.cross_entropy(logits[:-1], tokens[1:])
)


@right("next_token_loss", "the equation in a loop")
def _(U, ids):
    losses = [-torch.log(torch.softmax(U[t], -1)[ids[t + 1]]) for t in range(len(ids) - 1)]
    return sum(losses) / len(losses)


wrong("next_token_loss", "not shifted", "its own word")(lambda U, ids: F.cross_entropy(U, ids))
wrong("next_token_loss", "shifted backwards", "the word before")(
    lambda U, ids: F.cross_entropy(U[1:], ids[:-1])
)
wrong("next_token_loss", "summed", "reduction='sum'")(
    lambda U, ids: F.cross_entropy(U[:-1], ids[1:], reduction="sum")
)
wrong("next_token_loss", "softmax twice", "probabilities to cross_entropy")(
    lambda U, ids: F.cross_entropy(F.softmax(U[:-1], -1), ids[1:])
)
wrong("next_token_loss", "no minus", "mean of logarithms")(
    lambda U, ids: F.log_softmax(U[:-1], -1).gather(1, ids[1:, None]).mean()
)
wrong("next_token_loss", "last position counted", "/ N")(
    lambda U, ids: F.cross_entropy(U[:-1], ids[1:], reduction="sum") / len(ids)
)
right("padded_loss", "ignore_index")(
    lambda U, ids, pad_id: F.cross_entropy(
        U[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), ignore_index=pad_id
    )
)
wrong("padded_loss", "padding counted", "no ignore_index")(
    lambda U, ids, pad_id: F.cross_entropy(U[:, :-1].transpose(1, 2), ids[:, 1:])
)


@wrong("padded_loss", "padding in the mean", "divides by all")
def _(U, ids, pad_id):
    each = F.cross_entropy(U[:, :-1].transpose(1, 2), ids[:, 1:], reduction="none")
    return (each * (ids[:, 1:] != pad_id)).mean()


@wrong("padded_loss", "mean of means", "text by text")
def _(U, ids, pad_id):
    pairs = zip(U, ids, strict=True)
    each = [F.cross_entropy(u[:-1], t[1:], ignore_index=pad_id) for u, t in pairs]
    return torch.stack(each).mean()


wrong("padded_loss", "not shifted", "its own word")(
    lambda U, ids, pad_id: F.cross_entropy(U.flatten(0, 1), ids.flatten(), ignore_index=pad_id)
)
right("perplexity", "exp of the cross-entropy")(
    lambda p: math.exp(-sum(math.log(x) for x in p) / len(p))
)
wrong("perplexity", "underflow", "product, then root")(lambda p: torch.prod(p) ** (-1 / len(p)))
wrong("perplexity", "no root", "1 / product")(lambda p: 1 / torch.prod(p))
wrong("perplexity", "loss", "cross-entropy")(lambda p: -p.log().mean())
wrong("perplexity", "mean of inverses", "arithmetic mean")(lambda p: sum(1 / x for x in p) / len(p))
right("perplexity_of_loss", "math.exp")(lambda loss: math.exp(loss))
wrong("perplexity_of_loss", "base 2", "2 ** loss")(lambda loss: 2**loss)
right("scaling_loss", "by logarithms")(
    lambda N, N_c, alpha: math.exp(alpha * (math.log(N_c) - math.log(N)))
)
wrong("scaling_loss", "upside down", "N / N_c")(lambda N, N_c, alpha: (N / N_c) ** alpha)
right("cache_numbers", "a sum over blocks and heads")(
    lambda T, L, A, d_k, d_v: sum(T * d_k + T * d_v for _ in range(L * A))
)
wrong("cache_numbers", "keys only", "K alone")(lambda T, L, A, d_k, d_v: T * d_k * A * L)
wrong("cache_numbers", "one block", "no L")(lambda T, L, A, d_k, d_v: (d_k + d_v) * T * A)
right("merged", "einsum")(
    lambda W, A, B, alpha: W + torch.einsum("kr,rd->kd", A, B) * (alpha / B.shape[0])
)
wrong("merged", "no scale", "W + AB")(lambda W, A, B, alpha: W + A @ B)
wrong("merged", "A and B swapped", "W + BA")(
    lambda W, A, B, alpha: W + alpha / A.shape[1] * (B @ A)
)
right("lora", "one matrix")(lambda x, W, A, B, alpha: x @ (W + alpha / A.shape[1] * A @ B))
wrong("lora", "A and B swapped", "the paper's order")(
    lambda x, W, A, B, alpha: x @ W + alpha / A.shape[1] * (x @ B @ A)
)
wrong("lora", "no scale", "the book's, without α/r")(lambda x, W, A, B, alpha: x @ W + x @ A @ B)
wrong("lora", "scaled by α", "α alone")(lambda x, W, A, B, alpha: x @ W + alpha * x @ A @ B)
wrong("lora", "W left out", "adapter alone")(
    lambda x, W, A, B, alpha: alpha / A.shape[-1] * x @ A @ B
)


# --- encoder and decoder -----------------------------------------------------------------------


@right("cross_attention", "names of the field")
def _(X, memory, W_Q, W_K, W_V):
    q, k, v = X @ W_Q, memory @ W_K, memory @ W_V
    return F.scaled_dot_product_attention(q, k, v)


wrong("cross_attention", "K from the decoder", "K = X W_K")(
    lambda X, H_enc, W_Q, W_K, W_V: (
        F.softmax(X @ W_Q @ (X @ W_K).T / W_K.shape[1] ** 0.5, -1) @ (H_enc @ W_V)
    )
)
wrong("cross_attention", "K and V from the decoder", "self-attention")(
    lambda X, H_enc, W_Q, W_K, W_V: F.scaled_dot_product_attention(X @ W_Q, X @ W_K, X @ W_V)
)
wrong("cross_attention", "sides swapped", "the encoder asks")(
    lambda X, H_enc, W_Q, W_K, W_V: F.scaled_dot_product_attention(H_enc @ W_Q, X @ W_K, X @ W_V)
)


@wrong("cross_attention", "causal", "is_causal=True")
def _(X, H_enc, W_Q, W_K, W_V):
    q, k, v = X @ W_Q, H_enc @ W_K, H_enc @ W_V
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@right("decoder_block", "three lines")
def _(X, H_enc, attention, cross_attention, ffn, norm):
    X = X + attention(norm(X))
    X = X + cross_attention(norm(X), H_enc)
    return X + ffn(norm(X))


@wrong("decoder_block", "cross-attention first", "order")
def _(X, H_enc, attention, cross_attention, ffn, norm):
    X = X + cross_attention(norm(X), H_enc)
    X = X + attention(norm(X))
    return X + ffn(norm(X))


@wrong("decoder_block", "post-norm", "2017")
def _(X, H_enc, attention, cross_attention, ffn, norm):
    X = norm(X + attention(X))
    X = norm(X + cross_attention(X, H_enc))
    return norm(X + ffn(X))


@wrong("decoder_block", "query from X", "all from one norm")
def _(X, H_enc, attention, cross_attention, ffn, norm):
    T1 = norm(X)
    X = X + attention(T1)
    X = X + cross_attention(T1, H_enc)
    return X + ffn(norm(X))


right("length_normalized", "mean")(lambda log_probabilities: log_probabilities.mean())
wrong("length_normalized", "not normalized", "sum")(
    lambda log_probabilities: sum(log_probabilities)
)


# --- the guitar --------------------------------------------------------------------------------


right("pitch", "negative index")(lambda string, fret, tuning: tuning[-string] + fret)
wrong("pitch", "strings from the lowest", "tuning[string − 1]")(
    lambda string, fret, tuning: tuning[string - 1] + fret
)
right("count_places", "a loop")(
    lambda midi, tuning, frets: len([1 for s in tuning if midi - s in range(frets + 1)])
)
wrong("count_places", "last fret left out", "range(frets)")(
    lambda midi, tuning, frets: len([1 for s in tuning if midi - s in range(frets)])
)
wrong("count_places", "open strings left out", "range(1, …)")(
    lambda midi, tuning, frets: len([1 for s in tuning if 1 <= midi - s <= frets])
)


@right("span", "pressed strings only")
def _(frets):
    pressed = [f for f in frets if f]
    return max(pressed, default=0) - min(pressed, default=0)


@wrong("span", "open strings counted", "is not None")
def _(frets):
    played = [f for f in frets if f is not None]
    return max(played) - min(played)


right("only_allowed", "−∞")(lambda u, allowed: torch.where(allowed, u, -torch.inf).softmax(-1))
wrong("only_allowed", "logits 0", "u · allowed")(lambda u, allowed: (u * allowed).softmax(-1))
wrong("only_allowed", "not renormalised", "after the softmax")(
    lambda u, allowed: u.softmax(-1) * allowed
)


import planted_fingering  # noqa: E402, F401  more attempts: they join the lists above
import planted_inside  # noqa: E402, F401
import planted_odd  # noqa: E402, F401
import planted_paper  # noqa: E402, F401
import planted_todays  # noqa: E402, F401

RIGHT = [p for p in ALL if p.mistake is None]
WRONG = [p for p in ALL if p.mistake is not None]
