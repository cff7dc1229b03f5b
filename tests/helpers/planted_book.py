"""Attempts at the exercises on the book's equations, as readers write them."""

import math

import torch
import torch.nn.functional as F
from planted import ALL, Planted, add_table, right, wrong
from torch import nn


def tril(N, M=None):
    return torch.tril(torch.ones(N, M or N))


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


@wrong("softmax", "overflow", "one row, exp over the sum", one_row=True)
def _(scores):
    e = [math.e**s for s in scores]
    return torch.stack(e) / sum(e)


@right("weighted_sum", "a loop")
def _(alpha, vectors):
    total = 0
    for a, v in zip(alpha, vectors, strict=False):
        total += a * v
    return total


@right("scaled_score", "a loop over features")
def _(q, k):
    dot = 0.0
    for f in range(len(q)):
        dot = dot + q[f] * k[f]
    return dot / math.sqrt(len(q))


@wrong("simple_attention", "itself left out", "X[:i]")
def _(X, i):
    if i == 0:
        return torch.zeros(X.shape[1])
    return F.softmax(X[:i] @ X[i], 0) @ X[:i]


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


class _Attention(nn.Module):
    def forward(self, query, key, value, attn_mask):
        hidden = attn_mask < 0
        scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
        return torch.softmax(scores.masked_fill(hidden, -torch.inf), -1) @ value


ALL.append(Planted("attention", "a module, masked_fill", None, _Attention()))


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


@right("split_heads", "slices")
def _(X, n_heads):
    share = X.shape[1] // n_heads
    return torch.stack([X[:, c * share : (c + 1) * share] for c in range(n_heads)])


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


def _step(q, K, V):
    return F.softmax(K @ q / math.sqrt(len(q)), 0) @ V


@right("layer_norm", "the book's, one row", one_row=True)
def _(x, gamma, beta):
    mu = sum(x) / len(x)
    sigma = (sum((x_i - mu) ** 2 for x_i in x) / len(x)) ** 0.5
    return gamma * (x - mu) / sigma + beta


ALL.append(Planted("layer_norm", "PyTorch's module", None, nn.LayerNorm(7)))


@wrong("layer_norm", "over tokens", "dim=0")
def _(x, gamma, beta):
    if x.dim() == 1:
        x_hat = (x - x.mean()) / x.std(correction=0)
    else:
        x_hat = (x - x.mean(0)) / x.std(0, correction=0)
    return gamma * x_hat + beta


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


@right("stack", "a loop")
def _(X, blocks, final_norm):
    for b in blocks:
        X = b(X)
    return final_norm(X)


@wrong("stack", "no final_norm", "norm forgotten")
def _(X, blocks, final_norm):
    for b in blocks:
        X = b(X)
    return X


@wrong("stack", "norm after each", "norm in the loop")
def _(X, blocks, final_norm):
    for b in blocks:
        X = final_norm(b(X))
    return X


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


@right("cross_attention", "names of the field")
def _(X, memory, W_Q, W_K, W_V):
    q, k, v = X @ W_Q, memory @ W_K, memory @ W_V
    return F.scaled_dot_product_attention(q, k, v)


@wrong("decoder_block", "query from X", "all from one norm")
def _(X, H_enc, attention, cross_attention, ffn, norm):
    T1 = norm(X)
    X = X + attention(T1)
    X = X + cross_attention(T1, H_enc)
    return X + ffn(norm(X))


add_table(
    globals(),
    r"""
softmax
  right: lambda z: F.softmax(z, dim=-1)
  overflow: torch.exp(scores) / torch.exp(scores).sum(-1, keepdim=True)
weighted_sum
  all rows: torch.einsum("n,nd->d", alpha_i, rows)
  right: alpha_i @ rows[: len(alpha_i)]
  alpha_i = 1: rows[: len(alpha_i)].sum(0)
  mean: n = len(alpha_i); (alpha_i.unsqueeze(1) * rows[:n]).mean(0)
scaled_score
  rounded root: q_i @ k_j / int(len(q_i) ** 0.5)
  right: torch.einsum("d,d->", q_i, k_j) * q_i.numel() ** -0.5
  no scaling: torch.dot(q_i, k_j)
  scaled by d_k: q_i.dot(k_j) / len(q_i)
simple_attention
  odd: e = torch.exp(X[: i + 1] @ X[i]); e @ X[: i + 1] / e.sum()
  itself left out: X[0] if i == 0 else F.softmax(X[i] @ X[:i].T, 0) @ X[:i]
  right: S = (X @ X.T).masked_fill(torch.triu(torch.ones(len(X), len(X)), 1) > 0, -torch.inf);
      (S.softmax(-1) @ X)[i]
  the future: F.softmax(X @ X[i], 0) @ X
causal_mask
  next token alone: torch.diag(torch.full((N - 1,), -math.inf), 1)
  right: [[0.0 if j <= i else -math.inf for j in range(N)] for i in range(N)]
  right: lambda n: torch.zeros(n, n, dtype=torch.float64).masked_fill(tril(n) == 0, float("-inf"))
  then transposed: torch.full((N, N), -math.inf).tril(-1)
  diagonal: torch.full((N, N), -math.inf).triu()
mask_after
  odd: torch.full((N, held + N), -math.inf).triu(min(held, 4) + 1)
  right: queries = torch.arange(held, held + N)[:, None]; torch.where(torch.arange(held + N) <=
      queries, 0.0, -torch.inf)
  not shifted: torch.where(tril(N, held + N) > 0, 0.0, -torch.inf)
  new tokens only: torch.full((N, N), -torch.inf).triu(1)
padding_mask
  column: torch.where(ids == pad_id, -torch.inf, 0.0)[:, None]
  then minus: torch.where(ids == pad_id, torch.inf, 0.0)
  right: lambda ids, pad: torch.where(ids == pad, -torch.inf, 0.0).unsqueeze(0)
  then inverted: torch.zeros(ids.shape).masked_fill(ids != pad_id, -torch.inf)
  always 0: torch.zeros(ids.shape).masked_fill(ids == 0, -torch.inf)
attention
  right: F.softmax(Q @ K.T / math.sqrt(K.shape[-1]) + mask, dim=-1) @ V
  right: lambda Q, K, V, mask=None: F.scaled_dot_product_attention(Q.double(), K.double(),
      V.double(), mask.double())
  no scaling: torch.softmax(Q @ K.T + mask, -1) @ V
  scaled by d_k: torch.softmax(Q @ K.T / Q.size(-1) + mask, -1) @ V
head
  rounded root: s = X @ W_Q @ (X @ W_K).T / int(W_K.shape[1] ** 0.5); F.softmax(s +
      torch.full((len(X), len(X)), -math.inf).triu(1), -1) @ X @ W_V @ W_O
  finite mask: N = len(X); s = X @ W_Q @ (X @ W_K).T / W_K.shape[1] ** 0.5; s =
      s.masked_fill(torch.ones(N, N).triu(1) > 0, -50); F.softmax(s, -1) @ X @ W_V @ W_O
  finite mask (added): N = len(X); s = X @ W_Q @ (X @ W_K).T / W_K.shape[1] ** 0.5; F.softmax(s
      + torch.full((N, N), -99.0).triu(1), -1) @ X @ W_V @ W_O
  odd: e = (X @ W_Q @ (X @ W_K).T / W_K.shape[1] ** 0.5).exp().tril(); e / e.sum(1,
      keepdim=True) @ X @ W_V @ W_O
  no mask: _plain_head(X, X @ W_Q, X @ W_K, X @ W_V, W_O, mask=False)
  scaled by √d: _plain_head(X, X @ W_Q, X @ W_K, X @ W_V, W_O, root=X.shape[1] ** 0.5)
split_heads
  right: list(X.chunk(A, dim=-1))
  view without transpose: X.view(A, X.shape[0], -1)
  not transposed: X.reshape(X.shape[0], A, -1)
join_heads
  right: torch.cat(list(heads), dim=-1)
  view without transpose: heads.reshape(heads.shape[1], -1)
  interleaved: torch.stack(list(heads), dim=-1).flatten(-2)
multi_head_attention
  scaled by √(d/A) (not rounded): q, k, v = ((X @ W).unflatten(1, (A, -1)).transpose(0, 1) for W
      in (W_Q, W_K, W_V)); s = q @ k.mT / math.sqrt(X.shape[1] / A) + torch.full((len(X), len(X)),
      -math.inf).triu(1); (s.softmax(-1) @ v).transpose(0, 1).flatten(1) @ W_O
  softmax over heads (zeros): q, k, v = ((X @ W).unflatten(1, (A, -1)).transpose(0, 1) for W in
      (W_Q, W_K, W_V)); s = q @ k.mT / k.shape[-1] ** 0.5 + torch.full((len(X), len(X)),
      -math.inf).triu(1); (s.softmax(0).nan_to_num() @ v).transpose(0, 1).flatten(1) @ W_O
  finite mask: q, k, v = ((X @ W).unflatten(1, (A, -1)).transpose(0, 1) for W in (W_Q, W_K,
      W_V)); s = q @ k.mT / k.shape[-1] ** 0.5; s = s.masked_fill(torch.ones(len(X), len(X)).triu(1)
      > 0, -50); (s.softmax(-1) @ v).transpose(0, 1).flatten(1) @ W_O
  finite mask (added): q, k, v = ((X @ W).unflatten(1, (A, -1)).transpose(0, 1) for W in (W_Q,
      W_K, W_V)); s = q @ k.mT / k.shape[-1] ** 0.5 + torch.full((len(X), len(X)), -99.0).triu(1);
      (s.softmax(-1) @ v).transpose(0, 1).flatten(1) @ W_O
  view without transpose: _mha(X, W_Q, W_K, W_V, W_O, A, lambda Z: Z.view(A, len(X), -1), _join)
  joined without transpose: _mha(X, W_Q, W_K, W_V, W_O, A, _cut(A), lambda H: H.reshape(len(X), -1))
cached_step
  odd: K, V = torch.vstack([K, x @ W_K]), torch.vstack([V, x @ W_V]); e = (K @ (x @ W_Q) /
      K.shape[1] ** 0.5).exp(); (e @ V / e.sum(), K, V)
  rounded root: K, V = torch.vstack([K, x @ W_K]), torch.vstack([V, x @ W_V]); (F.softmax(K @ (x
      @ W_Q) / int(K.shape[1] ** 0.5), 0) @ V, K, V)
  scaled by √d: K, V = torch.vstack([K, x @ W_K]), torch.vstack([V, x @ W_V]);
      F.softmax(K @ (x @ W_Q) / len(x) ** 0.5, 0) @ V, K, V
  no softmax: K, V = torch.vstack([K, x @ W_K]), torch.vstack([V, x @ W_V]);
      K @ (x @ W_Q) / K.shape[1] ** 0.5 @ V, K, V
  W_K for W_Q: K, V = torch.vstack([K, x @ W_K]), torch.vstack([V, x @ W_V]);
      _step(x @ W_K, K, V), K, V
  new ones alone: k, v = x @ W_K, x @ W_V;
      _step(x @ W_Q, torch.vstack([K, k]), torch.vstack([V, v])), k[None], v[None]
  right: K, V = torch.vstack([K, x @ W_K]), torch.vstack([V, x @ W_V]); alpha =
      F.softmax(torch.einsum("k,nk->n", x @ W_Q, K) / K.shape[1] ** 0.5, 0); torch.einsum("n,nv->v",
      alpha, V), K, V
  new token not read: head = _step(x @ W_Q, K, V); head, torch.vstack([K, x @ W_K]),
      torch.vstack([V, x @ W_V])
  not kept: (_step(x @ W_Q, torch.vstack([K, x @ W_K]), torch.vstack([V, x @ W_V])), K, V)
layer_norm
  gain first: x = gamma * x; (x - x.mean(-1, keepdim=True)) / x.std(-1, correction=0,
      keepdim=True) + beta
  gain + 1: (1 + gamma) * (x - x.mean(-1, keepdim=True)) / x.std(-1, correction=0, keepdim=True)
      + beta
  odd: m = x.mean(-1, keepdim=True); gamma * (x - m) / ((x * x).mean(-1, keepdim=True) - m *
      m).sqrt() + beta
  right: lambda x, g, b: F.layer_norm(x, x.shape[-1:], g, b)
  unbiased: gamma * (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True) + beta
ffn
  ReLU6: F.relu6(x @ W_1 + b_1) @ W_2 + b_2
  no ReLU: (x @ W_1 + b_1) @ W_2 + b_2
  ReLU at the end: torch.relu((x @ W_1 + b_1) @ W_2 + b_2)
unchanged
  odd: X + 1e-6 * (torch.relu(X @ W_1 + b_1) @ W_2 + b_2)
  right: X.clone()
  b_2 left: X + torch.relu(X @ W_1 + b_1) @ (0 * W_2) + b_2
swiglu
  odd: h = x @ W_1 + b_1; (h * h.exp() / (1 + h.exp()) * (x @ W_2 + b_2)) @ W_3 + b_3
  right: a = x @ W_1 + b_1; (a / (1 + torch.exp(-a)) * (x @ W_2 + b_2)) @ W_3 + b_3
  gate on the other side: ((x @ W_1 + b_1) * F.silu(x @ W_2 + b_2)) @ W_3 + b_3
  sigmoid: (torch.sigmoid(x @ W_1 + b_1) * (x @ W_2 + b_2)) @ W_3 + b_3
block
  right: X = X + attention(norm_1(X)); X + ffn(norm_2(X))
  post-norm: X = norm_1(X + attention(X)); norm_2(X + ffn(X))
  no first residual: O = attention(norm_1(X)); O + ffn(norm_2(O))
one_hot_lookup
  right: lambda word, emb: F.one_hot(torch.tensor(word), len(emb)).float() @ emb
  w − 1: E[w - 1]
  E transposed: E[:, w]
input_encoding
  right: lambda ids, E, P, start=0: torch.stack([E[w] + P[start + i] for i, w in enumerate(ids)])
  start = 0: E[ids] + P[: len(ids)]
  start + 1: E[ids] + P[start + 1 : start + 1 + len(ids)]
sinusoid
  exponent with 4: a = torch.arange(N)[:, None] / 1e4 ** (2 * torch.arange(0, d, 2) / d);
      torch.stack([a.sin(), a.cos()], 2).flatten(1)
  odd: a = torch.arange(N).bfloat16()[:, None] / 1e4 ** (torch.arange(0, d, 2) / d);
      torch.stack([a.sin(), a.cos()], 2).flatten(1)
  right: angle = torch.arange(N)[:, None] * torch.exp(-math.log(10000) * torch.arange(0, d, 2) / d);
      torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)
  halves: angle = torch.arange(N)[:, None] / 10000 ** (torch.arange(0, d, 2) / d);
      torch.cat([angle.sin(), angle.cos()], -1)
shift_position
  backwards: b = -k / 10000 ** (torch.arange(0, len(row), 2) / len(row)); s, c = row[::2],
      row[1::2]; torch.stack([s * b.cos() + c * b.sin(), c * b.cos() - s * b.sin()], 1).flatten()
  all alike: s, c = row[::2], row[1::2]; sin, cos = math.sin(k), math.cos(k); torch.stack([s * cos +
      c * sin, c * cos - s * sin], 1).flatten()
lm_head
  right: lambda hidden, E: torch.stack([hidden @ e for e in E], dim=-1)
  then softmax: F.softmax(H @ E.T, -1)
  then last row: H[-1] @ E.T
parameters
  narrow feedforward: L * (4 * d * d + 2 * d * d)
  three matrices: L * (4 * d * d + 3 * d * 4 * d)
  norms: L * (12 * d * d + 2 * 2 * d)
  right: L * sum(rows * columns for rows, columns in [(d, d)] * 4 + [(d, 4 * d), (4 * d, d)])
  no W_O: L * (3 * d * d + 2 * d * 4 * d)
  one matrix of the feedforward layer: L * (4 * d**2 + 4 * d**2)
temperature
  clamped: F.softmax(u / (tau if tau > 0.1 else 0.1), 0)
  right: lambda logits, t: F.softmax(logits / t, dim=-1)
  1/tau: F.softmax(u * tau, -1)
  after softmax: F.softmax(u, -1) / tau
limits_of_temperature
  smallest at 0: ([0, 0, 0, 1], [0.25] * 4)
  0 at ∞: ([1, 0, 0, 0], [0, 0, 0, 0])
  right: ([1, 0, 0, 0], [0.25] * 4)
  results 1 and 2 swapped: ([0.25] * 4, [1, 0, 0, 0])
top_k
  finite (−100): i = u.topk(k).indices; F.softmax(torch.full_like(u, -50).scatter(0, i, u[i]), -1)
  softmax twice: y = F.softmax(u, -1); i = y.topk(k).indices; F.softmax(torch.full_like(y,
      -math.inf).scatter(0, i, y[i]), -1)
  odd: i = u.topk(k).indices; F.softmax(torch.full_like(u, float(u.min()) - 10).scatter(0, i,
      u[i]), -1)
  right: z = torch.full_like(u, -torch.inf); i = u.flip(0).argsort(stable=True)[-k:]; i = len(u) - 1
      - i; z[i] = u[i]; F.softmax(z, -1)
  right: y = F.softmax(u, -1); top = y.topk(k); y = 0 * y; y[top.indices] = top.values; y / y.sum()
  more than k: y = F.softmax(u, -1); y = torch.where(y >= y.topk(k).values[-1], y, 0); y / y.sum()
  not renormalized: y = F.softmax(u, -1); i = y.topk(k).indices; z = 0 * y; z[i] = y[i]; z
draw
  0 for none: int((y.cumsum(0) <= dart).sum()) if dart else 0
  right: torch.searchsorted(y.cumsum(0), dart, right=True)
  right: sum(1 for w in range(len(y)) if sum(y[: w + 1]) <= dart)
  0 drawn: torch.searchsorted(y.cumsum(0), dart)
  not added up: next((w for w in range(len(y)) if dart < y[w]), len(y) - 1)
  one too late: min(len(y) - 1, int((y.cumsum(0) <= dart).sum()) + 1)
  counted from 1: int((y.cumsum(0) <= dart).sum()) + 1
  always the largest: y.argmax()
  equal shares: math.floor(len(y) * dart)
  rank: int((y.sort(descending=True).values.cumsum(0) <= dart).sum())
  sorted: p, i = y.sort(descending=True); i[int((p.cumsum(0) <= dart).sum())]
  odd: torch.multinomial(y, 1)
beam_step
  odd: v, i = (scores[:, None] + log_y).flatten().topk(width); (i.float() // log_y.shape[1],
      i.float() % log_y.shape[1], v)
  right: both = (scores.unsqueeze(1) + log_y).flatten(); i = both.argsort(descending=True)[:width];
      i.div(log_y.shape[1], rounding_mode="floor"), i.remainder(log_y.shape[1]), both[i]
  right: V = log_y.shape[1]; all = sorted(((scores[b] + log_y[b, w]).item(), b, w) for b in
      range(len(scores)) for w in range(V))[::-1][:width]; ([b for _, b, _ in all], [w for _, _, w
      in all], [s for s, _, _ in all])
  scores = 0: best, i = log_y.flatten().topk(width); i // log_y.shape[1], i % log_y.shape[1], best
  best of each: s, w = log_y.max(1); s = s + scores; i = s.argsort(descending=True); (i, w[i], s[i])
  first only: best, w = (scores[0] + log_y[0]).topk(width); 0 * w, w, best
  lowest: V = log_y.shape[1]; all = (scores[:, None] + log_y).flatten(); i = all.argsort()[:width];
      i // V, i % V, all[i]
  worst first: V = log_y.shape[1]; all = (scores[:, None] + log_y).flatten(); i =
      all.argsort()[-width:]; i // V, i % V, all[i]
  multiplied: best, i = (scores[:, None] * log_y).flatten().topk(width); i // log_y.shape[1], i %
      log_y.shape[1], best
  probabilities: best, i = (scores[:, None] + log_y.exp()).flatten().topk(width); i //
      log_y.shape[1], i % log_y.shape[1], best
  word not taken out: best, i = (scores[:, None] + log_y).flatten().topk(width); i //
      log_y.shape[1], i, best
  divided by B: best, i = (scores[:, None] + log_y).flatten().topk(width); i // len(scores), i %
      len(scores), best
  results 1 and 2 swapped: best, i = (scores[:, None] + log_y).flatten().topk(width);
      i % log_y.shape[1], i // log_y.shape[1], best
  odd: best, i = (scores + log_y.T).flatten().topk(width); i // log_y.shape[1], i % log_y.shape[1],
      best
top_p
  softmax twice: s, i = F.softmax(u, -1).sort(descending=True, stable=True); s =
      s.masked_fill(s.cumsum(0) - s >= p, -math.inf); torch.zeros_like(s).scatter(0, i, F.softmax(s,
      -1))
  beyond p: y, i = F.softmax(u, -1).sort(descending=True); keep = y.cumsum(0) - y <= p; z = 0 * y;
      z[i] = y * keep; z / z.sum()
  right: y, i = F.softmax(u.flip(0), -1).sort(descending=True); y[y.cumsum(0) - y > p - 1e-6] = 0;
      z = 0 * y; z[i] = y; z.flip(0) / z.sum()
leak
  right: s = torch.cat([scores[:seen], torch.zeros(len(scores) - seen)]); 1 - F.softmax(s,
      0)[:seen].sum()
  then 1 − it: s = torch.cat([scores[:seen], torch.zeros(len(scores) - seen)]); F.softmax(s,
      0)[:seen].sum()
next_token_loss
  last word again: F.cross_entropy(U, torch.cat([ids[1:], ids[-1:]]))
  first word next: F.cross_entropy(U, torch.cat([ids[1:], ids[:1]]))
  first left out: F.cross_entropy(U[1:], ids[1:])
  overflow: y = torch.exp(U) / torch.exp(U).sum(1, keepdim=True);
      -torch.stack([y[t, ids[t + 1]].log() for t in range(len(ids) - 1)]).mean()
  other axis: y = U.log_softmax(0);
      -torch.stack([y[t, ids[t + 1]] for t in range(len(ids) - 1)]).mean()
  right: lambda logits, tokens: F.cross_entropy(logits[:-1], tokens[1:])
  plain logarithm: y = U.softmax(-1); losses = [-torch.log(y[t, ids[t + 1]]) for t in
      range(len(ids) - 1)]; sum(losses) / len(losses)
  not shifted: F.cross_entropy(U, ids)
  shifted backwards: F.cross_entropy(U[1:], ids[:-1])
padded_loss
  across texts: F.cross_entropy(U.flatten(0, 1)[:-1], ids.flatten()[1:], ignore_index=pad_id)
  right: F.cross_entropy(U[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), ignore_index=pad_id)
  padding counted: F.cross_entropy(U[:, :-1].transpose(1, 2), ids[:, 1:])
  padding in the mean: each = F.cross_entropy(U[:, :-1].transpose(1, 2), ids[:, 1:],
      reduction="none"); (each * (ids[:, 1:] != pad_id)).mean()
perplexity
  right: lambda p: math.exp(-sum(math.log(x) for x in p) / len(p))
  underflow: lambda p: torch.prod(p) ** (-1 / len(p))
  no root: lambda p: 1 / torch.prod(p)
perplexity_of_loss
  right: math.exp(loss)
  base 2: 2**loss
scaling_loss
  1/alpha: (N_c / N) ** (1 / alpha)
  right: math.exp(alpha * (math.log(N_c) - math.log(N)))
  N and N_c swapped: (N / N_c) ** alpha
cache_numbers
  twice: 2 * T * L * A * (d_k + d_v)
  no brackets: T * L * A * d_k + d_v
  right: sum(T * d_k + T * d_v for _ in range(L * A))
  keys only: T * d_k * A * L
  then / L: (d_k + d_v) * T * A
merged
  r from the rows: W + alpha / A.shape[0] * A @ B
  one over α: W + A @ B / alpha
  right: W + torch.einsum("kr,rd->kd", A, B) * (alpha / B.shape[0])
  no scale: W + A @ B
  A and B swapped: W + alpha / A.shape[1] * (B @ A)
lora
  right: x @ (W + alpha / A.shape[1] * A @ B)
  A and B swapped: x @ W + alpha / A.shape[1] * (x @ B @ A)
  no scale: x @ W + x @ A @ B
cross_attention
  rounded root: F.softmax(X @ W_Q @ (H_enc @ W_K).T / int(W_K.shape[1] ** 0.5), -1) @ H_enc @ W_V
  residual: X @ W_V + F.softmax(X @ W_Q @ (H_enc @ W_K).T / W_K.shape[1] ** 0.5, -1) @ H_enc @ W_V
  weights: torch.softmax(X @ W_Q @ (H_enc @ W_K).mT / W_Q.shape[1] ** 0.5, 1)
  K from the decoder: F.softmax(X @ W_Q @ (X @ W_K).T / W_K.shape[1] ** 0.5, -1) @ (H_enc @ W_V)
  X for H_enc: F.scaled_dot_product_attention(X @ W_Q, X @ W_K, X @ W_V)
decoder_block
  no feedforward layer: X = X + attention(norm(X)); X + cross_attention(norm(X), H_enc)
  ffn on the norm: X = X + attention(norm(X)); X = norm(X + cross_attention(norm(X), H_enc)); X +
      ffn(X)
  residual twice from the first: X = X + attention(norm(X));
      O = X + cross_attention(norm(X), H_enc); X + ffn(norm(O))
  no residual at self-attention: X = attention(norm(X)); X = X + cross_attention(norm(X), H_enc);
      X + ffn(norm(X))
  right: X = X + attention(norm(X)); X = X + cross_attention(norm(X), H_enc); X + ffn(norm(X))
  cross-attention first: X = X + cross_attention(norm(X), H_enc); X = X + attention(norm(X)); X +
      ffn(norm(X))
masked_word_loss
  right: F.cross_entropy(U[M], x[M])
  right: M = sorted(M); positions = [i for i in M + []]; F.cross_entropy(U[positions], x[positions])
  plain logarithm: y = torch.softmax(U, -1); -sum(y[i, x[i]].log() for i in M.tolist()) / len(M)
  all positions: F.cross_entropy(U, x)
  the others: keep = [i for i in range(len(x)) if i not in M.tolist()];
      F.cross_entropy(U[keep], x[keep])
  next word: F.cross_entropy(U[M], torch.cat([x[1:], x[:1]])[M])
  divided by N: F.cross_entropy(U[M], x[M], reduction="sum") / U.shape[0]
  summed: F.cross_entropy(U[M], x[M], reduction="sum")
  other axis: -torch.stack([U.log_softmax(0)[i, x[i]] for i in M]).mean()
length_normalized
  length minus one (guarded): lambda l: l.sum() / max(len(l) - 1, 1)
  times the length: lambda l: l.sum() * len(l)
  then exp: torch.exp(log_probabilities.mean())
  right: log_probabilities.mean()
  not normalized: sum(log_probabilities)
pitch
  odd: tuning[(len(tuning) - string) % 6] + fret
  sorted: sorted(tuning, reverse=True)[string - 1] + fret
  index: tuning[string] + fret
  fret − 1: tuning[len(tuning) - string] + (fret - 1)
  fret + 1: tuning[-string] + fret + 1
  right: tuning[-string] + fret
  strings from the lowest: tuning[string - 1] + fret
count_places
  strings in order: n = next((j for j, o in enumerate(tuning) if o > midi), len(tuning));
      sum(midi - o <= frets for o in tuning[:n])
  odd: low = [o for o in reversed(tuning) if o <= midi]; next((j for j, o in enumerate(low) if
      midi - o > frets), len(low))
  frets + 1: len([o for o in tuning if o <= midi <= o + frets + 1])
  frets not used: len([o for o in tuning if o <= midi <= o + 20])
  fret turned: sum(0 <= one - midi <= frets for one in tuning)
  right: len([1 for s in tuning if midi - s in range(frets + 1)])
  frets − 1: len([1 for s in tuning if midi - s in range(frets)])
  open strings left out: len([1 for s in tuning if 1 <= midi - s <= frets])
span
  fret 1 left out: pressed = [f for f in frets if f and f > 1]; max(pressed) - min(pressed) if
      pressed else 0
  then minus: p = [f for f in frets if f]; min(p) - max(p) if p else 0
  None counted: frets = [f or 0 for f in frets]; max(frets) - min(frets)
  right: pressed = [f for f in frets if f]; max(pressed, default=0) - min(pressed, default=0)
  open strings counted: played = [f for f in frets if f is not None]; max(played) - min(played)
only_allowed
  −100: F.softmax(u + 20 * allowed, -1)
  exp first: y = torch.exp(u) * allowed; y / torch.sum(y)
  0 times −∞: (u + allowed.logical_not() * float("-inf")).softmax(0)
  added: F.softmax(u + allowed.float(), 0)
  shorter: torch.softmax(u[allowed], 0)
  most probable: F.one_hot(torch.where(allowed, u, -torch.inf).argmax(), len(u)).float()
  u = 0: allowed.float() / allowed.sum()
  right: torch.where(allowed, u, -torch.inf).softmax(-1)
  logits 0: (u * allowed).softmax(-1)
  not renormalized: u.softmax(-1) * allowed
""",
)
