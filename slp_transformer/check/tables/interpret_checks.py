"""Checks for looking inside: the induction rule, the lens, a head less, circuits (chapter 9)."""

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor

from slp_transformer.check.diagnosing.diagnosis import Inputs, Mistakes, check
from slp_transformer.check.diagnosing.random_inputs import matrix, seeded_randn, vector
from slp_transformer.check.tables.block_checks import EPSILONS, layer_norm


def _ids_cases() -> list[Inputs]:
    given = [(3, 1, 4, 3), (1, 2), (2, 2), (5, 1, 5, 2, 7, 5), (0, 4, 6, 4, 4), (6, 0, 3, 6, 3)]
    given += [(5, 1, 5, 2, 5, 2, 5, 3, 5), (4, 0, 7, 4), (0, 5, 0)]
    given += [(19, 8, *range(6), *range(9, 16), 19), (4, 1, 9, 7, 4, 1)]
    return [(torch.tensor(ids),) for ids in given]


@check(
    "`induction`, the rule A B … A → B",
    _ids_cases,
    "first time [0 for 1]: This followed the token's first occurrence; use its last one.",
    "most frequent: This is what followed most often; return what followed last.",
    lambda ids: max(
        f := [b for a, b in pairwise(ids.tolist()) if a == ids[-1]], key=f.count, default=-1
    ),
    "itself [no + 1]: This is the token itself; return the token that came after it.",
    "before [− for +]: This is what came before the token; return what came after it.",
    "two after [index too large]: This is what came two places after the token; return the one "
    "right after it.",
    "finds itself: The search begins at the last token itself: begin one place earlier.",
    lambda ids: ids[len(ids)],
    "itself if new: A token that has not occurred before should give −1, not itself.",
    lambda ids, right: ids[-1] if ids[-1] not in ids[:-1] else right,
    "first token missed: The first token is missed: range(…, −1, −1) goes down to 0, and `if not "
    "j` takes place 0 for none.",
    lambda ids, right: right if ids[-1] in ids[1:-1] else -1,
    "place: This is a place in the text; return the token that stands there.",
    lambda ids: max([j + 1 for j, token in enumerate(ids[:-1]) if token == ids[-1]], default=-1),
    "place (of the token): …",
    lambda ids: max([j for j, token in enumerate(ids[:-1]) if token == ids[-1]], default=-1),
    "one place skipped: The place right before the last token is skipped: begin at len(ids) − 2.",
    lambda ids, solve: solve(
        ids=torch.cat([ids[:-2], ids[-1:]]) if len(ids) > 1 and ids[-2] == ids[-1] else ids
    ),
    "token 0 for none: Token 0 is a token, too: `or −1` takes it for none.",
    lambda right: right or -1,
    "0 if new: A token that has not occurred before should give −1, not 0, which is a token.",
    lambda ids, right: right if ids[-1] in ids[:-1] else 0,
    "always −1: This is always −1: if the search begins at the last token, begin one before.",
    lambda: -1,
    "two compared: Two tokens are compared with the last two; compare the last one alone.",
    lambda ids: next(
        (
            int(ids[j + 1])
            for j in range(len(ids) - 2, 0, -1)
            if ids[j] == ids[-1] and ids[j - 1] == ids[-2]
        ),
        -1,
    ),
    "given up: The search ends at the first token that differs: return −1 after the loop.",
    lambda ids: int(ids[-1]) if len(ids) > 1 and ids[-2] == ids[-1] else -1,
)
def induced(ids: Tensor) -> int:
    """Check `induced(ids)`: what the rule says comes next; −1 if the last token is a new one."""
    *before, last = tokens = ids.tolist()
    places = [j for j, token in enumerate(before) if token == last]
    return tokens[places[-1] + 1] if places else -1


def _alpha_cases() -> list[Inputs]:
    draw = seeded_randn(91)
    one = matrix((1, 0, 0, 0), (0.5, 0.5, 0, 0), (0, 0.9, 0.1, 0), (0, 0.2, 0.7, 0.1))

    def made(N: int) -> Tensor:
        return torch.softmax(2 * draw(N, N) + torch.full((N, N), -torch.inf).triu(1), dim=-1)

    return [(one, 2), (made(6), 3), (made(7), 2), (made(11), 5)]


@check(
    "induction (prefix matching, Olsson et al. 2022)",
    _alpha_cases,
    "same token [no + 1]: This is the weight on the same token, P places back; an induction head "
    "attends to the token after it, P − 1 places back.",
    "one too far: This is the weight P + 1 places back, on the token before the earlier one; take "
    "the one after it, P − 1 places back.",
    lambda alpha, period: alpha.diagonal(-period - 1).mean(),
    "one too far (by place) [− for +]: …",
    "one token early: Token P − 1 is counted as well, but the first repeated token is P.",
    lambda alpha, period: alpha.diagonal(1 - period).mean(),
    "all tokens: The sum is divided by N; only the tokens from P on are repeated.",
    lambda alpha, period, right: right * (len(alpha) - period) / len(alpha),
    "sum [sum for mean]: This is the sum of the weights; the score is their mean.",
    "largest [amax for mean]: This is the largest of the weights; the score is their mean.",
    "alpha transposed: Rows and columns are swapped: row i is the token that attends.",
    "token before: This is the weight on the previous token, which is the score of a "
    "previous-token head.",
    lambda alpha, period: alpha.diagonal(-1)[period - 1 :].mean(),
    "hits [largest of alpha]: This is how often the largest weight is there; take the mean.",
    "first copy: This is the weight on the first copy; take the latest, P − 1 places back.",
    lambda alpha, period: torch.stack(
        [alpha[i, i % period + 1] for i in range(period, len(alpha))]
    ).mean(),
    "second pass alone: Only the second pass is counted; all tokens from P on are repeated.",
    lambda alpha, period: alpha.diagonal(1 - period)[1 : period + 1].mean(),
    "divided by the period: The sum is divided by the period; divide by the repeated tokens.",
    lambda alpha, period: alpha.diagonal(1 - period)[1:].sum() / period,
    "token before (all): …",
    lambda alpha: alpha.diagonal(-1).mean(),
    "last token alone: Only the last token is counted; take the mean over all repeated ones.",
    lambda alpha, period: alpha[-1, len(alpha) - period],
    "first repeated token missed: The first repeated token is left out; it is token P.",
    lambda alpha, period: alpha[i := torch.arange(period + 1, len(alpha)), i - period + 1].mean(),
)
def induction_score(alpha: Tensor, period: int) -> Tensor:
    """Check `induction_score(alpha, period)`: one head's, on tokens that repeat after P."""
    if period == 1:
        raise ValueError("A period of 1 repeats nothing but one token.")
    i = torch.arange(period, len(alpha))
    return alpha[i, i - period + 1].mean()


def _lens_cases() -> list[Inputs]:
    draw = seeded_randn(92)

    def made(N: int, V: int, d: int) -> Inputs:
        return 3 * draw(N, d) + 1, draw(d), draw(d), draw(V, d)

    hand = matrix((3, 1), (0, 4)), vector(1, 1), vector(0, 0), matrix((1, 0), (0, 1), (1, 1))
    return [hand, made(3, 7, 5), made(5, 3, 8), made(2, 5, 5)]


@check(
    "`logit-lens`, with the final norm",
    _lens_cases,
    "no norm: The final norm is missing: the model applies it before E.",
    lambda H, E: H @ E.T,
    "norm afterwards: The norm is applied to the logits; it belongs before E.",
    lambda H, E: F.layer_norm(H @ E.T, (len(E),)),
    "plain norm: γ and β of the final norm are not used.",
    lambda gamma, beta, solve: solve(gamma=torch.ones_like(gamma), beta=torch.zeros_like(beta)),
    "words normalized: The rows of E are normalized as well; only the stream should be.",
    lambda gamma, beta, E, solve, mistakes: solve(
        E=layer_norm.solve(E, gamma, beta, mistakes=mistakes)
    ),
    "E transposed: E is not transposed: a word's logit is the product with its row of E.",
    "then last row: Only the last token has logits; return them for every row.",
    "unbiased: The standard deviation divides by d − 1; layer norm divides by d: correction=0.",
    "over tokens: The norm runs over the tokens; each row is normalized by itself.",
    "root mean square: The mean is not subtracted: that is RMSNorm.",
    "variance: The rows are divided by the variance; divide by its root.",
    "not divided: The rows are not divided by their standard deviation.",
    "all rows together: Mean and σ are those of the matrix; each row has its own.",
    "gain on the offset [addition before multiplication]: γ multiplies β as well: multiply the "
    "row by γ first, then add β.",
    accepted=tuple(EPSILONS),
)
def logit_lens(H: Tensor, gamma: Tensor, beta: Tensor, E: Tensor, mistakes: Mistakes) -> Tensor:
    """Check `logit_lens(H, gamma, beta, E)`: what rows of the stream would say, as logits [N×V]."""
    return layer_norm.solve(H, gamma, beta, mistakes=mistakes) @ E.T


def _head_cases() -> list[Inputs]:
    draw = seeded_randn(93)
    one = torch.stack([matrix((1,)), matrix((2,))]), torch.eye(2)

    def made(A: int, N: int, d_v: int, d: int, c: int) -> Inputs:
        return draw(A, N, d_v) + 1, draw(A * d_v, d), c

    others = [made(3, 5, 2, 7, 2), made(5, 3, 3, 2, 1), made(2, 3, 2, 5, 0)]
    return [(*one, 0), (*one, 1), *others]


@check(
    "`mh-par-head` and `mh-par-out` without one head",
    _head_cases,
    "c − 1: Another head is removed: c counts from 0.",
    "next head: The head after c is removed: c counts from 0.",
    lambda heads, c, solve: solve(c=(c + 1) % len(heads)),
    "alone: Only head c is left; it is the one to remove.",
    lambda heads, W_O, right: heads.transpose(0, 1).flatten(1) @ W_O - right,
    "nothing [no · kept]: Nothing is removed: head c still contributes.",
    "token: A token is set to 0 in every head; the heads are the first axis.",
    lambda heads, W_O, c: heads.index_fill(1, torch.tensor(c), 0).transpose(0, 1).flatten(1) @ W_O,
    "feature: A feature is set to 0 in every head; the heads are the first axis.",
    lambda heads, W_O, c: heads.index_fill(2, torch.tensor(c), 0).transpose(0, 1).flatten(1) @ W_O,
    "scaled up: The other heads are scaled up, as in dropout; leave them as they are.",
    lambda heads, right: right * len(heads) / (len(heads) - 1),
    "mean: Head c is replaced by its mean over the tokens; replace it by 0.",
    lambda heads, W_O, c, right: right + heads[c].mean(0) @ W_O.chunk(len(heads))[c],
    "ones: Head c is set to 1; set it to 0.",
    lambda heads, W_O, c, right: right + W_O.chunk(len(heads))[c].sum(0),
    "mean of the heads: Head c is replaced by the mean of all heads; replace it by 0.",
    lambda heads, W_O, c, right: right + heads.mean(0) @ W_O.chunk(len(heads))[c],
    "joined by reshape: A reshape alone mixes tokens: transpose first, so that a token's heads "
    "are joined.",
    lambda heads, W_O, c: heads.index_fill(0, torch.tensor(c), 0).reshape(heads.shape[1], -1) @ W_O,
    "last rows left out: The last rows of W_O are left out; the rows of head c should be.",
    lambda heads, c, solve: solve(heads=heads[[*range(c), *range(c + 1, len(heads)), c]], c=-1),
    "no W_O [no @ W_O]: The heads are joined but not multiplied by W_O.",
    "columns for rows: Columns of W_O are set to 0; its rows c · d_v to (c + 1) · d_v read head c.",
    lambda heads, W_O, c: (
        heads.transpose(0, 1).flatten(1)
        @ (W_O * (torch.arange(W_O.shape[1]) // heads.shape[2] != c))
    ),
    "column: A single row of W_O, or column of the heads, is set to 0; head c has d_v of them, "
    "from c · d_v on.",
    lambda heads, W_O, c: (
        heads.transpose(0, 1).flatten(1) * (torch.arange(len(W_O)) != c % len(W_O)) @ W_O
    ),
    "all up to c: All heads up to c are removed; remove head c alone.",
    lambda heads, W_O, c: (
        heads[c + 1 :].transpose(0, 1).flatten(1) @ W_O[(c + 1) * heads.shape[2] :]
    ),
)
def without_head(heads: Tensor, W_O: Tensor, c: int) -> Tensor:
    """Check `without_head(heads, W_O, c)`: what attention adds if head c gathers nothing."""
    if len(heads) == 1:
        raise ValueError("Of one head, nothing is left.")
    kept = torch.ones(len(heads), 1, 1).index_fill(0, torch.tensor(c), 0)
    return (heads * kept).transpose(0, 1).flatten(1) @ W_O


def _circuit_cases() -> list[Inputs]:
    draw = seeded_randn(94)
    made = [(draw(d, d_k), draw(d, d_k)) for d, d_k in ((5, 3), (2, 7), (3, 3))]
    return [(matrix((1,), (2,)), matrix((0,), (3,))), *made]


@check(
    "W_QK (Elhage et al. 2021), for rows: x_i W_QK x_jᵀ",
    _circuit_cases,
    "W_Q and W_K swapped: This is W_K W_Qᵀ: the rows should belong to the query.",
    "W_K transposed: W_K is not transposed; the product should be [d×d].",
    "inside: This is W_Qᵀ W_K, [d_k×d_k]; the matrix should be [d×d].",
    lambda W_Q, W_K: W_Q.T @ W_K,
    "inside, keys first [sides of @]: This is W_Kᵀ W_Q, [d_k×d_k]; the matrix should be [d×d].",
    "scaled [W_Q / √width]: It is divided by √d_k; return only the product.",
    "elementwise: The entries are multiplied one by one; take the matrix product, W_Q @ W_K.T.",
    lambda W_Q, W_K: W_Q * W_K,
)
def qk_circuit(W_Q: Tensor, W_K: Tensor) -> Tensor:
    """Check `qk_circuit(W_Q, W_K)`: the one matrix [d×d] that says where a head looks."""
    return W_Q @ W_K.T


def _copying_cases() -> list[Inputs]:
    draw = seeded_randn(95)

    def made(V: int, d: int, d_v: int) -> Inputs:
        W_V = draw(d, d_v)
        return draw(V, d), W_V, W_V.T + draw(d_v, d)

    hand = torch.eye(2), matrix((1,), (2,)), matrix((3, 1))
    negative = torch.eye(2), matrix((1,), (1,)), matrix((-1, -3))
    sizes = ((7, 3, 5), (13, 5, 2), (23, 7, 3), (29, 2, 2), (31, 3, 3))
    return [hand, *(made(*one) for one in sizes), negative]


@check(
    "E W_OV Eᵀ (Elhage et al. 2021), its rows",
    _copying_cases,
    "columns [argmax over axis 0]: Each column's largest number is taken; take each row's.",
    "cosine [E of norm 1]: The rows of E are divided by their norms; take E itself.",
    "raised at all: This counts tokens that raise themselves at all; they should do so most.",
    lambda E, W_V, W_O: (E @ W_V @ W_O @ E.T).diagonal().gt(0).to(E).mean(),
    "lowered [the product of the matrices squared]: The largest absolute value is taken; take the "
    "largest number.",
    "mean of the diagonal: This is the mean of the tokens' own numbers; count the tokens for which "
    "it is the largest of the row.",
    lambda E, W_V, W_O: (E @ W_V @ W_O @ E.T).diagonal().mean(),
    "above the mean: A token counts if its number is above its row's mean; take the largest.",
    lambda E, W_V, W_O: (words := E @ W_V @ W_O @ E.T).diagonal().gt(words.mean(1)).to(E).mean(),
    "no circuit: This is E Eᵀ: the head's matrices are missing.",
    lambda E: (E @ E.T).argmax(-1).eq(torch.arange(len(E))).to(E).mean(),
    "probability: This is the mean probability of the token itself; count where it is the largest.",
    lambda E, W_V, W_O: (E @ W_V @ W_O @ E.T).softmax(-1).diagonal().mean(),
    "rounded down [then cut]: `//` rounds the share down: write `/`.",
    "number [sum for mean]: This is a count; return the share.",
    "−W_V: This is the share of tokens that raise themselves least.",
    "one argmax [argmax over axis None]: argmax() without `dim` is one number for the whole "
    "matrix; take one for each row.",
    "more than half: A probability above one half is asked for; it need only be the largest.",
    lambda E, W_V, W_O: (E @ W_V @ W_O @ E.T).softmax(-1).diagonal().gt(0.5).to(E).mean(),
)
def copied(E: Tensor, W_V: Tensor, W_O: Tensor) -> Tensor:
    """Check `copied(E, W_V, W_O)`: the share of tokens that raise themselves more than others."""
    words = E @ W_V @ W_O @ E.T
    raised = words.argmax(dim=-1) == torch.arange(len(E))
    return raised.to(E).mean()
