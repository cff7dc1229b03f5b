"""Reading ASCII tablature files, as people publish them.

`read_tabs` reads a folder, `read_file` one file, `read_text` a string. All three return what could
be read, and beside it a list of problems, each with its file and line: a tab that has a broken
system in it is still read, without that system.

How systems and bars are recognised is told in `slp_transformer.guitar.ascii_tab`, how frets are in
`slp_transformer.guitar.ascii_frets`, and how a stated tuning and capo are in
`slp_transformer.guitar.headings`.

**Steps.** A text file says when a note sounds by the column that it stands in, so columns are the
steps of the tab that is read. The columns that every bar leaves free after its bar line are taken
off, and if all columns of a piece are multiples of a common number (as where one dash stands
between any two notes), they are divided by it. Nothing is rounded: `steps` times that divisor gives
the printed spacing back.

**One file, several tabs.** A file becomes one `Tab`, unless a different tuning is stated between
two systems: then a new one begins there.
"""

import re
from collections import Counter
from dataclasses import dataclass, replace
from math import gcd
from pathlib import Path
from statistics import median

from slp_transformer.guitar.ascii_frets import RawBar, raw_bars
from slp_transformer.guitar.ascii_tab import (
    System,
    bars_of,
    choose_systems,
    is_barre_mark,
    is_string_line,
    make_system,
    string_line_runs,
)
from slp_transformer.guitar.fretboard import STANDARD, Tuning
from slp_transformer.guitar.headings import (
    Pitches,
    stated_capo,
    stated_tuning,
    title_of,
    tuning_from_names,
)
from slp_transformer.guitar.tab import Bar, Event, Tab

SUFFIXES = (".txt", ".tab")

# In the table of contents of a file that holds several versions of a piece.
_LATER_VERSION = re.compile(r"\b(?:2nd|3rd|[4-9]th|second|third) version|\bversion [2-9]", re.I)


@dataclass(frozen=True)
class Problem:
    """Something in a file that could not be read.

    Attributes:
        source: the file.
        line: the line, from 1.
        message: what is wrong with it.
    """

    source: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.source}:{self.line}: {self.message}"


def read_tabs(folder: str | Path) -> tuple[list[Tab], list[Problem]]:
    """Read every ``.txt`` and ``.tab`` file in a folder and the folders below it.

    Files are read in the order of their paths, so that the same folder gives the same list.

    Args:
        folder: a folder; or one file, whatever its name.

    Returns:
        The tabs, and what could not be read.

    Raises:
        ValueError: if there is no such folder, or nothing in it could be read.
    """
    folder = Path(folder)
    if not folder.exists():
        raise ValueError(f"There is no folder {folder}; name one with .txt or .tab files in it.")
    paths = [folder] if folder.is_file() else _tab_files(folder)
    tabs: list[Tab] = []
    problems: list[Problem] = []
    for path in paths:
        name = path.name if path == folder else path.relative_to(folder).as_posix()
        more_tabs, more_problems = _read_path(path, name)
        tabs += more_tabs
        problems += more_problems
    if not tabs:
        found = f"{len(paths)} files, none with a readable tab" if paths else "no such file"
        first = f" First problem: {problems[0]}." if problems else ""
        raise ValueError(
            f"No tablature in {folder}: it should hold .txt or .tab files with six string lines "
            f"one under the other, and has {found}.{first}"
        )
    return tabs, problems


def _tab_files(folder: Path) -> list[Path]:
    """The tab files below a folder, in the order of their paths on every system."""
    found = [p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file()]
    return sorted(found, key=lambda path: path.relative_to(folder).parts)


def read_file(path: str | Path) -> tuple[list[Tab], list[Problem]]:
    """Read one file: UTF-8 (with or without a mark), UTF-16 with a mark, or else Latin-1.

    Bytes 0x80-0x9F, which Latin-1 leaves empty, are read as Windows does (dashes, quotation marks).

    Returns:
        Its tabs, more than one where the tuning changes; and what could not be read.

    Raises:
        ValueError: if there is no such file.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"There is no file {path}.")
    return _read_path(path, path.name)


def _read_path(path: Path, name: str) -> tuple[list[Tab], list[Problem]]:
    """Read a file, or report why it cannot be."""
    try:
        content = path.read_bytes()
    except OSError as error:
        return [], [Problem(name, 1, f"the file cannot be opened ({error.strerror})")]
    text = decode(content)
    if "\0" in text:
        return [], [Problem(name, 1, "this is not a text file")]
    return read_text(text, name)


def decode(content: bytes) -> str:
    """Text from bytes: UTF-8 if that fits, UTF-16 if marked as such, else Latin-1 as on Windows."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", errors="replace")
    for encoding in ("utf-8-sig", "cp1252"):
        try:
            return content.decode(encoding)
        except UnicodeDecodeError:
            continue
    return content.decode("latin-1")


def read_text(text: str, source: str = "") -> tuple[list[Tab], list[Problem]]:
    """Read the tabs in a text.

    Args:
        text: the text, with any line ends.
        source: what to call it in `Tab.source` and in problems.

    Returns:
        Its tabs, more than one where the tuning changes; and what could not be read.
    """
    lines = re.split(r"\r\n|\r|\n", text)
    systems, problems = _find_systems(lines, source)
    prose = ["" if is_string_line(line) else line for line in lines]
    tabs = []
    for first, group, stated, capo in _pieces(prose, systems):
        bars = []
        for system in group:
            system_bars, complaints = bars_of(system)
            bars += system_bars
            problems += [Problem(source, line, message) for line, message in complaints]
        tuning = Tuning(_tuning_of(group, stated), capo)
        title = title_of(prose[first : group[0].line - 1]) or title_of(prose[: systems[0].line - 1])
        tab_bars = tuple(_in_steps(_join_broken(raw_bars(bars))))
        if any(bar.events for bar in tab_bars):
            tabs.append(Tab(title, tuning, tab_bars, source))
    if not tabs and not problems:
        problems = [Problem(source, 1, "no tablature: no six string lines one under the other")]
    return tabs, sorted(problems, key=lambda problem: problem.line)


def _find_systems(lines: list[str], source: str) -> tuple[list[System], list[Problem]]:
    """Every system of a text, and the string lines that belong to none."""
    systems, problems = [], []
    for run in string_line_runs(lines):
        chosen = choose_systems(lines, run)
        systems += [make_system(lines, six) for six in chosen]
        for left_out in _between(run, chosen):
            if _is_broken_system([lines[i] for i in left_out], whole=not chosen):
                message = f"{len(left_out)} string lines where a system has six; they are left out"
                problems.append(Problem(source, left_out[0] + 1, message))
    return systems, problems


def _between(run: list[int], chosen: list[list[int]]) -> list[list[int]]:
    """The lines of a group that are in none of its chosen systems, in stretches."""
    edges = [-1, *(edge for six in chosen for edge in (six[0], six[-1])), run[-1] + 1]
    stretches = [
        [i for i in run if left < i < right]
        for left, right in zip(edges[::2], edges[1::2], strict=True)
    ]
    return [stretch for stretch in stretches if stretch]


def _is_broken_system(lines: list[str], whole: bool) -> bool:
    """Whether lines that are in no system were meant as strings: enough of them, and with frets."""
    strings = [line for line in lines if not is_barre_mark(line)]
    fretted = sum(bool(re.search(r"[-=|~][0-9]", line)) for line in strings)
    return len(strings) >= (3 if whole else 2) and fretted > 0


def _pieces(
    prose: list[str], systems: list[System]
) -> list[tuple[int, list[System], Pitches | None, int]]:
    """Part the systems of a text where another tuning or capo is stated between them.

    Returns:
        For each part the index of its first line of text, its systems, the tuning (None if none is
        stated) and the capo.
    """
    pieces: list[tuple[int, list[System], Pitches | None, int]] = []
    stated, capo, read_to = None, 0, 0
    for system in systems:
        before = stated, capo
        text_from = read_to
        for line in prose[read_to : system.line - 1]:
            if not pieces and _LATER_VERSION.search(line):
                continue
            stated = stated_tuning(line) or stated
            capo = stated_capo(line) or capo
        read_to = system.line - 1
        if not pieces or (stated or STANDARD.open_pitches, capo) != (
            before[0] or STANDARD.open_pitches,
            before[1],
        ):
            pieces.append((text_from, [], stated, capo))
        pieces[-1][1].append(system)
    return pieces


def _tuning_of(systems: list[System], stated: Pitches | None) -> Pitches:
    """The tuning of some systems: what most labels say, if that is not standard; or else `stated`.

    Standard labels prove little: many write E in front of a string that the text tunes to D.
    """
    names = Counter(system.labels for system in systems if all(system.labels))
    if names:
        pitches = tuning_from_names(names.most_common(1)[0][0])
        if pitches not in (None, STANDARD.open_pitches):
            return pitches
    return stated or STANDARD.open_pitches


def _join_broken(bars: list[RawBar]) -> list[RawBar]:
    """Join a bar that breaks at the end of a system with its rest at the start of the next.

    Many writers leave the bar line at the margin out. Two halves are taken for one bar only if they
    are together no longer than a bar and a quarter of the piece.
    """
    closed = [bar.width for bar in bars if not (bar.open_left or bar.open_right)]
    longest = 1.25 * median(closed) if closed else 0
    joined: list[RawBar] = []
    for bar in bars:
        last = joined[-1] if joined else None
        if last and last.open_right and bar.open_left and last.width + bar.width <= longest:
            moved = [replace(c, column=c.column + last.width) for c in bar.columns]
            joined[-1] = RawBar(
                last.width + bar.width,
                (*last.columns, *moved),
                last.open_left,
                bar.open_right,
            )
        else:
            joined.append(bar)
    return joined


def _in_steps(bars: list[RawBar]) -> list[Bar]:
    """Bars in steps: columns, less the free ones after the bar line, over their divisor."""
    columns = [[column.column for column in bar.columns] for bar in bars]
    margin = min((bar[0] for bar in columns if bar), default=0)
    unit = max(1, gcd(*(column - margin for bar in columns for column in bar)))
    return [
        Bar(
            steps=max(1, -(-(bar.width - margin) // unit)),
            events=tuple(Event((c.column - margin) // unit, c.notes) for c in bar.columns),
        )
        for bar in bars
    ]
