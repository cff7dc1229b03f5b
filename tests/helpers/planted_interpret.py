"""Attempts at the exercises on interpretability, as readers write them."""

from fractions import Fraction  # noqa: F401  for the table

from planted import add_table

add_table(
    globals(),
    r"""
induced
  token 0 for none: t = ids.tolist(); dict(zip(t, t[1:])).get(t[-1], -1) or -1
  most frequent: t = ids.tolist(); after = [b for a, b in zip(t, t[1:]) if a == t[-1]]; max(after,
      key=after.count) if after else -1
  first token missed: t = ids.tolist(); j = max((j for j in range(len(t) - 1) if t[j] == t[-1]),
      default=None); t[j + 1] if j else -1
  place: found = [j for j in range(len(ids) - 1) if ids[j] == ids[-1]]; found[-1] + 1 if found else
      -1
  odd: after = [int(b) for a, b in zip(ids, ids[1:], strict=False) if a == ids[-1]]; max(after,
      key=after.count) if after else -1
  right: found = (ids[:-1] == ids[-1]).nonzero(); ids[found[-1] + 1] if len(found) else -1
  right: t = ids.tolist(); dict(zip(t, t[1:])).get(t[-1], -1)
  itself: next((ids[j] for j in range(len(ids) - 2, -1, -1) if ids[j] == ids[-1]), -1)
  finds itself: next(ids[j + 1] for j in range(len(ids) - 1, -1, -1) if ids[j] == ids[-1])
induction_score
  right: alpha.diagonal(1 - period)[1:].mean()
  same token: N = len(alpha); sum(alpha[i, i - period] for i in range(period, N)) / (N - period)
  one too far: torch.stack([alpha[i, i - period - 1] for i in range(period, len(alpha))]).mean()
  odd: torch.stack([alpha[i, i - period + 2] for i in range(period, len(alpha))]).mean()
  right: i = torch.arange(len(alpha)); alpha[(i[:, None] - i == period - 1) & (i[:, None] >=
      period)].mean()
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
  right: rows = [gamma * (h - h.mean()) / h.var(correction=0).sqrt() + beta for h in H];
      torch.stack([torch.stack([h @ e for e in E]) for h in rows])
without_head
  right: Ws = W_O.chunk(len(heads)); sum(heads[k] @ Ws[k] for k in range(len(heads)) if k != c)
  c − 1: heads = heads.clone(); heads[c - 1] = 0; heads.transpose(0, 1).flatten(1) @ W_O
  alone: d_v = heads.shape[-1]; heads[c] @ W_O[c * d_v : (c + 1) * d_v]
  odd: kept = torch.cat([heads[:c], heads[c + 1 :]]).transpose(0, 1).flatten(1); kept @ W_O[:
      kept.shape[1]]
  right: A, N, d_v = heads.shape; W = W_O.clone(); W[c * d_v : (c + 1) * d_v] = 0; heads.permute(1,
      0, 2).reshape(N, A * d_v) @ W
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
  right: sum(bool((E @ (e @ W_V @ W_O)).argmax() == w) for w, e in enumerate(E)) / len(E)
  right: rows = E @ W_V @ W_O @ E.T; Fraction(int((rows.argmax(1) == torch.arange(len(E))).sum()),
      len(E))
""",
)
