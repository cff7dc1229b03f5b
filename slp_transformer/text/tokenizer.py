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
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, get_args

from slp_transformer.shapes import Int, Tensor
from slp_transformer.storage import from_text_extra

Kind = Literal["characters", "words", "bpe"]

FORMAT = "slp-transformer text tokenizer 1"
END, UNKNOWN = "<|end|>", "<unk>"
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
        """The token after each document; None if the tokenizer was trained without."""
        return self.ids.get(END)

    def encode(self, text: str, first_line: int = 1) -> list[int]:
        """The ids of a text.

        No text gives the end token's id: the token is put after documents, and "<|end|>" in one is
        text like any other.

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
        table = byte_alphabet()

        def says(token: str) -> bytes:
            if token == END:
                return b""
            return bytes(map(table.get, token)) if self.kind == "bpe" else token.encode()

        return [says(token) for token in self.vocabulary]

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
        if self.kind == "bpe":
            content["merges"] = [list(pair) for pair in self.merges]
        return content

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "TextTokenizer":
        """The tokenizer that `to_json` described.

        Raises:
            ValueError: if it describes something else.
        """
        if not isinstance(content, Mapping) or content.get("format") != FORMAT:
            raise ValueError("This is no text tokenizer that to_json wrote.")
        missing = {"kind", "vocabulary"} - content.keys()
        if missing:
            raise ValueError(f"This text tokenizer is damaged: it lacks {sorted(missing)}.")
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


def check_kind(kind: str) -> None:
    """Refuse a kind that there is not.

    Raises:
        ValueError: naming those there are.
    """
    if kind not in get_args(Kind):
        raise ValueError(f"kind must be one of {', '.join(get_args(Kind))}, not {kind!r}.")


def unknown_character(character: str, line: int, column: int) -> str:
    """The sentence about a character that has no id."""
    return (
        f"Line {line}, column {column} has {character!r} (U+{ord(character):04X}), a character "
        "that the tokenizer was not trained on: leave it out, or use a BPE tokenizer, which takes "
        "any."
    )
