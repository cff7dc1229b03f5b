"""Choosing the next word: from one step's logits to one word.

Each function that changes the distribution takes logits and gives logits, so that they can be put
one after the other; what is ruled out becomes −∞, and the softmax at the end renormalizes. Their
order, ranges and help stand in `SAMPLING`, from which commands, documentation and pages have them.
"""

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch
import torch.nn.functional as F

from slp_transformer._internal.sampling_table import (
    SAMPLING,
    check_sampling_option,
    validate_sampling_options,
)
from slp_transformer._internal.shape_types import Bool, Float, Int, Tensor, format_shape
from slp_transformer.language_model import next_word_probabilities

AllowedTokens = Callable[[list[int]], Collection[int] | Bool[Tensor, "V"] | None]
Generators = torch.Generator | Sequence[torch.Generator] | None


def temperature(u: Float[Tensor, "*batch V"], tau: float) -> Float[Tensor, "*batch V"]:
    r"""Divide the logits by τ: below 1 sharpens the distribution, above 1 flattens it.

    $$\mathbf y=\mathrm{softmax}(\mathbf u/\tau)$$

    Source: `temperature`.

    Raises:
        ValueError: if τ is not above 0, or so small that quotients overflow.
    """
    check_sampling_option(temperature=tau)
    return u / tau


def top_k(u: Float[Tensor, "*batch V"], k: int) -> Float[Tensor, "*batch V"]:
    """Keep the k largest logits; the others become −∞.

    Source: `top-k`. The softmax that follows renormalizes. Of equal
    logits as many stay as there is room for; a k beyond the vocabulary keeps all.

    Raises:
        ValueError: if k is not a whole number of 1 or more.
    """
    check_sampling_option(top_k=k)
    largest, where = u.topk(min(k, u.shape[-1]), dim=-1)
    return torch.full_like(u, -math.inf).scatter(-1, where, largest)


def top_p(u: Float[Tensor, "*batch V"], p: float) -> Float[Tensor, "*batch V"]:
    r"""Keep the fewest words whose probabilities sum to at least p; the others become −∞.

    $$\sum_{w\in V^{(p)}}P(w\mid\mathbf w_{<t})\ge p$$

    Source: `top-p`. The word with which the sum reaches p is kept.

    Raises:
        ValueError: if p is not above 0 and at most 1.
    """
    check_sampling_option(top_p=p)
    if p == 1:
        return u
    y, order = next_word_probabilities(u).sort(dim=-1, descending=True, stable=True)
    before = F.pad(y.cumsum(dim=-1), (1, 0))[..., :-1]  # what the more probable words have together
    rounding = 4 * torch.finfo(y.dtype).eps  # which is not to decide whether a sum is p
    drop = (before > 0) & (before >= p - rounding)
    drop = torch.empty_like(drop).scatter(-1, order, drop)
    return u.masked_fill(drop, -math.inf)


def min_p(u: Float[Tensor, "*batch V"], p: float) -> Float[Tensor, "*batch V"]:
    r"""Keep the words with at least p times the largest probability; the others become −∞.

    $$P(w\mid\mathbf w_{<t})\ge p\max_{v\in V}P(v\mid\mathbf w_{<t})$$

    Where the model is sure few words stay, and where it is not many do. Source: Nguyen et al. 2024
    (arXiv 2407.01082), equations 1 to 3; not in the book.

    Raises:
        ValueError: if p is not above 0 and at most 1.
    """
    check_sampling_option(min_p=p)
    share = (u - u.amax(dim=-1, keepdim=True)).exp()  # of the largest: the softmax's sum cancels
    rounding = 4 * torch.finfo(share.dtype).eps  # which is not to decide whether a share is p
    return u.masked_fill(share < p * (1 - rounding), -math.inf)


def repetition_penalty(
    u: Float[Tensor, "*batch V"], ids: Int[Tensor, "*batch N"], theta: float
) -> Float[Tensor, "*batch V"]:
    """Make every word that is already in `ids` less likely: θ above 1 penalizes.

    Source: Keskar et al. 2019 (CTRL), section 4.1; not in the book. The paper divides the logit by
    θ, which would make a negative logit more likely; as is usual, those are multiplied instead.

    Raises:
        ValueError: if θ is not above 0.
    """
    check_sampling_option(repetition_penalty=theta)
    repeated = u.gather(-1, ids)
    return u.scatter(-1, ids, torch.where(repeated > 0, repeated / theta, repeated * theta))


def greedy(u: Float[Tensor, "*batch V"]) -> Int[Tensor, "*batch"]:
    r"""Return the most probable word, $\hat w_t=\arg\max_{w\in V}P(w\mid\mathbf w_{<t})$.

    Source: `greedy`.
    """
    return u.argmax(dim=-1)


def sample(u: Float[Tensor, "*batch V"], generator: Generators = None) -> Int[Tensor, "*batch"]:
    """Draw a word at random, each as often as its probability says.

    Source: `random`.

    Every word waits for an exponential time, on average 1/y; the first to arrive is word w with
    probability y[w]. Unlike `torch.multinomial` this never makes a GPU wait for the CPU.

    Args:
        u: logits; −∞ is never drawn.
        generator: where the random numbers come from, on the device of u; a list of them gives
            each row its own. None takes PyTorch's global one.
    """
    y = next_word_probabilities(u)
    wait = torch.empty_like(y)
    if isinstance(generator, Sequence):
        for row, own in zip(wait, generator, strict=True):
            row.exponential_(generator=own)
    else:
        wait.exponential_(generator=generator)
    return (y / wait).argmax(dim=-1)


def mask_disallowed(
    u: Float[Tensor, "batch V"], ids: Int[Tensor, "batch N"], allowed: AllowedTokens
) -> Float[Tensor, "batch V"]:
    """Keep what `allowed` names after the ids of each row; all other words become −∞.

    Raises:
        ValueError: if it names nothing after one of them, or what is not in the vocabulary.
    """
    may = torch.stack([to_allowed_mask(allowed(row), u.shape[-1]) for row in ids.tolist()])
    if not may.any(dim=-1).all():
        raise ValueError(f"After {ids.shape[-1]} tokens, `allowed` allows no token at all.")
    return u.masked_fill(~may.to(u.device), -math.inf)


def to_allowed_mask(words: Collection[int] | Tensor | None, vocab_size: int) -> Bool[Tensor, "V"]:
    """Turn the answer of `allowed` into one boolean per word: None allows all.

    Raises:
        ValueError: if it does not fit the vocabulary.
    """
    if isinstance(words, Tensor) and words.dtype == torch.bool:
        if words.shape != (vocab_size,):
            raise ValueError(
                f"`allowed` gave {format_shape(words)} booleans, but the vocabulary has "
                f"{vocab_size} words."
            )
        return words.cpu()
    may = torch.full((vocab_size,), words is None, device="cpu")
    if words is not None:
        words = [int(word) for word in words]
        if strange := [word for word in words if not 0 <= word < vocab_size]:
            raise ValueError(
                f"`allowed` named {strange[:5]}, but ids go from 0 to {vocab_size - 1}."
            )
        may[words] = True
    return may


def filter_logits(
    u: Float[Tensor, "batch V"],
    ids: Int[Tensor, "batch N"],
    *,
    allowed: AllowedTokens | None = None,
    **options: Any,
) -> Float[Tensor, "batch V"]:
    """Apply all that is asked for to the logits, in the order of `SAMPLING`.

    Args:
        u: the model's logits.
        ids: the tokens so far, which the logits come after.
        allowed: for `mask_disallowed`, which comes first.
        **options: values of `repetition_penalty`, `temperature`, `top_k`, `top_p`, `min_p` or
            another entry of `SAMPLING`; what is missing leaves the logits alone.

    Raises:
        TypeError: if there is no such option.
        ValueError: if one of them is out of its range, or nothing is allowed.
    """
    if allowed is not None:
        u = mask_disallowed(u, ids, allowed)
    for name, value in validate_sampling_options(options).items():
        u = SAMPLING[name].apply(u, ids, value)
    return u
