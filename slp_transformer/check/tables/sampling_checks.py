"""Checks for choosing the next word: temperature, top-k, top-p, draws, beams (chapter 6)."""

import math

import torch
from torch import Tensor

from slp_transformer.check.diagnosing.diagnosis import Inputs, Mistakes, check
from slp_transformer.check.diagnosing.random_inputs import RareCase, seeded_randn, vector

BOOK_LOGITS = vector(1.2, 0.9, 0.1, -0.5)  # the logits of the book's example: all, the, your, that


def _temperature_cases() -> list[Inputs]:
    u = 3 * seeded_randn(41)(7)
    book = [(BOOK_LOGITS, tau) for tau in (1.0, 0.5, 2.0)]
    return [*book, (vector(5, 4), 0.001), (u, 0.7), (u, 1000.0)]


@check(
    "`temperature`",
    _temperature_cases,
    "1/tau: The logits are multiplied by τ; divide, so that a small τ sharpens.",
    "after softmax [softmax first]: Probabilities are divided by τ; divide the logits, before the "
    "softmax.",
    "no effect [no / tau]: τ has no effect: divide the logits by it, before the softmax.",
    "overflow: With a small τ, powers become ∞, or 0 everywhere, and ∞/∞ and 0/0 are not numbers: "
    "divide the logits by τ and take torch.softmax of them.",
    lambda u, tau: (u / tau).exp() / (u / tau).exp().sum(-1, keepdim=True),
    "root of tau: The logits are divided by the root of τ.",
    "softmax twice [softmax of u]: The softmax is taken twice: of the logits, and then of "
    "probabilities.",
    "clamped: A small τ is replaced by a larger one: every τ above 0 is allowed.",
    lambda u, tau: torch.softmax(u / max(tau, 0.1), -1),
    "tau squared: The logits are divided by τ²; divide by τ.",
    "−u: The sign is reversed: the smallest logit gets the largest probability.",
    "power: Probabilities to the power of 1/τ do not sum to 1: divide by their sum.",
    lambda u, tau: torch.softmax(u, -1) ** (1 / tau),
    "power of tau: Probabilities are raised to the power of τ; it should be 1/τ.",
    lambda u, tau: (y := (torch.softmax(u, -1) ** tau)) / y.sum(-1, keepdim=True),
    "τ above the line alone: The exponentials below the line are not those of u / τ: divide the "
    "logits by τ there, too.",
    lambda u, tau: (u / tau).exp() / u.exp().sum(),
)
def temperature(u: Tensor, tau: float) -> Tensor:
    """Check `temperature(u, tau)`: return the probabilities softmax(u / τ)."""
    return torch.softmax(u / tau, -1)


@check(
    "temperature (exercise 7.5 of the Aug 2026 draft)",
    lambda: [()],
    "results 1 and 2 swapped: The limits are swapped: a small τ sharpens.",
    "smallest at 0: As τ goes to 0, the word with the largest logit gets 1, not the smallest.",
    lambda right: (vector(0, 0, 0, 1), right[1]),
    "0 at ∞: Probabilities sum to 1: as τ grows, each of the four words gets 1/4.",
    lambda right: (right[0], torch.zeros(4)),
    "unchanged at ∞: As τ grows, u/τ goes to 0 for every word: equal shares.",
    lambda right: (right[0], BOOK_LOGITS.softmax(-1)),
    "unchanged at ∞ (three digits): …",
    lambda right: (right[0], BOOK_LOGITS.softmax(-1).round(decimals=3)),
    "unchanged at ∞ (two digits): …",
    lambda right: (right[0], BOOK_LOGITS.softmax(-1).round(decimals=2)),
    "unchanged at 0: As τ goes to 0, the differences of u/τ grow beyond all bounds.",
    lambda right: (BOOK_LOGITS.softmax(-1), right[1]),
    "unchanged at 0 (three digits): …",
    lambda right: (BOOK_LOGITS.softmax(-1).round(decimals=3), right[1]),
    "unchanged at 0 (two digits): …",
    lambda right: (BOOK_LOGITS.softmax(-1).round(decimals=2), right[1]),
    "two words at 0: However close the second word is, u/τ leaves it behind as τ goes to 0.",
    lambda right: (vector(0.5, 0.5, 0, 0), right[1]),
    "equal at 0: Equal shares are the limit as τ grows; as it goes to 0, one word takes all.",
    lambda right: (right[1], right[1]),
    "one word at ∞: As τ grows, the words become equal; one word takes all as τ goes to 0.",
    lambda right: (right[0], right[0]),
    "1 at ∞: Probabilities sum to 1: as τ grows, each of the four words gets 1/4.",
    lambda right: (right[0], torch.ones(4)),
    "two words at ∞: As τ grows, all four words become equal, not two of them.",
    lambda right: (right[0], vector(0.5, 0.5, 0, 0)),
)
def limits_of_temperature() -> tuple[Tensor, Tensor]:
    """Check `limits_of_temperature()`: y of the book's logits as τ goes to 0, and to ∞."""
    return vector(1, 0, 0, 0), torch.full((4,), 0.25)


def _top_k_cases() -> list[Inputs]:
    u = 2 * seeded_randn(42)(11)
    given = [(BOOK_LOGITS, 2), (BOOK_LOGITS, 1), (vector(-3, -1, -2), 2), (u, 4), (u, 10), (u, 11)]
    given += [(vector(1000, 999, 0), 2), (vector(-1000, -1001, -1002), 2)]
    given.append((vector(0.02, 0.01, 0), 1))
    return [*given, (vector(2, 1, 1), 2)]  # either of the equal ones may stay, but not both


@check(
    "`top-k`",
    _top_k_cases,
    "not renormalized: The result does not sum to 1: cut before the softmax.",
    lambda u, right: u.softmax(-1) * (right > 0),
    "logits 0 [0 for −∞]: Words that are cut get the logit 0, which exp turns into 1; it should "
    "be −∞.",
    "smallest: The smallest are kept; it should be the largest.",
    lambda u, k: _softmax_of_kept(u, u.topk(k, largest=False).indices),
    "then sorted: The probabilities are sorted; each should keep its word's place.",
    "first k: The first k words are kept; it should be the k largest.",
    lambda u, k: _softmax_of_kept(u, torch.arange(k)),
    "greedy [then rounded]: Only the most probable word is left; keep k words.",
    "ordered all: Nothing is cut.",
    lambda u: u.softmax(-1),
    "more than k: Words as probable as the k-th stay as well, so that more than k are left.",
    lambda u, k: _softmax_of_kept(u, u >= u.topk(k).values[-1]),
    "above the k-th [k − 1 (at least 1)]: Only logits above the k-th largest stay, which is one "
    "too few; keep it, too.",
    "softmax twice [softmax of u]: The softmax is taken twice: of the logits, and then of "
    "probabilities.",
    "equal shares: The words that are left get equal shares; take the softmax of their logits.",
    lambda u, k: torch.zeros_like(u).scatter(0, u.topk(k).indices, 1 / k),
    "finite [-10 for −∞]: A finite number is not enough: a logit that is kept may be lower; use "
    "−∞.",
    "finite (−100) [-20 for −∞]: …",
    "places lost: Only k probabilities come back: keep each in its word's place, with 0 elsewhere.",
    lambda u, k: torch.softmax(u.topk(k).values, -1),
    "largest sizes: The logits with the largest absolute values are kept; keep the largest.",
    lambda u, k: _softmax_of_kept(u, u.abs().topk(k).indices),
    "shares of the logits: The logits are divided by their sum; take the softmax.",
    lambda u, right: (kept := u.where(right > 0, 0.0)) / kept.sum(),
    accepted=("last of equals",),
)
def top_k(u: Tensor, k: int, mistakes: Mistakes) -> Tensor:
    """Check `top_k(u, k)`: keep the k words with the largest logits; the others get 0."""
    return _softmax_of_kept(u, _sorted_indices(u, mistakes)[:k])


def _sorted_indices(u: Tensor, mistakes: Mistakes) -> Tensor:
    if "last of equals" in mistakes:  # which of them stays is open
        return len(u) - 1 - u.flip(0).argsort(descending=True, stable=True)
    return u.argsort(descending=True, stable=True)


def _softmax_of_kept(u: Tensor, kept: Tensor) -> Tensor:
    """The softmax of those words alone that are kept, by numbers or by booleans."""
    left = torch.full_like(u, -math.inf)
    left[kept] = u[kept]
    return left.softmax(-1)


def _top_p_cases() -> list[Inputs]:
    u = 2 * seeded_randn(43)(11)
    by_hand, mixed = vector(0.5, 0.25, 0.125, 0.125).log(), vector(0.1, 0.6, 0.3).log()
    given = [(by_hand, 0.6), (mixed, 0.7), (by_hand, 0.8), (mixed, 0.3), (u, 0.9), (u, 0.5)]
    given += [(by_hand, 0.755), (vector(1000, 999, 0), 0.9)]
    given += [(mixed, 0.25), (vector(0.1, 0.4, 0.2, 0.3).log(), 0.65)]
    return [*given, (vector(0, 0), 0.5)]  # one of them is enough


@check(
    "`top-p`",
    _top_p_cases,
    "crossing word dropped: The word with which the sum reaches p is dropped; it is the last that "
    "stays, since what is kept should have at least p.",
    lambda u, p, mistakes: _softmax_of_kept(
        u, (order := _sorted_indices(u, mistakes))[u.softmax(-1)[order].cumsum(-1) <= p + 1e-12]
    ),
    "crossing word dropped (not the first): …",
    lambda u, p, mistakes: _softmax_of_kept(
        u,
        (order := _sorted_indices(u, mistakes))[
            (u.softmax(-1)[order].cumsum(-1) <= p + 1e-12).index_fill(0, torch.tensor(0), True)
        ],
    ),
    "crossing word dropped (by a loop) [no − y]: …",
    "one too many: One word too many is kept: stop as soon as the sum has reached p.",
    lambda u, right, mistakes: _softmax_of_kept(
        u, _sorted_indices(u, mistakes)[: (right > 0).sum() + 1]
    ),
    "not renormalized: The result does not sum to 1: cut before the softmax.",
    lambda u, right: u.softmax(-1) * (right > 0),
    "logits 0 [0 for −∞]: Words that are cut get the logit 0, which exp turns into 1; it should "
    "be −∞.",
    "each above p: Each probability is compared with p; compare the sum from the largest on.",
    lambda u, p: _softmax_of_kept(u, u.softmax(-1) >= p),
    "each above p (or the largest): …",
    lambda u, p: _softmax_of_kept(u, _keep_largest_too(u.softmax(-1) >= p, u)),
    "each above p (equal ones cut): …",
    lambda u, p: _softmax_of_kept(u, u.softmax(-1) > p),
    "each above p (equal ones cut, or the largest): …",
    lambda u, p: _softmax_of_kept(u, _keep_largest_too(u.softmax(-1) > p, u)),
    "each above 1 − p: Each probability is compared with 1 − p; compare the sum with p.",
    lambda u, p: _softmax_of_kept(u, u.softmax(-1) >= 1 - p),
    "each above 1 − p (or the largest): …",
    lambda u, p: _softmax_of_kept(u, _keep_largest_too(u.softmax(-1) >= 1 - p, u)),
    "1 − p: This is the result for 1 − p. From the most probable word on, the sum is compared with "
    "p; if it begins with the least probable word, what is kept are the words above 1 − p.",
    "1 − p (equal sums kept): …",
    lambda p, solve: solve(p=1 - p + 1e-6),
    "share of the largest: Each probability is compared with p times the largest (min-p); it "
    "should be the sum from the most probable word on.",
    lambda u, p: _softmax_of_kept(u, (y := u.softmax(-1)) >= p * y.max()),
    "not sorted: The sum runs over the words in their order, not from the largest on.",
    lambda u, p: _softmax_of_first_words(u, torch.arange(len(u)), p),
    "least probable first: The sum begins with the least probable word, not the most.",
    lambda u, p: _softmax_of_first_words(u, u.argsort(stable=True), p),
    "least probable first (crossing word dropped): …",
    lambda u, p: _softmax_of_kept(
        u, (up := u.argsort(stable=True))[u.softmax(-1)[up].cumsum(-1) <= p]
    ),
    "then sorted: The probabilities are sorted; each should keep its word's place.",
    "gathered: Sorted probabilities are put back by y[order]; out[order] = y puts them back.",
    lambda u, right, mistakes: right[order := _sorted_indices(u, mistakes)][order],
    "mask of the sorted: What is kept of the sorted words is cut from the unsorted ones.",
    lambda u, p, mistakes: _softmax_of_kept(
        u, (s := u.softmax(-1)[_sorted_indices(u, mistakes)]).cumsum(-1) - s < p
    ),
    "percent [then one-hot]: Only the most probable word is left, as if p were percent; keep the "
    "fewest that have p, a share between 0 and 1.",
    "nothing cut [p = 1]: Nothing is cut.",
    "softmax twice: The softmax is taken twice: divide what is left by its sum.",
    lambda solve: (kept := solve("not renormalized")).where(kept > 0, -math.inf).softmax(-1),
    "beyond p [tanh of the probabilities]: Where the sum is exactly p, one word too many is kept.",
    "divided by p: What is kept is divided by p; divide it by its own sum, which may be more.",
    lambda u, p, right: u.softmax(-1) * (right > 0) / p,
    "two at least: Two words are kept at least; one is enough if it has p.",
    lambda u, right, mistakes: _softmax_of_kept(
        u, _sorted_indices(u, mistakes)[: max(2, int((right > 0).sum()))]
    ),
    "share of the words: p of the words are kept; keep those whose probabilities sum to p.",
    lambda u, p, mistakes: _softmax_of_kept(
        u, _sorted_indices(u, mistakes)[: max(1, int(p * len(u)))]
    ),
    "share of the words (rounded up) [mean of the probabilities]: …",
    "softmax twice (of shares): …",
    lambda right: right.where(right > 0, -math.inf).softmax(-1),
    accepted=("last of equals",),
)
def top_p(u: Tensor, p: float, mistakes: Mistakes) -> Tensor:
    """Check `top_p(u, p)`: keep the fewest words that have at least p; the others get 0."""
    return _softmax_of_first_words(u, _sorted_indices(u, mistakes), p)


def _softmax_of_first_words(u: Tensor, order: Tensor, p: float) -> Tensor:
    """The softmax of the words, in this order, before which the sum is below p."""
    y = torch.softmax(u, -1)[order]
    return _softmax_of_kept(u, order[y.cumsum(-1) - y < p - 1e-12])


def _keep_largest_too(kept: Tensor, u: Tensor) -> Tensor:
    return kept.index_fill(0, u.argmax(), True)


def _draw_cases() -> list[Inputs | RareCase]:
    y = vector(0.1, 0.15, 0.6, 0.15)
    given = [(y, dart) for dart in (0.05, 0.2, 0.3, 0.95)]
    given += [(vector(0, 0.5, 0.5), 0.0), (vector(0.25, 0.25, 0.5), 0.25)]
    given.append((vector(0.5, 0.49, 0.01), 0.995))
    uneven = vector(0.3, 0.05, 0.2, 0.1, 0.04, 0.22, 0.09)
    given += [(uneven, dart) for dart in (0.12, 0.33, 0.47, 0.66, 0.9)]
    rounded = torch.softmax(0.3 * torch.arange(7), -1)  # as float32, their sum is below 1
    reason = "Rounding can leave the sum of y below the dart: the last word is hit then."
    rare = RareCase(reason, y=rounded, dart=0.99999999)
    return [*given, rare]


@check(
    "`random`",
    _draw_cases,
    "not added up [no cumsum()]: The dart is compared with single probabilities; compare it with "
    "their sum so far.",
    "one too late: This is the word after the right one: add its probability, then compare.",
    lambda y, right: min(right + 1, len(y) - 1),
    "counted from 1: Words are counted from 1; the first is word 0.",
    lambda right: right + 1,
    "always the largest [largest of y]: This is always the most probable word: the dart is not "
    "used.",
    "times the dart: Probabilities are multiplied by the dart; compare it with their sum so far.",
    lambda y, dart: int((y * dart).argmax()),
    "equal shares [softmax of y]: Every word has the same share; word w has y[w].",
    "nearest: This is the word whose probability is nearest to the dart; find its stretch.",
    lambda y, dart: int((y - dart).abs().argmin()),
    "rank [y sorted]: This is the word's rank among the most probable; return its number in y.",
    "sorted: The words come sorted by probability; they should keep their order.",
    lambda y, solve: (ordered := y.sort(descending=True)).indices[solve(y=ordered.values)],
    "1 − dart: The stretches are laid from the last word on; lay them from the first.",
    "word before: This is the word before the right one.",
    lambda right: max(right - 1, 0),
    "0 for none: A dart at 0 always gives word 0, which may have probability 0: `if not dart` "
    "takes 0 for none.",
    lambda dart, right: right if dart else 0,
    "0 drawn [≤ for <]: A dart at 0 draws a word with probability 0: a stretch ends before its "
    "end, so compare with <, not ≤.",
    "probability: This is the word's probability; return its number.",
    lambda y, right: y[right],
    "−1 for the last: If the loop ends without a hit, the dart is on the last word: return "
    "len(y) − 1, not −1.",
    lambda y, right: -1 if right == len(y) - 1 else right,
    accepted=("past the end",),
)
def draw(y: Tensor, dart: float, mistakes: Mistakes) -> int:
    """Check `draw(y, dart)`: return the number of the word on whose stretch the dart lands.

    Where the sum of y is rounded below the dart, it may return `len(y)`, as searchsorted does.
    """
    hit = dart < y.cumsum(0)
    if not hit.any():
        return len(y) - ("past the end" not in mistakes)
    return int(hit.int().argmax())


def _beam_cases() -> list[Inputs]:
    by_hand = vector(0.5, 0.3, 0.2, 0.15, 0.05, 0.8).log().view(2, 3)
    made = [(vector(0.6, 0.4).log(), by_hand, 2), (vector(0.0), by_hand[:1], 2)]
    z = seeded_randn(45)
    made.append((-z(3).abs(), torch.log_softmax(z(3, 5), -1), 3))
    made.append((vector(-45, -70), torch.log_softmax(z(2, 300), -1), 4))
    made.append((vector(-1, -0.3, -2), torch.log_softmax(z(3, 2), -1), 4))
    return made


@check(
    "`beam-score`",
    _beam_cases,
    "scores = 0: The scores so far are left out; add them to the words' log probabilities.",
    "best of each: Each hypothesis keeps its own best word; keep the best of all extensions.",
    lambda scores, log_y: (
        order := (best := (scores[:, None] + log_y).max(1)).values.argsort(descending=True),
        best.indices[order],
        best.values[order],
    ),
    "first only: Only the first hypothesis is extended.",
    lambda scores, log_y, solve: solve(scores=scores[:1], log_y=log_y[:1]),
    "best alone: Only the best hypothesis so far is extended; all of them should be.",
    lambda scores, log_y, solve: (
        (best := scores.argmax())
        + (step := solve(scores=scores[best, None], log_y=log_y[best, None]))[0],
        *step[1:],
    ),
    "best alone (as many as there are): …",
    lambda log_y, width, solve: solve("best alone", width=min(width, log_y.shape[1])),
    "lowest: The lowest scores are kept; it should be the highest.",
    lambda scores, log_y, solve: (*(low := solve(scores=-scores, log_y=-log_y))[:2], -low[2]),
    "worst first: The worst of those kept comes first; begin with the best.",
    lambda right: tuple(one.flip(0) for one in right),
    "multiplied [· for +]: Scores are multiplied by log probabilities; logarithms are added.",
    "probabilities [exp of log_y]: Probabilities are added to the scores; add their logarithms.",
    "word not taken out [no % V]: The words are numbered through all hypotheses: take the "
    "remainder of the division by V.",
    "divided by B [0 for 1]: The place is divided by the number of hypotheses; divide it by V.",
    "words' scores: The scores are those of the words alone; return the sums with the scores so "
    "far.",
    lambda log_y, right: (*(step := right)[:2], log_y[step[0], step[1]]),
    "scores as probabilities: The scores come back as probabilities; they are logarithms.",
    lambda right: (*(step := right)[:2], step[2].exp()),
    "words first: The places are counted along the hypotheses: flatten the table [B × V] as it "
    "is, row after row.",
    lambda scores, log_y, width: (
        (place := (best := (scores[:, None] + log_y).T.flatten().topk(width)).indices)
        // log_y.shape[1],
        place % log_y.shape[1],
        best.values,
    ),
    "twice as many: Twice as many extensions come back; keep `width` of them.",
    lambda log_y, width, solve: solve(width=min(2 * width, log_y.numel())),
    "remainder by B: The word is the remainder of the division by B; divide by V.",
    lambda scores, log_y, right: (
        right[0],
        (right[0] * log_y.shape[1] + right[1]) % len(scores),
        right[2],
    ),
    "best of each (as many as asked for): …",
    lambda scores, log_y, width: (
        order := (best := (scores[:, None] + log_y).max(1)).values.topk(width).indices,
        best.indices[order],
        best.values[order],
    ),
    "best of each (in order): …",
    lambda scores, log_y, width: (
        torch.arange(len(scores))[:width],
        (best := (scores[:, None] + log_y).max(1)).indices[:width],
        best.values[:width],
    ),
)
def beam_step(scores: Tensor, log_y: Tensor, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Check `beam_step(scores, log_y, width)`: return hypotheses, words and scores of the best."""
    V = log_y.shape[1]
    best, places = (scores[:, None] + log_y).flatten().topk(width)
    return places // V, places % V, best


def _leak_cases() -> list[Inputs]:
    draw = seeded_randn(44)
    hand = [(vector(0, 0, 0, 0), 1), (vector(math.log(3), 5, 5), 1)]
    return [*hand, (2 * draw(7), 3), (2 * draw(5), 5)]


@check(
    "mask (exercise 7.2 of the Aug 2026 draft)",
    _leak_cases,
    "then 1 − it: This is the weight of visible tokens; return that of hidden ones.",
    "scores kept: The hidden scores are left as they are; set them to 0 before the softmax.",
    lambda scores, seen: scores.softmax(-1)[seen:].sum(),
    "−∞ [then cut]: With −∞ nothing leaks, which is the point; here the hidden scores are set to "
    "0.",
    "one token: This is the weight of one hidden token; return that of all together.",
    lambda scores, seen, right: right / max(len(scores) - seen, 1),
    "last alone: This is the weight of the last token; add up those of all hidden ones.",
    lambda scores, seen: torch.softmax(torch.cat([scores[:seen], 0 * scores[seen:]]), -1)[-1],
    "one too many [begins late]: Hidden tokens begin with scores[seen], which is not counted here.",
    "visible set to 0: The visible scores are set to 0; it should be the hidden ones, "
    "scores[seen:].",
    lambda scores, seen: torch.softmax(torch.cat([0 * scores[:seen], scores[seen:]]), -1)[
        seen:
    ].sum(),
    "ratio: This is the ratio of the hidden weight to the visible; return the hidden weight "
    "itself.",
    lambda right: (w := right) / (1 - w),
)
def leak(scores: Tensor, seen: int) -> Tensor:
    """Check `leak(scores, seen)`: the weight of scores[seen:] if these are set to 0, not −∞."""
    left = scores.clone()
    left[seen:] = 0.0
    return torch.softmax(left, -1)[seen:].sum()
