"""Tabs in notation and back: bars of beats whose lengths are note values, with ties between them.

A tab says how many steps a note lasts. Notation has halves, quarters, dots and triplets, one length
for all notes of a beat, and bars that no note crosses. So time is cut wherever a note of a voice
begins or ends and at every bar line, each stretch is made of as few note values as do, and what
sounds on is tied. In the other direction ties are joined and time is in steps as coarse as can be.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, field
from fractions import Fraction
from functools import cache
from itertools import accumulate, pairwise, zip_longest
from math import lcm
from operator import itemgetter
from typing import NamedTuple

from slp_transformer.guitar.fretboard import Note, Tuning
from slp_transformer.guitar.tab import (
    MAX_STRINGS,
    MIN_STRINGS,
    TECHNIQUE_KINDS,
    Bar,
    Event,
    ReadProblem,
    Tab,
    TabNote,
    Technique,
    check_tab,
)
from slp_transformer.guitar.timing import (
    add_time_signatures,
    bar_start_steps,
    coarsest_grid,
    drop_repeated_changes,
    find_common_steps_per_quarter,
    require_steps_per_quarter,
)

AFTER_BAR = "notes after the end of their bar are left out"
FALLBACK_STEPS_PER_QUARTER = 24
"""Steps to a quarter note for what is in no grid that a tab may have."""


class NoteValue(NamedTuple):
    """A note value.

    Attributes:
        denominator: 1 for a whole note, 4 for a quarter, up to 64.
        is_dotted: whether it is half as long again.
        tuplet_notes: so many of them take the time of `tuplet_time`: 3 and 2 for triplets, 1 and 1
            for none.
        tuplet_time: see `tuplet_notes`.
    """

    denominator: int
    is_dotted: bool = False
    tuplet_notes: int = 1
    tuplet_time: int = 1

    @property
    def duration_quarters(self) -> Fraction:
        """Return the duration in quarter notes."""
        plain = Fraction(4 * self.tuplet_time, self.denominator * self.tuplet_notes)
        return plain * 3 / 2 if self.is_dotted else plain


NOTE_VALUE_DENOMINATORS = (1, 2, 4, 8, 16, 32, 64)
TUPLET_TIMES = {3: 2, 5: 4, 7: 4}
NOTE_VALUES = tuple(
    NoteValue(kind, dotted, *tuplet)
    for tuplet in ((1, 1), *TUPLET_TIMES.items())
    for kind in NOTE_VALUE_DENOMINATORS
    for dotted in (True, False)
)


class TiedNote(NamedTuple):
    """A note of a beat.

    Attributes:
        tab_note: the note.
        is_struck: whether it is struck; it is held on from the beat before otherwise.
        is_tied_to_next: whether it is held on into the next beat.
    """

    tab_note: TabNote
    is_struck: bool
    is_tied_to_next: bool

    @property
    def techniques(self) -> tuple[Technique, ...]:
        """Techniques marked here: where the note ends if they lead to the next, or is struck."""
        return tuple(
            technique
            for technique in self.tab_note.techniques
            if (
                not self.is_tied_to_next
                if technique.kind in ("hammer", "pull", "slide")
                else self.is_struck
            )
        )


class Beat(NamedTuple):
    """Notes of one length, string 1 (the highest) first; a rest where there are none."""

    note_value: NoteValue
    notes: tuple[TiedNote, ...]


@dataclass(frozen=True)
class Measure:
    """A bar in notation.

    Attributes:
        bar: the bar, with time signature and tempo only where they change.
        time_signature: the time signature in force.
        voices: the beats of voice 1 and of voice 2; the latter empty where nothing is in it.
    """

    bar: Bar
    time_signature: tuple[int, int]
    voices: tuple[list[Beat], list[Beat]]


def fill_durations(tab: Tab) -> Tab:
    """Return the tab with all durations filled in, as in notation and files.

    A note without a duration lasts until the next event of its voice, and at most to the end of its
    bar. A note ends where the next one begins on its string, and with the piece.
    """
    end, events = bar_start_steps(tab)[-1], []
    nexts: dict[int, int] = {}  # by voice: when the event after begins
    strings: dict[int, int] = {}  # by string: when it is struck again
    for start, bar, event in reversed(list(tab.iter_placed_events())):
        now, notes = start + event.step, []
        for each in event.tab_notes():
            usual = min(nexts.get(each.voice, end), start + bar.steps) - now
            most = strings.get(each.note.string, end) - now
            notes.append(each._replace(duration_steps=min(each.duration_steps or usual, most)))
        strings |= {each.note.string: now for each in notes}
        nexts |= {each.voice: now for each in notes}
        events.append(Event.from_notes(event.step, notes))
    return tab.with_events(reversed(events))


def count_cut_notes(tab: Tab) -> int:
    """Return how many notes end before their time, since their string is struck again."""
    filled = fill_durations(tab)
    return sum(
        own < whole
        for before, after in zip(tab.iter_events(), filled.iter_events(), strict=True)
        for whole, own in zip(before.durations, after.durations, strict=False)
    )


def round_trip_tab(tab: Tab, num_voices: int = 2) -> Tab:
    """Return the tab as read back from notation: with all durations, on the coarsest grid.

    Raises:
        ValueError: if the tab's steps are columns, or a bar has no time signature.
    """
    tab = _arrange_voices(fill_durations(add_time_signatures(tab)), num_voices)
    return coarsest_grid(tab)


def _arrange_voices(tab: Tab, num_voices: int) -> Tab:
    """Return the tab in one voice; or if all is in one of two, with held basses in the other.

    A note held while higher ones begin goes to the second voice if nothing sounds there, so that
    it is one note and no chain of ties.
    """
    if num_voices > 1 and any(event.voices for event in tab.iter_events()):
        return tab
    placed = [(start + event.step, event) for start, _, event in tab.iter_placed_events()]
    busy_until, events = 0, []
    for index, (now, event) in enumerate(placed, start=1):
        notes = []
        for each in event.tab_notes():
            end = now + each.duration_steps
            last = bisect_left(placed, end, lo=index, key=itemgetter(0))
            above = [max(other.notes).string < each.note.string for _, other in placed[index:last]]
            is_held = num_voices > 1 and bool(above) and all(above) and now >= busy_until
            if is_held:
                busy_until = end
            notes.append(each._replace(voice=2 if is_held else 1))
        events.append(Event.from_notes(event.step, notes))
    return tab.with_events(events)


def check_same_bars(tracks: Sequence[Tab]) -> None:
    """Refuse tracks that cannot be written into one file.

    Raises:
        ValueError: if a tab cannot be written down, its steps are columns, or a bar is not as long
            as the first track's.
    """
    lengths = []
    for tab in tracks:
        check_tab(tab)
        unit = require_steps_per_quarter(tab)
        lengths.append([Fraction(bar.steps, unit) for bar in tab.bars])
    for number, own in enumerate(lengths, start=1):
        if own != lengths[0]:
            pairs = enumerate(zip_longest(own, lengths[0]), start=1)
            bar = next(place for place, (one, other) in pairs if one != other)
            raise ValueError(
                f"Tracks 1 and {number} differ in bar {bar}, so they cannot play together; "
                "write them one by one, by --tracks."
            )


def measures_from_tab(tab: Tab, num_voices: int = 2) -> list[Measure]:
    """Return the bars of a tab in notation, with all notes in one voice if it may have no more.

    The tab is one that `check_tab` lets pass.

    Raises:
        ValueError: if the tab has no bar, its steps are columns or finer than note values are, or a
            bar has no time signature.
    """
    if not tab.bars:
        raise ValueError("A file of notation needs at least one bar.")
    tab = round_trip_tab(tab, num_voices)
    first, second = _beats_of_voice(tab, 1), _beats_of_voice(tab, 2)
    measures, time_signature = [], (4, 4)
    for bar, beats, more in zip(tab.bars, first, second, strict=True):
        time_signature = bar.time_signature or time_signature
        used = more if any(beat.notes for beat in more) else []
        measures.append(Measure(bar, time_signature, (beats, used)))
    return measures


def _beats_of_voice(tab: Tab, voice: int) -> list[list[Beat]]:
    """Return the beats of one voice for each bar of a tab."""
    unit, starts = require_steps_per_quarter(tab), bar_start_steps(tab)
    begins: dict[int, list[tuple[int, int, TabNote]]] = defaultdict(list)
    cuts = set(starts)
    for start, _, event in tab.iter_placed_events():
        onset = start + event.step
        for each in event.tab_notes():
            if each.voice == voice:
                begins[onset].append((onset, onset + each.duration_steps, each))
                cuts |= {onset, onset + each.duration_steps}
    windows = [
        window
        for start, end in pairwise(starts)
        for begin in range(start, end, 4 * unit)
        for window in _find_tuplets(sorted(c for c in cuts if start <= c <= end), begin, 4, unit)
    ]
    cuts.update(edge for start, end, _ in windows for edge in (start, end))
    beats: list[list[Beat]] = [[] for _ in tab.bars]
    number, place, sounding = 0, 0, list[tuple[int, int, TabNote]]()
    for now, after in pairwise(sorted(cuts)):
        while now >= starts[number + 1]:
            number += 1
        while place < len(windows) and windows[place][1] <= now:
            place += 1
        tuplet = windows[place][2] if windows[place:] and windows[place][0] <= now else 1
        sounding = [note for note in sounding if note[1] > now] + begins[now]
        sounding.sort(key=lambda note: note[2].note.string)
        for value in _split_into_note_values(after - now, unit, tuplet):
            end = now + int(value.duration_quarters * unit)
            notes = tuple(
                TiedNote(each, start == now, stop > end) for start, stop, each in sounding
            )
            beats[number].append(Beat(value, notes))
            now = end
    return beats


def _find_tuplets(
    cuts: Sequence[int], start: int, quarters: Fraction | int, unit: int
) -> Iterator[tuple[int, int, int]]:
    """Find the stretches of a bar that tuplets fill: start, end, and how many notes divide it.

    Args:
        cuts: the steps at which notes of the bar begin and end, and its own.
        start: where to begin.
        quarters: how many quarter notes to look at.
        unit: steps to a quarter note.
    """
    end = start + quarters * unit
    parts = [Fraction(cut - start, unit) / quarters for cut in cuts if start < cut < end]
    odd = [part.denominator // (part.denominator & -part.denominator) for part in parts]
    if start >= cuts[-1] or set(odd) <= {1}:
        return
    fits = end <= cuts[-1] and end.denominator == 1
    is_even = {part.denominator for part in parts} in ({3}, {5}, {7})
    if fits and (is_even or quarters <= 1 and Fraction(1, 2) not in parts):
        yield start, int(end), lcm(*odd)
        return
    half = Fraction(quarters) / 2
    middle = start + half * unit
    if middle.denominator == 1 and half >= Fraction(1, 8):
        yield from _find_tuplets(cuts, start, half, unit)
        yield from _find_tuplets(cuts, int(middle), half, unit)


def _split_into_note_values(steps: int, steps_per_quarter: int, tuplet: int = 1) -> list[NoteValue]:
    """Return the fewest note values that together last so many steps, longest first.

    Args:
        steps: the length.
        steps_per_quarter: how many steps a quarter note has.
        tuplet: the values are those of tuplets of so many notes; 1 for none.

    Raises:
        ValueError: if note values are not fine enough.
    """
    whole = 4 * steps_per_quarter
    wholes = max(0, steps // whole - 2) if tuplet == 1 else 0
    found = _shortest_spellings(steps_per_quarter, tuplet)[steps - wholes * whole]
    if found is None:
        raise ValueError(
            f"This tab has {steps_per_quarter} steps to a quarter note, and no note value is "
            "that short."
        )
    return [NoteValue(1)] * wholes + found


@cache
def _shortest_spellings(steps_per_quarter: int, tuplet: int) -> list[list[NoteValue] | None]:
    """Return the fewest values for 0, 1, 2, ... steps, up to four whole notes; None if none do."""
    coins = [
        (int(v.duration_quarters * steps_per_quarter), v)
        for v in NOTE_VALUES
        if (v.duration_quarters * steps_per_quarter).denominator == 1
        and (v.tuplet_notes == tuplet or tuplet not in (1, *TUPLET_TIMES))
    ]
    best: list[list[NoteValue] | None] = [[]]
    for steps in range(1, 16 * steps_per_quarter + 1):
        ways = [
            [value, *rest]
            for size, value in coins
            if size <= steps and (rest := best[steps - size]) is not None
        ]
        best.append(min(ways, key=len, default=None))
    return [way and sorted(way, key=lambda value: -value.duration_quarters) for way in best]


# --- From notation --------------------------------------------------------------------------------


@dataclass
class BarHeader:
    """A bar without its notes; lengths are in quarter notes."""

    length_quarters: Fraction
    time_signature: tuple[int, int] | None = None
    tempo: int | None = None
    starts_repeat: bool = False
    num_plays: int = 0
    endings: tuple[int, ...] = ()


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


@dataclass
class TabBuilder:
    """Collects the bars and notes of one instrument and builds a tab.

    Attributes:
        name: what the file calls it; may be empty.
        tuning: its guitar; None if its notes have no strings.
        bars: the headers of the bars.
        notes: the notes.
        omission_counts: how often something was left out, by message.
        reason_left_out: why no tab is made of it; empty if one is.
    """

    name: str = ""
    tuning: Tuning | None = None
    bars: list[BarHeader] = field(default_factory=list)
    notes: list[NoteEvent] = field(default_factory=list)
    omission_counts: Counter[str] = field(default_factory=Counter)
    reason_left_out: str = ""
    _last_by_voice_and_string: dict[tuple[int, int], NoteEvent] = field(default_factory=dict)

    def read_note(self, event: NoteEvent, is_tied: bool = False) -> None:
        """Take in a note, or hold on the last one of its voice and string if it is tied to it."""
        lane = event.voice, _lane(event.note)
        struck = self._last_by_voice_and_string.get(lane)
        if not is_tied:
            self.notes.append(event)
            self._last_by_voice_and_string[lane] = event
        elif struck and struck.onset_quarters + struck.duration_quarters == event.onset_quarters:
            struck.duration_quarters += event.duration_quarters
            struck.techniques |= event.techniques
        else:
            self.omission_counts["ties that continue no note are left out"] += 1

    def build_tab(self, title: str, source: str) -> tuple[Tab, list[str]]:
        """The tab, whose notes have no strings if it has no tuning; and what is not in it."""
        starts = list(accumulate((bar.length_quarters for bar in self.bars), initial=Fraction(0)))
        moments = [*starts, *(n.onset_quarters for n in self.notes)]
        moments += [n.onset_quarters + n.duration_quarters for n in self.notes]
        unit = find_common_steps_per_quarter(moments)
        if unit is None:
            unit = FALLBACK_STEPS_PER_QUARTER
            self.omission_counts[f"times are rounded to {unit} steps to a quarter note"] = 1
        steps = [round(start * unit) for start in starts]
        self._mark_pull_offs()
        events: list[dict[int, dict[int, TabNote]]] = [defaultdict(dict) for _ in self.bars]
        for struck in self.notes:
            onset = min(round(struck.onset_quarters * unit), steps[-1] - 1)
            number = bisect_right(steps, onset) - 1
            moment = events[number][onset - steps[number]]
            if _lane(struck.note) in moment:
                self.omission_counts["notes on a string that is struck already are left out"] += 1
                continue
            end = round((struck.onset_quarters + struck.duration_quarters) * unit)
            techniques = tuple(
                sorted(struck.techniques, key=lambda t: (TECHNIQUE_KINDS.index(t.kind), t))
            )
            moment[_lane(struck.note)] = TabNote(
                struck.note, max(1, end - onset), techniques, struck.voice
            )
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
                *astuple(header)[1:],
            )
            for (start, after), header, own in zip(pairwise(steps), self.bars, events, strict=True)
        ]
        omissions = [
            f"{count} {what}" if count > 1 else what for what, count in self.omission_counts.items()
        ]
        bars = drop_repeated_changes(bars)
        return Tab(title, tuning, tuple(bars), source, unit, "", self.name), omissions

    def _mark_pull_offs(self) -> None:
        """Tell pulls from hammers, which most files do not: a pull leads down."""
        following: dict[int, NoteEvent] = {}
        for struck in sorted(self.notes, key=lambda note: note.onset_quarters, reverse=True):
            after = following.get(struck.note.string)
            if Technique("hammer") in struck.techniques and after:
                if after.note.fret < struck.note.fret:
                    struck.techniques ^= {Technique("hammer"), Technique("pull")}
            following[struck.note.string] = struck


def build_tabs(
    source: str, title: str, builders: Sequence[TabBuilder]
) -> tuple[list[Tab], list[ReadProblem]]:
    """Return the tabs of a file, named where there are several; and what is not in them.

    Raises:
        ValueError: if there is no instrument of which a tab can be made.
    """
    tabs, problems = [], []
    for number, builder in enumerate(builders, start=1):
        builder.name = " ".join(builder.name.split()) if len(builders) > 1 else ""
        where = f"{builder.name or f'track {number}'}: " if len(builders) > 1 else ""
        reason, tuning = builder.reason_left_out, builder.tuning
        if tuning and not MIN_STRINGS <= len(tuning.open_pitches) <= MAX_STRINGS:
            reason = f"it has {len(tuning.open_pitches)} strings"
        messages = [f"left out, since {reason}"]
        if not reason:
            tab, messages = builder.build_tab(" ".join(title.split()), source)
            tabs.append(tab)
        problems += [ReadProblem(source, 0, where + message) for message in messages]
    if not tabs:
        raise ValueError("it has no track of 4 to 8 strings with notes")
    return tabs, problems


def _lane(note: Note) -> int:
    """What two notes at once cannot share: a string, or before strings are known a pitch."""
    return note.string or -note.fret
