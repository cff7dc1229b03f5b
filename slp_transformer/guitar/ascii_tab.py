"""Six-line systems of ASCII tablature: where they are in a text, and where their bars are.

A *system* is a group of six string lines, one under the other, highest string first. A *column* is
a character position in it. `slp_transformer.guitar.files` reads a file with the parts in here and
in `slp_transformer.guitar.ascii_frets`, which reads the notes of a bar.

- **String lines.** A line is a string line when most of it is dashes, frets and bar lines. Six in a
  row make a system. From a longer run the six are chosen whose labels and bar lines agree best (a
  barre mark such as ``CVII-------`` often stands right above).
- **Bars.** A bar line is a column where most of the six lines have ``|`` (or agree on another
  upright, such as ``I`` or ``[``). If the lines have slipped against each other but hold equally
  many bars, they are lined up again bar by bar. A bar that a line does not reach the end of is
  reported and left out.
- **Text.** Where fewer than three of the six lines reach, there is text (``x2``, ``D.C.``, the
  number of a measure), not music.
"""

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

STRINGS = 6

# A label in front of a string line, perhaps with a measure number or a bar line before it.
_LABEL = re.compile(r"^(?:\s*\d{1,3}\s+)?\s*\|?\s*([A-Ga-g][#b]?)(?=[-=|:*\s(~\d<\[])\s*")
_MEASURE_NUMBER = re.compile(r"^\s*\d{1,3}\s+(?=\|)")
_WORD = re.compile(r"[^\W\d_]{4,}")
_BARRE = re.compile(r"^[\s\d|{\[(]*[cCbB]?\.?\s?[IVX]+\b")
_DASHES = "-=\u2013\u2014"
_DIGITS = "0123456789"
_UPRIGHTS = "|I[]!\u00a6"
_PLAIN_UPRIGHTS = {ord(mark): "|" for mark in _UPRIGHTS}
_WITHOUT_STAVE = {ord(mark): None for mark in _DASHES + _DIGITS + "~_" + _UPRIGHTS}


@dataclass(frozen=True)
class System:
    """Six string lines of a text.

    Attributes:
        numbers: the number of each line in the file, from 1.
        labels: what stands in front of each line (``"E"``, ``"F#"``), empty where nothing does.
        rows: the six lines, highest string first, labels and measure numbers blanked out.
    """

    numbers: tuple[int, ...]
    labels: tuple[str, ...]
    rows: tuple[str, ...]

    @property
    def line(self) -> int:
        """Number of its first line in the file."""
        return min(self.numbers)


@dataclass(frozen=True)
class Segments:
    """One bar as text.

    Attributes:
        rows: its six segments, equally wide, highest string first.
        open_left: whether the system begins with it, without a bar line in front.
        open_right: whether the system ends with it, without a bar line behind.
    """

    rows: tuple[str, ...]
    open_left: bool
    open_right: bool


def label_of(line: str) -> str:
    """The string name in front of a string line, or an empty string."""
    found = _LABEL.match(line)
    return found.group(1) if found else ""


def body_of(line: str) -> str:
    """The line with its label and measure number blanked out, so that the columns stay put."""
    found = _LABEL.match(line) or _MEASURE_NUMBER.match(line)
    return " " * found.end() + line[found.end() :] if found else line


@lru_cache(maxsize=20_000)
def is_string_line(line: str) -> bool:
    """Whether a line of text looks like one string of a system."""
    if line.count("-") + line.count("=") + line.count("~") + line.count("_") < 3:
        if not set(line) & set(_DASHES[2:]):
            return False
    body = body_of(line).strip()
    marks = "".join(body.split())
    dashes = sum(marks.count(dash) for dash in _DASHES)
    dashes += marks.count("_") if label_of(line) else 0
    dashes += marks.count("~") if len(marks) > 0.8 * len(body) else 0
    if "|" not in body and len(marks) < 0.7 * len(body):
        return False
    known = len(marks) - len(marks.translate(_WITHOUT_STAVE))
    return dashes >= 3 and known >= 0.6 * len(marks) and len(_WORD.findall(marks)) < 2


def is_barre_mark(line: str) -> bool:
    """Whether a line of dashes is a barre mark, such as ``CVII-------``."""
    return bool(_BARRE.match(line))


def string_line_runs(lines: list[str]) -> list[list[int]]:
    """Where the string lines are: indices of lines, one list for each group.

    Lines next to each other are a group. Groups that only blank lines part are one group if they
    are six lines together (some tabs are printed with a gap).
    """
    runs: list[list[int]] = []
    gap = True
    for index, line in enumerate(lines):
        if is_string_line(line):
            if gap:
                runs.append([])
            runs[-1].append(index)
        gap = not is_string_line(line)
    return _join_across_blanks(lines, runs)


def _join_across_blanks(lines: list[str], runs: list[list[int]]) -> list[list[int]]:
    """Join neighboring groups that together are six lines, with nothing but blanks between."""
    joined: list[list[int]] = []
    position = 0
    while position < len(runs):
        group, after = list(runs[position]), position + 1
        while len(group) < STRINGS and after < len(runs):
            between = lines[group[-1] + 1 : runs[after][0]]
            if len(between) > 2 or any(line.strip() for line in between):
                break
            group += runs[after]
            after += 1
        if len(group) == STRINGS:
            joined.append(group)
            position = after
        else:
            joined.append(runs[position])
            position += 1
    return joined


def choose_systems(lines: list[str], run: list[int]) -> list[list[int]]:
    """The systems in a group of string lines; where lines are too many, the six that fit best."""
    chosen = []
    while len(run) >= STRINGS:
        starts = range(len(run) % STRINGS + 1)
        windows = [run[start : start + STRINGS] for start in starts]
        best = max(windows, key=lambda six: _agreement([lines[i] for i in six]))
        chosen.append(best)
        run = run[run.index(best[-1]) + 1 :]
    return chosen


def _agreement(six: list[str]) -> float:
    """How much six lines look like one system: shared bar lines, labels, lengths, few gaps."""
    bars = Counter(found.start() for line in six for found in re.finditer(r"\|", line))
    shared = sum(count == STRINGS for count in bars.values())
    names = "".join(label_of(line)[:1].upper() for line in six)
    lengths = Counter(len(line.rstrip()) for line in six)
    full = min(_filled(line) for line in six) / max(lengths)
    return 2 * shared + 5 * (names == "EBGDAE") + max(lengths.values()) + 20 * full


def _filled(line: str) -> int:
    """How many columns of a line are dashes or digits."""
    return sum(line.count(mark) for mark in _DASHES + _DIGITS + "~")


def make_system(lines: list[str], indices: list[int]) -> System:
    """A system from six lines, turned over if the lowest string stands on top."""
    six = [lines[index].expandtabs().rstrip() for index in indices]
    if "".join(label_of(line) for line in six).upper()[1:5] == "ADGB":
        six, indices = six[::-1], indices[::-1]
    rows = [body_of(line) for line in six]
    width = max(len(row) for row in rows)
    rows = _plain_bar_lines([row.ljust(width) for row in rows])
    text = [i for i, marks in enumerate(zip(*rows, strict=True)) if marks.count(" ") > 3]
    rows = tuple(_write(row, text, " ") for row in rows)
    return System(tuple(i + 1 for i in indices), tuple(label_of(line) for line in six), rows)


def _plain_bar_lines(rows: list[str]) -> list[str]:
    """Write ``|`` where most rows have some upright stroke or other."""
    plain = [row.translate(_PLAIN_UPRIGHTS) for row in rows]
    lines = _bar_columns(plain)
    return [
        _write(row, [i for i in lines if other[i] == "|"], "|")
        for row, other in zip(rows, plain, strict=True)
    ]


def _bar_columns(rows: list[str] | tuple[str, ...]) -> list[int]:
    """The columns in which most rows have a bar line."""
    columns = enumerate(zip(*rows, strict=True))
    return [i for i, marks in columns if marks.count("|") > STRINGS // 2]


def _write(row: str, columns: list[int], mark: str) -> str:
    """The row with `mark` in some columns."""
    if all(row[i] == mark for i in columns):
        return row
    marks = list(row)
    for i in columns:
        marks[i] = mark
    return "".join(marks)


def bar_spans(row: str) -> list[tuple[int, int]]:
    """Start and end of every stretch of a row between bar lines."""
    return [found.span() for found in re.finditer(r"[^|]+", row)]


def bars_of(system: System) -> tuple[list[Segments], list[tuple[int, str]]]:
    """The bars of a system as text, and what is wrong with some.

    Returns:
        The bars; and for each line that is not as it should be, its number and what is wrong.
    """
    rows = system.rows
    lines = _bar_columns(rows)
    slipped = [n for n, row in enumerate(rows) if _strays(row, lines)]
    spans = [[s for s in bar_spans(row) if row[slice(*s)].strip()] for row in rows]
    problems = []
    if slipped and len({len(row_spans) for row_spans in spans}) == 1:
        bars = _bar_by_bar(rows, spans)
    else:
        bars = _column_by_column(rows, lines)
        message = "the bar lines of this string are not below the others'; it is read as it stands"
        problems += [(system.numbers[row], message) for row in slipped]
    short = sorted({row for bar in bars for row in _ending_early(bar.rows)})
    message = "this string ends before its bar does; the bar is left out"
    problems += [(system.numbers[row], message) for row in short]
    whole = [bar for bar in bars if _is_music(bar.rows) and not _ending_early(bar.rows)]
    return whole, problems


def _column_by_column(rows: tuple[str, ...], lines: list[int]) -> list[Segments]:
    """Cut a system at the columns of its bar lines."""
    edges = [-1, *lines, len(rows[0])]
    spans = [(a + 1, b) for a, b in zip(edges, edges[1:], strict=False) if b - a > 1]
    return [
        Segments(
            tuple(row[start:end] for row in rows),
            start == 0,
            end == len(rows[0]),
        )
        for start, end in spans
    ]


def _bar_by_bar(rows: tuple[str, ...], spans: list[list[tuple[int, int]]]) -> list[Segments]:
    """Cut each row at its own bar lines, and line the pieces up."""
    bars = [
        line_up(tuple(row[slice(*span)].strip() for row, span in zip(rows, bar, strict=True)))
        for bar in zip(*spans, strict=True)
    ]
    ends = [row.strip() for row in rows]
    open_left = sum(row.startswith("|") for row in ends) <= STRINGS // 2
    open_right = sum(row.endswith("|") for row in ends) <= STRINGS // 2
    last = len(bars) - 1
    return [
        Segments(bar, i == 0 and open_left, i == last and open_right) for i, bar in enumerate(bars)
    ]


def _strays(row: str, lines: list[int]) -> bool:
    """Whether a row has a bar line where most rows have none (doubling a common one is fine)."""
    own = {found.start() for found in re.finditer(r"\|", row)}
    common = own & set(lines)
    doubled = {column + d for column in common for d in (-1, 1)}
    return bool(own - common - doubled)


def _ending_early(bar: tuple[str, ...]) -> list[int]:
    """Rows of a bar that are blank for three columns or more where most other rows go on."""
    blank = [len(segment) - len(segment.rstrip()) for segment in bar]
    usual = sorted(blank)[STRINGS // 2]
    return [row for row, columns in enumerate(blank) if columns > usual + 2]


def _is_music(bar: tuple[str, ...]) -> bool:
    """False for blank stretches and for the dash or two between a label and its bar line."""
    has_fret = any(mark in _DIGITS for segment in bar for mark in segment)
    return has_fret or (len(bar[0]) > 2 and sum(bool(s.strip(" |*:o@.")) for s in bar) > 2)


def line_up(bar: tuple[str, ...]) -> tuple[str, ...]:
    """Make the six segments of a bar equally wide.

    A segment that is too short or too long for the others gets dashes put in or taken out where its
    frets then fall on most columns in which the others have frets; after its last fret if that
    makes no difference.
    """
    width, agreeing = Counter(len(segment) for segment in bar).most_common(1)[0]
    if agreeing == STRINGS:
        return bar
    columns = {found.start() for s in bar if len(s) == width for found in re.finditer(r"[0-9]+", s)}
    return tuple(s if len(s) == width else _stretch(s, width, columns) for s in bar)


def _stretch(segment: str, width: int, columns: set[int]) -> str:
    """The segment made `width` wide at the place that best fits `columns`."""
    missing = width - len(segment)
    if missing > 0:
        choices = [segment[:i] + "-" * missing + segment[i:] for i in _gaps(segment)]
    else:
        choices = [
            segment[:i] + segment[i - missing :]
            for i in range(len(segment) + missing + 1)
            if not set(segment[i : i - missing]) & set(_DIGITS)
        ]
    if not choices:
        return segment[:width]

    def fit(index: int) -> tuple[int, int]:
        starts = [found.start() for found in re.finditer(r"[0-9]+", choices[index])]
        near = sum(start - 1 in columns or start + 1 in columns for start in starts)
        return 2 * sum(start in columns for start in starts) - near, index

    return choices[max(range(len(choices)), key=fit)]


def _gaps(segment: str) -> list[int]:
    """Where dashes can be put in without cutting a number in two."""
    inner = range(1, len(segment))
    return [
        0,
        *(i for i in inner if not set(segment[i - 1 : i + 1]) <= set(_DIGITS)),
        len(segment),
    ]
