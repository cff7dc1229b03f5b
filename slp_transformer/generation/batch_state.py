"""Texts that are being written, side by side, as rows of ids."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F

from slp_transformer._internal.shape_types import Float, Int, Tensor
from slp_transformer.generation.request_checks import Ids


def pad(
    rows: Sequence[Ids] | Tensor, device: torch.device | str
) -> tuple[Int[Tensor, "batch M"], Float[Tensor, "batch 1 M"] | None]:
    """Sequences of any lengths as one batch, and the mask that hides what fills it up on the right.

    The mask goes by the lengths, so no id has to stand for padding. It is None where there is none.
    """
    lengths = [len(row) for row in rows]
    ids = torch.zeros(len(lengths), max(lengths), dtype=torch.long)
    mask = torch.zeros(len(lengths), 1, max(lengths))
    for b, row in enumerate(rows):
        ids[b, : lengths[b]] = torch.as_tensor(row)
        mask[b, :, lengths[b] :] = -math.inf
    return ids.to(device), None if min(lengths) == max(lengths) else mask.to(device)


class Drafts:
    """Texts that grow side by side: all stand at the same position at every step.

    Attributes:
        ids: the texts that are read, one row each, with room for what is to come.
        known: how many ids of each row are read by now.
        growing: which texts are to be written on.
    """

    def __init__(self, texts: Sequence[list[int]], ends: Sequence[int], device: torch.device):
        """Begin with what the texts go on from; for the arguments see `write`."""
        ids, _ = pad(texts, device)
        self.ids = F.pad(ids, (0, max(ends) - ids.shape[1]))
        self.begun, self.ends, self.stopped = list(map(len, texts)), list(ends), [False] * len(ids)
        self.growing, self.known = list(range(len(ids))), min(self.begun)
        self._row_of = {text: row for row, text in enumerate(self.growing)}  # those that are read
        self._written: dict[int, list[int]] = {}

    @property
    def read(self) -> Int[Tensor, "rows known"]:
        """What there is of each row so far."""
        return self.ids[:, : self.known]

    def ready(self) -> tuple[slice | list[int], list[int]]:
        """The rows that have been read to their end, and which texts they are."""
        ready = [text for text in self.growing if self.begun[text] <= self.known]
        if len(ready) == len(self._row_of):
            return slice(None), ready
        return [self._row_of[text] for text in ready], ready

    def put(self, here: slice | list[int], words: Int[Tensor, "ready"]) -> None:
        """Write the next word of some rows."""
        self.ids[here, self.known] = words
        self.known += 1

    def stop(self, text: int) -> None:
        """End a text with the word just written."""
        self.ends[text], self.stopped[text] = self.known, True

    def go_on(self) -> list[int] | None:
        """Skip what all texts begin with; no longer read those that have ended, where that pays.

        Returns:
            The rows that are read from now on, if not all are.
        """
        self.growing = [text for text in self.growing if self.known < self.ends[text]]
        shortest = min((self.begun[text] for text in self.growing), default=self.known)
        self.known = max(self.known, shortest)
        if not dropping_pays(len(self.growing), len(self._row_of)):
            return None
        self._keep()
        kept = [self._row_of[text] for text in self.growing]
        self.ids = self.ids[kept]
        self._row_of = {text: row for row, text in enumerate(self.growing)}
        return kept

    def results(self) -> list[tuple[list[int], bool]]:
        """Each text with what was written, and whether a stop token ended it."""
        self._keep()
        return [(self._written[t][:end], self.stopped[t]) for t, end in enumerate(self.ends)]

    def _keep(self) -> None:
        self._written |= zip(self._row_of, self.ids.tolist(), strict=True)


def dropping_pays(growing: int, read: int) -> bool:
    """Whether to read the growing rows alone from now on, and no longer those that have ended.

    That copies what the cache holds of the growing rows. Done whenever half of the rows have ended,
    it comes to less than one copy of the whole batch by the end, and what is copied is no more than
    what is no longer read at each step.
    """
    return 0 < growing <= read / 2
