"""Attempts at the exercises on the model of 2017, as readers write them."""

from planted import add_table

add_table(
    globals(),
    r"""
teacher_forced
  odd: torch.stack([F.pad(target, (1, 0), value=begin), F.pad(target, (0, 1), value=end)]).float()
  end for begin: ids = target.tolist(); torch.tensor([[end, *ids], [*ids, end]])
  end in front: ids = target.tolist(); torch.tensor([[begin, *ids], [end, *ids]])
  no end: torch.stack([torch.cat([torch.tensor([begin]), target[:-1]]), target])
  right: torch.stack([F.pad(target, (1, 0), value=begin), F.pad(target, (0, 1), value=end)])
  right: ids = target.tolist(); torch.tensor([[begin, *ids], [*ids, end]])
  then reversed: ids = target.tolist(); torch.tensor([[*ids, end], [begin, *ids]])
  read what it writes: torch.tensor([*target.tolist(), end]).expand(2, -1)
  odd: torch.tensor([begin, *target.tolist(), end]).expand(2, -1)
smoothed_loss
  plain logarithm: log_y = F.softmax(u, 0).log(); -(1 - share) * log_y[word] - share * log_y.mean()
  always 0.1: F.cross_entropy(u[None], torch.tensor([word]), label_smoothing=0.1)
  nothing spread: -(1 - share) * torch.log_softmax(u, -1)[word]
  right: F.cross_entropy(u[None], torch.tensor([word]), label_smoothing=share)
  right: y = torch.full_like(u, share / len(u)); y[word] += 1 - share; -(y *
      u.log_softmax(-1)).sum()
  others alone: y = torch.full_like(u, share / (len(u) - 1)); y[word] = 1 - share; -(y *
      u.log_softmax(-1)).sum()
  share = 0: F.cross_entropy(u[None], torch.tensor([word]))
  odd: y = u.softmax(-1); -((1 - share) * y[word] + share * y.mean()).log()
  ε in the logarithm: log_y = torch.log(F.softmax(u, 0) + 1e-9); -(1 - share) * log_y[word] -
      share * log_y.mean()
rate_of_2017
  step + 1: d**-0.5 * min((step + 1) ** -0.5, (step + 1) * warmup**-1.5)
  the larger: max(1 / math.sqrt(step), step / warmup**1.5) / math.sqrt(d)
  no width: min(step**-0.5, step * warmup**-1.5)
  odd: d**-0.5 * min((step + 1) ** -0.5, (step + 1) * warmup**-1.5)
  right: step / (math.sqrt(d) * warmup**1.5) if step <= warmup else 1 / math.sqrt(d * step)
scaled_input
  rounded root: E[ids] * math.isqrt(E.shape[1]) + P[: len(ids)]
  last positions: E[ids] * math.sqrt(E.shape[1]) + P[-len(ids) :]
  root of |V|: E.shape[0] ** 0.5 * E[ids] + P[: len(ids)]
  right: F.embedding(ids, E) * math.sqrt(E.size(1)) + P[torch.arange(len(ids))]
  not scaled: E[ids] + P[: len(ids)]
  positions too: (E[ids] + P[: len(ids)]) * math.sqrt(E.size(1))
  odd: E[ids] * len(E) ** 0.5 + P[: len(ids)]
""",
)
