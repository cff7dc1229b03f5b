"""Pairs of sentences as tokens to train on, in memory or in a folder.

A folder holds the pairs as tokens (each side ends in [EOS]), the tokenizer, and the held-out
sentences, with which translations are compared.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import torch

from slp_transformer._internal.atomic_write import read_json
from slp_transformer._internal.shape_types import Int, Tensor
from slp_transformer.data.bundled_pairs import make_number_pairs
from slp_transformer.data.pair_files import Languages, Pair, read_pairs
from slp_transformer.data.pair_tokenizer import PairTokenizer, train_pair_tokenizer
from slp_transformer.data.text_tokenizer import (
    SENTENCE_TOKENS,
    TokenType,
    check_vocab_size,
)
from slp_transformer.data.token_file import (
    TRAIN_TOKENS_FILE,
    VAL_NAMES_FILE,
    VAL_TOKENS_FILE,
    TokenStore,
    find_token,
    read_folder_tokenizer,
    write_token_folder,
)

NUM_BUNDLED_PAIRS = 10_000  # pairs of numbers and dates, if no others are named
Overlong = Literal["drop", "truncate"]


@dataclass(frozen=True)
class PairCorpus:
    """Pairs made ready.

    Attributes:
        tokenizer: what their ids mean.
        train_data: pairs of rows of ids to learn from, the source's [EOS] included.
        val_data: those to measure on.
        val_sentences: the held-out pairs as they were written.
        warnings: what was left out or cut, a sentence each.
    """

    tokenizer: PairTokenizer
    train_data: "EncodedPairs"
    val_data: "EncodedPairs"
    val_sentences: list[Pair]
    warnings: list[str] = field(default_factory=list)


class EncodedPairs(Sequence):
    """Pairs of rows of ids, from one stream in which [EOS] ends each row: memory or a file."""

    def __init__(self, stream: Int[Tensor, "tokens"] | TokenStore, end_id: int):
        """Find where each row ends.

        Raises:
            ValueError: if a row has no end, or a source no target.
        """
        self.stream, self.row_ends = stream, find_token(stream, end_id)
        if len(self.row_ends) % 2 or len(stream) != (
            int(self.row_ends[-1]) + 1 if len(self.row_ends) else 0
        ):
            raise ValueError("These tokens are no pairs: they end in the middle of one.")

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.row_ends) // 2

    def __getitem__(self, i: int) -> tuple[Int[Tensor, "M"], Int[Tensor, "N"]]:
        """Return the source with its [EOS], and the target without.

        Raises:
            IndexError: if there are not so many pairs.
        """
        if not 0 <= i < len(self):
            raise IndexError(f"There are {len(self)} pairs, and no pair {i}.")
        start = int(self.row_ends[2 * i - 1]) + 1 if i else 0
        middle, end = int(self.row_ends[2 * i]) + 1, int(self.row_ends[2 * i + 1])
        return self.stream[start:middle], self.stream[middle:end]


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
) -> PairCorpus:
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
        ValueError: if too little is left, an argument is out of its range, or the folder cannot be
            written to.
        ImportError: for words and BPE, if `tokenizers` is not installed.
    """
    if tokenizer is None:
        check_vocab_size(token_type, vocab_size, SENTENCE_TOKENS)
    learned, unseen = split_pairs(pairs, val_split)
    if tokenizer is None:
        tokenizer = train_pair_tokenizer(
            learned, languages, token_type, vocab_size, shared_vocabulary
        )
    rows, problems, kept = {}, [], {}
    for name, part in (("learned from", learned), ("held out", unseen)):
        rows[name], kept[name], note = encode_pairs(part, tokenizer, max_length, overlong)
        if note:
            problems.append(f"Of {len(part):,} pairs {name}, {note}.")
        if not rows[name]:
            raise ValueError(
                f"None of the {len(part):,} pairs {name} fits a window of {max_length} tokens: "
                f"choose "
                "a longer context_length, or --overlong truncate."
            )
    streams = [flatten_pairs(rows[name], tokenizer.end_id) for name in rows]
    texts = kept["held out"]
    if output_dir is not None:
        size = tokenizer.max_vocab_size
        write_token_folder(output_dir, tokenizer.to_json(), size, *streams, texts)
        return load_pair_corpus(output_dir, problems)
    both = (EncodedPairs(torch.tensor(list(s)), tokenizer.end_id) for s in streams)
    return PairCorpus(tokenizer, *both, texts, problems)


def split_pairs(
    pairs: Sequence[Pair], val_split: float | Sequence[Pair]
) -> tuple[list[Pair], list[Pair]]:
    """Split pairs into those to train on and those that are held out.

    Raises:
        ValueError: if there is nothing to learn from, or nothing held out.
    """
    if isinstance(val_split, float):
        count = round(len(pairs) * val_split)
        places = {i * len(pairs) // count for i in range(count)} if count else set()
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
    return learned, unseen


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


def flatten_pairs(rows: Iterable[tuple[list[int], list[int]]], end_id: int) -> Iterator[int]:
    """Yield the ids of all rows, each of which ends in [EOS]."""
    for source, target in rows:
        yield from source
        yield from target
        yield end_id


def load_pair_corpus(tokens_dir: Path, warnings: Sequence[str] = ()) -> PairCorpus:
    """Open the pairs that `prepare_pair_corpus` wrote to a folder.

    Raises:
        ValueError: if there are none, or they are damaged.
    """
    tokenizer = read_folder_tokenizer(tokens_dir, PairTokenizer)
    encoded = []
    for name in (TRAIN_TOKENS_FILE, VAL_TOKENS_FILE):
        stream = TokenStore(tokens_dir / name, tokenizer.max_vocab_size)
        try:
            encoded.append(EncodedPairs(stream, tokenizer.end_id))
        except ValueError as error:
            raise ValueError(f"{tokens_dir / name}: {error}") from None
    texts = read_json(tokens_dir / VAL_NAMES_FILE)
    sound = isinstance(texts, list) and len(texts) == len(encoded[1])
    if not sound or not all(is_pair(pair) for pair in texts):
        raise ValueError(
            f"{tokens_dir / VAL_NAMES_FILE} is damaged: it should have {len(encoded[1])} pairs of "
            "sentences."
        )
    return PairCorpus(tokenizer, *encoded, [tuple(pair) for pair in texts], list(warnings))


def is_pair(content: object) -> bool:
    """Return whether JSON content is a pair of sentences."""
    return (
        isinstance(content, list)
        and len(content) == 2
        and all(isinstance(side, str) for side in content)
    )


def read_pairs_or_bundled(
    source: str | None,
    target: str | None,
    languages: tuple[str | None, str | None],
) -> tuple[list[Pair], Languages]:
    """Read pairs as `read_pairs` does; without a source, return the bundled numbers and dates."""
    if source is None:
        return make_number_pairs(NUM_BUNDLED_PAIRS), ("English", "Spanish")
    return read_pairs(source, target, languages)
