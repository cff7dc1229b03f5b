"""Sources of batches of pairs: what an encoder reads, and what a decoder should say.

In a file of its own from `slp_transformer.data.batches`, whose interface the sources have.
"""

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

from slp_transformer._internal.config_checks import check_positive_sizes
from slp_transformer._internal.shape_types import Int, Tensor, TokenIds
from slp_transformer.data.batches import Batch, evenly_spaced_indices, values_crc32
from slp_transformer.loss import IGNORE_INDEX
from slp_transformer.masks import padding_mask


class PaddedPairSource:
    """Teacher forcing on pairs: the encoder reads the source; the decoder the target so far.

    The decoder reads `begin_id` and the target, and should say the target and `end_id`. Shorter
    sequences are padded on the right; attention does not see padding in the source, nor the loss
    in the target.
    """

    def __init__(
        self,
        pairs: Sequence[tuple[TokenIds, TokenIds]],
        *,
        pad_id: int,
        begin_id: int,
        end_id: int,
    ):
        """Take pairs of rows of ids.

        Raises:
            ValueError: if there is no pair, or one with an empty source.
        """
        if not len(pairs):
            raise ValueError("There are no pairs to train on: give one or more.")
        for i, (source, _) in enumerate(pairs):
            if not len(source):
                raise ValueError(f"Pair {i} has an empty source: every source needs a token.")
        self.pairs: Sequence[tuple[TokenIds, TokenIds]] = pairs
        self.pad_id: int = pad_id
        self.begin_id: int = begin_id
        self.end_id: int = end_id
        self.eval_indices: Tensor = torch.arange(len(pairs))

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.pairs)

    def eval_subset(self, num_pairs: int) -> "PaddedPairSource":
        """Return a source of this many of the pairs, evenly spaced."""
        part = copy.copy(self)
        part.eval_indices = evenly_spaced_indices(len(self), num_pairs)
        return part

    def draw(self, batch_size: int, generator: torch.Generator) -> Batch:
        """Return random pairs, padded to the longest among them."""
        return self.collate(torch.randint(len(self.pairs), (batch_size,), generator=generator))

    def iter_eval(self, batch_size: int) -> Iterator[Batch]:
        """Yield all pairs, in their order."""
        yield from map(self.collate, self.eval_indices.split(batch_size))

    def collate(self, indices: Int[Tensor, "collate"]) -> Batch:
        """Return some pairs, given by index, as one padded batch."""
        pairs = [self.pairs[i] for i in indices.tolist()]
        sources = [torch.as_tensor(source).long() for source, _ in pairs]
        targets = [torch.as_tensor(target).long() for _, target in pairs]
        begin, end = torch.tensor([self.begin_id]), torch.tensor([self.end_id])
        source = pad_sequence(sources, True, self.pad_id)
        reads = pad_sequence([torch.cat([begin, row]) for row in targets], True, self.pad_id)
        says = pad_sequence([torch.cat([row, end]) for row in targets], True, IGNORE_INDEX)
        return Batch((source, reads, padding_mask(source, self.pad_id)), says)

    def fingerprint(self) -> dict[str, Any]:
        """Return the number of pairs, special ids, and a checksum of evenly spaced pairs."""
        places = torch.linspace(0, len(self.pairs) - 1, 256, dtype=torch.float64).long()
        rows = [[torch.as_tensor(row).tolist() for row in self.pairs[i]] for i in places.tolist()]
        special = [self.pad_id, self.begin_id, self.end_id]
        return {"pairs": len(self.pairs), "special": special, "checksum": values_crc32(rows)}


class LengthBucketedPairSource(PaddedPairSource):
    """Pairs like those of `PaddedPairSource`, each once an epoch, in batches of similar length.

    A batch has as many pairs as fit: their number times the longest row among them, padding
    included, is at most `max_tokens`, for the sources as for the targets. So little is padded, and
    every step costs about the same.

    The epochs follow from the generator's seed and the number of the step, to which the loop goes
    when a run is resumed.
    """

    def __init__(
        self, pairs: Sequence[tuple[TokenIds, TokenIds]], *, max_tokens: int, **special_ids: int
    ):
        """Take pairs of rows of ids.

        Args:
            pairs: the pairs.
            max_tokens: tokens in a batch.
            **special_ids: pad_id, begin_id and end_id, as `PaddedPairSource` takes them.

        Raises:
            ValueError: if there is no pair, one has an empty source, or one is longer than a batch.
        """
        super().__init__(pairs, **special_ids)
        check_positive_sizes(max_tokens=max_tokens)
        sizes = [(len(source), len(target) + 1) for source, target in pairs]
        self.max_tokens: int = max_tokens
        self.lengths: Tensor = torch.tensor(sizes)
        self.max_lengths: list[int] = self.lengths.max(dim=1).values.tolist()
        longest = max(range(len(pairs)), key=self.max_lengths.__getitem__)
        if self.max_lengths[longest] > max_tokens:
            raise ValueError(
                f"Pair {longest} has {self.max_lengths[longest]} tokens, but a batch just "
                f"{max_tokens}: give it more, or leave the pair out."
            )
        self.seek(0)

    def seek(self, step: int) -> None:
        """Continue `draw` with the batch of a step, counted from 0."""
        self.step: int = step
        self.epoch_start_step: int = 0
        self.num_epochs_begun: int = 0
        self.batches: list[Tensor] = []  # of the epoch that began at step `begun`

    def draw(self, batch_size: int, generator: torch.Generator) -> Batch:
        """Return the next batch of the epoch, of at most `batch_size` pairs."""
        seed = generator.initial_seed() * 1_000_003
        while self.step >= self.epoch_start_step + len(self.batches):
            self.epoch_start_step += len(self.batches)
            self.batches = self.shuffle_into_batches(batch_size, seed + self.num_epochs_begun)
            self.num_epochs_begun += 1
        batch = self.collate(self.batches[self.step - self.epoch_start_step])
        self.step += 1
        return batch

    def iter_eval(self, batch_size: int) -> Iterator[Batch]:
        """Yield all pairs, the short ones first."""
        order = length_sorted_indices(self.lengths[self.eval_indices])
        yield from map(self.collate, self.pack_batches(self.eval_indices[order], batch_size))

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
        """Return what `PaddedPairSource` returns, and the number of tokens in a batch."""
        return super().fingerprint() | {"batch_tokens": self.max_tokens}


def length_sorted_indices(lengths: Int[Tensor, "pairs two"]) -> Int[Tensor, "pairs"]:
    """Return indices that sort pairs by the length of the target, then by that of the source.

    Sources go from short to long and back again, so that neighbors are similar on both sides.
    """
    M, N = lengths.T
    M = torch.where(N % 2 == 0, M, -M)
    order = torch.argsort(M, stable=True)
    return order[torch.argsort(N[order], stable=True)]
