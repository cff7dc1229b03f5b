"""Reading ASCII tablature files, as people publish them.

`read_tabs` reads a folder, `read_file` one file, `read_text` a string. All three return what could
be read, and beside it a list of problems, each with its file and line: a tab that has a broken
system in it is still read, without that system.

How systems are recognised is told in `slp_transformer.guitar.ascii_tab`, how bars are in
`slp_transformer.guitar.ascii_bars`, how frets are in `slp_transformer.guitar.ascii_frets`, and how
a stated style, tuning and capo are in `slp_transformer.guitar.tab_header`.

**Steps.** A text file says when a note sounds by the column that it stands in, so columns are the
steps of the tab that is read. The columns that every bar leaves free after its bar line are taken
off, and if all columns of a piece are multiples of a common number (as where one dash stands
between any two notes), they are divided by it. Nothing is rounded: `steps` times that divisor gives
the printed spacing back. Where the text says its unit (`slp_transformer.guitar.ascii_time`), steps
are what it says.

**One file, several tabs.** A file becomes one `Tab`, unless a different tuning is stated between
two systems: then a new one begins there.
"""

import re
from bisect import bisect_left
from pathlib import Path

from slp_transformer._internal.folders import files_in
from slp_transformer.guitar.ascii_bars import bars_of
from slp_transformer.guitar.ascii_frets import raw_bars
from slp_transformer.guitar.ascii_parts import other_systems, parts_of, stated_guitars, tuning_of
from slp_transformer.guitar.ascii_tab import (
    System,
    choose_systems,
    is_barre_mark,
    is_string_line,
    label_of,
    make_system,
    string_line_runs,
)
from slp_transformer.guitar.ascii_time import (
    plain_bars,
    stated_changes,
    stated_timing,
    timed_bars,
)
from slp_transformer.guitar.fretboard import Tuning
from slp_transformer.guitar.tab import Problem, Tab
from slp_transformer.guitar.tab_header import is_about_style, style_of, title_of

SUFFIXES = (".txt", ".tab")


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
    return [path for path in files_in(folder) if path.suffix.lower() in SUFFIXES]


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
    written = re.split(r"\r\n|\r|\n", text)
    # What a style is called says nothing else, so that Drop D or a row of dashes may be one.
    lines = ["" if is_about_style(line) else line for line in written]
    systems, problems = _find_systems(lines, source)
    prose = ["" if is_string_line(line) else line for line in lines]
    tabs = []
    file_head = systems[0].line - 1 if systems else 0
    file_title, file_style = title_of(prose[:file_head]), style_of(written[:file_head])
    for first, group, stated, capo in parts_of(prose, systems):
        head = prose[first : group[0].line - 1]
        timing = next(filter(None, map(stated_timing, head)), None)
        bars, said, read_to = [], {}, first
        for system in group:
            said[len(bars)] = stated_changes(prose[read_to : system.line - 1]) if timing else {}
            read_to = system.line - 1
            system_bars, complaints = bars_of(system, exact=timing is not None)
            bars += system_bars
            problems += [Problem(source, line, message) for line, message in complaints]
        tuning = Tuning(tuning_of(group, stated), capo)
        raw = raw_bars(bars)
        read = timed_bars(bars, raw, said, timing.columns) if timing else plain_bars(raw)
        if any(bar.events for bar in read):
            unit = timing.unit if timing else None
            title = title_of(head) or file_title
            style = style_of(written[first : group[0].line - 1]) or file_style
            tabs.append(Tab(title, tuning, tuple(read), source, unit, style))
    if not tabs and not problems:
        problems = [Problem(source, 1, "no tablature: no six string lines one under the other")]
    return tabs, sorted(problems, key=lambda problem: problem.line)


def _find_systems(lines: list[str], source: str) -> tuple[list[System], list[Problem]]:
    """Every system of a text, and the string lines that belong to none."""
    systems, problems = [], []
    guitars = stated_guitars([line for line in lines if not is_string_line(line)])
    for run in string_line_runs(lines):
        chosen = other_systems(lines, run, guitars) or choose_systems(lines, run)
        systems += [make_system(lines, six) for six in chosen]
        for left_out in _between(run, chosen):
            if chosen and len(left_out) == 1 and _is_seventh(lines, left_out[0]):
                message = "a string line too many for six strings, with frets; it is left out"
                problems.append(Problem(source, left_out[0] + 1, message))
            elif _is_broken_system([lines[i] for i in left_out], whole=not chosen):
                message = f"{len(left_out)} string lines where a system has six; they are left out"
                problems.append(Problem(source, left_out[0] + 1, message))
    return systems, problems


def _between(run: list[int], chosen: list[list[int]]) -> list[list[int]]:
    """The lines of a group that are in none of its chosen systems, in stretches."""
    stretches, first = [], 0
    for six in chosen:
        start = bisect_left(run, six[0])
        stretches.append(run[first:start])
        first = start + len(six)
    return [stretch for stretch in (*stretches, run[first:]) if stretch]


def _is_seventh(lines: list[str], index: int) -> bool:
    """Whether a line beside a system is one more string: fretted, with a label or its bar lines."""
    line = lines[index]
    if is_barre_mark(line) or not re.search(r"[-=|~][0-9]", line):
        return False
    bars = [found.start() for found in re.finditer(r"\|", line)]
    beside = lines[max(0, index - 1) : index] + lines[index + 1 : index + 2]
    same = any(bars == [f.start() for f in re.finditer(r"\|", other)] for other in beside)
    return bool(label_of(line)) or (len(bars) > 1 and same)


def _is_broken_system(lines: list[str], whole: bool) -> bool:
    """Whether lines that are in no system were meant as strings: enough of them, and with frets."""
    strings = [line for line in lines if not is_barre_mark(line)]
    fretted = sum(bool(re.search(r"[-=|~][0-9]", line)) for line in strings)
    return len(strings) >= (3 if whole else 2) and fretted > 0
