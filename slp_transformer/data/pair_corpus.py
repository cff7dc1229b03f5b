"""Pairs of sentences: read from files or a table, and made tokens to train on.

Sources are two line-aligned files or a table. All text is UTF-8, with a byte order mark or without,
plain or compressed by gzip. Whatever is wrong is reported with the name of the file and the line.

A folder holds prepared pairs as tokens (each side ends in [EOS]), the tokenizer, and the held-out
sentences, with which translations are compared.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import torch

from slp_transformer._internal.bounds import MAX_JSON_BYTES
from slp_transformer._internal.docs_sections import see
from slp_transformer._internal.json_files import load_validated
from slp_transformer._internal.shape_types import Int, Tensor
from slp_transformer.data.bundled_pairs import Pair, make_number_pairs
from slp_transformer.data.dataset import Dataset
from slp_transformer.data.pair_tokenizer import PairTokenizer, train_pair_tokenizer
from slp_transformer.data.text_files import (
    BLOCK_BYTES,
    encoding_error_message,
    open_unpacked,
    strip_gz_suffix,
)
from slp_transformer.data.text_tokenizer import SENTENCE_TOKENS, TokenType, check_vocab_size
from slp_transformer.data.token_file import (
    VAL_NAMES_FILE,
    TokenStore,
    find_token_positions,
    open_token_folder,
    write_token_folder,
)

Languages = tuple[str, str]
NumberedPairs = list[tuple[int, Pair]]  # with their lines, counted from 1
Overlong = Literal["drop", "truncate"]
NUM_BUNDLED_PAIRS = 10_000  # pairs of numbers and dates, if no others are named
TABLE_DELIMITERS = {".csv": None, ".tsv": "\t"}  # None: the first line shows it
DELIMITER_NAMES = {",": "comma-separated", ";": "semicolon-separated", "\t": "tab-separated"}
QUOTED_CELL = 'a cell with the separator or a quotation mark in it is written as "She said ""no""."'
MAX_SHOWN_COLUMNS, MAX_COLUMN_NAME = 12, 40  # in a message
HOW_TO_QUOTE = {
    ",": QUOTED_CELL,
    ";": QUOTED_CELL,
    "\t": "no cell of tab-separated text has a tab in it",
}
"""What to do about a row that cannot be read."""


class EncodedPairs(Sequence[Any]):
    """Pairs of rows of ids, from one stream in which [EOS] ends each row: memory or a file."""

    def __init__(self, stream: Int[Tensor, "tokens"] | TokenStore, end_id: int):
        """Find where each row ends.

        Raises:
            ValueError: if a row has no end, or a source no target.
        """
        self.stream: Tensor | TokenStore = stream
        self.row_ends: Tensor = find_token_positions(stream, end_id)
        used = int(self.row_ends[-1]) + 1 if len(self.row_ends) else 0
        if len(self.row_ends) % 2 or len(stream) != used:
            raise ValueError("These tokens are no pairs: they end in the middle of one.")

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.row_ends) // 2

    def __getitem__(  # type: ignore[override]  # there are no slices
        self, i: int
    ) -> tuple[Int[Tensor, "M"], Int[Tensor, "N"]]:
        """Return the source with its [EOS], and the target without.

        Raises:
            IndexError: if there are not so many pairs.
        """
        if not 0 <= i < len(self):
            raise IndexError(f"There are {len(self)} pairs, and no pair {i}.")
        start = int(self.row_ends[2 * i - 1]) + 1 if i else 0
        middle, end = int(self.row_ends[2 * i]) + 1, int(self.row_ends[2 * i + 1])
        return self.stream[start:middle], self.stream[middle:end]


# --- Reading -----------------------------------------------------------------------------------


def read_pairs(
    source: str | None,
    target: str | None = None,
    languages: tuple[str | None, str | None] = (None, None),
) -> tuple[list[Pair], Languages]:
    """Return the pairs of a source, and the names of their languages.

    Args:
        source: a table (.csv or .tsv), or a text file with a sentence in each line; files may end
            in .gz. None for the numbers and dates that come with the package.
        target: for a text file, the file whose lines translate it.
        languages: what they are called: columns of a table; None for a table's only
            two columns, or for what the names of two files end in.

    Raises:
        ValueError: if something cannot be read, or its two sides do not go together.
    """
    if source is None and target is not None:
        raise ValueError(f"{target} translates nothing: name its source too.")
    if source is None:
        return make_number_pairs(NUM_BUNDLED_PAIRS), ("English", "Spanish")
    places = source, source
    if (suffix := strip_gz_suffix(source).suffix.lower()) in TABLE_DELIMITERS:
        if target is not None:
            raise ValueError(
                f"There is no use for {target}: the table {source} has both languages."
            )
        numbered, named = read_table(Path(source), TABLE_DELIMITERS[suffix], languages)
    elif target is None:
        raise ValueError(
            f"{source} has sentences of one language: name the file of their translations too, by "
            "--target, or give a table (.csv or .tsv)." + see("pairs")
        )
    else:
        places = source, target
        numbered, named = read_aligned_files(source, target, languages)
    for number, pair in numbered:
        for place, sentence in zip(places, pair, strict=True):
            if not sentence.strip():
                raise ValueError(f"{place}: line {number:,} is empty, so that there is no pair.")
    if not numbered:
        raise ValueError(f"{source} has no pairs.")
    return [pair for _, pair in numbered], named


def read_text_file(path: Path) -> str:
    """Return the content of a text file.

    Raises:
        ValueError: if it cannot be read, is cut short, or is not UTF-8, naming the line.
    """
    with open_unpacked(path) as read:
        content = b"".join(iter(lambda: read(BLOCK_BYTES), b""))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(encoding_error_message(path, error)) from None


def read_lines(path: Path) -> list[str]:
    r"""Return the lines of a file, which end only in "\n" or "\r\n".

    Raises:
        ValueError: as `read_text_file`.
    """
    lines = read_text_file(path).split("\n")
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]


def read_aligned_files(
    source: str, target: str, languages: tuple[str | None, str | None]
) -> tuple[NumberedPairs, Languages]:
    """Return the lines of two files that translate each other as pairs, and the languages.

    A language without a name is called what the name of its file ends in, as in train.de.gz; where
    both would have one name, "source" and "target".

    Raises:
        ValueError: if a file cannot be read, they have not the same number of lines, or both
            languages have one name.
    """
    if source == target:
        raise ValueError(f"{source} cannot be its own translation: name two files.")
    first, second = (
        language or strip_gz_suffix(name).suffix.removeprefix(".") or strip_gz_suffix(name).name
        for language, name in zip(languages, (source, target), strict=True)
    )
    if first == second:
        first, second = "source", "target"
    sides = {name: read_lines(Path(name)) for name in (source, target)}
    short, long = sorted(sides, key=lambda name: len(sides[name]))
    if len(sides[short]) != len(sides[long]):
        raise ValueError(
            f"{short} has {len(sides[short]):,} lines and {long} {len(sides[long]):,}: line "
            f"{len(sides[short]) + 1:,} of {long} has nothing that it translates."
        )
    pairs = zip(sides[source], sides[target], strict=True)
    return list(enumerate(pairs, 1)), (first, second)


def read_table(
    path: Path, delimiter: str | None, languages: tuple[str | None, str | None]
) -> tuple[NumberedPairs, Languages]:
    """Return the pairs of a table whose first line names its columns, and the languages.

    Args:
        path: the file.
        delimiter: what separates cells; None for that of `DELIMITER_NAMES` which the first line
            has most of.
        languages: as for `read_pairs`.

    Raises:
        ValueError: if it cannot be read, lacks a column, or a cell has a line break in it or is one
            too many.
    """
    text = read_text_file(path)
    if delimiter is None:
        first_line = text.partition("\n")[0]
        delimiter = max(DELIMITER_NAMES, key=first_line.count)
    rows = (
        iter_plain_rows(text)
        if delimiter == "\t" and not is_quoted_throughout(text)
        else iter_quoted_rows(path, text, delimiter)
    )
    header = [name.strip() for name in next(rows, (1, []))[1]]
    kind = f"{path} ({DELIMITER_NAMES[delimiter]})"
    first, second = find_columns(header, languages, kind)
    numbered: NumberedPairs = []
    blank: NumberedPairs = []  # lines, which may stand at the end
    for number, row in rows:
        if row in ([], [""]):
            blank.append((number, ("", "")))
            continue
        numbered += blank
        blank = []
        if len(row) > len(header):
            raise ValueError(
                f"{path}: line {number:,} has {len(row)} cells, but there are {len(header)} "
                f"columns: {HOW_TO_QUOTE[delimiter]}."
            )
        source, target = (row[place] if place < len(row) else "" for place in (first, second))
        numbered.append((number, (source, target)))
    return numbered, (header[first], header[second])


def is_quoted_throughout(text: str) -> bool:
    """Return whether quotation marks in tab-separated text are quoting and not text.

    They are if each cell that has some begins and ends with one and doubles those inside.
    """
    cells = (cell for line in text.splitlines() for cell in line.split("\t") if '"' in cell)
    return all(
        len(cell) > 1 and cell[0] == cell[-1] == '"' and '"' not in cell[1:-1].replace('""', "")
        for cell in cells
    )


def iter_plain_rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the numbered rows of tab-separated text in which a quotation mark is one."""
    for number, line in enumerate(io.StringIO(text, newline="\n"), start=1):
        yield number, line.removesuffix("\n").removesuffix("\r").split("\t")


def iter_quoted_rows(path: Path, text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a table in which cells may be quoted, each with its line.

    Raises:
        ValueError: naming the line, if a quotation is not one, or a cell has a line break in it.
    """
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        for row in reader:
            if any("\n" in cell or "\r" in cell for cell in row):
                raise ValueError(
                    f"{path}: line {reader.line_num:,} ends a cell that has a line break in it: "
                    "each side of a pair stands on one line."
                )
            yield reader.line_num, row
    except csv.Error as error:
        raise ValueError(
            f"{path}: line {reader.line_num:,} is no row of a table: {error}; "
            f"{HOW_TO_QUOTE[delimiter]}."
        ) from None


def find_columns(
    header: Sequence[str], languages: tuple[str | None, str | None], source_name: Path | str
) -> tuple[int, int]:
    """Return the indices of the columns of the two languages.

    Raises:
        ValueError: if these are not two of the columns.
    """
    lower = [name.casefold() for name in header]
    named = [(language or "").casefold() for language in languages]
    if languages == (None, None) and len(header) == 2:
        named = lower
    if len({*named} & {*lower}) < 2:
        raise ValueError(
            f"{source_name} has the columns {format_columns(header)}: name two of them by "
            "--source-language and --target-language." + see("pairs")
        )
    return lower.index(named[0]), lower.index(named[1])


def format_columns(header: Sequence[str]) -> str:
    """Return the names of columns for a message, those of a strange table as far as one reads."""
    names = [name[:MAX_COLUMN_NAME] for name in header[:MAX_SHOWN_COLUMNS]]
    more = f" and {len(header) - len(names):,} more" if len(header) > len(names) else ""
    return (", ".join(names) + more) or "(none)"


# --- Making them ready -------------------------------------------------------------------------


def prepare_pair_corpus(
    pairs: Sequence[Pair],
    languages: Languages,
    max_length: int,
    *,
    val_split: float | Sequence[Pair] = 0.1,
    token_type: TokenType = "bpe",
    vocab_size: int | None = None,
    shared_vocabulary: bool = True,
    overlong: Overlong = "drop",
    tokenizer: PairTokenizer | None = None,
    output_dir: Path | None = None,
) -> Dataset:
    """Hold some pairs out, learn the vocabularies from the others, and make all of them tokens.

    A pair that is held out is never learned from, wherever else the same one stands.

    Args:
        pairs: the source and the target of each.
        languages: what they are called.
        max_length: N, the most tokens that a model reads: a source with its [EOS], a target with
            [SOS].
        val_split: the share that is held out, from all over; or the pairs themselves.
        token_type: "characters", "words" or "bpe".
        vocab_size: as `train_pair_tokenizer` takes it.
        shared_vocabulary: whether both languages have one vocabulary.
        overlong: what to do with longer pairs: "drop" or "truncate" them.
        tokenizer: one to use instead of learning vocabularies.
        output_dir: where to keep it all; `load_pair_corpus` opens it again. None for memory.

    Raises:
        ValueError: if too little is left, or an argument is out of its range.
        OSError: if the folder cannot be written to.
        ImportError: for words and BPE, if `tokenizers` is not installed.
    """
    if tokenizer is None:
        check_vocab_size(token_type, vocab_size, SENTENCE_TOKENS)
    learned, unseen, warnings = split_pairs(pairs, val_split)
    if tokenizer is None:
        tokenizer = train_pair_tokenizer(
            learned, languages, token_type, vocab_size, shared_vocabulary
        )
    streams: list[list[int]] = []
    for name, part in (("learned from", learned), ("held out", unseen)):
        rows, kept, note = encode_pairs(part, tokenizer, max_length, overlong)
        if note:
            warnings.append(f"Of {len(part):,} pairs {name}, {note}.")
        if not rows:
            raise ValueError(
                f"None of the {len(part):,} pairs {name} fits a window of {max_length} tokens: "
                "choose a longer context_length, or --overlong truncate."
            )
        streams.append([i for row in rows for i in (*row[0], *row[1], tokenizer.end_id)])
    if output_dir is not None:
        write_token_folder(output_dir, tokenizer, streams[0], streams[1], kept)
        return load_pair_corpus(output_dir, warnings)
    train_rows, val_rows = (EncodedPairs(torch.tensor(ids), tokenizer.end_id) for ids in streams)
    # `kept` is of the last part, which is held out.
    return Dataset(tokenizer, train_rows, val_rows, warnings=warnings, val_texts=kept)


def split_pairs(
    pairs: Sequence[Pair], val_split: float | Sequence[Pair]
) -> tuple[list[Pair], list[Pair], list[str]]:
    """Split pairs into those to train on and those that are held out; say what is in neither.

    Raises:
        ValueError: if there is nothing to learn from, or nothing held out.
    """
    places: set[int] = set()
    if isinstance(val_split, float):
        count = round(len(pairs) * val_split)
        places = {i * len(pairs) // count for i in range(count)}
        unseen = [pairs[i] for i in sorted(places)]
    else:
        unseen = list(val_split)
    hidden = set(unseen)
    learned = [pair for pair in pairs if pair not in hidden]
    if not learned or not unseen:
        raise ValueError(
            f"There is too little to train on: {len(learned):,} pairs to learn from and "
            f"{len(unseen):,} held out: give more."
        )
    left_out = len(pairs) - len(places) - len(learned)
    note = f"Of {len(pairs):,} pairs, {left_out:,} were dropped, since the same are held out."
    return learned, unseen, [note] if left_out else []


def encode_pairs(
    pairs: Iterable[Pair], tokenizer: PairTokenizer, max_length: int, overlong: Overlong
) -> tuple[list[tuple[list[int], list[int]]], list[Pair], str]:
    """Encode pairs that fit a window; return the ids, their pairs, and a note on longer ones.

    Targets may have one token less than the window, since the model also reads [SOS].
    """
    rows, kept, long = [], [], 0
    for source, target in pairs:
        ids = tokenizer.encode_source(source), tokenizer.encode_target(target)
        if len(ids[0]) > max_length or len(ids[1]) >= max_length:
            long += 1
            if overlong == "drop":
                continue
            ids = [*ids[0][:-1][: max_length - 1], ids[0][-1]], ids[1][: max_length - 1]
        rows.append(ids)
        kept.append((source, target))
    done = "were dropped" if overlong == "drop" else "were cut"
    return rows, kept, f"{long:,} of more than {max_length} tokens {done}" if long else ""


def load_pair_corpus(tokens_dir: Path, warnings: Sequence[str] = ()) -> Dataset:
    """Open the pairs that `prepare_pair_corpus` wrote to a folder.

    Raises:
        ValueError: if there are none, or they are damaged.
    """
    data = open_token_folder(tokens_dir, PairTokenizer.from_json)
    try:
        train, val = (EncodedPairs(ids, data.tokenizer.end_id) for ids in (data.train, data.val))
    except ValueError as error:
        raise ValueError(f"{tokens_dir}: {error}") from None
    val_texts = load_validated(list[Pair], tokens_dir / VAL_NAMES_FILE, MAX_JSON_BYTES)
    if len(val_texts) != len(val):
        raise ValueError(
            f"{tokens_dir / VAL_NAMES_FILE} is damaged: it should have {len(val)} pairs."
        )
    return Dataset(data.tokenizer, train, val, warnings=list(warnings), val_texts=val_texts)
