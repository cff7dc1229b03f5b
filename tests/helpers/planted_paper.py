"""Attempts at the exercises on translation, as readers write them: they join `planted`'s."""

import math

import torch
import torch.nn.functional as F
from planted_marks import odd, right, wrong

right("teacher_forced", "padding both sides")(
    lambda target, begin, end: torch.stack(
        [F.pad(target, (1, 0), value=begin), F.pad(target, (0, 1), value=end)]
    )
)


@right("teacher_forced", "lists")
def _(target, begin, end):
    ids = target.tolist()
    return torch.tensor([[begin, *ids], [*ids, end]])


@wrong("teacher_forced", "rows swapped", "targets first")
def _(target, begin, end):
    ids = target.tolist()
    return torch.tensor([[*ids, end], [begin, *ids]])


wrong("teacher_forced", "read what it writes", "one row for both")(
    lambda target, begin, end: torch.tensor([*target.tolist(), end]).expand(2, -1)
)


@wrong("teacher_forced", "ends swapped", "end first")
def _(target, begin, end):
    ids = target.tolist()
    return torch.tensor([[end, *ids], [*ids, begin]])


odd("teacher_forced", "begin and end in both")(
    lambda target, begin, end: torch.tensor([begin, *target.tolist(), end]).expand(2, -1)
)
right("smoothed_loss", "PyTorch's own")(
    lambda u, word, share: F.cross_entropy(u[None], torch.tensor([word]), label_smoothing=share)
)


@right("smoothed_loss", "against a distribution")
def _(u, word, share):
    y = torch.full_like(u, share / len(u))
    y[word] += 1 - share
    return -(y * u.log_softmax(-1)).sum()


@wrong("smoothed_loss", "others alone", "share over V − 1")
def _(u, word, share):
    y = torch.full_like(u, share / (len(u) - 1))
    y[word] = 1 - share
    return -(y * u.log_softmax(-1)).sum()


wrong("smoothed_loss", "not smoothed", "nll")(
    lambda u, word, share: F.cross_entropy(u[None], torch.tensor([word]))
)


@wrong("smoothed_loss", "nothing taken away", "added")
def _(u, word, share):
    y = u.log_softmax(-1)
    return -(y[word] + share * y.mean())


@odd("smoothed_loss", "logarithm of a mixture")
def _(u, word, share):
    y = u.softmax(-1)
    return -((1 - share) * y[word] + share * y.mean()).log()


@right("rate_of_2017", "two cases")
def _(step, d, warmup):
    if step <= warmup:
        return step / (math.sqrt(d) * warmup**1.5)
    return 1 / math.sqrt(d * step)


wrong("rate_of_2017", "the larger", "max")(
    lambda step, d, warmup: max(1 / math.sqrt(step), step / warmup**1.5) / math.sqrt(d)
)
wrong("rate_of_2017", "no width", "no d")(
    lambda step, d, warmup: min(step**-0.5, step * warmup**-1.5)
)
wrong("rate_of_2017", "no climb", "the second half")(
    lambda step, d, warmup: 1 / math.sqrt(d * step)
)
odd("rate_of_2017", "steps counted from 0")(
    lambda step, d, warmup: d**-0.5 * min((step + 1) ** -0.5, (step + 1) * warmup**-1.5)
)
right("scaled_input", "F.embedding")(
    lambda ids, E, P: F.embedding(ids, E) * math.sqrt(E.size(1)) + P[torch.arange(len(ids))]
)
wrong("scaled_input", "not scaled", "the book's")(lambda ids, E, P: E[ids] + P[: len(ids)])
wrong("scaled_input", "positions too", "(E + P) √d")(
    lambda ids, E, P: (E[ids] + P[: len(ids)]) * math.sqrt(E.size(1))
)
wrong("scaled_input", "divided", "over the root")(
    lambda ids, E, P: E[ids] / E.shape[1] ** 0.5 + P[: len(ids)]
)
odd("scaled_input", "the root of |V|")(lambda ids, E, P: E[ids] * len(E) ** 0.5 + P[: len(ids)])
