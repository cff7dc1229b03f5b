"""Attempts that are wrong in odd ways, written after the table of known mistakes: none may pass."""

import math

import torch
import torch.nn.functional as F
from planted import add_table, odd, right


@odd("softmax", "keepdim forgotten on sum")
def _(s):
    e = torch.exp(s - s.max(-1, keepdim=True).values)
    return e / e.sum(-1)


@odd("softmax", "clamps scores to 50 instead of subtracting", one_row=True)
def _(s):
    e = torch.exp(s.clamp(max=50))
    return e / e.sum()


@odd("multi_head_attention", "mean of heads then W_O chunk")
def _(X, W_Q, W_K, W_V, W_O, A):
    out = 0
    heads = zip(*(W.chunk(A, 1) for W in (W_Q, W_K, W_V)), W_O.chunk(A, 0), strict=True)
    for q, k, v, o in heads:
        s = X @ q @ (X @ k).T / k.shape[1] ** 0.5 + torch.full((len(X), len(X)), -math.inf).triu(1)
        out = out + F.softmax(s, -1) @ X @ v @ o
    return out / A


@odd("layer_norm", "divides by d-1 by hand and eps 1e-6")
def _(x, g, b):
    mu = x.mean(-1, keepdim=True)
    v = ((x - mu) ** 2).sum(-1, keepdim=True) / (x.shape[-1] - 1)
    return g * (x - mu) / torch.sqrt(v + 1e-06) + b


@odd("layer_norm", "mean absolute deviation")
def _(x, g, b):
    mu = x.mean(-1, keepdim=True)
    return g * (x - mu) / (x - mu).abs().mean(-1, keepdim=True) + b


@odd("stack", "norm inside and end")
def _(X, blocks, final_norm):
    for bl in blocks:
        X = bl(final_norm(X))
    return final_norm(X)


@odd("stack", "skips last")
def _(X, blocks, final_norm):
    for bl in blocks[:-1]:
        X = bl(X)
    return final_norm(X)


@odd("top_p", "> p off by one: keep until sum > p incl next")
def _(u, p):
    y, o = F.softmax(u, -1).sort(descending=True)
    keep = y.cumsum(-1) < p
    out = torch.zeros_like(u)
    out[o[keep]] = y[keep]
    return out / out.sum()


@right("perplexity", "product of inverses to 1/T, loop")
def _(p):
    r = 1.0
    for x in p:
        r *= (1 / x) ** (1 / len(p))
    return r


@odd("decoder_block", "cross reads unnormalised H and adds norm")
def _(X, H_enc, attention, cross_attention, ffn, norm):
    X = X + attention(norm(X))
    Z = norm(X)
    X = Z + cross_attention(Z, H_enc)
    return X + ffn(norm(X))


add_table(
    globals(),
    r"""
weighted_sum
  odd: lambda a, r: sum(a[j] * r[j] for j in range(1, len(a)))
  odd: lambda a, r: a @ r
scaled_score
  odd: lambda q, k: (q * k).sum() / len(q) ** 2
  odd: lambda q, k: torch.sqrt((q * k).sum())
simple_attention
  odd: S = X[: i + 1] * X[i]; (F.softmax(S, dim=-1) * X[: i + 1]).sum(0)
  odd: F.softmax(X[: i + 1] @ X[-1], 0) @ X[: i + 1]
causal_mask
  odd: torch.tril(torch.full((N, N), -math.inf)) * 0
  odd: torch.zeros(N)
  right: torch.tril(torch.ones(N, N)).log()
attention
  odd: F.softmax(Q @ K.T / math.sqrt(K.shape[0]) + mask, -1) @ V
  odd: s = torch.einsum("nd,nd->n", Q, K) / Q.shape[1] ** 0.5; F.softmax(s[:, None] + mask, -1) @ V
  right: F.softmax((Q @ K.T + mask) / math.sqrt(Q.shape[1]), -1) @ V
  right: torch.nan_to_num(F.softmax(Q @ K.T / math.sqrt(Q.shape[1]) + mask, -1)) @ V
head
  odd: s = X @ W_Q @ (X @ W_K).T / W_K.shape[1] ** 0.5 + torch.full((len(X), len(X)),
      -math.inf).tril(-1); F.softmax(s, -1) @ (X @ W_V) @ W_O
  odd: F.softmax(X @ W_Q @ (X @ W_K).T, -1) @ X @ W_V @ W_O
ffn
  odd: torch.relu(x @ W_1 + b_2) @ W_2 + b_1
  odd: F.leaky_relu(x @ W_1 + b_1) @ W_2 + b_2
block
  odd: X + ffn(norm_2(attention(norm_1(X))))
  odd: O = norm_1(X) + attention(norm_1(X)); norm_2(O) + ffn(norm_2(O))
input_encoding
  odd: E[ids] + P[start]
  odd: E[ids] + P[start : len(ids)]
lm_head
  odd: U = H @ E.T; U - U.max(-1, keepdim=True).values
temperature
  odd: F.softmax(F.softmax(u, -1) / tau, -1)
  odd: F.softmax(u, -1) ** (1 / tau)
  right: y = F.softmax(u.double(), -1) ** (1 / tau); y / y.sum()
top_k
  odd: th = u.sort(descending=True).values[min(k, len(u) - 1)]; F.softmax(u.masked_fill(u < th,
      -math.inf), -1)
  odd: F.softmax(u.topk(k).values, -1)
top_p
  odd: y = F.softmax(u, -1); y = y * (y >= p * y.max()); y / y.sum()
next_token_loss
  odd: (U[:-1].argmax(-1) == ids[1:]).float().mean()
  odd: F.cross_entropy(U, ids, reduction="sum")
perplexity
  right: lambda p: 2 ** (-p.log2().mean())
  odd: lambda p: torch.exp(-p.log().sum() / (len(p) - 1))
lora
  odd: x @ (W + A @ B)
  odd: x @ W + alpha / B.shape[1] * x @ A @ B
cross_attention
  odd: F.softmax(X @ W_Q @ (H_enc @ W_K).T / W_K.shape[1] ** 0.5, -1) @ (X @ W_V)
  odd: F.softmax(X @ W_Q @ (H_enc @ W_K).T, -1) @ (H_enc @ W_V)
cached_step
  odd: K = torch.vstack([K, x @ W_K]); V = torch.vstack([V, x @ W_V]); (F.softmax(K @ (x @ W_Q) /
      len(K) ** 0.5, 0) @ V, K, V)
  odd: K = torch.vstack([K, x @ W_K]); (F.softmax(K @ (x @ W_Q) / K.shape[1] ** 0.5, 0)[:-1] @ V, K,
      V)
split_heads
  odd: X.T.reshape(A, -1, X.shape[0])
join_heads
  odd: lambda h: h.transpose(0, 2).reshape(h.shape[1], -1)
""",
)
