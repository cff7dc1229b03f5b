"""Tabs from the notes of a file: ties are joined, and time is in steps as coarse as can be.

Every reader of files that have time collects the bars and notes of an instrument in a `TabBuilder`,
in quarter notes, and what of the file no tab has.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import accumulate, chain, pairwise

from slp_guitar.bounds import MAX_BAR_QUARTERS, MAX_BARS, MAX_NOTES, MAX_STEPS, check_score_moment
from slp_guitar.formats.unread import Omissions
from slp_guitar.fretboard import Note, Tuning
from slp_guitar.tab import (
    MAX_STRINGS,
    MIN_STRINGS,
    Bar,
    Event,
    ReadProblem,
    Tab,
    TabNote,
    Technique,
    is_meter,
)
from slp_guitar.techniques import TECHNIQUES
from slp_guitar.timing import drop_repeated_changes, find_common_steps_per_quarter

AFTER_BAR = "notes after the end of their bar are left out"
MAX_ENDING_BARS = 64
"""Bars among which the sign of an ending is looked for behind a repeat inside it."""
MAX_TIE_GAP_QUARTERS = 12
"""The longest silence that a tie holds a note through: three bars of 4/4, as in alphaTab."""
FALLBACK_STEPS_PER_QUARTER = 24
"""Steps to a quarter note for what is in no grid that a tab may have."""


@dataclass
class BarHeader:
    """A bar without its notes; lengths are in quarter notes."""

    length_quarters: Fraction
    time_signature: tuple[int, int] | None = None
    tempo: int | None = None
    starts_repeat: bool = False
    num_plays: int = 0
    endings: tuple[int, ...] = ()
    signs: tuple[str, ...] = ()
    key: str | None = None
    tempo_changes: dict[Fraction, int] = field(default_factory=dict)  # by quarters from its start

    @staticmethod
    def of_meter(beats: int, unit: int) -> "BarHeader":
        """Return a bar that fills a time signature.

        Raises:
            ValueError: if there is no such time signature.
        """
        if not is_meter(beats, unit):
            raise ValueError(f"a bar has the time signature {beats}/{unit}")
        return BarHeader(Fraction(4 * beats, unit), (beats, unit))


def bar_starts(bars: Sequence[BarHeader]) -> list[Fraction]:
    """Return when each bar begins, in quarter notes, and when the last ends."""
    return list(accumulate((bar.length_quarters for bar in bars), initial=Fraction(0)))


def extend_endings_in_place(headers: Sequence[BarHeader]) -> None:
    """Have each ending last until its repeat sign, where files mark only its first bar.

    The last ending behind a sign needs none; one behind it is another repeat's. A repeat inside an
    ending, with a sign of its own, does not end it.
    """
    open_from, has_sign, nested_to = None, False, -1
    for number, header in enumerate(headers):
        if number <= nested_to:
            continue
        if header.endings and (open_from is None or headers[open_from].endings != header.endings):
            open_from = number
        if header.starts_repeat:
            rest = headers[number : number + MAX_ENDING_BARS]
            own = headers[open_from].endings if open_from is not None else ()
            end = _find_nested_repeat_end(rest, own, has_sign) if own else None
            if end is not None:
                nested_to = number + end
                continue
            has_sign = False
            open_from = open_from if header.endings else None
        if header.num_plays > 1 and open_from is not None:
            own, after = headers[open_from].endings, headers[number + 1 : number + 2]
            if not has_sign or 1 in own or any(each.endings for each in after):
                for inside in headers[open_from + 1 : number + 1]:
                    inside.endings = inside.endings or own
            open_from = None
        has_sign = has_sign or header.num_plays > 1


def _find_nested_repeat_end(
    headers: Sequence[BarHeader], ending: tuple[int, ...], is_last_ending: bool
) -> int | None:
    """Return the last bar of a repeat inside an ending, if the sign of the ending follows it.

    Args:
        headers: bars from the first of the repeat on.
        ending: the numbers of the ending.
        is_last_ending: whether the ending needs no sign, since one before it has one.
    """
    depth, end = 0, None
    for number, header in enumerate(headers):
        depth += header.starts_repeat
        if end is not None and not depth and header.endings not in ((), ending):
            if not headers[number - 1].endings:  # else a further ending of the repeat inside
                return None
            end = number if end == number - 1 else end
        elif header.num_plays > 1 and depth:
            depth -= 1
            end = number if end is None and not depth else end
        elif header.num_plays > 1:
            followed = any(each.endings for each in headers[number + 1 : number + 2])
            return end if followed or not is_last_ending else None
    return None


@dataclass
class NoteEvent:
    """A note as it is read; moments are in quarter notes from the beginning of the piece.

    A note that has no string yet is on string 0, and its fret is its pitch.
    """

    onset_quarters: Fraction
    duration_quarters: Fraction
    note: Note
    techniques: set[Technique] = field(default_factory=set)
    voice: int = 1

    @property
    def end_quarters(self) -> Fraction:
        """When it ends."""
        return self.onset_quarters + self.duration_quarters


@dataclass
class TabBuilder:
    """Collects the bars and notes of one instrument and builds a tab.

    Attributes:
        name: what the file calls it; may be empty.
        tuning: its guitar; None if its notes have no strings.
        bars: the headers of the bars.
        notes: the notes.
        omissions: what of it is left out.
        reason_left_out: why no tab is made of it; empty if one is.
    """

    name: str = ""
    tuning: Tuning | None = None
    bars: list[BarHeader] = field(default_factory=list)
    notes: list[NoteEvent] = field(default_factory=list)
    omissions: Omissions = field(default_factory=Omissions)
    reason_left_out: str = ""
    _starts: list[Fraction] = field(default_factory=list)
    _num_placed: int = 0
    _notes_by_bar: dict[int, list[NoteEvent]] = field(default_factory=lambda: defaultdict(list))
    _last_by_voice_and_string: dict[tuple[int, int], NoteEvent] = field(default_factory=dict)

    def bar_number_at(self, onset_quarters: Fraction) -> int:
        """Return the number of the bar, from 1, in which a moment lies."""
        return max(1, bisect_right(bar_starts(self.bars), onset_quarters))

    def add_note(self, event: NoteEvent, is_tied: bool = False) -> None:
        """Take in a note, or hold on the last one of its voice and string if it is tied to it."""
        lane = event.voice, _lane_key(event.note)
        struck = self._last_by_voice_and_string.get(lane)
        if not is_tied:
            self.notes.append(event)
            self._last_by_voice_and_string[lane] = event
        elif struck and 0 <= event.onset_quarters - struck.end_quarters <= MAX_TIE_GAP_QUARTERS:
            # A tie over a gap holds the note through it, as Guitar Pro does.
            struck.duration_quarters = event.end_quarters - struck.onset_quarters
            struck.techniques |= event.techniques
        else:
            what = "ties that continue no note are left out"
            # The first alone is looked for: each looks through all bars.
            known = what in self.omissions
            self.omissions.record(what, 0 if known else self.bar_number_at(event.onset_quarters))

    def copy_earlier_bar(self, bar_number: int, bars_back: int) -> None:
        """Copy the notes of an earlier bar into one that a sign says to play like it.

        Args:
            bar_number: the bar to fill, from 1.
            bars_back: how far back the bar is that is copied; 0 for none.
        """
        place, source = bar_number - 1, bar_number - 1 - bars_back
        if not bars_back:
            return
        if source < 0 or place >= len(self.bars):
            self.omissions.record("signs to repeat a bar are left out", bar_number)
            return
        if not self._starts:
            self._starts = bar_starts(self.bars)
        for note in self.notes[self._num_placed :]:
            bar = bisect_right(self._starts, note.onset_quarters) - 1
            self._notes_by_bar[bar].append(note)
        self._num_placed = len(self.notes)
        moved = self._starts[place] - self._starts[source]
        self.notes += [
            replace(note, onset_quarters=note.onset_quarters + moved)
            for note in self._notes_by_bar[source]
        ]
        if len(self.notes) > MAX_NOTES:
            raise ValueError(f"with its repeated bars it has more than {MAX_NOTES:,} notes")

    def build_tab(self, title: str, source: str) -> Tab:
        """The tab, whose notes have no strings if it has no tuning; `omissions` has the rest."""
        starts = bar_starts(self.bars)
        edges = [moment for n in self.notes for moment in (n.onset_quarters, n.end_quarters)]
        unit = find_common_steps_per_quarter([*starts, *edges])
        if unit is None:
            unit = FALLBACK_STEPS_PER_QUARTER
            self.omissions.record(f"times are rounded to {unit} steps to a quarter note")
        inside = [place for bar in self.bars for place in bar.tempo_changes]
        finer = find_common_steps_per_quarter([Fraction(1, unit), *inside])
        if finer is not None and finer <= max(unit, FALLBACK_STEPS_PER_QUARTER):
            unit = finer
        steps = [_to_steps(start, unit) for start in starts]
        if steps[-1] > MAX_STEPS:
            raise ValueError(f"it has more than {MAX_STEPS:,} steps of 1/{unit} quarter note")
        if any(Technique("hammer") in note.techniques for note in self.notes):
            self._mark_pull_offs()
        events: list[dict[int, dict[int, TabNote]]] = [defaultdict(dict) for _ in self.bars]
        for struck in self.notes:
            onset = min(_to_steps(struck.onset_quarters, unit), steps[-1] - 1)
            number = bisect_right(steps, onset) - 1
            if self.tuning and not (
                1 <= struck.note.string <= len(self.tuning.open_pitches) and struck.note.fret >= 0
            ):
                self.omissions.record("notes on no fret of their guitar are left out", number + 1)
                continue
            moment = events[number][onset - steps[number]]
            if _lane_key(struck.note) in moment:
                what = "notes on a string that is struck already are left out"
                self.omissions.record(what, number + 1)
                continue
            end = _to_steps(struck.end_quarters, unit)
            techniques = tuple(
                sorted(struck.techniques, key=lambda t: ([*TECHNIQUES].index(t.kind), t))
            )
            moment[_lane_key(struck.note)] = TabNote(
                struck.note, max(1, end - onset), techniques, struck.voice
            )
        tempos = self._round_tempo_changes(unit)
        tuning = self.tuning
        if tuning is None:  # as many strings as notes sound together, all tuned to pitch 0
            moments_of_notes = [moment for own in events for moment in own.values()]
            tuning = Tuning((0,) * max(map(len, moments_of_notes), default=1))
            for moment in moments_of_notes:
                for string, lane in enumerate(sorted(moment), start=1):
                    pitch = moment[lane].note.fret
                    moment[lane] = moment[lane]._replace(note=Note(string, pitch))
        bars = [
            Bar(
                after - start,
                tuple(Event.from_notes(step, own[step].values()) for step in sorted(own)),
                header.time_signature,
                changes.pop(0, header.tempo),
                header.starts_repeat,
                header.num_plays,
                header.endings,
                header.signs,
                tuple(changes.items()),
                key=header.key,
            )
            for (start, after), header, own, changes in zip(
                pairwise(steps), self.bars, events, tempos, strict=True
            )
        ]
        bars = drop_repeated_changes(bars)
        return Tab(title, tuning, tuple(bars), source, unit, "", self.name)

    def _round_tempo_changes(self, unit: int) -> list[dict[int, int]]:
        """Return the tempos by the step of the bar at which they begin, for each bar, in order."""
        rounded: list[dict[int, int]] = [{} for _ in self.bars]
        for number, (bar, changes) in enumerate(zip(self.bars, rounded, strict=True), start=1):
            for place, tempo in sorted(bar.tempo_changes.items()):
                step, tempo = max(round(place * unit), 0), min(max(tempo, 1), 1000)
                if step != place * unit:
                    what = f"changes of tempo are moved to one of {unit} steps to a quarter note"
                    self.omissions.record(what, number)
                if step < bar.length_quarters * unit:
                    changes[step] = tempo
                elif number < len(self.bars) and not self.bars[number].tempo:  # at its bar line
                    rounded[number][0] = tempo
        return rounded

    def _mark_pull_offs(self) -> None:
        """Tell pulls from hammers, which most files do not: a pull leads down."""
        following: dict[int, NoteEvent] = {}
        for struck in sorted(self.notes, key=lambda note: note.onset_quarters, reverse=True):
            after = following.get(struck.note.string)
            if Technique("hammer") in struck.techniques and after:
                if after.note.fret < struck.note.fret:
                    struck.techniques ^= {Technique("hammer"), Technique("pull")}
            following[struck.note.string] = struck


def check_bar_count(count: int) -> None:
    """Refuse a file of too many bars: in a format with bars as elements, before they are read.

    Raises:
        ValueError: if there are.
    """
    if count > MAX_BARS:
        raise ValueError(f"it has more than {MAX_BARS:,} bars")


def check_piece_size(builders: Sequence[TabBuilder], max_notes: int) -> None:
    """Refuse a piece that is too large, before anything is made of its numbers.

    Raises:
        ValueError: saying what there is too much of.
    """
    if sum(len(builder.notes) for builder in builders) > max_notes:
        raise ValueError(f"it has more than {max_notes:,} notes")
    for builder in builders:
        check_bar_count(len(builder.bars))
        for number, bar in enumerate(builder.bars, start=1):
            if bar.length_quarters > MAX_BAR_QUARTERS:
                raise ValueError(f"bar {number} has more than {MAX_BAR_QUARTERS:,} quarter notes")
        lengths = (bar.length_quarters for bar in builder.bars)
        edges = (each for n in builder.notes for each in (n.onset_quarters, n.end_quarters))
        for moment in chain(accumulate(lengths), edges):  # one by one, for denominators may grow
            check_score_moment(moment)


def build_tabs(
    source: str,
    title: str,
    builders: Sequence[TabBuilder],
    max_notes: int | None = None,
    omissions: Omissions | None = None,
) -> tuple[list[Tab], list[ReadProblem]]:
    """Return the tabs of a file, named where there are several; and what is not in them.

    Args:
        source: the name of the file.
        title: of the piece.
        builders: what was read, an instrument each.
        max_notes: notes that they may have together; as many as any file if None.
        omissions: what of the file, and of no instrument alone, is left out.

    Raises:
        ValueError: if there is no instrument of which a tab can be made.
    """
    check_piece_size(builders, MAX_NOTES if max_notes is None else max_notes)
    tabs = []
    problems = [ReadProblem(source, 0, each) for each in (omissions or Omissions()).sentences()]
    for number, builder in enumerate(builders, start=1):
        builder.name = " ".join(builder.name.split()) if len(builders) > 1 else ""
        where = f"{builder.name or f'track {number}'}: " if len(builders) > 1 else ""
        reason, tuning = builder.reason_left_out, builder.tuning
        if tuning and not MIN_STRINGS <= len(tuning.open_pitches) <= MAX_STRINGS:
            reason = f"it has {len(tuning.open_pitches)} strings"
        messages = [f"left out, since {reason}"]
        if not reason:
            tabs.append(builder.build_tab(" ".join(title.split()), source))
            messages = builder.omissions.sentences()
        problems += [ReadProblem(source, 0, where + message) for message in messages]
    if not tabs:
        reasons = "; ".join(problem.message for problem in problems[-3:])
        raise ValueError(f"it has no track of 4 to 8 strings with notes ({reasons})")
    return tabs, problems


def _to_steps(quarters: Fraction, unit: int) -> int:
    """Return `round(quarters * unit)`, without a fraction where the steps are whole."""
    whole, rest = divmod(quarters.numerator * unit, quarters.denominator)
    return round(quarters * unit) if rest else whole


def _lane_key(note: Note) -> int:
    """What two notes at once cannot share: a string, or before strings are known a pitch."""
    return note.string or -note.fret
