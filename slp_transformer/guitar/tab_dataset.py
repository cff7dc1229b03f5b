"""Tabs as one row of tokens to learn from and another to measure on."""

import random
from dataclasses import dataclass
from pathlib import Path

import torch

from slp_transformer._internal.shape_types import Int, Tensor
from slp_transformer.guitar.ascii_reader import read_tabs
from slp_transformer.guitar.guitarset import holds_guitarset, read_guitarset
from slp_transformer.guitar.practice import practice_corpus
from slp_transformer.guitar.tab import Problem, Tab
from slp_transformer.guitar.tab_tokenizer import TabTokenizer, token_stream
from slp_transformer.guitar.token_grammar import STRINGS


@dataclass(frozen=True)
class TabCorpus:
    """Tabs to learn from and tabs held out, and the tokens of both.

    Attributes:
        tokenizer: what the tokens mean.
        learned: tokens to learn from, each piece from ``<bos>`` to ``<eos>``.
        held_out: tokens of pieces that are not learned from.
        learned_tabs: the pieces behind `learned`, in the order of their tokens.
        held_out_tabs: the pieces behind `held_out`.
        problems: what could not be read, by file and line.
    """

    tokenizer: TabTokenizer
    learned: Int[Tensor, "tokens"]
    held_out: Int[Tensor, "unseen"]
    learned_tabs: list[Tab]
    held_out_tabs: list[Tab]
    problems: list[Problem]


def prepare_tabs(
    source: str | Path | None = None,
    held_out: float | str | Path = 0.1,
    tokenizer: TabTokenizer | None = None,
) -> TabCorpus:
    """Read tabs, hold some out and turn all into tokens.

    Args:
        source: a folder of ``.txt`` and ``.tab`` files, or one file; GuitarSet as a folder or as
            its publisher's archive; None for the practice corpus.
        held_out: share of the pieces to hold out, drawn at random but always the same ones, and at
            least one; or another source, to be held out as a whole.
        tokenizer: the tokenizer of a model that is there already; a new one if None.

    Raises:
        ValueError: if there is no tablature, a share is not between 0 and 1, a share is to be held
            out of a single piece, or a tab has something that has no token.
    """
    tokenizer = tokenizer or TabTokenizer()
    tabs, unseen, problems = read_apart(source, held_out)
    return TabCorpus(
        tokenizer, as_tensor(tabs, tokenizer), as_tensor(unseen, tokenizer), tabs, unseen, problems
    )


def read_apart(
    source: str | Path | None, held_out: float | str | Path
) -> tuple[list[Tab], list[Tab], list[Problem]]:
    """Read tabs and hold some out.

    Args:
        source: as `prepare_tabs`.
        held_out: as there.

    Returns:
        The tabs to learn from, those held out, and what could not be read.

    Raises:
        ValueError: as `prepare_tabs`, but for what has no token.
    """
    tabs, problems = for_tokens(*read_source(source))
    if isinstance(held_out, str | Path):
        unseen, more = for_tokens(*read_source(held_out))
        return tabs, unseen, problems + more
    return *split(tabs, held_out), problems


def read_source(source: str | Path | None) -> tuple[list[Tab], list[Problem]]:
    """Tabs and problems of a folder or file, or of GuitarSet; the practice corpus if None.

    Raises:
        ValueError: as `slp_transformer.guitar.ascii_reader.read_tabs`, or
            `slp_transformer.guitar.guitarset.read_guitarset`.
    """
    if source is None:
        return practice_corpus(seed=0), []
    if holds_guitarset(source):
        excerpts, problems = read_guitarset(source)
        return [excerpt.tab for excerpt in excerpts], problems
    return read_tabs(source)


def for_tokens(tabs: list[Tab], problems: list[Problem]) -> tuple[list[Tab], list[Problem]]:
    """The tabs that tokens are made for, those of six strings; the others become problems.

    Raises:
        ValueError: if there are only others.
    """
    kept = [tab for tab in tabs if len(tab.tuning.open_pitches) == STRINGS]
    others = [
        Problem(
            tab.source or tab.title,
            0,
            f"{len(tab.tuning.open_pitches)} strings; tokens are made for {STRINGS}",
        )
        for tab in tabs
        if len(tab.tuning.open_pitches) != STRINGS
    ]
    if tabs and not kept:
        raise ValueError(f"No tab here has {STRINGS} strings; the first is {others[0]}.")
    return kept, [*problems, *others]


def split(tabs: list[Tab], share: float) -> tuple[list[Tab], list[Tab]]:
    """Part pieces at random, always in the same way, into the larger part and the held-out share.

    Raises:
        ValueError: if the share is not between 0 and 1, or there is only one piece.
    """
    if not 0 < share < 1:
        raise ValueError(f"held_out must be a share between 0 and 1, not {share!r}.")
    if len(tabs) < 2:
        raise ValueError(
            f"There is only {len(tabs)} piece, of which nothing can be held out: give more tabs, "
            "or hold out another folder."
        )
    tabs = list(tabs)
    random.Random(0).shuffle(tabs)
    count = min(max(1, int(share * len(tabs))), len(tabs) - 1)
    return tabs[count:], tabs[:count]


def name_of(tab: Tab) -> str:
    """What a piece is called: its title and where it is from, as far as that is known."""
    return ", ".join(filter(None, [tab.source, tab.title])) or "a piece without a name"


def as_tensor(tabs: list[Tab], tokenizer: TabTokenizer) -> Int[Tensor, "tokens"]:
    """The tokens of tabs, one piece after the other.

    Raises:
        ValueError: for the first tab that has something that has no token.
    """
    return torch.tensor(token_stream(tabs, tokenizer), dtype=torch.long)
