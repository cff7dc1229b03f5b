"""Sources of batches, and those of token streams: windows.

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

from slp_transformer._internal.shape_types import Int, Tensor, format_shape
from slp_transformer.data.token_file import ArrayTokens, find_token_positions
from slp_transformer.loss import IGNORE_INDEX


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


TokenData = Int[Tensor, "_"] | ArrayTokens | NumpyArray | DataSource
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


def draw_random_windows(
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
    batch = TokenWindowSource(stream, N).draw(batch_size, generator)
    return batch.inputs[0], batch.targets


class TokenWindowSource:
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

    def eval_subset(self, num_windows: int) -> "TokenWindowSource":
        """Return a source whose `iter_eval` yields just this many windows, evenly spaced."""
        part = copy.copy(self)
        part.window_indices = evenly_spaced_indices(len(self), num_windows).tolist()
        return part

    def draw(self, batch_size: int, generator: torch.Generator) -> Batch:
        """Return windows from random positions."""
        return self.batch_at(self.draw_starts(batch_size, generator))

    def draw_starts(self, batch_size: int, generator: torch.Generator) -> Int[Tensor, "batch"]:
        """Return where the windows of a random batch begin."""
        return torch.randint(len(self.stream) - self.N, (batch_size,), generator=generator)

    def iter_eval(self, batch_size: int) -> Iterator[Batch]:
        """Yield windows that do not overlap; tokens after the last full one are left out."""
        for first in range(0, len(self.window_indices), batch_size):
            places = torch.tensor(self.window_indices[first : first + batch_size])
            yield self.batch_at(places * self.N)

    def batch_at(self, starts: Int[Tensor, "batch"]) -> Batch:
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
            "checksum": values_crc32(self.stream[places].tolist()),
        }


class DocumentWindowSource(TokenWindowSource):
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
    return TokenWindowSource(data, N)


def is_integral(dtype: torch.dtype) -> bool:
    """Tell if a type has whole numbers, and more than two of them."""
    return not (dtype.is_floating_point or dtype.is_complex or dtype == torch.bool)


def values_crc32(values: Sequence[Any]) -> int:
    """Return the CRC-32 of the `repr` of numbers."""
    return zlib.crc32(repr(values).encode())
