"""Text as a tokenizer, tokens to train on and held-out tokens.

A corpus may be larger than memory: text is read in pieces, tokens are written in a stream, and
training reads them through `TokenStore`. On a terminal, slow steps show a progress bar.
"""

import os
import random
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from slp_transformer._internal.atomic_write import (
    make_random_folder,
    remove_path,
    remove_unfinished_files,
)
from slp_transformer._internal.progress_bar import progress_bar
from slp_transformer._internal.shape_types import Int, Tensor
from slp_transformer.data.dataset import Dataset
from slp_transformer.data.text_files import (
    TEXT_FIELD,
    OnProgress,
    is_json_lines,
    is_stream,
    iter_file_documents,
    resolve_text_source,
    save_stdin,
)
from slp_transformer.data.text_tokenizer import (
    TextTokenizer,
    TokenType,
    check_vocab_size,
    train_tokenizer,
)
from slp_transformer.data.token_file import (
    CHUNK_TOKENS,
    TokenStore,
    open_token_folder,
    write_token_folder,
    write_tokens,
)

ALL_TOKENS_FILE = "all.npy"  # both parts, until it is known where to cut
MIN_CHUNK_TOKENS = 1024  # tokens of a held-out chunk, unless its document has fewer
MIN_CHUNKS = 50  # chunks of a corpus, at least


@dataclass(frozen=True)
class Document:
    """A text, and the positions of its tokens in a corpus.

    Attributes:
        name: what the text is called.
        token_range: the places of its tokens.
    """

    name: str
    token_range: range


def prepare_corpus(
    source: str | Path,
    token_type: TokenType = "characters",
    vocab_size: int | None = None,
    val_split: float = 0.1,
    output_dir: str | Path | None = None,
    tokenizer: Any = None,
    text_field: str = TEXT_FIELD,
) -> Dataset:
    """Read text, learn its vocabulary, and split its tokens into those learned and those held out.

    The vocabulary is learned from all of the text, so that the held-out part has no unknown
    characters. If there are several documents, there is an end token, and each is followed by it.

    Args:
        source: a file, a folder of text files, "-" for standard input, or the name of a corpus.
        token_type: "characters", "words" or "bpe".
        vocab_size: for words and BPE, see `train_tokenizer`.
        val_split: the share of the tokens that is held out: the end of a single document, or pieces
            of several, see `choose_val_ranges`. 0 to hold out none.
        output_dir: where to write the tokens, for a corpus that is larger than memory: made if
            there is none. `load_corpus` opens it again. None to hold the tokens in memory.
        tokenizer: one to use instead of learning a vocabulary; kind and vocab_size are then not
            looked at. Documents are followed by its end token, if it has one.
        text_field: the field of JSON lines that holds the text.

    Raises:
        ValueError: if there is no text, it is not UTF-8, an argument is out of its range, or the
            tokenizer does not know a character.
        OSError: if the folder cannot be written to.
        ImportError: if a library of the `text` extra is needed and not installed.
    """
    if not 0 <= val_split < 1:
        raise ValueError(f"val_split must be a share from 0 to less than 1, not {val_split!r}.")
    if tokenizer is None:
        check_vocab_size(token_type, vocab_size)
    texts = [] if is_stream(source) else resolve_text_source(source)
    with temporary_working_dir(None if output_dir is None else Path(output_dir)) as work:
        if not texts:
            texts = [save_stdin(work / "standard-input.txt", source)]
        size = sum(path.stat().st_size for path in texts)
        if tokenizer is None:
            with progress_bar("Vocabulary", size) as on_progress:
                pieces = (
                    piece
                    for path in texts
                    for _, document in iter_file_documents(path, text_field, on_progress)
                    for piece in document
                )
                end_token = len(texts) > 1 or is_json_lines(texts[0])
                tokenizer = train_tokenizer(pieces, token_type, vocab_size, end_token=end_token)
        documents: list[Document] = []
        with progress_bar("Tokens", size) as on_progress:
            ids = iter_encoded_ids(texts, tokenizer, on_progress, documents, text_field)
            if output_dir is None:
                memory, empty = array("q", ids), torch.tensor([], dtype=torch.int64)
                # An empty array has no memory that a tensor could share.
                tokens = torch.frombuffer(memory, dtype=torch.int64) if memory else empty
            else:
                write_tokens(work / ALL_TOKENS_FILE, ids, tokenizer.vocab_size)
        ranges = choose_val_ranges(documents, val_split)
        names = describe_ranges(ranges, documents)
        gaps = gaps_between(ranges, documents[-1].token_range.stop)
        if output_dir is None:
            train, val = concatenate_ranges(tokens, gaps), concatenate_ranges(tokens, ranges)
            return Dataset(tokenizer, train, val if val_split else None, val_names=names)
        path, size = work / ALL_TOKENS_FILE, tokenizer.vocab_size
        val_ids = iter_tokens_in_ranges(path, size, ranges) if val_split else None
        train_ids = iter_tokens_in_ranges(path, size, gaps)
        write_token_folder(Path(output_dir), tokenizer, train_ids, val_ids, names)
    return replace(load_corpus(output_dir, type(tokenizer).from_json), val_names=names)


@contextmanager
def temporary_working_dir(output_dir: Path | None) -> Iterator[Path]:
    """Create a temporary folder: in the given one, or in the system's place for them.

    A folder that was created for it and is empty in the end is removed again.

    Raises:
        OSError: if the folder cannot be written to.
    """
    if output_dir is None:
        with TemporaryDirectory(prefix="slp-transformer-", ignore_cleanup_errors=True) as folder:
            yield Path(folder)
        return
    is_new = not output_dir.exists()
    output_dir.mkdir(parents=True, exist_ok=True)
    remove_unfinished_files(output_dir)
    work = make_random_folder(output_dir)
    try:
        yield work
    except OSError as error:
        if str(error.filename).startswith(str(work)):  # a name that nobody has seen
            raise OSError(error.errno, error.strerror, str(output_dir)) from error
        raise
    finally:
        remove_path(work)
        if is_new and not any(output_dir.iterdir()):
            output_dir.rmdir()


def iter_encoded_ids(
    paths: Iterable[Path],
    tokenizer: Any,
    on_progress: OnProgress,
    documents: list[Document],
    text_field: str,
) -> Iterator[int]:
    """Yield the ids of text files, each followed by the end token if there is one.

    Args:
        paths: the files.
        tokenizer: what the ids mean.
        on_progress: called with the number of bytes after each read.
        documents: each document is appended once its ids were yielded.
        text_field: the field of JSON lines that holds the text.

    Raises:
        ValueError: if a file cannot be read or is not UTF-8, or the tokenizer does not know a
            character in it.
    """
    paths, count = list(paths), 0
    above = os.path.commonpath([path.parent for path in paths])
    for path in paths:
        for place, pieces in iter_file_documents(path, text_field, on_progress):
            line, first = 1, count
            for begin_id in getattr(tokenizer, "begin_ids", ()):
                count += 1
                yield begin_id
            for piece in pieces:
                try:
                    ids = tokenizer.encode(piece, line)
                except ValueError as error:
                    raise ValueError(f"{path}{place}: {error}") from None
                count += len(ids)
                yield from ids
                line += piece.count("\n")
            if tokenizer.end_id is not None:
                count += 1
                yield tokenizer.end_id
            name = path.relative_to(above).as_posix() + place
            documents.append(Document(name, range(first, count)))


def concatenate_ranges(tokens: Int[Tensor, "N"], ranges: list[range]) -> Int[Tensor, "taken"]:
    """Return some of the ids in memory, of which one range is a view."""
    parts = [tokens[each.start : each.stop] for each in ranges]
    return parts[0] if len(parts) == 1 else torch.cat([tokens[:0], *parts])


def iter_tokens_in_ranges(path: Path, vocab_size: int, ranges: Iterable[range]) -> Iterator[int]:
    """Yield some of the ids in a file, few of them in memory at a time."""
    store = TokenStore(path, vocab_size)
    for token_range in ranges:
        for part in split_range(token_range, CHUNK_TOKENS):
            yield from store[part.start : part.stop].tolist()


def load_corpus(
    tokens_dir: str | Path, from_json: Callable[[Any], Any] = TextTokenizer.from_json
) -> Dataset:
    """Open the corpus that `prepare` wrote to a folder.

    Args:
        tokens_dir: the folder.
        from_json: makes the tokenizer from the content of its tokenizer.json.

    Raises:
        ValueError: if there is none, or it is damaged.
    """
    return open_token_folder(Path(tokens_dir), from_json, needs_val=False)


# --- What is held out ------------------------------------------------------------------------


def choose_val_ranges(documents: list[Document], val_split: float) -> list[range]:
    """Return the ranges of the tokens that are held out, in order.

    Of one document they are the end. Of several documents the last by name may be unlike all
    others, so chunks of all of them are drawn with a fixed seed. A chunk is a document, or a
    fiftieth of the corpus where a document is longer.
    """
    count = documents[-1].token_range.stop if documents else 0
    wanted = count - int(count * (1 - val_split))
    if len(documents) == 1:
        return [range(count - wanted, count)] if wanted else []
    length = max(MIN_CHUNK_TOKENS, count // MIN_CHUNKS)
    pieces = [
        piece for document in documents for piece in split_range(document.token_range, length)
    ]
    random.Random(0).shuffle(pieces)
    held_out = []
    for piece in pieces:
        if not wanted:
            break
        held_out.append(piece[-min(wanted, len(piece)) :])
        wanted -= len(held_out[-1])
    return sorted(held_out, key=lambda piece: piece.start)


def split_range(token_range: range, max_length: int) -> list[range]:
    """Cut a range into ranges of at most a length."""
    return [
        token_range[first : first + max_length] for first in range(0, len(token_range), max_length)
    ]


def gaps_between(ranges: Iterable[range], num_tokens: int) -> list[range]:
    """Return the gaps between sorted ranges, up to a total count."""
    gaps, start = [], 0
    for piece in [*ranges, range(num_tokens, num_tokens)]:
        if start < piece.start:
            gaps.append(range(start, piece.start))
        start = piece.stop
    return gaps


def describe_ranges(ranges: Iterable[range], documents: Iterable[Document]) -> list[str]:
    """Describe each range, both in order: a document, or some of its tokens, counted from 1."""
    descriptions, later = [], iter(documents)
    document = next(later, None)
    for piece in ranges:
        while document is not None and piece.stop > document.token_range.stop:
            document = next(later, None)
        assert document is not None, "each range lies in a document"
        tokens = document.token_range
        first, last = piece.start - tokens.start + 1, piece.stop - tokens.start
        part = "" if piece == tokens else f", tokens {first} to {last} of {len(tokens)}"
        descriptions.append(document.name + part)
    return descriptions
