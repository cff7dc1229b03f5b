"""Texts that are being written, side by side, as rows of ids."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F

from slp_transformer._internal.shape_types import Float, Int, Tensor
from slp_transformer.generation.request_checks import TokenIds


def pad_right(
    rows: Sequence[TokenIds] | Tensor, device: torch.device | str
) -> tuple[Int[Tensor, "batch M"], Float[Tensor, "batch 1 M"] | None]:
    """Sequences of any lengths as one batch, and the mask that hides what fills it up on the right.

    The mask goes by the lengths, so no id has to stand for padding. It is None where there is none.
    """
    lengths = [len(row) for row in rows]
    ids = torch.zeros(len(lengths), max(lengths), dtype=torch.long, device="cpu")
    mask = torch.zeros(len(lengths), 1, max(lengths), device="cpu")
    for b, row in enumerate(rows):
        ids[b, : lengths[b]] = torch.as_tensor(row, device="cpu")
        mask[b, :, lengths[b] :] = -math.inf
    return ids.to(device), None if min(lengths) == max(lengths) else mask.to(device)


class BatchState:
    """Texts that grow side by side: all stand at the same position at every step.

    Attributes:
        ids: the texts that are read, one row each, with room for what is to come.
        num_read: how many ids of each row are read by now.
        unfinished: which texts are to be written on.
    """

    def __init__(
        self, texts: Sequence[list[int]], max_lengths: Sequence[int], device: torch.device
    ):
        """Begin with what the texts go on from; for the arguments see `write`."""
        ids, _ = pad_right(texts, device)
        self.ids = F.pad(ids, (0, max(max_lengths) - ids.shape[1]))
        self.prompt_lengths, self.max_lengths, self.hit_stop_token = (
            list(map(len, texts)),
            list(max_lengths),
            [False] * len(ids),
        )
        self.unfinished, self.num_read = list(range(len(ids))), min(self.prompt_lengths)
        self._row_of = {
            text: row for row, text in enumerate(self.unfinished)
        }  # those that are read
        self._saved_rows: dict[int, list[int]] = {}

    @property
    def read_ids(self) -> Int[Tensor, "rows known"]:
        """What there is of each row so far."""
        return self.ids[:, : self.num_read]

    def rows_to_extend(self) -> tuple[slice | list[int], list[int]]:
        """The rows that have been read to their end, and which texts they are."""
        ready = [text for text in self.unfinished if self.prompt_lengths[text] <= self.num_read]
        if len(ready) == len(self._row_of):
            return slice(None), ready
        return [self._row_of[text] for text in ready], ready

    def append_tokens(
        self, rows: slice | list[int], token_ids: Int[Tensor, "rows_to_extend"]
    ) -> None:
        """Write the next word of some rows."""
        self.ids[rows, self.num_read] = token_ids
        self.num_read += 1

    def finish(self, text: int) -> None:
        """End a text with the word just written."""
        self.max_lengths[text], self.hit_stop_token[text] = self.num_read, True

    def drop_finished(self) -> list[int] | None:
        """Skip what all texts begin with; no longer read those that have ended, where that pays.

        Returns:
            The rows that are read from now on, if not all are.
        """
        self.unfinished = [
            text for text in self.unfinished if self.num_read < self.max_lengths[text]
        ]
        shortest = min(
            (self.prompt_lengths[text] for text in self.unfinished), default=self.num_read
        )
        self.num_read = max(self.num_read, shortest)
        if not should_drop_rows(len(self.unfinished), len(self._row_of)):
            return None
        self._save_rows()
        kept = [self._row_of[text] for text in self.unfinished]
        self.ids = self.ids[kept]
        self._row_of = {text: row for row, text in enumerate(self.unfinished)}
        return kept

    def results(self) -> list[tuple[list[int], bool]]:
        """Each text with what was written, and whether a stop token ended it."""
        self._save_rows()
        return [
            (self._saved_rows[t][:end], self.hit_stop_token[t])
            for t, end in enumerate(self.max_lengths)
        ]

    def _save_rows(self) -> None:
        self._saved_rows |= zip(self._row_of, self.ids.tolist(), strict=True)


def should_drop_rows(num_unfinished: int, num_rows: int) -> bool:
    """Whether to read the growing rows alone from now on, and no longer those that have ended.

    That copies what the cache holds of the growing rows. Done whenever half of the rows have ended,
    it comes to less than one copy of the whole batch by the end, and what is copied is no more than
    what is no longer read at each step.
    """
    return 0 < num_unfinished <= num_rows / 2
