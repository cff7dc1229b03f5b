"""Beam search: go on with several hypotheses at once, and take the best."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

import torch

from slp_transformer.shapes import Int, Tensor


@dataclass(frozen=True)
class Hypothesis:
    """One way to go on from a prompt.

    Attributes:
        ids: the prompt, and what was written after it.
        score: as `normalised` gives it.
        stopped: whether it ends in a stop token.
    """

    ids: list[int]
    score: float
    stopped: bool


def normalised(log_probability: float, length: int, alpha: float = 1.0) -> float:
    r"""The score of a hypothesis, $\frac{1}{T^\alpha}\sum_{t=1}^T\log P(y_t\mid y_{<t},x)$.

    Source: `beam-score` for α = 0, the plain sum (13.15 in the Aug 2026 draft), which favours short
    hypotheses, since every word adds something negative; `beam-norm` for α = 1, the mean (13.16).

    Args:
        log_probability: the sum over the words written.
        length: T, how many were written, the stop token included.
        alpha: how much the length counts.
    """
    return log_probability / length**alpha


def beam_search(
    read: Callable[[Tensor], Tensor],
    reorder: Callable[[Tensor], None],
    prompt: Int[Tensor, "N"],
    end: int,
    *,
    width: int,
    alpha: float = 1.0,
    stop: Collection[int] = (),
) -> list[Hypothesis]:
    """Search for the most probable way to go on.

    At each step every hypothesis is continued with every word, and the `width` best of all these
    stay. One that ends in a stop token is complete and makes the beam one narrower, until none is
    left to grow.

    Source: the beam search algorithm of the translation chapter (13 in the Aug 2026 draft).

    Args:
        read: gives logits [hypotheses × V] of the word after ids [hypotheses × T].
        reorder: tells the reader that hypothesis h now goes on from what was hypothesis `rows[h]`.
        prompt: what all hypotheses begin with.
        end: the length at which they are cut off, the prompt included.
        width: how many hypotheses grow at a time.
        alpha: how much the length counts in the score, see `normalised`.
        stop: ids that end a hypothesis.

    Returns:
        The hypotheses that ended in a stop token, best first; if none did, those cut off.

    Raises:
        ValueError: if no word can follow, since the logits are not numbers.
    """
    ids, total, complete = prompt.unsqueeze(0), torch.zeros(1, device=prompt.device), []

    def hypotheses(rows: Tensor, stopped: bool) -> list[Hypothesis]:
        written = ids.shape[1] - len(prompt)
        return [
            Hypothesis(ids[h].tolist(), normalised(total[h].item(), written, alpha), stopped)
            for h in rows.tolist()
        ]

    while ids.shape[1] < end and len(complete) < width:
        log_y = torch.log_softmax(read(ids), dim=-1)
        totals = (total.unsqueeze(1) + log_y).flatten()
        possible = int(totals.isfinite().sum())
        if possible == 0:
            raise ValueError(
                "After these tokens the model's logits are not numbers, so no word can follow: "
                f"{ids[0].tolist()}."
            )
        total, best = totals.topk(min(width - len(complete), possible))
        parents, words = best // log_y.shape[1], best % log_y.shape[1]
        ids = torch.cat([ids[parents], words.unsqueeze(1)], dim=1)
        ended = torch.isin(words, torch.tensor(list(stop), device=words.device))
        complete += hypotheses(ended.nonzero().flatten(), stopped=True)
        growing = (~ended).nonzero().flatten()
        if len(growing) == 0:
            break
        if parents[growing].tolist() != list(range(len(log_y))):
            reorder(parents[growing])
        ids, total = ids[growing], total[growing]
    complete = complete or hypotheses(torch.arange(len(ids)), stopped=False)
    return sorted(complete, key=lambda h: h.score, reverse=True)
