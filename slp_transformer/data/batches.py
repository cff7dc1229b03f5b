"""Sources of batches: windows of a token stream, or pairs of sequences.

A source draws random batches to train on and iterates over all of its data in order to evaluate.
The trainer needs nothing else, so a custom source only has to implement the methods of
`DataSource`. A step's whole batch is drawn at once and split afterwards: into the parts of an
accumulated gradient, or among several processes, which then see the same batches as one.
"""

import copy
import zlib
from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch.nn.utils.rnn import pad_sequence

from slp_transformer._internal.config_checks import check_size
from slp_transformer._internal.shape_types import Int, Tensor, format_shape
from slp_transformer.data.token_file import ArrayTokens, find_token_positions
from slp_transformer.loss import IGNORE_INDEX
from slp_transformer.masks import padding_mask

TokenIds = Sequence[int] | Int[Tensor, "_"]


@dataclass(frozen=True)
class Batch:
    """Inputs of a model and the targets that it should predict.

    Attributes:
        inputs: the model's arguments, all with the batch as their first axis.
        targets: [batch × N], with `IGNORE_INDEX` where the loss ignores the position.
    """

    inputs: tuple[Tensor, ...]
    targets: Int[Tensor, "batch N"]

    @property
    def num_targets(self) -> int:
        """Return the number of targets that are not ignored."""
        return int((self.targets != IGNORE_INDEX).sum())

    def to(self, device: torch.device | str) -> "Batch":
        """Return the batch on a device.

        The copy to a CUDA device is asynchronous, from pinned memory.
        """
        device = torch.device(device)

        def send(x: Tensor) -> Tensor:
            if device.type == "cuda":
                return x.pin_memory().to(device, non_blocking=True)
            return x.to(device)

        return Batch(tuple(map(send, self.inputs)), send(self.targets))

    def split(self, max_sequences: int) -> "list[Batch]":
        """Return the batch in parts of at most `max_sequences` sequences."""
        parts = zip(*(x.split(max_sequences) for x in self.inputs), strict=True)
        return [Batch(*both) for both in zip(parts, self.targets.split(max_sequences), strict=True)]

    def shard(self, rank: int, world_size: int) -> "Batch":
        """Return the shard of one of several processes, of the same size for each.

        Where the batch is not divisible, the last sequence is repeated with its targets ignored.
        """
        count = len(self.targets)
        each = -(-count // world_size)
        rows = torch.arange(rank * each, (rank + 1) * each, device=self.targets.device)
        idle, rows = rows >= count, rows.clamp(max=count - 1)
        targets = self.targets[rows].masked_fill(idle.unsqueeze(1), IGNORE_INDEX)
        return Batch(tuple(x[rows] for x in self.inputs), targets)


@runtime_checkable
class DataSource(Protocol):
    """Interface between the trainer and its data.

    A source whose batches follow from the number of the step, rather than from the generator's
    state, has a method `seek(step)` as well, which is called before the first one.
    """

    def draw(self, batch_size: int, generator: torch.Generator) -> Batch:
        """Return a random batch; all randomness comes from the generator."""
        ...

    def iter_eval(self, batch_size: int) -> Iterator[Batch]:
        """Yield all of the data once, always in the same order."""
        ...

    def fingerprint(self) -> dict[str, Any]:
        """Return values, as JSON, that identify this data."""
        ...


@runtime_checkable
class NumpyArray(Protocol):
    """A NumPy array, told without NumPy, which may be absent."""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """Return where its numbers are, and of what kind."""


TokenData = Int[Tensor, "tokens"] | ArrayTokens | NumpyArray | DataSource
"""What can be trained and evaluated on: a row of ids in one form or another, or a source."""


def eval_subset(source: DataSource, max_sequences: int | None) -> DataSource:
    """Return a fixed subset of a source to evaluate on: `max_sequences` evenly spaced sequences.

    This is the source itself if it has no more, if `max_sequences` is None, or if it is a custom
    source without a method `eval_subset`.
    """
    if max_sequences is None or not hasattr(source, "eval_subset"):
        return source
    small = isinstance(source, Sized) and len(source) <= max_sequences
    return source if small else source.eval_subset(max_sequences)


def evenly_spaced_indices(count: int, num_indices: int) -> Int[Tensor, "places"]:
    """Return `num_indices` of `count` indices, evenly spaced."""
    return torch.arange(num_indices) * count // num_indices


# --- Windows of a stream -----------------------------------------------------------------------


def random_windows(
    stream: Int[Tensor, "tokens"] | ArrayTokens, N: int, batch_size: int, generator: torch.Generator
) -> tuple[Int[Tensor, "batch N"], Int[Tensor, "batch N"]]:
    """Return random windows of a token stream, and the same windows one token later.

    Args:
        stream: the corpus, as one row of ids or as a file of them.
        N: tokens in a window.
        batch_size: how many windows.
        generator: where the random places come from.

    Returns:
        What the model reads and what it should say, both [batch × N].

    Raises:
        ValueError: if the stream is too short for one window.
    """
    batch = TokenWindows(stream, N).draw(batch_size, generator)
    return batch.inputs[0], batch.targets


class TokenWindows:
    """Teacher forcing on a token stream: the targets are the inputs, one token later."""

    def __init__(self, stream: Int[Tensor, "tokens"] | ArrayTokens, N: int):
        """Cut windows of N tokens.

        Raises:
            ValueError: if the stream is too short for one window, or not one row of whole numbers.
        """
        if isinstance(stream, Tensor) and (stream.dim() != 1 or not is_integral(stream.dtype)):
            raise ValueError(
                f"A token stream is one row of ids, not {stream.dtype} of shape "
                f"{format_shape(stream)}."
            )
        if len(stream) <= N:
            raise ValueError(
                f"The corpus has {len(stream)} tokens, but one window of {N} and its next token "
                f"need {N + 1}: give more text, or choose a shorter context."
            )
        self.stream: Tensor | ArrayTokens = stream
        self.N = N
        # A tensor of them would outgrow the stream.
        self.window_indices: Sequence[int] = range((len(stream) - 1) // N)

    def __len__(self) -> int:
        """Return the number of windows that `iter_eval` yields."""
        return len(self.window_indices)

    def eval_subset(self, num_windows: int) -> "TokenWindows":
        """Return a source whose `iter_eval` yields just this many windows, evenly spaced."""
        part = copy.copy(self)
        part.window_indices = evenly_spaced_indices(len(self), num_windows).tolist()
        return part

    def draw(self, batch_size: int, generator: torch.Generator) -> Batch:
        """Return windows from random positions."""
        return self.cut(self.draw_starts(batch_size, generator))

    def draw_starts(self, batch_size: int, generator: torch.Generator) -> Int[Tensor, "batch"]:
        """Return where the windows of a random batch begin."""
        return torch.randint(len(self.stream) - self.N, (batch_size,), generator=generator)

    def iter_eval(self, batch_size: int) -> Iterator[Batch]:
        """Yield windows that do not overlap; tokens after the last full one are left out."""
        for first in range(0, len(self.window_indices), batch_size):
            places = torch.tensor(self.window_indices[first : first + batch_size])
            yield self.cut(places * self.N)

    def cut(self, starts: Int[Tensor, "batch"]) -> Batch:
        """Return the windows that begin at some positions."""
        windows = self.stream[starts.unsqueeze(1) + torch.arange(self.N + 1)]
        windows = windows.long()  # a stream may have smaller numbers, to take less memory
        return Batch((windows[:, :-1],), windows[:, 1:])

    def fingerprint(self) -> dict[str, Any]:
        """Return the sizes, and a checksum of evenly spaced tokens."""
        # Few places, since each brings a stretch of a mapped file into memory.
        places = torch.linspace(0, len(self.stream) - 1, 256, dtype=torch.float64).long()
        return {
            "tokens": len(self.stream),
            "window": self.N,
            "checksum": compute_checksum(self.stream[places].tolist()),
        }


class DocumentWindows(TokenWindows):
    """Teacher forcing on a stream of documents.

    Half of the windows of a batch, rounded up, begin where a document begins, each document with
    the same probability; the others begin anywhere. So a model that is to generate documents from
    their first token sees whole ones, and their ends, at the positions where it generates them.
    """

    def __init__(self, stream: Int[Tensor, "tokens"] | ArrayTokens, N: int, begin_id: int):
        """Cut windows of N tokens.

        Args:
            stream: documents one after the other.
            N: tokens in a window.
            begin_id: the token that every document begins with.

        Raises:
            ValueError: if the stream is too short for one window.
        """
        super().__init__(stream, N)
        begins = find_token_positions(stream, begin_id)
        self.document_starts: Tensor = begins[begins < len(stream) - N]  # where a window fits

    def draw_starts(self, batch_size: int, generator: torch.Generator) -> Int[Tensor, "batch"]:
        """Return the beginnings of random documents, then random positions."""
        starts = super().draw_starts(batch_size, generator)
        if len(self.document_starts):
            half = (batch_size + 1) // 2
            which = torch.randint(len(self.document_starts), (half,), generator=generator)
            starts[:half] = self.document_starts[which]
        return starts


def as_data_source(data: TokenData, N: int | None) -> DataSource:
    """Return windows of a token stream, or any other source unchanged.

    Raises:
        ValueError: if a stream comes without the length of its windows, or is too short for one.
        TypeError: if it is neither a stream nor a source.
    """
    if isinstance(data, DataSource):
        return data
    if isinstance(data, NumpyArray):
        data = ArrayTokens(data)
    if not isinstance(data, Tensor | ArrayTokens):
        raise TypeError(
            "Data to train on is one row of ids as a torch tensor or a NumPy array, a TokenStore, "
            f"or a source of batches, not {type(data).__name__}."
        )
    if N is None:
        raise ValueError(
            "Windows of a token stream need a length: give N, or sequence_length to train."
        )
    return TokenWindows(data, N)


def is_integral(dtype: torch.dtype) -> bool:
    """Tell if a type has whole numbers, and more than two of them."""
    return not (dtype.is_floating_point or dtype.is_complex or dtype == torch.bool)


def compute_checksum(values: Sequence[Any]) -> int:
    """Return the CRC-32 of the `repr` of numbers."""
    return zlib.crc32(repr(values).encode())


# --- Pairs of sequences ------------------------------------------------------------------------


class PaddedPairs:
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

    def eval_subset(self, num_pairs: int) -> "PaddedPairs":
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
        return {"pairs": len(self.pairs), "special": special, "checksum": compute_checksum(rows)}


class LengthBucketedPairs(PaddedPairs):
    """Pairs like those of `PaddedPairs`, each once an epoch, batched with others of similar length.

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
            **special_ids: pad_id, begin_id and end_id, as `PaddedPairs` takes them.

        Raises:
            ValueError: if there is no pair, one has an empty source, or one is longer than a batch.
        """
        super().__init__(pairs, **special_ids)
        check_size(max_tokens=max_tokens)
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
