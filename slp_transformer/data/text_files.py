r"""Text from files, folders, standard input and named corpora, as UTF-8, a piece at a time.

Line ends become "\n" whatever system the file is from, and a byte order mark is dropped.
"""

import codecs
import io
import logging
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from slp_transformer._internal.folders import list_files
from slp_transformer.data.corpora import fetch_corpus, list_corpora

LOG = logging.getLogger("slp_transformer")
TEXT_SUFFIXES = (".txt",)
STANDARD_INPUT = "-"
BLOCK_BYTES = 1 << 16  # bytes read at a time


# --- Where the text is -------------------------------------------------------------------------


def find_text_files(source: str | Path, suffixes: Iterable[str] = TEXT_SUFFIXES) -> list[Path]:
    """Return the files of a source, each a document.

    Args:
        source: a corpus's name, a file, or a folder, which is searched with all its subfolders.
            A `Path` is never taken for a name.
        suffixes: of the files that are taken from a folder; case does not matter. Hidden files
            (".name") are left out, and so are empty ones.

    Returns:
        The files, sorted by path.

    Raises:
        ValueError: if there is nothing of that name, or no text in it, or it is not UTF-8.
    """
    if source in list_corpora():  # a Path never is
        return [fetch_corpus(source)]
    path = Path(source)
    if path.is_dir():
        wanted = {suffix.lower() for suffix in suffixes}
        texts = [p for p in list_files(path) if p.suffix.lower() in wanted and p.stat().st_size]
        if not texts:
            raise ValueError(
                f"{path} has no text: there is no file ending in {' or '.join(sorted(wanted))} "
                "with anything in it, there or in a folder below."
            )
        return texts
    if not path.exists():
        raise ValueError(
            f"There is no file or folder {path}, nor a corpus of that name: give the path of a "
            f"UTF-8 text file or of a folder of them, - for standard input, or one of "
            f"{', '.join(list_corpora())}."
        )
    if path.is_file() and not next(read_pieces(path), ""):
        raise ValueError(f"{path} is empty: give a file with text in it.")
    return [path]


def is_stream(source: str | Path) -> bool:
    """Return whether a source can be read only once: stdin, or a pipe such as `<(cat *.txt)`."""
    path = Path(source)
    return source == STANDARD_INPUT or (path.exists() and not path.is_file() and not path.is_dir())


def save_stdin(path: Path, source: str | Path = STANDARD_INPUT) -> Path:
    """Copy standard input, or a pipe, which can be read just once, to a file.

    Raises:
        ValueError: if nothing comes, or it cannot be written.
    """
    name = "Standard input" if source == STANDARD_INPUT else str(source)
    try:
        piped = nullcontext(sys.stdin.buffer) if source == STANDARD_INPUT else open(source, "rb")
        with open(path, "wb") as file, piped as stream:
            if stream.isatty():
                LOG.warning("Waiting for text on standard input; Ctrl-D ends it (Windows: Ctrl-Z).")
            shutil.copyfileobj(stream, file)
    except OSError as error:
        raise ValueError(f"{name} could not be kept in {path}: {error.strerror}.") from None
    if not path.stat().st_size:
        raise ValueError(f"{name} is empty: pipe text into the command.")
    return path


# --- Reading it --------------------------------------------------------------------------------


def read_documents(source: str | Path, suffixes: Iterable[str] = TEXT_SUFFIXES) -> Iterator[str]:
    """Yield the documents of a source, each as a whole.

    Args:
        source: what `find_text_files` takes, or "-" for standard input, which is one document.
        suffixes: of the files that are taken from a folder.

    Raises:
        ValueError: if there is no such source or no text in it, or it is not UTF-8.
    """
    if source == STANDARD_INPUT:
        yield "".join(decode_pieces(sys.stdin.buffer.read, "Standard input"))
        return
    for path in find_text_files(source, suffixes):
        yield "".join(read_pieces(path))


def read_pieces(path: Path, on_progress: Callable[[int], Any] | None = None) -> Iterator[str]:
    """Yield a file's text in pieces of about `BLOCK_BYTES` characters, one in memory at a time.

    A piece ends where a word does and the next begins with the spaces or line ends that follow,
    so that a tokenizer gives the pieces the tokens of the whole. Just what has no space in a whole
    block is cut anywhere.

    Args:
        path: the file.
        on_progress: called with the number of bytes after each read.

    Raises:
        ValueError: if the file cannot be read or is not UTF-8.
    """
    try:
        with open(path, "rb") as file:
            yield from decode_pieces(file.read, str(path), on_progress)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None


def decode_pieces(
    read: Callable[[int], bytes], name: str, on_progress: Callable[[int], Any] | None = None
) -> Iterator[str]:
    """Yield the pieces of the text whose bytes a function reads.

    Raises:
        ValueError: if it is not UTF-8, naming the first byte that is wrong and its line.
    """
    utf8 = codecs.getincrementaldecoder("utf-8-sig")()
    decoder, lines, text = io.IncrementalNewlineDecoder(utf8, translate=True), 1, ""
    while True:
        block = read(BLOCK_BYTES)
        if on_progress is not None:
            on_progress(len(block))
        try:
            text += decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            raise ValueError(encoding_error_message(name, error, lines)) from None
        lines += block.count(b"\n")
        cut = last_safe_split(text) if block else len(text)
        if cut:
            yield text[:cut]
            text = text[cut:]
        if not block:
            return


def encoding_error_message(name: str | Path, error: UnicodeDecodeError, first_line: int = 1) -> str:
    """Return the sentence about bytes that are not UTF-8, the first of which are in a line."""
    line = first_line + error.object.count(b"\n", 0, error.start)
    return (
        f"{name} is not UTF-8: line {line} has the byte 0x{error.object[error.start]:02X}, "
        "which cannot stand there. Save the text with the encoding UTF-8."
    )


def last_safe_split(text: str) -> int:
    """Return where to end a piece: after the last word followed by a space; 0 for not yet."""
    for cut in range(len(text) - 1, 0, -1):
        if text[cut].isspace() and not text[cut - 1].isspace():
            return cut
    return len(text) if len(text) >= BLOCK_BYTES else 0
