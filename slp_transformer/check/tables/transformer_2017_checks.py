"""Checks for translation with the model of 2017: what is read and written, loss, rate (11)."""

import math

import torch
from torch import Tensor

from slp_transformer.check.diagnosing.diagnosis import Inputs, Mistakes, check
from slp_transformer.check.diagnosing.random_inputs import matrix, seeded_randn, vector
from slp_transformer.check.tables.loss_checks import LOG_MISTAKES, log_probabilities


@check(
    "teacher forcing, for `ce`",
    lambda: [
        (torch.tensor([7]), 1, 2),
        (torch.tensor([7, 5, 9]), 1, 2),
        (torch.tensor([4, 4, 8, 3, 6]), 0, 11),
        (torch.tensor([300, 0, 5]), 1, 2),
    ],
    "then reversed: The rows are swapped: what the decoder reads comes first.",
    "read what it writes [then last row for all]: The decoder reads the very tokens that it "
    "should predict.",
    "write what it reads [then first row for all]: The decoder is asked for the token that it has "
    "just read.",
    "begin for end: The second row ends in `begin`; it should end in `end`.",
    "both tokens: Both rows have `begin` and `end`: `begin` is only read, `end` only written.",
    lambda target, begin, end: torch.cat(
        [torch.tensor([begin]), target, torch.tensor([end])]
    ).expand(2, -1),
    "end for begin: `end` is in front of the first row; the decoder reads `begin` first.",
    "end in front: The second row begins with `end`; it should end in it.",
    lambda right: torch.stack([right[0], right[1].roll(1)]),
    "no end [then no last column]: `end` is missing: the decoder must learn to stop, so the rows "
    "have N + 1 tokens.",
    "two ahead: The targets are one word too far: the first is the sentence's first word.",
    lambda end, right: torch.stack([right[0], torch.cat([right[1][1:], torch.tensor([end])])]),
    "begin predicted: The decoder never has to predict `begin`: its targets are the words and "
    "`end`.",
    lambda end, right: torch.stack([right[0], torch.cat([right[0][:-1], torch.tensor([end])])]),
    "end read: The first row ends in `end`, in place of the last word; `end` is only written.",
    lambda right, end: torch.stack([torch.cat([right[0, :-1], torch.tensor([end])]), right[1]]),
    may_be_empty=("target",),
)
def teacher_forced(target: Tensor, begin: int, end: int) -> Tensor:
    """Check `teacher_forced(target, begin, end)`: what is read, and below it what is written."""
    first, last = torch.tensor([begin]), torch.tensor([end])
    return torch.stack([torch.cat([first, target]), torch.cat([target, last])])


def _loss_cases() -> list[Inputs]:
    draw = seeded_randn(111)
    made = [(vector(math.log(3), 0, 0), 0, 0.5), (2 * draw(7), 3, 0.1), (3 * draw(5), 4, 0.25)]
    return [*made, (vector(200, 0, 0), 1, 0.1)]


@check(
    "label smoothing (not in the book; Szegedy et al. 2016)",
    _loss_cases,
    "share = 0: Nothing is smoothed: this is −log y of the right word.",
    "others alone: `share` is spread over the other words only; spread it over all words.",
    lambda u, word, share: (
        -(1 - share) * (log_y := u.log_softmax(-1))[word]
        - share * log_y[torch.arange(len(u)) != word].mean()
    ),
    "nothing taken away [no − share]: The right word still has probability 1; it should keep 1 − "
    "`share`.",
    "not divided [sum for mean]: Every word gets all of `share`; it should get `share`/|V|.",
    "nothing spread [no − share * log_y.mean()]: The `share` that is spread over all words is "
    "missing.",
    "probabilities smoothed: The model's probabilities are smoothed; smooth the targets.",
    lambda u, word, share: (
        -((1 - share) * torch.log_softmax(u, -1)[word].exp() + share / len(u)).log()
    ),
    "right word without its part: The right word gets 1 − `share`; its part of it, `share`/|V|, "
    "comes on top.",
    lambda u, word, share, right: right + share / len(u) * u.log_softmax(-1)[word],
    *LOG_MISTAKES,
    "scores for log y: The mean is that of the scores; take that of log y.",
    lambda u, word, share: -(1 - share) * u.log_softmax(-1)[word] - share * u.mean(),
    "always 0.1: The share is always 0.1; use `share`.",
    lambda solve: solve(share=0.1),
    "softmax twice [softmax of u]: The softmax is applied twice: cross-entropy and log softmax "
    "take logits.",
    "divided twice: The part of all words is divided by |V| twice; their mean divides already.",
    lambda u, word, share: (
        -(1 - share) * (log_y := torch.log_softmax(u, -1))[word] - share / len(u) * log_y.mean()
    ),
    may_be_empty=("share",),
)
def smoothed_loss(u: Tensor, word: int, share: float, mistakes: Mistakes) -> Tensor:
    """Check `smoothed_loss(u, word, share)`: of logits u [V] for one right word."""
    log_y = log_probabilities(u, mistakes)
    return -(1 - share) * log_y[word] - share * log_y.mean()


@check(
    "learning rate (not in the book; Vaswani et al. 2017, section 5.3)",
    lambda: [
        (4, 4, 4),
        (1, 512, 4000),
        (100, 16, 25),
        (9, 64, 25),
        (2, 4, 8),
        (50, 9, 7),
        (300, 4, 11),
    ],
    "the larger: The larger of the two is used; use the smaller one.",
    lambda step, d, warmup: d**-0.5 * max(step**-0.5, step * warmup**-1.5),
    "no width [no · d ** (-0.5)]: The factor d^−0.5 is missing.",
    "width not rooted [· d ** (-0.5) twice]: The factor is 1/d; it should be d^−0.5.",
    "then · d: The factor is d^0.5; it should be d^−0.5.",
    "no climb [step for warmup]: The warmup is missing, or its power is upside down: until step "
    "`warmup`, the rate grows with the step.",
    "no fall [no ** -0.5 (2)]: The decay is missing: after `warmup`, the rate falls as step^−0.5.",
    "warmup's exponent [0.5 for 1.5]: The exponent of `warmup` should be −1.5, so that the two "
    "parts meet there.",
    "constant [warmup in a place (2)]: After the warmup the rate stays constant; it should fall as "
    "step^−0.5.",
    "step + 1: The step is increased by 1; it counts from 1 already.",
    "no root in the climb: The climb is step/warmup; it should be step · warmup^−1.5.",
    lambda step, d, warmup: d**-0.5 * min(step**-0.5, step / warmup),
    "no root in the fall: The fall is 1/step; it should be step^−0.5.",
    lambda step, d, warmup: d**-0.5 * min(1 / step, step * warmup**-1.5),
    "width on the fall alone: d^−0.5 multiplies only one of the two parts; put min(…) in brackets.",
    lambda step, d, warmup: min(d**-0.5 * step**-0.5, step * warmup**-1.5),
    "step in the power [multiplication before power (2)]: The step is raised to −1.5 with "
    "`warmup`; only `warmup` is.",
    "sum of both: The two parts are added; use the smaller one.",
    lambda step, d, warmup: d**-0.5 * (step**-0.5 + step * warmup**-1.5),
)
def rate_of_2017(step: int, d: int, warmup: int) -> float:
    """Check `rate_of_2017(step, d, warmup)`: the learning rate of a step, counted from 1."""
    return d**-0.5 * min(step**-0.5, step * warmup**-1.5)


def _input_cases() -> list[Inputs]:
    draw = seeded_randn(112)
    E, P = matrix((1, 0, 0, 2), (0, 3, 0, 0)), matrix((5, 0, 0, 0), (0, 7, 0, 0), (0, 0, 9, 0))
    others = [([2, 2, 0, 1, 1], draw(3, 9), draw(5, 9)), ([2, 0], draw(3, 5), draw(5, 5))]
    return [(torch.tensor(ids), E, P) for ids, E, P in [([1, 0], E, P), *others]]


@check(
    "scaled embeddings (not in the book; Vaswani et al. 2017, section 3.4)",
    _input_cases,
    "not scaled [no · root]: The embeddings are not multiplied by √d, as in the book's own input.",
    "scaled by d [no ** 0.5]: The embeddings are multiplied by d; it should be √d.",
    "divided [E / width]: The embeddings are divided by √d; multiply them.",
    "positions too [P · √width]: The positions are scaled as well; only the embeddings should be.",
    "positions alone: The positions are scaled instead of the embeddings.",
    lambda ids, E, P: E[ids] + E.shape[1] ** 0.5 * P[: len(ids)],
    "positions by token: The rows of P are chosen by token; choose them by place.",
    lambda ids, P, solve: solve(P=P[ids]),
    "root of |V| [0 for 1]: The embeddings are multiplied by √|V|; d is the number of E's columns.",
    "rounded root [root rounded]: √d is rounded to a whole number: use d**0.5 as it is.",
    "last positions: The last rows of P are used; the first token gets row 0.",
    lambda ids, P, solve: solve(P=P[-len(ids) :]),
    "root of N: The embeddings are multiplied by √N, the root of how many tokens there are; it "
    "should be √d.",
    lambda ids, E, solve: solve(E=E * (len(ids) / E.shape[1]) ** 0.5),
    "positions from 1 [P moved up]: The first token gets row 1 of P; positions begin at 0.",
    "one position [first row of P]: All tokens get row 0 of P; token i gets row i.",
    "d**1/2: Python reads `d**1/2` as d/2: write `d**0.5`, or brackets.",
    lambda ids, E, P: E.shape[1] / 2 * E[ids] + P[: len(ids)],
)
def scaled_input(ids: Tensor, E: Tensor, P: Tensor) -> Tensor:
    """Check `scaled_input(ids, E, P)`: the rows of X as in 2017, from place 0 on."""
    root = E.shape[1] ** 0.5
    return root * E[ids] + P[: len(ids)]
