"""Files of token ids that are trained on without being loaded: NumPy arrays, read by a memory map.

An id takes two bytes if the vocabulary has at most 65,536 tokens, else four. A file is written in a
stream; the operating system keeps just the pages in memory that are in use.
"""

import mmap
import zlib
from array import array
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from tokenize import TokenError
from typing import Any

import torch

from slp_transformer._internal.atomic_write import atomic_write, error_message, write_file
from slp_transformer._internal.bounds import MAX_JSON_BYTES
from slp_transformer._internal.checksums import file_crc32, verify_files
from slp_transformer._internal.extras import import_extra
from slp_transformer._internal.json_files import format_json, load_validated, read_json, write_json
from slp_transformer._internal.shape_types import Int, Tensor, format_shape
from slp_transformer.data.dataset import Dataset

TRAIN_TOKENS_FILE, VAL_TOKENS_FILE, TOKENIZER_FILE = "train.npy", "val.npy", "tokenizer.json"
VAL_NAMES_FILE = "held-out.json"  # says what is held out
CHECKSUMS_FILE = "checksums.json"  # CRC-32 of each of these files
HEADER_BYTES = 128  # of an array with one axis; NumPy leaves room in it for any length
CHUNK_TOKENS = 1 << 16  # ids in memory at once


class ArrayTokens:
    """A token stream in a NumPy array, mapped from a file or not, of whole numbers of any size.

    `stream[positions]` returns ids as indexing a tensor does; nothing else of a map is read.
    """

    def __init__(self, ids: Any):
        """Take an array.

        Raises:
            ValueError: if it is not one row of whole numbers.
        """
        if ids.ndim != 1 or ids.dtype.kind not in "iu":
            raise ValueError(
                f"A token stream is one row of ids, not {ids.dtype} of shape "
                f"{format_shape(ids.shape)}."
            )
        self.ids: Any = ids

    def __len__(self) -> int:
        """Return the number of tokens."""
        return len(self.ids)

    def __getitem__(self, positions: slice | Int[Tensor, "..."]) -> Int[Tensor, "..."]:
        """Return the ids at some positions, as int64."""
        return torch.from_numpy(self.ids[positions].astype("int64"))


class TokenStore(ArrayTokens):
    """A token stream in a file; `store[positions]` returns ids as indexing a tensor does.

    Attributes:
        vocab_size: ids go from 0 to one less.
    """

    def __init__(self, path: str | Path, vocab_size: int):
        """Open a file that `write_tokens` wrote.

        Raises:
            ValueError: if it cannot be read, is of another kind, or was cut short.
            ImportError: if NumPy is not installed.
        """
        self.path: Path = Path(path)
        self.vocab_size: int = vocab_size
        numpy = import_extra("numpy", "Token files")
        try:
            ids = numpy.lib.format.open_memmap(self.path, mode="r")
        except OSError as error:
            raise ValueError(
                f"The tokens in {path} cannot be read: {error_message(error)}."
            ) from None
        except (ValueError, SyntaxError, TokenError) as error:  # the header is a Python literal
            reason = error_message(error)
            raise ValueError(f"{path} is damaged, or no file of tokens: {reason}.") from None
        if ids.dtype not in (numpy.uint16, numpy.uint32) or ids.ndim != 1:
            raise ValueError(f"{path} is no file of tokens that write_tokens wrote.")
        super().__init__(numpy.asarray(ids))
        self.size: int = self.mapped_file().size()

    def mapped_file(self) -> mmap.mmap:
        """Return the map, which knows the size that the file has now."""
        owner = self.ids
        while not isinstance(owner, mmap.mmap):
            owner = owner.base
        return owner

    def __getitem__(self, positions: slice | Int[Tensor, "..."]) -> Int[Tensor, "..."]:
        """Return the ids at some positions, as int64; the rest of the file is not read.

        Raises:
            ValueError: if one of them is outside the vocabulary, because the file was damaged, or
                the file was cut short since it was opened.
        """
        if (size := self.mapped_file().size()) < self.size:  # what is mapped beyond it would kill
            raise ValueError(
                f"{self.path} was cut short while it was in use: it has {size:,} bytes, not "
                f"{self.size:,}. Restore it, then resume."
            )
        ids = super().__getitem__(positions)
        if ids.numel() and ids.max() >= self.vocab_size:
            raise ValueError(
                f"{self.path} is damaged: it has an id that is not from 0 to {self.vocab_size - 1}."
            )
        return ids


def find_token_positions(
    stream: Int[Tensor, "tokens"] | ArrayTokens, token_id: int
) -> Int[Tensor, "found"]:
    """Return the positions of an id, reading a part of the stream at a time."""
    found = [
        first + (stream[first : first + CHUNK_TOKENS] == token_id).nonzero().flatten()
        for first in range(0, len(stream), CHUNK_TOKENS)
    ]
    return torch.cat(found) if found else torch.empty(0, dtype=torch.long)


def write_tokens(path: str | Path, ids: Iterable[int], vocab_size: int) -> TokenStore:
    """Write token ids to a file, whole or not at all, holding few of them in memory at a time.

    Args:
        path: the file; an older one is replaced once the new one is complete.
        ids: the ids; any iterable, which is iterated over once.
        vocab_size: |V|; it decides how many bytes an id takes.

    Returns:
        The file, opened.

    Raises:
        ValueError: if an id is outside the vocabulary.
        OSError: if the file cannot be written.
        ImportError: if NumPy is not installed.
    """
    path, ids, count = Path(path), iter(ids), 0
    array_format = import_extra("numpy", "Token files").lib.format
    code, dtype = ("H", "<u2") if vocab_size <= 2**16 else ("I", "<u4")
    with atomic_write(path) as file:
        file.write(bytes(HEADER_BYTES))
        while chunk := array("q", islice(ids, CHUNK_TOKENS)):
            if not 0 <= min(chunk) <= max(chunk) < vocab_size:
                wrong = next(i for i in chunk if not 0 <= i < vocab_size)
                raise ValueError(f"Token ids go from 0 to {vocab_size - 1}, not {wrong}.")
            array(code, chunk).tofile(file)
            count += len(chunk)
        file.seek(0)
        header = {"descr": dtype, "fortran_order": False, "shape": (count,)}
        array_format.write_array_header_1_0(file, header)
    return TokenStore(path, vocab_size)


# --- A folder with the tokens of a dataset -----------------------------------------------------


def write_token_folder(
    folder: Path,
    tokenizer: Any,
    train: Iterable[int],
    val: Iterable[int] | None,
    val_names: list[Any],
) -> None:
    """Write the tokens of a dataset and its tokenizer to a folder, which is created if needed.

    The tokenizer is removed first and written last: where it exists, the files are complete and
    belong together.

    Args:
        folder: where to write.
        tokenizer: what the ids mean; its `to_json` gives the content of tokenizer.json.
        train: ids to train on.
        val: ids that are held out; None if there are none.
        val_names: what is held out, as JSON.

    Raises:
        OSError: if the files cannot be written.
    """
    size = max_vocab_size(tokenizer)
    folder.mkdir(parents=True, exist_ok=True)
    names = (TRAIN_TOKENS_FILE, VAL_TOKENS_FILE, VAL_NAMES_FILE)
    for name in (TOKENIZER_FILE, CHECKSUMS_FILE, *names):
        (folder / name).unlink(missing_ok=True)
    write_tokens(folder / TRAIN_TOKENS_FILE, train, size)
    if val is not None:
        write_tokens(folder / VAL_TOKENS_FILE, val, size)
        write_json(folder / VAL_NAMES_FILE, val_names)
    checksums = {name: file_crc32(folder / name) for name in names if (folder / name).exists()}
    content = format_json(tokenizer.to_json())
    checksums[TOKENIZER_FILE] = f"{zlib.crc32(content.encode()):08x}"
    write_json(folder / CHECKSUMS_FILE, checksums)
    write_file(folder / TOKENIZER_FILE, content)


def verify_token_folder(folder: Path) -> bool:
    """Compare the files of a dataset with their checksums, and return whether it has any.

    Raises:
        ValueError: naming the file that has changed since it was written.
    """
    path = folder / CHECKSUMS_FILE
    if not path.exists():  # it was written by an older version
        return False
    checksums = load_validated(dict[str, str], path)
    verify_files(folder, checksums, "The corpus", "restore it from a copy, or start another run")
    return True


def open_token_folder(
    folder: Path, from_json: Callable[[Any], Any], needs_val: bool = True
) -> Dataset:
    """Open a folder that `write_token_folder` completed.

    Args:
        folder: the folder.
        from_json: makes the tokenizer from the content of tokenizer.json.
        needs_val: whether there have to be held-out ids.

    Raises:
        ValueError: if there is none, or it is damaged.
    """
    path = folder / TOKENIZER_FILE
    if not path.exists():
        raise ValueError(f"{folder} holds no complete corpus: prepare it anew.")
    try:
        tokenizer = from_json(read_json(path, MAX_JSON_BYTES))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    val, size = folder / VAL_TOKENS_FILE, max_vocab_size(tokenizer)
    held_out = TokenStore(val, size) if needs_val or val.exists() else None
    return Dataset(tokenizer, TokenStore(folder / TRAIN_TOKENS_FILE, size), held_out)


def max_vocab_size(tokenizer: Any) -> int:
    """Return how many ids a tokenizer has; of the larger vocabulary if it has two."""
    return max(tokenizer.vocab_size, getattr(tokenizer, "source_vocab_size", None) or 0)
