"""Patterns of attention, as scores: the mean weight on the place where a kind of head looks."""

import torch

from slp_transformer._internal.shape_types import Float, Int, Tensor, format_shape


def repeated_tokens(
    vocab_size: int,
    period: int,
    batch_size: int,
    copies: int = 2,
    generator: torch.Generator | None = None,
) -> Int[Tensor, "batch N"]:
    """Draw different tokens at random and repeat them, so that each has one token that follows it.

    Args:
        vocab_size: |V|.
        period: P, tokens until they repeat, all different within a sequence.
        batch_size: sequences.
        copies: how many times each sequence holds its P tokens.
        generator: where the random tokens come from.

    Raises:
        ValueError: if there are fewer than P tokens to draw from.
    """
    if period > vocab_size:
        raise ValueError(
            f"The {period} tokens of a period are all different, but the vocabulary has only "
            f"{vocab_size}."
        )
    orders = torch.rand(batch_size, vocab_size, generator=generator).argsort(dim=-1)
    return orders[:, :period].repeat(1, copies)


def previous_token_score(alpha: Float[Tensor, "*batch A N N"]) -> Float[Tensor, "A"]:
    """The mean weight of each head on the token before.

    Args:
        alpha: attention weights.
    """
    return _mean_weight(alpha, back=1, start=1)


def induction_score(alpha: Float[Tensor, "*batch A N N"], period: int) -> Float[Tensor, "A"]:
    """The mean weight of each head on the token that came after this one the last time.

    On `repeated_tokens`, token i of a later copy was at i − P before, so an induction head looks at
    i − P + 1 (prefix matching). A head that knows nothing gives 1/i there.

    Source: `induction` (the rule A B … A → B); Olsson et al. 2022.

    Args:
        alpha: attention weights on such a sequence.
        period: P.

    Raises:
        ValueError: if the sequence does not repeat within its N tokens.
    """
    if not 1 < period < alpha.shape[-1]:
        raise ValueError(
            f"A period is from 2 up to the tokens that are looked at, not {period}: the weights "
            f"are {format_shape(alpha)}."
        )
    return _mean_weight(alpha, back=period - 1, start=period)


def _mean_weight(alpha: Tensor, back: int, start: int) -> Tensor:
    """The mean weight of tokens from `start` on, at what stands so far back."""
    i = torch.arange(start, alpha.shape[-1], device=alpha.device)
    weights = alpha[..., i, i - back]
    return weights.flatten(0, -3).mean(dim=(0, -1)) if weights.dim() > 2 else weights.mean(dim=-1)
