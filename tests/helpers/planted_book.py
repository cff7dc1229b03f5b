"""Attempts at the exercises on the book's equations, as readers write them."""

import math

import torch
import torch.nn.functional as F
from planted import add_table, right
from torch import nn


def tril(N, M=None):
    return torch.tril(torch.ones(N, M or N))


class _Softmax(nn.Module):
    def forward(self, logits, eps=0.0):
        return torch.softmax(logits, dim=-1)


right("softmax", "a module")(_Softmax())


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


right("attention", "a module, masked_fill")(_Attention())


@right("head", "one token after the other")
def _(X, W_Q, W_K, W_V, W_O):
    out = []
    for i, x in enumerate(X):
        q, past = x @ W_Q, X[: i + 1]
        a = F.softmax((past @ W_K) @ q / math.sqrt(len(q)), dim=0)
        out.append(a @ (past @ W_V) @ W_O)
    return torch.stack(out)


@right("multi_head_attention", "a loop over heads")
def _(X, W_Q, W_K, W_V, W_O, A):
    heads = []
    for q, k, v in zip(W_Q.chunk(A, 1), W_K.chunk(A, 1), W_V.chunk(A, 1), strict=True):
        s = X @ q @ (X @ k).T / math.sqrt(k.shape[-1])
        heads.append(s.masked_fill(tril(len(X)) == 0, -torch.inf).softmax(-1) @ X @ v)
    return torch.cat(heads, -1) @ W_O


class _Mha(nn.Module):
    """A module with linear layers and sizes of its own."""

    def __init__(self, d, num_heads):
        super().__init__()
        self.num_heads = num_heads
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            setattr(self, name, nn.Linear(d, d, bias=False))

    def forward(self, X):
        layers = self.W_Q, self.W_K, self.W_V
        Q, K, V = (W(X).unflatten(-1, (self.num_heads, -1)).transpose(0, 1) for W in layers)
        heads = F.scaled_dot_product_attention(Q, K, V, is_causal=True)
        return self.W_O(heads.transpose(0, 1).flatten(1))


right("multi_head_attention", "a module with linear layers")(_Mha(6, 2))
right("layer_norm", "PyTorch's module")(nn.LayerNorm(7))


class _FFN(nn.Module):
    def __init__(self):
        super().__init__()
        self.W_1, self.b_1 = nn.Parameter(torch.zeros(5, 11)), nn.Parameter(torch.zeros(11))
        self.W_2, self.b_2 = nn.Parameter(torch.zeros(11, 5)), nn.Parameter(torch.zeros(5))

    def forward(self, x):
        return (x @ self.W_1 + self.b_1).clamp(min=0) @ self.W_2 + self.b_2


right("ffn", "a module")(_FFN())


@right("shift_position", "a rotation of pairs")
def _(row, k):
    d = len(row)
    out = []
    for i in range(d // 2):
        b = torch.tensor(k / 10000 ** (2 * i / d))
        turn = torch.stack([torch.stack([b.cos(), b.sin()]), torch.stack([-b.sin(), b.cos()])])
        out.append(turn @ row[2 * i : 2 * i + 2])
    return torch.cat(out)


@right("top_p", "a loop")
def _(u, p):
    y = F.softmax(u, -1)
    kept, total = torch.zeros_like(y), 0.0
    for w in y.argsort(descending=True):
        if total < p - 1e-6:
            kept[w] = y[w]
        total += y[w].item()
    return kept / kept.sum()


add_table(
    globals(),
    r"""
softmax
  right: lambda z: F.softmax(z, dim=-1)
  overflow: torch.exp(scores) / torch.exp(scores).sum(-1, keepdim=True)
  right, one row: powers = torch.exp(scores - max(scores)); powers / sum(powers)
  right: lambda s: (s.double() - torch.logsumexp(s.double(), -1, keepdim=True)).exp()
  overflow, one row: e = [math.e**s for s in scores]; torch.stack(e) / sum(e)
  odd: e = torch.exp(scores - scores.max(-1, keepdim=True).values); e / e.sum(-1)
  odd, one row: e = torch.exp(scores.clamp(max=50)); e / e.sum()
  sigmoid for exp: torch.sigmoid(scores) / torch.sigmoid(scores).sum(-1, keepdim=True)
weighted_sum
  row i alone: i = len(alpha_i) - 1; rows[:len(alpha_i)][i]
  all rows: torch.einsum("n,nd->d", alpha_i, rows)
  right: alpha_i @ rows[: len(alpha_i)]
  alpha_i = 1: rows[: len(alpha_i)].sum(0)
  mean: n = len(alpha_i); (alpha_i.unsqueeze(1) * rows[:n]).mean(0)
  odd: lambda a, r: sum(a[j] * r[j] for j in range(1, len(a)))
  odd: lambda a, r: a @ r
scaled_score
  root of all: torch.sqrt(torch.dot(q_i, k_j) / q_i.numel())
  rounded root: q_i @ k_j / int(len(q_i) ** 0.5)
  right: torch.einsum("d,d->", q_i, k_j) * q_i.numel() ** -0.5
  no scaling: torch.dot(q_i, k_j)
  scaled by d_k: q_i.dot(k_j) / len(q_i)
  odd: lambda q, k: (q * k).sum() / len(q) ** 2
  odd: lambda q, k: torch.sqrt((q * k).sum())
simple_attention
  last output: S = (X @ X.T).masked_fill(torch.ones(len(X), len(X)).triu(1) > 0, -torch.inf);
      (S.softmax(-1) @ X)[len(X) - 1]
  odd: e = torch.exp(X[: i + 1] @ X[i]); e @ X[: i + 1] / e.sum()
  itself left out: X[0] if i == 0 else F.softmax(X[i] @ X[:i].T, 0) @ X[:i]
  right: S = (X @ X.T).masked_fill(torch.triu(torch.ones(len(X), len(X)), 1) > 0, -torch.inf);
      (S.softmax(-1) @ X)[i]
  the future: F.softmax(X @ X[i], 0) @ X
  odd: S = X[: i + 1] * X[i]; (F.softmax(S, dim=-1) * X[: i + 1]).sum(0)
  odd: F.softmax(X[: i + 1] @ X[-1], 0) @ X[: i + 1]
  itself left out: torch.zeros(X.shape[1]) if i == 0 else F.softmax(X[:i] @ X[i], 0) @ X[:i]
  weights for features: w = F.softmax(X[: i + 1] * X[i], 0); (w * X[: i + 1]).sum(0)
causal_mask
  next token alone: torch.diag(torch.full((N - 1,), -math.inf), 1)
  right: [[0.0 if j <= i else -math.inf for j in range(N)] for i in range(N)]
  right: lambda n: torch.zeros(n, n, dtype=torch.float64).masked_fill(tril(n) == 0, float("-inf"))
  then transposed: torch.full((N, N), -math.inf).tril(-1)
  diagonal: torch.full((N, N), -math.inf).triu()
  odd: torch.tril(torch.full((N, N), -math.inf)) * 0
  odd: torch.zeros(N)
  right: torch.tril(torch.ones(N, N)).log()
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
  odd: F.softmax(Q @ K.T / math.sqrt(K.shape[0]) + mask, -1) @ V
  odd: s = torch.einsum("nd,nd->n", Q, K) / Q.shape[1] ** 0.5; F.softmax(s[:, None] + mask, -1) @ V
  right: F.softmax((Q @ K.T + mask) / math.sqrt(Q.shape[1]), -1) @ V
  right: torch.nan_to_num(F.softmax(Q @ K.T / math.sqrt(Q.shape[1]) + mask, -1)) @ V
head
  right: s = X @ W_Q @ (X @ W_K).T / math.sqrt(W_K.shape[1]) + torch.full((len(X), len(X)),
      -math.inf).triu(1); F.softmax(s, -1) @ X @ W_V @ W_O
  rounded root: math.sqrt(W_K.shape[1]) => int(W_K.shape[1] ** 0.5)
  finite mask: + torch.full((len(X), len(X)), -math.inf).triu(1); => ; s =
      s.masked_fill(torch.ones(s.shape).triu(1) > 0, -50);
  finite mask (added): -math.inf => -99.0
  odd: e = (X @ W_Q @ (X @ W_K).T / W_K.shape[1] ** 0.5).exp().tril(); e / e.sum(1, keepdim=True) @
      X @ W_V @ W_O
  no mask: + torch.full((len(X), len(X)), -math.inf).triu(1) =>
  scaled by √d: W_K.shape[1]) => X.shape[1])
  scaled by √(d_k·d_v): W_K.shape[1]) => W_K.shape[1] * W_V.shape[1])
  odd: triu(1) => tril(-1)
  odd: / math.sqrt(W_K.shape[1]) + torch.full((len(X), len(X)), -math.inf).triu(1) =>
  itself hidden: s = X @ W_Q @ (X @ W_K).T / math.sqrt(W_K.shape[1]); hide =
      torch.ones_like(s).triu(); hide[0, 0] = 0; s[hide.bool()] = -math.inf; F.softmax(s, -1) @ X
      @ W_V @ W_O
  itself hidden: s = X @ W_Q @ (X @ W_K).T / math.sqrt(W_K.shape[1]); ok =
      torch.tril(torch.ones_like(s), -1); F.softmax(s.masked_fill(ok == 0, -1e30), -1) @ X @ W_V @
      W_O
split_heads
  right: list(X.chunk(A, dim=-1))
  view without transpose: X.view(A, X.shape[0], -1)
  not transposed: X.reshape(X.shape[0], A, -1)
  odd: X.T.reshape(A, -1, X.shape[0])
  right: d = X.shape[1] // A; torch.stack([X[:, c * d : (c + 1) * d] for c in range(A)])
  first columns: torch.stack([X[:, : X.shape[1] // A]] * A)
join_heads
  right: torch.cat(list(heads), dim=-1)
  view without transpose: heads.reshape(heads.shape[1], -1)
  interleaved: torch.stack(list(heads), dim=-1).flatten(-2)
  odd: lambda h: h.transpose(0, 2).reshape(h.shape[1], -1)
multi_head_attention
  right: q, k, v = ((X @ W).unflatten(1, (A, -1)).transpose(0, 1) for W in (W_Q, W_K, W_V)); s = q @
      k.mT / k.shape[-1] ** 0.5 + torch.full((len(X), len(X)), -math.inf).triu(1); (s.softmax(-1) @
      v).transpose(0, 1).flatten(1) @ W_O
  scaled by √(d/A) (not rounded): k.shape[-1] ** 0.5 => math.sqrt(X.shape[1] / A)
  softmax over heads (zeros): s.softmax(-1) => s.softmax(0).nan_to_num()
  finite mask: + torch.full((len(X), len(X)), -math.inf).triu(1); => ; s =
      s.masked_fill(torch.ones(s.shape[1:]).triu(1) > 0, -50);
  finite mask (added): -math.inf => -99.0
  view without transpose: .unflatten(1, (A, -1)).transpose(0, 1) for => .view(A, len(X), -1) for
  joined without transpose: .transpose(0, 1).flatten(1) => .reshape(len(X), -1)
  odd: @ W_O => @ W_O / A
  itself hidden: q, k, v = ((X @ W).unflatten(1, (A, -1)).transpose(0, 1) for W in (W_Q, W_K,
      W_V)); s = q @ k.mT / k.shape[-1] ** 0.5; hide = torch.ones(len(X), len(X)).triu() > 0;
      hide[0, 0] = False; s = s.masked_fill(hide, -math.inf); (s.softmax(-1) @ v).transpose(0,
      1).flatten(1) @ W_O
  one head: s = X @ W_Q @ (X @ W_K).T / (W_K.shape[1] // A) ** 0.5; s =
      s.masked_fill(torch.ones_like(s).triu(1) > 0, -math.inf); s.softmax(1) @ (X @ W_V) @ W_O
  softmax over heads: q, k, v = ((X @ W).unflatten(1, (A, -1)).transpose(0, 1) for W in (W_Q, W_K,
      W_V)); s = q @ k.mT / k.shape[-1] ** 0.5; s = s.masked_fill(torch.ones(len(X),
      len(X)).triu(1) > 0, -1e9); (s.softmax(0) @ v).transpose(0, 1).flatten(1) @ W_O
  softmax over heads: q, k, v = ((X @ W).unflatten(1, (A, -1)).transpose(0, 1) for W in (W_Q, W_K,
      W_V)); s = q @ k.mT / k.shape[-1] ** 0.5 - 100 * torch.ones(len(X), len(X)).triu(1);
      (s.softmax(0) @ v).transpose(0, 1).flatten(1) @ W_O
  heads for tokens: q, k, v = ((X @ W).view(len(X), A, -1) for W in (W_Q, W_K, W_V)); s = q @
      k.transpose(1, 2) / math.sqrt(q.shape[2]); (F.softmax(s, -1) @ v).reshape(len(X), -1) @ W_O
cached_step
  right: K, V = torch.vstack([K, x @ W_K]), torch.vstack([V, x @ W_V]); F.softmax(K @ (x @ W_Q) /
      K.shape[1] ** 0.5, 0) @ V, K, V
  odd: K, V = torch.vstack([K, x @ W_K]), torch.vstack([V, x @ W_V]); e = (K @ (x @ W_Q) /
      K.shape[1] ** 0.5).exp(); (e @ V / e.sum(), K, V)
  rounded root: K.shape[1] ** 0.5 => int(K.shape[1] ** 0.5)
  scaled by √d: K.shape[1] => len(x)
  no softmax: F.softmax(K @ (x @ W_Q) / K.shape[1] ** 0.5, 0) => K @ (x @ W_Q) / K.shape[1] ** 0.5
  W_K for W_Q: W_Q => W_K
  new ones alone: V, K, V => V, K[-1:], V[-1:]
  right: K, V = torch.vstack([K, x @ W_K]), torch.vstack([V, x @ W_V]); alpha =
      F.softmax(torch.einsum("k,nk->n", x @ W_Q, K) / K.shape[1] ** 0.5, 0); torch.einsum("n,nv->v",
      alpha, V), K, V
  new token not read: F.softmax(K @ (x @ W_Q) / K.shape[1] ** 0.5, 0) @ V, => F.softmax(K[:-1] @ (x
      @ W_Q) / K.shape[1] ** 0.5, 0) @ V[:-1],
  not kept: V, K, V => V, K[:-1], V[:-1]
  odd: K.shape[1] => len(K)
  odd: 0) @ V => 0)[:-1] @ V[1:]
layer_norm
  gain before the mean: mu = x.mean(-1, keepdim=True); sigma = ((x - mu) ** 2).mean(-1,
      keepdim=True).sqrt(); (gamma * x - mu) / sigma + beta
  gain first: x = gamma * x; (x - x.mean(-1, keepdim=True)) / x.std(-1, correction=0, keepdim=True)
      + beta
  gain + 1: (1 + gamma) * (x - x.mean(-1, keepdim=True)) / x.std(-1, correction=0, keepdim=True) +
      beta
  odd: m = x.mean(-1, keepdim=True); gamma * (x - m) / ((x * x).mean(-1, keepdim=True) - m *
      m).sqrt() + beta
  right: lambda x, g, b: F.layer_norm(x, x.shape[-1:], g, b)
  unbiased: gamma * (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True) + beta
  right, one row: mu = sum(x) / len(x); sigma = (sum((x_i - mu) ** 2 for x_i in x) / len(x)) ** 0.5;
      gamma * (x - mu) / sigma + beta
  over tokens: gamma * (x - x.mean(0)) / x.std(0, correction=0) + beta
  odd: mu = x.mean(-1, keepdim=True); v = ((x - mu) ** 2).sum(-1, keepdim=True) / (x.shape[-1] - 1);
      gamma * (x - mu) / torch.sqrt(v + 1e-06) + beta
  odd: mu = x.mean(-1, keepdim=True); gamma * (x - mu) / (x - mu).abs().mean(-1, keepdim=True) +
      beta
  as in the Annotated Transformer: mean = x.mean(-1, keepdim=True); std = x.std(-1, keepdim=True);
      gamma * (x - mean) / (std + 1e-6) + beta
  as in the Annotated Transformer: c = x - x.mean(-1)[..., None]; gamma * c / ((c**2).sum(-1,
      keepdim=True).div(x.shape[-1] - 1) ** 0.5 + 1e-5) + beta
ffn
  ReLU6: F.relu6(x @ W_1 + b_1) @ W_2 + b_2
  no ReLU: (x @ W_1 + b_1) @ W_2 + b_2
  ReLU at the end: torch.relu((x @ W_1 + b_1) @ W_2 + b_2)
  odd: torch.relu(x @ W_1 + b_2) @ W_2 + b_1
  odd: F.leaky_relu(x @ W_1 + b_1) @ W_2 + b_2
  right: b_2 + sum(torch.relu(x @ W_1[:, u] + b_1[u])[..., None] * W_2[u] for u in range(len(b_1)))
unchanged
  odd: X + 1e-6 * (torch.relu(X @ W_1 + b_1) @ W_2 + b_2)
  right: X.clone()
  b_2 left: X + torch.relu(X @ W_1 + b_1) @ (0 * W_2) + b_2
swiglu
  right: a = x @ W_1 + b_1; (a / (1 + torch.exp(-a)) * (x @ W_2 + b_2)) @ W_3 + b_3
  odd: a / (1 + torch.exp(-a)) => a * a.exp() / (1 + a.exp())
  gate on the other side: ((x @ W_1 + b_1) * F.silu(x @ W_2 + b_2)) @ W_3 + b_3
  sigmoid: (torch.sigmoid(x @ W_1 + b_1) * (x @ W_2 + b_2)) @ W_3 + b_3
block
  right: X = X + attention(norm_1(X)); X + ffn(norm_2(X))
  post-norm: X = norm_1(X + attention(X)); norm_2(X + ffn(X))
  no first residual: O = attention(norm_1(X)); O + ffn(norm_2(O))
  odd: X + ffn(norm_2(attention(norm_1(X))))
  odd: O = norm_1(X) + attention(norm_1(X)); norm_2(O) + ffn(norm_2(O))
one_hot_lookup
  right: lambda word, emb: F.one_hot(torch.tensor(word), len(emb)).float() @ emb
  w − 1: E[w - 1]
  E transposed: E[:, w]
input_encoding
  right: lambda ids, E, P, start=0: torch.stack([E[w] + P[start + i] for i, w in enumerate(ids)])
  start = 0: E[ids] + P[: len(ids)]
  start + 1: E[ids] + P[start + 1 : start + 1 + len(ids)]
  odd: E[ids] + P[start]
  odd: E[ids] + P[start : len(ids)]
  start added: E[ids] + P[torch.arange(len(ids))] + start
sinusoid
  right: angle = torch.arange(N)[:, None] * torch.exp(-math.log(10000) * torch.arange(0, d, 2) / d);
      torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)
  exponent with 4: -math.log(10000) => -2 * math.log(10000)
  odd: torch.arange(N) => torch.arange(N).bfloat16()
  halves: .stack([angle.sin(), angle.cos()], -1).flatten(-2) => .cat([angle.sin(), angle.cos()], -1)
  column as i: c = torch.arange(d); angle = torch.arange(N)[:, None] / 10000 ** (c / d);
      torch.where(c % 2 == 0, angle.sin(), angle.cos())
shift_position
  backwards: b = -k / 10000 ** (torch.arange(0, len(row), 2) / len(row)); s, c = row[::2],
      row[1::2]; torch.stack([s * b.cos() + c * b.sin(), c * b.cos() - s * b.sin()], 1).flatten()
  all alike: s, c = row[::2], row[1::2]; sin, cos = math.sin(k), math.cos(k); torch.stack([s * cos +
      c * sin, c * cos - s * sin], 1).flatten()
lm_head
  right: lambda hidden, E: torch.stack([hidden @ e for e in E], dim=-1)
  then softmax: F.softmax(H @ E.T, -1)
  then last row: H[-1] @ E.T
  odd: U = H @ E.T; U - U.max(-1, keepdim=True).values
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
  odd: F.softmax(F.softmax(u, -1) / tau, -1)
  odd: F.softmax(u, -1) ** (1 / tau)
  right: y = F.softmax(u.double(), -1) ** (1 / tau); y / y.sum()
limits_of_temperature
  smallest at 0: ([0, 0, 0, 1], [0.25] * 4)
  0 at ∞: ([1, 0, 0, 0], [0, 0, 0, 0])
  right: ([1, 0, 0, 0], [0.25] * 4)
  results 1 and 2 swapped: ([0.25] * 4, [1, 0, 0, 0])
top_k
  right: z = torch.full_like(u, -torch.inf); i = u.flip(0).argsort(stable=True)[-k:]; i = len(u) - 1
      - i; z[i] = u[i]; F.softmax(z, -1)
  finite (−100): -torch.inf => -50.0
  softmax twice: y = F.softmax(u, -1); i = y.topk(k).indices; F.softmax(torch.full_like(y,
      -math.inf).scatter(0, i, y[i]), -1)
  odd: -torch.inf => float(u.min()) - 10
  right: y = F.softmax(u, -1); top = y.topk(k); y = 0 * y; y[top.indices] = top.values; y / y.sum()
  more than k: y = F.softmax(u, -1); y = torch.where(y >= y.topk(k).values[-1], y, 0); y / y.sum()
  not renormalized: y = F.softmax(u, -1); i = y.topk(k).indices; z = 0 * y; z[i] = y[i]; z
  odd: th = u.sort(descending=True).values[min(k, len(u) - 1)]; F.softmax(u.masked_fill(u < th,
      -math.inf), -1)
  odd: F.softmax(u.topk(k).values, -1)
  above the k-th: th = u.sort(descending=True).values[max(k - 2, 0)];
      F.softmax(u.masked_fill(u < th, -math.inf), -1)
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
  right: best, i = (scores[:, None] + log_y).flatten().topk(width); i // log_y.shape[1], i %
      log_y.shape[1], best
  odd: i // log_y.shape[1], i % => i.float() // log_y.shape[1], i.float() %
  right: both = (scores.unsqueeze(1) + log_y).flatten(); i = both.argsort(descending=True)[:width];
      i.div(log_y.shape[1], rounding_mode="floor"), i.remainder(log_y.shape[1]), both[i]
  right: V = log_y.shape[1]; all = sorted(((scores[b] + log_y[b, w]).item(), b, w) for b in
      range(len(scores)) for w in range(V))[::-1][:width]; ([b for _, b, _ in all], [w for _, _, w
      in all], [s for s, _, _ in all])
  scores = 0: (scores[:, None] + log_y) => log_y
  best of each: s, w = log_y.max(1); s = s + scores; i = s.argsort(descending=True); (i, w[i], s[i])
  first only: best, w = (scores[0] + log_y[0]).topk(width); 0 * w, w, best
  lowest: .topk(width) => .topk(width, largest=False)
  worst first: .topk(width); => .topk(width); best, i = best.flip(0), i.flip(0);
  multiplied: None] + => None] *
  probabilities: log_y) => log_y.exp())
  word not taken out: i % log_y.shape[1] => i
  divided by B: i // log_y.shape[1], i % log_y.shape[1] => i // len(scores), i % len(scores)
  results 1 and 2 swapped: i // log_y.shape[1], i % log_y.shape[1] => i % log_y.shape[1], i //
      log_y.shape[1]
  odd: scores[:, None] + log_y => scores + log_y.T
top_p
  right: y, i = F.softmax(u.flip(0), -1).sort(descending=True); y[y.cumsum(0) - y > p - 1e-6] = 0; z
      = 0 * y; z[i] = y; z.flip(0) / z.sum()
  softmax twice: s, i = F.softmax(u, -1).sort(descending=True, stable=True); s =
      s.masked_fill(s.cumsum(0) - s >= p, -math.inf); torch.zeros_like(s).scatter(0, i, F.softmax(s,
      -1))
  beyond p: y, i = F.softmax(u, -1).sort(descending=True); keep = y.cumsum(0) - y <= p; z = 0 * y;
      z[i] = y * keep; z / z.sum()
  odd: y = F.softmax(u, -1); y = y * (y >= p * y.max()); y / y.sum()
  crossing word dropped: y, i = F.softmax(u, -1).sort(descending=True); y[y.cumsum(-1) > p] = 0; z =
      torch.zeros_like(y).scatter(-1, i, y); z / z.sum()
  odd: y, i = F.softmax(u, -1).sort(descending=True); keep = y.cumsum(-1) < p; z =
      torch.zeros_like(u); z[i[keep]] = y[keep]; z / z.sum()
  each above p: y = F.softmax(u, -1); keep = y >= p; keep[y.argmax()] = True; y = y * keep; y /
      y.sum()
  each above p: y = F.softmax(u, -1); best = int(y.argmax()); y[[i for i in range(len(y)) if y[i]
      <= p and i != best]] = 0; y / y.sum()
  each above 1 − p: y = F.softmax(u, -1); keep = y >= 1 - p; keep[y.argmax()] = True; z =
      y.where(keep, 0); z / z.sum()
  1 − p: y = F.softmax(u, -1); s, i = y.sort(); keep = s.cumsum(0) > p; keep[-1] = True; z = 0 * y;
      z[i[keep]] = s[keep]; z / z.sum()
  least probable first: y = F.softmax(u, -1); s, i = y.sort(); drop = i[s.cumsum(0) > p]; y[drop]
      = 0; y / y.sum()
  1 − p: y = F.softmax(u, -1); s, i = y.sort(); keep = s.cumsum(0) >= p; z = 0 * y; z[i[keep]] =
      s[keep]; z / z.sum()
leak
  right: s = torch.cat([scores[:seen], torch.zeros(len(scores) - seen)]); 1 - F.softmax(s,
      0)[:seen].sum()
  then 1 − it: s = torch.cat([scores[:seen], torch.zeros(len(scores) - seen)]); F.softmax(s,
      0)[:seen].sum()
next_token_loss
  last word again: F.cross_entropy(U, torch.cat([ids[1:], ids[-1:]]))
  first word next: F.cross_entropy(U, torch.cat([ids[1:], ids[:1]]))
  first left out: F.cross_entropy(U[1:], ids[1:])
  overflow: y = torch.exp(U) / torch.exp(U).sum(1, keepdim=True); -torch.stack([y[t, ids[t +
      1]].log() for t in range(len(ids) - 1)]).mean()
  other axis: y = U.log_softmax(0); -torch.stack([y[t, ids[t + 1]] for t in range(len(ids) -
      1)]).mean()
  right: lambda logits, tokens: F.cross_entropy(logits[:-1], tokens[1:])
  plain logarithm: y = U.softmax(-1); losses = [-torch.log(y[t, ids[t + 1]]) for t in range(len(ids)
      - 1)]; sum(losses) / len(losses)
  not shifted: F.cross_entropy(U, ids)
  shifted backwards: F.cross_entropy(U[1:], ids[:-1])
  odd: (U[:-1].argmax(-1) == ids[1:]).float().mean()
  odd: F.cross_entropy(U, ids, reduction="sum")
  ε in the logarithm: y = F.softmax(U, 1)[:-1]; -torch.log(y[range(len(y)), ids[1:]] + 1e-8).mean()
  ε in the logarithm: y = F.softmax(U[:-1], -1) + 1e-9; F.nll_loss(y.log(), ids[1:])
  ε in the logarithm: p = F.softmax(U[:-1], -1).clamp(min=1e-12); -sum(math.log(p[t, w]) for t, w in
      enumerate(ids[1:].tolist())) / len(p)
  ε in the logarithm: y = F.softmax(U[:-1], -1); tiny = torch.finfo(torch.float32).eps;
      F.nll_loss(torch.log(y + tiny), ids[1:])
padded_loss
  across texts: F.cross_entropy(U.flatten(0, 1)[:-1], ids.flatten()[1:], ignore_index=pad_id)
  right: F.cross_entropy(U[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), ignore_index=pad_id)
  padding counted: F.cross_entropy(U[:, :-1].transpose(1, 2), ids[:, 1:])
  padding in the mean: each = F.cross_entropy(U[:, :-1].transpose(1, 2), ids[:, 1:],
      reduction="none"); (each * (ids[:, 1:] != pad_id)).mean()
  ε in the logarithm: y = F.softmax(U[:, :-1], -1) + 1e-7; F.nll_loss(y.log().flatten(0, 1), ids[:,
      1:].flatten(), ignore_index=pad_id)
  padding dropped first: words = ids.flatten(); U = U.flatten(0, 1)[words != pad_id]; words =
      words[words != pad_id]; F.cross_entropy(U[:-1], words[1:])
  padding dropped first: kept = [(u[i != pad_id], i[i != pad_id]) for u, i in zip(U, ids)]; losses =
      [F.cross_entropy(u[:-1], i[1:], reduction='none') for u, i in kept]; torch.cat(losses).mean()
perplexity
  right: lambda p: math.exp(-sum(math.log(x) for x in p) / len(p))
  underflow: lambda p: torch.prod(p) ** (-1 / len(p))
  no root: lambda p: 1 / torch.prod(p)
  right: lambda p: 2 ** (-p.log2().mean())
  odd: lambda p: torch.exp(-p.log().sum() / (len(p) - 1))
  right: r = 1.0; [r := r * (1 / x) ** (1 / len(probabilities)) for x in probabilities]; r
  ε in the logarithm: math.exp(-sum(math.log(p + 1e-10) for p in probabilities) /
      len(probabilities))
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
  odd: x @ (W + A @ B)
  odd: x @ W + alpha / B.shape[1] * x @ A @ B
cross_attention
  right: F.softmax(X @ W_Q @ (H_enc @ W_K).T / W_K.shape[1] ** 0.5, -1) @ (H_enc @ W_V)
  rounded root: W_K.shape[1] ** 0.5 => int(W_K.shape[1] ** 0.5)
  residual: F.softmax => X @ W_V + F.softmax
  weights: @ (H_enc @ W_V) =>
  K from the decoder: H_enc @ W_K => X @ W_K
  X for H_enc: F.scaled_dot_product_attention(X @ W_Q, X @ W_K, X @ W_V)
  odd: H_enc @ W_V => X @ W_V
  odd: / W_K.shape[1] ** 0.5 =>
  right: lambda X, memory, W_Q, W_K, W_V: F.scaled_dot_product_attention(X @ W_Q, memory @ W_K,
      memory @ W_V)
  X and H_enc swapped: q, k, v = H_enc @ W_Q, X @ W_K, X @ W_V; out = F.softmax(q @ k.T /
      k.shape[1]**0.5, 1) @ v; out[: X.shape[0]]
decoder_block
  right: X = X + attention(norm(X)); X = X + cross_attention(norm(X), H_enc); X + ffn(norm(X))
  no feedforward layer: X + ffn(norm(X)) => X
  ffn on the norm: X = X + attention(norm(X)); X = norm(X + cross_attention(norm(X), H_enc)); X +
      ffn(X)
  residual twice from the first: X = X + cross_attention(norm(X), H_enc); X + ffn(norm(X)) => O = X
      + cross_attention(norm(X), H_enc); X + ffn(norm(O))
  no residual at self-attention: X = X + attention => X = attention
  cross-attention first: X = X + attention(norm(X)); X = X + cross_attention(norm(X), H_enc) => X =
      X + cross_attention(norm(X), H_enc); X = X + attention(norm(X))
  query from X: T1 = norm(X); X = X + attention(T1); X = X + cross_attention(T1, H_enc); X +
      ffn(norm(X))
  odd: X = X + attention(norm(X)); Z = norm(X); X = Z + cross_attention(Z, H_enc); X + ffn(norm(X))
  sides swapped: T = X + attention(norm(X)); C = T + cross_attention(H_enc, norm(T))[:
      X.shape[0]]; C + ffn(norm(C))
  sides swapped: T = X + attention(norm(X)); C = T + cross_attention(H_enc, T); C + ffn(norm(C))
  sides swapped: T = X + attention(norm(X)); C = T + cross_attention(H_enc, T)[: T.shape[0]]; C +
      ffn(norm(C))
masked_word_loss
  right: F.cross_entropy(U[M], x[M])
  right: M = sorted(M); positions = [i for i in M + []]; F.cross_entropy(U[positions], x[positions])
  plain logarithm: y = torch.softmax(U, -1); -sum(y[i, x[i]].log() for i in M.tolist()) / len(M)
  all positions: F.cross_entropy(U[M], x[M]) => F.cross_entropy(U, x)
  the others: keep = [i for i in range(len(x)) if i not in M.tolist()]; F.cross_entropy(U[keep],
      x[keep])
  next word: x[M] => x.roll(-1)[M]
  divided by N: x[M]) => x[M], reduction="sum") / len(U)
  summed: x[M]) => x[M], reduction="sum")
  other axis: -torch.stack([U.log_softmax(0)[i, x[i]] for i in M]).mean()
  ε in the logarithm: y = F.softmax(U, -1); -torch.log(y[M].gather(1, x[M][:, None]) + 1e-10).mean()
length_normalized
  length minus one (guarded): lambda l: l.sum() / max(len(l) - 1, 1)
  times the length: lambda l: l.sum() * len(l)
  then exp: torch.exp(log_probabilities.mean())
  right: log_probabilities.mean()
  not normalized: sum(log_probabilities)
  odd: log_probabilities.exp().prod().log() / len(log_probabilities)
pitch
  odd: tuning[(len(tuning) - string) % 6] + fret
  sorted: sorted(tuning, reverse=True)[string - 1] + fret
  index: tuning[string] + fret
  fret − 1: tuning[len(tuning) - string] + (fret - 1)
  fret + 1: tuning[-string] + fret + 1
  right: tuning[-string] + fret
  strings from the lowest: tuning[string - 1] + fret
count_places
  strings in order: n = next((j for j, o in enumerate(tuning) if o > midi), len(tuning)); sum(midi -
      o <= frets for o in tuning[:n])
  odd: low = [o for o in reversed(tuning) if o <= midi]; next((j for j, o in enumerate(low) if midi
      - o > frets), len(low))
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
stack
  right: [X := block(X) for block in blocks]; final_norm(X)
  no final_norm: [X := block(X) for block in blocks]; X
  norm after each: [X := final_norm(block(X)) for block in blocks]; X
  odd: [X := block(final_norm(X)) for block in blocks]; final_norm(X)
  odd: [X := block(X) for block in blocks[:-1]]; final_norm(X)
""",
)
