"""Odder attempts, written after the table of known mistakes: none may pass, a name is a bonus."""

import math

import torch
import torch.nn.functional as F
from planted_marks import odd, right


@odd("softmax", "keepdim forgotten on sum")
def _(s):
    e = torch.exp(s - s.max(-1, keepdim=True).values)
    return e / e.sum(-1)


@odd("softmax", "max over whole but fine, divides by N")
def _(s):
    e = torch.exp(s - s.max())
    return e / e.shape[-1]


odd("softmax", "abs instead of exp")(lambda s: s.abs() / s.abs().sum(-1, keepdim=True))
odd("softmax", "rounds to 2 decimals")(lambda s: torch.round(F.softmax(s, -1), decimals=2))
odd("softmax", "sigmoid")(lambda s: torch.sigmoid(s))


@odd("softmax", "clamps scores to 50 instead of subtracting", one_row=True)
def _(s):
    e = torch.exp(s.clamp(max=50))
    return e / e.sum()


odd("weighted_sum", "starts with j=1")(lambda a, r: sum(a[j] * r[j] for j in range(1, len(a))))
odd("weighted_sum", "matrix product with all rows")(lambda a, r: a @ r)
odd("scaled_score", "divides by d_k squared")(lambda q, k: (q * k).sum() / len(q) ** 2)
odd("scaled_score", "root of the product")(lambda q, k: torch.sqrt((q * k).sum()))
odd("scaled_score", "sqrt(q.k)/d precedence: q@k/d**1/2")(lambda q, k: q @ k / len(q) ** 1 / 2)


@odd("simple_attention", "softmax over features")
def _(X, i):
    S = X[: i + 1] * X[i]
    return (F.softmax(S, dim=-1) * X[: i + 1]).sum(0)


odd("simple_attention", "uses last token as query")(
    lambda X, i: F.softmax(X[: i + 1] @ X[-1], 0) @ X[: i + 1]
)
odd("causal_mask", "float('-inf') everywhere then tril zero (NaN)")(
    lambda N: torch.tril(torch.full((N, N), -math.inf)) * 0
)
odd("causal_mask", "1-D")(lambda N: torch.zeros(N))
odd("causal_mask", "-inf below incl. diag")(lambda N: torch.full((N, N), -math.inf).tril())
right("causal_mask", "log of tril")(lambda N: torch.tril(torch.ones(N, N)).log())
odd("attention", "scale by sqrt of number of keys")(
    lambda Q, K, V, mask: F.softmax(Q @ K.T / math.sqrt(K.shape[0]) + mask, -1) @ V
)


@odd("attention", "forgets T on K for einsum: nd,nd->n")
def _(Q, K, V, mask):
    s = torch.einsum("nd,nd->n", Q, K) / Q.shape[1] ** 0.5
    return F.softmax(s[:, None] + mask, -1) @ V


odd("attention", "precedence / d_k**1/2")(
    lambda Q, K, V, mask: F.softmax(Q @ K.T / Q.shape[1] ** 1 / 2 + mask, -1) @ V
)
odd("attention", "softmax before scaling")(
    lambda Q, K, V, mask: F.softmax(Q @ K.T + mask, -1) / math.sqrt(Q.shape[1]) @ V
)
odd("attention", "mask==0 hidden with -1e9")(
    lambda Q, K, V, mask: (
        F.softmax((Q @ K.T / math.sqrt(Q.shape[1])).masked_fill(mask == 0, -1000000000.0), -1) @ V
    )
)
odd("attention", "no mask & no scale")(lambda Q, K, V, mask: F.softmax(Q @ K.T, -1) @ V)
odd("attention", "V.T weights")(
    lambda Q, K, V, mask: V.T @ F.softmax(Q @ K.T / math.sqrt(Q.shape[1]) + mask, -1)
)


@odd("attention", "always own causal mask instead of the given")
def _(Q, K, V, mask):
    s = Q @ K.T / math.sqrt(Q.shape[1])
    M = torch.full(s.shape, -math.inf).triu(1)
    return F.softmax(s + M, -1) @ V


right("attention", "mask scaled too")(
    lambda Q, K, V, mask: F.softmax((Q @ K.T + mask) / math.sqrt(Q.shape[1]), -1) @ V
)
right("attention", "nan_to_num(right)")(
    lambda Q, K, V, mask: (
        torch.nan_to_num(F.softmax(Q @ K.T / math.sqrt(Q.shape[1]) + mask, -1)) @ V
    )
)


@odd("head", "mask in the wrong direction")
def _(X, W_Q, W_K, W_V, W_O):
    s = X @ W_Q @ (X @ W_K).T / W_K.shape[1] ** 0.5 + torch.full((len(X), len(X)), -math.inf).tril(
        -1
    )
    return F.softmax(s, -1) @ (X @ W_V) @ W_O


odd("head", "no scale, no mask")(
    lambda X, W_Q, W_K, W_V, W_O: F.softmax(X @ W_Q @ (X @ W_K).T, -1) @ X @ W_V @ W_O
)


@odd("multi_head_attention", "mean of heads then W_O chunk")
def _(X, W_Q, W_K, W_V, W_O, A):
    out = 0
    heads = zip(*(W.chunk(A, 1) for W in (W_Q, W_K, W_V)), W_O.chunk(A, 0), strict=True)
    for q, k, v, o in heads:
        s = X @ q @ (X @ k).T / k.shape[1] ** 0.5 + torch.full((len(X), len(X)), -math.inf).triu(1)
        out = out + F.softmax(s, -1) @ X @ v @ o
    return out / A


@odd("multi_head_attention", "every head uses head 0's K")
def _(X, W_Q, W_K, W_V, W_O, A):
    hs = []
    k = W_K.chunk(A, 1)[0]
    for q, v in zip(W_Q.chunk(A, 1), W_V.chunk(A, 1), strict=True):
        s = X @ q @ (X @ k).T / k.shape[1] ** 0.5 + torch.full((len(X), len(X)), -math.inf).triu(1)
        hs.append(F.softmax(s, -1) @ X @ v)
    return torch.cat(hs, -1) @ W_O


@odd("multi_head_attention", "scale by sqrt d")
def _(X, W_Q, W_K, W_V, W_O, A):
    hs = []
    for q, k, v in zip(W_Q.chunk(A, 1), W_K.chunk(A, 1), W_V.chunk(A, 1), strict=True):
        s = X @ q @ (X @ k).T / X.shape[1] ** 0.5 + torch.full((len(X), len(X)), -math.inf).triu(1)
        hs.append(F.softmax(s, -1) @ X @ v)
    return torch.cat(hs, -1) @ W_O


@odd("layer_norm", "divides by d-1 by hand and eps 1e-6")
def _(x, g, b):
    mu = x.mean(-1, keepdim=True)
    v = ((x - mu) ** 2).sum(-1, keepdim=True) / (x.shape[-1] - 1)
    return g * (x - mu) / torch.sqrt(v + 1e-06) + b


odd("layer_norm", "keepdim forgotten")(
    lambda x, g, b: g * (x - x.mean(-1)) / x.std(-1, correction=0) + b
)
odd("layer_norm", "no gain no offset")(lambda x, g, b: F.layer_norm(x, x.shape[-1:]))
odd("layer_norm", "unbiased + dim 0")(lambda x, g, b: g * (x - x.mean(0)) / x.std(0) + b)


@odd("layer_norm", "mean absolute deviation")
def _(x, g, b):
    mu = x.mean(-1, keepdim=True)
    return g * (x - mu) / (x - mu).abs().mean(-1, keepdim=True) + b


odd("ffn", "swapped biases raise")(
    lambda x, W_1, b_1, W_2, b_2: torch.relu(x @ W_1 + b_2) @ W_2 + b_1
)
odd("ffn", "leaky relu")(lambda x, W_1, b_1, W_2, b_2: F.leaky_relu(x @ W_1 + b_1) @ W_2 + b_2)
odd("ffn", "no biases")(lambda x, W_1, b_1, W_2, b_2: torch.relu(x @ W_1) @ W_2)
odd("ffn", "nn.Linear orientation: x@W_1.T")(
    lambda x, W_1, b_1, W_2, b_2: torch.relu(x @ W_1.T + b_1) @ W_2.T + b_2
)
odd("block", "norm only")(
    lambda X, attention, ffn, norm_1, norm_2: X + ffn(norm_2(attention(norm_1(X))))
)


@odd("block", "post-norm but residual kept pre: O=norm1(X)+att, etc")
def _(X, attention, ffn, norm_1, norm_2):
    O = norm_1(X) + attention(norm_1(X))
    return norm_2(O) + ffn(norm_2(O))


odd("block", "forgets all residuals")(
    lambda X, attention, ffn, norm_1, norm_2: ffn(norm_2(attention(norm_1(X))))
)


@odd("block", "O computed, FFN on norm(X)")
def _(X, attention, ffn, norm_1, norm_2):
    O = X + attention(norm_1(X))
    return O + ffn(norm_2(X))


odd("input_encoding", "adds start to ids")(lambda ids, E, P, start: E[ids] + P[start])
odd("input_encoding", "range(start,len)")(lambda ids, E, P, start: E[ids] + P[start : len(ids)])
odd("input_encoding", "start+1 slice")(
    lambda ids, E, P, start: E[ids] + P[[start + 1 + i for i in range(len(ids))]]
)


@odd("lm_head", "bias-like: minus max")
def _(H, E):
    U = H @ E.T
    return U - U.max(-1, keepdim=True).values


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


odd("temperature", "softmax twice")(lambda u, tau: F.softmax(F.softmax(u, -1) / tau, -1))
odd("temperature", "power of probs not renormalised")(lambda u, tau: F.softmax(u, -1) ** (1 / tau))


@right("temperature", "power of probs renormalised")
def _(u, tau):
    y = F.softmax(u.double(), -1) ** (1 / tau)
    return y / y.sum()


@odd("top_k", "k+1 by >= sorted[k]")
def _(u, k):
    th = u.sort(descending=True).values[min(k, len(u) - 1)]
    return F.softmax(u.masked_fill(u < th, -math.inf), -1)


odd("top_k", "ignores others: returns k values")(lambda u, k: F.softmax(u.topk(k).values, -1))


@odd("top_p", "> p off by one: keep until sum > p incl next")
def _(u, p):
    y, o = F.softmax(u, -1).sort(descending=True)
    keep = y.cumsum(-1) < p
    out = torch.zeros_like(u)
    out[o[keep]] = y[keep]
    return out / out.sum()


@odd("top_p", "p of the max (min-p)")
def _(u, p):
    y = F.softmax(u, -1)
    y = y * (y >= p * y.max())
    return y / y.sum()


odd("next_token_loss", "argmax accuracy")(
    lambda U, ids: (U[:-1].argmax(-1) == ids[1:]).float().mean()
)
odd("next_token_loss", "sum and not shifted")(
    lambda U, ids: F.cross_entropy(U, ids, reduction="sum")
)
odd("next_token_loss", "log10")(lambda U, ids: F.cross_entropy(U[:-1], ids[1:]) / math.log(10))
right("perplexity", "2**H with log2")(lambda p: 2 ** (-p.log2().mean()))


@right("perplexity", "product of inverses to 1/T, loop")
def _(p):
    r = 1.0
    for x in p:
        r *= (1 / x) ** (1 / len(p))
    return r


odd("perplexity", "divides by T-1")(lambda p: torch.exp(-p.log().sum() / (len(p) - 1)))
odd("lora", "W+AB without alpha/r, bracket x(W+AB)")(lambda x, W, A, B, alpha: x @ (W + A @ B))
odd("lora", "r from B columns")(lambda x, W, A, B, alpha: x @ W + alpha / B.shape[1] * x @ A @ B)
odd("cross_attention", "V from X")(
    lambda X, H_enc, W_Q, W_K, W_V: (
        F.softmax(X @ W_Q @ (H_enc @ W_K).T / W_K.shape[1] ** 0.5, -1) @ (X @ W_V)
    )
)
odd("cross_attention", "no scale")(
    lambda X, H_enc, W_Q, W_K, W_V: F.softmax(X @ W_Q @ (H_enc @ W_K).T, -1) @ (H_enc @ W_V)
)


@odd("decoder_block", "cross reads unnormalised H and adds norm")
def _(X, H_enc, attention, cross_attention, ffn, norm):
    X = X + attention(norm(X))
    Z = norm(X)
    X = Z + cross_attention(Z, H_enc)
    return X + ffn(norm(X))


@odd("cached_step", "scale uses number of keys")
def _(x, W_Q, W_K, W_V, K, V):
    K = torch.vstack([K, x @ W_K])
    V = torch.vstack([V, x @ W_V])
    return (F.softmax(K @ (x @ W_Q) / len(K) ** 0.5, 0) @ V, K, V)


@odd("cached_step", "K.append-like forgets V")
def _(x, W_Q, W_K, W_V, K, V):
    K = torch.vstack([K, x @ W_K])
    return (F.softmax(K @ (x @ W_Q) / K.shape[1] ** 0.5, 0)[:-1] @ V, K, V)


odd("split_heads", "permute wrong: N and d swapped")(lambda X, A: X.T.reshape(A, -1, X.shape[0]))
odd("join_heads", "transpose(0,2)")(lambda h: h.transpose(0, 2).reshape(h.shape[1], -1))
