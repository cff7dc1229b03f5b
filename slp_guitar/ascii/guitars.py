"""The guitars of a text: which systems are of which, and how each is tuned."""

import re
from collections import Counter
from itertools import groupby, pairwise
from typing import NamedTuple

from slp_guitar.ascii.systems import (
    LABEL_PATTERN,
    NUM_STRINGS,
    StaffSystem,
    build_system,
    find_bar_line_columns,
    get_string_label,
    group_string_lines,
    is_barre_mark,
    split_group_into_systems,
)
from slp_guitar.fretboard import NAMED_TUNINGS, STANDARD
from slp_guitar.tab import ReadProblem
from slp_guitar.tab_header import (
    OpenPitches,
    infer_open_pitches,
    parse_capo,
    parse_track,
    parse_tuning,
)
from slp_guitar.theory import parse_pitch_class

OTHER_INSTRUMENT_TUNINGS: dict[str, OpenPitches] = {
    name: NAMED_TUNINGS[name].open_pitches
    for name in "bass ukulele mandolin banjo bass-5 seven-string eight-string".split()
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


def _find_guitar_names(lines: list[str]) -> dict[str, str]:
    """The guitars that lines of text name (``Gtr. 2``, ``Guitar II``, ``Lead:``), by a short key.

    Parts are guitars only next to others: a lead on its own is a passage.
    """
    names = {}
    for line in lines:
        if found := _GUITAR_NAME_PATTERN.match(line[:60]):
            key = str(found["number"] or found["part"] or "guitar").lower()
            names[_ROMAN_TO_ARABIC.get(key, key)] = found["name"].strip()
    return names


def names_guitar(line: str) -> bool:
    """Return whether a line names a guitar, or another instrument with strings."""
    return bool(_find_guitar_names([line]) or _INSTRUMENT_PATTERN.fullmatch(line[:60]))


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

    Rows without labels are, if the line above names the instrument; lines without labels and frets
    between others that have labels (``PM-----|``) are no rows. The lower rows of a guitar below a
    row that cannot be read are not a bass.
    """
    if any(get_string_label(lines[index]) for index in indices):
        indices = [n for n in indices if get_string_label(lines[n]) or _has_fret(lines[n])]
    labels = [get_string_label(lines[index]) for index in indices]
    before = lines[max(0, indices[0] - 2) : indices[0]]
    named = before and _INSTRUMENT_PATTERN.fullmatch(before[-1][:60])
    if before and before[-1].strip() and not named and any(map(LABEL_PATTERN.match, before)):
        return []
    for pitches in tunings:
        size = len(pitches)
        starts = range(0, len(indices), size)
        here = [tuple(labels[first : first + size]) for first in starts]
        bare = named and not any(labels) and pitches == tunings[0]
        if len(indices) % size == 0 and (
            bare or all(_fit_tuning_to_labels(h, pitches) for h in here)
        ):
            return [indices[first : first + size] for first in starts]
    return []


def _fit_tuning_to_labels(labels: tuple[str, ...], pitches: OpenPitches) -> OpenPitches | None:
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
    names = _find_guitar_names(text_lines)
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
        named = [key for key in _find_guitar_names(between) if key in names]
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
    if stated and _fit_tuning_to_labels(labels, stated) == stated:
        return stated
    if size != NUM_STRINGS:
        known = [stated] if stated else []
        known += [pitches for pitches in tunings if len(pitches) == size]
        pitches = next(
            filter(None, (_fit_tuning_to_labels(labels, each) for each in known)), known[0]
        )
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
            elif _were_meant_as_strings([lines[i] for i in left_out], complete_systems=not chosen):
                message = f"{len(left_out)} string lines where a system has six; they are left out"
                problems.append(ReadProblem(source, left_out[0] + 1, message))
    return systems, problems


def _is_seventh_string_line(lines: list[str], line_index: int) -> bool:
    """Return whether a line next to a system is a string: fretted, with a label or bar lines."""
    line = lines[line_index]
    if is_barre_mark(line) or not _has_fret(line):
        return False
    bars = [found.start() for found in re.finditer(r"\|", line)]
    adjacent = lines[max(0, line_index - 1) : line_index] + lines[line_index + 1 : line_index + 2]
    same = any(bars == [f.start() for f in re.finditer(r"\|", other)] for other in adjacent)
    return bool(get_string_label(line)) or (len(bars) > 1 and same)


def _were_meant_as_strings(lines: list[str], complete_systems: bool) -> bool:
    """Return whether lines in no system were meant as strings: enough of them, with frets."""
    strings = [line for line in lines if not is_barre_mark(line)]
    fretted = sum(map(_has_fret, strings))
    return len(strings) >= (3 if complete_systems else 2) and fretted > 0


def _has_fret(line: str) -> bool:
    """Return whether a string line has a fret on it."""
    return bool(re.search(r"[-=|~][0-9]", line))
