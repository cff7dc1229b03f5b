"""Tabs as training tokens and validation tokens."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import torch

from slp_guitar.ascii.reader import TEXT_SUFFIXES, read_tab_folder
from slp_guitar.bar_lengths import NOTATED_STEPS_PER_QUARTER
from slp_guitar.fingering.fingering_pieces import find_fingerings
from slp_guitar.fingering.playable_chords import FingeringOptions
from slp_guitar.fingering.playable_pieces import piece_from_tab
from slp_guitar.formats.registry import find_format, read_any_tab_file
from slp_guitar.fretboard import NAMED_TUNINGS, find_tuning_for
from slp_guitar.guitarset import is_guitarset, read_guitarset_tabs
from slp_guitar.practice import make_practice_corpus
from slp_guitar.tab import ReadProblem, Tab
from slp_guitar.tab_header import is_valid_style
from slp_guitar.tab_tokenizer import TabTokenizer, encode_all_tabs
from slp_guitar.token_reader import NUM_STRINGS
from slp_transformer._internal.shape_types import Int, Tensor
from slp_transformer.data.text_files import list_files

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
        source: a folder of files of any kind that is read, or one file; GuitarSet as a folder or as
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

    What has no strings yet, such as MIDI, is fingered as `slp-transformer tab` does it.

    Returns:
        The tabs, and what could not be read; tabs that have no tokens are problems too.

    Raises:
        ValueError: as `slp_guitar.ascii.reader.read_tab_folder`, or
            `slp_guitar.guitarset.read_guitarset_tabs`; or if no tab has tokens.
    """
    if source is None:
        return make_practice_corpus(seed=0), []
    if is_guitarset(source):
        return read_guitarset_tabs(source)
    kept: list[Tab] = []
    wrong: list[ReadProblem] = []
    tabs, problems = _read_files(Path(source))
    for tab in tabs:
        if (count := len(tab.tuning.open_pitches)) != NUM_STRINGS:
            problem = f"{count} strings; tokens are made for {NUM_STRINGS}"
        elif tab.steps_per_quarter not in (None, *NOTATED_STEPS_PER_QUARTER):
            problem = f"{tab.steps_per_quarter} steps to a quarter note, which have no token"
        else:
            kept.append(tab)
            continue
        wrong.append(ReadProblem(tab.source or tab.title, 0, problem))
    if wrong and not kept:
        raise ValueError(f"No tab here has tokens; the first is {wrong[0]}.")
    return kept, problems + wrong


def _read_files(source: Path) -> tuple[list[Tab], list[ReadProblem]]:
    """Read the files of a folder, or one file, of any kind; finger what has no strings.

    A file beside a text of the same name, as a tab's MIDI file, is taken for the same piece.
    """
    paths = list_files(source) if source.is_dir() else [source]
    texts = {path.with_suffix("") for path in paths if path.suffix.lower() in TEXT_SUFFIXES}
    others = [
        path
        for path in paths
        if (found := find_format(path)) and found.reader and path.with_suffix("") not in texts
    ]
    if texts or not others:
        tabs, problems = read_tab_folder(source)
    else:
        tabs, problems = [], []
    for path in others:
        name = path.name if path == source else path.relative_to(source).as_posix()
        try:
            found_tabs, more = read_any_tab_file(path)
            tabs += [replace(_fingered(tab), source=name) for tab in found_tabs]
        except ValueError as error:
            more = [ReadProblem(name, 0, str(error))]
        problems += more
    if not tabs:
        first = str(problems[0]).rstrip(".")
        raise ValueError(f"Nothing in {source} can be read. First problem: {first}.")
    return tabs, problems


def _fingered(tab: Tab) -> Tab:
    """Return a tab with strings: its own, or those of the first guitar that has its notes.

    Raises:
        ValueError: if there is nothing to play.
    """
    if tab.is_fingered:
        return tab
    piece = piece_from_tab(tab)
    name = find_tuning_for({pitch for moment in piece.moments for pitch in moment.pitches})
    options = FingeringOptions(NAMED_TUNINGS[name or "standard"], unplayable_policy="octave")
    return find_fingerings(piece, options)[0][0][0]


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
