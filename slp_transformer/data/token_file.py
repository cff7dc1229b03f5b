"""A file of token ids that is trained on without being loaded.

The file begins with 4,096 bytes of JSON (padded with spaces), and the ids follow, two bytes each
if the vocabulary has at most 65,536 words, else four. It is written in a stream and read through
the memory map of the operating system, which holds just the pages in use.
"""

import json
import sys
from array import array
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import torch

from slp_transformer._internal.atomic_write import reason_of, whole_file
from slp_transformer._internal.shape_types import Int, Tensor

FORMAT = "slp-transformer tokens 1"
HEADER = 4096  # bytes, a page
CHUNK = 1 << 16  # ids that are in memory at once while writing


class TokenStore:
    """A token stream in a file; `store[places]` gives ids as a tensor does.

    Attributes:
        vocab_size: ids go from 0 to one less.
    """

    def __init__(self, path: str | Path):
        """Open a file that `write_tokens` wrote.

        Raises:
            ValueError: if it cannot be read, is of another kind, or was cut short.
        """
        self.path = path = Path(path)
        header = read_header(path)
        self.vocab_size, self.length = header["vocab_size"], header["tokens"]
        width = 2 if header["type"] == "uint16" else 4
        needed, found = HEADER + width * self.length, path.stat().st_size
        if found != needed:
            raise ValueError(f"{path} is damaged: it has {found} bytes, but should have {needed}.")
        file = torch.from_file(str(path), shared=False, size=needed, dtype=torch.uint8)
        # PyTorch computes little with unsigned types, so the bits are taken as signed ones.
        self.ids = file[HEADER:].view(torch.int16 if width == 2 else torch.int32)

    def __len__(self) -> int:
        """How many tokens there are."""
        return self.length

    def __getitem__(self, places: slice | Int[Tensor, "..."]) -> Int[Tensor, "..."]:
        """The ids at some places, as int64; the rest of the file is not read.

        Raises:
            ValueError: if one of them is outside the vocabulary, in a file that was damaged.
        """
        ids = self.ids[places].long()
        ids = ids & 0xFFFF if self.ids.dtype == torch.int16 else ids
        if ids.numel() and not 0 <= ids.min() <= ids.max() < self.vocab_size:
            raise ValueError(
                f"{self.path} is damaged: it has an id that is not from 0 to {self.vocab_size - 1}."
            )
        return ids


def write_tokens(path: str | Path, ids: Iterable[int], vocab_size: int) -> TokenStore:
    """Write token ids to a file, whole or not at all, holding few of them at a time.

    Args:
        path: the file; an older one is replaced once the new one is complete.
        ids: the ids, from anything that can be gone through once.
        vocab_size: |V|; it decides how many bytes an id takes.

    Returns:
        The file, opened.

    Raises:
        ValueError: if an id is outside the vocabulary, or the file cannot be written.
    """
    path, ids, count = Path(path), iter(ids), 0
    if not 1 <= vocab_size <= 2**31:
        raise ValueError(f"vocab_size must be from 1 to {2**31}, not {vocab_size!r}.")
    kind, code = ("uint16", "H") if vocab_size <= 2**16 else ("uint32", "I")
    try:
        with whole_file(path) as unfinished, open(unfinished, "wb") as file:
            file.write(b" " * HEADER)
            while chunk := list(islice(ids, CHUNK)):
                check_chunk(chunk, count, vocab_size)
                array(code, chunk).tofile(file)
                count += len(chunk)
            header = {"format": FORMAT, "type": kind, "vocab_size": vocab_size, "tokens": count}
            file.seek(0)
            file.write(json.dumps(header | {"byteorder": sys.byteorder}).encode())
    except OSError as error:
        raise ValueError(
            f"The tokens could not be written to {path}: {reason_of(error)}."
        ) from error
    return TokenStore(path)


def check_chunk(chunk: list[int], start: int, vocab_size: int) -> None:
    """Refuse ids outside the vocabulary.

    Raises:
        ValueError: naming the first such id and its place.
    """
    if all(type(i) is int for i in chunk) and 0 <= min(chunk) and max(chunk) < vocab_size:
        return
    for place, i in enumerate(chunk, start):
        if type(i) is not int or not 0 <= i < vocab_size:
            raise ValueError(
                f"Token {place} is {i!r}, but ids are whole numbers from 0 to {vocab_size - 1}."
            )


def read_header(path: Path) -> dict:
    """The JSON that a token file begins with.

    Raises:
        ValueError: if the file cannot be read or is of another kind.
    """
    try:
        with open(path, "rb") as file:
            header = json.loads(file.read(HEADER).decode("ascii"))
    except OSError as error:
        raise ValueError(f"The tokens in {path} cannot be read: {reason_of(error)}.") from None
    except (ValueError, RecursionError):  # no ASCII, no JSON, or nested too deeply
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"{path} is no file of tokens that write_tokens wrote.")
    size, count = header.get("vocab_size"), header.get("tokens")
    sound = header.get("type") in ("uint16", "uint32")
    if not sound or type(size) is not int or type(count) is not int or size < 1 or count < 0:
        raise ValueError(f"{path} is damaged: what its header says of its tokens is impossible.")
    if header.get("byteorder") != sys.byteorder:
        raise ValueError(f"{path} was written on a machine with another byte order: write it anew.")
    return header
