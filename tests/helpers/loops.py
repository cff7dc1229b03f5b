"""The book's equations as the page writes them: one token, one head, one score at a time.

They take the package's parameters but none of its functions, and gradients flow through them.
A mask is a question here: `visible(i, j)` says whether token i may look at token j.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

Visible = Callable[[int, int], bool]


def causal(i: int, j: int) -> bool:
    return j <= i


def everything(i: int, j: int) -> bool:
    return True


def softmax(scores: list[Tensor]) -> list[Tensor]:
    """`simple-softmax`: exp of each score over the sum of all of them."""
    exponentials = [torch.exp(score) for score in scores]
    return [e / sum(exponentials) for e in exponentials]


def attend(Q: list[Tensor], K: list[Tensor], V: list[Tensor], visible: Visible):
    """`scaled-score` to `head`: the weighted sum of values for each query, and the weights."""
    heads, alphas = [], []
    for i, q_i in enumerate(Q):
        seen = [j for j in range(len(K)) if visible(i, j)]
        weights = softmax([(q_i * K[j]).sum() / math.sqrt(len(q_i)) for j in seen])
        head_i = torch.zeros_like(V[0])
        row = [torch.zeros((), dtype=q_i.dtype)] * len(K)
        for alpha_ij, j in zip(weights, seen, strict=True):
            head_i = head_i + alpha_ij * V[j]
            row[j] = alpha_ij
        heads.append(head_i)
        alphas.append(torch.stack(row))
    return torch.stack(heads), torch.stack(alphas)


def one_head(X: Tensor, W_Q, W_K, W_V, visible: Visible = causal, H_enc: Tensor | None = None):
    """`qkv-final` to `head` (`cross-QKV` with H_enc): queries from X, the rest from X or H_enc."""
    source = X if H_enc is None else H_enc
    Q = [x_i @ W_Q for x_i in X]
    K = [x_j @ W_K for x_j in source]
    V = [x_j @ W_V for x_j in source]
    return attend(Q, K, V, visible)


def multi_head(X: Tensor, mha, visible: Visible = causal, H_enc: Tensor | None = None):
    """`mh-qkv` to `mh-concat`: each head by itself, then side by side, then through W^O."""
    outputs = [one_head(X, w.W_Q, w.W_K, w.W_V, visible, H_enc) for w in mha.heads]
    rows = [torch.cat([head[i] for head, _ in outputs]) @ mha.W_O for i in range(len(X))]
    return torch.stack(rows), torch.stack([alpha for _, alpha in outputs])


def layer_norm(x: Tensor, norm) -> Tensor:
    """`ln-mean` to `ln` for one token, with epsilon where PyTorch has it."""
    d = len(x)
    mu = sum(x[i] for i in range(d)) / d
    variance = sum((x[i] - mu) ** 2 for i in range(d)) / d
    sigma = torch.sqrt(variance + norm.eps)
    return torch.stack([norm.gamma[i] * (x[i] - mu) / sigma + norm.beta[i] for i in range(d)])


def relu(x: Tensor) -> Tensor:
    return x * (x > 0)


def gelu(x: Tensor) -> Tensor:
    """x times the share of a standard normal that lies below x."""
    return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))


def swish(x: Tensor) -> Tensor:
    """7.21 with beta = 1."""
    return x / (1 + torch.exp(-x))


def feedforward(x: Tensor, ffn, activation=relu) -> Tensor:
    """`ffn` for one token."""
    return activation(x @ ffn.W_1 + ffn.b_1) @ ffn.W_2 + ffn.b_2


def swiglu(x: Tensor, ffn) -> Tensor:
    """7.22 for one token."""
    return (swish(x @ ffn.W_1 + ffn.b_1) * (x @ ffn.W_2 + ffn.b_2)) @ ffn.W_3 + ffn.b_3


def pre_norm_block(
    X: Tensor,
    block,
    visible: Visible = causal,
    H_enc: Tensor | None = None,
    enc_visible: Visible = everything,
    ffn=feedforward,
) -> Tensor:
    """`t1` to `h`, with cross-attention between `t3` and `t4` where there is an encoder."""
    t1 = torch.stack([layer_norm(x_i, block.norm_1) for x_i in X])
    t2, _ = multi_head(t1, block.attention, visible)
    t3 = torch.stack([t2[i] + X[i] for i in range(len(X))])
    if H_enc is not None:
        c1 = torch.stack([layer_norm(t, block.norm_cross) for t in t3])
        c2, _ = multi_head(c1, block.cross_attention, enc_visible, H_enc)
        t3 = t3 + c2
    rows = []
    for t3_i in t3:
        t4_i = layer_norm(t3_i, block.norm_2)
        t5_i = ffn(t4_i, block.ffn)
        rows.append(t5_i + t3_i)
    return torch.stack(rows)


def post_norm_block(
    X: Tensor,
    block,
    visible: Visible = causal,
    H_enc: Tensor | None = None,
    enc_visible: Visible = everything,
) -> Tensor:
    """10.32-10.37 of the Feb 2024 draft: each sublayer adds first and normalizes after."""
    t1, _ = multi_head(X, block.attention, visible)
    t3 = torch.stack([layer_norm(t1[i] + X[i], block.norm_1) for i in range(len(X))])
    if H_enc is not None:
        c1, _ = multi_head(t3, block.cross_attention, enc_visible, H_enc)
        t3 = torch.stack([layer_norm(c1[i] + t3[i], block.norm_cross) for i in range(len(X))])
    rows = []
    for t3_i in t3:
        t4_i = feedforward(t3_i, block.ffn)
        rows.append(layer_norm(t4_i + t3_i, block.norm_2))
    return torch.stack(rows)


def stack(X: Tensor, stack_, visible: Visible = causal, **cross) -> Tensor:
    """X^l = H^(l-1), then `final-ln`."""
    for block in stack_.blocks:
        X = pre_norm_block(X, block, visible, **cross)
    return torch.stack([layer_norm(x_i, stack_.final_norm) for x_i in X])


def input_rows(ids: list[int], encoding) -> Tensor:
    """X_i = E[id(i)] + P[i]."""
    E, P = encoding.tokens.E, encoding.positions.P
    return torch.stack([E[word] + P[i] for i, word in enumerate(ids)])


def logits(H: Tensor, E: Tensor) -> Tensor:
    """`logits`, one word of the vocabulary at a time."""
    return torch.stack([torch.stack([(h_i * e_w).sum() for e_w in E]) for h_i in H])


def language_model(ids: list[int], model) -> Tensor:
    """The whole of Fig. 8.16."""
    H = stack(input_rows(ids, model.embedding), model.stack)
    return logits(H, model.embedding.tokens.E)
