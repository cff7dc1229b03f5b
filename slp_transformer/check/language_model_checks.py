"""Checks for a language model's two ends and what is between them: chapters 4 and 5."""

import math
from typing import Any

import torch
from torch import Tensor

from slp_transformer.check.block_checks import Layer, normalize_rows, running_mean_rows
from slp_transformer.check.diagnosing import Case, Mistakes, check
from slp_transformer.check.random_inputs import matrix, seeded_randn


def _lookup_cases() -> list[Case]:
    draw = seeded_randn(31)
    by_hand = matrix((1, 2), (3, 4), (5, 6))
    square = matrix((1, 2), (3, 4))
    return [
        {"w": 1, "E": by_hand},
        {"w": 0, "E": square},
        {"w": 1, "E": square},
        {"w": 5, "E": draw(7, 3)},
        {"w": 0, "E": draw(7, 3)},
    ]


@check(
    "`onehot`",
    _lookup_cases,
    """
    w − 1: Words are counted from 1; in Python word w has row E[w].
    E transposed: This is a column of E; a word is a row.
    one-hot alone: This is the one-hot row; it should be multiplied with E.
    times √d: The row is multiplied by √d; it should stay as it is in E.
        = E[w] * E.shape[1] ** 0.5
    then · w: The row is multiplied by the word's id: a one-hot row has a single 1.
    every word: All rows are added up: a one-hot row is 1 at w alone.
        = E.sum(0)
    not summed: The rows are not added up: multiply with @, not with *.
        = (torch.arange(len(E)) == w)[:, None] * E
    """,
)
def one_hot_lookup(w: int, E: Tensor, mistakes: Mistakes) -> Tensor:
    """Check `one_hot_lookup(w, E)`: multiply a one-hot row by E to get the row of word w."""
    hot = torch.zeros(len(E)).to(E)
    hot[w] = 1
    return hot if "one-hot alone" in mistakes else hot @ E


def _input_cases() -> list[Case]:
    draw = seeded_randn(32)
    E, P = matrix((1, 1), (2, 2), (3, 3)), matrix((10, 0), (20, 0), (30, 0), (40, 0))
    ids = torch.tensor
    more_E, more_P = draw(11, 4), draw(13, 4)
    return [
        {"ids": ids([2, 0]), "E": E, "P": P, "start": 0},
        {"ids": ids([2]), "E": E, "P": P, "start": 2},
        {"ids": ids([1, 2]), "E": E, "P": P, "start": 1},
        {"ids": ids([3, 10, 3, 3, 1]), "E": more_E, "P": more_P, "start": 0},
        {"ids": ids([7, 7]), "E": more_E, "P": more_P, "start": 6},
    ]


@check(
    "`X`",
    _input_cases,
    """
    start = 0: The positions begin at 0; with a cache, they begin at `start`.
    start + 1: The first token gets the second row of P: positions are counted from 0.
    counted from the end: The positions are counted from the end of the sequence.
    one position: All tokens get the same row of P; each position has its own.
    positions by word: The row of P is chosen by the word's id; choose it by position.
    positions by word (from start): The row of P is chosen by the word's id; choose it by
        position.
        = E[ids] + P[(ids + start) % len(P)]
    words by place: The row of E is chosen by position; choose it by the word's id.
    words by place (from start): The row of E is chosen by position; choose it by the word's id.
        = E[start:start + len(ids)] + P[start:start + len(ids)]
    times √d: The token's row is multiplied by √d, as in the paper of 2017.
    side by side: Token and position are concatenated; they should be added.
        = torch.cat([E[ids], P[torch.arange(len(ids)) + start]], -1)
    multiplied: Token and position are multiplied; they should be added.
    last rows: The last rows of P are taken; take those from `start` on.
        = E[ids] + P[-len(ids) :]
    """,
)
def input_encoding(ids: Tensor, E: Tensor, P: Tensor, start: int, mistakes: Mistakes) -> Tensor:
    """Check `input_encoding(ids, E, P, start)`: return X [N×d]; the first token is at `start`."""
    N = len(ids)
    places = torch.arange(N) + start
    places = places.flip(0) if "counted from the end" in mistakes else places
    places = torch.full_like(places, start) if "one position" in mistakes else places
    places = ids if "positions by word" in mistakes else places
    tokens = E[torch.arange(N) if "words by place" in mistakes else ids]
    tokens = tokens * math.sqrt(E.shape[1]) if "times √d" in mistakes else tokens
    if "multiplied" in mistakes:
        return tokens * P[places]
    return tokens + P[places]


@check(
    "sinusoid (not in the book; Vaswani et al. 2017, section 3.5)",
    lambda: [{"N": 2, "d": 2}, {"N": 3, "d": 4}, {"N": 7, "d": 6}, {"N": 300, "d": 2}],
    """
    halves: Sines and cosines fill one half of the columns each; they should alternate.
    cosine first: Sine and cosine are swapped: column 0 is a sine.
    column as i: The exponent counts columns; i counts pairs of columns.
    column as i, twice: The exponent is 2/d times the column; i counts pairs of columns.
    exponent without 2: The exponent is i/d; it should be 2i/d.
    exponent with 4: The exponent is 4i/d; it should be 2i/d: range(0, d, 2) is 2i already.
    counted from 1: Positions are counted from 1; the first is 0, where every sine is 0.
    base 1000: The base is not 10000.
    degrees: The angle is treated as degrees: math.sin and torch.sin expect radians.
    exponent 0: `//` rounds the exponent down to 0: write `/`.
    exponent without d: The exponent is 2i; it should be 2i/d.
    pairs from 1: The pairs are counted from 1; the first pair is i = 0.
    product: The exponent has become a factor: 10000 to the power of 2i/d.
    sines only: All columns are sines; every second one should be a cosine.
    multiplied: The position is multiplied by the power of 10000; divide by it.
    """,
)
def sinusoid(N: int, d: int, mistakes: Mistakes) -> Tensor:
    """Check `sinusoid(N, d)`: return fixed positions [N×d]; d is even."""
    pos = torch.arange(N, dtype=torch.float64)[:, None] + ("counted from 1" in mistakes)
    columns = torch.arange(d)
    pairs = columns % (d // 2) if "halves" in mistakes else columns // 2
    power = columns if "column as i" in mistakes else 2 * pairs
    power = pairs if "exponent without 2" in mistakes else power
    power = 4 * pairs if "exponent with 4" in mistakes else power
    power = 2 * columns if "column as i, twice" in mistakes else power
    base = 1000.0 if "base 1000" in mistakes else 10000.0
    power = power * d if "exponent without d" in mistakes else power
    power = power + 2 * ("pairs from 1" in mistakes)
    power = -power if "multiplied" in mistakes else power
    power = 0 * power if "exponent 0" in mistakes else power
    angle = pos / base ** (power / d)
    angle = angle.deg2rad() if "degrees" in mistakes else angle
    if "product" in mistakes:
        angle = pos / (base * power / d).where(power > 0, 1)
    sine = columns < d // 2 if "halves" in mistakes else columns % 2 == 0
    sine = ~sine if "cosine first" in mistakes else sine
    return torch.where(sine | ("sines only" in mistakes), angle.sin(), angle.cos())


def _angles(row: Tensor, k: int) -> Tensor:
    return k / 10000.0 ** (2 * torch.arange(len(row) // 2) / len(row))


def _shift_cases() -> list[Case]:
    P = sinusoid.solve(20, 6, frozenset()).float()
    small = sinusoid.solve(9, 2, frozenset()).float()
    given = [(small[0], 2), (small[5], 3), (P[0], 1), (P[7], 5), (P[3], 0)]
    return [{"row": row, "k": k} for row, k in given]


@check(
    "sinusoid (not in the book; Vaswani et al. 2017, section 3.5)",
    _shift_cases,
    """
    backwards: The hands turn backwards: this is the row k positions before, not after.
    all alike: All pairs turn by the same angle k; pair i turns by k/10000^(2i/d).
    first pair only: Only the first pair of columns turns.
    sine and cosine swapped: Sine and cosine are swapped in the result.
    angle added: The angle is added to sines and cosines; use the sum formulas.
        = torch.stack([row[0::2] + _angles(row, k), row[1::2] + _angles(row, k)], -1).flatten()
    k = 0: This is the row that was given.
    exponent without 2: The exponent is i/d; it should be 2i/d.
    one sign: A sign is wrong: the cosine of a sum is cos·cos − sin·sin.
    sine overwritten: The new sine is used for the cosine; both need the old ones.
        = torch.stack([(sine := (new := right)[0::2]), new[1::2] + (row[0::2] - sine) *
          _angles(row, k).sin()], -1).flatten()
    rows added: The row of position k is added; use the sum formulas of sine and cosine.
        = row + solve(row, k, 'as if from 0')
    as if from 0: This is the row of position k, whatever row was given.
    rolled: The columns are moved by k places; turn each pair of them by its own angle.
        = row.roll(k)
    """,
)
def shift_position(row: Tensor, k: int, mistakes: Mistakes) -> Tensor:
    """Check `shift_position(row, k)`: of sinusoidal positions, the row k places after `row`."""
    pairs = torch.arange(len(row) // 2)
    b = _angles(row, k)
    b = k / 10000.0 ** (pairs / len(row)) if "exponent without 2" in mistakes else b
    b = torch.full_like(b, k) if "all alike" in mistakes else b
    b = b * (pairs == 0) if "first pair only" in mistakes else b
    b = -b if "backwards" in mistakes else b
    sine, cosine = row[0::2], row[1::2]
    if "as if from 0" in mistakes:
        sine, cosine = torch.zeros_like(sine), torch.ones_like(cosine)
    sign = 1 if "one sign" in mistakes else -1
    new = [sine * b.cos() + cosine * b.sin(), cosine * b.cos() + sign * sine * b.sin()]
    new = new[::-1] if "sine and cosine swapped" in mistakes else new
    return torch.stack(new, -1).flatten()


def _head_cases() -> list[Case]:
    draw = seeded_randn(33)
    E = matrix((1, 0), (0, 1), (1, 1))
    square = matrix((1, 2, 0), (0, 1, 0), (3, 0, 1))
    return [
        {"H": matrix((2, 3)), "E": E},
        {"H": matrix((2, 3), (1, 0)), "E": E},
        {"H": draw(5, 3), "E": draw(7, 3)},
        {"H": draw(2, 3), "E": square},
    ]


@check(
    "`logits`",
    _head_cases,
    """
    then last row: Only the last position has logits; in training all of them predict.
    E transposed: E is not transposed: each word's row is compared with h, which is H Eᵀ.
    scaled: The logits are divided by √d; the book does not.
    cosine: Rows are divided by their norms first; a logit is the plain dot product.
    best word: This is the best word's number; asked for are the logits of all words.
        = (H @ E.T).argmax(-1)
    """,
)
def lm_head(H: Tensor, E: Tensor, mistakes: Mistakes) -> Tensor:
    """Check `lm_head(H, E)`: return the logits U [N×|V|]; E is that of the input."""
    if "cosine" in mistakes:
        H, E = (Z / Z.norm(dim=-1, keepdim=True) for Z in (H, E))
    return H @ E.T / (math.sqrt(E.shape[1]) if "scaled" in mistakes else 1)


def _stack_cases() -> list[Case]:
    draw = seeded_randn(34)
    blocks = [
        Layer("mean so far, + 1", lambda X: X + running_mean_rows(X) + 1),
        Layer("x + x²", lambda X: X + X * X),
        Layer("x · (1, 2, …)", lambda X: X * torch.arange(1.0, X.shape[-1] + 1, dtype=X.dtype)),
    ]
    norm = Layer(
        "layer norm, times (1, 2, …)",
        lambda X: normalize_rows(X) * torch.arange(1.0, X.shape[-1] + 1, dtype=X.dtype),
    )

    def made(X: Tensor, count: int) -> Case:
        return {"X": X, "blocks": blocks[:count], "final_norm": norm}

    return [made(matrix((1, 3)), 1), made(matrix((1, 2, 4), (3, 1, 0)), 2), made(draw(5, 3), 3)]


@check(
    "`stack` and `final-ln`",
    _stack_cases,
    """
    norm after each: The final norm comes after every block, not after the last alone.
    norm before each: The final norm comes before every block; it comes once, after the last.
        = reduce(lambda H, b: b(final_norm(H)), blocks, X)
    norm after each (and at the end): The final norm comes after every block, not after the last
        alone.
        = final_norm(solve(X, blocks, final_norm, 'norm after each'))
    norm twice: The final norm is applied twice.
        = final_norm(right)
    norm before and after: The final norm comes before the blocks as well; it belongs after the
        last alone.
        = solve(final_norm(X), blocks, final_norm)
    norm first: The final norm comes before the blocks; it belongs after the last.
    all read X: Every block reads X; each should read the output of the one below.
    reversed: The blocks run from the last to the first.
    first only: Only one block runs.
    one left out: The last block does not run: range(len(blocks)) counts all of them.
    first left out: The first block does not run: count from 0.
    last only: Only the last block's output of X counts, so that all blocks below are lost.
    added: A block's output is added to X; the block does that itself.
    """,
)
def stack(X: Tensor, blocks: Any, final_norm: Any, mistakes: Mistakes) -> Tensor:
    """Check `stack(X, blocks, final_norm)`: apply the blocks, given as functions, one by one."""
    H = final_norm(X) if "norm first" in mistakes else X
    blocks = blocks[::-1] if "reversed" in mistakes else blocks
    blocks = blocks[:1] if "first only" in mistakes else blocks
    blocks = blocks[-1:] if "last only" in mistakes else blocks
    blocks = blocks[:-1] if "one left out" in mistakes else blocks
    blocks = blocks[1:] if "first left out" in mistakes else blocks
    if "all read X" in mistakes:
        H = sum((layer(X) for layer in blocks), start=torch.zeros_like(X))
        return final_norm(H)
    for layer in blocks:
        H = H + layer(H) if "added" in mistakes else layer(H)
        H = final_norm(H) if "norm after each" in mistakes else H
    return H if mistakes & {"norm first", "norm after each"} else final_norm(H)


@check(
    "`param-count`",
    lambda: [{"L": 1, "d": 2}, {"L": 1, "d": 512}, {"L": 96, "d": 12288}],
    """
    no W_O: W_O is not counted: attention has four matrices of d × d, so 4d².
    one matrix of the feedforward layer: 8d² of the 12d² are counted: attention is missing, or one
        of W_1 and W_2.
    one wide matrix: One of W_1 and W_2 is counted as 4d × 4d; both are d × 4d.
        = 24 * L * d * d
    no feedforward: The feedforward layer is not counted: 8d² of the 12d².
    narrow feedforward: The feedforward layer is counted with d_ff = d; it has 4d.
        = 6 * L * d * d
    three matrices: The feedforward layer is counted with three matrices, as in SwiGLU; it has
        two.
        = 16 * L * d * d
    norms: The norms are counted as well; count only the matrices.
        = L * (12 * d * d + 4 * d)
    biases: The biases are counted as well; count only the matrices.
    norms and biases: Biases and norms are counted as well; count only the matrices.
    wide feedforward: A matrix of the feedforward layer is d × 4d, not 4d × 4d.
    attention per head: Each head is counted with d² per matrix; it has d × d/A, so that the
        number of heads does not matter.
    """,
)
def parameters(L: int, d: int, mistakes: Mistakes) -> int:
    """Check `parameters(L, d)`: matrices of L blocks with d_attn = d and d_ff = 4d, no biases."""
    attention = 3 if "no W_O" in mistakes else 4
    attention = 4 * 8 if "attention per head" in mistakes else attention
    feedforward = 4 if "one matrix of the feedforward layer" in mistakes else 8
    feedforward = 0 if "no feedforward" in mistakes else feedforward
    feedforward = 32 if "wide feedforward" in mistakes else feedforward
    count = (attention + feedforward) * d * d
    count += 5 * d * ("biases" in mistakes) + 9 * d * ("norms and biases" in mistakes)
    return count * L
