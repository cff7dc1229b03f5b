"""Checks for looking inside: the induction rule, the lens, a head less, circuits (chapter 9)."""

import torch
import torch.nn.functional as F
from torch import Tensor

from slp_transformer.check.block_checks import EPSILONS, layer_norm
from slp_transformer.check.diagnosing import CHECKS, Case, Mistakes, check, choose_option
from slp_transformer.check.random_inputs import matrix, seeded_randn, vector


def _ids_cases() -> list[Case]:
    given = [(3, 1, 4, 3), (1, 2), (2, 2), (5, 1, 5, 2, 7, 5), (0, 4, 6, 4, 4), (6, 0, 3, 6, 3)]
    return [{"ids": torch.tensor(ids)} for ids in given]


@check(
    "`induction`, the rule A B … A → B",
    _ids_cases,
    {
        "first time": "This came after the token's first time; take its last time before now.",
        "itself": "This is the token itself; the rule asks for what came after it.",
        "before": "This is what came before the token; the rule asks for what came after it.",
        "two after": "This is what came two places after the token; the rule asks for the next.",
        "finds itself": "The search begins at the last token itself: begin one before it.",
        "itself if new": (
            "A token that was not there before should give −1, not itself.",
            lambda ids: (
                ids[-1] if ids[-1] not in ids[:-1] else CHECKS["induced"].solve(ids, frozenset())
            ),
        ),
        "first token missed": (
            "The search ends before the first token: range(…, −1, −1) reaches 0.",
            lambda ids: CHECKS["induced"].solve(ids, frozenset()) if ids[-1] in ids[1:-1] else -1,
        ),
        "0 if new": "A token that was not there before should give −1, not 0, which is a token.",
    },
)
def induced(ids: Tensor, mistakes: Mistakes) -> int:
    """Check `induced(ids)`: what the rule says comes next; −1 if the last token is a new one."""
    *before, last = tokens = ids.tolist()
    searched = tokens if "finds itself" in mistakes else before
    places = [j for j, token in enumerate(searched) if token == last]
    if not places:
        return 0 if "0 if new" in mistakes else -1
    j = places[0 if "first time" in mistakes else -1]
    steps = {"itself": 0, "before": -1, "two after": 2}
    return tokens[j + choose_option(mistakes, steps, 1)]


def _alpha_cases() -> list[Case]:
    draw = seeded_randn(91)
    one = matrix((1, 0, 0, 0), (0.5, 0.5, 0, 0), (0, 0.9, 0.1, 0), (0, 0.2, 0.7, 0.1))

    def made(N: int) -> Tensor:
        return torch.softmax(2 * draw(N, N) + torch.full((N, N), -torch.inf).triu(1), dim=-1)

    sizes = ((6, 3), (7, 2), (11, 5))
    return [{"alpha": one, "period": 2}, *({"alpha": made(N), "period": P} for N, P in sizes)]


@check(
    "induction (prefix matching, Olsson et al. 2022)",
    _alpha_cases,
    {
        "same token": "This is the weight on the same token, P places back; an induction head "
        "looks at the one that came after it, P − 1 back.",
        **dict.fromkeys(
            ("one too far", "one too far (by place)"),
            "This is the weight P + 1 places back, on what came before the token; look at what "
            "came after it, P − 1 back.",
        ),
        "one token early": "Token P − 1 is counted, too, which has no repeat: begin with token P.",
        "all tokens": "The sum is divided by all N tokens; only those from P on have been before.",
        "sum": "This is the sum of the weights; the score is their mean.",
        "largest": (
            "This is the largest of the weights; the score is their mean.",
            lambda alpha, period: alpha.diagonal(1 - period)[1:].max(),
        ),
        "turned": "Rows and columns are exchanged: row i of alpha is the token that looks.",
        "token before": "This is the weight on the token before, as another kind of head has it.",
        "hits": "This is how often the largest weight lies there; the score is the mean weight.",
    },
)
def induction_score(alpha: Tensor, period: int, mistakes: Mistakes) -> Tensor:
    """Check `induction_score(alpha, period)`: one head's, on tokens that repeat after P."""
    back = {"same token": period, "one too far": period + 1, "token before": 1}
    back |= {"one too far (by place)": period + 1}
    back = choose_option(mistakes, back, period - 1)
    begin = period - ("one token early" in mistakes) + ("one too far" in mistakes)
    i = torch.arange(begin, len(alpha))
    weights = alpha.T[i, i - back] if "turned" in mistakes else alpha[i, i - back]
    if "hits" in mistakes:
        weights = (alpha.argmax(dim=-1)[i] == i - back).to(alpha)
    if "sum" in mistakes:
        return weights.sum()
    return weights.sum() / (len(alpha) if "all tokens" in mistakes else len(i))


def _lens_cases() -> list[Case]:
    draw = seeded_randn(92)
    hand = {"H": matrix((3, 1), (0, 4)), "gamma": vector(1, 1), "beta": vector(0, 0)}

    def made(N: int, V: int, d: int) -> Case:
        return {"H": 3 * draw(N, d) + 1, "gamma": draw(d), "beta": draw(d), "E": draw(V, d)}

    return [
        hand | {"E": matrix((1, 0), (0, 1), (1, 1))},
        made(3, 7, 5),
        made(5, 3, 8),
        made(2, 5, 5),
    ]


@check(
    "`logit-lens`, with the final norm",
    _lens_cases,
    {
        "no norm": "The final norm is missing: the last layer's stream is read through it, too.",
        "norm afterwards": "The norm is applied to the logits; it comes before E.",
        "plain norm": "The norm is a plain one: the final norm's γ and β are not used.",
        "words normalized": "The rows of E are normalized as well; only the stream is.",
        "E not turned": "E is not transposed: each word's logit is a product with its own row.",
        "probabilities": "These are probabilities; asked for are the logits.",
        "logarithms": "These are logarithms of probabilities; asked for are the logits.",
        "last token alone": "Only the last token is read; the lens reads every row.",
        "unbiased": "The deviation divides by d − 1; layer norm's by d: write correction=0.",
        "over tokens": "The norm runs over the tokens; each row is normalized by itself.",
        "no gain": "The final norm's gain γ is not used.",
        "no offset": "The final norm's offset β is not used.",
    },
    accepted=tuple(EPSILONS),
)
def logit_lens(H: Tensor, gamma: Tensor, beta: Tensor, E: Tensor, mistakes: Mistakes) -> Tensor:
    """Check `logit_lens(H, gamma, beta, E)`: what rows of the stream would say, as logits [N×V]."""
    if "norm afterwards" in mistakes:
        return F.layer_norm(H @ E.T, (len(E),))
    plain = torch.ones_like(gamma), torch.zeros_like(beta)
    own = plain if "plain norm" in mistakes else (gamma, beta)
    h = H if "no norm" in mistakes else layer_norm.solve(H, *own, mistakes)
    E = layer_norm.solve(E, *own, mistakes) if "words normalized" in mistakes else E
    U = h @ (E if "E not turned" in mistakes else E.T)
    if "last token alone" in mistakes:
        return U[-1]
    U = U.log_softmax(-1) if "logarithms" in mistakes else U
    return U.softmax(-1) if "probabilities" in mistakes else U


def _head_cases() -> list[Case]:
    draw = seeded_randn(93)
    eye = {"heads": torch.stack([matrix((1,)), matrix((2,))]), "W_O": torch.eye(2)}

    def made(A: int, N: int, d_v: int, d: int, c: int) -> Case:
        return {"heads": draw(A, N, d_v) + 1, "W_O": draw(A * d_v, d), "c": c}

    others = [made(3, 5, 2, 7, 2), made(5, 3, 3, 2, 1), made(2, 3, 2, 5, 0)]
    return [eye | {"c": 0}, eye | {"c": 1}, *others]


@check(
    "`mh-par-head` and `mh-par-out` without one head",
    _head_cases,
    {
        "counted from 1": "Another head is taken away: c counts from 0.",
        "next head": "The head after c is taken away: c counts from 0.",
        "alone": "Only head c is left; it is the one to take away.",
        "nothing": "Nothing is taken away: head c still adds its share.",
        "token": "A token is taken away from every head; the first axis is that of the heads.",
        "feature": "A feature is taken away from every head; the first axis is that of the heads.",
        "scaled up": "The other heads are scaled up, as dropout does; leave them as they are.",
        "mean": "The mean over the tokens takes its place; here it is to be 0.",
        "mean of the heads": "The mean of all heads takes its place; here it is to be 0.",
        "joined by reshape": "A reshape alone mixes tokens: move the heads' axis to the features.",
        "no W_O": "The heads are joined but not multiplied with W_O.",
    },
)
def without_head(heads: Tensor, W_O: Tensor, c: int, mistakes: Mistakes) -> Tensor:
    """Check `without_head(heads, W_O, c)`: what attention adds if head c gathers nothing."""
    A, kept, rest = len(heads), torch.ones_like(heads), torch.zeros_like(heads)
    c = c - 1 if "counted from 1" in mistakes else c
    c = (c + 1) % A if "next head" in mistakes else c
    where = {"token": (slice(None), c), "feature": (..., c)}
    kept[choose_option(mistakes, where, c)] = 0
    kept = 1 - kept if "alone" in mistakes else kept
    if "mean" in mistakes:
        rest = heads.mean(dim=1, keepdim=True) * (1 - kept)
    if "mean of the heads" in mistakes:
        rest = heads.mean(dim=0, keepdim=True) * (1 - kept)
    left = heads if "nothing" in mistakes else heads * kept + rest
    left = left * A / (A - 1) if "scaled up" in mistakes else left
    shape = heads.shape[1], -1
    joined = left if "joined by reshape" in mistakes else left.transpose(0, 1)
    joined = joined.reshape(shape)
    return joined if "no W_O" in mistakes else joined @ W_O


def _circuit_cases() -> list[Case]:
    draw = seeded_randn(94)
    made = [{"W_Q": draw(d, d_k), "W_K": draw(d, d_k)} for d, d_k in ((5, 3), (2, 7), (3, 3))]
    return [{"W_Q": matrix((1,), (2,)), "W_K": matrix((0,), (3,))}, *made]


@check(
    "W_QK (Elhage et al. 2021), for rows: x_i W_QK x_jᵀ",
    _circuit_cases,
    {
        "keys ask": "This is W_K W_Qᵀ: rows should belong to the token that asks.",
        "not turned": "W_K is not transposed: the product should be [d×d].",
        "inside": "This is W_Qᵀ W_K, [d_k×d_k]: it does not take rows of the stream.",
        "inside, keys first": "This is W_Kᵀ W_Q, [d_k×d_k]: it does not take rows of the stream.",
        "scaled": "It is divided by √d_k; the circuit is the product alone.",
    },
)
def qk_circuit(W_Q: Tensor, W_K: Tensor, mistakes: Mistakes) -> Tensor:
    """Check `qk_circuit(W_Q, W_K)`: the one matrix [d×d] that says where a head looks."""
    if "inside" in mistakes:
        return W_Q.T @ W_K
    if "inside, keys first" in mistakes:
        return W_K.T @ W_Q
    W = W_Q @ W_K if "not turned" in mistakes else W_Q @ W_K.T
    W = W / W_Q.shape[1] ** 0.5 if "scaled" in mistakes else W
    return W.T if "keys ask" in mistakes else W


def _copying_cases() -> list[Case]:
    draw = seeded_randn(95)

    def made(V: int, d: int, d_v: int) -> Case:
        W_V = draw(d, d_v)
        return {"E": draw(V, d), "W_V": W_V, "W_O": W_V.T + draw(d_v, d)}

    hand = {"E": torch.eye(2), "W_V": matrix((1,), (2,)), "W_O": matrix((3, 1))}
    return [hand, made(7, 3, 5), made(13, 5, 2), made(23, 7, 3), made(29, 2, 2)]


@check(
    "E W_OV Eᵀ (Elhage et al. 2021), its rows",
    _copying_cases,
    {
        "columns": "This goes by columns; a row is a token that is read.",
        "raised at all": "This counts tokens that are raised at all; count those raised most.",
        "lowered": "The largest in size is taken, also below 0; take the largest number.",
        "no circuit": "This is E Eᵀ: the head's matrices are not in it.",
        "number": "This is how many; asked for is their share.",
        "lowest": "This is the share of tokens that are raised least.",
    },
)
def copied(E: Tensor, W_V: Tensor, W_O: Tensor, mistakes: Mistakes) -> Tensor:
    """Check `copied(E, W_V, W_O)`: the share of tokens that raise themselves more than others."""
    words = E @ E.T if "no circuit" in mistakes else E @ W_V @ W_O @ E.T
    words = words.T if "columns" in mistakes else words
    words = words.abs() if "lowered" in mistakes else words
    words = -words if "lowest" in mistakes else words
    right = words.argmax(dim=-1) == torch.arange(len(E))
    right = words.diagonal() > 0 if "raised at all" in mistakes else right
    return right.sum() if "number" in mistakes else right.to(E).mean()
