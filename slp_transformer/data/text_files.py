r"""Text from files, folders, standard input and named corpora, as UTF-8, a piece at a time.

Line ends become "\n" whatever system the file is from, and a byte order mark is dropped.

One corpus is in the package, others are downloaded from their publisher. Its name has neither a dot
nor a slash. It always means the corpus; a file or folder that happens to have the same name is
given as a path with a slash, "./moby-dick".

Downloads are kept in the data directory: the folder that the environment variable
`SLP_TRANSFORMER_DATA` names, or else the place that the system has for such files (on Linux
~/.cache/slp-transformer). A file is downloaded once, and checked against its SHA-256 each time it
is asked for.

With `SLP_TRANSFORMER_OFFLINE=1` nothing is downloaded. On a machine without a network, copy the
file to the data directory under the name that the error message gives.
"""

import codecs
import gzip
import io
import json
import logging
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from slp_transformer._internal.atomic_write import atomic_write, error_message
from slp_transformer._internal.bounds import (
    MAX_GZIP_BYTES,
    MAX_GZIP_RATIO,
    MAX_JSON_BYTES,
    MAX_LINE_BYTES,
)
from slp_transformer._internal.choices import Choices
from slp_transformer._internal.extras import import_extra
from slp_transformer._internal.signals import read_heeding_signals
from slp_transformer._internal.terminal import escape_controls

LOG = logging.getLogger("slp_transformer")
OnProgress = Callable[[int], Any]
STANDARD_INPUT = "-"
TEXT_FIELD = "text"  # of JSON lines, if nobody names another one
MAX_NAMED = 3  # files of a folder that are named as left out
BLOCK_BYTES = 1 << 16  # bytes read at a time
DATA_DIR_VARIABLE, OFFLINE_VARIABLE = "SLP_TRANSFORMER_DATA", "SLP_TRANSFORMER_OFFLINE"


# --- Corpora that have a name ------------------------------------------------------------------


@dataclass(frozen=True)
class PublishedFile:
    """A file as its publisher offers it.

    Attributes:
        name: file name in the data directory.
        url: where it is published.
        sha256: its checksum, in hexadecimal digits.
    """

    name: str
    url: str
    sha256: str


CORPORA = {
    # 40,000 lines of Shakespeare's plays, which are in the public domain, put together by Andrej
    # Karpathy for char-rnn (2015).
    "tiny-shakespeare": PublishedFile(
        "tiny-shakespeare.txt",
        "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
        "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
    ),
}
BUNDLED_CORPORA = {"moby-dick": Path(__file__).with_name("moby_dick.txt")}


def load_moby_dick() -> str:
    """Return the first 14 chapters of *Moby-Dick*: about 133,000 characters, 74 different ones.

    Herman Melville's novel was published in 1851 and is in the public domain; this is its text
    alone. A paragraph is a line, paragraphs are separated by an empty line and chapters by two,
    dashes are written "--", and all is ASCII.
    """
    return BUNDLED_CORPORA["moby-dick"].read_text(encoding="utf-8")


def list_corpora() -> list[str]:
    """Return the names that `fetch_corpus` knows."""
    return sorted(CORPORA.keys() | BUNDLED_CORPORA.keys())


def fetch_corpus(name: str) -> Path:
    """Return the path of a named corpus, downloading it if it is missing.

    Args:
        name: one of `list_corpora()`.

    Returns:
        A UTF-8 text file.

    Raises:
        ValueError: if the name is unknown, or the file cannot be downloaded or is not as published.
        ImportError: if pooch is needed and not installed.
    """
    if name in BUNDLED_CORPORA:
        return BUNDLED_CORPORA[name]
    if name not in CORPORA:
        raise ValueError(f"No corpus is called {name!r}; there are {', '.join(list_corpora())}.")
    return fetch_file(CORPORA[name])


def data_dir() -> Path:
    """Return the data directory, which may not exist yet.

    Raises:
        ImportError: if pooch is needed to find the system's cache directory and is not installed.
    """
    named = os.environ.get(DATA_DIR_VARIABLE)
    if named:
        return Path(named).expanduser()
    return Path(import_extra("pooch", "Downloads").os_cache("slp-transformer"))


def fetch_file(file: PublishedFile) -> Path:
    """Return the path of the file in the data directory, downloading it if it is missing.

    Raises:
        ValueError: if the file there has another checksum, or it cannot be downloaded or written.
            The message says what to do.
        ImportError: if pooch is not installed.
    """
    pooch, path = import_extra("pooch", "Downloads"), data_dir() / file.name
    network_error = import_extra("requests", "Downloads").RequestException
    offline = os.environ.get(OFFLINE_VARIABLE, "").strip().lower() not in ("", "0", "false", "no")
    by_hand = f"Or get it in another way, and copy it to {path}."
    try:
        sha256 = pooch.file_hash(path) if path.exists() else None
        if sha256 is None and not offline:
            pooch.retrieve(file.url, f"sha256:{file.sha256}", path.name, path.parent)
            return path
    except network_error as error:
        reason = root_cause_message(error)
        raise ValueError(
            f"{file.url} could not be downloaded ({reason}): try again. {by_hand}"
        ) from None
    except OSError as error:
        reason = error_message(error.__cause__ if isinstance(error.__cause__, OSError) else error)
        raise ValueError(f"{path} cannot be read or written: {reason}.") from None
    except ValueError:  # pooch has deleted what came
        raise ValueError(
            f"What {file.url} sent was deleted, since its SHA-256 is not {file.sha256}: try again. "
            "If this happens again, the publisher has changed the file."
        ) from None
    if sha256 is None:
        raise ValueError(
            f"{path} does not exist, and {OFFLINE_VARIABLE} forbids downloading it from {file.url}:"
            f" unset that variable. {by_hand}"
        )
    if sha256 != file.sha256:
        raise ValueError(
            f"{path} is not the file that {file.url} should have: its SHA-256 is {sha256}, not "
            f"{file.sha256}. Delete it to download it anew."
        )
    return path


def root_cause_message(error: BaseException) -> str:
    """Return the innermost message of a network error, which tends to be a chain of names."""
    while error.__context__ is not None:
        error = error.__context__
    return str(error).rstrip(".") or type(error).__name__


# --- Kinds of files that hold text -------------------------------------------------------------


@dataclass(frozen=True)
class TextFormat:
    """A kind of file that holds text.

    Attributes:
        summary: how it is read, for the docs.
        suffixes: how the names of such files end; .gz may follow.
        has_records: whether each line is an object of JSON, a document of its own; else the file is
            one document.
    """

    summary: str
    suffixes: tuple[str, ...]
    has_records: bool


TEXT_FORMATS = Choices(
    "file of text",
    {
        ".txt": TextFormat("as it is, a document", (".txt", ""), False),
        ".md": TextFormat("as it is, marks included, a document", (".md",), False),
        ".jsonl": TextFormat(
            "JSON lines: of each object the string in one field is a document (also .ndjson)",
            (".jsonl", ".ndjson"),
            True,
        ),
    },
)
"""What text is read from; each may be packed by gzip, with .gz behind its name."""
TEXT_SUFFIXES = f"{', '.join(TEXT_FORMATS)} or one of these and .gz"


def find_text_format(path: Path) -> TextFormat | None:
    """Return the kind of a file by the end of its name; None for one that is not known."""
    suffix = strip_gz_suffix(path).suffix.lower()
    return next((each for each in TEXT_FORMATS.values() if suffix in each.suffixes), None)


def is_json_lines(path: Path) -> bool:
    """Return whether a file's name says that each of its lines is an object of JSON."""
    found = find_text_format(path)
    return found is not None and found.has_records


def strip_gz_suffix(path: str | Path) -> Path:
    """Return a path without the suffix .gz."""
    path = Path(path)
    return path.with_suffix("") if path.suffix.lower() == ".gz" else path


# --- Where the text is -------------------------------------------------------------------------


def resolve_text_source(source: str | Path) -> list[Path]:
    """Return the files of a source; a corpus that is not here yet is fetched.

    Args:
        source: a corpus's name, a file, or a folder, which is searched for files of `TEXT_FORMATS`
            with all its subfolders; hidden files (".name") are left out, and so are empty ones. A
            `Path` is never taken for a name. What else is in a folder is named in the log.

    Returns:
        The files, sorted by path.

    Raises:
        ValueError: if there is nothing of that name, or no text in it, or it is not UTF-8.
    """
    texts, others = find_texts(source)
    if others:
        names = [escape_controls(path.name) for path in others[:MAX_NAMED]]
        more = f" and {len(others) - MAX_NAMED:,} more" if len(others) > MAX_NAMED else ""
        LOG.warning(
            f"Left out of {source}, as they end in none of {TEXT_SUFFIXES}: {len(others):,} files "
            f"({', '.join(names)}{more})."
        )
    return texts


def find_texts(source: str | Path) -> tuple[list[Path], list[Path]]:
    """Return the files of a source as `resolve_text_source` does, and what else is in a folder."""
    if source in list_corpora():  # a Path never is
        return [fetch_corpus(source)], []
    path = Path(source)
    if path.is_dir():
        known: dict[bool, list[Path]] = {True: [], False: []}
        for each in list_files(path):
            has_suffix = bool(strip_gz_suffix(each).suffix)
            known[has_suffix and find_text_format(each) is not None].append(each)
        texts = [each for each in known[True] if each.stat().st_size]
        if not texts:
            raise ValueError(
                f"{path} has no text: there is no file ending in {TEXT_SUFFIXES} with anything in "
                "it, there or in a folder below."
            )
        return texts, known[False]
    if not path.exists():
        raise ValueError(
            f"There is no file or folder {path}, nor a corpus of that name: give the path of a "
            f"UTF-8 text file or of a folder of them, - for standard input, or one of "
            f"{', '.join(list_corpora())}."
        )
    if not is_stream(path) and find_text_format(path) is None:
        raise ValueError(
            f"{path.name} is no file of text: text is read from files that end in {TEXT_SUFFIXES}, "
            "or in none. If it is text all the same, pipe it into the command, with - as its name."
        )
    if path.is_file() and not next(iter_file_text(path), ""):
        raise ValueError(f"{path} is empty: give a file with text in it.")
    return [path], []


def list_files(folder: Path) -> list[Path]:
    """Return the files in a folder and its subfolders, sorted by path, without hidden ones.

    Raises:
        ValueError: if a folder cannot be read.
    """

    def refuse(error: OSError) -> None:
        raise ValueError(f"The folder {error.filename} cannot be read: {error.strerror}.")

    found = []
    for place, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(place, name) for name in names if not name.startswith(".")]
    return sorted(
        (path for path in found if path.is_file()), key=lambda path: path.relative_to(folder).parts
    )


def is_stream(source: str | Path) -> bool:
    """Return whether a source can be read only once: stdin, or a pipe such as `<(cat *.txt)`."""
    path = Path(source)
    return source == STANDARD_INPUT or (path.exists() and not path.is_file() and not path.is_dir())


def open_source(path: str | Path) -> io.BufferedReader:
    """Open a file or a pipe; what a device such as /dev/zero gives may never end.

    Raises:
        ValueError: if it is a device other than a terminal.
        OSError: if it cannot be opened.
    """
    file = open(path, "rb")
    mode = os.fstat(file.fileno()).st_mode
    if (stat.S_ISCHR(mode) or stat.S_ISBLK(mode)) and not file.isatty():
        file.close()
        raise ValueError(f"{path} is a device: name a file or a pipe.")
    return file


def save_stdin(path: Path, source: str | Path = STANDARD_INPUT) -> Path:
    """Copy standard input, or a pipe, which can be read just once, to a file.

    Raises:
        ValueError: if nothing comes, or it cannot be written.
    """
    name = "Standard input" if source == STANDARD_INPUT else str(source)
    try:
        piped = nullcontext(sys.stdin.buffer) if source == STANDARD_INPUT else open_source(source)
        with atomic_write(path) as file, piped as stream:
            if stream.isatty():
                LOG.warning("Waiting for text on standard input; Ctrl-D ends it (Windows: Ctrl-Z).")
            while block := read_heeding_signals(stream, BLOCK_BYTES):
                file.write(block)
    except OSError as error:
        raise ValueError(f"{name} could not be kept in {path}: {error.strerror}.") from None
    if not path.stat().st_size:
        raise ValueError(f"{name} is empty: pipe text into the command.")
    return path


# --- Reading it --------------------------------------------------------------------------------


def iter_documents(source: str | Path, text_field: str = TEXT_FIELD) -> Iterator[str]:
    """Yield the documents of a source, each as a whole.

    Args:
        source: what `resolve_text_source` takes, or "-" for standard input, which is one document.
        text_field: the field of JSON lines that holds the text.

    Raises:
        ValueError: if there is no such source or no text in it, or it is not UTF-8.
    """
    for pieces in iter_document_pieces(source, text_field):
        yield "".join(pieces)


def iter_document_pieces(
    source: str | Path, text_field: str = TEXT_FIELD
) -> Iterator[Iterator[str]]:
    """Yield the documents of a source as `iter_documents` does, each as its pieces."""
    if source == STANDARD_INPUT:
        yield iter_stdin_text()
        return
    for path in resolve_text_source(source):
        for _, pieces in iter_file_documents(path, text_field):
            yield pieces


def iter_file_documents(
    path: Path, text_field: str = TEXT_FIELD, on_progress: OnProgress | None = None
) -> Iterator[tuple[str, Iterator[str]]]:
    """Yield the documents of a file: the place of each in it, and its pieces.

    Few pieces are in memory at a time.

    Args:
        path: the file; of a kind that is not known, it is plain text.
        text_field: the field of JSON lines that holds the text.
        on_progress: called with the number of bytes after each read.

    Raises:
        ValueError: if it cannot be read, is not UTF-8, or lacks the field.
    """
    if not is_json_lines(path):
        yield "", iter_file_text(path, on_progress)
        return
    for line, record in iter_json_lines(path, on_progress):
        text = record.get(text_field)
        if not isinstance(text, str):
            raise ValueError(
                f'{path}, line {line}: there is no string "{text_field}" among its fields '
                f"({', '.join(map(str, record))}): name the one that holds the text, as text_field."
            )
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError(
                f'{path}, line {line}: "{text_field}" has half a character, \\ud800 to \\udfff.'
            ) from None
        yield f", line {line}", iter([text])


def iter_json_lines(
    path: Path, on_progress: OnProgress | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a file of JSON lines, each with the number of its line.

    Raises:
        ValueError: if a line holds something else, or is longer than any JSON that is read.
    """
    with open_unpacked(path, on_progress) as read:
        for number, line in enumerate(iter_whole_lines(read, str(path), MAX_JSON_BYTES), 1):
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                reason = error_message(error)
                raise ValueError(f"{path}, line {number}: this is no JSON: {reason}.") from None
            if not isinstance(record, dict):
                raise ValueError(f"{path}, line {number}: an object is needed, in {{}}.")
            yield number, record


def iter_stdin_text() -> Iterator[str]:
    """Yield the pieces of standard input's text, as `iter_decoded_text`."""
    read = partial(read_heeding_signals, sys.stdin.buffer)
    return iter_decoded_text(read, "Standard input")


def iter_stdin_lines() -> Iterator[str]:
    """Yield each line of standard input as soon as it is there, as `iter_whole_lines`."""
    read = partial(read_heeding_signals, sys.stdin.buffer)
    return iter_whole_lines(read, "Standard input", MAX_LINE_BYTES)


def iter_whole_lines(read: Callable[[int], bytes], name: str, max_bytes: int) -> Iterator[str]:
    r"""Yield each line of the text whose bytes a function reads, without its "\n" or "\r\n".

    Raises:
        ValueError: if one is not UTF-8, or longer than it may be.
    """

    def decode(line: bytearray) -> str:
        if len(line) > max_bytes:
            raise ValueError(
                f"{name}, line {number}: it has more than {max_bytes:,} bytes, so a line break may "
                "be missing."
            )
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(encoding_error_message(name, error, number)) from None
        return text.removesuffix("\r")

    number, line, more = 1, bytearray(), True
    while more:
        more = bool(block := read(BLOCK_BYTES))
        *ended, rest = block.split(b"\n")
        for piece in ended:
            yield decode(line + piece)
            number += 1
            line.clear()
        line += rest
        if len(line) > max_bytes or (line and not more):
            yield decode(line)


def iter_file_text(path: Path, on_progress: OnProgress | None = None) -> Iterator[str]:
    """Yield a file's text in pieces of about `BLOCK_BYTES` characters, one in memory at a time.

    A piece ends where a word does and the next begins with the spaces or line ends that follow,
    so that a tokenizer gives the pieces the tokens of the whole. Just what has no space in a whole
    block is cut anywhere.

    Args:
        path: the file, which may be packed by gzip.
        on_progress: called with the number of bytes after each read.

    Raises:
        ValueError: if the file cannot be read or is not UTF-8.
    """
    with open_unpacked(path, on_progress) as read:
        yield from iter_decoded_text(read, str(path))


def iter_decoded_text(read: Callable[[int], bytes], name: str) -> Iterator[str]:
    """Yield the pieces of the text whose bytes a function reads.

    Raises:
        ValueError: if it is not UTF-8, naming the first byte that is wrong and its line.
    """
    utf8 = codecs.getincrementaldecoder("utf-8-sig")()
    decoder, lines, text = io.IncrementalNewlineDecoder(utf8, translate=True), 1, ""
    while True:
        block = read(BLOCK_BYTES)
        try:
            text += decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            raise ValueError(encoding_error_message(name, error, lines)) from None
        lines += block.count(b"\n")
        cut = last_safe_split_index(text) if block else len(text)
        if cut:
            yield text[:cut]
            text = text[cut:]
        if not block:
            return


@contextmanager
def open_unpacked(
    path: Path, on_progress: OnProgress | None = None
) -> Iterator[Callable[[int], bytes]]:
    """Yield what reads a file's bytes, unpacked where they are packed by gzip.

    Args:
        path: the file.
        on_progress: called with the number of bytes of the file after each read.

    Raises:
        ValueError: if it cannot be read, is cut short, or unpacks to more than text does.
    """
    try:
        with open_source(path) as file:
            is_packed = file.peek(2)[:2] == b"\x1f\x8b"
            source = gzip.GzipFile(fileobj=file) if is_packed else file
            most = max(MAX_GZIP_BYTES, MAX_GZIP_RATIO * os.fstat(file.fileno()).st_size)
            done = 0

            def read(size: int) -> bytes:
                nonlocal done
                block = source.read(size)
                if on_progress is not None:
                    on_progress(file.tell() - done)
                    done = file.tell()
                if is_packed and source.tell() > most:
                    raise ValueError(
                        f"{path} unpacks to more than {most >> 20:,} MiB, {MAX_GZIP_RATIO} times "
                        "its size: unpack it, if you know what is in it."
                    )
                return block

            yield read
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} is damaged: {str(error).rstrip('.')}. Get it anew.") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None


def encoding_error_message(name: str | Path, error: UnicodeDecodeError, first_line: int = 1) -> str:
    """Return the sentence about bytes that are not UTF-8, the first of which are in a line."""
    line = first_line + error.object.count(b"\n", 0, error.start)
    return (
        f"{name} is not UTF-8: line {line} has the byte 0x{error.object[error.start]:02X}, "
        "which cannot stand there. Save the text with the encoding UTF-8."
    )


def last_safe_split_index(text: str) -> int:
    """Return where to end a piece: after the last word followed by a space; 0 for not yet."""
    for cut in range(len(text) - 1, 0, -1):
        if text[cut].isspace() and not text[cut - 1].isspace():
            return cut
    return len(text) if len(text) >= BLOCK_BYTES else 0
