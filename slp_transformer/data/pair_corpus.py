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
from slp_transformer.data.bundled_pairs import number_pairs
from slp_transformer.data.pair_files import Languages, Pair, read_pairs
from slp_transformer.data.pair_tokenizer import PairTokenizer, train_pair_tokenizer
from slp_transformer.data.text_tokenizer import SENTENCE
from slp_transformer.data.token_file import (
    TRAIN_TOKENS_FILE,
    VAL_NAMES_FILE,
    VAL_TOKENS_FILE,
    TokenStore,
    find_token,
    read_folder_tokenizer,
    write_token_folder,
)
from slp_transformer.data.token_types import Kind, check_kind
from slp_transformer.data.vocabulary import check_vocab_size

NUMBERS = 10_000  # pairs of numbers and dates, if no others are named
TooLong = Literal["drop", "truncate"]


@dataclass(frozen=True)
class PairCorpus:
    """Pairs made ready.

    Attributes:
        tokenizer: what their ids mean.
        learned: pairs of rows of ids to learn from, the source's [EOS] included.
        held_out: those to measure on.
        texts: the held-out pairs as they were written.
        problems: what was left out or cut, a sentence each.
    """

    tokenizer: PairTokenizer
    learned: "EncodedPairs"
    held_out: "EncodedPairs"
    texts: list[Pair]
    problems: list[str] = field(default_factory=list)


class EncodedPairs(Sequence):
    """Pairs of rows of ids, from one stream in which [EOS] ends each row: memory or a file."""

    def __init__(self, stream: Int[Tensor, "tokens"] | TokenStore, end_id: int):
        """Find where each row ends.

        Raises:
            ValueError: if a row has no end, or a source no target.
        """
        self.stream, self.ends = stream, find_token(stream, end_id)
        if len(self.ends) % 2 or len(stream) != (int(self.ends[-1]) + 1 if len(self.ends) else 0):
            raise ValueError("These tokens are no pairs: they end in the middle of one.")

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.ends) // 2

    def __getitem__(self, i: int) -> tuple[Int[Tensor, "M"], Int[Tensor, "N"]]:
        """Return the source with its [EOS], and the target without.

        Raises:
            IndexError: if there are not so many pairs.
        """
        if not 0 <= i < len(self):
            raise IndexError(f"There are {len(self)} pairs, and no pair {i}.")
        start = int(self.ends[2 * i - 1]) + 1 if i else 0
        middle, end = int(self.ends[2 * i]) + 1, int(self.ends[2 * i + 1])
        return self.stream[start:middle], self.stream[middle:end]


# --- Making them ready -------------------------------------------------------------------------


def prepare_pairs(
    pairs: Sequence[Pair],
    languages: Languages,
    window: int,
    *,
    held_out: float | Sequence[Pair] = 0.1,
    kind: Kind = "bpe",
    vocab_size: int | None = None,
    shared: bool = True,
    too_long: TooLong = "drop",
    tokenizer: PairTokenizer | None = None,
    folder: Path | None = None,
) -> PairCorpus:
    """Hold some pairs out, learn the vocabularies from the others, and make all of them tokens.

    A pair that is held out is never learned from, wherever else the same one stands.

    Args:
        pairs: the source and the target of each.
        languages: what they are called.
        window: N, the most tokens that a model reads: a source with its [EOS], a target with [SOS].
        held_out: the share that is held out, from all over; or the pairs themselves.
        kind: "characters", "words" or "bpe".
        vocab_size: as `train_pair_tokenizer` takes it.
        shared: whether both languages have one vocabulary.
        too_long: what to do with longer pairs: "drop" or "truncate" them.
        tokenizer: one to use instead of learning vocabularies.
        folder: where to keep it all; `reopen_pairs` opens it again. None for memory.

    Raises:
        ValueError: if too little is left, an argument is out of its range, or the folder cannot be
            written to.
        ImportError: for words and BPE, if `tokenizers` is not installed.
    """
    if tokenizer is None:
        check_kind(kind)
        check_vocab_size(kind, vocab_size, SENTENCE)
    learned, unseen = split(pairs, held_out)
    if tokenizer is None:
        tokenizer = train_pair_tokenizer(learned, languages, kind, vocab_size, shared)
    rows, problems, kept = {}, [], {}
    for name, part in (("learned from", learned), ("held out", unseen)):
        rows[name], kept[name], note = fit(part, tokenizer, window, too_long)
        if note:
            problems.append(f"Of {len(part):,} pairs {name}, {note}.")
        if not rows[name]:
            raise ValueError(
                f"None of the {len(part):,} pairs {name} fits a window of {window} tokens: choose "
                "a longer context_length, or --too-long truncate."
            )
    streams = [flat(rows[name], tokenizer.end_id) for name in rows]
    texts = kept["held out"]
    if folder is not None:
        size = tokenizer.max_vocab_size
        write_token_folder(folder, tokenizer.to_json(), size, *streams, texts)
        return reopen_pairs(folder, problems)
    both = (EncodedPairs(torch.tensor(list(s)), tokenizer.end_id) for s in streams)
    return PairCorpus(tokenizer, *both, texts, problems)


def split(pairs: Sequence[Pair], held_out: float | Sequence[Pair]) -> tuple[list[Pair], list[Pair]]:
    """Split pairs into those to train on and those that are held out.

    Raises:
        ValueError: if there is nothing to learn from, or nothing held out.
    """
    if isinstance(held_out, float):
        count = round(len(pairs) * held_out)
        places = {i * len(pairs) // count for i in range(count)} if count else set()
        unseen = [pairs[i] for i in sorted(places)]
    else:
        unseen = list(held_out)
    hidden = set(unseen)
    learned = [pair for pair in pairs if pair not in hidden]
    if not learned or not unseen:
        raise ValueError(
            f"There is too little to train on: {len(learned):,} pairs to learn from and "
            f"{len(unseen):,} held out: give more."
        )
    return learned, unseen


def fit(
    pairs: Iterable[Pair], tokenizer: PairTokenizer, window: int, too_long: TooLong
) -> tuple[list[tuple[list[int], list[int]]], list[Pair], str]:
    """Encode pairs that fit a window; return the ids, their pairs, and a note on longer ones.

    Targets may have one token less than the window, since the model also reads [SOS].
    """
    rows, kept, long = [], [], 0
    for source, target in pairs:
        ids = tokenizer.encode_source(source), tokenizer.encode_target(target)
        if len(ids[0]) > window or len(ids[1]) >= window:
            long += 1
            if too_long == "drop":
                continue
            ids = [*ids[0][:-1][: window - 1], ids[0][-1]], ids[1][: window - 1]
        rows.append(ids)
        kept.append((source, target))
    done = "were dropped" if too_long == "drop" else "were cut"
    return rows, kept, f"{long:,} of more than {window} tokens {done}" if long else ""


def flat(rows: Iterable[tuple[list[int], list[int]]], end_id: int) -> Iterator[int]:
    """Yield the ids of all rows, each of which ends in [EOS]."""
    for source, target in rows:
        yield from source
        yield from target
        yield end_id


def reopen_pairs(folder: Path, problems: Sequence[str] = ()) -> PairCorpus:
    """Open the pairs that `prepare_pairs` wrote to a folder.

    Raises:
        ValueError: if there are none, or they are damaged.
    """
    tokenizer = read_folder_tokenizer(folder, PairTokenizer)
    encoded = []
    for name in (TRAIN_TOKENS_FILE, VAL_TOKENS_FILE):
        stream = TokenStore(folder / name, tokenizer.max_vocab_size)
        try:
            encoded.append(EncodedPairs(stream, tokenizer.end_id))
        except ValueError as error:
            raise ValueError(f"{folder / name}: {error}") from None
    texts = read_json(folder / VAL_NAMES_FILE)
    sound = isinstance(texts, list) and len(texts) == len(encoded[1])
    if not sound or not all(is_pair(pair) for pair in texts):
        raise ValueError(
            f"{folder / VAL_NAMES_FILE} is damaged: it should have {len(encoded[1])} pairs of "
            "sentences."
        )
    return PairCorpus(tokenizer, *encoded, [tuple(pair) for pair in texts], list(problems))


def is_pair(content: object) -> bool:
    """Return whether JSON content is a pair of sentences."""
    return (
        isinstance(content, list)
        and len(content) == 2
        and all(isinstance(side, str) for side in content)
    )


def load_pairs(
    source: str | None,
    target: str | None,
    languages: tuple[str | None, str | None],
) -> tuple[list[Pair], Languages]:
    """Read pairs as `read_pairs` does; without a source, return the bundled numbers and dates."""
    if source is None:
        return number_pairs(NUMBERS), ("English", "Spanish")
    return read_pairs(source, target, languages)
