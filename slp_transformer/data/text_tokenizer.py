"""Text as token ids and back: characters, words or BPE, learned here from the reader's own text.

- **characters**: every character is a token. No library is needed, sequences are long, and a
  character that the tokenizer never saw cannot be written: it is refused, by name and place.
- **words**: a word with the space before it, a punctuation mark or a line end is a token, so that
  the text comes back with all its spaces. A word outside the vocabulary becomes ``<unk>``.
- **bpe**: byte-pair encoding, on bytes as GPT-2 has it (Sennrich et al. 2016, arXiv 1508.07909).
  Any text can be written, and comes back as it was.

Words and BPE are counted, merged and encoded by Hugging Face's `tokenizers`, which comes with the
`text` extra. Nothing here needs PyTorch.
"""

import codecs
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import chain
from typing import Any, Literal, NamedTuple, SupportsInt

from slp_transformer._internal.choices import check_in_choices
from slp_transformer._internal.extras import import_extra
from slp_transformer._internal.json_files import validate_json

TokenType = Literal["characters", "words", "bpe"]
DEFAULT_VOCAB_SIZES = {"words": 30_000, "bpe": 2_048}  # tokens, if nobody says how many
END_TOKEN, UNKNOWN_TOKEN = "<|end|>", "<unk>"
# The first tokens of each language in pairs of sentences.
PAD, UNK, SOS, EOS = SENTENCE_TOKENS = ("[PAD]", "[UNK]", "[SOS]", "[EOS]")
SILENT_TOKENS = {END_TOKEN, PAD, SOS, EOS}
# Keeps words with an apostrophe in one piece.
WORD_PATTERN = r" ?\w+(?:'\w+)*| ?[^\w\s]|\s"
# GPT-2's, but that vowel signs and tone marks, as Thai or Telugu write them, stay in their word.
BPE_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?[\p{L}\p{M}]+| ?\p{N}+| ?[^\s\p{L}\p{M}\p{N}]+|\s+(?!\S)|\s+"
LONG_RUN = re.compile(r"\S{1024}|\s{1024}")


class TextSize(NamedTuple):
    """The size of a text that is given as tokens.

    Attributes:
        characters: of the text.
        bytes: of it in UTF-8.
        unknown: tokens that stand for unknown words, whose own characters nobody knows.
    """

    characters: int
    bytes: int
    unknown: int = 0


@dataclass
class TextTokenizer:
    """Turns text into token ids and back; `train_tokenizer` makes one.

    The fields are the content of tokenizer.json.

    Attributes:
        token_type: "characters", "words" or "bpe".
        vocabulary: the tokens, in the order of their ids.
        merges: for BPE, the pairs of tokens that are joined, the most frequent first.
        ids: the id of each token.
    """

    token_type: TokenType
    vocabulary: list[str]
    merges: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Refuse a vocabulary that no training gave.

        Raises:
            ValueError: if the token type is unknown, or the vocabulary is empty, has a token twice,
                or one that no text of this type can have.
        """
        check_in_choices(TokenType, token_type=self.token_type)
        self.ids: dict[str, int] = {token: i for i, token in enumerate(self.vocabulary)}
        if len(self.ids) != len(self.vocabulary):
            raise ValueError("The vocabulary has a token twice: every token needs one id.")
        if not self.ids:
            raise ValueError("The vocabulary is empty: a tokenizer needs a token.")
        alphabet = byte_by_character().keys()
        for token in self.ids.keys() - SILENT_TOKENS - {UNK}:
            if self.token_type == "characters" and len(token) != 1:
                raise ValueError(
                    f"The vocabulary has {token[:30]!r}, which is no single character."
                )
            if self.token_type == "bpe" and not alphabet >= set(token):
                raise ValueError(f"The vocabulary has {token[:30]!r}, which is no row of bytes.")
        if self.token_type == "words" and not {UNKNOWN_TOKEN, UNK} & self.ids.keys():
            raise ValueError(
                f"The vocabulary lacks {UNKNOWN_TOKEN}, which stands for every other word."
            )
        for left, right in self.merges:
            if not {left, right, left + right} <= self.ids.keys():
                raise ValueError(f"The merge of {left!r} and {right!r} has no token.")

    @property
    def vocab_size(self) -> int:
        """|V|: ids go from 0 to one less."""
        return len(self.vocabulary)

    @property
    def end_id(self) -> int | None:
        """Return the id of the token after each document; None if the tokenizer has none."""
        return self.ids.get(END_TOKEN)

    @property
    def unknown_id(self) -> int | None:
        """Return the id of tokens outside the vocabulary; None if they are refused or impossible.

        It is "<unk>" for words, and "[UNK]" for any kind that was trained with it.
        """
        words = self.token_type == "words"
        return self.ids.get(UNK, self.ids.get(UNKNOWN_TOKEN) if words else None)

    def encode(self, text: str, first_line: int = 1) -> list[int]:
        """Return the ids of a text.

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
        if self.token_type != "characters":
            return self.backend.encode(text).ids
        if (unknown := self.unknown_id) is not None:
            return [self.ids.get(character, unknown) for character in text]
        try:
            return [self.ids[character] for character in text]
        except KeyError as error:
            place = text.index(error.args[0])
            line = first_line + text.count("\n", 0, place)
            column = place - (text.rfind("\n", 0, place) + 1) + 1
            raise ValueError(
                f"Line {line}, column {column} has {text[place]!r} (U+{ord(text[place]):04X}), a "
                "character that the tokenizer was not trained on: leave it out, or use a BPE "
                "tokenizer, which takes any."
            ) from None

    def decode(self, ids: Iterable[SupportsInt]) -> str:
        """Return the text of a row of ids, which may be a tensor, without end tokens.

        Bytes that are not UTF-8, which a BPE model may generate, become "�".

        Raises:
            ValueError: if an id is outside the vocabulary.
        """
        return b"".join(self.token_bytes(int(i)) for i in ids).decode("utf-8", errors="replace")

    def stream_decoder(self) -> "StreamDecoder":
        """Return a decoder that takes one id at a time, to print text while it is generated."""
        return StreamDecoder(self)

    def token_bytes(self, token_id: int) -> bytes:
        """Return the UTF-8 bytes of one id; for BPE they may be a part of a character.

        Raises:
            ValueError: if the id is outside the vocabulary.
        """
        if not 0 <= token_id < self.vocab_size:
            raise ValueError(
                f"Token {token_id} is unknown: ids go from 0 to {self.vocab_size - 1}."
            )
        return self.vocabulary_bytes[token_id]

    def measure_text(self, pieces: Iterable[Sequence[int]]) -> TextSize:
        """Return the size of the text of a row of ids, which comes in pieces.

        Raises:
            ValueError: if an id is outside the vocabulary.
        """
        num_bytes, unknown, decoder = 0, 0, self.stream_decoder().decoder
        characters = 0
        for ids in pieces:
            unknown += list[Any](ids).count(self.unknown_id)  # none, where it is None
            content = b"".join(map(self.token_bytes, ids))
            num_bytes += len(content)
            characters += len(decoder.decode(content))
        return TextSize(characters + len(decoder.decode(b"", final=True)), num_bytes, unknown)

    @cached_property
    def vocabulary_bytes(self) -> list[bytes]:
        """The bytes of each id."""
        table = byte_by_character()

        def encode(token: str) -> bytes:
            if token in SILENT_TOKENS:
                return b""
            if self.token_type != "bpe" or token == UNK:
                return token.encode()
            return bytes(table[character] for character in token)

        return [encode(token) for token in self.vocabulary]

    @cached_property
    def backend(self) -> Any:
        """The `tokenizers.Tokenizer` that encodes words or BPE.

        Its vocabulary is plain: no token is special to it, so that a text with "<|end|>" in it
        cannot pretend to be two documents.
        """
        library = import_extra("tokenizers", "Words and BPE")
        if self.token_type == "bpe":
            tokenizer = library.Tokenizer(library.models.BPE(self.ids, self.merges))
        else:
            unknown = UNK if UNK in self.ids else UNKNOWN_TOKEN
            tokenizer = library.Tokenizer(library.models.WordLevel(self.ids, unk_token=unknown))
        tokenizer.pre_tokenizer = build_pre_tokenizer(self.token_type)
        return tokenizer

    def to_json(self) -> dict[str, Any]:
        """Return the content of tokenizer.json, which `from_json` takes."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "TextTokenizer":
        """Create the tokenizer from what `to_json` returned.

        Raises:
            ValueError: if it describes something else.
        """
        return validate_json(cls, json.dumps(content).encode(), "This text tokenizer is damaged")

    def __repr__(self) -> str:
        """Return the type and the size."""
        return f"TextTokenizer({self.token_type!r}, vocab_size={self.vocab_size})"


class StreamDecoder:
    """Decodes ids one by one, holding back a character until all its bytes are there.

    The `DecodeStream` of tokenizers has no way to flush an unfinished last character, and knows no
    tokenizers of characters.
    """

    def __init__(self, tokenizer: TextTokenizer):
        """Begin a text."""
        self.tokenizer = tokenizer
        self.decoder: codecs.IncrementalDecoder = codecs.getincrementaldecoder("utf-8")(
            errors="replace"
        )

    def decode_next(self, token_id: int) -> str:
        """Return the text that can be printed after this id; "" while a character is unfinished.

        Raises:
            ValueError: if the id is outside the vocabulary.
        """
        return self.decoder.decode(self.tokenizer.token_bytes(token_id))

    def decode_prompt(self, ids: Sequence[int]) -> str:
        """Return the text that can be printed after these ids.

        Raises:
            ValueError: as `decode_next`.
        """
        return "".join(map(self.decode_next, ids))

    def flush(self) -> str:
        """Return what is left: "�" if the last character is unfinished, else ""."""
        return self.decoder.decode(b"", final=True)


# --- The parts that words and BPE are made of --------------------------------------------------


def build_pre_tokenizer(token_type: TokenType) -> Any:
    """Return the pre-tokenizer, which cuts text into words (of characters, or of bytes for BPE)."""
    library = import_extra("tokenizers", "Words and BPE")
    pattern = library.Regex(BPE_PATTERN if token_type == "bpe" else WORD_PATTERN)
    words = library.pre_tokenizers.Split(pattern, "isolated")
    if token_type == "words":
        return words
    to_bytes = library.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return library.pre_tokenizers.Sequence([words, to_bytes])


def byte_by_character() -> dict[str, int]:
    """Return the byte for each character of a byte-level token.

    GPT-2 writes a byte that prints as its Latin-1 character, and the others, in order, as the
    characters from number 256 on.
    """
    others = [b for b in range(256) if not (33 <= b <= 126 or 161 <= b <= 172 or 174 <= b)]
    signs = {chr(256 + n): b for n, b in enumerate(others)}
    return signs | {chr(b): b for b in range(256) if b not in others}


# --- Training ----------------------------------------------------------------------------------


def train_tokenizer(
    texts: Iterable[str],
    token_type: TokenType = "characters",
    vocab_size: int | None = None,
    *,
    end_token: bool = False,
    special_tokens: Sequence[str] = (),
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

    Returns:
        The tokenizer.

    Raises:
        ValueError: if the token type is unknown, the size does not go with it, or there is no text.
        ImportError: for words and BPE, if `tokenizers` is not installed.
    """
    special_tokens = [*special_tokens, *([END_TOKEN] if end_token else [])]
    check_vocab_size(token_type, vocab_size, special_tokens)
    texts = filter(None, [texts] if isinstance(texts, str) else texts)
    first = next(texts, None)
    if first is None:
        raise ValueError("There is no text to learn a vocabulary from: give some.")
    texts = chain([first], texts)
    if token_type == "characters":
        characters = set(chain.from_iterable(texts))
        return TextTokenizer(token_type, special_tokens + sorted(characters))
    library = import_extra("tokenizers", "Words and BPE")
    options = {
        "vocab_size": vocab_size or DEFAULT_VOCAB_SIZES[token_type],
        "special_tokens": special_tokens,
        "show_progress": False,
    }
    if token_type == "bpe":
        tokenizer = library.Tokenizer(library.models.BPE())
        alphabet = library.pre_tokenizers.ByteLevel.alphabet()
        trainer = library.trainers.BpeTrainer(initial_alphabet=alphabet, **options)
        texts = cut_long_words(texts)
    else:
        if UNK not in special_tokens:
            special_tokens.append(UNKNOWN_TOKEN)
        tokenizer = library.Tokenizer(library.models.WordLevel())
        trainer = library.trainers.WordLevelTrainer(**options)
    tokenizer.pre_tokenizer = build_pre_tokenizer(token_type)
    tokenizer.train_from_iterator(texts, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    vocabulary = sorted(model["vocab"], key=model["vocab"].get)
    merges = [(left, right) for left, right in model.get("merges", ())]
    return TextTokenizer(token_type, vocabulary, merges)


def cut_long_words(texts: Iterable[str]) -> Iterator[str]:
    """Yield texts in pieces whose words and spaces are short: to learn pairs takes their square.

    A hundred thousand line breaks in a row would take ten seconds. Texts of ordinary words are not
    cut.
    """
    for text in texts:
        start = 0
        for run in LONG_RUN.finditer(text):
            yield text[start : run.end()]
            start = run.end()
        yield text[start:]


def check_vocab_size(
    token_type: TokenType, vocab_size: int | None, special_tokens: Sequence[str] = ()
) -> None:
    """Refuse a token type that does not exist, and a vocabulary size that it cannot have.

    Raises:
        ValueError: naming those that there are, or the least size.
    """
    check_in_choices(TokenType, token_type=token_type)
    if vocab_size is None:
        return
    if token_type == "characters":
        raise ValueError("vocab_size is for words and BPE: every character of the text is kept.")
    bpe, names = token_type == "bpe", list(special_tokens)
    if not bpe and UNK not in names:
        names.append(UNKNOWN_TOKEN)
    least = (256 if bpe else 1) + len(names)
    if vocab_size < least:
        parts = ", ".join(["a token for each byte" if bpe else "a word", *names])
        raise ValueError(f"vocab_size must be at least {least} ({parts}), not {vocab_size}.")
