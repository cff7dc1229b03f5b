"""Attempts at the exercises on interpretability, as readers write them."""

from fractions import Fraction

import torch
from planted import add_table, right, wrong


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


@right("induction_score", "a mask")
def _(weights, P):
    i = torch.arange(len(weights))
    here = (i[:, None] - i == P - 1) & (i[:, None] >= P)
    return weights[here].mean()


@right("logit_lens", "row by row")
def _(stream, gain, offset, E):
    rows = []
    for h in stream:
        h = gain * (h - h.mean()) / h.var(correction=0).sqrt() + offset
        rows.append(torch.stack([h @ e for e in E]))
    return torch.stack(rows)


@right("without_head", "a matrix of zeros")
def _(heads, W_O, c):
    A, N, d_v = heads.shape
    W = W_O.clone()
    W[c * d_v : (c + 1) * d_v] = 0
    return heads.permute(1, 0, 2).reshape(N, A * d_v) @ W


@right("copied", "a loop")
def _(E, W_V, W_O):
    count = 0
    for w, e in enumerate(E):
        written = e @ W_V @ W_O
        count += bool((E @ written).argmax() == w)
    return count / len(E)


@right("copied", "a fraction")
def _(E, W_V, W_O):
    rows = E @ W_V @ W_O @ E.T
    return Fraction(int((rows.argmax(1) == torch.arange(len(E))).sum()), len(E))


add_table(
    globals(),
    r"""
induced
  token 0 for none: t = ids.tolist(); dict(zip(t, t[1:])).get(t[-1], -1) or -1
  most frequent: t = ids.tolist(); after = [b for a, b in zip(t, t[1:]) if a == t[-1]];
      max(after, key=after.count) if after else -1
  first token missed: t = ids.tolist(); j = max((j for j in range(len(t) - 1) if t[j] == t[-1]),
      default=None); t[j + 1] if j else -1
  place: found = [j for j in range(len(ids) - 1) if ids[j] == ids[-1]]; found[-1] + 1 if found
      else -1
  odd: after = [int(b) for a, b in zip(ids, ids[1:], strict=False) if a == ids[-1]]; max(after,
      key=after.count) if after else -1
induction_score
  right: alpha.diagonal(1 - period)[1:].mean()
  same token: N = len(alpha); sum(alpha[i, i - period] for i in range(period, N)) / (N - period)
  one too far: torch.stack([alpha[i, i - period - 1] for i in range(period, len(alpha))]).mean()
  odd: torch.stack([alpha[i, i - period + 2] for i in range(period, len(alpha))]).mean()
logit_lens
  root mean square: (gamma * H / H.pow(2).mean(1, keepdim=True).sqrt() + beta) @ E.T
  not divided: (gamma * (H - H.mean(1, keepdim=True)) + beta) @ E.T
  all rows together: (gamma * (H - H.mean()) / H.std(correction=0) + beta) @ E.T
  variance: centered = H - H.mean(1, keepdim=True); (gamma * centered / H.var(1, correction=0,
      keepdim=True) + beta) @ E.T
  right: F.linear(F.layer_norm(H, gamma.shape, gamma, beta), E)
  no norm: H @ E.T
  plain norm: F.layer_norm(H, (H.shape[-1],)) @ E.T
  odd: U = F.layer_norm(H, gamma.shape, gamma, beta) @ E.T; U - U.mean(-1, keepdim=True)
without_head
  right: Ws = W_O.chunk(len(heads)); sum(heads[k] @ Ws[k] for k in range(len(heads)) if k != c)
  c − 1: heads = heads.clone(); heads[c - 1] = 0; heads.transpose(0, 1).flatten(1) @ W_O
  alone: d_v = heads.shape[-1]; heads[c] @ W_O[c * d_v : (c + 1) * d_v]
  odd: kept = torch.cat([heads[:c], heads[c + 1 :]]).transpose(0, 1).flatten(1); kept @ W_O[:
      kept.shape[1]]
qk_circuit
  W_Q for W_K: W_Q @ W_Q.T
  right: torch.einsum("ik,jk->ij", W_Q, W_K)
  W_Q and W_K swapped: W_K @ W_Q.mT
  inside: W_Q.T @ W_K
copied
  rounded down: ((E @ W_V @ W_O @ E.T).argmax(1) == torch.arange(len(E))).sum() // len(E)
  cosine: ((E @ W_V @ W_O @ F.normalize(E, dim=1).T).argmax(1) ==
      torch.arange(len(E))).float().mean()
  columns: words = E @ (W_V @ W_O) @ E.T; (words.argmax(dim=0) ==
      torch.arange(len(E))).double().mean()
  raised at all: ((E @ W_V @ W_O * E).sum(-1) > 0).float().mean()
  odd: (E @ W_V @ W_O @ E.T).softmax(-1).diagonal().mean()
""",
)
