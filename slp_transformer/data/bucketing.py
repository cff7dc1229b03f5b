"""Batches of pairs of similar length, filled up to a number of tokens."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from slp_transformer._internal.config_checks import check_size
from slp_transformer._internal.shape_types import Int, Tensor
from slp_transformer.data.batches import Batch, PaddedPairs


class PairsByLength(PaddedPairs):
    """Pairs as `PaddedPairs` has them, each once an epoch, beside others of similar length.

    A batch has as many pairs as fit: their number times the longest row among them, padding
    included, is at most `tokens`, for the sources as for the targets. So little is padded, and
    every step costs about the same.

    The epochs follow from the generator's seed and the number of the step, to which the loop goes
    when a run is resumed.
    """

    def __init__(
        self,
        pairs: Sequence[tuple[Int[Tensor, "M"], Int[Tensor, "N"]]],
        *,
        tokens: int,
        pad_id: int,
        begin_id: int,
        end_id: int,
    ):
        """Take pairs of rows of ids.

        Raises:
            ValueError: if there is no pair, one has an empty source, or one is longer than a batch.
        """
        super().__init__(pairs, pad_id=pad_id, begin_id=begin_id, end_id=end_id)
        check_size(tokens=tokens)
        self.options |= {"tokens": tokens}
        sizes = [(len(source), len(target) + 1) for source, target in pairs]
        self.tokens, self.sizes = tokens, torch.tensor(sizes)
        self.longest = self.sizes.max(dim=1).values.tolist()
        if max(self.longest) > tokens:
            raise ValueError(
                f"Pair {self.longest.index(max(self.longest))} has {max(self.longest)} tokens, but "
                f"a batch just {tokens}: give it more, or leave the pair out."
            )
        self.go_to(0)

    def go_to(self, step: int) -> None:
        """Have `draw` go on with the batch of a step, counted from 0."""
        self.step, self.begun, self.epochs = step, 0, 0
        self.batches: list[Tensor] = []  # of the epoch that began at step `begun`

    def draw(self, batch_size: int, generator: torch.Generator) -> Batch:
        """The next batch of the epoch, of at most `batch_size` pairs."""
        seed = generator.initial_seed()
        while self.step >= self.begun + len(self.batches):
            self.begun += len(self.batches)
            self.batches = self.epoch(batch_size, seed * 1_000_003 + self.epochs)
            self.epochs += 1
        batch = self.batch(self.batches[self.step - self.begun])
        self.step += 1
        return batch

    def in_order(self, batch_size: int) -> Iterator[Batch]:
        """All pairs, the short ones first."""
        yield from map(self.batch, self.cut(by_length(self.sizes), batch_size))

    @property
    def batches_an_epoch(self) -> int:
        """About how many batches all pairs fill, if no number of pairs is the most."""
        return -(-sum(self.longest) // self.tokens)

    def steps_an_epoch(self, batch_size: int, seed: int) -> int:
        """How many batches the first epoch of a generator's seed has; others differ by a few."""
        return len(self.epoch(batch_size, seed * 1_000_003))

    def epoch(self, batch_size: int, seed: int) -> list[Int[Tensor, "_"]]:
        """All pairs in batches, which follow each other at random.

        Lengths are blurred a little before they are compared, so that the same pairs do not meet in
        every epoch.
        """
        random = torch.Generator().manual_seed(seed % 2**63)
        mixed = torch.randperm(len(self.pairs), generator=random)
        blur = torch.randint(3, self.sizes.shape, generator=random)
        batches = self.cut(mixed[by_length((self.sizes + blur)[mixed])], batch_size)
        return [batches[i] for i in torch.randperm(len(batches), generator=random).tolist()]

    def cut(self, order: Int[Tensor, "pairs"], batch_size: int) -> list[Int[Tensor, "_"]]:
        """Pairs that follow each other as batches, each as large as may be."""
        ends, count, longest = [], 0, 0
        for i in order.tolist():
            longest = max(longest, self.longest[i])
            if count and (count == batch_size or (count + 1) * longest > self.tokens):
                ends.append(count)
                count, longest = 0, self.longest[i]
            count += 1
        return list(order.split([*ends, count]))

    def describe(self) -> dict[str, Any]:
        """As `PaddedPairs` does, and how many tokens a batch has."""
        return super().describe() | {"batch_tokens": self.tokens}


def by_length(sizes: Int[Tensor, "pairs two"]) -> Int[Tensor, "pairs"]:
    """The order of pairs by the length of their targets, and among equals by that of their sources.

    Sources go from short to long and back again, so that neighbours are alike on both sides.
    """
    M, N = sizes.T
    M = torch.where(N % 2 == 0, M, -M)
    order = torch.argsort(M, stable=True)
    return order[torch.argsort(N[order], stable=True)]
