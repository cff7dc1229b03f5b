"""Checks for masks: the future, a cache, padding (chapters 1, 3, 6 and 10)."""

import math

import torch
from torch import Tensor

from slp_transformer.check.diagnosing.diagnosis import check

INF = math.inf


def future_mask(N: int) -> Tensor:
    """The additive mask that hides the future."""
    return torch.full((N, N), -INF).triu(1)


NOT_ADDITIVE = (
    "zeros and ones [then exp]: This mask is 1 where allowed and 0 elsewhere. The book's is added "
    "to the scores: 0 where allowed, −∞ elsewhere.",
    "ones and zeros [1 for −∞]: This mask is 1 where hidden; the book's is added, and −∞ there.",
    "minus one [then tanh]: This mask is −1 where hidden; it should be −∞, which leaves no weight.",
    "booleans [then not]: These are booleans that say what is allowed. The book's mask is added "
    "to the scores: 0 where allowed, −∞ elsewhere.",
    "booleans, hidden: These are booleans that say what is hidden. The book's mask is added to "
    "the scores: 0 where allowed, −∞ elsewhere.",
    lambda right: right != 0,
    "-1e9: −10⁹ is not −∞: a row that may see nothing then spreads its weights over all.",
    lambda right: right.clamp(min=-1e9),
    "-1e4: −10⁴ is not −∞: a row that may see nothing then spreads its weights over all.",
    lambda right: right.clamp(min=-1e4),
    "-1000 [-1000 for −∞]: −1000 is not −∞: a row that may see nothing weighs all alike.",
    "smallest: The smallest number is not −∞: use -torch.inf, after which nothing is left.",
    lambda right: right.clamp(min=torch.finfo(torch.float32).min),
    "not a number: 0 · ∞ is not a number: fill in −∞ rather than multiply with it.",
    lambda right: (right != 0) * -math.inf,
)


@check(
    "`mask`",
    lambda: [(3,), (1,), (2,), (5,), (11,)],
    *NOT_ADDITIVE,
    "then transposed: The mask is inverted: it hides the past, not the future.",
    "diagonal [0 for 1]: The diagonal is hidden as well: each token should see itself.",
    "one too late [2 for 1]: The mask begins one column too late: each token sees the next one.",
    "nothing hidden [then ReLU]: Nothing is hidden: entries with j > i should be −∞.",
    "ones where allowed: What is visible has 1; it should have 0, since the mask is added.",
    lambda right: right + 1,
    "next token alone: Only the next token is hidden; all later ones should be.",
    lambda N: future_mask(N).tril(1),
    "then minus: The future has +∞, so it gets all the weight: the sign is missing.",
    "everything [no triu()]: Everything is hidden: only the entries with j > i should be −∞.",
    "first row left out: The first row hides nothing: it is row 0, and sees itself alone.",
    lambda right: right.index_fill(0, torch.tensor(0), 0.0),
)
def causal_mask(N: int) -> Tensor:
    """Check `causal_mask(N)`: return a mask [N×N], 0 where j ≤ i and −∞ where j > i."""
    return torch.full((N, N), -INF).triu(1)


@check(
    "`mask`, and with a cache `kv-attn`",
    lambda: [(2, 1), (1, 3), (3, 2), (3, 0), (11, 7)],
    *NOT_ADDITIVE,
    "not shifted [no + held (2)]: The mask counts the new tokens from 0: with tokens in the cache "
    "before them, new token i sees the columns up to held + i.",
    "new tokens only [held = 0]: The mask has no columns for the cache: [N × (held + N)].",
    "past hidden: The cached tokens are hidden; every new token should see all of them.",
    lambda N, held: torch.cat([torch.full((N, held), -INF), future_mask(N)], 1),
    "nothing hidden [then ReLU]: Nothing is hidden: a new token should not see later ones.",
    "diagonal [no + 1]: The diagonal is hidden as well: each token should see itself.",
    "one too late [2 for 1]: The mask begins one column too late: each token sees the next one.",
    "cache behind: The columns of the cache come after the new tokens'; they come first.",
    lambda N, held: torch.cat([future_mask(N), torch.zeros(N, held)], 1),
    "cache alone: The new tokens see the cache alone; each sees itself and those before.",
    lambda N, held: torch.cat([torch.zeros(N, held), torch.full((N, N), -INF)], 1),
    "rows for the cache: The mask has rows for the cached tokens as well; only the N new ones ask.",
    lambda N, held: future_mask(held + N),
)
def mask_after(N: int, held: int) -> Tensor:
    """Check `mask_after(N, held)`: return the mask of N new tokens after `held` cached ones."""
    return torch.full((N, held + N), -INF).triu(held + 1)


@check(
    "mask (not in the book: sentences of different lengths)",
    lambda: [
        (torch.tensor([5, 7, 0]), 0),
        (torch.tensor([1, 0, 2, 2, 2]), 2),
        (torch.tensor([0, 0, 3, 1]), 0),
    ],
    *NOT_ADDITIVE,
    "then inverted: The words are hidden and the padding is visible.",
    "at the end alone: Only padding at the end is hidden; it may come first as well.",
    lambda ids, pad_id, right: right.where((ids == pad_id).flip(-1).cumprod(-1).flip(-1) > 0, 0.0),
    "counted [then sorted]: Positions at the end are hidden, wherever the padding is.",
    "always 0 [pad_id = 0]: The padding's id is taken to be 0; it is `pad_id`.",
    "after the first [then running sum]: Everything after the first padding is hidden, words as "
    "well.",
    "column: The mask is a column, so it hides queries; padding is hidden as keys: a row.",
    lambda ids, pad_id: torch.where(ids == pad_id, -INF, 0.0)[:, None],
    "column (copied): …",
    lambda ids, pad_id: torch.where(ids == pad_id, -INF, 0.0)[:, None].expand(-1, len(ids)),
    "then minus: The padding has +∞, which the softmax cannot take; it should be −∞.",
    "square: The mask has a row for each token; one row is enough for all queries.",
    lambda ids, right: right.expand(len(ids), -1),
    "causal as well: The future is hidden as well; hide the padding alone, in one row.",
    lambda ids, right: right + future_mask(len(ids)),
    "first left out: The first position is never hidden; padding may come first.",
    lambda right: right.index_fill(-1, torch.tensor(0), 0.0),
    "lower ids: Ids below the padding's are hidden as well; hide `pad_id` alone, with ==.",
    lambda ids, pad_id: torch.where(ids <= pad_id, -INF, 0.0),
    "higher ids: Ids above the padding's are hidden as well; hide `pad_id` alone, with ==.",
    lambda ids, pad_id: torch.where(ids >= pad_id, -INF, 0.0),
)
def padding_mask(ids: Tensor, pad_id: int) -> Tensor:
    """Check `padding_mask(ids, pad_id)`: [1×M] or [M], −∞ where ids holds pad_id, else 0."""
    return torch.zeros(len(ids)).masked_fill(ids == pad_id, -INF)
