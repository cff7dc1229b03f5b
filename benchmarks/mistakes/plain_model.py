"""The book's language model with one statement a step, so that a mistake is one changed line.

The weights are those of the package's `TransformerLM`, by the names of its state. A cache is a list
with the keys and values of each block; it begins as a list of None.
"""

import torch
from torch.nn.functional import cross_entropy, dropout, relu  # noqa: F401 (a mistake drops)


def causal(N, M):
    mask = torch.full((N, M), float("-inf")).triu(M - N + 1)
    return mask


def layer_norm(x, gamma, beta):
    mu = x.mean(dim=-1, keepdim=True)
    variance = x.var(dim=-1, keepdim=True, correction=0)
    x_hat = (x - mu) / torch.sqrt(variance + 1e-5)
    return gamma * x_hat + beta


def attention(Q, K, V, mask):
    d_k = Q.shape[-1]
    scores = Q @ K.mT / d_k**0.5
    alpha = (scores + mask).softmax(dim=-1)
    return alpha @ V, alpha


def split(X, A):
    return X.unflatten(-1, (A, -1)).transpose(-3, -2)


def multi_head(X, W_Q, W_K, W_V, W_O, A, past):
    Q, K, V = split(X @ W_Q, A), split(X @ W_K, A), split(X @ W_V, A)
    if past:
        K, V = torch.cat([past[0], K], dim=-2), torch.cat([past[1], V], dim=-2)
    heads, alpha = attention(Q, K, V, causal(Q.shape[-2], K.shape[-2]))
    joined = heads.transpose(-3, -2).flatten(-2)
    return joined @ W_O, alpha, (K, V)


def feedforward(X, W_1, b_1, W_2, b_2):
    hidden = relu(X @ W_1 + b_1)
    return hidden @ W_2 + b_2


def model(w, ids, cache=None):
    """The logits U, and the attention weights of each block."""
    start = cache[0][0].shape[-2] if cache and cache[0] else 0
    E, P = w["E"], w["P"]
    X = E[ids] + P[start : start + ids.shape[-1]]
    maps = []
    for number, block in enumerate(w["blocks"]):
        T1 = layer_norm(X, *block["norm_1"])
        T2, alpha, kept = multi_head(T1, *block["mha"], w["A"], cache and cache[number])
        T3 = X + T2
        T4 = layer_norm(T3, *block["norm_2"])
        X = T3 + feedforward(T4, *block["ffn"])
        maps.append(alpha)
        if cache is not None:
            cache[number] = kept
    H = layer_norm(X, *w["final_norm"])
    U = H @ E.T
    return U, maps


def loss(w, batch):
    read, target = batch[:, :-1], batch[:, 1:]
    U, _ = model(w, read)
    return cross_entropy(U.flatten(0, 1), target.flatten())
