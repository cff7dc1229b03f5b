"""Training of tokenizers: of characters, words or BPE."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from slp_transformer._internal.atomic_write import from_text_extra
from slp_transformer.data.text_tokenizer import (
    END,
    UNK,
    UNKNOWN,
    TextTokenizer,
    pre_tokenizer,
)
from slp_transformer.data.token_types import Kind, check_kind

SIZES = {"words": 30_000, "bpe": 2_048}  # tokens, if nobody says how many


def train_tokenizer(
    texts: Iterable[str],
    kind: Kind = "characters",
    vocab_size: int | None = None,
    *,
    end: bool = False,
    special: Sequence[str] = (),
    marks: bool = False,
) -> TextTokenizer:
    """Learn a vocabulary from texts, which are gone through once and not kept.

    Args:
        texts: documents, or pieces of one. A single string is one text.
        kind: "characters", "words" or "bpe".
        vocab_size: how many tokens there should be; there are fewer if the text gives no more.
            Of the words, the most frequent are kept (None: 30,000). BPE begins with the 256 bytes
            and joins the most frequent pairs (None: 2,048). Characters are all kept, so None there.
        end: whether to have a token, id 0, for the end of a document. It is for a model that is
            to tell documents apart, and that `generate` should stop at.
        special: other tokens that no text gives, with the first ids: `SENTENCE` for pairs of
            sentences. With "[UNK]" among them, that stands for what is not in the vocabulary.
        marks: as `TextTokenizer` takes it.

    Returns:
        The tokenizer.

    Raises:
        ValueError: if the kind is unknown, the size does not go with it, or there is no text.
        ImportError: for words and BPE, if `tokenizers` is not installed.
    """
    check_kind(kind)
    special = [*special, *([END] if end else [])]
    check_vocab_size(kind, vocab_size, special)
    texts = some_text([texts] if isinstance(texts, str) else texts)
    if kind == "characters":
        characters: set[str] = set()
        for text in texts:
            characters.update(text)
        return TextTokenizer(kind, special + sorted(characters))
    if kind == "bpe":
        return train_bpe(texts, vocab_size, special, marks)
    return train_words(texts, vocab_size, special)


def some_text(texts: Iterable[str]) -> Iterator[str]:
    """Return an iterator over the texts that are not empty.

    Raises:
        ValueError: if there is none.
    """
    texts = filter(None, texts)
    first = next(texts, None)
    if first is None:
        raise ValueError("There is no text to learn a vocabulary from: give some.")
    return chain([first], texts)


def train_words(texts: Iterable[str], size: int | None, special: list[str]) -> TextTokenizer:
    """Train a tokenizer of the most frequent words; one token stands for all others."""
    special = special if UNK in special else [*special, UNKNOWN]
    unknown = UNK if UNK in special else UNKNOWN
    library = from_text_extra("tokenizers", "Words and BPE")
    tokenizer = library.Tokenizer(library.models.WordLevel(unk_token=unknown))
    tokenizer.pre_tokenizer = pre_tokenizer("words")
    trainer = library.trainers.WordLevelTrainer(
        vocab_size=size or SIZES["words"], special_tokens=special, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return TextTokenizer("words", in_order(tokenizer.get_vocab()))


def train_bpe(
    texts: Iterable[str], size: int | None, special: list[str], marks: bool
) -> TextTokenizer:
    """Train byte-level BPE: bytes, and merges of the most frequent pairs."""
    library = from_text_extra("tokenizers", "Words and BPE")
    tokenizer = library.Tokenizer(library.models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer("bpe", marks)
    trainer = library.trainers.BpeTrainer(
        vocab_size=size or SIZES["bpe"],
        initial_alphabet=library.pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=special,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return TextTokenizer("bpe", in_order(model["vocab"]), model["merges"], marks)


def in_order(ids: Mapping[str, int]) -> list[str]:
    """Return the tokens of a vocabulary, sorted by id."""
    return sorted(ids, key=ids.__getitem__)


def check_vocab_size(kind: Kind, size: int | None, special: Sequence[str] = ()) -> None:
    """Refuse a vocabulary size that the kind cannot have.

    Raises:
        ValueError: saying which it can.
    """
    if size is None:
        return
    if kind == "characters":
        raise ValueError("vocab_size is for words and BPE: every character of the text is kept.")
    unknown = [] if kind == "bpe" or UNK in special else [UNKNOWN]
    least = (256 if kind == "bpe" else 1) + len(special) + len(unknown)
    if size < least:
        what = "a token for each byte" if kind == "bpe" else f"a word beside {(*unknown, UNK)[0]}"
        others = [token for token in special if kind == "bpe" or token != UNK]
        what += f" and one for {', '.join(others)}" if others else ""
        raise ValueError(f"vocab_size must be at least {least} ({what}), not {size}.")
