"""Systems of ASCII tablature: where they are in a text, their lines, and the guitars they are for.

A *system* is a group of six string lines, one under the other, highest string first. A *column* is
a character position in it. `slp_transformer.guitar.ascii_bars` cuts systems into bars and reads
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
from itertools import groupby, pairwise
from typing import NamedTuple

from slp_transformer.guitar.fretboard import STANDARD
from slp_transformer.guitar.tab import ReadProblem
from slp_transformer.guitar.tab_header import (
    OpenPitches,
    infer_open_pitches,
    parse_capo,
    parse_track,
    parse_tuning,
)
from slp_transformer.guitar.theory import parse_pitch_class

NUM_STRINGS = 6
DIGITS = "0123456789"

# A label in front of a string line, perhaps with a measure number or a bar line before it.
_LABEL_PATTERN = re.compile(
    r"^(?:\s*\d{1,3}\s+)?\s*(?:\|\s*)?([A-Ga-g][#b]?)(?=[-=|:*\s(~\d<\[])\s*"
)
# A name, perhaps a bar line, and hardly any more: the last beat of a bar that a line cut in two.
_SHORT_LINE_PATTERN = re.compile(r"[A-Ga-g][#b]? {0,2}[ |](?=[-0-9hpbx/~]*-)[-0-9hpbx/~]{1,12}\|?")
_MEASURE_NUMBER_PATTERN = re.compile(r"^\s*\d{1,3}\s+(?=\|)")
_STRING_NUMBER_PATTERN = re.compile(r"\s*([1-6])(?=\s*[|:)])")
_WORD_PATTERN = re.compile(r"[^\W\d_]{4,}")
_BARRE_PATTERN = re.compile(r"^[\s\d|{\[(]*[cCbB]?\.?\s?[IVX]+\b")
_DASH_MARKS = "-=\u2013\u2014"
_PLAIN_MARKS = str.maketrans(
    "\u2010\u2011\u2012\u2015\u2212\u2500\u2501\u2502\u2503\u2551\u00a0", "-------||| "
)
_ROW = r"\s*[A-Ga-g][#b]?\s?"  # a label
_WRAPPING_PATTERN = re.compile(r"^(?:>+ ?)+|\[/?tab\]")  # of mail, and of sites
_LABEL_IN_BRACKETS_PATTERN = re.compile(r"^(\s*)\(([A-Ga-g][#b]?)\)(?=\s*\|)")
_COMMENT_PATTERN = re.compile(r"[:*]?(?:\s+(?!-\d)|[(<]|x ?\d)")  # how one begins
_LETTER_PATTERN = re.compile(r"[^\W\d_]")
_LEGEND_PATTERN = re.compile(r"\b(?:hammer|pull|slide|bend|vibrato|mute|harmonic|trill|dead)", re.I)
_OTHER_FILLER_PATTERN = re.compile(_ROW + r"\|(?=.*(?:\.\.|  ))[\s\d|.hpbx/\\~()]*\|\s*")
_TIGHT_ROW_PATTERN = re.compile(_ROW + r"\|(?=.*-)[-\d|hpbrstxX/\\~()<>^]+\|\s*")
_CUT_ROW_PATTERN = re.compile(_ROW + r"\|(?=[^-]*-\s*\S).*(?<=[^|\s])\s*")
_REST_OF_ROW_PATTERN = re.compile(r"[-\d][-\d|hpbrstxX/\\~()<>^]*\|?\s*")
_NUMBERED_LABEL_PATTERN = re.compile(r"^(\s*[A-Ga-g][#b]?)\d(?=\s*[|:])")
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


def get_string_label(line: str) -> str:
    """The string name in front of a string line, or an empty string."""
    found = _LABEL_PATTERN.match(line)
    return found.group(1) if found else ""


def blank_out_label(line: str) -> str:
    """The line with its label and measure number blanked out, so that the columns stay put."""
    found = _LABEL_PATTERN.match(line) or _MEASURE_NUMBER_PATTERN.match(line)
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
        starts = range(first, first + (len(line_indices) - first) % NUM_STRINGS + 1)
        best = max(
            starts,
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
    if all(map(_NUMBERED_LABEL_PATTERN.match, six)):
        six = [_NUMBERED_LABEL_PATTERN.sub(r"\1 ", line) for line in six]
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


# --- Guitars --------------------------------------------------------------------------------------

OTHER_INSTRUMENT_TUNINGS: dict[str, OpenPitches] = {
    "bass": (43, 38, 33, 28),
    "ukulele": (69, 64, 60, 67),
    "mandolin": (76, 69, 62, 55),
    "banjo": (62, 59, 55, 50, 67),
    "five-string bass": (43, 38, 33, 28, 23),
    "seven strings": (*STANDARD.open_pitches, 35),
    "eight strings": (*STANDARD.open_pitches, 35, 30),
}
"""Open strings of instruments that have not six, the highest first."""
SIX_STRING_BASS = (48, 43, 38, 33, 28, 23)
_INSTRUMENT_PATTERN = re.compile(
    r"\W*(?P<name>bass|ukulele|mandolin|banjo)(?:\s+(?:guitar|tab|part))?\W*", re.I
)

# In the table of contents of a file that holds several versions of a piece.
_LATER_VERSION_PATTERN = re.compile(
    r"\b(?:2nd|3rd|[4-9]th|second|third) version|\bversion [2-9]", re.I
)
_GUITAR_NAME_PATTERN = re.compile(
    r"^\W*(?P<name>(?:gtr|guitar|guit|gt)\.?\s*#?(?P<number>[1-4]|I{1,3}|IV|[A-D])\b"
    r"|(?:(?P<part>lead|rhythm|bass|acoustic|electric)(?: (?:guitar|gtr)\.?)?|guitar|gtr)"
    r"(?=:?\W*$))"
    r"\W*(?:\W.{0,20})?$",
    re.I,
)
_ROMAN_TO_ARABIC = {"i": "1", "ii": "2", "iii": "3", "iv": "4"}

MAX_UNNAMED_GUITARS = 4  # that are looked for where nothing names them


class TabPart(NamedTuple):
    """The systems of one guitar in a text.

    Attributes:
        first_line: the index of its first line of text.
        systems: its systems.
        tuning: None if none is stated.
        capo: the fret of its capo.
        name: what the text calls the guitar, or empty.
    """

    first_line: int
    systems: list[StaffSystem]
    tuning: OpenPitches | None
    capo: int
    name: str


def _guitar_names(lines: list[str]) -> dict[str, str]:
    """The guitars that lines of text name (``Gtr. 2``, ``Guitar II``, ``Lead:``), by a short key.

    Parts are guitars only next to others: a lead on its own is a passage.
    """
    names = {}
    for line in lines:
        if found := _GUITAR_NAME_PATTERN.match(line[:60]):
            key = str(found["number"] or found["part"] or "guitar").lower()
            names[_ROMAN_TO_ARABIC.get(key, key)] = found["name"].strip()
    return names


def find_other_tunings(lines: list[str]) -> list[OpenPitches]:
    """The tunings of other than six strings that are known, or that a text states or names first.

    A mandolin counts only if it is named: its strings are those of a bass, from the other side.
    """
    stated = [pitches for line in lines if (pitches := parse_tuning(line))]
    named = [
        found["name"].lower()
        for line in lines
        if (found := _INSTRUMENT_PATTERN.fullmatch(line[:60]))
    ]
    known = [name for name in OTHER_INSTRUMENT_TUNINGS if name not in (*named, "mandolin")]
    first = [pitches for pitches in stated if len(pitches) != NUM_STRINGS]
    return list(dict.fromkeys(first + [OTHER_INSTRUMENT_TUNINGS[name] for name in named + known]))


def split_other_systems(
    lines: list[str], indices: list[int], tunings: list[OpenPitches]
) -> list[list[int]]:
    """The systems in a group of string lines, if they all are of one guitar of not six strings.

    Rows without labels are, if the line above names the instrument. The lower rows of a guitar
    below a row that cannot be read are not a bass.
    """
    labels = [get_string_label(lines[index]) for index in indices]
    before = lines[max(0, indices[0] - 2) : indices[0]]
    named = before and _INSTRUMENT_PATTERN.fullmatch(before[-1][:60])
    if before and before[-1].strip() and not named and any(map(_LABEL_PATTERN.match, before)):
        return []
    for pitches in tunings:
        size = len(pitches)
        starts = range(0, len(indices), size)
        here = [tuple(labels[first : first + size]) for first in starts]
        bare = named and not any(labels) and pitches == tunings[0]
        if len(indices) % size == 0 and (bare or all(_fit_tuning(h, pitches) for h in here)):
            return [indices[first : first + size] for first in starts]
    return []


def _fit_tuning(labels: tuple[str, ...], pitches: OpenPitches) -> OpenPitches | None:
    """Return a tuning with the letters of these labels: moved as a whole, the lowest also alone."""
    if len(labels) != len(pitches) or not all(labels):
        return None
    wanted = [parse_pitch_class(label[0].upper() + label[1:]) for label in labels]
    shifts = [(a - b + 6) % 12 - 6 for a, b in zip(wanted, pitches, strict=True)]
    low = shifts[-1] - shifts[0]
    if len(set(shifts[:-1])) > 1 or not -4 <= shifts[0] <= 0 or not -2 <= low <= 0:
        return None
    return tuple(pitch + shift for pitch, shift in zip(pitches, shifts, strict=True))


def count_stacked_guitars(systems: list[StaffSystem]) -> int:
    """Return how many guitars play at once, where nothing names them; 1 if nothing says so.

    Guitars that play together are close, the next group further down, and their bars end in the
    same columns, group after group, though not everywhere in the same ones: bars that all are of
    one width would agree in any case.
    """
    gaps = [b.first_line_number - max(a.line_numbers) - 1 for a, b in pairwise(systems)]
    for count in range(2, MAX_UNNAMED_GUITARS + 1):
        groups = [systems[i : i + count] for i in range(0, len(systems), count)]
        within = {gap for i, gap in enumerate(gaps) if (i + 1) % count}
        between = gaps[count - 1 :: count]
        if (
            len(groups) > 1
            and len(groups[-1]) == count
            and within in ({0}, {1})
            and min(between) > max(within)
            and all(
                len({tuple(find_bar_line_columns(s.rows)) for s in group}) == 1 for group in groups
            )
            and len({tuple(find_bar_line_columns(group[0].rows)) for group in groups}) > 1
        ):
            return count
    return 1


def split_by_guitar(text_lines: list[str], systems: list[StaffSystem]) -> list[TabPart]:
    """Split the systems of a text by guitar, and where another tuning or capo is stated.

    Args:
        text_lines: the text, with nothing where strings are.
        systems: its systems.
    """
    parts: list[TabPart] = []
    current: dict[tuple[str, int], TabPart] = {}  # by guitar and strings
    stated, capo, guitar, read_to = None, 0, "", 0
    names = _guitar_names(text_lines)
    names = names if len(names) > 1 or any(key.isdigit() for key in names) else {}
    count = 1 if names else count_stacked_guitars(systems)
    for number, system in enumerate(systems):
        before = stated or STANDARD.open_pitches, capo
        between = text_lines[read_to : system.first_line_number - 1]
        for line in between:
            if name := parse_track(line):
                stated, capo, guitar, current = None, 0, name, {}
            elif parts or not _LATER_VERSION_PATTERN.search(line):
                stated = parse_tuning(line) or stated
                capo = parse_capo(line) or capo
        named = [key for key in _guitar_names(between) if key in names]
        guitar = named[-1] if named else str(number % count + 1) if count > 1 else guitar
        if (stated or STANDARD.open_pitches, capo) != before:
            current = {}
        key = guitar, len(system.rows)
        if key not in current:
            current[key] = TabPart(read_to, [], stated, capo, names.get(guitar, ""))
            parts.append(current[key])
        current[key].systems.append(system)
        read_to = system.first_line_number - 1
    return parts


def infer_tuning(part: TabPart, tunings: list[OpenPitches]) -> OpenPitches:
    """Return what most labels say, if that is not standard tuning, or else what is stated.

    Standard labels prove little: many write E in front of a string that the text tunes to D. Labels
    with the names that the text states leave it the octaves, which letters do not tell.

    Args:
        part: the systems of one guitar.
        tunings: as `find_other_tunings` returns them.
    """
    size, stated = len(part.systems[0].rows), part.tuning
    stated = stated if stated is not None and len(stated) == size else None
    names = Counter(system.labels for system in part.systems if all(system.labels))
    labels = names.most_common(1)[0][0] if names else ()
    if stated and _fit_tuning(labels, stated) == stated:
        return stated
    if size != NUM_STRINGS:
        known = [stated] if stated else []
        known += [pitches for pitches in tunings if len(pitches) == size]
        pitches = next(filter(None, (_fit_tuning(labels, each) for each in known)), known[0])
        if part.tuning and not stated and pitches in known:  # "half a step down", of a bass
            moved, low = (part.tuning[i] - STANDARD.open_pitches[i] for i in (1, -1))
            ends = [low if pitches[-1] % 12 == STANDARD.open_pitches[-1] % 12 else moved]
            shifts = [moved] * (size - 1) + ends
            return tuple(pitch + shift for pitch, shift in zip(pitches, shifts, strict=True))
        return pitches
    if "".join(labels) == "CGDAEB":
        return SIX_STRING_BASS
    inferred = infer_open_pitches(labels[::-1]) if labels else None
    if inferred not in (None, STANDARD.open_pitches):
        return inferred
    return stated or STANDARD.open_pitches


# --- The systems of a text ------------------------------------------------------------------------


def find_all_systems(
    lines: list[str], source: str, tunings: list[OpenPitches]
) -> tuple[list[StaffSystem], list[ReadProblem]]:
    """Every system of a text, and the string lines that belong to none."""
    systems, problems = [], []
    for run in group_string_lines(lines):
        chosen = split_other_systems(lines, run, tunings) or split_group_into_systems(lines, run)
        systems += [build_system(lines, six) for six in chosen]
        used = {index for six in chosen for index in six}
        for is_used, group in groupby(run, key=used.__contains__):
            left_out = list(group)
            if is_used:
                continue
            if chosen and len(left_out) == 1 and _is_seventh_string_line(lines, left_out[0]):
                message = "a string line too many for six strings, with frets; it is left out"
                problems.append(ReadProblem(source, left_out[0] + 1, message))
            elif _is_broken_system([lines[i] for i in left_out], complete_systems=not chosen):
                message = f"{len(left_out)} string lines where a system has six; they are left out"
                problems.append(ReadProblem(source, left_out[0] + 1, message))
    return systems, problems


def _is_seventh_string_line(lines: list[str], line_index: int) -> bool:
    """Return whether a line next to a system is a string: fretted, with a label or bar lines."""
    line = lines[line_index]
    if is_barre_mark(line) or not re.search(r"[-=|~][0-9]", line):
        return False
    bars = [found.start() for found in re.finditer(r"\|", line)]
    adjacent = lines[max(0, line_index - 1) : line_index] + lines[line_index + 1 : line_index + 2]
    same = any(bars == [f.start() for f in re.finditer(r"\|", other)] for other in adjacent)
    return bool(get_string_label(line)) or (len(bars) > 1 and same)


def _is_broken_system(lines: list[str], complete_systems: bool) -> bool:
    """Return whether lines in no system were meant as strings: enough of them, with frets."""
    strings = [line for line in lines if not is_barre_mark(line)]
    fretted = sum(bool(re.search(r"[-=|~][0-9]", line)) for line in strings)
    return len(strings) >= (3 if complete_systems else 2) and fretted > 0
