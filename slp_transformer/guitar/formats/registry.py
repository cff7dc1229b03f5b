"""One way in and one way out for tabs in files: the name of a file says what it is."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from slp_transformer.guitar.ascii_reader import read_tab_file
from slp_transformer.guitar.ascii_writer import write_tab
from slp_transformer.guitar.formats.alphatex import read_alphatex
from slp_transformer.guitar.formats.alphatex_writer import write_alphatex
from slp_transformer.guitar.formats.guitar_pro import read_guitar_pro, write_guitar_pro
from slp_transformer.guitar.formats.midi import read_midi_tab, write_midi
from slp_transformer.guitar.formats.musicxml import write_musicxml
from slp_transformer.guitar.tab import ReadProblem, Tab
from slp_transformer.guitar.timing import columns_to_steps

WRITER_OF_SUFFIX: dict[str, Callable[[Tab, Path], None]] = {
    ".txt": write_tab,
    ".tab": write_tab,
    ".mid": write_midi,
    ".midi": write_midi,
    ".gp3": write_guitar_pro,
    ".gp4": write_guitar_pro,
    ".gp5": write_guitar_pro,
    ".musicxml": write_musicxml,
    ".xml": write_musicxml,
    ".atex": write_alphatex,
    ".alphatex": write_alphatex,
}
"""The writer of each file type, by suffix."""

UNTIMED_SUFFIXES = (".txt", ".tab")
"""Files that hold tabs whose steps are columns."""


def check_writable_suffix(path: str | Path) -> None:
    """Refuse a name that says of no kind of file that can be written.

    Raises:
        ValueError: naming the ends that can.
    """
    if Path(path).suffix.lower() not in WRITER_OF_SUFFIX:
        raise ValueError(
            f"{Path(path).name} does not say what to write: let it end in "
            f"{', '.join(sorted(set(WRITER_OF_SUFFIX) - {'.tab', '.midi', '.xml', '.alphatex'}))}."
        )


def write_tab_as(tab: Tab, path: str | Path) -> None:
    """Write a tab to a file of the kind that its name says, whole or not at all.

    Raises:
        ValueError: for a name that says none; or as what writes that kind of file, for instance if
            the tab's steps are columns, and not time, where the file needs time.
        OSError: if the file cannot be written.
    """
    check_writable_suffix(path)
    WRITER_OF_SUFFIX[Path(path).suffix.lower()](tab, Path(path))


def add_time_if_needed(tab: Tab, path: str | Path, steps_per_quarter: int = 4) -> Tab:
    """The tab as a file of that name can hold it: columns taken for steps where it needs time.

    Raises:
        ValueError: as `check_writable_suffix` and `slp_transformer.guitar.timing.columns_to_steps`.
    """
    check_writable_suffix(path)
    timeless = tab.steps_per_quarter is None and Path(path).suffix.lower() not in UNTIMED_SUFFIXES
    return columns_to_steps(tab, steps_per_quarter) if timeless else tab


def read_any_tab_file(path: str | Path) -> tuple[list[Tab], list[ReadProblem]]:
    """Read the tabs in a file: text, Guitar Pro, alphaTex, or MIDI with a channel for each string.

    Returns:
        The tabs, and what of the file is not in them.

    Raises:
        ValueError: if there is no such file, or it is not what its name says.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix in (".gp3", ".gp4", ".gp5"):
        return read_guitar_pro(path)
    if suffix in (".mid", ".midi", ".atex", ".alphatex"):
        tab, problems = (read_midi_tab if suffix.startswith(".mid") else read_alphatex)(path)
        return [replace(tab, source=path.name)], problems
    return read_tab_file(path)
