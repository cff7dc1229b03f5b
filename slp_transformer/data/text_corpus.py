"""Text as a tokenizer, tokens to train on and held-out tokens.

A corpus may be larger than memory: text is read in pieces, tokens are written in a stream, and
training reads them through `TokenStore`. On a terminal, slow steps show a progress bar.
"""

import os
import shutil
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from slp_transformer._internal.atomic_write import error_message
from slp_transformer._internal.progress_bar import progress_bar
from slp_transformer._internal.shape_types import Int, Tensor
from slp_transformer.data.splitting import (
    Document,
    choose_val_ranges,
    chunk_range,
    describe_ranges,
    gaps_between,
)
from slp_transformer.data.text_files import (
    check_encoding,
    find_text_files,
    is_stream,
    read_pieces,
    save_stdin,
)
from slp_transformer.data.text_tokenizer import TextTokenizer
from slp_transformer.data.token_file import (
    CHUNK_TOKENS,
    TRAIN_TOKENS_FILE,
    VAL_TOKENS_FILE,
    TokenStore,
    read_folder_tokenizer,
    write_token_folder,
    write_tokens,
)
from slp_transformer.data.token_types import TokenType, check_token_type
from slp_transformer.data.vocabulary import check_vocab_size, train_tokenizer

ALL_TOKENS_FILE = "all.npy"  # both parts, until it is known where to cut


@dataclass(frozen=True)
class TokenCorpus:
    """A corpus as token ids.

    Attributes:
        tokenizer: what the ids mean.
        train_data: tokens to train on.
        val_data: tokens to evaluate on; None if nothing is held out.
        val_names: descriptions of the held-out ranges; empty in a corpus that was opened again.
    """

    tokenizer: TextTokenizer
    train_data: Int[Tensor, "train_data"] | TokenStore
    val_data: Int[Tensor, "val_data"] | TokenStore | None
    val_names: list[str] = field(default_factory=list)


def prepare_corpus(
    source: str | Path,
    token_type: TokenType = "characters",
    vocab_size: int | None = None,
    val_split: float = 0.1,
    output_dir: str | Path | None = None,
    tokenizer: TextTokenizer | None = None,
) -> TokenCorpus:
    """Read text, learn its vocabulary, and split its tokens into those learned and those held out.

    The vocabulary is learned from all of the text, so that the held-out part has no unknown
    characters. If there are several documents, there is an end token, and each is followed by it.

    Args:
        source: a file, a folder of text files, "-" for standard input, or the name of a corpus.
        token_type: "characters", "words" or "bpe".
        vocab_size: for words and BPE, see `train_tokenizer`.
        val_split: the share of the tokens that is held out: the end of a single document, or pieces
            of several, see `slp_transformer.data.splitting`. 0 to hold out none.
        output_dir: where to write the tokens, for a corpus that is larger than memory: made if
            there is none. `load_corpus` opens it again. None to hold the tokens in memory.
        tokenizer: one to use instead of learning a vocabulary; kind and vocab_size are then not
            looked at. Documents are followed by its end token, if it has one.

    Raises:
        ValueError: if there is no text, it is not UTF-8, an argument is out of its range, the
            tokenizer does not know a character, or the folder cannot be written to.
        ImportError: if a library of the `text` extra is needed and not installed.
    """
    if not 0 <= val_split < 1:
        raise ValueError(f"held_out must be a share from 0 to less than 1, not {val_split!r}.")
    if tokenizer is None:
        check_token_type(token_type)
        check_vocab_size(token_type, vocab_size)
    piped = is_stream(source)
    texts = [] if piped else find_text_files(source)
    with working_dir(output_dir) if piped or output_dir is not None else nullcontext() as work:
        if piped:
            texts = [save_stdin(work / "standard-input.txt", source)]
        if len(texts) > 1:
            check_encoding(texts)
        size = sum(path.stat().st_size for path in texts)
        if tokenizer is None:
            with progress_bar("Vocabulary", size) as tell:
                pieces = (piece for path in texts for piece in read_pieces(path, tell))
                tokenizer = train_tokenizer(
                    pieces, token_type, vocab_size, end_token=len(texts) > 1
                )
        with progress_bar("Tokens", size) as tell:
            documents: list[Document] = []
            ids = encode_files(texts, tokenizer, tell, documents)
            if output_dir is None:
                return split_in_memory(ids, tokenizer, documents, val_split)
            write_tokens(work / ALL_TOKENS_FILE, ids, tokenizer.vocab_size)
        return split_on_disk(
            tokenizer, documents, val_split, Path(output_dir), work / ALL_TOKENS_FILE
        )


@contextmanager
def working_dir(output_dir: str | Path | None) -> Iterator[Path]:
    """Create a temporary folder: in the given folder, or in the system's place for them.

    A folder that was created for it and is empty in the end is removed again.

    Raises:
        ValueError: if the folder cannot be written to.
    """
    if output_dir is None:
        with TemporaryDirectory(prefix="slp-transformer-") as work:
            yield Path(work)
        return
    output_dir = Path(output_dir)
    work, is_new = output_dir / ".preparing", not output_dir.exists()
    try:
        shutil.rmtree(work, ignore_errors=True)  # of a process that was killed
        work.mkdir(parents=True)
    except OSError as error:
        raise ValueError(
            f"The corpus cannot be written to {output_dir}: {error_message(error)}."
        ) from None
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)
        if is_new and not any(output_dir.iterdir()):
            output_dir.rmdir()


def encode_files(
    paths: Iterable[Path],
    tokenizer: TextTokenizer,
    on_progress: Callable[[int], Any],
    documents: list[Document],
) -> Iterator[int]:
    """Yield the ids of text files, each followed by the end token if there is one.

    Args:
        paths: the files.
        tokenizer: what the ids mean.
        on_progress: called with the number of bytes after each read.
        documents: each document is appended once its ids were yielded.

    Raises:
        ValueError: if a file cannot be read or is not UTF-8, or the tokenizer does not know a
            character in it.
    """
    paths, count = list(paths), 0
    above = os.path.commonpath([path.parent for path in paths])
    for path in paths:
        line, first = 1, count
        for piece in read_pieces(path, on_progress):
            try:
                ids = tokenizer.encode(piece, line)
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from None
            count += len(ids)
            yield from ids
            line += piece.count("\n")
        if tokenizer.end_id is not None:
            count += 1
            yield tokenizer.end_id
        documents.append(Document(path.relative_to(above).as_posix(), range(first, count)))


def split_in_memory(
    ids: Iterable[int], tokenizer: TextTokenizer, documents: list[Document], val_split: float
) -> TokenCorpus:
    """Split the corpus into two tensors."""
    held = array("q", ids)
    # The tensor takes over the array's memory, which has to have some.
    tokens = torch.frombuffer(held, dtype=torch.int64) if held else torch.empty(0).long()
    if not val_split:
        return TokenCorpus(tokenizer, tokens, None)
    pieces = choose_val_ranges(documents, val_split)
    learned, unseen = (
        [tokens[piece.start : piece.stop] for piece in part]
        for part in (gaps_between(pieces, len(tokens)), pieces)
    )
    learned, unseen = (part[0] if len(part) == 1 else torch.cat(part) for part in (learned, unseen))
    return TokenCorpus(tokenizer, learned, unseen, describe_ranges(pieces, documents))


def split_on_disk(
    tokenizer: TextTokenizer,
    documents: list[Document],
    val_split: float,
    output_dir: Path,
    all_tokens_path: Path,
) -> TokenCorpus:
    """Write the corpus as two files and the tokenizer.

    All tokens were written to one file first, since how many there are decides where they are cut.

    Raises:
        ValueError: if the files cannot be written.
    """
    size, count = tokenizer.vocab_size, documents[-1].token_range.stop
    ranges = choose_val_ranges(documents, val_split) if val_split else []
    which = describe_ranges(ranges, documents)
    with progress_bar("Split", count, " tokens") as tell:
        learned = read_ranges(all_tokens_path, size, gaps_between(ranges, count), tell)
        unseen = read_ranges(all_tokens_path, size, ranges, tell) if val_split else None
        write_token_folder(output_dir, tokenizer.to_json(), size, learned, unseen, which)
    return replace(load_corpus(output_dir), val_names=which)


def read_ranges(
    path: Path, vocab_size: int, ranges: Iterable[range], on_progress: Callable[[int], Any]
) -> Iterator[int]:
    """Yield some of the ids in a file, few of them in memory at a time."""
    for piece in ranges:
        for part in chunk_range(piece, CHUNK_TOKENS):
            # Opened anew, to let go of the pages that were read.
            ids = TokenStore(path, vocab_size)[part.start : part.stop].tolist()
            yield from ids
            on_progress(len(ids))


def load_corpus(tokens_dir: str | Path) -> TokenCorpus:
    """Open the corpus that `prepare` wrote to a folder.

    Raises:
        ValueError: if there is none, or it is damaged.
    """
    tokens_dir = Path(tokens_dir)
    tokenizer = read_folder_tokenizer(tokens_dir, TextTokenizer)
    train, val = tokens_dir / TRAIN_TOKENS_FILE, tokens_dir / VAL_TOKENS_FILE
    learned = TokenStore(train, tokenizer.vocab_size)
    held_out = TokenStore(val, tokenizer.vocab_size) if val.exists() else None
    return TokenCorpus(tokenizer, learned, held_out)
