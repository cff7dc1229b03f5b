"""Attempts at the exercises on looking inside, as readers write them: they join `planted`'s."""

import torch
import torch.nn.functional as F
from planted_marks import odd, right, wrong


@right("induced", "a dict of what came after")
def _(ids):
    after = {}
    for a, b in zip(ids.tolist(), ids.tolist()[1:], strict=False):
        after[a] = b
    return after.get(ids.tolist()[-1], -1)


@right("induced", "nonzero, a tensor")
def _(tokens):
    found = (tokens[:-1] == tokens[-1]).nonzero()
    return tokens[found[-1] + 1] if len(found) else -1


@wrong("induced", "first time", "list.index")
def _(ids):
    ids = ids.tolist()
    return ids[ids.index(ids[-1]) + 1] if ids[-1] in ids[:-1] else -1


@wrong("induced", "itself", "what stood there")
def _(ids):
    for j in range(len(ids) - 2, -1, -1):
        if ids[j] == ids[-1]:
            return ids[j]
    return -1


@wrong("induced", "finds itself", "range from the end")
def _(ids):
    for j in range(len(ids) - 1, -1, -1):
        if ids[j] == ids[-1]:
            return ids[j + 1]
    return -1


@wrong("induced", "0 if new", "0 for not found")
def _(ids):
    after = dict(zip(ids.tolist(), ids.tolist()[1:], strict=False))
    return after.get(int(ids[-1]), 0)


@odd("induced", "most frequent of what came after")
def _(ids):
    after = [int(b) for a, b in zip(ids, ids[1:], strict=False) if a == ids[-1]]
    return max(after, key=after.count) if after else -1


right("induction_score", "a diagonal")(lambda alpha, period: alpha.diagonal(1 - period)[1:].mean())


@right("induction_score", "a mask")
def _(weights, P):
    i = torch.arange(len(weights))
    here = (i[:, None] - i == P - 1) & (i[:, None] >= P)
    return weights[here].mean()


@wrong("induction_score", "same token", "i − P")
def _(alpha, period):
    N = len(alpha)
    return sum(alpha[i, i - period] for i in range(period, N)) / (N - period)


wrong("induction_score", "same token", "diagonal(−P)")(
    lambda alpha, period: alpha.diagonal(-period).mean()
)
wrong("induction_score", "one too far", "i − P − 1")(
    lambda alpha, period: torch.stack(
        [alpha[i, i - period - 1] for i in range(period, len(alpha))]
    ).mean()
)
wrong("induction_score", "one too far", "diagonal(−P − 1)")(
    lambda alpha, period: alpha.diagonal(-period - 1).mean()
)
wrong("induction_score", "one token early", "the whole diagonal")(
    lambda alpha, period: alpha.diagonal(1 - period).mean()
)


@wrong("induction_score", "turned", "columns look")
def _(alpha, period):
    N = len(alpha)
    return sum(alpha[i - period + 1, i] for i in range(period, N)) / (N - period)


wrong("induction_score", "all tokens", "/ N")(
    lambda alpha, period: alpha.diagonal(1 - period)[1:].sum() / alpha.shape[0]
)
odd("induction_score", "two places after")(
    lambda alpha, period: torch.stack(
        [alpha[i, i - period + 2] for i in range(period, len(alpha))]
    ).mean()
)
right("logit_lens", "PyTorch's norm")(
    lambda H, gamma, beta, E: F.linear(F.layer_norm(H, gamma.shape, gamma, beta), E)
)


@right("logit_lens", "row by row")
def _(stream, gain, offset, E):
    rows = []
    for h in stream:
        h = gain * (h - h.mean()) / h.var(correction=0).sqrt() + offset
        rows.append(torch.stack([h @ e for e in E]))
    return torch.stack(rows)


wrong("logit_lens", "no norm", "H Eᵀ")(lambda H, gamma, beta, E: H @ E.T)
wrong("logit_lens", "plain norm", "layer_norm without weights")(
    lambda H, gamma, beta, E: F.layer_norm(H, (H.shape[-1],)) @ E.T
)


@wrong("logit_lens", "unbiased", "std()")
def _(H, gamma, beta, E):
    centred = H - H.mean(-1, keepdim=True)
    return (gamma * centred / H.std(-1, keepdim=True) + beta) @ E.T


wrong("logit_lens", "probabilities", "softmax")(
    lambda H, gamma, beta, E: (F.layer_norm(H, gamma.shape, gamma, beta) @ E.T).softmax(-1)
)


@odd("logit_lens", "norm before and after")
def _(H, gamma, beta, E):
    U = F.layer_norm(H, gamma.shape, gamma, beta) @ E.T
    return U - U.mean(-1, keepdim=True)


@right("without_head", "a sum over the others")
def _(heads, W_O, c):
    Ws = W_O.chunk(len(heads))
    return sum(heads[k] @ Ws[k] for k in range(len(heads)) if k != c)


@right("without_head", "a matrix of zeros")
def _(heads, W_O, c):
    A, N, d_v = heads.shape
    W = W_O.clone()
    W[c * d_v : (c + 1) * d_v] = 0
    return heads.permute(1, 0, 2).reshape(N, A * d_v) @ W


@wrong("without_head", "counted from 1", "c − 1")
def _(heads, W_O, c):
    heads = heads.clone()
    heads[c - 1] = 0
    return heads.transpose(0, 1).flatten(1) @ W_O


@wrong("without_head", "alone", "that head's share")
def _(heads, W_O, c):
    d_v = heads.shape[-1]
    return heads[c] @ W_O[c * d_v : (c + 1) * d_v]


@wrong("without_head", "token", "heads[:, c] = 0")
def _(heads, W_O, c):
    heads = heads.clone()
    heads[:, c] = 0
    return heads.transpose(0, 1).flatten(1) @ W_O


@wrong("without_head", "joined by reshape", "reshape(N, −1)")
def _(heads, W_O, c):
    kept = torch.cat([heads[:c], torch.zeros_like(heads[c : c + 1]), heads[c + 1 :]])
    return kept.reshape(heads.shape[1], -1) @ W_O


@wrong("without_head", "nothing", "out of place, and lost")
def _(heads, W_O, c):
    heads.index_fill(0, torch.tensor([c]), 0.0)
    return heads.transpose(0, 1).flatten(1) @ W_O


@odd("without_head", "the head is cut out, W_O's last rows with it")
def _(heads, W_O, c):
    kept = torch.cat([heads[:c], heads[c + 1 :]]).transpose(0, 1).flatten(1)
    return kept @ W_O[: kept.shape[1]]


right("qk_circuit", "einsum")(lambda W_Q, W_K: torch.einsum("ik,jk->ij", W_Q, W_K))
wrong("qk_circuit", "keys ask", "W_K W_Qᵀ")(lambda W_Q, W_K: W_K @ W_Q.mT)
wrong("qk_circuit", "inside", "W_Qᵀ W_K")(lambda W_Q, W_K: W_Q.T @ W_K)
wrong("qk_circuit", "scaled", "with the root")(lambda W_Q, W_K: W_Q @ W_K.T / W_Q.shape[-1] ** 0.5)


@right("copied", "a loop")
def _(E, W_V, W_O):
    count = 0
    for w, e in enumerate(E):
        written = e @ W_V @ W_O
        count += bool((E @ written).argmax() == w)
    return count / len(E)


@wrong("copied", "columns", "dim=0")
def _(E, W_V, W_O):
    words = E @ (W_V @ W_O) @ E.T
    return (words.argmax(dim=0) == torch.arange(len(E))).double().mean()


wrong("copied", "raised at all", "diagonal above 0")(
    lambda E, W_V, W_O: ((E @ W_V @ W_O * E).sum(-1) > 0).float().mean()
)


@wrong("copied", "number", "sum")
def _(E, W_V, W_O):
    words = E @ W_V @ W_O @ E.T
    return sum(int(row.argmax() == w) for w, row in enumerate(words))


odd("copied", "trace of the softmax")(
    lambda E, W_V, W_O: (E @ W_V @ W_O @ E.T).softmax(-1).diagonal().mean()
)
