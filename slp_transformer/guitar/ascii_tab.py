"""Systems of ASCII tablature: where they are in a text, and what their lines are.

A *system* is a group of six string lines, one under the other, highest string first. A *column* is
a character position in it. `guitar.ascii_reader` reads a file with the parts in here and
in `slp_transformer.guitar.ascii_bars`, which cuts systems into bars, and
`slp_transformer.guitar.ascii_frets`, which reads their notes.

- **String lines.** A line is a string line when most of it is dashes, frets and bar lines. Six in a
  row make a system. From a longer run the six are chosen whose labels and bar lines agree best (a
  barre mark such as ``CVII-------`` often stands right above).
- **Text.** Where fewer than three of the six lines reach, there is text (``x2``, ``D.C.``, the
  number of a measure), not music.
"""

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from slp_transformer.guitar.ascii_realign import DIGITS

STRINGS = 6

# A label in front of a string line, perhaps with a measure number or a bar line before it.
_LABEL = re.compile(r"^(?:\s*\d{1,3}\s+)?\s*(?:\|\s*)?([A-Ga-g][#b]?)(?=[-=|:*\s(~\d<\[])\s*")
# A name, perhaps a bar line, and hardly any more: the last beat of a bar that a line cut in two.
_SHORT = re.compile(r"[A-Ga-g][#b]? {0,2}[ |](?=[-0-9hpbx/~]*-)[-0-9hpbx/~]{1,12}\|?")
_MEASURE_NUMBER = re.compile(r"^\s*\d{1,3}\s+(?=\|)")
_WORD = re.compile(r"[^\W\d_]{4,}")
_BARRE = re.compile(r"^[\s\d|{\[(]*[cCbB]?\.?\s?[IVX]+\b")
_DASHES = "-=\u2013\u2014"
_STAVE = re.compile(r"[-=~|0-9\u2013\u2014]+")
_UPRIGHTS = "|I[]!\u00a6"
_PLAIN_UPRIGHTS = str.maketrans(dict.fromkeys(_UPRIGHTS, "|"))
_WITHOUT_STAVE = str.maketrans("", "", _DASHES + DIGITS + "~_" + _UPRIGHTS)


@dataclass(frozen=True)
class System:
    """String lines of a text that stand one under the other, six unless labels say otherwise.

    Attributes:
        numbers: the number of each line in the file, from 1.
        labels: what stands in front of each line (``"E"``, ``"F#"``), empty where nothing does.
        rows: the lines, highest string first, labels and measure numbers blanked out.
        beyond: the rows that go on, with frets, where most others have ended.
    """

    numbers: tuple[int, ...]
    labels: tuple[str, ...]
    rows: tuple[str, ...]
    beyond: tuple[int, ...] = ()

    @property
    def line(self) -> int:
        """Number of its first line in the file."""
        return min(self.numbers)


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
    if _SHORT.fullmatch(line):
        return True
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
    chosen, first = [], 0
    while len(run) - first >= STRINGS:
        starts = range(first, first + (len(run) - first) % STRINGS + 1)
        best = max(
            starts, key=lambda start: _agreement([lines[i] for i in run[start : start + STRINGS]])
        )
        chosen.append(run[best : best + STRINGS])
        first = best + STRINGS
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
    return sum(line.count(mark) for mark in _DASHES + DIGITS + "~")


def make_system(lines: list[str], indices: list[int]) -> System:
    """A system from its lines, turned over if the lowest string stands on top."""
    six = [lines[index].expandtabs().rstrip() for index in indices]
    if len(six) == STRINGS and "".join(map(label_of, six)).upper()[1:5] == "ADGB":
        six, indices = six[::-1], indices[::-1]
    rows = [body_of(line) for line in six]
    width = max(len(row) for row in rows)
    rows = _plain_bar_lines([row.ljust(width) for row in rows])
    text = [
        i for i, marks in enumerate(zip(*rows, strict=True)) if 2 * marks.count(" ") > len(rows)
    ]
    end = width - next((n for n, i in enumerate(reversed(text)) if i != width - 1 - n), len(text))
    ends = [_drawn_to(row, end) for row in rows]
    beyond = tuple(n for n, drawn in enumerate(ends) if drawn > end)
    rows = tuple(
        _write(row, [i for i in text if not end <= i < drawn], " ")
        for row, drawn in zip(rows, ends, strict=True)
    )
    labels = tuple(label_of(line) for line in six)
    return System(tuple(i + 1 for i in indices), labels, rows, beyond)


def _drawn_to(row: str, end: int) -> int:
    """Where a string ends that is still drawn, with frets, after the end of the others."""
    rest = _STAVE.match(row, end)
    drawn = rest is not None and row[max(0, end - 1)] in _DASHES + DIGITS
    return rest.end() if drawn and set(rest.group()) & set(DIGITS) else end


def _plain_bar_lines(rows: list[str]) -> list[str]:
    """Write ``|`` where most rows have some upright stroke or other."""
    plain = [row.translate(_PLAIN_UPRIGHTS) for row in rows]
    lines = bar_columns(plain)
    return [
        _write(row, [i for i in lines if other[i] == "|"], "|")
        for row, other in zip(rows, plain, strict=True)
    ]


def bar_columns(rows: list[str] | tuple[str, ...]) -> list[int]:
    """The columns in which most rows have a bar line."""
    columns = enumerate(zip(*rows, strict=True))
    return [i for i, marks in columns if 2 * marks.count("|") > len(rows)]


def _write(row: str, columns: list[int], mark: str) -> str:
    """The row with `mark` in some columns."""
    if all(row[i] == mark for i in columns):
        return row
    marks = list(row)
    for i in columns:
        marks[i] = mark
    return "".join(marks)
