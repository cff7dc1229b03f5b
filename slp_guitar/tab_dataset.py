"""Tabs as training tokens and validation tokens."""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import torch

from slp_guitar.ascii.reader import read_tab_file
from slp_guitar.bar_lengths import NOTATED_STEPS_PER_QUARTER
from slp_guitar.fingering.fingering_pieces import find_fingerings
from slp_guitar.fingering.playable_chords import FingeringOptions
from slp_guitar.fingering.playable_pieces import piece_from_tab
from slp_guitar.formats import registry
from slp_guitar.formats.safe_read import read_each_file
from slp_guitar.fretboard import NAMED_TUNINGS, find_nearest_tuning
from slp_guitar.guitarset import is_guitarset, read_guitarset_tabs
from slp_guitar.practice import make_practice_corpus
from slp_guitar.tab import ReadProblem, Tab
from slp_guitar.tab_header import is_valid_style
from slp_guitar.tab_tokenizer import TabTokenizer, encode_all_tabs
from slp_guitar.token_reader import NUM_STRINGS
from slp_transformer._internal.shape_types import Int, Tensor

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
        ValueError: as `read_tab_folder` or `slp_guitar.guitarset.read_guitarset_tabs`; or if no tab
            has tokens.
    """
    if source is None:
        return make_practice_corpus(seed=0), []
    if is_guitarset(source):
        return read_guitarset_tabs(source)
    kept: list[Tab] = []
    wrong: list[ReadProblem] = []
    tabs, problems = read_tab_folder(source)
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


def read_tab_folder(source: str | Path) -> tuple[list[Tab], list[ReadProblem]]:
    """Read the tabs of a folder and those below it, of any kind; finger what has no strings.

    Files are read in the order of their paths, texts first, so that the same folder gives the same
    list. A file beside a text of the same name, as a tab's MIDI file, is taken for the same piece.

    Args:
        source: a folder; or one file, which is read as text if its name says nothing.

    Returns:
        The tabs, and what could not be read.

    Raises:
        ValueError: if there is no such folder, or nothing in it could be read.
    """
    source = Path(source)
    if not source.exists():
        raise ValueError(f"There is no folder {source}; name one with .txt or .tab files in it.")
    paths = registry.list_readable_files(source) or [source] * (not source.is_dir())
    texts = [
        path
        for path in paths
        if registry.find_format(path) in (None, registry.FORMATS["ASCII tab"])
    ]
    pieces = {path.with_suffix("") for path in texts}
    others = [path for path in paths if path.with_suffix("") not in pieces]

    def read(path: Path, name: str) -> tuple[list[Tab], list[ReadProblem]]:
        if path in texts:
            return read_tab_file(path, name)
        tabs, problems = registry.read_any_tab_file(path)
        return [replace(_fingered(tab), source=name) for tab in tabs], problems

    tabs, problems = read_each_file(source, [*texts, *others], read)
    if not tabs:
        first = f" First problem: {str(problems[0]).rstrip('.')}." if problems else ""
        found = "none can be read" if paths else "has no such file"
        raise ValueError(
            f"No tablature in {source}: it should hold .txt or .tab files with six string lines "
            f"one under the other, and {found}.{first}"
        )
    return tabs, problems


def _fingered(tab: Tab) -> Tab:
    """Return a tab with strings: its own, or those of the first guitar that has its notes.

    Raises:
        ValueError: if there is nothing to play.
    """
    if tab.is_fingered:
        return tab
    piece = piece_from_tab(tab)
    counts = Counter(pitch for moment in piece.moments for pitch in moment.pitches)
    name, lost = find_nearest_tuning(counts)
    guitar = NAMED_TUNINGS["standard" if lost else name]
    options = FingeringOptions(guitar, unplayable_policy="octave")
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
