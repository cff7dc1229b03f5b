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

from slp_transformer._internal.atomic_write import reason_of
from slp_transformer._internal.progress_bar import work_bar
from slp_transformer._internal.shape_types import Int, Tensor
from slp_transformer.data.splitting import Document, between, cut, held_out_pieces, in_words
from slp_transformer.data.text_files import (
    check_encoding,
    find_texts,
    is_read_once,
    keep_standard_input,
    read_pieces,
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
from slp_transformer.data.token_types import Kind, check_kind
from slp_transformer.data.vocabulary import check_vocab_size, train_tokenizer

ALL_TOKENS_FILE = "all.npy"  # both parts, until it is known where to cut


@dataclass(frozen=True)
class TokenCorpus:
    """A corpus as token ids.

    Attributes:
        tokenizer: what the ids mean.
        learned: tokens to train on.
        held_out: tokens to evaluate on; None if nothing is held out.
        which: descriptions of the held-out ranges; empty in a corpus that was opened again.
    """

    tokenizer: TextTokenizer
    learned: Int[Tensor, "learned"] | TokenStore
    held_out: Int[Tensor, "held_out"] | TokenStore | None
    which: list[str] = field(default_factory=list)


def prepare(
    source: str | Path,
    kind: Kind = "characters",
    vocab_size: int | None = None,
    held_out: float = 0.1,
    folder: str | Path | None = None,
    tokenizer: TextTokenizer | None = None,
) -> TokenCorpus:
    """Read text, learn its vocabulary, and split its tokens into those learned and those held out.

    The vocabulary is learned from all of the text, so that the held-out part has no unknown
    characters. If there are several documents, there is an end token, and each is followed by it.

    Args:
        source: a file, a folder of text files, "-" for standard input, or the name of a corpus.
        kind: "characters", "words" or "bpe".
        vocab_size: for words and BPE, see `train_tokenizer`.
        held_out: the share of the tokens that is held out: the end of a single document, or pieces
            of several, see `slp_transformer.data.splitting`. 0 to hold out none.
        folder: where to write the tokens, for a corpus that is larger than memory: made if there is
            none. `reopen` opens it again. None to hold the tokens in memory.
        tokenizer: one to use instead of learning a vocabulary; kind and vocab_size are then not
            looked at. Documents are followed by its end token, if it has one.

    Raises:
        ValueError: if there is no text, it is not UTF-8, an argument is out of its range, the
            tokenizer does not know a character, or the folder cannot be written to.
        ImportError: if a library of the `text` extra is needed and not installed.
    """
    if not 0 <= held_out < 1:
        raise ValueError(f"held_out must be a share from 0 to less than 1, not {held_out!r}.")
    if tokenizer is None:
        check_kind(kind)
        check_vocab_size(kind, vocab_size)
    piped = is_read_once(source)
    texts = [] if piped else find_texts(source)
    with working_folder(folder) if piped or folder is not None else nullcontext() as work:
        if piped:
            texts = [keep_standard_input(work / "standard-input.txt", source)]
        if len(texts) > 1:
            check_encoding(texts)
        size = sum(path.stat().st_size for path in texts)
        if tokenizer is None:
            with work_bar("Vocabulary", size) as tell:
                pieces = (piece for path in texts for piece in read_pieces(path, tell))
                tokenizer = train_tokenizer(pieces, kind, vocab_size, end=len(texts) > 1)
        with work_bar("Tokens", size) as tell:
            documents: list[Document] = []
            ids = token_ids(texts, tokenizer, tell, documents)
            if folder is None:
                return in_memory(ids, tokenizer, documents, held_out)
            write_tokens(work / ALL_TOKENS_FILE, ids, tokenizer.vocab_size)
        return on_disk(tokenizer, documents, held_out, Path(folder), work / ALL_TOKENS_FILE)


@contextmanager
def working_folder(folder: str | Path | None) -> Iterator[Path]:
    """Create a temporary folder: in the given folder, or in the system's place for them.

    A folder that was created for it and is empty in the end is removed again.

    Raises:
        ValueError: if the folder cannot be written to.
    """
    if folder is None:
        with TemporaryDirectory(prefix="slp-transformer-") as work:
            yield Path(work)
        return
    folder = Path(folder)
    work, is_new = folder / ".preparing", not folder.exists()
    try:
        shutil.rmtree(work, ignore_errors=True)  # of a process that was killed
        work.mkdir(parents=True)
    except OSError as error:
        raise ValueError(f"The corpus cannot be written to {folder}: {reason_of(error)}.") from None
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)
        if is_new and not any(folder.iterdir()):
            folder.rmdir()


def token_ids(
    texts: Iterable[Path],
    tokenizer: TextTokenizer,
    tell: Callable[[int], Any],
    documents: list[Document],
) -> Iterator[int]:
    """Yield the ids of text files, each followed by the end token if there is one.

    Args:
        texts: the files.
        tokenizer: what the ids mean.
        tell: called with the number of bytes after each read.
        documents: each document is appended once its ids were yielded.

    Raises:
        ValueError: if a file cannot be read or is not UTF-8, or the tokenizer does not know a
            character in it.
    """
    texts, count = list(texts), 0
    above = os.path.commonpath([path.parent for path in texts])
    for path in texts:
        line, first = 1, count
        for piece in read_pieces(path, tell):
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


def in_memory(
    ids: Iterable[int], tokenizer: TextTokenizer, documents: list[Document], held_out: float
) -> TokenCorpus:
    """Split the corpus into two tensors."""
    held = array("q", ids)
    # The tensor takes over the array's memory, which has to have some.
    tokens = torch.frombuffer(held, dtype=torch.int64) if held else torch.empty(0).long()
    if not held_out:
        return TokenCorpus(tokenizer, tokens, None)
    pieces = held_out_pieces(documents, held_out)
    learned, unseen = (
        [tokens[piece.start : piece.stop] for piece in part]
        for part in (between(pieces, len(tokens)), pieces)
    )
    learned, unseen = (part[0] if len(part) == 1 else torch.cat(part) for part in (learned, unseen))
    return TokenCorpus(tokenizer, learned, unseen, in_words(pieces, documents))


def on_disk(
    tokenizer: TextTokenizer,
    documents: list[Document],
    held_out: float,
    folder: Path,
    tokens: Path,
) -> TokenCorpus:
    """Write the corpus as two files and the tokenizer.

    All tokens were written to one file first, since how many there are decides where they are cut.

    Raises:
        ValueError: if the files cannot be written.
    """
    size, count = tokenizer.vocab_size, documents[-1].tokens.stop
    ranges = held_out_pieces(documents, held_out) if held_out else []
    which = in_words(ranges, documents)
    with work_bar("Split", count, " tokens") as tell:
        learned = read_ranges(tokens, size, between(ranges, count), tell)
        unseen = read_ranges(tokens, size, ranges, tell) if held_out else None
        write_token_folder(folder, tokenizer.to_json(), size, learned, unseen, which)
    return replace(reopen(folder), which=which)


def read_ranges(
    tokens: Path, vocab_size: int, ranges: Iterable[range], tell: Callable[[int], Any]
) -> Iterator[int]:
    """Yield some of the ids in a file, few of them in memory at a time."""
    for piece in ranges:
        for part in cut(piece, CHUNK_TOKENS):
            # Opened anew, to let go of the pages that were read.
            ids = TokenStore(tokens, vocab_size)[part.start : part.stop].tolist()
            yield from ids
            tell(len(ids))


def reopen(folder: str | Path) -> TokenCorpus:
    """Open the corpus that `prepare` wrote to a folder.

    Raises:
        ValueError: if there is none, or it is damaged.
    """
    folder = Path(folder)
    tokenizer = read_folder_tokenizer(folder, TextTokenizer)
    train, val = folder / TRAIN_TOKENS_FILE, folder / VAL_TOKENS_FILE
    learned = TokenStore(train, tokenizer.vocab_size)
    held_out = TokenStore(val, tokenizer.vocab_size) if val.exists() else None
    return TokenCorpus(tokenizer, learned, held_out)
