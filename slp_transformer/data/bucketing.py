"""Batches of pairs of similar length, filled up to a number of tokens."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from slp_transformer._internal.config_checks import check_size
from slp_transformer._internal.shape_types import Int, Tensor
from slp_transformer.data.batches import Batch, PaddedPairs


class LengthBucketedPairs(PaddedPairs):
    """Pairs like those of `PaddedPairs`, each once an epoch, batched with others of similar length.

    A batch has as many pairs as fit: their number times the longest row among them, padding
    included, is at most `max_tokens`, for the sources as for the targets. So little is padded, and
    every step costs about the same.

    The epochs follow from the generator's seed and the number of the step, to which the loop goes
    when a run is resumed.
    """

    def __init__(
        self,
        pairs: Sequence[tuple[Int[Tensor, "M"], Int[Tensor, "N"]]],
        *,
        max_tokens: int,
        pad_id: int,
        begin_id: int,
        end_id: int,
    ):
        """Take pairs of rows of ids.

        Raises:
            ValueError: if there is no pair, one has an empty source, or one is longer than a batch.
        """
        super().__init__(pairs, pad_id=pad_id, begin_id=begin_id, end_id=end_id)
        check_size(max_tokens=max_tokens)
        self.init_kwargs |= {"max_tokens": max_tokens}
        sizes = [(len(source), len(target) + 1) for source, target in pairs]
        self.max_tokens, self.lengths = max_tokens, torch.tensor(sizes)
        self.max_lengths = self.lengths.max(dim=1).values.tolist()
        longest = max(self.max_lengths)
        if longest > max_tokens:
            raise ValueError(
                f"Pair {self.max_lengths.index(max(self.max_lengths))} has "
                f"{max(self.max_lengths)} tokens, but a batch just {max_tokens}: "
                f"give it more, or leave the pair out."
            )
        self.seek(0)

    def seek(self, step: int) -> None:
        """Continue `draw` with the batch of a step, counted from 0."""
        self.step, self.epoch_start_step, self.num_epochs_begun = step, 0, 0
        self.batches: list[Tensor] = []  # of the epoch that began at step `begun`

    def draw(self, batch_size: int, generator: torch.Generator) -> Batch:
        """Return the next batch of the epoch, of at most `batch_size` pairs."""
        seed = generator.initial_seed()
        while self.step >= self.epoch_start_step + len(self.batches):
            self.epoch_start_step += len(self.batches)
            self.batches = self.shuffle_into_batches(
                batch_size, seed * 1_000_003 + self.num_epochs_begun
            )
            self.num_epochs_begun += 1
        batch = self.collate(self.batches[self.step - self.epoch_start_step])
        self.step += 1
        return batch

    def iter_eval(self, batch_size: int) -> Iterator[Batch]:
        """Yield all pairs, the short ones first."""
        yield from map(
            self.collate, self.pack_batches(length_sorted_indices(self.lengths), batch_size)
        )

    @property
    def estimated_batches_per_epoch(self) -> int:
        """Return about how many batches all pairs fill, if only their tokens are limited."""
        return -(-sum(self.max_lengths) // self.max_tokens)

    def steps_per_epoch(self, batch_size: int, seed: int) -> int:
        """Return the number of batches in the first epoch of a seed; others differ by a few."""
        return len(self.shuffle_into_batches(batch_size, seed * 1_000_003))

    def shuffle_into_batches(self, batch_size: int, seed: int) -> list[Int[Tensor, "_"]]:
        """Return the batches of an epoch, in random order.

        A little noise is added to the lengths before sorting, so that batches differ from epoch to
        epoch.
        """
        random = torch.Generator().manual_seed(seed % 2**63)
        mixed = torch.randperm(len(self.pairs), generator=random)
        blur = torch.randint(3, self.lengths.shape, generator=random)
        batches = self.pack_batches(
            mixed[length_sorted_indices((self.lengths + blur)[mixed])], batch_size
        )
        return [batches[i] for i in torch.randperm(len(batches), generator=random).tolist()]

    def pack_batches(self, order: Int[Tensor, "pairs"], batch_size: int) -> list[Int[Tensor, "_"]]:
        """Cut a sequence of pairs into batches, each as large as the limits allow."""
        ends, count, longest = [], 0, 0
        for i in order.tolist():
            longest = max(longest, self.max_lengths[i])
            if count and (count == batch_size or (count + 1) * longest > self.max_tokens):
                ends.append(count)
                count, longest = 0, self.max_lengths[i]
            count += 1
        return list(order.split([*ends, count]))

    def fingerprint(self) -> dict[str, Any]:
        """Return what `PaddedPairs` returns, and the number of tokens in a batch."""
        return super().fingerprint() | {"batch_tokens": self.max_tokens}


def length_sorted_indices(lengths: Int[Tensor, "pairs two"]) -> Int[Tensor, "pairs"]:
    """Return indices that sort pairs by the length of the target, then by that of the source.

    Sources go from short to long and back again, so that neighbors are similar on both sides.
    """
    M, N = lengths.T
    M = torch.where(N % 2 == 0, M, -M)
    order = torch.argsort(M, stable=True)
    return order[torch.argsort(N[order], stable=True)]
