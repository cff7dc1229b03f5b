"""Beam search: go on with several hypotheses at once, and take the best."""

import math
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import torch

from slp_transformer._internal.shape_types import Float, Int, Tensor


class Hypothesis(NamedTuple):
    """One way to go on from a prompt.

    Attributes:
        ids: the prompt, and what was written after it.
        score: as `length_normalized_score` gives it; None without a beam search.
        hit_stop_token: whether it ends in a stop token.
    """

    ids: list[int]
    score: float | None
    hit_stop_token: bool


def length_normalized_score(log_probability: float, length: int, alpha: float = 1.0) -> float:
    r"""The score of a hypothesis, $\frac{1}{T^\alpha}\sum_{t=1}^T\log P(y_t\mid y_{<t},x)$.

    Source: `beam-score` for α = 0, the plain sum, which favors short
    hypotheses, since every word adds something negative; `beam-norm` for α = 1, the mean.

    Args:
        log_probability: the sum over the words written.
        length: T, how many were written, the stop token included.
        alpha: how much the length counts.
    """
    return log_probability / length**alpha


class BeamSearchState:
    """The hypotheses of one prompt: those that grow, and those that are complete.

    Source: the beam search algorithm of the translation chapter.

    Attributes:
        ids: a row for each hypothesis that grows; before the first step the prompt alone.
        log_probs: the log probability of what was written in each row.
        finished: the hypotheses that ended in a stop token.

    All of it lies on the CPU, wherever the model is.
    """

    def __init__(
        self, prompt: Int[Tensor, "N"], end: int, width: int, alpha: float, stop: Collection[int]
    ):
        """Begin with the prompt; for the arguments see `beam_search`."""
        self.ids: Tensor = prompt.cpu().unsqueeze(0)
        # In double precision: sums of hundreds of words would make beams equal by rounding.
        self.log_probs: Tensor = torch.zeros(1, dtype=torch.double, device="cpu")
        self.finished: list[Hypothesis] = []
        self.start: int = len(prompt)
        self.end: int = end
        self.width: int = width
        self.alpha: float = alpha
        self.stop: Tensor = torch.tensor(list(stop), dtype=torch.long, device="cpu")

    @property
    def can_grow(self) -> bool:
        """Tell if some hypothesis is unfinished, and there is room to extend it."""
        return len(self.ids) > 0 and self.ids.shape[1] < self.end

    def advance(
        self, log_y: Float[Tensor, "rows best"], token_ids: Int[Tensor, "rows best"]
    ) -> list[int]:
        """Continue every hypothesis with each of its best words, and keep the best of all these.

        One that ends in a stop token is complete and makes the beam one narrower.

        Args:
            log_y: log probabilities of the most probable words after each row of `ids`.
            token_ids: which words these are. No more than the beam is wide can be needed.

        Returns:
            For each row that `ids` has now, the row that it continues.

        Raises:
            ValueError: if no word can follow, since the logits are not numbers.
        """
        totals = (self.log_probs.unsqueeze(1) + log_y).flatten()
        # A finished hypothesis keeps its place, so the beam narrows until all of it has finished.
        best, places = totals.topk(min(self.width - len(self.finished), len(totals)))
        parents, words = places // log_y.shape[1], token_ids.flatten()[places]
        if not best[0].isfinite():  # NaN counts as the largest
            raise ValueError(
                "After these tokens the model's logits are not numbers, so no word can follow: "
                f"{self.ids[parents[0]].tolist()}."
            )
        ids = torch.cat([self.ids[parents], words.unsqueeze(1)], dim=1)
        possible, stops = best > -math.inf, torch.isin(words, self.stop)
        ended, growing = possible & stops, possible & ~stops
        self.finished += self._to_hypotheses(ids[ended], best[ended], True)
        self.ids = ids[growing]
        self.log_probs = best[growing]
        return parents[growing].tolist()

    def ranked_hypotheses(self) -> list[Hypothesis]:
        """The complete hypotheses, best first; if there are none, those cut off."""
        found = self.finished or self._to_hypotheses(self.ids, self.log_probs, False)
        return sorted(found, key=lambda h: h.score or 0.0, reverse=True)

    def _to_hypotheses(self, ids: Tensor, total: Tensor, stopped: bool) -> list[Hypothesis]:
        T = ids.shape[1] - self.start
        return [
            Hypothesis(row, length_normalized_score(log_probability, T, self.alpha), stopped)
            for row, log_probability in zip(ids.tolist(), total.tolist(), strict=True)
        ]


def beam_search(
    next_logits: Callable[[Tensor, list[int]], Tensor],
    reorder: Callable[[list[int]], None],
    prompts: Sequence[Int[Tensor, "_"]],
    max_lengths: Sequence[int],
    *,
    width: int,
    alpha: float = 1.0,
    stop: Collection[int] = (),
) -> list[list[Hypothesis]]:
    """Search for the most probable way to go on after each prompt, with a `BeamSearchState` each.

    The hypotheses of all prompts are read together, so all stand at the same position: where those
    of a short prompt grow, a longer prompt is read one word further.

    Args:
        next_logits: called with the ids so far [rows × T], and with the rows that have a word to
            choose; gives the logits of that word [chosen × V].
        reorder: tells the reader that row r of the next ids goes on from what was row `rows[r]`.
        prompts: what the hypotheses begin with.
        max_lengths: the length at which those of each prompt are cut off, the prompt included.
        width: how many hypotheses of a prompt grow at a time.
        alpha: how much the length counts in the score, see `length_normalized_score`.
        stop: ids that end a hypothesis.

    Returns:
        For each prompt the hypotheses that ended in a stop token, best first; if none did, those
        cut off.

    Raises:
        ValueError: if no word can follow, since the logits are not numbers.
    """
    beams = [
        BeamSearchState(*one, width, alpha, stop) for one in zip(prompts, max_lengths, strict=True)
    ]
    growing = [beam for beam in beams if beam.can_grow]
    while growing:
        # Prompts differ in length: beams behind the others go on alone until they are level.
        known = min(beam.ids.shape[1] for beam in growing)
        ids = torch.cat([beam.ids[:, :known] for beam in growing])
        places = torch.arange(len(ids), device="cpu").split([len(beam.ids) for beam in growing])
        rows = {beam: its.tolist() for beam, its in zip(growing, places, strict=True)}
        ready = [beam for beam in growing if beam.ids.shape[1] == known]
        log_y = torch.log_softmax(
            next_logits(ids, [r for beam in ready for r in rows[beam]]), dim=-1
        )
        best = log_y.topk(min(width, log_y.shape[1]), dim=-1)  # of all rows at once, which is quick
        shares = [each.cpu().split([len(rows[beam]) for beam in ready]) for each in best]
        for beam, *its in zip(ready, *shares, strict=True):
            rows[beam] = [rows[beam][parent] for parent in beam.advance(*its)]
        growing = [beam for beam in growing if beam.can_grow]
        kept = [row for beam in growing for row in rows[beam]]
        if growing and kept != list(range(len(ids))):
            reorder(kept)
    return [beam.ranked_hypotheses() for beam in beams]
