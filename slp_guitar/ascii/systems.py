"""Systems of ASCII tablature: where they are in a text, their lines, and the guitars they are for.

A *system* is a group of six string lines, one under the other, highest string first. A *column* is
a character position in it. `slp_guitar.ascii.bars` cuts systems into bars and reads
their notes.

- **String lines.** A line is a string line when most of it is dashes, frets and bar lines. Six in a
  row make a system. From a longer run the six are chosen whose labels and bar lines agree best (a
  barre mark such as ``CVII-------`` is often right above).
- **Text.** Where fewer than three of the six lines reach, there is text (``x2``, ``D.C.``, the
  number of a measure), not music.
- **Other instruments.** Systems of six lines need no labels. Those of four, five, seven or eight
  lines are taken for basses, ukuleles and larger guitars where their labels name the strings of
  one, or of a tuning that the text states with its octaves.
"""

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

NUM_STRINGS = 6
DIGITS = "0123456789"

# A label in front of a string line, perhaps with a measure number or a bar line before it.
LABEL_PATTERN = re.compile(
    r"^(?:\s*\d{1,3}\s+)?\s*(?:\|\s*)?([A-Ga-g][#b]?)(?=[-=|:*\s(~\d<\[])\s*"
)
# A name, perhaps a bar line, and hardly any more: the last beat of a bar that a line cut in two.
_SHORT_LINE_PATTERN = re.compile(
    r"[A-Ga-g][#b]? {0,2}[ |](?:-\|)?(?=[-0-9hpbx/~]*-|\d+b)[-0-9hpbx/~]{1,12}\|?"
)
_MEASURE_NUMBER_PATTERN = re.compile(r"^\s*\d{1,3}\s+(?=\|)")
_STRING_NUMBER_PATTERN = re.compile(r"\s*([1-6])(?=\s*[|:)])")
_WORD_PATTERN = re.compile(r"[^\W\d_]{4,}")
_BARRE_PATTERN = re.compile(r"^[\s\d|{\[(]*[cCbB]?\.?\s?[IVX]+\b")
_DASH_MARKS = "-=\u2013\u2014"
_PLAIN_MARKS = str.maketrans(
    "\u2010\u2011\u2012\u2015\u2212\u2500\u2501\u2502\u2503\u2551\u00a0", "-------||| "
)
_ROW = r"\s*[A-Ga-g][#b]?\s?"  # a label
# Of mail, and of sites.
_WRAPPING_PATTERN = re.compile(r"^(?:>+ ?)+|\[/?tab\]|</?(?:pre|tt|code|p|br|span|div)\b[^<>]*>")
_NAME_BEFORE_ROW_PATTERN = re.compile(r"^[^\W\d_][\w ]{1,20}:\s*(?=[eE]\|[-\d])")  # Intro: e|--
_LABEL_IN_BRACKETS_PATTERN = re.compile(r"^(\s*)\(([A-Ga-g][#b]?)\)(?=\s*\|)")
_COMMENT_PATTERN = re.compile(r"[:*]?(?:\s+(?!-\d)|[(<]|x ?\d)")  # how one begins
_LETTER_PATTERN = re.compile(r"[^\W\d_]")
_LEGEND_PATTERN = re.compile(r"\b(?:hammer|pull|slide|bend|vibrato|mute|harmonic|trill|dead)", re.I)
_OTHER_FILLER_PATTERN = re.compile(_ROW + r"\|(?=.*(?:\.\.|  ))[\s\d|.hpbx/\\~()]*\|\s*")
_TIGHT_ROW_PATTERN = re.compile(_ROW + r"\|(?=.*-)[-\d|hpbrstxX/\\~()<>^]+\|\s*")
_CUT_ROW_PATTERN = re.compile(_ROW + r"\|(?=[^-]*-\s*\S).*(?<=[^|\s])\s*")
_REST_OF_ROW_PATTERN = re.compile(r"[-\d][-\d|hpbrstxX/\\~()<>^]*\|?\s*")
_NUMBEREDLABEL_PATTERN = re.compile(r"^(\s*[A-Ga-g][#b]?)\d(?=\s*[|:])")
_STAFF_PATTERN = re.compile(r"[-=~|0-9\u2013\u2014]+")
_BAR_LINE_MARKS = "|I[]!\u00a6"
_BAR_LINE_TRANSLATION = str.maketrans(dict.fromkeys(_BAR_LINE_MARKS, "|"))
_REMOVE_DASHES = str.maketrans("", "", _DASH_MARKS + DIGITS + "~")
_REMOVE_STAFF_MARKS = str.maketrans("", "", _DASH_MARKS + DIGITS + "~_" + _BAR_LINE_MARKS)


@dataclass(frozen=True)
class StaffSystem:
    """String lines of a text one under the other, six unless labels say otherwise.

    Attributes:
        line_numbers: the number of each line in the file, from 1.
        labels: the label in front of each line (``"E"``, ``"F#"``), or empty.
        rows: the lines, highest string first, labels and measure numbers blanked out.
        overlong_rows: the rows that go on, with frets, where most others have ended.
    """

    line_numbers: tuple[int, ...]
    labels: tuple[str, ...]
    rows: tuple[str, ...]
    overlong_rows: tuple[int, ...] = ()

    @property
    def first_line_number(self) -> int:
        """Number of its first line in the file."""
        return min(self.line_numbers)


def tidy_lines(lines: list[str]) -> list[str]:
    """Return the lines of a text as most people would have typed them, each in its place.

    Marks of mail and of sites around a row go, and so do a comment behind it, and rows of a legend.
    Other strokes, dots and spaces for strings become dashes. Where all rows of a system were
    wrapped, they are whole again.
    """
    tidy = []
    for line in lines:
        line = _WRAPPING_PATTERN.sub("", line.translate(_PLAIN_MARKS))
        line = _NAME_BEFORE_ROW_PATTERN.sub("", line)
        line = _LABEL_IN_BRACKETS_PATTERN.sub(r"\1\2", line)
        if _OTHER_FILLER_PATTERN.fullmatch(line) and "-" not in line:
            start = line.index("|")
            line = line[:start] + re.sub("[ .]", "-", line[start:].rstrip())
        if "~" in line and not any(dash in line for dash in _DASH_MARKS) and is_string_line(line):
            line = line.replace("~", "-")
        row, bar_line, behind = line.rpartition("|")
        row += bar_line
        if row and is_comment(behind) and is_string_line(row):
            explained = not get_string_label(line) and _LEGEND_PATTERN.search(behind)
            line = "" if explained else row
        tidy.append(line)
    for start in range(len(tidy) - 2 * NUM_STRINGS + 1):
        firsts, rests = (tidy[start + i : start + 2 * NUM_STRINGS : 2] for i in (0, 1))
        if all(map(_CUT_ROW_PATTERN.fullmatch, firsts)) and all(
            map(_REST_OF_ROW_PATTERN.fullmatch, rests)
        ):
            whole = [first.rstrip() + rest for first, rest in zip(firsts, rests, strict=True)]
            tidy[start : start + 2 * NUM_STRINGS] = [*whole, *[""] * NUM_STRINGS]
    return tidy


def is_comment(text: str) -> bool:
    """Return whether what stands behind the last bar line of a row is a comment."""
    begins = _COMMENT_PATTERN.match(text) and "--" not in text
    return bool(begins and _LETTER_PATTERN.search(text))


@lru_cache(maxsize=20_000)
def get_string_label(line: str) -> str:
    """The string name in front of a string line, or an empty string."""
    found = LABEL_PATTERN.match(line)
    return found.group(1) if found else ""


def blank_out_label(line: str) -> str:
    """The line with its label and measure number blanked out, so that the columns stay put."""
    found = LABEL_PATTERN.match(line) or _MEASURE_NUMBER_PATTERN.match(line)
    return " " * found.end() + line[found.end() :] if found else line


@lru_cache(maxsize=20_000)
def is_string_line(line: str) -> bool:
    """Return whether a line of text looks like one string of a system."""
    if _SHORT_LINE_PATTERN.fullmatch(line) or _TIGHT_ROW_PATTERN.fullmatch(line):
        return True
    body = blank_out_label(line).strip()
    marks = "".join(body.split())
    dashes = sum(marks.count(dash) for dash in _DASH_MARKS)
    dashes += marks.count("_") if get_string_label(line) else 0
    dashes += marks.count("~") if len(marks) > 0.8 * len(body) else 0
    if "|" not in body and len(marks) < 0.7 * len(body):
        return False
    known = len(marks) - len(marks.translate(_REMOVE_STAFF_MARKS))
    return dashes >= 3 and known >= 0.6 * len(marks) and len(_WORD_PATTERN.findall(marks)) < 2


def is_barre_mark(line: str) -> bool:
    """Return whether a line of dashes is a barre mark, such as ``CVII-------``."""
    return bool(_BARRE_PATTERN.match(line))


def group_string_lines(lines: list[str]) -> list[list[int]]:
    """Return where the string lines are: indices of lines, one list for each group.

    Lines next to each other are a group. Groups that only blank lines part are one group if they
    are six lines together (some tabs are printed with a gap).
    """
    found = groupby(range(len(lines)), key=lambda index: is_string_line(lines[index]))
    groups = [list(group) for is_string, group in found if is_string]
    joined: list[list[int]] = []
    start = 0
    while start < len(groups):
        group, end = list(groups[start]), start + 1
        while len(group) < NUM_STRINGS and end < len(groups):
            between = lines[group[-1] + 1 : groups[end][0]]
            if len(between) > 2 or any(line.strip() for line in between):
                break
            group += groups[end]
            end += 1
        is_system = len(group) == NUM_STRINGS
        joined.append(group if is_system else groups[start])
        start = end if is_system else start + 1
    return joined


def split_group_into_systems(lines: list[str], line_indices: list[int]) -> list[list[int]]:
    """The systems in a group of string lines; where lines are too many, the six that fit best."""
    chosen, first = [], 0
    while len(line_indices) - first >= NUM_STRINGS:
        best = max(
            range(first, first + (len(line_indices) - first) % NUM_STRINGS + 1),
            key=lambda start: _system_score(
                [lines[i] for i in line_indices[start : start + NUM_STRINGS]]
            ),
        )
        chosen.append(line_indices[best : best + NUM_STRINGS])
        first = best + NUM_STRINGS
    return chosen


def _system_score(string_lines: list[str]) -> float:
    """Score six lines as one system by shared bar lines, labels, lengths and gaps."""
    bars = Counter(found.start() for line in string_lines for found in re.finditer(r"\|", line))
    shared = sum(count == NUM_STRINGS for count in bars.values())
    names = "".join(get_string_label(line)[:1].upper() for line in string_lines)
    lengths = Counter(len(line.rstrip()) for line in string_lines)
    marks = [len(line) - len(line.translate(_REMOVE_DASHES)) for line in string_lines]
    full = min(marks) / max(lengths)
    return 2 * shared + 5 * (names == "EBGDAE") + max(lengths.values()) + 20 * full


def build_system(lines: list[str], line_indices: list[int]) -> StaffSystem:
    """A system from its lines, reversed if the lowest string is on top."""
    six = [lines[index].expandtabs().rstrip() for index in line_indices]
    if len(six) == NUM_STRINGS and "".join(map(get_string_label, six)).upper()[1:5] == "ADGB":
        six, line_indices = six[::-1], line_indices[::-1]
    numbers = "".join(found[1] for line in six if (found := _STRING_NUMBER_PATTERN.match(line)))
    if numbers in ("123456", "654321"):
        six = [_STRING_NUMBER_PATTERN.sub(" ", line) for line in six]
        if numbers == "654321":
            six, line_indices = six[::-1], line_indices[::-1]
    if all(map(_NUMBEREDLABEL_PATTERN.match, six)):
        six = [_NUMBEREDLABEL_PATTERN.sub(r"\1 ", line) for line in six]
    six = _align_labels(six)
    width = max(map(len, six))
    rows = _normalize_bar_lines([blank_out_label(line).ljust(width) for line in six])
    # A column that names the strings, as where two systems are side by side.
    again = [i for i, six in enumerate(zip(*rows, strict=True)) if "".join(six).upper() == "EBGDAE"]
    rows = [_overwrite_columns(row, again, " ") for row in rows]
    columns = enumerate(zip(*rows, strict=True))
    text = [i for i, marks in columns if 2 * marks.count(" ") > len(rows)]
    end = width - next((n for n, i in enumerate(reversed(text)) if i != width - 1 - n), len(text))
    ends = [_find_row_end(row, end) for row in rows]
    beyond = tuple(n for n, drawn in enumerate(ends) if drawn > end)
    cleared = tuple(
        _overwrite_columns(row, [i for i in text if not end <= i < drawn], " ")
        for row, drawn in zip(rows, ends, strict=True)
    )
    labels = tuple(get_string_label(line) for line in six)
    return StaffSystem(tuple(i + 1 for i in line_indices), labels, cleared, beyond)


def _align_labels(lines: list[str]) -> list[str]:
    """Return lines whose strings begin in one column, where names of two letters shift some.

    With bar lines it shows; without, the strings are equally long behind their names.
    """
    found = [LABEL_PATTERN.match(line) for line in lines]
    if any("|" in line for line in lines) or not all(found):
        return lines
    starts = [label.end() for label in found if label]
    behind = {len(line) - start for line, start in zip(lines, starts, strict=True)}
    if len(behind) > 1 or len(set(starts)) == 1:
        return lines
    widest = max(starts)
    pairs = zip(lines, starts, strict=True)
    return [line[:start] + " " * (widest - start) + line[start:] for line, start in pairs]


def _find_row_end(row: str, common_end: int) -> int:
    """Return the end of a string that is still drawn, with frets, after the others end."""
    rest = _STAFF_PATTERN.match(row, common_end)
    if rest is None or row[max(0, common_end - 1)] not in _DASH_MARKS + DIGITS:
        return common_end
    return rest.end() if set(rest.group()) & set(DIGITS) else common_end


def _normalize_bar_lines(rows: list[str]) -> list[str]:
    """Write ``|`` where most rows have some upright stroke or other."""
    plain = [row.translate(_BAR_LINE_TRANSLATION) for row in rows]
    lines = find_bar_line_columns(plain)
    return [
        _overwrite_columns(row, [i for i in lines if other[i] == "|"], "|")
        for row, other in zip(rows, plain, strict=True)
    ]


def find_bar_line_columns(rows: list[str] | tuple[str, ...]) -> list[int]:
    """The columns in which most rows have a bar line."""
    columns = enumerate(zip(*rows, strict=True))
    return [i for i, marks in columns if 2 * marks.count("|") > len(rows)]


def _overwrite_columns(row: str, columns: list[int], mark: str) -> str:
    """The row with `mark` in some columns."""
    marks = list(row)
    for i in columns:
        marks[i] = mark
    return "".join(marks)
