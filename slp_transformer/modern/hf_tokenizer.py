"""The tokenizers of others, as they publish them: read and run by Hugging Face's `tokenizers`."""

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from slp_transformer._internal.atomic_write import write_file
from slp_transformer._internal.bounds import MAX_JSON_BYTES, MAX_TOKENIZER_PARTS
from slp_transformer._internal.extras import import_extra
from slp_transformer._internal.json_files import read_bounded, read_json, validate_json
from slp_transformer._internal.shape_types import Int, Tensor
from slp_transformer.data.text_tokenizer import TextSize
from slp_transformer.modern.bounded_tokenizer import BoundedTokenizer
from slp_transformer.modern.config import ModernConfig

TOKENIZER_FILE = "tokenizer.json"
TOKENIZER_CONFIG_FILE = "tokenizer_config.json"
SIDE_FILES = (TOKENIZER_CONFIG_FILE, "special_tokens_map.json", "chat_template.jinja")
"""What others keep beside tokenizer.json for `transformers`: handed on as it is."""
CONTEXT_TOKENS = 64  # before a token that what it stands for may depend on
PUBLISHED = "published"  # as tokenizer.json of a checkpoint says what it holds


@contextlib.contextmanager
def translate_library_errors(message: str) -> Iterator[None]:
    """Turn what the library raises into one sentence.

    Raises:
        ValueError: in its place.
    """
    try:
        yield
    except Exception as error:
        raise ValueError(f"{message}: {error}.") from None


class PretrainedTokenizer:
    """Turns text into a published model's ids and back; `load_tokenizer` makes one.

    Attributes:
        library: runs the `tokenizers.Tokenizer` in a process of its own, under limits.
        begin_id: the token that texts begin with, if there is one.
        end_ids: tokens that end a text.
        side_files: the content of those in `SIDE_FILES` that came with it, by name.
    """

    def __init__(
        self,
        library: Any,
        begin_id: int | None = None,
        end_ids: Iterable[int] = (),
        side_files: Mapping[str, str] | None = None,
    ):
        """Wrap a `tokenizers.Tokenizer`."""
        self.library: BoundedTokenizer = (
            library
            if isinstance(library, BoundedTokenizer)
            else BoundedTokenizer(
                library.to_str(), split_special_tokens=library.encode_special_tokens
            )
        )
        self.begin_id: int | None = begin_id
        self.side_files: dict[str, str] = dict(side_files or {})
        self.end_ids: tuple[int, ...] = tuple(end_ids)

    @property
    def vocab_size(self) -> int:
        """Return the number of ids; a model's |V| may be larger, to be a rounder number."""
        return self.library.vocab_size

    @property
    def end_id(self) -> int | None:
        """Return the first token that ends a text; None if there is none."""
        return self.end_ids[0] if self.end_ids else None

    def encode(self, text: str, first_line: int = 1, *, whole: bool = False) -> list[int]:
        """Return the ids of a text.

        Args:
            text: any text.
            first_line: not used: any text can be encoded.
            whole: whether it is a text of its own, with what the model expects before it and after
                it (BERT's [CLS] and [SEP], Llama's begin), rather than a part of one.

        Raises:
            ValueError: if the library cannot, because its parts do not fit each other, or it takes
                too much time or memory, or makes too many tokens.
        """
        with translate_library_errors("The tokenizer cannot encode this text"):
            return self.library.encode(text, whole)

    def iter_whole_ids(self, pieces: Iterable[str]) -> Iterator[int]:
        """Yield the ids of a text of its own that comes in pieces, as of `iter_file_text`.

        What the model expects before a text and after it comes once. A tokenizer that puts a space
        before whatever it is given puts one before each piece.

        Raises:
            ValueError: as `encode`.
        """
        pieces = iter(pieces)
        first = next(pieces, "")
        whole, own = self.encode(first, whole=True), self.encode(first)
        places = range(len(whole) - len(own) + 1)
        begin = next((i for i in places if whole[i : i + len(own)] == own), 0)
        yield from whole[: begin + len(own)]
        for piece in pieces:
            yield from self.encode(piece)
        yield from whole[begin + len(own) :]

    def decode(self, ids: Iterable[int] | Int[Tensor, "N"]) -> str:
        """Return the text of a row of ids.

        Tokens that begin or end texts say nothing, nor do ids beyond the vocabulary, which a model
        of a rounder number may write.

        Raises:
            ValueError: if the library cannot, or it takes too much time or memory.
        """
        with translate_library_errors("The tokenizer cannot decode these tokens"):
            return self.library.decode(ids.tolist() if isinstance(ids, Tensor) else list(ids))

    def stream_decoder(self) -> "StreamingDecoder":
        """Return a decoder that is given one id at a time, to print a text as it is written."""
        return StreamingDecoder(self)

    @property
    def unknown_id(self) -> None:
        """Return None: what stands for unknown text, if anything does, is the library's matter."""

    @property
    def begin_ids(self) -> list[int]:
        """Return the tokens that a model expects before a text, as Llama's begin."""
        whole = self.encode("", whole=True)
        return whole[:1] if whole[:1] == [self.begin_id] else []

    def measure_text(self, pieces: Iterable[Sequence[int]]) -> TextSize:
        """Return the size of the text of a row of ids, which comes in pieces.

        A decoder may look at the tokens before, as for a space or the bytes of a character: each
        piece is decoded after the last tokens of the piece before, and these alone are taken off.

        Raises:
            ValueError: as `decode`.
        """
        characters, num_bytes, before = 0, 0, list[int]()
        for ids in pieces:
            after, known = self.decode([*before, *ids]), self.decode(before)
            characters += len(after) - len(known)
            num_bytes += len(after.encode()) - len(known.encode())
            before = [*before, *ids][-CONTEXT_TOKENS:]
        return TextSize(characters, num_bytes)

    def save(self, folder: Path) -> None:
        """Write tokenizer.json and the files beside it to a folder, each whole or not at all."""
        write_file(folder / TOKENIZER_FILE, self.library.to_str())
        for name, content in self.side_files.items():
            write_file(folder / name, content)

    def to_json(self) -> dict[str, Any]:
        """Return the tokenizer as a checkpoint keeps it; `from_json` takes it."""
        return {
            "kind": PUBLISHED,
            "tokenizer": json.loads(self.library.to_str()),
            "begin_id": self.begin_id,
            "end_ids": list(self.end_ids),
            "side_files": self.side_files,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "PretrainedTokenizer":
        """Create the tokenizer from what `to_json` returned.

        Raises:
            ValueError: if it describes something else.
        """
        text = json.dumps(content).encode()
        saved = validate_json(SavedTokenizer, text, "This published tokenizer is damaged")
        return make_tokenizer(
            saved.tokenizer,
            "This published tokenizer",
            saved.begin_id,
            saved.end_ids,
            saved.side_files,
        )

    @property
    def kind(self) -> str:
        """Return the library's name for it: BPE, WordPiece, Unigram or WordLevel."""
        return self.library.kind

    def __repr__(self) -> str:
        """Return the kind and the size."""
        return f"PretrainedTokenizer({self.kind}, vocab_size={self.vocab_size})"


@dataclass(frozen=True)
class SavedTokenizer:
    """What `PretrainedTokenizer.to_json` returns."""

    kind: Literal["published"]
    tokenizer: dict[str, Any]
    begin_id: int | None
    end_ids: list[int]
    side_files: dict[str, str]

    def __post_init__(self) -> None:
        """Refuse files of other names, which nothing here may write.

        Raises:
            ValueError: naming the first.
        """
        if other := sorted(self.side_files.keys() - set(SIDE_FILES)):
            raise ValueError(f"{other[0]} is none of {', '.join(SIDE_FILES)}")


class StreamingDecoder:
    """Decodes ids one by one, holding back a character until all its bytes are there."""

    def __init__(self, tokenizer: PretrainedTokenizer):
        """Begin a text."""
        self.tokenizer: PretrainedTokenizer = tokenizer
        self.stream: int = next(tokenizer.library.stream_numbers)
        self.pending_ids: list[int] = []

    def decode_next(self, i: int) -> str:
        """Return the text that this id completes; "" while a character is unfinished."""
        return self.decode_prompt([i])

    def decode_prompt(self, ids: Sequence[int]) -> str:
        """Return the text that ids complete, which are decoded at once.

        Raises:
            ValueError: as `PretrainedTokenizer.decode`.
        """
        with translate_library_errors("The tokenizer cannot decode these tokens"):
            text, pending = self.tokenizer.library.decode_next(self.stream, ids)
        together = [*self.pending_ids, *ids]
        self.pending_ids = together[len(together) - pending :]
        return text

    def flush(self) -> str:
        """Return the rest: "�" if the last character was never finished, else ""."""
        return self.tokenizer.decode(self.pending_ids) if self.pending_ids else ""


def check_number_of_parts(content: Mapping[str, Any], path: str | Path) -> None:
    """Refuse more parts around a vocabulary than any tokenizer has.

    A hundred thousand take the library seconds to load, and Windows has no limits for a process
    that would end it.

    Raises:
        ValueError: naming the bound.
    """
    names = ("normalizer", "pre_tokenizer", "post_processor", "decoder")
    if json.dumps([content.get(name) for name in names]).count("{") > MAX_TOKENIZER_PARTS:
        raise ValueError(
            f"{path} has more than {MAX_TOKENIZER_PARTS:,} parts beside its vocabulary: it is no "
            "tokenizer that can be read."
        )


def make_tokenizer(
    content: Any,
    where: str | Path,
    begin_id: int | None,
    end_ids: Iterable[int],
    side_files: Mapping[str, str],
) -> PretrainedTokenizer:
    """Make a tokenizer from the content of a published tokenizer.json.

    Raises:
        ValueError: if the library cannot, naming where the content is from.
        ImportError: if `tokenizers` is not installed.
    """
    import_extra("tokenizers", "Tokenizers of others")
    if isinstance(content, dict):  # texts are cut and padded here, by the model's own window
        content |= {"truncation": None, "padding": None}
        check_number_of_parts(content, where)
    try:
        settings = json.loads(side_files.get(TOKENIZER_CONFIG_FILE, "{}"))
        split = settings.get("split_special_tokens") is True
    except (ValueError, RecursionError, AttributeError):
        raise ValueError(f"{where}: {TOKENIZER_CONFIG_FILE} beside it is no JSON object.") from None
    with translate_library_errors(f"{where} is no tokenizer that can be read"):
        tokenizer = BoundedTokenizer(json.dumps(content), split_special_tokens=split)
    return PretrainedTokenizer(tokenizer, begin_id, end_ids, side_files)


def read_side_files(folder: Path) -> dict[str, str]:
    """Return what is beside tokenizer.json, to be handed on.

    Raises:
        ValueError: if a file is no text, or far too large.
    """
    found = {}
    for path in filter(Path.exists, (folder / name for name in SIDE_FILES)):
        try:
            found[path.name] = read_bounded(path).decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is not UTF-8: {error}.") from None
    return found


def load_tokenizer(folder: str | Path, config: ModernConfig) -> PretrainedTokenizer:
    """Read the tokenizer of a published model.

    Args:
        folder: its folder, with tokenizer.json.
        config: the model's configuration, which names the tokens at which texts begin and end.

    Raises:
        ValueError: if there is no tokenizer.json that can be read, or it has ids that the model
            doesn't.
        ImportError: if `tokenizers` is not installed.
    """
    path = Path(folder) / TOKENIZER_FILE
    if not path.is_file():
        raise ValueError(
            f"{folder} has no {TOKENIZER_FILE}: without it the model's tokens have no names. Most "
            "models are published with one, also those that have a slow tokenizer of their own."
        )
    files = read_side_files(Path(folder))
    content = read_json(path, MAX_JSON_BYTES)
    tokenizer = make_tokenizer(content, path, config.begin_id, config.end_ids, files)
    largest = tokenizer.library.largest_id
    if largest >= config.vocab_size:
        raise ValueError(
            f"{path} has token {largest}, but the model has only {config.vocab_size:,}: they do "
            "not belong together."
        )
    return tokenizer
