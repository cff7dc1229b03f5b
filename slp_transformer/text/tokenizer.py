"""Text as token ids and back: characters, words or BPE, learned here from the reader's own text.

- **characters**: every character is a token. No library is needed, sequences are long, and a
  character that the tokenizer never saw cannot be written: it is refused, by name and place.
- **words**: a word with the space before it, a punctuation mark or a line end is a token, so that
  the text comes back with all its spaces. A word outside the vocabulary becomes ``<unk>``.
- **bpe**: byte-pair encoding, on bytes as GPT-2 has it (Sennrich et al. 2016, arXiv 1508.07909).
  Any text can be written, and comes back as it was.

Words and BPE are counted, merged and encoded by Hugging Face's `tokenizers`, which comes with the
`text` extra.
"""

import codecs
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, Literal, get_args

from slp_transformer.shapes import Int, Tensor
from slp_transformer.storage import from_text_extra

Kind = Literal["characters", "words", "bpe"]

FORMAT = "slp-transformer text tokenizer 1"
END, UNKNOWN = "<|end|>", "<unk>"
BPE_SIZE = 2048  # tokens, if nobody says how many
# GPT-2's pattern is in the library; this one keeps words with an apostrophe whole.
WORDS = r" ?\w+(?:'\w+)*| ?[^\w\s]|\s"


class TextTokenizer:
    """Turns text into token ids and back; `train_tokenizer` makes one.

    Args:
        kind: "characters", "words" or "bpe".
        vocabulary: the tokens, in the order of their ids.
        merges: for BPE, the pairs of tokens that are joined, the most frequent first.

    Raises:
        ValueError: if the kind is unknown, or a token comes twice.
    """

    def __init__(self, kind: Kind, vocabulary: Iterable[str], merges: Iterable[Sequence[str]] = ()):
        check_kind(kind)
        self.kind, self.vocabulary = kind, list(vocabulary)
        self.merges = [tuple(pair) for pair in merges]
        self.ids = {token: i for i, token in enumerate(self.vocabulary)}
        if len(self.ids) != len(self.vocabulary):
            raise ValueError("The vocabulary has a token twice: every token needs one id.")

    @property
    def vocab_size(self) -> int:
        """|V|: ids go from 0 to one less."""
        return len(self.vocabulary)

    @property
    def end_id(self) -> int | None:
        """The token after each document; None if the tokenizer was trained on a single one."""
        return self.ids.get(END)

    def encode(self, text: str, first_line: int = 1) -> list[int]:
        """The ids of a text.

        No text gives the end token's id: that is added after documents, never written in one.

        Args:
            text: any text, or one of known characters.
            first_line: the number that its first line has, for the message about a character.

        Raises:
            ValueError: naming the first character that the tokenizer does not know, and its line
                and column.
            ImportError: for words and BPE, if `tokenizers` is not installed.
        """
        if self.kind != "characters":
            return self.library.encode(text).ids
        try:
            return [self.ids[character] for character in text]
        except KeyError as error:
            place = text.index(error.args[0])
            line = first_line + text.count("\n", 0, place)
            column = place - (text.rfind("\n", 0, place) + 1) + 1
            raise ValueError(unknown_character(text[place], line, column)) from None

    def decode(self, ids: Iterable[int] | Int[Tensor, "N"]) -> str:
        """The text of a row of ids; the end token says nothing.

        Bytes that are no UTF-8, which a BPE model may write, become "�".

        Raises:
            ValueError: if an id is outside the vocabulary.
        """
        ids = ids.tolist() if isinstance(ids, Tensor) else ids
        return b"".join(map(self.bytes_of, ids)).decode("utf-8", errors="replace")

    def stream(self) -> "TextStream":
        """A decoder that is given one id at a time, to print what a model says as it says it."""
        return TextStream(self)

    def bytes_of(self, i: int) -> bytes:
        """What one id says, as UTF-8; for BPE this may be a part of a character.

        Raises:
            ValueError: if the id is outside the vocabulary.
        """
        if not 0 <= i < self.vocab_size:
            raise ValueError(f"Token {i} is unknown: ids go from 0 to {self.vocab_size - 1}.")
        return self.pieces[i]

    @cached_property
    def pieces(self) -> list[bytes]:
        """What each id says."""
        if self.kind == "bpe":
            table = byte_alphabet()
            pieces = [
                b"" if token == END else bytes(table[sign] for sign in token)
                for token in self.vocabulary
            ]
        else:
            pieces = [b"" if token == END else token.encode() for token in self.vocabulary]
        return pieces

    @cached_property
    def library(self) -> Any:
        """The `tokenizers.Tokenizer` that encodes words or BPE.

        Its vocabulary is plain: no token is special to it, so that a text with "<|end|>" in it
        cannot pretend to be two documents.
        """
        library = from_text_extra("tokenizers", "Words and BPE")
        if self.kind == "bpe":
            tokenizer = library.Tokenizer(library.models.BPE(self.ids, self.merges))
        else:
            tokenizer = library.Tokenizer(library.models.WordLevel(self.ids, unk_token=UNKNOWN))
        tokenizer.pre_tokenizer = pre_tokenizer(self.kind)
        return tokenizer

    def to_json(self) -> dict[str, Any]:
        """What `from_json` takes, and what a checkpoint keeps as tokenizer.json."""
        content = {"format": FORMAT, "kind": self.kind, "vocabulary": self.vocabulary}
        return content | (
            {"merges": [list(pair) for pair in self.merges]} if self.kind == "bpe" else {}
        )

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "TextTokenizer":
        """The tokenizer that `to_json` described.

        Raises:
            ValueError: if it describes something else.
        """
        if not isinstance(content, Mapping) or content.get("format") != FORMAT:
            raise ValueError("This is no text tokenizer that to_json wrote.")
        return cls(content["kind"], content["vocabulary"], content.get("merges", ()))

    def __eq__(self, other: object) -> bool:
        """Whether another tokenizer gives every text the same ids."""
        return isinstance(other, TextTokenizer) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        """Tokenizers that are equal hash alike."""
        return hash((self.kind, tuple(self.vocabulary)))

    def __repr__(self) -> str:
        """The kind and the size."""
        return f"TextTokenizer({self.kind!r}, vocab_size={self.vocab_size})"


class TextStream:
    """Decodes ids one by one, holding back a character until all its bytes are there."""

    def __init__(self, tokenizer: TextTokenizer):
        """Begin a text."""
        self.tokenizer = tokenizer
        self.decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def add(self, i: int) -> str:
        """What can be printed now that this id has come; "" while a character is unfinished.

        Raises:
            ValueError: if the id is outside the vocabulary.
        """
        return self.decoder.decode(self.tokenizer.bytes_of(i))

    def finish(self) -> str:
        """What is left: "�" if the last character was never finished, else nothing."""
        return self.decoder.decode(b"", final=True)


# --- Training ----------------------------------------------------------------------------------


def train_tokenizer(
    texts: Iterable[str],
    kind: Kind = "characters",
    vocab_size: int | None = None,
    *,
    end: bool = False,
) -> TextTokenizer:
    """Learn a vocabulary from texts, which are gone through once and not kept.

    Args:
        texts: documents, or pieces of one. A single string is one text.
        kind: "characters", "words" or "bpe".
        vocab_size: for words, how many to keep, the most frequent first (None: all of them). For
            BPE, how many tokens there should be (None: 2,048); there are fewer if the text gives no
            more, and never fewer than the 256 bytes. Characters are all kept, so None there.
        end: whether to have a token, id 0, for the end of a document. It is for a model that is
            to tell documents apart, and that `generate` should stop at.

    Returns:
        The tokenizer.

    Raises:
        ValueError: if the kind is unknown, the size does not go with it, or there is no text.
        ImportError: for words and BPE, if `tokenizers` is not installed.
    """
    check_kind(kind)
    check_vocab_size(kind, vocab_size, end)
    special = [END] if end else []
    texts = some_text([texts] if isinstance(texts, str) else texts)
    if kind == "characters":
        characters: set[str] = set()
        for text in texts:
            characters.update(text)
        return TextTokenizer(kind, special + sorted(characters))
    train = train_bpe if kind == "bpe" else train_words
    return train(texts, vocab_size, special)


def some_text(texts: Iterable[str]) -> Iterator[str]:
    """The texts that are not empty, as they come.

    Raises:
        ValueError: if there is none.
    """
    texts = filter(None, texts)
    first = next(texts, None)
    if first is None:
        raise ValueError("There is no text to learn a vocabulary from: give some.")
    return chain([first], texts)


def train_words(texts: Iterable[str], size: int | None, special: list[str]) -> TextTokenizer:
    """The most frequent words; `<unk>` stands for the others."""
    library = from_text_extra("tokenizers", "Words and BPE")
    tokenizer = library.Tokenizer(library.models.WordLevel(unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizer("words")
    trainer = library.trainers.WordLevelTrainer(
        vocab_size=size or 2**31, special_tokens=[*special, UNKNOWN], show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return TextTokenizer("words", in_order(tokenizer.get_vocab()))


def train_bpe(texts: Iterable[str], size: int | None, special: list[str]) -> TextTokenizer:
    """Bytes, and the merges of the most frequent pairs."""
    library = from_text_extra("tokenizers", "Words and BPE")
    tokenizer = library.Tokenizer(library.models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer("bpe")
    trainer = library.trainers.BpeTrainer(
        vocab_size=size or BPE_SIZE,
        initial_alphabet=library.pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=special,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return TextTokenizer("bpe", in_order(model["vocab"]), model["merges"])


# --- The parts that words and BPE are made of --------------------------------------------------


def pre_tokenizer(kind: Kind) -> Any:
    """The library's part that cuts a text into words (of characters, or of bytes for BPE)."""
    library = from_text_extra("tokenizers", "Words and BPE")
    if kind == "bpe":
        return library.pre_tokenizers.ByteLevel(add_prefix_space=False)
    return library.pre_tokenizers.Split(library.Regex(WORDS), "isolated")


def byte_alphabet() -> dict[str, int]:
    """The byte that each sign of a byte-level token stands for.

    GPT-2 writes a byte that prints as its Latin-1 character, and the others, in order, as the
    characters from number 256 on.
    """
    others = [b for b in range(256) if not (33 <= b <= 126 or 161 <= b <= 172 or 174 <= b)]
    signs = {chr(256 + n): b for n, b in enumerate(others)}
    return signs | {chr(b): b for b in range(256) if b not in others}


def in_order(ids: Mapping[str, int]) -> list[str]:
    """The tokens of a vocabulary, in the order of their ids."""
    return sorted(ids, key=ids.__getitem__)


def check_kind(kind: str) -> None:
    """Refuse a kind that there is not.

    Raises:
        ValueError: naming those there are.
    """
    if kind not in get_args(Kind):
        raise ValueError(f"kind must be one of {', '.join(get_args(Kind))}, not {kind!r}.")


def check_vocab_size(kind: Kind, size: int | None, end: bool) -> None:
    """Refuse a vocabulary size that the kind cannot have.

    Raises:
        ValueError: saying which it can.
    """
    if size is None:
        return
    if kind == "characters":
        raise ValueError("vocab_size is for words and BPE: every character of the text is kept.")
    least = (256 if kind == "bpe" else 2) + end
    if size < least:
        what = "a token for each byte" if kind == "bpe" else f"a word beside {UNKNOWN}"
        what += f" and one for {END}" if end else ""
        raise ValueError(f"vocab_size must be at least {least} ({what}), not {size}.")


def unknown_character(character: str, line: int, column: int) -> str:
    """The sentence about a character that has no id."""
    return (
        f"Line {line}, column {column} has {character!r} (U+{ord(character):04X}), a character "
        "that the tokenizer was not trained on: leave it out, or use a BPE tokenizer, which takes "
        "any."
    )
