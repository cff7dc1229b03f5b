"""Reading ASCII tablature files, as people publish them.

`read_tab_file` reads a file, `parse_ascii_tabs` a text. Both return what could be read, and a list
of problems, each with its file and line: a tab that has a broken system in it is still read,
without that system.

Systems are recognized in `slp_guitar.ascii.systems`, their bars and notes are read in
`slp_guitar.ascii.bars`, and a stated style, tuning and capo in
`slp_guitar.tab_header`.

**Steps.** The column of a note in a text file says when it sounds, so columns are the
steps of the tab that is read. The columns that every bar leaves free after its bar line are taken
off, and if all columns of a piece are multiples of a common number (as where one dash is
between any two notes), they are divided by it. Nothing is rounded: steps times that divisor gives
the printed spacing back. Where the text says its unit, steps are what it says.

**Time.** A line says the unit, and others what begins or ends with the bar below them::

    time: 4 steps to a quarter, 2 columns to a step
    metre: 3/4
    tempo: 90
    repeat: begins here
    repeat: played 3 times
    endings: 1 2

`slp_guitar.ascii.writer` writes them, so that a tab is read back as the very same
steps. People write time signatures and tempos in other words, and no unit: there columns are all
that is known.

**One file, several tabs.** A file becomes one `Tab`, unless it names several guitars, or a
different tuning is stated between two systems: then a new one begins there.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd, inf
from pathlib import Path
from statistics import median

from slp_guitar import tab_header
from slp_guitar.ascii.bars import BarRows, split_system_into_bars
from slp_guitar.ascii.beats import BeatMark, find_beats, find_text_around, with_beat_onsets
from slp_guitar.ascii.frets import read_bars
from slp_guitar.ascii.guitars import (
    TabPart,
    find_all_systems,
    find_other_tunings,
    infer_tuning,
    split_by_guitar,
)
from slp_guitar.ascii.repeats import is_repeat_statement, with_repeat_marks
from slp_guitar.ascii.rhythm import RhythmLetter, are_rhythm, find_letters, with_stated_onsets
from slp_guitar.ascii.systems import StaffSystem, is_string_line, tidy_lines
from slp_guitar.ascii.unread import find_unread_text
from slp_guitar.bounds import MAX_FILE_BYTES, MAX_NOTES, MAX_TEXT_LINES
from slp_guitar.formats.safe_read import decode_text, read_bytes
from slp_guitar.fretboard import STANDARD, Note, Tuning
from slp_guitar.playing_signs import parse_playing_sign
from slp_guitar.tab import KEYS, MAX_STEPS_PER_QUARTER, Bar, Event, ReadProblem, Tab


def read_tab_file(
    path: str | Path, source: str = "", names_unread: bool = False
) -> tuple[list[Tab], list[ReadProblem]]:
    """Read one file: UTF-8 (with or without a mark), UTF-16 with a mark, or else Latin-1.

    Bytes 0x80-0x9F, which Latin-1 leaves empty, are read as Windows does (dashes, quotation marks).

    Args:
        path: the file.
        source: what to call it in `Tab.source` and in problems; its name if empty.
        names_unread: as for `parse_ascii_tabs`.

    Returns:
        Its tabs, more than one where the tuning changes; and what could not be read.

    Raises:
        ValueError: as `slp_guitar.formats.safe_read.read_bytes`; or if there are more
            notes than `MAX_NOTES`, or lines than `MAX_TEXT_LINES`.
    """
    source = source or Path(path).name
    text = decode_text(read_bytes(path, "an ASCII tab", MAX_FILE_BYTES["ASCII tab"]))
    if "\0" in text:
        return [], [ReadProblem(source, 1, "this is not a text file")]
    if len(text.splitlines()) > MAX_TEXT_LINES:
        raise ValueError(f"{path} has more than {MAX_TEXT_LINES:,} lines: split it.")
    if sum(1 for _ in re.finditer("[0-9]+|[xX]", text)) > MAX_NOTES:
        raise ValueError(f"{path} has more than {MAX_NOTES:,} notes: split it.")
    return parse_ascii_tabs(text, source, names_unread)


def parse_ascii_tabs(
    text: str, source: str = "", names_unread: bool = False
) -> tuple[list[Tab], list[ReadProblem]]:
    """Read the tabs in a text.

    Args:
        text: the text, with any line ends.
        source: what to call it in `Tab.source` and in problems.
        names_unread: whether text and marks that no tab has are problems as well.

    Returns:
        Its tabs, more than one where the tuning changes; and what could not be read.
    """
    written = re.split(r"\r\n|\r|\n", text)
    # What a style is called says nothing else, so that Drop D or a row of dashes may be one.
    lines = tidy_lines(["" if tab_header.is_style_line(line) else line for line in written])
    prose = ["" if is_string_line(line) else line for line in lines]
    tunings = find_other_tunings(prose)
    systems, problems = find_all_systems(lines, source, tunings)
    problems += [
        ReadProblem(source, number, unread)
        for number, line in enumerate(prose, start=1)
        if (unread := tab_header.describe_unread_statement(line))
    ]
    repeats = [i for i, line in enumerate(prose) if is_repeat_statement(line)]
    page = _Page(source, written, lines, prose, systems, problems, repeats)
    tabs = []
    for part in split_by_guitar(prose, systems):
        if tab := page.read_part(part):
            tabs.append(replace(tab, tuning=Tuning(infer_tuning(part, tunings), part.capo)))
    read = {problem.line_number for problem in problems}
    read |= {n for n, line in enumerate(written, 1) if parse_time_line(line)}
    read |= {n for n, line in enumerate(written, 1) if apply_bar_changes(NO_BAR, [line]) != NO_BAR}
    if systems and names_unread:
        titles = {page.title, *(tab.title for tab in tabs)}
        problems += find_unread_text(written, lines, systems, titles, read, source)
    message = "how often something is played, but not from where to where; |: and :| x2 say it"
    problems += [ReadProblem(source, i + 1, message) for i in page.repeats]
    if not tabs and not problems:
        problems = [ReadProblem(source, 1, "no tablature: no six string lines one under the other")]
    return tabs, sorted(problems, key=lambda problem: problem.line_number)


@dataclass
class _Page:
    """A text in which systems are found, while its tabs are read.

    Attributes:
        source: what to call it.
        written: its lines.
        lines: the same, as `tidy_lines` has them.
        prose: the same, with nothing where strings are.
        systems: its systems.
        problems: what could not be read.
        repeats: the indices of lines about repeats that no bar has taken.
    """

    source: str
    written: list[str]
    lines: list[str]
    prose: list[str]
    systems: list[StaffSystem]
    problems: list[ReadProblem]
    repeats: list[int]

    @property
    def head(self) -> range:
        """The indices of the lines above all systems."""
        return range(self.systems[0].first_line_number - 1 if self.systems else 0)

    @property
    def title(self) -> str:
        """The title above all systems."""
        return tab_header.find_title(self.prose[: self.head.stop])

    def read_part(self, part: TabPart) -> Tab | None:
        """Return the tab of one guitar, in standard tuning; None if it has no notes."""
        head = range(part.first_line, part.systems[0].first_line_number - 1)
        above, written = ([each[i] for i in head] for each in (self.prose, self.written))
        time_lines = filter(None, map(parse_time_line, above))
        columns_per_step, unit = next(time_lines, (0, None))  # 0 where nothing says it
        bars = self.read_bars(part, columns_per_step)
        begun = [bar.events for bar in bars if bar.events]
        if not begun:
            return None
        if (
            len(begun) == 1
            and not columns_per_step
            and looks_like_time_signature(begun[0][0].notes)
        ):
            message = "two numbers before all others are read as notes, not as a time signature"
            number = part.systems[0].first_line_number
            self.problems.append(ReadProblem(self.source, number, message))
        title, style = tab_header.find_title(above) or self.title, tab_header.find_style(written)
        track = next(filter(None, map(tab_header.parse_track, above)), part.name)
        style = style or tab_header.find_style(self.written[: self.head.stop])
        tab = Tab(title, STANDARD, tuple(bars), self.source, unit, style, track)
        if columns_per_step:
            return tab
        stated = above + self.prose[: self.head.stop]
        meter = next(filter(None, map(tab_header.parse_time_signature, stated)), None)
        tempo = next(filter(None, map(tab_header.parse_tempo, stated)), None)
        return replace(tab, stated_time_signature=meter, stated_tempo_bpm=tempo)

    def read_bars(self, part: TabPart, columns_per_step: int) -> list[Bar]:
        """Return the bars of one guitar.

        Args:
            part: the guitar.
            columns_per_step: how many columns a step takes; 0 where nothing says it.
        """
        first, rows = part.first_line, list[BarRows]()
        lines_above: dict[int, list[str]] = {}  # by the place of the bar below them
        letters: list[list[RhythmLetter]] = []
        letters_below: list[list[RhythmLetter]] = []
        beats: list[list[BeatMark]] = []
        string_lines = {number for system in self.systems for number in system.line_numbers}
        for system in part.systems:
            lines_above[len(rows)] = self.prose[first : system.first_line_number - 1]
            first = system.first_line_number - 1
            own, found = split_system_into_bars(system, trust_bar_lines=columns_per_step > 0)
            self.problems += [ReadProblem(self.source, line, message) for line, message in found]
            own = self.mark_repeats(system, own, rows)
            rows += own
            above, below = find_text_around(self.lines, system, string_lines)
            letters += find_letters(self.lines[max(0, first - 3) : first], own)
            letters_below += find_letters(below[::-1], own)
            beats += find_beats(above, below, own)
        bars = read_bars(rows)
        bars = [apply_bar_changes(bar, lines_above.get(i, ())) for i, bar in enumerate(bars)]
        if columns_per_step:
            joined = _join_cut_bars(rows, bars, inf)
            bars = [_scale_bar(bar, 0, columns_per_step) for bar in joined]
        else:
            if not any(letters) and are_rhythm(letters_below):
                letters = letters_below
            bars = with_beat_onsets(with_stated_onsets(bars, letters), beats)
            bars = build_untimed_bars(rows, bars)
        return list(map(_with_tempos_inside, bars))

    def mark_repeats(
        self, system: StaffSystem, bars: list[BarRows], before: list[BarRows]
    ) -> list[BarRows]:
        """Return the bars of a system with their repeats, after those of the systems before."""
        place, is_alone = system.first_line_number - 2, len(self.systems) == 1
        ends = (self.written[number - 1].rpartition("|")[2] for number in system.line_numbers)
        tails = [end for end in ends if "-" not in end]
        tails += [self.prose[i] for i in self.repeats] if is_alone else []
        above = self.written[place] if place >= 0 else ""
        bars = with_repeat_marks(bars, before, above, " ".join(tails))
        if any(bar.num_plays for bar in bars):
            self.repeats = [] if is_alone else [i for i in self.repeats if i != place]
        return bars


_TIME_PATTERN = re.compile(
    r"\s*time: (?:(?P<unit>[1-9]\d?) steps? to a quarter, )?"
    r"(?P<columns>[1-9]\d{0,3}) columns? to a step\s*"
)
NO_BAR = Bar(1, ())
MAX_TIME_SIGNATURE_COLUMNS = 5  # of a bar that holds nothing else
COMMON_BEATS, BEAT_UNITS = (2, 3, 4, 5, 6, 7, 9, 12), (2, 4, 8, 16)
_LATER_TEMPO_PATTERN = re.compile(r"\s*tempo: (?P<tempo>\d{1,4}) from step (?P<step>\d{1,7})\s*")
_REPEAT_PATTERN = re.compile(r"\s*repeat: (?:begins here|played (?P<times>\d{1,3}) times)\s*")
_ENDINGS_PATTERN = re.compile(r"\s*endings: (?P<times>\d{1,2}(?: \d{1,2}){0,7})\s*")


def parse_time_line(line: str) -> tuple[int, int | None] | None:
    """Parse a time line; return None for any other line.

    Returns:
        How many columns a step takes; and how many steps a quarter note has, None for columns that
        are no time.
    """
    found = _TIME_PATTERN.fullmatch(line)
    if found is None or found["unit"] and int(found["unit"]) > MAX_STEPS_PER_QUARTER:
        return None
    return int(found["columns"]), int(found["unit"]) if found["unit"] else None


def apply_bar_changes(bar: Bar, lines: Iterable[str]) -> Bar:
    """Return a bar with what the lines above it state."""
    for line in lines:
        if meter := tab_header.parse_time_signature(line, alone=True):
            bar = replace(bar, time_signature=meter)
        if found := _LATER_TEMPO_PATTERN.fullmatch(line):
            change = int(found["step"]), int(found["tempo"])
            bar = replace(bar, tempo_changes=(*bar.tempo_changes, change))
        elif tempo := tab_header.parse_tempo(line, alone=True):
            bar = replace(bar, tempo_bpm=tempo)
        elif line.startswith("key: ") and line[5:].strip() in KEYS:
            bar = replace(bar, key=line[5:].strip())
        elif found := _ENDINGS_PATTERN.fullmatch(line):
            bar = replace(bar, endings=tuple(map(int, found["times"].split())))
        elif line.startswith("sign: ") and (sign := parse_playing_sign(line[6:])):
            bar = replace(bar, signs=(*bar.signs, sign))
        elif (found := _REPEAT_PATTERN.fullmatch(line)) and found["times"]:
            bar = replace(bar, num_plays=int(found["times"]))
        elif found:
            bar = replace(bar, starts_repeat=True)
    return bar


def build_untimed_bars(bar_rows: list[BarRows], bars: list[Bar]) -> list[Bar]:
    """Return bars in steps: columns, less the free ones after the bar line, over their divisor.

    Many writers leave the bar line at the margin out. Two halves are taken for one bar only if they
    are together no longer than a bar and a quarter of the piece.
    """
    closed = [
        bar.steps
        for text, bar in zip(bar_rows, bars, strict=True)
        if not (text.open_start or text.open_end)
    ]
    joined = _join_cut_bars(bar_rows, bars, 1.25 * median(closed) if closed else 0)
    bars = _remove_time_signature_notes(joined)
    margin = min((bar.events[0].step for bar in bars if bar.events), default=0)
    unit = max(1, gcd(*(event.step - margin for bar in bars for event in bar.events)))
    return [_scale_bar(bar, margin, unit) for bar in bars]


def _with_tempos_inside(bar: Bar) -> Bar:
    """Return a bar without changes of tempo that are out of order, outside it, or of no tempo."""
    tempos: dict[int, int] = {}
    for step, bpm in bar.tempo_changes:
        if max(tempos, default=0) < step < bar.steps and 1 <= bpm <= 1000:
            tempos[step] = bpm
    return replace(bar, tempo_changes=tuple(tempos.items()))


def _scale_bar(bar: Bar, margin: int, columns_per_step: int) -> Bar:
    """Return a bar without some columns at its start, and with fewer steps to the others."""
    events = (replace(e, step=(e.step - margin) // columns_per_step) for e in bar.events)
    steps = max(1, -(-(bar.steps - margin) // columns_per_step))
    return replace(bar, steps=steps, events=tuple(events))


def _join_cut_bars(bar_rows: list[BarRows], bars: list[Bar], max_columns: float) -> list[Bar]:
    """Join a bar that breaks at the end of a system with its rest at the start of the next."""
    joined: list[Bar] = []
    is_open = False
    for text, bar in zip(bar_rows, bars, strict=True):
        if is_open and text.open_start and joined[-1].steps + bar.steps <= max_columns:
            begun = joined.pop()
            moved = (replace(event, step=event.step + begun.steps) for event in bar.events)
            bar = replace(
                begun,
                steps=begun.steps + bar.steps,
                events=(*begun.events, *moved),
                num_plays=begun.num_plays or bar.num_plays,
                stated_onsets=_join_onsets(begun.stated_onsets, bar.stated_onsets),
                beat_onsets=_join_onsets(begun.beat_onsets, bar.beat_onsets),
            )
        joined.append(bar)
        is_open = text.open_end
    return joined


def _join_onsets(first: tuple[Fraction, ...], second: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    """Return the onsets of a bar from those of its two parts; none if one has none."""
    if not first or not second:
        return ()
    *before, end = first
    return *before, *(end + onset for onset in second)


def looks_like_time_signature(notes: tuple[Note, ...]) -> bool:
    """Return whether notes may be a time signature: on the middle strings, as 3 over 4."""
    places = dict(notes)
    return set(places) == {3, 4} and places[3] in COMMON_BEATS and places[4] in BEAT_UNITS


def _remove_time_signature_notes(bars: list[Bar]) -> list[Bar]:
    """Return bars without time signatures in front of notes, or in a short bar of their own.

    Who writes ``G|4-0-``, ``D|4---`` leaves a column free after other bar lines; else two digits
    there are notes. A bar as ``G|-4-|``, ``D|-4-|`` has at most half of the columns of the longest.
    """
    longest = max((bar.steps for bar in bars), default=0)

    def holds_nothing_else(bar: Bar) -> bool:
        is_short = bar.steps <= min(MAX_TIME_SIGNATURE_COLUMNS, longest / 2)
        return is_short and len(bar.events) == 1 and looks_like_time_signature(bar.events[0].notes)

    kept: list[Bar] = []
    for bar in bars:
        if kept and holds_nothing_else(kept[-1]):
            own = kept.pop()
            bar = replace(bar, starts_repeat=bar.starts_repeat or own.starts_repeat)
            bar = _with_time_signature(bar, own.events[0])
        kept.append(bar)
    if kept and holds_nothing_else(kept[-1]):
        del kept[-1]
    at_once = [place for place, bar in enumerate(kept) if bar.events and bar.events[0].step == 0]
    digits = [kept[place].events[0] for place in at_once]
    has_margin = len(at_once) < sum(bool(bar.events) for bar in kept)
    if has_margin and all(looks_like_time_signature(event.notes) for event in digits):
        for place, event in zip(at_once, digits, strict=True):
            bar = replace(kept[place], events=kept[place].events[1:])
            bar = replace(bar, stated_onsets=(), beat_onsets=())
            kept[place] = _with_time_signature(bar, event)
    return kept


def _with_time_signature(bar: Bar, digits: Event) -> Bar:
    """Return a bar with the time signature that two digits one above the other are."""
    places = dict(digits.notes)
    return replace(bar, time_signature=(places[3], places[4]))
