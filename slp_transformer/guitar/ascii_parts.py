"""The instruments that the systems of a text are for: strings, tuning, number of the guitar.

Systems of six lines need no labels. Those of four, five, seven or eight lines are taken for basses,
ukuleles and larger guitars where their labels name the strings of one, or of a tuning that the text
states with its octaves.
"""

import itertools
import re
from collections import Counter

from slp_transformer.guitar.ascii_tab import (
    NUM_STRINGS,
    StaffSystem,
    find_bar_line_columns,
    get_string_label,
)
from slp_transformer.guitar.fretboard import STANDARD
from slp_transformer.guitar.tab_header import (
    OpenPitches,
    infer_open_pitches,
    parse_capo,
    parse_tuning,
)
from slp_transformer.guitar.theory import parse_pitch_class

OTHER_INSTRUMENT_TUNINGS: dict[str, OpenPitches] = {
    "bass": (43, 38, 33, 28),
    "ukulele": (69, 64, 60, 67),
    "five-string bass": (43, 38, 33, 28, 23),
    "seven strings": (*STANDARD.open_pitches, 35),
    "eight strings": (*STANDARD.open_pitches, 35, 30),
}
"""Open strings of instruments that have not six, the highest first."""

# In the table of contents of a file that holds several versions of a piece.
_LATER_VERSION_PATTERN = re.compile(
    r"\b(?:2nd|3rd|[4-9]th|second|third) version|\bversion [2-9]", re.I
)
_GUITAR_NAME_PATTERN = re.compile(
    r"^\W*(?:gtr|guitar|guit|gt)\.?\s*#?(?P<number>[1-4]|I{1,3}|IV|[A-D])\b\W*(?:\W.{0,20})?$", re.I
)
_ROMAN_TO_ARABIC = {"i": "1", "ii": "2", "iii": "3", "iv": "4"}

MAX_UNNAMED_GUITARS = 4  # that are looked for where nothing names them

TabPart = tuple[int, list[StaffSystem], OpenPitches | None, int]


def find_guitar_number(lines: list[str]) -> str | None:
    """Return the guitar that the lines above a system name (``Gtr. 2``, ``Guitar II``), or None."""
    found = [found for line in lines if (found := _GUITAR_NAME_PATTERN.match(line[:60]))]
    number = found[-1]["number"].lower() if found else None
    return _ROMAN_TO_ARABIC.get(number, number)


def find_other_tunings(lines: list[str]) -> list[OpenPitches]:
    """The tunings of other than six strings that are known, or that a text states."""
    stated = filter(None, map(parse_tuning, lines))
    other = [pitches for pitches in stated if len(pitches) != NUM_STRINGS]
    return [*dict.fromkeys(other), *OTHER_INSTRUMENT_TUNINGS.values()]


def split_other_systems(
    lines: list[str], indices: list[int], tunings: list[OpenPitches]
) -> list[list[int]]:
    """The systems in a group of string lines, if they all are of one guitar of not six strings."""
    labels = [get_string_label(lines[index]) for index in indices]
    for pitches in tunings:
        size = len(pitches)
        if len(indices) % size == 0 and all(
            _labels_match_tuning(tuple(labels[first : first + size]), pitches)
            for first in range(0, len(indices), size)
        ):
            return [indices[first : first + size] for first in range(0, len(indices), size)]
    return []


def count_stacked_guitars(systems: list[StaffSystem]) -> int:
    """Return how many guitars play at once, where nothing names them; 1 if nothing says so.

    Guitars that play together are close, the next group further down, and their bars end in the
    same columns, group after group, though not everywhere in the same ones: bars that all are of
    one width would agree in any case.
    """
    gaps = [b.first_line_number - max(a.line_numbers) - 1 for a, b in itertools.pairwise(systems)]
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

    Returns:
        For each part the index of its first line of text, its systems, the tuning (None if none is
        stated) and the capo.
    """
    parts: list[TabPart] = []
    current: dict[tuple[str | None, int], TabPart] = {}  # by guitar and strings
    stated, capo, guitar, read_to = None, 0, None, 0
    count = 1 if find_guitar_number(text_lines) else count_stacked_guitars(systems)
    for number, system in enumerate(systems):
        before = stated or STANDARD.open_pitches, capo
        between = text_lines[read_to : system.first_line_number - 1]
        for line in between:
            if parts or not _LATER_VERSION_PATTERN.search(line):
                stated = parse_tuning(line) or stated
                capo = parse_capo(line) or capo
        guitar = find_guitar_number(between) or (str(number % count + 1) if count > 1 else guitar)
        if (stated or STANDARD.open_pitches, capo) != before:
            current = {}
        key = guitar, len(system.rows)
        if key not in current:
            current[key] = (read_to, [], stated, capo)
            parts.append(current[key])
        current[key][1].append(system)
        read_to = system.first_line_number - 1
    return parts


def infer_tuning(systems: list[StaffSystem], stated: OpenPitches | None) -> OpenPitches:
    """Return what most labels say, if that is not standard tuning, or else `stated`.

    Standard labels prove little: many write E in front of a string that the text tunes to D. Labels
    with the names that the text states leave it the octaves, which letters do not tell.
    """
    size = len(systems[0].rows)
    stated = stated if stated is not None and len(stated) == size else None
    names = Counter(system.labels for system in systems if all(system.labels))
    labels = names.most_common(1)[0][0] if names else None
    if size != NUM_STRINGS:
        known = [stated] if stated else []
        known += [pitches for pitches in OTHER_INSTRUMENT_TUNINGS.values() if len(pitches) == size]
        return next(
            pitches for pitches in known if labels is None or _labels_match_tuning(labels, pitches)
        )
    if labels:
        pitches = infer_open_pitches(labels)
        if pitches not in (None, STANDARD.open_pitches) and not (
            stated and _labels_match_tuning(labels, stated)
        ):
            return pitches
    return stated or STANDARD.open_pitches


def _labels_match_tuning(labels: tuple[str, ...], pitches: OpenPitches) -> bool:
    """Return whether the letters in front of some strings are those of a tuning."""
    return len(labels) == len(pitches) and all(
        label and parse_pitch_class(label[0].upper() + label[1:]) == pitch % 12
        for label, pitch in zip(labels, pitches, strict=True)
    )
