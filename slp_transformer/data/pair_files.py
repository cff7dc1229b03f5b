"""Pairs of sentences from two line-aligned files, a table, or a Hugging Face dataset.

All text is UTF-8, with a byte order mark or without, plain or compressed by gzip. Whatever is wrong
is reported with the name of the file and the line.
"""

import csv
import gzip
import importlib
import io
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from slp_transformer.data.text_files import encoding_error_message

Pair = tuple[str, str]
Languages = tuple[str, str]
HF_PREFIX = "hf:"
TABLE_DELIMITERS = {".csv": ",", ".tsv": "\t"}


def read_pairs(
    source: str, target: str | None = None, languages: tuple[str | None, str | None] = (None, None)
) -> tuple[list[Pair], Languages]:
    """Return the pairs of a source, and the names of their languages.

    Args:
        source: a table (.csv or .tsv), "hf:NAME" for a Hugging Face dataset, or a text file with a
            sentence in each line; files may end in .gz.
        target: for a text file, the file whose lines translate it.
        languages: what they are called: columns of a table or a dataset; None for a table's only
            two columns, or for what the names of two files end in.

    Raises:
        ValueError: if something cannot be read, or its two sides do not go together.
        ImportError: for a dataset by name, if `datasets` is not installed.
    """
    if source.startswith(HF_PREFIX):
        return read_hf_dataset(source, languages)
    path = Path(source)
    if table_delimiter(path) is not None:
        if target is not None:
            raise ValueError(f"There is no use for {target}: the table {path} has both languages.")
        return read_table(path, languages)
    if target is None:
        raise ValueError(
            f"{path} has sentences of one language: name the file of their translations too, by "
            "--target, or give a table (.csv or .tsv)."
        )
    named = [
        name or language_from_filename(Path(of))
        for name, of in zip(languages, (source, target), strict=True)
    ]
    if named[0] == named[1]:
        raise ValueError(
            f"Both languages would be called {named[0]!r}: name them by --source-language and "
            "--target-language."
        )
    return read_aligned_files(path, Path(target)), (named[0], named[1])


def table_delimiter(path: Path) -> str | None:
    """Return the delimiter of a table by its file name; None if it is no table."""
    return TABLE_DELIMITERS.get(strip_gz_suffix(path).suffix.lower())


def strip_gz_suffix(path: Path) -> Path:
    """Return a path without the suffix .gz."""
    return path.with_suffix("") if path.suffix.lower() == ".gz" else path


def language_from_filename(path: Path) -> str:
    """Return the language at the end of the name of a text file, as in train.de.gz."""
    return strip_gz_suffix(path).suffix.removeprefix(".") or strip_gz_suffix(path).name


# --- Text --------------------------------------------------------------------------------------


def read_text_file(path: Path) -> str:
    """Return a whole file as text.

    Raises:
        ValueError: if it cannot be read, is cut short, or is not UTF-8, naming the line.
    """
    try:
        content = path.read_bytes()
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
    except EOFError:
        raise ValueError(f"{path} is cut short: its gzip ends too early. Get it anew.") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} is damaged: {error}. Get it anew.") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(encoding_error_message(path, error)) from None


def read_lines(path: Path) -> list[str]:
    r"""Return the lines of a file, which end only in "\n" or "\r\n".

    Raises:
        ValueError: as `read_text`.
    """
    lines = read_text_file(path).split("\n")
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]


def read_aligned_files(source: Path, target: Path) -> list[Pair]:
    """Return the lines of two files that translate each other, as pairs.

    Raises:
        ValueError: if a file cannot be read, they have not the same number of lines, or a line is
            empty.
    """
    sides = {path: read_lines(path) for path in (source, target)}
    if source == target:
        raise ValueError(f"{source} cannot be its own translation: name two files.")
    counts = {path: len(lines) for path, lines in sides.items()}
    if counts[source] != counts[target]:
        short, long = sorted(counts, key=counts.__getitem__)
        raise ValueError(
            f"{short} has {counts[short]:,} lines and {long} {counts[long]:,}: line "
            f"{counts[short] + 1:,} of {long} has nothing that it translates."
        )
    for path, lines in sides.items():
        check_no_empty_sentences(((n, line) for n, line in enumerate(lines, 1)), path)
    if not sides[source]:
        raise ValueError(f"{source} and {target} are empty: there is nothing to learn from.")
    return list(zip(sides[source], sides[target], strict=True))


def check_no_empty_sentences(
    numbered_sentences: Iterable[tuple[int, str]], path: Path | str
) -> None:
    """Refuse empty sentences.

    Raises:
        ValueError: naming the line of the first one.
    """
    for number, text in numbered_sentences:
        if not text.strip():
            raise ValueError(f"{path}: line {number:,} is empty, so that there is no pair.")


# --- Tables ------------------------------------------------------------------------------------


def read_table(
    path: Path, languages: tuple[str | None, str | None]
) -> tuple[list[Pair], Languages]:
    """Return the pairs of a table whose first line names its columns, and the languages.

    Raises:
        ValueError: if it cannot be read, lacks a column, or a row lacks a sentence.
    """
    text = io.StringIO(read_text_file(path), newline="")
    rows = csv.reader(text, delimiter=table_delimiter(path), strict=True)
    try:
        header = [name.strip() for name in next(rows, [])]
        places, named = find_columns(header, languages, path)
        pairs, blank = [], None
        for row in rows:
            if not row:  # blank lines may stand at the end
                blank = blank or rows.line_num
                continue
            if blank is not None or len(row) <= max(places):
                check_no_empty_sentences([(blank or rows.line_num, "")], path)
            pair = row[places[0]], row[places[1]]
            check_no_empty_sentences(((rows.line_num, side) for side in pair), path)
            pairs.append(pair)
    except csv.Error as error:
        raise ValueError(f"{path}: line {rows.line_num:,} is no row of a table: {error}.") from None
    if not pairs:
        raise ValueError(f"{path} has no pairs below its header.")
    return pairs, named


def find_columns(
    header: Sequence[str], languages: tuple[str | None, str | None], source_name: Path | str
) -> tuple[tuple[int, int], Languages]:
    """Return the indices and names of the columns of the two languages.

    Raises:
        ValueError: if a column is missing, or it is unclear which two of many are meant.
    """
    listed = ", ".join(header) or "nothing"
    if None in languages:
        if len(header) != 2 or languages != (None, None):
            raise ValueError(
                f"{source_name} has the columns {listed}: say which two by --source-language and "
                "--target-language."
            )
        return (0, 1), (header[0], header[1])
    lower = [name.casefold() for name in header]
    for language in languages:
        if language.casefold() not in lower:
            raise ValueError(
                f'{source_name} has no column "{language}": its header names {listed}.'
            )
    first, second = (lower.index(language.casefold()) for language in languages)
    if first == second:
        raise ValueError(f"{header[first]} cannot be its own translation: name two columns.")
    return (first, second), (header[first], header[second])


# --- Datasets by name --------------------------------------------------------------------------


def read_hf_dataset(
    source: str, languages: tuple[str | None, str | None]
) -> tuple[list[Pair], Languages]:
    """Return the pairs of a Hugging Face dataset and the languages.

    A source is "hf:NAME", "hf:NAME:CONFIGURATION" or "hf:NAME@SPLIT".

    Its rows have a column for each language, or one column "translation" that has both.

    Raises:
        ValueError: if there is no such dataset or column.
        ImportError: if `datasets` is not installed.
    """
    try:
        library = importlib.import_module("datasets")
    except ImportError:
        raise ImportError(
            f"{source} needs Hugging Face's datasets: python -m pip install datasets."
        ) from None
    name, _, split = source.removeprefix(HF_PREFIX).partition("@")
    name, _, configuration = name.partition(":")
    try:
        rows = library.load_dataset(name, configuration or None, split=split or "train")
        first: dict[str, Any] = next(iter(rows), {})
    except Exception as error:  # whatever the library raises, of a dozen kinds
        reason = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
        raise ValueError(f"{source} cannot be loaded: {reason}.") from None
    nested = isinstance(first.get("translation"), dict)
    header = list(first["translation"] if nested else first)
    _, named = find_columns(header, languages, source)
    both = ((row["translation"] if nested else row) for row in rows)
    pairs = [(str(row[named[0]] or ""), str(row[named[1]] or "")) for row in both]
    check_no_empty_sentences(
        ((n, side) for n, pair in enumerate(pairs, 1) for side in pair), source
    )
    if not pairs:
        raise ValueError(f"{source} has no pairs.")
    return pairs, named
