"""Checks for choosing the next word: temperature, top-k, top-p, draws, beams (chapter 6)."""

import math

import torch
from torch import Tensor

from slp_transformer.check.diagnosing import Case, Mistakes, RareCase, check
from slp_transformer.check.random_inputs import seeded_randn, vector

BOOK_LOGITS = vector(1.2, 0.9, 0.1, -0.5)  # the logits of the book's example: all, the, your, that


def _temperature_cases() -> list[Case]:
    u = 3 * seeded_randn(41)(7)
    given = [
        (BOOK_LOGITS, 1.0),
        (BOOK_LOGITS, 0.5),
        (BOOK_LOGITS, 2.0),
        (vector(5, 4), 0.001),
        (u, 0.7),
        (u, 1000.0),
    ]
    return [{"u": u, "tau": tau} for u, tau in given]


@check(
    "`temperature`",
    _temperature_cases,
    """
    1/tau: The logits are multiplied by τ; divide, so that a small τ sharpens.
    after softmax: Probabilities are divided by τ; divide the logits, before the softmax.
        = torch.softmax(u, -1) / tau
    no effect: τ has no effect: divide the logits by it, before the softmax.
        = torch.softmax(u, -1)
    overflow: With a small τ, exp gives ∞ or zeros alone, and ∞/∞ and 0/0 are not numbers: use
        torch.softmax, which subtracts the largest first.
        = (u / tau).exp() / (u / tau).exp().sum(-1, keepdim=True)
    root of tau: The logits are divided by the root of τ.
    softmax twice: The softmax is taken twice: of the logits, and then of probabilities.
        = torch.softmax(torch.softmax(u, -1) / tau, -1)
    clamped: A small τ is replaced by a larger one: every τ above 0 is allowed.
        = torch.softmax(u / max(tau, 0.1), -1)
    tau squared: The logits are divided by τ²; divide by τ.
    −u: The sign is reversed: the smallest logit gets the largest probability.
    power: Probabilities to the power of 1/τ do not sum to 1: divide by their sum.
        = torch.softmax(u, -1) ** (1 / tau)
    power of tau: Probabilities are raised to the power of τ; it should be 1/τ.
        = (y := (torch.softmax(u, -1) ** tau)) / y.sum(-1, keepdim=True)
    """,
)
def temperature(u: Tensor, tau: float, mistakes: Mistakes) -> Tensor:
    """Check `temperature(u, tau)`: return the probabilities softmax(u / τ)."""
    return torch.softmax(u / tau, -1)


@check(
    "temperature (exercise 7.5 of the Aug 2026 draft)",
    lambda: [{}],
    """
    results 1 and 2 swapped: The limits are swapped: a small τ sharpens.
    smallest at 0: As τ goes to 0, the word with the largest logit gets 1, not the smallest.
        = (vector(0, 0, 0, 1), torch.full((4,), 0.25))
    0 at ∞: Probabilities sum to 1: as τ grows, each of the four words gets 1/4.
        = (vector(1, 0, 0, 0), torch.zeros(4))
    unchanged at ∞: As τ grows, u/τ goes to 0 for every word: equal shares.
    unchanged at 0: As τ goes to 0, the differences of u/τ grow beyond all bounds.
    two words at 0: However close the second word is, u/τ leaves it behind as τ goes to 0.
    """,
)
def limits_of_temperature(mistakes: Mistakes) -> tuple[Tensor, Tensor]:
    """Check `limits_of_temperature()`: y of the book's logits as τ goes to 0, and to ∞."""
    y, even = torch.softmax(BOOK_LOGITS, -1), torch.full((4,), 0.25)
    cold = vector(0.5, 0.5, 0, 0) if "two words at 0" in mistakes else vector(1, 0, 0, 0)
    cold = y if "unchanged at 0" in mistakes else cold
    return cold, y if "unchanged at ∞" in mistakes else even


def _top_k_cases() -> list[Case]:
    u = 2 * seeded_randn(42)(11)
    given = [(BOOK_LOGITS, 2), (BOOK_LOGITS, 1), (vector(-3, -1, -2), 2), (u, 4), (u, 10), (u, 11)]
    given += [(vector(1000, 999, 0), 2), (vector(-1000, -1001, -1002), 2)]
    given.append((vector(0.02, 0.01, 0), 1))
    given.append((vector(2, 1, 1), 2))  # either of the equal ones may stay, but not both
    return [{"u": u, "k": k} for u, k in given]


@check(
    "`top-k`",
    _top_k_cases,
    """
    not renormalized: The result does not sum to 1: cut before the softmax.
    logits 0: Words that are cut get the logit 0, which exp turns into 1; it should be −∞.
    smallest: The smallest are kept; it should be the largest.
    then sorted: The probabilities are sorted; each should keep its word's place.
    first k: The first k words are kept; it should be the k largest.
    ordered all: Nothing is cut.
    more than k: Words as probable as the k-th stay as well, so that more than k are left.
    softmax twice: The softmax is taken twice: of the logits, and then of probabilities.
        = solve(u.softmax(-1), k)
    equal shares: The words that are left get equal shares; take the softmax of their logits.
        = torch.zeros_like(u).scatter(0, u.topk(k).indices, 1 / k)
    finite: A finite number is not enough: a logit that is kept may be lower; use −∞.
        = torch.full_like(u, -10).scatter(0, (top := u.topk(k)).indices, top.values).softmax(-1)
    finite (−100): …
        = torch.full_like(u, -100).scatter(0, (top := u.topk(k)).indices, top.values).softmax(-1)
    places lost: Only k probabilities come back: keep each in its word's place, with 0 elsewhere.
        = torch.softmax(u.topk(k).values, -1)
    """,
    accepted=("last of equals",),
)
def top_k(u: Tensor, k: int, mistakes: Mistakes) -> Tensor:
    """Check `top_k(u, k)`: keep the k words with the largest logits; the others get 0."""
    order = _sorted_indices(u, "smallest" not in mistakes, mistakes)
    order = torch.arange(len(u)) if "first k" in mistakes else order
    keep = torch.zeros(len(u), dtype=torch.bool)
    keep[order[:k]] = True
    keep = u >= u[keep].min() if "more than k" in mistakes else keep
    return _keep_and_normalize(u, keep, mistakes, none="ordered all")


def _sorted_indices(u: Tensor, descending: bool, mistakes: Mistakes) -> Tensor:
    if "last of equals" in mistakes:  # which of them stays is open
        return len(u) - 1 - u.flip(0).argsort(descending=descending, stable=True)
    return u.argsort(descending=descending, stable=True)


def _keep_and_normalize(u: Tensor, keep: Tensor, mistakes: Mistakes, none: str) -> Tensor:
    keep = torch.ones_like(keep) if none in mistakes else keep
    if "not renormalized" in mistakes:
        return torch.softmax(u, -1) * keep
    left = u.masked_fill(~keep, 0.0 if "logits 0" in mistakes else -math.inf)
    return torch.softmax(left, -1)


def _top_p_cases() -> list[Case]:
    u = 2 * seeded_randn(43)(11)
    by_hand = vector(0.5, 0.25, 0.125, 0.125).log()
    mixed = vector(0.1, 0.6, 0.3).log()
    given = [(by_hand, 0.6), (mixed, 0.7), (by_hand, 0.8), (mixed, 0.3), (u, 0.9), (u, 0.5)]
    given += [(by_hand, 0.755), (vector(1000, 999, 0), 0.9)]
    given.append((vector(0, 0), 0.5))  # one of them is enough
    return [{"u": u, "p": p} for u, p in given]


@check(
    "`top-p`",
    _top_p_cases,
    """
    crossing word dropped: The word with which the sum reaches p is dropped; it is the last that
        stays, since what is kept should have at least p.
    crossing word dropped (not the first): …
    crossing word dropped (by a loop): …
        = (kept := (y := u.softmax(-1)) * torch.stack([y[y >= one].sum() < p - 1e-12 for one in y])
          ) / kept.sum()
    one too many: One word too many is kept: stop as soon as the sum has reached p.
    not renormalized: The result does not sum to 1: cut before the softmax.
    logits 0: Words that are cut get the logit 0, which exp turns into 1; it should be −∞.
    each above p: Each probability is compared with p; compare the sum from the largest on.
    each above 1 − p: Each probability is compared with 1 − p; compare the sum with p.
    share of the largest: Each probability is compared with p times the largest (min-p); it should
        be the sum from the most probable word on.
    not sorted: The sum runs over the words in their order, not from the largest on.
    least probable first: The sum begins with the least probable word, not the most.
    then sorted: The probabilities are sorted; each should keep its word's place.
    percent: p is treated as percent; it is a share between 0 and 1.
    nothing cut: Nothing is cut.
    softmax twice: The softmax is taken twice: divide what is left by its sum.
        = (kept := solve(u, p, 'not renormalized')).where(kept > 0, -math.inf).softmax(-1)
    beyond p: Where the sum is exactly p, one word too many is kept.
    """,
    accepted=("last of equals",),
)
def top_p(u: Tensor, p: float, mistakes: Mistakes) -> Tensor:
    """Check `top_p(u, p)`: keep the fewest words that have at least p; the others get 0."""
    y = torch.softmax(u, -1)
    p = p / 100 if "percent" in mistakes else p
    order = _sorted_indices(y, "least probable first" not in mistakes, mistakes)
    order = torch.arange(len(u)) if "not sorted" in mistakes else order
    before = y[order].cumsum(-1) - y[order]
    stay = before < p + (1e-6 if "beyond p" in mistakes else -1e-12)
    if "crossing word dropped" in mistakes or "crossing word dropped (not the first)" in mistakes:
        stay = before + y[order] <= p + 1e-12
        stay[0] |= "crossing word dropped (not the first)" in mistakes
    if "one too many" in mistakes:
        stay = stay | stay.roll(1)
        stay[0] = True
    keep = torch.zeros(len(u), dtype=torch.bool)
    keep[order[stay]] = True
    keep = y >= p if "each above p" in mistakes else keep
    keep = y >= p * y.max() if "share of the largest" in mistakes else keep
    keep = y >= 1 - p if "each above 1 − p" in mistakes else keep
    return _keep_and_normalize(u, keep, mistakes, none="nothing cut")


def _draw_cases() -> list[Case]:
    y = vector(0.1, 0.15, 0.6, 0.15)
    given = [(y, dart) for dart in (0.05, 0.2, 0.3, 0.95)]
    given += [(vector(0, 0.5, 0.5), 0.0), (vector(0.25, 0.25, 0.5), 0.25)]
    rounded = torch.softmax(0.3 * torch.arange(7), -1)  # as float32, their sum is below 1
    rare = RareCase(y=rounded, dart=0.99999999)
    return [*({"y": y, "dart": dart} for y, dart in given), rare]


@check(
    "`random`",
    _draw_cases,
    """
    not added up: The dart is compared with single probabilities; compare it with their sum so
        far.
    one too late: This is the word after the right one: add its probability, then compare.
    counted from 1: Words are counted from 1; the first is word 0.
    always the largest: This is always the most probable word: the dart is not used.
        = int(y.argmax())
    equal shares: Every word has the same share; word w has y[w].
        = int(dart * len(y))
    rank: This is the word's rank among the most probable; return its number in y.
    sorted: The words come sorted by probability; they should keep their order.
    1 − dart: The stretches are laid from the last word on; lay them from the first.
    word before: This is the word before the right one.
        = max(right - 1, 0)
    0 for none: A dart at 0 always gives word 0, which may have probability 0: `if not dart` takes
        0 for none.
        = right if dart else 0
    0 drawn: A dart at 0 draws a word with probability 0: a stretch ends before its end, so
        compare with <, not ≤.
    probability: This is the word's probability; return its number.
        = y[right]
    """,
    accepted=("past the end",),
)
def draw(y: Tensor, dart: float, mistakes: Mistakes) -> int:
    """Check `draw(y, dart)`: return the number of the word on whose stretch the dart lands.

    Where the sum of y is rounded below the dart, it may return `len(y)`, as searchsorted does.
    """
    by_rank = mistakes & {"rank", "sorted"}
    order = y.argsort(descending=True) if by_rank else torch.arange(len(y))
    ends = y[order] if "not added up" in mistakes else y[order].cumsum(0)
    hit = (dart <= ends) if "0 drawn" in mistakes else (dart < ends)
    if "past the end" in mistakes and not hit.any():
        return len(y)
    place = int(hit.int().argmax()) if hit.any() else len(y) - 1
    place = min(place + ("one too late" in mistakes), len(y) - 1)
    place += "counted from 1" in mistakes
    return int(order[place]) if "sorted" in mistakes else place


def _beam_cases() -> list[Case]:
    by_hand = vector(0.5, 0.3, 0.2, 0.15, 0.05, 0.8).log().view(2, 3)
    made = [(vector(0.6, 0.4).log(), by_hand, 2), (vector(0.0), by_hand[:1], 2)]
    z = seeded_randn(45)
    made.append((-z(3).abs(), torch.log_softmax(z(3, 5), -1), 3))
    made.append((vector(-45, -70), torch.log_softmax(z(2, 300), -1), 4))
    return [{"scores": s, "log_y": log_y, "width": width} for s, log_y, width in made]


@check(
    "`beam-score`",
    _beam_cases,
    """
    scores = 0: The scores so far are left out; add them to the words' log probabilities.
    best of each: Each hypothesis keeps its own best word; keep the best of all extensions.
    first only: Only the first hypothesis is extended.
    lowest: The lowest scores are kept; it should be the highest.
    worst first: The worst of those kept comes first; begin with the best.
    multiplied: Scores are multiplied by log probabilities; logarithms are added.
    probabilities: Probabilities are added to the scores; add their logarithms.
    word not taken out: The words are numbered through all hypotheses: take the remainder of the
        division by V.
    divided by B: The place is divided by the number of hypotheses; divide it by V.
    words' scores: The scores are those of the words alone; return the sums with the scores so
        far.
        = (*(step := right)[:2], log_y[step[0], step[1]])
    scores as probabilities: The scores come back as probabilities; they are logarithms.
        = (*(step := right)[:2], step[2].exp())
    """,
)
def beam_step(
    scores: Tensor, log_y: Tensor, width: int, mistakes: Mistakes
) -> tuple[Tensor, Tensor, Tensor]:
    """Check `beam_step(scores, log_y, width)`: return hypotheses, words and scores of the best."""
    B, V = log_y.shape
    totals = scores[:, None] + (log_y.exp() if "probabilities" in mistakes else log_y)
    totals = scores[:, None] * log_y if "multiplied" in mistakes else totals
    if "best of each" in mistakes:
        totals = totals.masked_fill(totals < totals.amax(1, keepdim=True), -math.inf)
        width = B
    totals = totals[:1] if "first only" in mistakes else totals
    best, places = totals.flatten().topk(width, largest="lowest" not in mistakes)
    if "worst first" in mistakes:
        best, places = best.flip(0), places.flip(0)
    size = B if "divided by B" in mistakes else V
    words = places if "word not taken out" in mistakes else places % size
    return places // size, words, best


def _leak_cases() -> list[Case]:
    draw = seeded_randn(44)
    return [
        {"scores": vector(0, 0, 0, 0), "seen": 1},
        {"scores": vector(math.log(3), 5, 5), "seen": 1},
        {"scores": 2 * draw(7), "seen": 3},
        {"scores": 2 * draw(5), "seen": 5},
    ]


@check(
    "mask (exercise 7.2 of the Aug 2026 draft)",
    _leak_cases,
    """
    then 1 − it: This is the weight of visible tokens; return that of hidden ones.
    scores kept: The hidden scores are left as they are; set them to 0 before the softmax.
    −∞: With −∞ nothing leaks, which is the point; here the hidden scores are set to 0.
    one token: This is the weight of one hidden token; return that of all together.
    one too many: Hidden tokens begin with scores[seen], which is not counted here.
    visible set to 0: The visible scores are set to 0; it should be the hidden ones,
        scores[seen:].
        = torch.softmax(torch.cat([0 * scores[:seen], scores[seen:]]), -1)[seen:].sum()
    ratio: This is the ratio of the hidden weight to the visible; return the hidden weight itself.
        = (w := right) / (1 - w)
    """,
)
def leak(scores: Tensor, seen: int, mistakes: Mistakes) -> Tensor:
    """Check `leak(scores, seen)`: the weight of scores[seen:] if these are set to 0, not −∞."""
    left = scores.clone()
    if "scores kept" not in mistakes:
        left[seen:] = -math.inf if "−∞" in mistakes else 0.0
    alpha = torch.softmax(left, -1)
    hidden = alpha[seen + ("one too many" in mistakes) :]
    if "one token" in mistakes:
        hidden = hidden[:1]
    return hidden.sum()
