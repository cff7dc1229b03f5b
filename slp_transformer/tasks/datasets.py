"""The data of a recipe made ready: rows of tokens or pairs of them, and their tokenizer."""

import json
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from slp_transformer._internal.atomic_write import read_json
from slp_transformer._internal.shape_types import Int, Tensor
from slp_transformer.data import (
    EncodedPairs,
    PairCorpus,
    PairTokenizer,
    TextTokenizer,
    load_pairs,
    prepare,
    prepare_pairs,
    reopen_pairs,
)
from slp_transformer.data.batches import BatchSource, PaddedPairs
from slp_transformer.data.bucketing import PairsByLength
from slp_transformer.data.document_windows import PieceWindows
from slp_transformer.data.text_corpus import reopen
from slp_transformer.data.token_file import (
    TOKENIZER_FILE,
    TRAIN_TOKENS_FILE,
    VAL_TOKENS_FILE,
    TokenStore,
    write_token_folder,
)
from slp_transformer.data.token_types import is_pair_tokenizer
from slp_transformer.guitar import TabTokenizer
from slp_transformer.guitar.styles import styles_of
from slp_transformer.guitar.tab_dataset import (
    as_tensor,
    for_tokens,
    name_of,
    read_apart,
    read_source,
)
from slp_transformer.guitar.tab_tokenizer import UNITS
from slp_transformer.tasks.data_settings import DataSettings
from slp_transformer.training.run_folder import Which, checkpoint_folder, load_tokenizer, read_index
from slp_transformer.training.train_config import TrainConfig

Tokenizer = TextTokenizer | TabTokenizer | PairTokenizer
OTHER = "other"  # folder of the tokens of another source that is held out
Stream = Int[Tensor, "tokens"] | TokenStore


@dataclass(frozen=True)
class Data:
    """Data made ready.

    Attributes:
        tokenizer: what the tokens mean.
        learned: tokens to learn from.
        held_out: tokens to measure on.
        problems: what could not be read, a sentence each.
        which: what is held out, a piece each, if it is a share of the source and was just made.
        texts: for translation, the held-out pairs as they were written.
    """

    tokenizer: Tokenizer
    learned: Stream | EncodedPairs
    held_out: Int[Tensor, "unseen"] | TokenStore | EncodedPairs
    problems: list[str] = field(default_factory=list)
    which: list[str] = field(default_factory=list)
    texts: list[tuple[str, str]] = field(default_factory=list)

    def check_windows(self, N: int, share: float | str) -> None:
        """Refuse data that does not fill a window, both to learn from and held out.

        Args:
            N: tokens in a window.
            share: what was asked to be held out.

        Raises:
            ValueError: saying how many tokens there are and how many are needed.
        """
        if self.texts or min(len(self.learned), len(self.held_out)) > N:
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

    def sources(self, settings: TrainConfig, N: int) -> tuple[Any, Any]:
        """What `train` takes: streams as they are, pairs as batches of what the settings say.

        Of tabs in the placed code half of the windows begin with a piece.

        Args:
            settings: how to train.
            N: tokens in a window of a stream.

        Raises:
            ValueError: if a batch has no room for the longest pair.
        """
        if isinstance(self.tokenizer, TabTokenizer) and self.tokenizer.code != "plain":
            return PieceWindows(self.learned, N, self.tokenizer.bos_id), self.held_out
        if not isinstance(self.tokenizer, PairTokenizer):
            return self.learned, self.held_out
        return tuple(batches(p, self.tokenizer, settings) for p in (self.learned, self.held_out))


def batches(pairs: EncodedPairs, tokenizer: PairTokenizer, settings: TrainConfig) -> BatchSource:
    """Pairs as a source of batches.

    Raises:
        ValueError: if a batch has no room for the longest pair.
    """
    special = {n: getattr(tokenizer, n) for n in ("pad_id", "begin_id", "end_id")}
    if settings.batch_tokens is None:
        return PaddedPairs(pairs, **special)
    return PairsByLength(
        pairs, tokens=settings.batch_tokens * settings.gradient_accumulation_steps, **special
    )


def prepare_data(
    settings: DataSettings, folder: Path | None = None, window: int | None = None
) -> Data:
    """Read a source, hold some of it out and turn both parts into tokens.

    Args:
        settings: what to read, and how.
        folder: where the tokens are kept, so that they need no memory, and the run no source any
            more; None for memory.
        window: N, the most tokens that a model reads; pairs have to fit.

    Raises:
        ValueError: if there is no source, or it cannot be read.
        ImportError: if the kind of tokens needs a library that is not installed.
    """
    tokenizer = None if settings.start is None else tokenizer_of(Path(settings.start))
    if settings.kind == "translation":
        return of_pairs(read_corpus(settings, window or 1 << 30, tokenizer, folder))
    if settings.kind == "guitar":
        data = of_tabs(settings, tokenizer)
        return data if folder is None else keep_tokens(data, folder)
    if settings.source is None:
        raise ValueError("A text has to come from somewhere: name a file, a folder or a corpus.")
    share = settings.held_out if isinstance(settings.held_out, float) else 0.0
    how = settings.tokenizer, settings.vocab_size, share, folder, tokenizer
    text = prepare(settings.source, *how)
    if not share:
        other = None if folder is None else folder / OTHER
        unseen = prepare(settings.held_out, held_out=0.0, folder=other, tokenizer=text.tokenizer)
    held_out = text.held_out if share else unseen.learned
    return Data(text.tokenizer, text.learned, held_out, which=text.which)


def of_tabs(settings: DataSettings, tokenizer: TabTokenizer | None) -> Data:
    """Tabs as the data of a recipe.

    Args:
        settings: what to read, and how.
        tokenizer: that of a model that is there already; if None, a new one, which tells the styles
            of the tabs to learn from.

    Raises:
        ValueError: as `slp_transformer.guitar.prepare_tabs`.
    """
    learned, held_out, skipped = read_apart(settings.source, settings.held_out)
    problems = [f"skipped: {problem}" for problem in skipped]
    if tokenizer is None:
        styles, told = styles_of(learned)
        tokenizer = TabTokenizer(units=UNITS, code="placed", styles=styles)
        problems = told + problems
    streams = as_tensor(learned, tokenizer), as_tensor(held_out, tokenizer)
    return Data(tokenizer, *streams, problems, [name_of(tab) for tab in held_out])


def read_corpus(
    settings: DataSettings, window: int, tokenizer: PairTokenizer | None, folder: Path | None
) -> PairCorpus:
    """The pairs that a recipe names, made ready.

    Raises:
        ValueError: if they cannot be read, or too few fit.
    """
    named = settings.source_language, settings.target_language
    pairs, languages = load_pairs(settings.source, settings.target, named)
    unseen: Any = settings.held_out
    if not isinstance(unseen, float):
        unseen, _ = load_pairs(unseen, settings.held_out_target, languages)
    return prepare_pairs(
        pairs,
        languages,
        window,
        held_out=unseen,
        kind=settings.tokenizer,
        vocab_size=settings.vocab_size,
        shared=settings.shared_vocabulary,
        too_long=settings.too_long,
        tokenizer=tokenizer,
        folder=folder,
    )


def of_pairs(corpus: PairCorpus) -> Data:
    """Pairs as the data of a recipe."""
    about = {"problems": corpus.problems, "texts": corpus.texts}
    return Data(corpus.tokenizer, corpus.learned, corpus.held_out, **about)


def keep_tokens(data: Data, folder: Path) -> Data:
    """Data whose tokens are in memory, written to a folder as those of a text are.

    Raises:
        ValueError: if it cannot be written.
    """
    size, content = data.tokenizer.vocab_size, tokenizer_to_json(data.tokenizer)
    streams = data.learned.tolist(), data.held_out.tolist()
    write_token_folder(folder, content, size, *streams, data.which)
    learned = TokenStore(folder / TRAIN_TOKENS_FILE, size)
    held_out = TokenStore(folder / VAL_TOKENS_FILE, size)
    return replace(data, learned=learned, held_out=held_out)


def reopen_data(settings: DataSettings, folder: Path) -> Data:
    """The data that `prepare_data` made, from the tokens kept in a folder if there are any.

    If there are none, tabs are read anew, into the tokens of the run that the folder is in: of tabs
    that have changed a new tokenizer might tell other styles.

    Raises:
        ValueError: as `prepare_data`.
    """
    if settings.kind == "translation":
        return of_pairs(reopen_pairs(folder))
    if not (folder / TOKENIZER_FILE).exists():  # as of guitar runs that were made by older versions
        if settings.kind == "guitar" and read_index(folder.parent):
            return keep_tokens(of_tabs(settings, tokenizer_of(folder.parent, "last")), folder)
        return prepare_data(settings, folder)
    if settings.kind == "guitar":
        tokenizer = tokenizer_from_json(read_json(folder / TOKENIZER))
        learned = TokenStore(folder / TRAIN_TOKENS_FILE, tokenizer.vocab_size)
        held_out = TokenStore(folder / VAL_TOKENS_FILE, tokenizer.vocab_size)
        return Data(tokenizer, learned, held_out)
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
    return as_tensor(for_tokens(*read_source(source))[0], tokenizer)


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
    if is_pair_tokenizer(content):
        return PairTokenizer.from_json(content)
    return TextTokenizer.from_json(content)


def tokenizer_of(run: Path, which: Which = "best") -> Tokenizer:
    """What the tokens of a run mean.

    Raises:
        ValueError: if there is no run, or it was kept without a tokenizer.
    """
    if not run.is_dir():
        raise ValueError(f"There is no folder {run}: name one that a run was kept in.")
    content, place = load_tokenizer(run, which), checkpoint_folder(run, which)
    if content is None:
        raise ValueError(f"{place} was kept without a tokenizer, so its tokens have no names.")
    try:
        return tokenizer_from_json(content)
    except ValueError as error:
        raise ValueError(f"{place / 'tokenizer.json'}: {error}") from None
