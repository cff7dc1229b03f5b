"""Checks for dealing with scale: a scaling law, the cache's size, a merged adapter (chapter 8)."""

from torch import Tensor

from slp_transformer.check.diagnosing.diagnosis import Inputs, check
from slp_transformer.check.diagnosing.random_inputs import matrix, seeded_randn


@check(
    "`L(N)`",
    lambda: [(4.0, 16.0, 0.5), (1e9, 8.8e13, 0.076), (10.0, 2.0, 2.0)],
    "N and N_c swapped: The fraction is upside down: a larger model has a smaller loss.",
    "multiplied: The fraction is multiplied by α; α is its exponent.",
    lambda N, N_c, alpha: alpha * N_c / N,
    "exponent on N_c alone: Only N_c has the exponent; the whole fraction does.",
    lambda N, N_c, alpha: N_c**alpha / N,
    "exponent on N alone [power before division]: Only N has the exponent; the whole fraction "
    "does.",
)
def scaling_loss(N: float, N_c: float, alpha: float) -> float:
    """Check `scaling_loss(N, N_c, alpha)`: the loss that the law gives a model of N parameters."""
    return (N_c / N) ** alpha


@check(
    "`kv-attn`",
    lambda: [(1, 1, 1, 2, 3), (5, 3, 2, 7, 11), (4096, 96, 96, 128, 128)],
    "keys only [d_v = 0]: Only keys are counted; values are cached as well.",
    "values only [d_k = 0]: Only values are counted; keys are cached as well.",
    "queries too [d_k doubled]: Queries are not cached: no later token needs them.",
    "then / L: Every block has its own cache: multiply by L.",
    "then / A: Every head has its own keys and values: multiply by A.",
    "then / T: Every token has its own keys and values: multiply by T.",
    "d_k for d_v: Values have size d_v, so a token needs d_k + d_v numbers, not 2 d_k.",
    "d_v for d_k: Keys have size d_k, so a token needs d_k + d_v numbers, not 2 d_v.",
    "multiplied: A token has a key and a value, d_k + d_v numbers, not d_k times d_v.",
    lambda T, L, A, d_k, d_v: T * L * A * d_k * d_v,
    "twice [T doubled]: Keys and values are counted twice: d_k + d_v has both already.",
    "no brackets [multiplication before addition]: Only d_k is multiplied by T, L and A: put d_k "
    "+ d_v in brackets.",
    "then · T: The cache grows with T, not with T²: attention weights are not cached.",
    "weights kept: These are the attention weights, T² in each head; the cache holds keys and "
    "values.",
    lambda T, L, A: L * A * T * T,
    "keys of one head: The keys are those of one head; each of the A heads has its own.",
    lambda T, L, A, d_k, d_v: T * L * (d_k + A * d_v),
)
def cache_numbers(T: int, L: int, A: int, d_k: int, d_v: int) -> int:
    """Check `cache_numbers(T, L, A, d_k, d_v)`: how many numbers a cache of T tokens holds."""
    return T * L * A * (d_k + d_v)


def _merged_cases() -> list[Inputs]:
    draw = seeded_randn(81)

    def made(k: int, d: int, r: int, alpha: float) -> Inputs:
        return draw(k, d), draw(k, r), draw(r, d), alpha

    hand = matrix((1, 0)), matrix((2,)), matrix((3, 4)), 1.0
    dependent = draw(2, 2), matrix((1, 1), (2, 2)), draw(2, 2), 3.0
    return [hand, made(5, 3, 2, 8.0), made(3, 7, 2, 2.0), made(2, 2, 2, 3.0), dependent]


@check(
    "`lora`, scaled as in Hu et al. 2022",
    _merged_cases,
    "A and B swapped: A and B are swapped: AB is [k×d], like W.",
    "no scale [no · scale]: The scale α/r is missing.",
    "scaled by α [no / A.shape[1]]: The adapter is multiplied by α; it should be multiplied by "
    "α/r.",
    "all scaled: W is scaled as well; only the adapter should be.",
    lambda W, A, alpha, solve: solve(W=alpha / A.shape[1] * W),
    "−A: The adapter is subtracted; add it.",
    "r from the rows [0 for 1]: r is taken to be the number of A's rows; it is that of its "
    "columns.",
    "one over α: The adapter is divided by α; multiply it by α/r.",
    lambda A, alpha, solve: solve(alpha=A.shape[1] / alpha),
    "scale upside down [sides of /]: The scale is upside down: it should be α/r.",
    "r is d [W in a place]: The scale divides by B's number of columns, d; r is A's.",
    "scaled by the root [A · √width]: The adapter is multiplied by α/√r; it should be multiplied "
    "by α/r.",
)
def merged(W: Tensor, A: Tensor, B: Tensor, alpha: float) -> Tensor:
    """Check `merged(W, A, B, alpha)`: the one matrix that does what W and the adapter do."""
    scale = alpha / A.shape[1]
    return W + scale * (A @ B)
