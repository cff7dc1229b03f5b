"""Decoding: from a distribution over the next word to the next word, and so on."""

import math
from collections.abc import Callable

import torch

from slp_transformer.language_model import TransformerLM, next_word_probabilities
from slp_transformer.shapes import Int, Tensor

Allowed = Callable[[list[int]], set[int] | None]


@torch.no_grad()
def sample(
    model: TransformerLM,
    prompt: Int[Tensor, "tokens"],
    max_new_tokens: int,
    *,
    generator: torch.Generator,
    temperature: float = 1.0,
    stop: int | None = None,
    allowed: Allowed | None = None,
) -> Int[Tensor, "written"]:
    r"""Draw one word after another, each from $\mathrm{softmax}(\mathbf u/\tau)$.

    Source: `random` (section 7.6.2 of the Aug 2026 draft) and `temperature` (7.50 and 7.51 there).
    Past the model's window, it reads the last `context_length` tokens.

    Args:
        model: the language model.
        prompt: ids to go on from; at least one.
        max_new_tokens: when to stop at the latest.
        generator: where the random draws come from.
        temperature: τ; below 1 sharpens, above 1 flattens.
        stop: an id after which to stop.
        allowed: called with all ids so far; returns the ids that may come next, or None for any.

    Returns:
        The prompt and what was written after it.

    Raises:
        ValueError: if the prompt is empty, the temperature is not above 0, or nothing is allowed.
    """
    if len(prompt) == 0:
        raise ValueError("The prompt is empty: give at least one token to go on from.")
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, not {temperature!r}.")
    ids = prompt.tolist()
    for _ in range(max_new_tokens):
        window = torch.tensor(ids[-model.config.context_length :])
        u = model(window)[-1] / temperature
        if allowed is not None and (may := allowed(ids)) is not None:
            if not may:
                raise ValueError(f"After {len(ids)} tokens, `allowed` allows no token at all.")
            forbidden = torch.ones_like(u, dtype=torch.bool)
            forbidden[list(may)] = False
            u = u.masked_fill(forbidden, -math.inf)
        y = next_word_probabilities(u)
        ids.append(int(torch.multinomial(y, 1, generator=generator)))
        if ids[-1] == stop:
            break
    return torch.tensor(ids)
