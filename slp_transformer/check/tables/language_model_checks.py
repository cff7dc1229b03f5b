"""Checks for a language model's two ends and what is between them: chapters 4 and 5."""

from functools import reduce
from typing import Any

import torch
from torch import Tensor

from slp_transformer.check.diagnosing.diagnosis import Inputs, check
from slp_transformer.check.diagnosing.random_inputs import matrix, seeded_randn
from slp_transformer.check.tables.block_checks import (
    LabeledFunction,
    normalize_rows,
    running_mean_rows,
)


def _lookup_cases() -> list[Inputs]:
    draw = seeded_randn(31)
    by_hand, square = matrix((1, 2), (3, 4), (5, 6)), matrix((1, 2), (3, 4))
    return [(1, by_hand), (0, square), (1, square), (5, draw(7, 3)), (0, draw(7, 3))]


@check(
    "`onehot`",
    _lookup_cases,
    "w − 1: Words are counted from 1; in Python word w has row E[w].",
    "E transposed: This is a column of E; a word is a row.",
    "E transposed (in the product) [E.T in a place]: …",  # hot @ E.T is E @ hot
    "one-hot alone [no @ E]: This is the one-hot row; it should be multiplied with E.",
    "times √d [E · √width]: The row is multiplied by √d; it should stay as it is in E.",
    "then · w: The row is multiplied by the word's id: a one-hot row has a single 1.",
    "every word: All rows are added up: a one-hot row is 1 at w alone.",
    lambda E: E.sum(0),
    "rows up to w: All rows up to w are added: a one-hot row is 1 at w alone.",
    lambda w, E: E[: w + 1].sum(0),
    "not summed: The rows are not added up: multiply with @, not with *.",
    lambda w, E: (torch.arange(len(E)) == w)[:, None] * E,
    "all but w: The row is 1 everywhere but at w; it is 1 at w alone.",
    lambda w, E: E.sum(0) - E[w],
)
def one_hot_lookup(w: int, E: Tensor) -> Tensor:
    """Check `one_hot_lookup(w, E)`: multiply a one-hot row by E to get the row of word w."""
    hot = torch.zeros(len(E)).to(E)
    hot[w] = 1
    return hot @ E


def _input_cases() -> list[Inputs]:
    draw = seeded_randn(32)
    hand = matrix((1, 1), (2, 2), (3, 3)), matrix((10, 0), (20, 0), (30, 0), (40, 0))
    more = draw(11, 4), draw(13, 4)
    given = [([2, 0], hand, 0), ([2], hand, 2), ([1, 2], hand, 1)]
    given += [([3, 10, 3, 3, 1], more, 0), ([7, 7], more, 6)]
    return [(torch.tensor(ids), E, P, start) for ids, (E, P), start in given]


@check(
    "`X`",
    _input_cases,
    "start = 0: The positions begin at 0; with a cache, they begin at `start`.",
    "start + 1: The first token gets the second row of P: positions are counted from 0.",
    "counted from the end: The positions are counted from the end of the sequence.",
    lambda ids, E, P, start: E[ids] + P[start : start + len(ids)].flip(0),
    "one position [no + torch.arange(len(ids))]: All tokens get the same row of P.",
    "positions by word: The row of P is chosen by the word's id; choose it by position.",
    lambda ids, E, P: E[ids] + P[ids],
    "positions by word (from start): …",
    lambda ids, E, P, start: E[ids] + P[(ids + start) % len(P)],
    "words by place: The row of E is chosen by position; choose it by the word's id.",
    lambda ids, E, P, start: E[: len(ids)] + P[start : start + len(ids)],
    "words by place (from start): …",
    lambda ids, E, P, start: E[start : start + len(ids)] + P[start : start + len(ids)],
    "times √d [E · √width]: The token's row is multiplied by √d, as in the paper of 2017.",
    "side by side: Token and position are concatenated; they should be added.",
    lambda ids, E, P, start: torch.cat([E[ids], P[torch.arange(len(ids)) + start]], -1),
    "start added: `start` is added to the numbers of the rows; it says which row of P is first.",
    lambda ids, E, P, start: E[ids] + P[: len(ids)] + start,
    "multiplied [· for + (2)]: Token and position are multiplied; they should be added.",
    "no end [size too large]: P is cut from `start` to its last row: end at `start + len(ids)`.",
    "last rows: The last rows of P are taken; take those from `start` on.",
    lambda ids, E, P: E[ids] + P[-len(ids) :],
    "positions by word (from start, past the end): …",
    lambda ids, E, P, start: E[ids] + P[ids + start],
    "words from start: `start` is added to the words' ids; it says which row of P is first.",
    lambda ids, E, P, start: E[(ids + start) % len(E)] + P[start : start + len(ids)],
    "words from start (past the end): …",
    lambda ids, E, P, start: E[ids + start] + P[start : start + len(ids)],
    "numbers of positions: The positions' numbers are added; add their rows of P.",
    lambda ids, E, start: E[ids] + torch.arange(start, start + len(ids))[:, None],
)
def input_encoding(ids: Tensor, E: Tensor, P: Tensor, start: int) -> Tensor:
    """Check `input_encoding(ids, E, P, start)`: return X [N×d]; the first token is at `start`."""
    places = start + torch.arange(len(ids))
    return E[ids] + P[places]


@check(
    "sinusoid (not in the book; Vaswani et al. 2017, section 3.5)",
    lambda: [(2, 2), (3, 4), (7, 6), (300, 2)],
    "halves: Sines and cosines fill one half of the columns each; they should alternate.",
    lambda solve: torch.cat([solve()[:, ::2], solve()[:, 1::2]], 1),
    "cosine first [≠ for =]: Sine and cosine are swapped: column 0 is a sine.",
    "column as i [/ for //]: The exponent counts columns; i counts pairs of columns.",
    "column as i, twice [no // 2]: The exponent is 2/d times the column; i counts pairs.",
    "exponent without 2 [no · 2]: The exponent is i/d; it should be 2i/d.",
    "exponent with 4: The exponent is 4i/d; it should be 2i/d: range(0, d, 2) is 2i already.",
    lambda N, d: _waves(_turned(N, d, 10000.0**2)),
    "counted from 1: Positions are counted from 1; the first is 0, where every sine is 0.",
    lambda N, solve: solve(N=N + 1)[1:],
    "base 1000: The base is not 10000.",
    lambda N, d: _waves(_turned(N, d, 1000.0)),
    "degrees: The angle is treated as degrees: math.sin and torch.sin expect radians.",
    lambda N, d: _waves(_turned(N, d).deg2rad()),
    "exponent 0 [// for /]: `//` rounds the exponent down to 0: write `/`.",
    "exponent without d [no / d]: The exponent is 2i; it should be 2i/d.",
    "pairs from 1: The pairs are counted from 1; the first pair is i = 0.",
    lambda N, d: _waves(_turned(N, d) / 10000.0 ** (2 / d)),
    "product: The exponent has become a factor: 10000 to the power of 2i/d.",
    lambda N, d: _waves(
        torch.arange(N)[:, None] / (20000.0 * (i := torch.arange(d) // 2) / d).where(i > 0, 1)
    ),
    "sines only [sin for cos]: All columns are sines; every second one should be a cosine.",
    "multiplied [no minus]: The position is multiplied by the power of 10000; divide by it.",
    "multiplied (in float32): …",
    lambda N, d: _waves(
        (
            torch.arange(N)[:, None] * 10000 ** (2 * torch.arange(d // 2).float() / d)
        ).repeat_interleave(2, 1)
    ),
    "last pair left out: The last pair of columns is not filled: i goes up to d/2 − 1.",
    lambda d, right: right.index_fill(1, torch.tensor([d - 2, d - 1]), 0.0),
    "last position left out: The last row is not filled: positions go up to N − 1.",
    lambda N, right: right.index_fill(0, torch.tensor(N - 1), 0.0),
    "as in Tensor2Tensor: The exponent is i/(d/2 − 1), as in Tensor2Tensor; it should be 2i/d.",
    lambda N, d: _waves(_turned_as_in_tensor2tensor(N, d).repeat_interleave(2, 1)),
    "as in Tensor2Tensor (halves): …",
    lambda N, d: torch.cat([(x := _turned_as_in_tensor2tensor(N, d)).sin(), x.cos()], 1),
)
def sinusoid(N: int, d: int) -> Tensor:
    """Check `sinusoid(N, d)`: return fixed positions [N×d]; d is even."""
    return _waves(_turned(N, d))


def _turned(N: int, d: int, base: float = 10000.0) -> Tensor:
    """The angle at each position and column."""
    two_i = torch.arange(d, dtype=torch.float64) // 2 * 2
    return torch.arange(N)[:, None] * base ** -(two_i / d)


def _turned_as_in_tensor2tensor(N: int, d: int) -> Tensor:
    i = torch.arange(d // 2, dtype=torch.float64)
    return torch.arange(N)[:, None] * 10000.0 ** -(i / max(d // 2 - 1, 1))


def _waves(angle: Tensor) -> Tensor:
    """Sines in columns 0, 2, …, and cosines in the others."""
    return torch.where(torch.arange(angle.shape[1]) % 2 == 0, angle.sin(), angle.cos())


def _angles(row: Tensor, k: int) -> Tensor:
    return k / 10000.0 ** (2 * torch.arange(len(row) // 2) / len(row))


def _shift_cases() -> list[Inputs]:
    P, small = sinusoid.solve(20, 6).float(), sinusoid.solve(9, 2).float()
    return [(small[0], 2), (small[5], 3), (P[0], 1), (P[7], 5), (P[3], 0)]


@check(
    "sinusoid (not in the book; Vaswani et al. 2017, section 3.5)",
    _shift_cases,
    "backwards: The hands turn backwards: this is the row k positions before, not after.",
    lambda k, solve: solve(k=-k),
    "all alike [fixed 2]: All pairs turn by the same angle k; pair i turns by k/10000^(2i/d).",
    "first pair only [no / len(row)]: Only the first pair of columns turns.",
    "sine and cosine swapped: Sine and cosine are swapped in the result.",
    lambda right: right.unflatten(0, (-1, 2)).flip(1).flatten(),
    "angle added: The angle is added to sines and cosines; use the sum formulas.",
    lambda row, k: torch.stack(
        [row[0::2] + _angles(row, k), row[1::2] + _angles(row, k)], -1
    ).flatten(),
    "k = 0: This is the row that was given.",
    "exponent without 2 [no · 2]: The exponent is i/d; it should be 2i/d.",
    "one sign [+ for −]: A sign is wrong: the cosine of a sum is cos·cos − sin·sin.",
    "sine overwritten: The new sine is used for the cosine; both need the old ones.",
    lambda row, k, right: torch.stack(
        [(sine := (new := right)[0::2]), new[1::2] + (row[0::2] - sine) * _angles(row, k).sin()], -1
    ).flatten(),
    "rows added: The row of position k is added; use the sum formulas of sine and cosine.",
    lambda row, solve: row + solve("as if from 0"),
    "as if from 0: This is the row of position k, whatever row was given.",
    lambda row, solve: solve(row=torch.tensor([0.0, 1.0]).repeat(len(row) // 2)),
    "rolled: The columns are moved by k places; turn each pair of them by its own angle.",
    lambda row, k: row.roll(k),
    "halves: Column i is paired with column i + d/2; pair neighboring columns.",
    lambda row, solve: solve(row=row.view(2, -1).T.flatten()).view(-1, 2).T.flatten(),
    "exponent with 4: The exponent is 4i/d; it should be 2i/d.",
    lambda row, k: _turn(row, k / 10000 ** (4 * torch.arange(len(row) // 2) / len(row))),
    "pairs from 1: The pairs are counted from 1; the first pair is i = 0.",
    lambda row, k: _turn(row, _angles(row, k) / 10000 ** (2 / len(row))),
)
def shift_position(row: Tensor, k: int) -> Tensor:
    """Check `shift_position(row, k)`: of sinusoidal positions, the row k places after `row`."""
    return _turn(row, _angles(row, k))


def _turn(row: Tensor, b: Tensor) -> Tensor:
    """Turn each pair of columns by its own angle."""
    sine, cosine = row[0::2], row[1::2]
    new = [sine * b.cos() + cosine * b.sin(), cosine * b.cos() - sine * b.sin()]
    return torch.stack(new, -1).flatten()


def _head_cases() -> list[Inputs]:
    draw = seeded_randn(33)
    E, square = matrix((1, 0), (0, 1), (1, 1)), matrix((1, 2, 0), (0, 1, 0), (3, 0, 1))
    hand = [(matrix((2, 3)), E), (matrix((2, 3), (1, 0)), E)]
    return [*hand, (draw(5, 3), draw(7, 3)), (draw(2, 3), square)]


@check(
    "`logits`",
    _head_cases,
    "then last row: Only the last position has logits; in training all of them predict.",
    "E transposed: E is not transposed: each word's row is compared with h, which is H Eᵀ.",
    "scaled [H / √width]: The logits are divided by √d; the book does not.",
    "cosine: Rows are divided by their norms first; a logit is the plain dot product.",
    lambda H, E, right: right / H.norm(dim=-1, keepdim=True) / E.norm(dim=-1),
    "rows of E divided [E of norm 1]: The rows of E are divided by their norms; leave them.",
    "best word [then argmax]: This is the best word's number; return the logits of all.",
)
def lm_head(H: Tensor, E: Tensor) -> Tensor:
    """Check `lm_head(H, E)`: return the logits U [N×|V|]; E is that of the input."""
    return H @ E.T


def _stack_cases() -> list[Inputs]:
    draw = seeded_randn(34)
    blocks = [
        LabeledFunction("mean so far, + 1", lambda X: X + running_mean_rows(X) + 1),
        LabeledFunction("x + x²", lambda X: X + X * X),
        LabeledFunction(
            "x · (1, 2, …)", lambda X: X * torch.arange(1.0, X.shape[-1] + 1, dtype=X.dtype)
        ),
    ]
    norm = LabeledFunction(
        "layer norm, times (1, 2, …)",
        lambda X: normalize_rows(X) * torch.arange(1.0, X.shape[-1] + 1, dtype=X.dtype),
    )

    given = (matrix((1, 3)), matrix((1, 2, 4), (3, 1, 0)), draw(5, 3))
    return [(X, blocks[:count], norm) for count, X in enumerate(given, 1)]


@check(
    "`stack` and `final-ln`",
    _stack_cases,
    "norm after each: The final norm comes after every block, not after the last alone.",
    lambda X, blocks, final_norm: reduce(lambda H, b: final_norm(b(H)), blocks, X),
    "norm before each: The final norm comes before every block; it belongs once, after the last.",
    lambda X, blocks, final_norm: reduce(lambda H, b: b(final_norm(H)), blocks, X),
    "norm before each (and at the end): …",
    lambda final_norm, solve: final_norm(solve("norm before each")),
    "norm after each (and at the end): …",
    lambda final_norm, solve: final_norm(solve("norm after each")),
    "norm twice [then final_norm]: The final norm is applied twice.",
    "norm before and after: The final norm comes before the blocks as well; it belongs after.",
    lambda X, final_norm, solve: solve(X=final_norm(X)),
    "norm first: The final norm comes before the blocks; it belongs after the last.",
    lambda X, final_norm, solve: solve(X=final_norm(X), final_norm=lambda H: H),
    "all read X: Every block reads X; each should read the output of the one below.",
    lambda X, blocks, final_norm: final_norm(sum(b(X) for b in blocks)),
    "reversed: The blocks run from the last to the first.",
    lambda blocks, solve: solve(blocks=blocks[::-1]),
    "first only: Only one block runs.",
    lambda blocks, solve: solve(blocks=blocks[:1]),
    "one left out: The last block does not run: range(len(blocks)) counts all of them.",
    lambda blocks, solve: solve(blocks=blocks[:-1]),
    "first left out: The first block does not run: count from 0.",
    lambda blocks, solve: solve(blocks=blocks[1:]),
    "last only: Only the last block's output of X counts, so that all blocks below are lost.",
    lambda blocks, solve: solve(blocks=blocks[-1:]),
    "added: A block's output is added to X; the block does that itself.",
    lambda X, blocks, final_norm: final_norm(reduce(lambda H, b: H + b(H), blocks, X)),
    "each twice: Every block runs twice; it runs once.",
    lambda blocks, solve: solve(blocks=[block for block in blocks for _ in range(2)]),
    "norm added [final_norm and its input]: The final norm is added to the stream.",
    "norm before the last: The final norm comes before the last block; it belongs after it.",
    lambda blocks, final_norm, solve: solve(
        blocks=[*blocks[:-1], final_norm], final_norm=blocks[-1]
    ),
    "all read X (and X): …",
    lambda X, blocks, final_norm: final_norm(X + sum(b(X) for b in blocks)),
    "all read X (what they add): …",
    lambda X, blocks, final_norm: final_norm(X + sum(b(X) - X for b in blocks)),
    may_be_empty=("blocks",),
)
def stack(X: Tensor, blocks: Any, final_norm: Any) -> Tensor:
    """Check `stack(X, blocks, final_norm)`: apply the blocks, given as functions, one by one."""
    for layer in blocks:
        X = layer(X)
    return final_norm(X)


@check(
    "`param-count`",
    lambda: [(1, 2), (1, 512), (96, 12288), (7, 5)],
    "no W_O [11 for 12]: W_O is not counted: attention has four matrices of d × d, so 4d².",
    "one matrix of the feedforward layer: 8d² of the 12d² are counted: attention is missing, or "
    "one of W_1 and W_2.",
    lambda L, d: 8 * L * d * d,
    "one wide matrix [L doubled]: One of W_1 and W_2 is counted as 4d × 4d; both are d × 4d.",
    "no feedforward: The feedforward layer is not counted: 8d² of the 12d².",
    lambda L, d: 4 * L * d * d,
    "narrow feedforward: The feedforward layer is counted with d_ff = d; it has 4d.",
    lambda L, d: 6 * L * d * d,
    "three matrices: The feedforward layer has two matrices, not three as in SwiGLU.",
    lambda L, d: 16 * L * d * d,
    "norms: The norms are counted as well; count only the matrices.",
    lambda L, d: L * (12 * d * d + 4 * d),
    "biases: The biases are counted as well; count only the matrices.",
    lambda L, d: L * (12 * d * d + 5 * d),
    "norms and biases: Biases and norms are counted as well; count only the matrices.",
    lambda L, d: L * (12 * d * d + 9 * d),
    "one square matrix of the feedforward layer: The feedforward layer is counted as 4d × 4d; it "
    "has two matrices of d × 4d.",
    lambda L, d: 20 * L * d * d,
    "wide feedforward: A matrix of the feedforward layer is d × 4d, not 4d × 4d.",
    lambda L, d: 36 * L * d * d,
    "attention per head: Each head is counted with d² per matrix; it has d × d/A, so that the "
    "number of heads does not matter.",
    lambda L, d: 40 * L * d * d,
    "two for attention: Attention is counted with two matrices of d × d; it has four.",
    lambda L, d: 10 * L * d * d,
    "L for attention alone: Only attention is multiplied by L; every block has both layers.",
    lambda L, d: 4 * L * d * d + 8 * d * d,
    "L for the feedforward layer alone: Only the feedforward layer is multiplied by L; every "
    "block has both layers.",
    lambda L, d: 4 * d * d + 8 * L * d * d,
    "nine: 9d² of the 12d² are counted: attention has one matrix instead of four, or one of W_1 "
    "and W_2 is d × d instead of d × 4d.",
    lambda L, d: 9 * L * d * d,
    "d_ff = 4: The feedforward layer is counted with d_ff = 4; it is 4d.",
    lambda L, d: L * (4 * d * d + 8 * d),
    "power of L: A block's number is raised to the power of L; multiply by L.",
    lambda L, d: (12 * d * d) ** L,
)
def parameters(L: int, d: int) -> int:
    """Check `parameters(L, d)`: matrices of L blocks with d_attn = d and d_ff = 4d, no biases."""
    return 12 * L * d * d
