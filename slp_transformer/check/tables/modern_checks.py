"""Checks for chapter 14: RMSNorm, rotations, shared keys, the gate as published, Newton-Schulz."""

from functools import reduce
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from slp_transformer.check.diagnosing.diagnosis import Inputs, Mistakes, check
from slp_transformer.check.diagnosing.random_inputs import matrix, seeded_randn, vector
from slp_transformer.check.diagnosing.row_changes import center
from slp_transformer.check.tables.block_checks import GATE_MISTAKES, LabeledFunction, swiglu


def _rms_cases() -> list[Inputs]:
    draw, learned, ones = seeded_randn(141), torch.arange(1.0, 6.0), vector(1, 1)
    small = vector(1, 7)  # the mean square is 25
    hand = [(small, ones, 1e-6), (small, vector(2, 3), 1e-6), (vector(3, 1), ones, 4.0)]
    return [*hand, (draw(3, 5) + 2, learned, 1e-6), (0.01 * draw(2, 5), learned, 1e-4)]


@check(
    "RMSNorm (Zhang and Sennrich 2019, equation 4), with ε under the root",
    _rms_cases,
    "mean subtracted: The mean is subtracted from the row; RMSNorm does not subtract it.",
    lambda x, gamma, eps: gamma * center(x) / (x.square().mean(-1, keepdim=True) + eps).sqrt(),
    "layer norm [x centered]: This is layer norm; RMSNorm does not subtract the mean.",
    "deviation: The row is divided by its standard deviation; divide by the root mean square.",
    lambda x, gamma, eps: gamma * x / (x.var(-1, correction=0, keepdim=True) + eps).sqrt(),
    "eps outside: ε is added outside the root; add it to the mean square, under the root.",
    lambda x, gamma, eps: gamma * x / (x.square().mean(-1, keepdim=True).sqrt() + eps),
    "no root [no sqrt()]: The row is divided by its mean square; the root is missing.",
    "length [sum for mean]: The sum of squares is not divided by d: this is the norm of the row.",
    "mean squared: The mean is squared; take the mean of the squares.",
    lambda x, gamma, eps: gamma * x / (x.mean(-1, keepdim=True) ** 2 + eps).sqrt(),
    "mean of sizes: The row is divided by its mean absolute value; divide by the root mean square.",
    lambda x, gamma, eps: gamma * x / (x.abs().mean(-1, keepdim=True) + eps),
    "multiplied [· for /]: The row is multiplied by its root mean square; divide by it.",
    "over tokens [mean over axis 0]: The mean is over the tokens; it should be over the features "
    "of each row.",
    "all rows together [mean over axis None]: The mean square is that of the whole matrix; use "
    "that of each row.",
    "gain from 0 [gamma and 1]: The gain is 1 + γ, as in Gemma's files; here it is γ itself.",
    "d − 1, eps outside: The mean square divides by d − 1, and ε is added outside the root, as in "
    "the Annotated Transformer's norm; divide by d, and add ε under the root.",
    lambda x, gamma, eps: (
        gamma * x / ((x.square().sum(-1, keepdim=True) / (x.shape[-1] - 1)).sqrt() + eps)
    ),
    "d − 1: The mean square divides by d − 1; it should divide by d.",
    lambda x, gamma, eps: (
        gamma * x / (x.square().sum(-1, keepdim=True) / (x.shape[-1] - 1) + eps).sqrt()
    ),
    "gain first: γ multiplies the row before it is normalized; multiply the result.",
    lambda x, gamma, solve: solve(x=gamma * x, gamma=1),
    "ε always the same: ε is a fixed number; use `eps`.",
    lambda solve: solve(eps=1e-6),
    "ε always the same (1e-5): …",
    lambda solve: solve(eps=1e-5),
    "the larger: The mean square or ε is used, whichever is larger; add ε to it.",
    lambda x, gamma, eps: gamma * x / x.square().mean(-1, keepdim=True).clamp(min=eps).sqrt(),
)
def rms_norm(x: Tensor, gamma: Tensor, eps: float) -> Tensor:
    """Check `rms_norm(x, gamma, eps)`, for a row [d] and for rows [N×d]."""
    square = x.square().mean(-1, keepdim=True)
    size = (square + eps).sqrt()
    return gamma * (x / size)


def _rotation_cases() -> list[Inputs]:
    draw = seeded_randn(142)
    given = [
        (1, 2, 1, 100.0),
        (3, 2, 0, 10.0),
        (5, 6, 7, 10.0),
        (2, 10, 3, 100.0),
        (2, 4, 130, 9.0),
    ]
    made = [(draw(N, d_k), start, base) for N, d_k, start, base in given]
    return [(matrix((1, 0)), 1, 10.0), *made]


@check(
    "rope (Su et al. 2021), pairs of column i and i + d_k/2",
    _rotation_cases,
    "backwards: The rotation goes the other way: a′ = a cos − b sin and b′ = a sin + b cos.",
    lambda X, start, base: _turn(X, -_angles(X, start, base)),
    "neighbors: Neighboring columns form pairs; pair column i with column i + d_k/2.",
    lambda solve: solve("neighbors, not put back").unflatten(1, (2, -1)).mT.flatten(1),
    "start = 0: The positions begin at 0; the first row is at position `start`.",
    "one position [fixed 1 (3)]: All rows are rotated to position `start`; row n is at start + n.",
    "root of base: θ_i is base^(−i/d_k); it should be base^(−2i/d_k).",
    "base squared: θ_i is base^(−4i/d_k); it should be base^(−2i/d_k).",
    "1/base: The minus in the exponent −2i/d_k is missing.",
    "one angle [base = 1]: All pairs have the same angle; that of pair i is pos · θ_i.",
    "exponent from 1: The pairs are counted from 1; count them from 0.",
    lambda X, start, base: _turn(X, _angles(X, start, base) * base ** (-2 / X.shape[1])),
    "no minus [+ for −]: A minus is missing: a′ = a cos − b sin. Otherwise lengths change.",
    "minus twice [− for +]: There is one minus too many: b′ = a sin + b cos.",
    "half turned: The second column of each pair is not changed.",
    lambda X, right: torch.cat([right.chunk(2, 1)[0], X.chunk(2, 1)[1]], 1),
    "turned twice: b′ is computed from the new a′; use the old a.",
    lambda right, solve: torch.cat(
        [right.chunk(2, 1)[0], solve(X=solve("half turned")).chunk(2, 1)[1]], 1
    ),
    "added: Sines and cosines are added, like the book's P; rotate the pairs by them.",
    lambda X, start, base: (
        X + torch.cat([(angle := _angles(X, start, base)).cos(), angle.sin()], 1)
    ),
    "added (sines first): …",
    lambda X, start, base: (
        X + torch.cat([(angle := _angles(X, start, base)).sin(), angle.cos()], 1)
    ),
    "sine and cosine swapped: Sine and cosine are swapped.",
    lambda X, start, base: _turn(X, torch.pi / 2 - _angles(X, start, base)),
    "base not used: The base is always 10000; use `base`.",
    lambda solve: solve(base=10000.0),
    "halves swapped: The two halves of the result are swapped.",
    lambda X, right: right.roll(X.shape[1] // 2, 1),
    "neighbors, not put back: Neighboring columns form pairs, and do not return to their places; "
    "pair column i with column i + d_k/2.",
    lambda X, solve: solve(X=torch.cat([X[:, ::2], X[:, 1::2]], 1)),
    "degrees: The angles are used as degrees; they are in radians.",
    lambda X, start, base: _turn(X, _angles(X, start, base).deg2rad()),
    "nothing turned: Nothing is rotated: this is X itself.",
    lambda X: X,
    "halves in turn: The two halves of the result are interleaved; put one after the other, with "
    "`cat`.",
    lambda right: right.unflatten(1, (2, -1)).mT.flatten(1),
    "cosines alone: The sines are missing: a′ = a cos − b sin and b′ = a sin + b cos.",
    lambda X, start, base: X * _angles(X, start, base).cos().repeat(1, 2),
    "pairs from the last: The last pair turns fastest; it should be the first, with θ_0 = 1.",
    lambda X, start, base: _turn(X, _angles(X, start, base).flip(1)),
)
def rotary(X: Tensor, start: int, base: float) -> Tensor:
    """Check `rotary(X, start, base)`: rows at positions start, start + 1, …, turned to them."""
    return _turn(X, _angles(X, start, base))


def _angles(X: Tensor, start: int, base: float) -> Tensor:
    theta = base ** (-2 * torch.arange(X.shape[1] // 2) / X.shape[1])
    return torch.outer(torch.arange(start, start + len(X)), theta)


def _turn(x: Tensor, angles: Tensor) -> Tensor:
    cos, sin = angles.cos().to(x), angles.sin().to(x)
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


def _rotate(x: Tensor, pos: int) -> Tensor:
    """One pair after the other turned by pos, pos/2, pos/3, …; any columns may make a pair."""
    return _turn(x, pos / torch.arange(1, x.shape[-1] // 2 + 1))


def _step_cases() -> list[Inputs]:
    draw, turn = seeded_randn(143), LabeledFunction("a row turned to a position", _rotate)
    made = [(draw(d), draw(d), draw(n, d), turn) for n, d in ((3, 4), (5, 6), (2, 6))]
    return [(vector(1, 0), vector(0, 1), matrix((2, 0)), turn), *made]


@check(
    "`rope` and `kv-attn`: keys are cached already rotated",
    _step_cases,
    "no rotate: Nothing is rotated to position n, or the cached keys are rotated once more.",
    "turned again by place: The cached keys are rotated again; each was rotated when it was "
    "written.",
    lambda K, rotate, solve: solve(K=torch.stack([rotate(old, j) for j, old in enumerate(K)])),
    "query as it is [no rotate() (2)]: The query is not rotated; it is at position n.",
    "key as it is [no rotate()]: The new key is not rotated; it is at position n.",
    "one too far [size too large]: The new token is at position n, not n + 1: positions begin at "
    "0.",
    "one too early [size too small]: The new token is at position n, not n − 1: there are n "
    "cached keys before it.",
    "no scaling [q · √width]: The scores are not divided by √d_k.",
    "scaled by the length [K in a place (3)]: The scores are divided by the root of the number of "
    "keys; divide by √d_k.",
    "scaled by d_k [no ** 0.5]: The scores are divided by d_k; divide by its root.",
    "key one too early: The new key is rotated to position n − 1; it is at n, like the query.",
    lambda k, rotate, solve: solve(k=rotate(k, -1)),
    "query one too early: The query is rotated to position n − 1; it is at n, like the new key.",
    lambda q, rotate, solve: solve(q=rotate(q, -1)),
    "new key alone: This is the score of the new key alone; return those of the cached keys as "
    "well.",
    lambda right: right[-1:],
    "query one too far: The query is rotated to position n + 1; it is at n, like the new key.",
    lambda q, rotate, solve: solve(q=rotate(q, 1)),
    "key one too far: The new key is rotated to position n + 1; it is at n, like the query.",
    lambda k, rotate, solve: solve(k=rotate(k, 1)),
    "query twice: The query is rotated twice.",
    lambda q, K, rotate, solve: solve(q=rotate(q, len(K))),
    may_be_empty=("K",),
)
def rotary_step(q: Tensor, k: Tensor, K: Tensor, rotate: Any) -> Tensor:
    """Check `rotary_step(q, k, K, rotate)`: a new token's scores [n + 1].

    The n keys of K are cached already rotated; `rotate(x, pos)` turns a row to a position.
    """
    n = len(K)
    K = torch.cat([K, rotate(k, n)[None]])
    return K @ rotate(q, n) / len(q) ** 0.5


def _shared_cases() -> list[Inputs]:
    draw = seeded_randn(144)
    sizes = ((2, 3, 5, 6), (3, 2, 2, 3), (1, 5, 3, 2), (3, 2, 7, 12), (2, 5, 3, 4))
    made = [(draw(G, M, d_k), A) for G, M, d_k, A in sizes]
    return [(torch.stack([matrix((1,)), matrix((2,))]), 4), *made]


@check(
    "grouped heads (Ainslie et al. 2023): g = ⌊cG/A⌋",
    _shared_cases,
    "in turn: Heads use the groups in turn (0, 1, 0, 1); neighboring heads should share one.",
    lambda K, A: K.repeat(A // len(K), 1, 1),
    "first for all: All heads have the keys of the first group; head c uses group ⌊cG/A⌋.",
    lambda K, A: K[:1].expand(A, -1, -1),
    "last for all: All heads have the keys of the last group; head c uses group ⌊cG/A⌋.",
    lambda K, A: K[-1:].expand(A, -1, -1),
    "mean for all: All heads have the mean of the keys; each should have those of its group.",
    lambda K, A: K.mean(0, keepdim=True).expand(A, -1, -1),
    "along tokens [1 for 0]: The tokens are repeated; repeat the keys of whole heads.",
    "along tokens (in turn): …",
    lambda K, A: K.repeat(1, A // len(K), 1),
    "along tokens (cut into heads): …",
    lambda K, A: K.repeat_interleave(A // len(K), 1).reshape(A, K.shape[1], -1),
    "not shared: The result has G heads; it should have A.",
    lambda K: K,
    "A times [no // len(K)]: Every group is repeated A times; repeat it A/G times.",
    "c over G: The group is c // G; it should be c·G // A.",
    lambda K, A: K[(torch.arange(A) // len(K)).clamp(max=len(K) - 1)],
    "c // G: Head c has group c // G; it should be c · G // A.",
    lambda K, A: K[torch.arange(A) // len(K) % len(K)],
    "rounded: The group is rounded to the nearest; round it down.",
    lambda K, A: torch.stack([K[min(round(c * len(K) / A), len(K) - 1)] for c in range(A)]),
    "axes exchanged: The axes are [M×A×d_k]; heads come first, [A×M×d_k].",
    lambda K, A: torch.stack([K[c * len(K) // A] for c in range(A)], 1),
    "along features [-1 for 0]: The numbers of each key are repeated; repeat the keys of whole "
    "heads.",
    "c // G (past the end): …",
    lambda K, A: K[torch.arange(A) // len(K)],
)
def shared_keys(K: Tensor, A: int) -> Tensor:
    """Check `shared_keys(K, A)`: for each of A heads the keys of its group, K being [G×M×d_k]."""
    return K.repeat_interleave(A // len(K), 0)


def _gate_cases() -> list[Inputs]:
    draw = seeded_randn(145)

    def made(d: int, h: int, *tokens: int) -> Inputs:
        return draw(*tokens, d), draw(h, d), draw(h, d), draw(d, h)

    hand = [(vector(x), matrix((1,)), matrix((2,)), matrix((3,))) for x in (1, 100)]
    return [*hand, made(3, 7), made(3, 7, 5), made(2, 2, 3)]


@check(
    "`swiglu`, as Llama's files keep it",
    _gate_cases,
    *GATE_MISTAKES,
    "gate_proj and up_proj swapped: Swish is applied to up_proj's product, not gate_proj's.",
    "not turned: The matrices are used as in the file, [out×in]; transpose them.",
    lambda gate_proj, up_proj, down_proj, solve: solve(
        gate_proj=gate_proj.T, up_proj=up_proj.T, down_proj=down_proj.T
    ),
    "bent late [silu last]: Swish is applied to the product; apply it to the gate alone.",
    "no down_proj [no @ W_3]: down_proj is missing: the result is [d_ff]; it should be [d].",
    "up alone [no · F.silu(first)]: The gate is missing: multiply up_proj's product by Swish of "
    "gate_proj's.",
    "then + x: The input is added at the end; the block does that, not the layer.",
    "bent input: Swish is applied to x; apply it to gate_proj's product.",
    lambda x, gate_proj, up_proj, down_proj: (
        F.silu(x) @ gate_proj.T * (x @ up_proj.T) @ down_proj.T
    ),
    "bent output: Swish is applied to the result; apply it to gate_proj's product.",
    lambda x, gate_proj, up_proj, down_proj: F.silu(
        x @ gate_proj.T * (x @ up_proj.T) @ down_proj.T
    ),
)
def published_ffn(
    x: Tensor, gate_proj: Tensor, up_proj: Tensor, down_proj: Tensor, mistakes: Mistakes
) -> Tensor:
    """Check `published_ffn(x, gate_proj, up_proj, down_proj)`: matrices as in files, [out×in]."""
    none = torch.zeros(())
    return swiglu.solve(x, gate_proj.T, none, up_proj.T, none, down_proj.T, none, mistakes=mistakes)


@check(
    "`param-count` of today's block",
    lambda: [(1, 2, 2, 1, 3, 5), (2, 7, 5, 3, 2, 11), (28, 1024, 16, 8, 128, 3072)],
    "A for G: Keys and values are counted for A heads; G heads have them.",
    "keys alone [multiplication before addition (2)]: W_V is missing: the G groups have values as "
    "well as keys.",
    "two matrices [2 for 3]: The gated layer has three matrices, not two.",
    "no W_O: W_O is missing: it has A·d_k rows and d columns.",
    lambda L, d, A, G, d_k, d_ff: L * d * (A * d_k + 2 * G * d_k + 3 * d_ff),
    "square: Queries and W_O are counted as d·d; A·d_k may differ from d.",
    lambda L, d, G, d_k, d_ff: L * d * (2 * d + 2 * G * d_k + 3 * d_ff),
    "4 d²: Attention is counted as 4 d², as in the book; here it is 2 (A + G) d d_k.",
    lambda L, d, d_ff: L * (4 * d * d + 3 * d * d_ff),
    "12 L d²: 12 L d² is the book's rule, for the book's block.",
    lambda L, d: 12 * L * d * d,
    "queries shared: Queries, or W_O, are counted for G heads; both have A.",
    lambda L, d, A, G, d_k, d_ff: L * d * (A * d_k + 3 * G * d_k + 3 * d_ff),
    "W_O as d²: W_O is counted as d·d; it has A·d_k rows and d columns.",
    lambda L, d, A, G, d_k, d_ff: L * d * (A * d_k + 2 * G * d_k + d + 3 * d_ff),
    "d_k from d: d_k is taken to be d/A; it is given, and may be another number.",
    lambda L, d, A, G, d_ff: L * d * (2 * d + 2 * G * (d // A) + 3 * d_ff),
    "heads a group: Keys and values are counted A/G times, the heads of a group; there are G "
    "groups.",
    lambda L, d, A, G, d_k, d_ff: L * d * (2 * A * d_k + 2 * A // G * d_k + 3 * d_ff),
    "L for attention alone [multiplication before addition]: Only attention is multiplied by L; "
    "the feedforward layer is in every block, too.",
    "one head: Attention is counted for one head; there are A query heads and G key-value heads.",
    lambda L, d, d_k, d_ff: L * d * (4 * d_k + 3 * d_ff),
    "norms too: The two gains of the norms are counted as well; count the matrices only.",
    lambda L, d, right: right + 2 * L * d,
    "no gate [d_ff = 0]: Only attention is counted; the feedforward layer is missing.",
    "keys of one group [G = 1]: Keys and values are counted for one group; there are G.",
    "d_ff = 4d: `d_ff` is given; it need not be 4d.",
    lambda d, solve: solve(d_ff=4 * d),
)
def modern_block_parameters(L: int, d: int, A: int, G: int, d_k: int, d_ff: int) -> int:
    """Check `modern_block_parameters(L, d, A, G, d_k, d_ff)`: numbers in L blocks' matrices."""
    return L * (2 * (A + G) * d * d_k + 3 * d * d_ff)


QUINTIC = (3.4445, -4.775, 2.0315)


def _matrix_cases() -> list[Inputs]:
    draw = seeded_randn(146)
    made = [(3, 5, 2, 0.3), (5, 2, 2, 0.3), (3, 3, 2, 0.2), (2, 3, 1, 10.0), (2, 3, 8, 0.3)]
    others = [(size * draw(m, n), steps) for m, n, steps, size in made]
    return [(matrix((3, 0), (0, 4)), 1), *others]


def _with_old_A(G: Tensor, steps: int) -> Tensor:
    (a, b, c), X = QUINTIC, G / G.norm()
    A = X @ X.T
    return torch.matrix_power(a * torch.eye(len(A)).to(A) + b * A + c * A @ A, steps) @ X


def _B_times_G(G: Tensor, steps: int) -> Tensor:
    (a, b, c), X = QUINTIC, G / G.norm()
    for _ in range(steps):
        A = X @ X.T
        X = a * X + (b * A + c * A @ A) @ G
    return X


@check(
    "Newton-Schulz, as Muon takes it (Jordan et al. 2024)",
    _matrix_cases,
    "not divided [no / G.norm()]: G is not divided by its norm; only singular values up to 1 "
    "approach 1.",
    "largest: G is divided by its largest singular value; divide by the root of the sum of all "
    "squares, which needs no decomposition.",
    lambda G, steps: _quintic(G / torch.linalg.matrix_norm(G, 2), steps),
    "row by row: Each row is divided by its own norm; divide by the norm of the whole matrix.",
    lambda G, steps: _quintic(G / G.norm(dim=1, keepdim=True), steps),
    "mean square: G is divided by its root mean square; divide by the root of the sum of squares.",
    lambda G, steps: _quintic(G / G.square().mean().sqrt(), steps),
    "square: G is divided by the sum of its squares; the root is missing.",
    lambda G, steps: _quintic(G / G.norm() ** 2, steps),
    "one step [steps = 1]: This is a single step; take `steps`.",
    "old A: A is computed only once; compute it from the new X in each step.",
    _with_old_A,
    "no X [no + a * X]: aX is missing.",
    "no A²: cA² is missing.",
    lambda G, steps: _quintic(G / G.norm(), steps, c=0.0),
    "entries squared [· for @ (2)]: A² has the squared entries of A; it should be the matrix "
    "product AA.",
    "signs: The minus of b is missing.",
    lambda G, steps: _quintic(G / G.norm(), steps, b=4.775),
    "backwards: a and c are swapped.",
    lambda G, steps: _quintic(G / G.norm(), steps, *QUINTIC[::-1]),
    "b and c swapped: b and c are swapped.",
    lambda G, steps: _quintic(G / G.norm(), steps, b=2.0315, c=-4.775),
    "B times G: (bA + cA²) is multiplied by G; multiply it by the current X.",
    _B_times_G,
    "five steps: This takes five steps; take `steps`.",
    lambda solve: solve(steps=5),
    "exact: All singular values are exactly 1, as by a decomposition; take `steps`.",
    lambda G: (svd := torch.linalg.svd(G, full_matrices=False)).U @ svd.Vh,
    "cubic: These are the coefficients of the cubic, 3/2 and −1/2; here they are a, b and c.",
    lambda G, steps: _quintic(G / G.norm(), steps, 1.5, -0.5, 0.0),
    "long: The result is multiplied by the norm of G again.",
    lambda G, right: right * G.norm(),
    "norm in each step: X is divided by its norm in every step; do it once, before the first.",
    lambda G, steps: reduce(
        lambda X, _: (Y := _quintic(X, 1)) / Y.norm(), range(steps), G / G.norm()
    ),
    "largest entry: G is divided by its largest number; divide it by the root of the sum of all "
    "squares.",
    lambda G, steps: _quintic(G / G.abs().max(), steps),
    "norm in each step (before it): …",
    lambda G, steps: reduce(lambda X, _: _quintic(X / X.norm(), 1), range(steps), G),
    may_be_empty=("steps",),
)
def newton_schulz(G: Tensor, steps: int) -> Tensor:
    """Check `newton_schulz(G, steps)`: a matrix whose singular values have gone toward 1."""
    return _quintic(G / G.norm(), steps)


def _quintic(
    X: Tensor, steps: int, a: float = QUINTIC[0], b: float = QUINTIC[1], c: float = QUINTIC[2]
) -> Tensor:
    for _ in range(steps):
        A = X @ X.T
        B = b * A + c * A @ A
        X = a * X + B @ X
    return X
