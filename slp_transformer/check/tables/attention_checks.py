"""Checks for attention with one head: softmax, scores, the equation (chapters 1 and 3)."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from slp_transformer.check.diagnosing.diagnosis import Inputs, Mistakes, check, option_for_mistake
from slp_transformer.check.diagnosing.random_inputs import matrix, seeded_randn, vector
from slp_transformer.check.tables.mask_checks import INF, future_mask

SCALES = (
    "no scaling: The scores are not divided by √d_k.",
    "scaled by d_k: The scores are divided by d_k instead of its square root.",
    "scaled by d_k²: The scores are divided by the square of d_k instead of its root.",
    "d_k**1/2: Python reads `/ d_k**1/2` as `/ d_k / 2`: write `d_k**0.5`, or brackets.",
    "(d_k**1/2): Python reads `(d_k**1/2)` as d_k/2: write `d_k**0.5`, or `d_k**(1/2)`.",
    "rounded root: √d_k is rounded to a whole number: divide by d_k**0.5, without int or //.",
    "multiplied by the root: The scores are multiplied by √d_k instead of divided.",
)


def scale(d_k: int, mistakes: Mistakes) -> float:
    """Return the divisor of the scores."""
    divisors = {
        "no scaling": 1,
        "scaled by d_k": d_k,
        "d_k**1/2": 2 * d_k,
        "(d_k**1/2)": d_k / 2,
        "scaled by d_k²": d_k**2,
        "rounded root": int(d_k**0.5),
        "multiplied by the root": d_k**-0.5,
    }
    return float(option_for_mistake(mistakes, divisors, d_k**0.5))


OF_ATTENTION = (
    "scaled by √d_v: The scores are divided by √d_v, the size of values, not by √d_k.",
    lambda Q, V, solve: solve(Q=Q * (Q.shape[-1] / V.shape[-1]) ** 0.5),
    "scaled by √(d_k·d_v): The scores are divided by √(d_k·d_v); divide by √d_k alone.",
    lambda Q, V, solve: solve(Q=Q / V.shape[-1] ** 0.5),
    "scaled after softmax: The division by √d_k comes after the softmax, not before it.",
    lambda Q, solve: solve(Q=Q * Q.shape[-1] ** 0.5) / Q.shape[-1] ** 0.5,
    "values scaled: The result, or V, is divided by √d_k as well; only the scores should be.",
    lambda K, right: right / K.shape[-1] ** 0.5,
    "cosines: Queries and keys are divided by their norms, so that the scores are cosines; the "
    "scores are dot products, divided by √d_k.",
    lambda Q, K, solve: solve(
        Q=F.normalize(Q, dim=-1) * Q.shape[-1] ** 0.5, K=F.normalize(K, dim=-1)
    ),
    "scaled cosines: Queries and keys are divided by their norms first; leave them as they are.",
    lambda Q, K, solve: solve(Q=F.normalize(Q, dim=-1), K=F.normalize(K, dim=-1)),
    "norms of the keys: The scores are divided by the norms of the keys; divide by √d_k.",
    lambda Q, K, solve: solve(Q=Q * Q.shape[-1] ** 0.5, K=K / K.norm(dim=-1, keepdim=True)),
    "norms of the queries: The scores are divided by the norms of the queries; divide by √d_k.",
    lambda Q, solve: solve(Q=Q * Q.shape[-1] ** 0.5 / Q.norm(dim=-1, keepdim=True)),
    "scores negated [−Q]: The sign of the scores is reversed: the smallest weighs most.",
)
# In what they make of attention, every head can make them.
OF_EVERY_HEAD = tuple(row for row in OF_ATTENTION if isinstance(row, str))


def _softmax_cases() -> list[Inputs]:
    draw = seeded_randn(1)
    rows = [(0, math.log(3)), (1, 2, 3), (1000, 1001), (-1000, -1000, -1002), (0, 0, 3000)]
    matrices = [matrix((0, 1), (0, 0), (2, 0)), matrix((1000, 1001), (0, 1))]
    return [(x,) for x in (*(vector(*row) for row in rows), *matrices, 3 * draw(7), 3 * draw(5, 7))]


@check(
    "`simple-softmax`",
    _softmax_cases,
    "overflow [no − largest]: Large scores overflow: exp of them is ∞, and ∞/∞ is not a number. "
    "Subtract the largest score first; it cancels in the fraction.",
    "not normalized [no / total]: The exponentials are not divided by their sum.",
    "largest of all [amax over axis None]: The largest score of the whole matrix is subtracted, "
    "so that all powers of a row with small scores become 0, and 0/0 is not a number: subtract "
    "each row's own.",
    "other axis: The softmax runs over the wrong axis: each row should sum to 1.",
    lambda scores: scores.softmax(0),
    "all entries: The entries of the whole matrix sum to 1; each row should.",
    lambda scores, solve: solve(scores=scores.flatten()).view_as(scores),
    "logarithm: These are the logarithms of the weights, as of log_softmax.",
    lambda scores: scores.log_softmax(-1),
    "plain shares: The scores are divided by their sum, without exp.",
    lambda scores: scores / scores.sum(-1, keepdim=True),
    "sizes alone: The scores' absolute values are divided by their sum, without exp.",
    lambda scores: (sizes := scores.abs()) / sizes.sum(-1, keepdim=True),
    "ReLU for exp: Scores below 0 are cut, and there is no exp: take the shares of exp.",
    lambda scores: (cut := scores.relu()) / cut.sum(-1, keepdim=True),
    "squares: The shares are those of the squares; take them of exp.",
    lambda scores: (squares := scores.square()) / squares.sum(-1, keepdim=True),
    "standardized: The scores are brought to mean 0 and deviation 1 before exp; leave their scale.",
    lambda scores: (
        (scores - scores.mean(-1, keepdim=True)) / (scores.std(-1, keepdim=True) + 1e-6)
    ).softmax(-1),
    "exp twice: The sum takes exp of what is exp already.",
    lambda scores: (
        (powers := (scores - scores.amax(-1, keepdim=True)).exp())
        / powers.exp().sum(-1, keepdim=True)
    ),
    "subtracted after exp: The largest is subtracted after exp; subtract it from the scores.",
    lambda scores: (
        (left := (p := scores.float().exp()) - p.amax(-1, keepdim=True))
        / left.sum(-1, keepdim=True)
    ),
    "sigmoid: Each score goes through a sigmoid; the weights should sum to 1.",
    lambda scores: scores.sigmoid(),
    "sigmoid for exp: The shares are those of sigmoids, which stay below 1; take them of exp.",
    lambda scores: (powers := scores.sigmoid()) / powers.sum(-1, keepdim=True),
    "−scores: The sign is reversed: the smallest score gets the largest weight.",
    "base 2 [exp2 for exp]: The powers have base 2; they should have base e, as `exp` takes them.",
    "mean subtracted [mean for amax]: What is subtracted is not the largest score, so a score far "
    "above the others still overflows: subtract the largest.",
    "largest subtracted once: The largest score is subtracted above the line alone; the sum below "
    "needs the same.",
    lambda scores: (
        (scores - scores.amax(-1, keepdim=True)).exp() / scores.exp().sum(-1, keepdim=True)
    ),
    "base 10: The powers have base 10; they should have base e, as `exp` takes them.",
    lambda scores: ((scores - scores.amax(-1, keepdim=True)) * math.log(10)).softmax(-1),
    "divided by the largest: The scores are divided by the largest one; subtract it.",
    lambda scores: (scores / scores.amax(-1, keepdim=True)).softmax(-1),
)
def softmax(scores: Tensor) -> Tensor:
    """Check `softmax(scores)`: return positive weights that sum to 1."""
    largest = scores.amax(-1, keepdim=True)
    powers = (scores - largest).exp()
    total = powers.sum(-1, keepdim=True)
    return powers / total


def _sum_cases() -> list[Inputs]:
    draw = seeded_randn(2)
    alpha = torch.softmax(draw(5), -1)
    return [
        (vector(0.75, 0.25), matrix((4, 0), (0, 8))),
        (vector(0.5, 0.25, 0.25), matrix((4, 0), (0, 8), (4, 4))),
        (alpha, draw(5, 3)),
        (alpha[:3] / alpha[:3].sum(), draw(7, 3)),
    ]


@check(
    "`simple-sum`",
    _sum_cases,
    "alpha_i = 1: The rows are added up without their weights.",
    "mean [alpha_i / width]: The sum is divided by the number of rows; weights sum to 1.",
    "mean of the rows [mean of alpha_i]: The rows are averaged; each counts by its weight.",
    "mean of all rows: The sum is divided by the number of rows; weights sum to 1.",
    lambda rows, right: right / len(rows),
    "all rows without weights: The rows are added up without weights, even those without.",
    lambda rows: rows.sum(0),
    "last row left out: The last weight and its row are left out: j runs up to i.",
    lambda alpha_i, solve: solve(alpha_i=alpha_i[:-1]),
    "first row left out: The first weight and its row are left out: j begins at the first.",
    lambda alpha_i, rows, solve: solve(alpha_i=alpha_i[1:], rows=rows[1:]),
    "sum over features: The sum runs over the features; it should run over the rows.",
    lambda alpha_i, rows: (alpha_i[:, None] * rows[: len(alpha_i)]).sum(1),
    "row i alone: This is the row of token i alone; weight j belongs to row j.",
    lambda alpha_i, rows: rows[len(alpha_i) - 1],
    "weights twice [alpha_i squared]: Each weight is used squared.",
    "not added up: Only the last part is left: add each to the sum, total = total + ….",
    lambda alpha_i, rows: alpha_i[-1] * rows[len(alpha_i) - 1],
    "row before [rows moved down]: Weight j is used with row j − 1; it belongs to row j.",
    "softmax again [softmax of alpha_i]: The softmax is taken once more; `alpha_i` are weights.",
    "returned too early: Only the first part is left: return after the loop, not in it.",
    lambda alpha_i, rows: alpha_i[0] * rows[0],
    "all rows [ends late]: There may be more rows than weights: take only `rows[: len(alpha_i)]`.",
    "last rows: The last rows are taken; weight j belongs to row j, counted from the first.",
    lambda alpha_i, rows: alpha_i @ rows[-len(alpha_i) :],
    "row after: Weight j is used with row j + 1; it belongs to row j.",
    lambda alpha_i, rows: alpha_i @ rows[(torch.arange(len(alpha_i)) + 1).clamp(max=len(rows) - 1)],
    "begun with a row: The sum begins with the first row itself; begin with 0.",
    lambda rows, right: rows[0] + right,
)
def weighted_sum(alpha_i: Tensor, rows: Tensor) -> Tensor:
    """Check `weighted_sum(alpha_i, rows)`: add up the first rows, each times its weight."""
    return alpha_i @ rows[: len(alpha_i)]


def _score_cases() -> list[Inputs]:
    draw = seeded_randn(3)
    by_hand = [(vector(2, 0, 0, 0), vector(3, 1, 0, 0)), (vector(1, 2), vector(3, -4))]
    return [*by_hand, (draw(7), draw(7))]


@check(
    "`scaled-score`",
    _score_cases,
    *SCALES,
    "cosine: The dot product is divided by the norms of q and k: that is their cosine.",
    lambda q_i, k_j: (q_i * k_j).sum() / (q_i.norm() * k_j.norm()),
    "distance: This is minus the squared distance of q and k; a score is their dot product.",
    lambda q_i, k_j: -(q_i - k_j).square().sum() / len(k_j) ** 0.5,
    "root of the product: The root of the dot product is taken; divide it by the root of d_k.",
    lambda q_i, k_j: (q_i @ k_j).abs() ** 0.5,
    "norm of k: The product is divided by the norm of k; divide it by √d_k.",
    lambda q_i, k_j: q_i @ k_j / k_j.norm(),
    "root of all: The root is taken of the whole fraction; it belongs to d_k alone.",
    lambda q_i, k_j: (q_i @ k_j / len(k_j)) ** 0.5,
    "norm of q: The product is divided by the norm of q; divide it by √d_k.",
    lambda q_i, k_j: q_i @ k_j / q_i.norm(),
    "norm of k (its root): The product is divided by the root of the norm of k; divide by √d_k.",
    lambda q_i, k_j: q_i @ k_j / k_j.norm() ** 0.5,
    "norm of q (its root): The product is divided by the root of the norm of q; divide by √d_k.",
    lambda q_i, k_j: q_i @ k_j / q_i.norm() ** 0.5,
    "all pairs: Every number of q is multiplied by every number of k; multiply those at the same "
    "place, and add.",
    lambda q_i, k_j: q_i.sum() * k_j.sum() / len(k_j) ** 0.5,
)
def scaled_score(q_i: Tensor, k_j: Tensor, mistakes: Mistakes) -> Tensor:
    """Check `scaled_score(q_i, k_j)`: return the score of one query and one key, a number."""
    return (q_i * k_j).sum() / scale(len(k_j), mistakes)


def _simple_cases() -> list[Inputs]:
    draw = seeded_randn(4)
    X = matrix((0, 2), (2, 0), (0, 1), (1, 1))
    more = draw(5, 3)
    large = matrix((30, 0), (-30, 0), (24, 18))
    return [(X, 2), (X, 0), (more, 3), (more, 4), (draw(11, 3), 10), (large, 2)]


@check(
    "`simple-sum` to `simple-softmax`",
    _simple_cases,
    "itself left out [no + 1]: Token i does not read itself: the rows should be X[:i + 1].",
    "the future: Token i reads later tokens: the rows should stop at X[:i + 1].",
    lambda X, i: torch.softmax(X @ X[i], -1) @ X,
    "one too many [2 for 1]: Token i reads one token too many: X[:i + 1] ends with row i.",
    "no softmax [no softmax()]: The scores are used as weights, without softmax.",
    "over all: The softmax also counts tokens after i: those up to i should sum to 1.",
    lambda X, i: torch.softmax(X @ X[i], -1)[: i + 1] @ X[: i + 1],
    "scaled: These scores are divided by √d; the simplest attention does not scale.",
    lambda X, i: torch.softmax(X[: i + 1] @ X[i] / X.shape[1] ** 0.5, -1) @ X[: i + 1],
    "last token asks: The last token asks; token i should: its row is X[i].",
    lambda X, i: torch.softmax(X[: i + 1] @ X[-1], -1) @ X[: i + 1],
    "the weights [no @ seen]: It returns the weights; return the weighted sum of the rows.",
    "last output: This is the output of the last token, for every i; return that of token i.",
    lambda X, solve: solve(i=len(X) - 1),
    "first token asks: The first token asks; token i should: its row is X[i].",
    lambda X, i: torch.softmax(X[: i + 1] @ X[0], -1) @ X[: i + 1],
    "mean: All rows have the same weight: the weights are the softmax of the scores.",
    lambda X, i: X[: i + 1].mean(0),
    "itself left out (guarded): …",
    lambda X, i: torch.softmax(X[: max(i, 1)] @ X[i], -1) @ X[: max(i, 1)],
    "weights for features: The softmax is taken of each feature by itself: add the products of a "
    "row up to one score first.",
    lambda X, i: ((seen := X[: i + 1]) * (seen * X[i]).softmax(0)).sum(0),
    "residual: Token i's own row is added once more; its weight already counts it.",
    lambda X, i, right: X[i] + right,
    "first token left out: The first token is never read: the rows begin with X[0].",
    lambda X, i: torch.softmax((seen := X[min(i, 1) : i + 1]) @ X[i], -1) @ seen,
    "first token left out (of itself) [begins late]: …",
    "all ask: All tokens up to i ask, and their outputs are averaged; token i alone asks.",
    lambda X, i: (torch.softmax((seen := X[: i + 1]) @ seen.T, -1) @ seen).mean(0),
    "distances: The scores are minus squared distances; take the dot products.",
    lambda X, i: torch.softmax(-((seen := X[: i + 1]) - X[i]).square().sum(1), -1) @ seen,
    "weights reversed: The weights meet the rows in reverse order; weight j belongs to row j.",
    lambda X, i: torch.softmax((seen := X[: i + 1]) @ X[i], -1).flip(0) @ seen,
    "near tokens alone: Only the last two tokens are read; all up to i should be.",
    lambda X, i: torch.softmax((seen := X[max(i - 1, 0) : i + 1]) @ X[i], -1) @ seen,
    "counted from 1 [i − 1]: This is the output of token i − 1: i counts from 0, so that token i "
    "is X[i] and reads X[:i + 1].",
    "counted from 1 (guarded) [i − 1 (at least 0)]: …",
    "cosines: The scores are cosines; take the dot products as they are.",
    lambda X, i: (
        torch.softmax((Y := X / X.norm(dim=1, keepdim=True))[: i + 1] @ Y[i], -1) @ X[: i + 1]
    ),
    "hidden scores 0: Later tokens have the score 0, which exp turns into 1: leave them out.",
    lambda X, i: torch.softmax((X @ X[i]).where(torch.arange(len(X)) <= i, 0.0), -1) @ X,
    "own row: All weights multiply the token's own row; weight j belongs to row j.",
    lambda X, i: X[i],
)
def simple_attention(X: Tensor, i: int) -> Tensor:
    """Check `simple_attention(X, i)`: return a_i, for i from 0, without matrices."""
    seen = X[: i + 1]
    return torch.softmax(seen @ X[i], -1) @ seen


def _attention_cases() -> list[Inputs]:
    draw = seeded_randn(5)
    one, pair = matrix((2, 0, 0, 0)), matrix((1, 0, 0, 0), (0, 1, 0, 0))
    square = matrix((0, 0), (2, 0)), matrix((3, 0), (0, 1)), matrix((8, 0), (0, 4))
    large = matrix((1000,), (1,)), matrix((1,), (0,)), matrix((8,), (4,))
    padding, nothing = torch.zeros(3, 5), future_mask(3)
    padding[:, 3:] = -INF
    nothing[1] = -INF
    return [
        (one, pair, matrix((9,), (1,)), torch.zeros(1, 2)),
        (*square, future_mask(2)),
        (*large, torch.zeros(2, 2)),
        (draw(3, 5), draw(3, 5), draw(3, 2), future_mask(3)),
        (draw(3, 5), draw(5, 5), draw(5, 7), padding),
        (300 * draw(3, 2), 300 * draw(3, 2), draw(3, 5), future_mask(3)),
        (draw(3, 3), draw(3, 3), draw(3, 3), future_mask(3)),
        (draw(3, 2), draw(3, 2), draw(3, 2), nothing),
    ]


FILLED = {"hidden scores 0": 0.0, "-1e9": -1e9, "finite mask": -100.0}
SOFTMAX_AXES = {"other axis": -2, "softmax over queries": -2, "softmax over heads": 0}
NAN_WHERE_NOTHING_IS_SEEN = {"nothing seen is NaN", *SOFTMAX_AXES}
SOFTMAX_AXES["softmax over heads (zeros)"] = 0


@check(
    "`head-par`",
    _attention_cases,
    *SCALES,
    "all entries: The softmax is taken of the whole matrix; each row should sum to 1.",
    lambda Q, K, V, mask: (
        (Q @ K.mT / Q.shape[-1] ** 0.5 + mask).flatten(-2).softmax(-1).view(*mask.shape) @ V
    ),
    "causal as well: The future is hidden beside what the mask hides: add the mask alone.",
    lambda mask, solve: solve(mask=mask + torch.full_like(mask, -INF).triu(1)),
    "scaled by √N: The scores are divided by the root of the number of tokens, not √d_k.",
    lambda Q, solve: solve(Q=Q * (Q.shape[-1] / Q.shape[-2]) ** 0.5),
    "scaled by √N (keys): …",
    lambda Q, K, solve: solve(Q=Q * (Q.shape[-1] / K.shape[-2]) ** 0.5),
    "other axis: The softmax runs over the queries; each row of weights should sum to 1.",
    "no softmax: The scores are used as weights, without softmax.",
    "causal in any case: The future is hidden whatever the mask: add the mask that is given.",
    lambda mask, solve: solve(mask=torch.full_like(mask, -INF).triu(1)),
    "causal in any case (square): …",  # which stops where there are more keys than queries
    lambda Q, solve: solve(mask=torch.full((len(Q), len(Q)), -INF).triu(1)),
    "mask = 0: The mask is not used: each query sees every key, including later ones.",
    "equal weights [Q = 0]: All visible keys get the same weight: take the softmax of scores.",
    "weak mask: A finite number stands for −∞: hidden keys keep some weight.",
    lambda mask, solve: solve(mask=mask.clamp(min=-1)),
    "weak mask (−10): …",
    lambda mask, solve: solve(mask=mask.clamp(min=-10)),
    "mask after softmax: The mask comes after the softmax: a row no longer sums to 1.",
    lambda K, V, mask, solve: (
        solve(V=torch.eye(K.shape[-2]).to(K), mask=torch.zeros_like(mask)).where(mask == 0, 0) @ V
    ),
    "mask added after softmax: The mask is added to the weights; add it to the scores.",
    lambda V, mask, solve: solve(mask=torch.zeros_like(mask)) + mask @ V,
    "mask multiplied [· for +]: The scores are multiplied with the mask; it should be added.",
    "mask turned: The mask is inverted: it hides what should be visible.",
    lambda mask, solve: solve(mask=torch.where(mask == -INF, 0.0, -INF)),
    "hidden scores 0: Hidden scores are 0 instead of −∞: exp(0) = 1 still gives weight.",
    "−mask: The mask is subtracted: −(−∞) gives hidden keys all the weight.",
    "-1e9: A finite number stands for −∞: a query that may see nothing reads hidden keys.",
    "overflow: Large scores overflow: exp of them is ∞, and ∞/∞ is not a number. Subtract the "
    "largest score of a row first, or use torch.softmax.",
    "largest of all: The largest score of the whole matrix is subtracted, so that all powers of a "
    "row with small scores become 0, and 0/0 is not a number: subtract each row's own.",
    "Q and K swapped: Queries and keys are swapped: the scores should be Q Kᵀ.",
    "K transposed: K is not transposed: the scores should be Q Kᵀ.",
    "the weights [no @ V]: It returns the weights; return the weights times V.",
    *OF_ATTENTION,
    accepted=("nothing seen is NaN",),
)
def attention(Q: Tensor, K: Tensor, V: Tensor, mask: Tensor, mistakes: Mistakes) -> Tensor:
    """Check `attention(Q, K, V, mask)`: return the head [N×d_v]; the mask is added.

    The row of a query that may see nothing may be zeros, as in the package, or NaN.
    """
    scores = Q @ K.mT / scale(Q.shape[-1], mistakes)
    filled = option_for_mistake(mistakes, FILLED, None)
    scores = scores + mask if filled is None else scores.masked_fill(mask == -INF, filled)
    if "no softmax" in mistakes:
        return scores @ V
    axis = option_for_mistake(mistakes, SOFTMAX_AXES, -1)
    if mistakes & {"overflow", "largest of all"}:
        return softmax.solve(scores, mistakes=mistakes) @ V
    alpha = torch.softmax(scores, axis)
    if not mistakes & NAN_WHERE_NOTHING_IS_SEEN:
        alpha = alpha.masked_fill((scores == -INF).all(axis, keepdim=True), 0)
    return alpha @ V
