"""Tabs as training tokens and validation tokens."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch

from slp_transformer._internal.shape_types import Int, Tensor
from slp_transformer.guitar.ascii_reader import read_tab_folder
from slp_transformer.guitar.guitarset import is_guitarset, read_guitarset_tabs
from slp_transformer.guitar.practice import make_practice_corpus
from slp_transformer.guitar.tab import ReadProblem, Tab
from slp_transformer.guitar.tab_header import is_valid_style
from slp_transformer.guitar.tab_tokenizer import TabTokenizer, encode_all_tabs
from slp_transformer.guitar.token_reader import NUM_STRINGS

MAX_STYLES = 64  # styles that a new tokenizer takes
T = TypeVar("T")


@dataclass(frozen=True)
class TabDataset:
    """Training tabs, held-out tabs, and the tokens of both.

    Attributes:
        tokenizer: the tokenizer.
        train_data: training tokens, each piece from ``<bos>`` to ``<eos>``.
        val_data: tokens of the held-out pieces.
        train_tabs: the pieces behind `train_data`, in the order of their tokens.
        val_tabs: the pieces behind `val_data`.
        problems: what could not be read, by file and line.
    """

    tokenizer: TabTokenizer
    train_data: Int[Tensor, "tokens"]
    val_data: Int[Tensor, "unseen"]
    train_tabs: list[Tab]
    val_tabs: list[Tab]
    problems: list[ReadProblem]


def prepare_tab_dataset(
    source: str | Path | None = None,
    val_split: float | str | Path = 0.1,
    tokenizer: TabTokenizer | None = None,
) -> TabDataset:
    """Read tabs, hold some out and turn all into tokens.

    Args:
        source: a folder of ``.txt`` and ``.tab`` files, or one file; GuitarSet as a folder or as
            its publisher's archive; None for the practice corpus.
        val_split: share of the pieces to hold out, drawn at random but always the same ones, and at
            least one; or another source, to be held out as a whole.
        tokenizer: the tokenizer of a model that is there already; a new one if None.

    Raises:
        ValueError: if there is no tablature, a share is not between 0 and 1, a share is to be held
            out of a single piece, or a tab has something that has no token.
    """
    tokenizer = tokenizer or TabTokenizer()
    tabs, unseen, problems = read_train_val_tabs(source, val_split)
    train, val = (torch.tensor(encode_all_tabs(part, tokenizer)) for part in (tabs, unseen))
    return TabDataset(tokenizer, train, val, tabs, unseen, problems)


def read_train_val_tabs(
    source: str | Path | None, val_split: float | str | Path
) -> tuple[list[Tab], list[Tab], list[ReadProblem]]:
    """Read tabs and hold some out.

    Args:
        source: as `prepare_tab_dataset`.
        val_split: as there.

    Returns:
        The training tabs, those held out, and what could not be read.

    Raises:
        ValueError: as `prepare_tab_dataset`, but for what has no token.
    """
    tabs, problems = read_tab_source(source)
    if isinstance(val_split, str | Path):
        unseen, more = read_tab_source(val_split)
        return tabs, unseen, problems + more
    return *split_train_val(tabs, val_split), problems


def read_tab_source(source: str | Path | None) -> tuple[list[Tab], list[ReadProblem]]:
    """The tabs of six strings of a folder or file, or of GuitarSet; the practice corpus if None.

    Returns:
        The tabs, and what could not be read; tabs of other than six strings are problems too.

    Raises:
        ValueError: as `slp_transformer.guitar.ascii_reader.read_tab_folder`, or
            `slp_transformer.guitar.guitarset.read_guitarset_tabs`; or if no tab has six strings.
    """
    if source is None:
        return make_practice_corpus(seed=0), []
    if is_guitarset(source):
        return read_guitarset_tabs(source)
    tabs, problems = read_tab_folder(source)
    kept = [tab for tab in tabs if len(tab.tuning.open_pitches) == NUM_STRINGS]
    others = [
        ReadProblem(
            tab.source or tab.title, 0, f"{count} strings; tokens are made for {NUM_STRINGS}"
        )
        for tab in tabs
        if (count := len(tab.tuning.open_pitches)) != NUM_STRINGS
    ]
    if tabs and not kept:
        raise ValueError(f"No tab here has {NUM_STRINGS} strings; the first is {others[0]}.")
    return kept, problems + others


def split_train_val(tabs: Sequence[T], val_share: float) -> tuple[list[T], list[T]]:
    """Split pieces at random, always in the same way, into a training and a held-out part.

    Raises:
        ValueError: if the share is not between 0 and 1, or there is only one piece.
    """
    if not 0 < val_share < 1:
        raise ValueError(f"val_split must be a share between 0 and 1, not {val_share!r}.")
    if len(tabs) < 2:
        raise ValueError(
            f"There is only {len(tabs)} piece, of which nothing can be held out: give more tabs, "
            "or hold out another folder."
        )
    shuffled = list(tabs)
    random.Random(0).shuffle(shuffled)
    count = min(max(1, int(val_share * len(shuffled))), len(shuffled) - 1)
    return shuffled[count:], shuffled[:count]


def collect_styles(tabs: Iterable[Tab]) -> tuple[tuple[str, ...], list[str]]:
    """The styles that a model of some tabs can be asked for.

    Returns:
        Their names, sorted: none where all that have a style have the same, which then carries no
        information, and none where there are more than 64. And a warning in the latter case.
    """
    found = sorted({tab.style for tab in tabs if is_valid_style(tab.style)})
    if len(found) > MAX_STYLES:
        return (), [f"styles have no tokens: there are {len(found)} styles, more than {MAX_STYLES}"]
    return (tuple(found) if len(found) > 1 else ()), []


def describe_tab(tab: Tab) -> str:
    """Return the source and title of a piece, as far as they are known."""
    return ", ".join(filter(None, [tab.source, tab.title])) or "a piece without a name"
