"""What a recipe says of its data, and the data made ready: rows of tokens and their tokenizer."""

import json
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from slp_transformer.guitar import TabTokenizer, prepare_tabs, read_tabs
from slp_transformer.guitar.corpus import as_tensor
from slp_transformer.matrices import check_size
from slp_transformer.shapes import Int, Tensor
from slp_transformer.text import TextTokenizer, prepare
from slp_transformer.text.preparing import TOKENIZER, reopen
from slp_transformer.text.tokenizer import Kind as TokenKind
from slp_transformer.token_store import TokenStore

Kind = Literal["text", "guitar"]
Tokenizer = TextTokenizer | TabTokenizer
OTHER = "other"  # folder of the tokens of another source that is held out
Stream = Int[Tensor, "tokens"] | TokenStore


@dataclass(frozen=True)
class DataSettings:
    """What a model learns from.

    Attributes:
        kind: "text", or "guitar" for ASCII tabs.
        source: a file, a folder of .txt files, or the name of a corpus; for guitar a file or folder
            of ASCII tabs, the practice corpus if None.
        held_out: the share of the source that is measured on and not learned from (the end of a
            text, random pieces of a folder of tabs), or another source for that.
        tokenizer: what a token of text is: "characters", "words", or "bpe" for pieces of words.
        vocab_size: how many words or pieces there are at the most; None leaves it to the text.
    """

    kind: Kind = "text"
    source: str | None = None
    held_out: float | str = 0.1
    tokenizer: TokenKind = "characters"
    vocab_size: int | None = None

    def __post_init__(self):
        """Refuse what no data can be made from.

        Raises:
            ValueError: naming the setting, what it was and what would do.
        """
        if self.kind not in get_args(Kind):
            raise ValueError(f'kind must be "text" or "guitar", not {self.kind!r}.')
        if isinstance(self.held_out, float) and not 0 < self.held_out < 1:
            raise ValueError(
                f"held_out must be a share between 0 and 1, or another source, not {self.held_out}."
            )
        if self.vocab_size is not None:
            check_size(vocab_size=self.vocab_size)

    def seen_from(self, folder: Path) -> "DataSettings":
        """The same, with a source in that folder named as seen from it, so that both can move."""
        inside = self.source is not None and Path(self.source).parent == folder.resolve()
        return replace(self, source=Path(self.source).name) if inside else self


@dataclass(frozen=True)
class Data:
    """Data made ready.

    Attributes:
        tokenizer: what the tokens mean.
        learned: tokens to learn from.
        held_out: tokens to measure on.
        problems: what could not be read, a sentence each.
    """

    tokenizer: Tokenizer
    learned: Stream
    held_out: Int[Tensor, "unseen"] | TokenStore
    problems: list[str] = field(default_factory=list)

    def check_windows(self, N: int, share: float | str) -> None:
        """Refuse data that does not fill a window, both to learn from and held out.

        Args:
            N: tokens in a window.
            share: what was asked to be held out.

        Raises:
            ValueError: saying how many tokens there are and how many are needed.
        """
        if min(len(self.learned), len(self.held_out)) > N:
            return
        needed = f"and a window of {N} and its next token need {N + 1} in each part"
        if isinstance(share, float):
            total = math.ceil((N + 1) / min(share, 1 - share)) + 1
            needed += f", so about {total:,} in all"
        raise ValueError(
            f"There is too little to train on: {len(self.learned):,} tokens to learn from and "
            f"{len(self.held_out):,} held out, {needed}: give more text, or choose a shorter "
            "context_length."
        )


def prepare_data(settings: DataSettings, folder: Path | None = None) -> Data:
    """Read a source, hold some of it out and turn both parts into tokens.

    Args:
        settings: what to read, and how.
        folder: where the tokens of a text are kept, so that they need no memory; None for memory.

    Raises:
        ValueError: if there is no source, or it cannot be read.
        ImportError: if the kind of tokens needs a library that is not installed.
    """
    if settings.kind == "guitar":
        tabs = prepare_tabs(settings.source, settings.held_out)
        problems = [f"skipped: {problem}" for problem in tabs.problems]
        return Data(tabs.tokenizer, tabs.learned, tabs.held_out, problems)
    if settings.source is None:
        raise ValueError("A text has to come from somewhere: name a file, a folder or a corpus.")
    share = settings.held_out if isinstance(settings.held_out, float) else 0.0
    text = prepare(settings.source, settings.tokenizer, settings.vocab_size, share, folder)
    if not share:
        other = None if folder is None else folder / OTHER
        unseen = prepare(settings.held_out, held_out=0.0, folder=other, tokenizer=text.tokenizer)
    return Data(text.tokenizer, text.learned, text.held_out if share else unseen.learned)


def reopen_data(settings: DataSettings, folder: Path) -> Data:
    """The data that `prepare_data` made, from the tokens kept in a folder if there are any.

    Raises:
        ValueError: as `prepare_data`.
    """
    if settings.kind == "guitar" or not (folder / TOKENIZER).exists():
        return prepare_data(settings, folder)
    text = reopen(folder)
    held_out = text.held_out
    if held_out is None:
        held_out = reopen(folder / OTHER).learned
    return Data(text.tokenizer, text.learned, held_out)


def encode_source(source: str, tokenizer: Tokenizer) -> Stream:
    """All of a source as tokens, for a model that is there already.

    Raises:
        ValueError: if there is no such source, it cannot be read, or has what has no token.
    """
    if isinstance(tokenizer, TextTokenizer):
        return prepare(source, held_out=0.0, tokenizer=tokenizer).learned
    return as_tensor(read_tabs(source)[0], tokenizer)


# --- Tokenizers --------------------------------------------------------------------------------


def tokenizer_to_json(tokenizer: Tokenizer) -> Any:
    """What a checkpoint keeps of a tokenizer."""
    content = tokenizer.to_json()
    return json.loads(content) if isinstance(content, str) else content


def tokenizer_from_json(content: Any) -> Tokenizer:
    """The tokenizer that a checkpoint has kept.

    Raises:
        ValueError: if it is of no kind that this package knows.
    """
    if isinstance(content, dict) and content.get("kind") == "tab tokens":
        return TabTokenizer.from_json(json.dumps(content))
    return TextTokenizer.from_json(content)
