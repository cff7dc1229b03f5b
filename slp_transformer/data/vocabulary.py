"""Training of tokenizers: of characters, words or BPE."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from slp_transformer._internal.atomic_write import require_extra
from slp_transformer.data.text_tokenizer import (
    END_TOKEN,
    UNK,
    UNKNOWN_TOKEN,
    TextTokenizer,
    build_pre_tokenizer,
)
from slp_transformer.data.token_types import TokenType, check_token_type

DEFAULT_VOCAB_SIZES = {"words": 30_000, "bpe": 2_048}  # tokens, if nobody says how many


def train_tokenizer(
    texts: Iterable[str],
    token_type: TokenType = "characters",
    vocab_size: int | None = None,
    *,
    end_token: bool = False,
    special_tokens: Sequence[str] = (),
    keep_marks: bool = False,
) -> TextTokenizer:
    """Learn a vocabulary from texts, which are gone through once and not kept.

    Args:
        texts: documents, or pieces of one. A single string is one text.
        token_type: "characters", "words" or "bpe".
        vocab_size: how many tokens there should be; there are fewer if the text gives no more.
            Of the words, the most frequent are kept (None: 30,000). BPE begins with the 256 bytes
            and joins the most frequent pairs (None: 2,048). Characters are all kept, so None there.
        end_token: whether to have a token, id 0, for the end of a document. It is for a model that
            is to tell documents apart, and that `generate` should stop at.
        special_tokens: other tokens that no text gives, with the first ids: `SENTENCE_TOKENS` for
            pairs of sentences. With "[UNK]" among them, that stands for what is not in the
            vocabulary.
        keep_marks: as `TextTokenizer` takes it.

    Returns:
        The tokenizer.

    Raises:
        ValueError: if the kind is unknown, the size does not go with it, or there is no text.
        ImportError: for words and BPE, if `tokenizers` is not installed.
    """
    check_token_type(token_type)
    special_tokens = [*special_tokens, *([END_TOKEN] if end_token else [])]
    check_vocab_size(token_type, vocab_size, special_tokens)
    texts = skip_empty_texts([texts] if isinstance(texts, str) else texts)
    if token_type == "characters":
        characters: set[str] = set()
        for text in texts:
            characters.update(text)
        return TextTokenizer(token_type, special_tokens + sorted(characters))
    if token_type == "bpe":
        return train_bpe_tokenizer(texts, vocab_size, special_tokens, keep_marks)
    return train_word_tokenizer(texts, vocab_size, special_tokens)


def skip_empty_texts(texts: Iterable[str]) -> Iterator[str]:
    """Return an iterator over the texts that are not empty.

    Raises:
        ValueError: if there is none.
    """
    texts = filter(None, texts)
    first = next(texts, None)
    if first is None:
        raise ValueError("There is no text to learn a vocabulary from: give some.")
    return chain([first], texts)


def train_word_tokenizer(
    texts: Iterable[str], vocab_size: int | None, special_tokens: list[str]
) -> TextTokenizer:
    """Train a tokenizer of the most frequent words; one token stands for all others."""
    special_tokens = special_tokens if UNK in special_tokens else [*special_tokens, UNKNOWN_TOKEN]
    unknown = UNK if UNK in special_tokens else UNKNOWN_TOKEN
    library = require_extra("tokenizers", "Words and BPE")
    tokenizer = library.Tokenizer(library.models.WordLevel(unk_token=unknown))
    tokenizer.pre_tokenizer = build_pre_tokenizer("words")
    trainer = library.trainers.WordLevelTrainer(
        vocab_size=vocab_size or DEFAULT_VOCAB_SIZES["words"],
        special_tokens=special_tokens,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return TextTokenizer("words", tokens_sorted_by_id(tokenizer.get_vocab()))


def train_bpe_tokenizer(
    texts: Iterable[str], vocab_size: int | None, special_tokens: list[str], keep_marks: bool
) -> TextTokenizer:
    """Train byte-level BPE: bytes, and merges of the most frequent pairs."""
    library = require_extra("tokenizers", "Words and BPE")
    tokenizer = library.Tokenizer(library.models.BPE())
    tokenizer.pre_tokenizer = build_pre_tokenizer("bpe", keep_marks)
    trainer = library.trainers.BpeTrainer(
        vocab_size=vocab_size or DEFAULT_VOCAB_SIZES["bpe"],
        initial_alphabet=library.pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=special_tokens,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return TextTokenizer("bpe", tokens_sorted_by_id(model["vocab"]), model["merges"], keep_marks)


def tokens_sorted_by_id(ids: Mapping[str, int]) -> list[str]:
    """Return the tokens of a vocabulary, sorted by id."""
    return sorted(ids, key=ids.__getitem__)


def check_vocab_size(
    token_type: TokenType, vocab_size: int | None, special_tokens: Sequence[str] = ()
) -> None:
    """Refuse a vocabulary size that the kind cannot have.

    Raises:
        ValueError: saying which it can.
    """
    if vocab_size is None:
        return
    if token_type == "characters":
        raise ValueError("vocab_size is for words and BPE: every character of the text is kept.")
    unknown = [] if token_type == "bpe" or UNK in special_tokens else [UNKNOWN_TOKEN]
    least = (256 if token_type == "bpe" else 1) + len(special_tokens) + len(unknown)
    if vocab_size < least:
        what = (
            "a token for each byte"
            if token_type == "bpe"
            else f"a word as well as {(*unknown, UNK)[0]}"
        )
        others = [token for token in special_tokens if token_type == "bpe" or token != UNK]
        what += f" and one for {', '.join(others)}" if others else ""
        raise ValueError(f"vocab_size must be at least {least} ({what}), not {vocab_size}.")
