"""Checks for masks: the future, a cache, padding (chapters 1, 3, 6 and 10)."""

import math

import torch
from torch import Tensor

from slp_transformer.check.diagnosing import Mistakes, check, choose_option

INF = math.inf


def future_mask(N: int) -> Tensor:
    """The additive mask that hides the future."""
    return torch.full((N, N), -INF).triu(1)


NOT_ADDITIVE = {
    "zeros and ones": "This mask is 1 where allowed and 0 elsewhere. The book's is added to the "
    "scores: 0 where allowed, −∞ elsewhere.",
    "ones and zeros": "This mask is 1 where hidden; the book's is added, and −∞ there.",
    "minus one": "This mask is −1 where hidden; it should be −∞, which leaves no weight.",
    "booleans": "These are booleans that say what is allowed. The book's mask is added to the "
    "scores: 0 where allowed, −∞ elsewhere.",
    "booleans, hidden": "These are booleans that say what is hidden. The book's mask is added to "
    "the scores: 0 where allowed, −∞ elsewhere.",
}


def _as_other_mask(hidden: Tensor, mistakes: Mistakes) -> Tensor:
    if "booleans" in mistakes or "booleans, hidden" in mistakes:
        return hidden if "booleans, hidden" in mistakes else ~hidden
    if "minus one" in mistakes:
        return -hidden.float()
    return (hidden if "ones and zeros" in mistakes else ~hidden).float()


@check(
    "`mask`",
    lambda: [{"N": 3}, {"N": 1}, {"N": 2}, {"N": 5}, {"N": 11}],
    (
        """
    then transposed: The mask is inverted: it hides the past, not the future.
    diagonal: The diagonal is hidden as well: each token should see itself.
    one too late: The mask begins one column too late: each token sees the next one.
    """,
        NOT_ADDITIVE,
        """
    -1e9: −10⁹ is not −∞: a row that may see nothing then spreads its weights over all.
    -1e4: −10⁴ is not −∞: a row that may see nothing then spreads its weights over all.
    -1000: −1000 is not −∞: a row that may see nothing then spreads its weights over all.
    nothing hidden: Nothing is hidden: entries with j > i should be −∞.
    next token alone: Only the next token is hidden; all later ones should be.
        = future_mask(N).tril(1)
    smallest: The smallest number is not −∞: use -torch.inf, after which nothing is left.
    then minus: The future has +∞, so it gets all the weight: the sign is missing.
    not a number: 0 · ∞ is not a number: fill in −∞ rather than multiply with it.
    everything: Everything is hidden: only the entries with j > i should be −∞.
    """,
    ),
)
def causal_mask(N: int, mistakes: Mistakes) -> Tensor:
    """Check `causal_mask(N)`: return a mask [N×N], 0 where j ≤ i and −∞ where j > i."""
    shift = 0 if "diagonal" in mistakes else 2 if "one too late" in mistakes else 1
    hidden = torch.ones(N, N).triu(shift) > 0
    if "nothing hidden" in mistakes:
        return torch.zeros(N, N)
    if "everything" in mistakes:
        return torch.full((N, N), -INF)
    if mistakes & NOT_ADDITIVE.keys():
        return _as_other_mask(hidden, mistakes)
    if "not a number" in mistakes:
        return hidden.float() * -INF
    fills = {
        "-1e9": -1e9,
        "-1e4": -1e4,
        "-1000": -1e3,
        "smallest": torch.finfo(torch.float32).min,
    }
    return torch.zeros(N, N).masked_fill(hidden, choose_option(mistakes, fills, -INF))


@check(
    "`mask`, with a cache `kv-attn`",
    lambda: [{"N": N, "held": held} for N, held in ((2, 1), (1, 3), (3, 2), (3, 0), (11, 7))],
    (
        """
    not shifted: The mask counts the new tokens from 0: with tokens in the cache before them, new
        token i sees the columns up to held + i.
    new tokens only: The mask has no columns for the cache: it should be [N × (held + N)].
    past hidden: The cached tokens are hidden; every new token should see all of them.
    nothing hidden: Nothing is hidden: a new token should not see later ones.
    diagonal: The diagonal is hidden as well: each token should see itself.
    one too late: The mask begins one column too late: each token sees the next one.
    """,
        NOT_ADDITIVE,
        """
    -1e9: −10⁹ is not −∞: a row that may see nothing then spreads its weights over all.
        = future_mask(held + N)[held:].clamp(min=-1000000000.0)
    cache behind: The columns of the cache come after the new tokens'; they come first.
        = torch.cat([future_mask(N), torch.zeros(N, held)], 1)
    cache alone: The new tokens see the cache alone; each sees itself and the new ones before it,
        too.
        = torch.cat([torch.zeros(N, held), torch.full((N, N), -INF)], 1)
    rows for the cache: The mask has rows for the cached tokens as well; only the N new ones ask.
        = future_mask(held + N)
    """,
    ),
)
def mask_after(N: int, held: int, mistakes: Mistakes) -> Tensor:
    """Check `mask_after(N, held)`: return the mask of N new tokens after `held` cached ones."""
    T = held + N
    if "new tokens only" in mistakes:
        return future_mask(N)
    if "nothing hidden" in mistakes:
        return torch.zeros(N, T)
    if "past hidden" in mistakes:
        return torch.cat([torch.full((N, held), -INF), future_mask(N)], 1)
    shift = 1 if "not shifted" in mistakes else held + 1
    shift += ("one too late" in mistakes) - ("diagonal" in mistakes)
    mask = torch.full((N, T), -INF).triu(shift)
    return _as_other_mask(mask == -INF, mistakes) if mistakes & NOT_ADDITIVE.keys() else mask


@check(
    "mask (not in the book: sentences of different lengths)",
    lambda: [
        {"ids": torch.tensor([5, 7, 0]), "pad_id": 0},
        {"ids": torch.tensor([1, 0, 2, 2, 2]), "pad_id": 2},
        {"ids": torch.tensor([0, 0, 3, 1]), "pad_id": 0},
    ],
    (
        """
    then inverted: The words are hidden and the padding is visible.
    """,
        NOT_ADDITIVE,
        """
    at the end alone: Only padding at the end is hidden; it may come first as well.
    counted: Positions at the end are hidden, wherever the padding is.
    -1e9: −10⁹ is not −∞: where nothing but padding can be seen, it gets all the weight.
    always 0: The padding's id is taken to be 0; it is `pad_id`.
    after the first: Everything after the first padding is hidden, words as well.
    not a number: 0 · ∞ is not a number: fill in −∞ rather than multiply with it.
    column: The mask is a column, so it hides queries; padding is hidden as keys: a row [M].
        = torch.where(ids == pad_id, -INF, 0.0)[:, None]
    column (copied): …
        = torch.where(ids == pad_id, -INF, 0.0)[:, None].expand(-1, len(ids))
    then minus: The padding has +∞, which the softmax cannot take; it should be −∞.
    """,
    ),
)
def padding_mask(ids: Tensor, pad_id: int, mistakes: Mistakes) -> Tensor:
    """Check `padding_mask(ids, pad_id)`: [1×M] or [M], −∞ where ids holds pad_id, else 0."""
    hidden = ids == (0 if "always 0" in mistakes else pad_id)
    hidden = hidden.cumsum(-1) > 0 if "after the first" in mistakes else hidden
    if "at the end alone" in mistakes:
        hidden = (~hidden).flip(-1).cumsum(-1).flip(-1) == 0
    if "counted" in mistakes:
        hidden = torch.arange(len(ids)) >= (~hidden).sum()
    if mistakes & NOT_ADDITIVE.keys():
        return _as_other_mask(hidden, mistakes)
    if "not a number" in mistakes:
        return hidden.float() * -INF
    return torch.zeros(len(ids)).masked_fill(hidden, -1e9 if "-1e9" in mistakes else -INF)
