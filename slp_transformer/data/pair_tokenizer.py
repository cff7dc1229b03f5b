"""Sentences of two languages as token ids and back.

Each language has a `TextTokenizer` (characters, words or BPE), or both share one, as is usual for
BPE: names and numbers are then the same tokens on both sides, and one matrix E embeds them all. The
first four ids are [PAD], [UNK], [SOS] and [EOS], which no text gives.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, SupportsInt

from slp_transformer._internal.json_files import validate_json
from slp_transformer.data.text_tokenizer import (
    EOS,
    PAD,
    SENTENCE_TOKENS,
    SOS,
    TextTokenizer,
    TokenType,
    train_tokenizer,
)


@dataclass(frozen=True)
class PairTokenizer:
    """Turns sentences of two languages into ids, and those of the second back into text.

    The fields are the content of tokenizer.json, in which a target of null stands for a shared one.

    Attributes:
        languages: what they are called, the source's first.
        source: the tokenizer of the source.
        target: that of the target; the same object if both share one.
        pad_id: id of [PAD].
        begin_id: id of [SOS], which the decoder begins with.
        end_id: id of [EOS], which ends both sentences.
    """

    languages: tuple[str, str]
    source: TextTokenizer
    target: TextTokenizer
    pad_id: ClassVar[int] = SENTENCE_TOKENS.index(PAD)
    begin_id: ClassVar[int] = SENTENCE_TOKENS.index(SOS)
    end_id: ClassVar[int] = SENTENCE_TOKENS.index(EOS)

    def __post_init__(self) -> None:
        """Put two tokenizers together.

        Raises:
            ValueError: if one of them does not begin with the four special tokens.
        """
        for tokenizer in (self.source, self.target):
            if tuple(tokenizer.vocabulary[: len(SENTENCE_TOKENS)]) != SENTENCE_TOKENS:
                raise ValueError(
                    f"The vocabulary must begin with {', '.join(SENTENCE_TOKENS)}: train it with "
                    "special_tokens=SENTENCE_TOKENS."
                )

    @property
    def vocab_size(self) -> int:
        """|V| of the target."""
        return self.target.vocab_size

    @property
    def source_vocab_size(self) -> int | None:
        """|V| of the source; None if both share one vocabulary."""
        return None if self.source is self.target else self.source.vocab_size

    def encode_source(self, sentence: str) -> list[int]:
        """Return the ids that the encoder reads, [EOS] at the end."""
        return [*encode_sentence(self.source, sentence), self.end_id]

    def encode_target(self, sentence: str) -> list[int]:
        """Return the ids of a target, without [SOS] and [EOS]."""
        return encode_sentence(self.target, sentence)

    def decode_target(self, ids: Iterable[SupportsInt]) -> str:
        """Return the sentence of some ids, in one line, without [PAD], [SOS] and [EOS]."""
        return " ".join(self.target.decode(ids).split())

    def to_json(self) -> dict[str, Any]:
        """Return the content of tokenizer.json, which `from_json` takes."""
        target = None if self.source is self.target else self.target.to_json()
        return {"languages": self.languages, "source": self.source.to_json(), "target": target}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "PairTokenizer":
        """Create the tokenizer from what `to_json` returned.

        Raises:
            ValueError: if it describes something else.
        """
        shared = isinstance(content, Mapping) and content.get("target", content) is None
        if shared:
            content = {**content, "target": content.get("source")}
        text = json.dumps(content).encode()
        tokenizer = validate_json(cls, text, "This pair tokenizer is damaged")
        return replace(tokenizer, target=tokenizer.source) if shared else tokenizer


def ids_to_tokens(tokenizer: TextTokenizer, ids: Iterable[int]) -> list[str]:
    """Return the text of each id; special tokens have their names."""
    return [SENTENCE_TOKENS[i] if i < len(SENTENCE_TOKENS) else tokenizer.decode([i]) for i in ids]


def encode_sentence(tokenizer: TextTokenizer, sentence: str) -> list[int]:
    """Return the ids of a sentence."""
    return tokenizer.encode(with_leading_space(sentence, tokenizer.token_type))


def with_leading_space(sentence: str, token_type: TokenType) -> str:
    """Return a sentence with a space before its first word, as before all others.

    Tokenizers of characters need none.
    """
    sentence = sentence.strip()
    return sentence if token_type == "characters" or not sentence else f" {sentence}"


def train_pair_tokenizer(
    pairs: Iterable[tuple[str, str]],
    languages: tuple[str, str],
    token_type: TokenType = "bpe",
    vocab_size: int | None = None,
    shared_vocabulary: bool = True,
) -> PairTokenizer:
    """Learn the vocabularies of two languages from pairs.

    Args:
        pairs: the source and the target of each.
        languages: what they are called.
        token_type: "characters", "words" or "bpe".
        vocab_size: as `train_tokenizer` takes it; of each language, unless they share one.
        shared_vocabulary: whether both have one vocabulary.

    Raises:
        ValueError: if the kind is unknown, the size does not go with it, or there is no pair.
        ImportError: for words and BPE, if `tokenizers` is not installed.
    """
    pairs = list(pairs)
    sides = [[with_leading_space(pair[i], token_type) for pair in pairs] for i in (0, 1)]
    corpora = [sides[0] + sides[1]] if shared_vocabulary else sides
    tokenizers = [
        train_tokenizer(corpus, token_type, vocab_size, special_tokens=SENTENCE_TOKENS)
        for corpus in corpora
    ]
    return PairTokenizer(languages, tokenizers[0], tokenizers[-1])
