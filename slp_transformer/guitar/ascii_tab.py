"""Six-line systems of ASCII tablature: where they are in a text, and which notes they hold.

The parts that `slp_transformer.guitar.files` reads a file with. A *system* is a group of six string
lines, one under the other, highest string first. A *column* is a character position in it.

How a system is read:

- **String lines.** A line is a string line when most of it is dashes, frets and bar lines. Six in a
  row make a system. From a longer run the six are chosen whose labels and bar lines agree best (a
  barre mark such as ``CVII-------`` often stands right above).
- **Bars.** A bar line is a column where most of the six lines have ``|``. If the lines have slipped
  against each other but hold equally many bars, they are lined up again bar by bar.
- **Frets.** A run of digits is one fret, or several notes written without a dash between them.
  ``7`` and ``10`` are frets; ``109`` can only be 10 and 9, and ``34`` only 3 and 4 (no guitar has a
  34th fret). What remains open, such as ``11`` or ``12``, is one fret unless there is a reason to
  split it: see `split_digits`.
- **Events.** Notes whose frets share a column sound together: with 10 on one string and 9 on
  another, it does not matter whether the 9 stands under the 1 or under the 0.
- **Marks.** Slurs, slides, trills, harmonics, brackets and ties (``h p / \\ tr ~ x ( ) < > =``)
  only separate frets. Grace notes are notes.
- **Text.** Where fewer than three of the six lines reach, there is text (``x2``, ``D.C.``, the
  number of a measure), not music.
"""

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from math import log
from statistics import median

from slp_transformer.guitar.fretboard import MAX_FRET, MAX_SPAN, Note

STRINGS = 6
HIGHEST_FRET = 24

# A label in front of a string line, perhaps with a measure number or a bar line before it.
_LABEL = re.compile(r"^(?:\s*\d{1,3}\s+)?\s*\|?\s*([A-Ga-g][#b]?)(?=[-=|:*\s(~\d<\[])\s*")
_MEASURE_NUMBER = re.compile(r"^\s*\d{1,3}\s+(?=\|)")
_WORD = re.compile(r"[^\W\d_]{4,}")
_BARRE = re.compile(r"^[\s\d|{\[(]*[cCbB]?\.?\s?[IVX]+\b")
_DASHES = "-=\u2013\u2014"
_DIGITS = "0123456789"
_WITHOUT_STAVE = {ord(mark): None for mark in _DASHES + _DIGITS + "~_|"}


@dataclass(frozen=True)
class System:
    """Six string lines of a text.

    Attributes:
        line: number of its first line in the file, from 1.
        labels: what stands in front of each line (``"E"``, ``"F#"``), empty where nothing does.
        rows: the six lines, highest string first, labels and measure numbers blanked out.
    """

    line: int
    labels: tuple[str, ...]
    rows: tuple[str, ...]


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


@dataclass(frozen=True)
class Column:
    """The notes that start together in a bar, and the column that they start in."""

    column: int
    notes: tuple[Note, ...]


@dataclass(frozen=True)
class RawBar:
    """One bar with its notes.

    Attributes:
        width: columns from one bar line to the next.
        columns: what sounds in it.
        open_left: as in `Segments`.
        open_right: as in `Segments`.
    """

    width: int
    columns: tuple[Column, ...]
    open_left: bool = False
    open_right: bool = False


@dataclass(frozen=True)
class Run:
    """Digits that stand next to each other on one string: one fret, or several."""

    string: int
    column: int
    digits: str


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
    bars = Counter(i for line in six for i, mark in enumerate(line) if mark == "|")
    shared = sum(count == STRINGS for count in bars.values())
    names = "".join(label_of(line)[:1].upper() for line in six)
    barres = sum(is_barre_mark(line) for line in six)
    lengths = Counter(len(line.rstrip()) for line in six)
    full = min(_filled(line) for line in six) / max(lengths)
    return 2 * shared + 5 * (names == "EBGDAE") + max(lengths.values()) - 10 * barres + 20 * full


def _filled(line: str) -> int:
    """How many columns of a line are dashes or digits."""
    return sum(mark in _DASHES or mark in _DIGITS or mark == "~" for mark in line)


def make_system(lines: list[str], indices: list[int]) -> System:
    """A system from six lines, turned over if the lowest string stands on top."""
    six = [lines[index].expandtabs().rstrip() for index in indices]
    labels = tuple(label_of(line) for line in six)
    rows = tuple(body_of(line) for line in six)
    if "".join(labels).upper()[1:5] == "ADGB":
        labels, rows = labels[::-1], rows[::-1]
    width = max(len(row) for row in rows)
    rows = tuple(row.ljust(width) for row in rows)
    reached = [sum(row[i] != " " for row in rows) >= 3 for i in range(width)]
    rows = tuple(
        "".join(mark if inside else " " for mark, inside in zip(row, reached, strict=True))
        for row in rows
    )
    return System(indices[0] + 1, labels, rows)


def bar_spans(row: str) -> list[tuple[int, int]]:
    """Start and end of every stretch of a row between bar lines."""
    return [found.span() for found in re.finditer(r"[^|]+", row)]


def bars_of(
    system: System,
) -> tuple[list[tuple[tuple[str, ...], bool, bool]], list[tuple[int, str]]]:
    """The bars of a system, each six strings wide, and what does not line up.

    Returns:
        For each bar its six segments (equally wide), whether it is open to the left and to the
        right; and sentences about rows that could not be lined up.
    """
    rows = system.rows
    votes = Counter(i for row in rows for i, mark in enumerate(row) if mark == "|")
    lines = [i for i, count in sorted(votes.items()) if count > STRINGS // 2]
    complaints = []
    spans = [[s for s in bar_spans(row) if row[slice(*s)].strip()] for row in rows]
    slipped = [n for n, row in enumerate(rows) if _strays(row, lines)]
    if slipped and len({len(row_spans) for row_spans in spans}) == 1:
        segments = [
            tuple(row[slice(*span)].strip() for row, span in zip(rows, bar, strict=True))
            for bar in zip(*spans, strict=True)
        ]
        segments = [line_up(bar) for bar in segments]
        ends = [row.strip() for row in rows]
        closed_left = sum(row.startswith("|") for row in ends) > STRINGS // 2
        closed_right = sum(row.endswith("|") for row in ends) > STRINGS // 2
    else:
        if slipped:
            message = (
                f"the bar lines of string {slipped[0] + 1} are not where the other strings' are"
            )
            complaints.append((system.line + slipped[0], message))
        width = len(rows[0])
        edges = [-1, *lines, width]
        segments = [
            tuple(row[left + 1 : right] for row in rows)
            for left, right in zip(edges, edges[1:], strict=False)
            if right - left > 1
        ]
        closed_left = bool(lines) and not any(row[: lines[0]].strip() for row in rows)
        closed_right = bool(lines) and not any(row[lines[-1] :].strip(" |") for row in rows)
    last = len(segments) - 1
    bars = [
        Segments(bar, i == 0 and not closed_left, i == last and not closed_right)
        for i, bar in enumerate(segments)
    ]
    return [bar for bar in bars if _is_music(bar.rows)], complaints


def _strays(row: str, lines: list[int]) -> bool:
    """Whether a row has a bar line where most rows have none (a repeat sign's neighbor is fine)."""
    near = {column + d for column in lines for d in (-1, 0, 1)}
    return any(mark == "|" and i not in near for i, mark in enumerate(row))


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


def runs_of(bar: tuple[str, ...]) -> list[Run]:
    """Every run of digits in a bar, from left to right."""
    runs = [
        Run(string, found.start(), found.group())
        for string, segment in enumerate(bar, start=1)
        for found in re.finditer(r"[0-9]+", segment)
    ]
    return sorted(runs, key=lambda run: (run.column, -run.string))


@lru_cache(maxsize=4096)
def readings(digits: str) -> list[tuple[int, ...]]:
    """Every way to read a run of digits as frets from 0 to 24 without leading zeros.

    >>> readings("109")
    [(1, 0, 9), (10, 9)]
    """
    if not digits:
        return [()]
    found = [(int(digits[0]), *rest) for rest in readings(digits[1:])]
    if len(digits) > 1 and digits[0] != "0" and int(digits[:2]) <= HIGHEST_FRET:
        found += [(int(digits[:2]), *rest) for rest in readings(digits[2:])]
    return found


def is_pair(run: Run) -> bool:
    """Whether two digits can only be two notes, as ``34`` or ``02``."""
    return len(run.digits) == 2 and len(readings(run.digits)) == 1


def pair_cost(runs: list[Run]) -> float:
    """What it costs, in a piece with these runs, to read two digits as two notes.

    Two digits that can only be two notes tell that the writer leaves no dash between quick notes;
    about a quarter as many such pairs will look like a fret from 10 to 24. The cost is the
    resulting log-odds against a pair, times three (a fret out of reach costs 1).
    """
    doubles = [run for run in runs if len(run.digits) == 2]
    pairs = sum(is_pair(run) for run in doubles)
    share = (0.25 * pairs + 0.01) / (len(doubles) - pairs + 1)
    share = min(max(share, 0.001), 0.9)
    return 3 * log((1 - share) / share)


def hand_near(run: Run, others: list[Run]) -> float | None:
    """Where the hand is: the middle of the eight nearest plain frets, or None if there are none."""
    plain = [o for o in others if o.digits != "0" and len(o.digits) < 3 and not is_pair(o)]
    plain.sort(key=lambda other: abs(other.column - run.column))
    frets = [fret for fret in (int(other.digits) for other in plain) if fret <= MAX_FRET]
    return median(frets[:8]) if frets else None


def split_digits(
    run: Run, others: list[Run], pair_cost: float, hand: float | None = None
) -> list[tuple[int, int]]:
    """Read a run of digits as one fret or as several, whichever is cheaper.

    Two digits are one fret unless two notes are cheaper. A reading costs

    - `pair_cost` for a second note, or less than nothing if a pair that cannot be one fret, such as
      ``34``, stands in the same two columns on another string, or (where the piece has such pairs)
      if two other strings have a note each, one in either column: then each column is a moment;
    - 1 for each fret that a note lies out of reach (`MAX_SPAN`) of the note before it, and of the
      hand, which is where the nearest frets in the bar are; half of that next to an open string;
    - 10 for a fret above the 19th.

    Of three digits or more, some certainly are notes side by side: there a further note costs 3,
    and distance from the hand counts half.

    Args:
        run: the digits.
        others: the other runs of the bar.
        pair_cost: what `pair_cost` says of the piece.
        hand: where the hand was before this bar, for three digits or more in a bar that does not
            tell.

    Returns:
        Column and fret of every note.
    """
    if len(run.digits) == 1:
        return [(run.column, int(run.digits))]
    long = len(run.digits) > 2
    center = hand_near(run, others) or (hand if long else None)
    elsewhere = [other for other in others if other.string != run.string]
    singles = {other.column for other in elsewhere if len(other.digits) == 1}
    dense = pair_cost < 15 and {run.column, run.column + 1} <= singles
    dense = dense or any(is_pair(other) and other.column == run.column for other in elsewhere)
    per_note = 3 if long else -20 if dense else pair_cost

    def cost(frets: tuple[int, ...]) -> float:
        steps = zip(frets, frets[1:], strict=False)
        leaps = sum(_out_of_reach(a, b) / (1 if a and b else 2) for a, b in steps)
        shift = sum(_out_of_reach(f, center) for f in frets if f and center is not None)
        high = sum(fret > MAX_FRET for fret in frets)
        return leaps + shift / (2 if long else 1) + per_note * len(frets) + 10 * high

    placed, column = [], run.column
    for fret in min(readings(run.digits), key=cost):
        placed.append((column, fret))
        column += len(str(fret))
    return placed


def _out_of_reach(fret: float, other: float) -> float:
    """How many frets too far apart two frets are for one hand."""
    return max(0, abs(fret - other) - MAX_SPAN)


def columns_of(runs: list[Run], cost_of_pair: float, hand: float | None) -> tuple[Column, ...]:
    """The notes of a bar, gathered into the columns in which they sound together."""
    placed = []
    for run in runs:
        others = [other for other in runs if other is not run]
        for column, fret in split_digits(run, others, cost_of_pair, hand):
            placed.append((column, run.string, fret))
    placed.sort()
    groups: list[list[tuple[int, int, int]]] = []
    for note in placed:
        if groups and _together(groups[-1], note):
            groups[-1].append(note)
        else:
            groups.append([note])
    return tuple(
        Column(
            group[0][0],
            tuple(Note(string, fret) for _, string, fret in sorted(group, key=lambda n: -n[1])),
        )
        for group in groups
    )


def _together(group: list[tuple[int, int, int]], note: tuple[int, int, int]) -> bool:
    """Whether a note sounds with the group before it: same column, or under a two-digit fret."""
    column, string, _ = note
    first = group[0][0]
    if any(string == other for _, other, _ in group):
        return False
    if column == first:
        return True
    wide = all(fret > 9 for start, _, fret in group if start == first)
    return column == first + 1 and wide


def raw_bars(bars: list[Segments]) -> list[RawBar]:
    """Read the notes of a piece's bars; what one bar makes clear helps to read another."""
    all_runs = [runs_of(bar.rows) for bar in bars]
    cost_of_pair = pair_cost([run for runs in all_runs for run in runs])
    read: list[RawBar] = []
    hand = None
    for bar, runs in zip(bars, all_runs, strict=True):
        columns = columns_of(runs, cost_of_pair, hand)
        frets = [note.fret for column in columns for note in column.notes if note.fret]
        hand = median(frets[-8:]) if frets else hand
        read.append(RawBar(len(bar.rows[0]), columns, bar.open_left, bar.open_right))
    return read
