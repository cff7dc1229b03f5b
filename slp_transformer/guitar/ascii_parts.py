"""What instruments the systems of a text are for: how many strings, which tuning, which guitar.

Systems of six lines need no labels. Those of four, five, seven or eight lines are taken for basses,
ukuleles and larger guitars where their labels name the strings of one, or of a tuning that the text
states with its octaves.
"""

import itertools
import re
from collections import Counter

from slp_transformer.guitar.ascii_tab import STRINGS, System, bar_columns, label_of
from slp_transformer.guitar.fretboard import STANDARD
from slp_transformer.guitar.tab_header import (
    Pitches,
    stated_capo,
    stated_tuning,
    tuning_from_names,
)
from slp_transformer.guitar.theory import pitch_class

INSTRUMENTS: dict[str, Pitches] = {
    "bass": (43, 38, 33, 28),
    "ukulele": (69, 64, 60, 67),
    "five-string bass": (43, 38, 33, 28, 23),
    "seven strings": (*STANDARD.open_pitches, 35),
    "eight strings": (*STANDARD.open_pitches, 35, 30),
}
"""Open strings of instruments that have not six, the highest first."""

# In the table of contents of a file that holds several versions of a piece.
_LATER_VERSION = re.compile(r"\b(?:2nd|3rd|[4-9]th|second|third) version|\bversion [2-9]", re.I)
_GUITAR = re.compile(
    r"^\W*(?:gtr|guitar|guit|gt)\.?\s*#?(?P<number>[1-4]|I{1,3}|IV|[A-D])\b\W*(?:\W.{0,20})?$", re.I
)
_NUMBERS = {"i": "1", "ii": "2", "iii": "3", "iv": "4"}

MOST_GUITARS = 4  # that are looked for where nothing names them

Part = tuple[int, list[System], Pitches | None, int]


def guitar_named(lines: list[str]) -> str | None:
    """Which guitar the lines above a system name, as ``Gtr. 2`` or ``Guitar II``; None for none."""
    found = [found for line in lines if (found := _GUITAR.match(line[:60]))]
    number = found[-1]["number"].lower() if found else None
    return _NUMBERS.get(number, number)


def stated_guitars(lines: list[str]) -> list[Pitches]:
    """The tunings of other than six strings that are known, or that a text states."""
    stated = filter(None, map(stated_tuning, lines))
    other = [pitches for pitches in stated if len(pitches) != STRINGS]
    return [*dict.fromkeys(other), *INSTRUMENTS.values()]


def other_systems(lines: list[str], run: list[int], guitars: list[Pitches]) -> list[list[int]]:
    """The systems in a group of string lines, if they all are of one guitar of not six strings."""
    labels = [label_of(lines[index]) for index in run]
    for pitches in guitars:
        size = len(pitches)
        if len(run) % size == 0 and all(
            _names(tuple(labels[first : first + size]), pitches)
            for first in range(0, len(run), size)
        ):
            return [run[first : first + size] for first in range(0, len(run), size)]
    return []


def stacked_guitars(systems: list[System]) -> int:
    """How many guitars play at once, where nothing names them; 1 if nothing says so.

    Guitars that play together stand close, the next group further down, and their bars end in the
    same columns, group after group, though not everywhere in the same ones: bars that all are of
    one width would agree in any case.
    """
    gaps = [b.line - max(a.numbers) - 1 for a, b in itertools.pairwise(systems)]
    for count in range(2, MOST_GUITARS + 1):
        groups = [systems[i : i + count] for i in range(0, len(systems), count)]
        within = {gap for i, gap in enumerate(gaps) if (i + 1) % count}
        between = gaps[count - 1 :: count]
        if (
            len(groups) > 1
            and len(groups[-1]) == count
            and within in ({0}, {1})
            and min(between) > max(within)
            and all(len({tuple(bar_columns(s.rows)) for s in group}) == 1 for group in groups)
            and len({tuple(bar_columns(group[0].rows)) for group in groups}) > 1
        ):
            return count
    return 1


def parts_of(prose: list[str], systems: list[System]) -> list[Part]:
    """Part the systems of a text by guitar, and where another tuning or capo is stated.

    Returns:
        For each part the index of its first line of text, its systems, the tuning (None if none is
        stated) and the capo.
    """
    parts: list[Part] = []
    current: dict[tuple[str | None, int], Part] = {}  # by guitar and strings
    stated, capo, guitar, read_to = None, 0, None, 0
    count = 1 if guitar_named(prose) else stacked_guitars(systems)
    for number, system in enumerate(systems):
        before = stated or STANDARD.open_pitches, capo
        between = prose[read_to : system.line - 1]
        for line in between:
            if parts or not _LATER_VERSION.search(line):
                stated = stated_tuning(line) or stated
                capo = stated_capo(line) or capo
        guitar = guitar_named(between) or (str(number % count + 1) if count > 1 else guitar)
        if (stated or STANDARD.open_pitches, capo) != before:
            current = {}
        key = guitar, len(system.rows)
        if key not in current:
            current[key] = (read_to, [], stated, capo)
            parts.append(current[key])
        current[key][1].append(system)
        read_to = system.line - 1
    return parts


def tuning_of(systems: list[System], stated: Pitches | None) -> Pitches:
    """The tuning of some systems: what most labels say, if that is not standard; or else `stated`.

    Standard labels prove little: many write E in front of a string that the text tunes to D. Labels
    with the names that the text states leave it the octaves, which letters do not tell.
    """
    size = len(systems[0].rows)
    stated = stated if stated is not None and len(stated) == size else None
    names = Counter(system.labels for system in systems if all(system.labels))
    labels = names.most_common(1)[0][0] if names else None
    if size != STRINGS:
        known = [stated] if stated else []
        known += [pitches for pitches in INSTRUMENTS.values() if len(pitches) == size]
        return next(pitches for pitches in known if labels is None or _names(labels, pitches))
    if labels:
        pitches = tuning_from_names(labels)
        if pitches not in (None, STANDARD.open_pitches) and not (stated and _names(labels, stated)):
            return pitches
    return stated or STANDARD.open_pitches


def _names(labels: tuple[str, ...], pitches: Pitches) -> bool:
    """Whether the letters in front of some strings are those of a tuning."""
    return len(labels) == len(pitches) and all(
        label and pitch_class(label[0].upper() + label[1:]) == pitch % 12
        for label, pitch in zip(labels, pitches, strict=True)
    )
