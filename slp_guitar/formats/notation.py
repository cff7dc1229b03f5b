"""Tabs in notation: bars of beats whose lengths are note values, with ties between them.

A tab says how many steps a note lasts. Notation has halves, quarters, dots and triplets, one length
for all notes of a beat, and bars that no note crosses. So time is cut wherever a note of a voice
begins or ends and at every bar line, each stretch is made of as few note values as do, and what
sounds on is tied. `slp_guitar.formats.tab_builder` goes in the other direction.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from itertools import combinations_with_replacement, pairwise, zip_longest
from math import lcm
from operator import itemgetter
from typing import NamedTuple

from slp_guitar.tab import MAX_STEPS_PER_QUARTER, Bar, Event, Tab, TabNote, Technique, check_tab
from slp_guitar.techniques import TECHNIQUES
from slp_guitar.timing import (
    add_time_signatures,
    bar_start_steps,
    require_steps_per_quarter,
    with_coarsest_grid,
)


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
        return _duration_quarters(*self)


@lru_cache(maxsize=1024)
def _duration_quarters(denominator: int, is_dotted: bool, notes: int, time: int) -> Fraction:
    """Return the duration of a note value with these attributes."""
    plain = Fraction(4 * time, denominator * notes)
    return plain * 3 / 2 if is_dotted else plain


NOTE_VALUE_DENOMINATORS = (1, 2, 4, 8, 16, 32, 64)
TUPLET_TIMES = {3: 2, 5: 4, 7: 4, 9: 8, 11: 8, 13: 8}
NESTED_TUPLET_TIMES = {
    outer * inner: TUPLET_TIMES[outer] * TUPLET_TIMES[inner]
    for outer, inner in combinations_with_replacement(TUPLET_TIMES, 2)
    if outer * inner <= MAX_STEPS_PER_QUARTER and outer * inner not in TUPLET_TIMES
}
"""Of tuplets inside tuplets, as five in the time of four of three in the time of two: 15 and 8."""
NOTE_VALUES = tuple(
    NoteValue(kind, dotted, *tuplet)
    for tuplet in ((1, 1), *TUPLET_TIMES.items(), *NESTED_TUPLET_TIMES.items())
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
        if not self.tab_note.techniques:  # as of most notes
            return ()
        return tuple(
            technique
            for technique in self.tab_note.techniques
            if (not self.is_tied_to_next if TECHNIQUES[technique.kind].leads_on else self.is_struck)
        )


class Beat(NamedTuple):
    """Notes of one length, a rest where there are none.

    Attributes:
        note_value: the length.
        notes: the notes, string 1 (the highest) first.
        tempo_bpm: of the first voice, the tempo that begins with the beat inside its bar; None if
            none does.
    """

    note_value: NoteValue
    notes: tuple[TiedNote, ...]
    tempo_bpm: int | None = None


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


def with_durations_filled(tab: Tab) -> Tab:
    """Return the tab with all durations filled in, as in notation and files.

    A note without a duration lasts until the next event of its voice, and at most to the end of its
    bar. A note ends where the next one begins on its string, or at its pitch if it has no string,
    and with the piece.
    """
    end, events = bar_start_steps(tab)[-1], []
    nexts: dict[int, int] = {}  # by voice: when the event after begins
    strings: dict[int, int] = {}  # by string, or pitch: when it is struck again
    lane = itemgetter(0 if tab.is_fingered else 1)
    for start, bar, event in reversed(list(tab.iter_placed_events())):
        now, notes = start + event.step, []
        for each in event.tab_notes():
            usual = min(nexts.get(each.voice, end), start + bar.steps) - now
            most = strings.get(lane(each.note), end) - now
            length = min(each.duration_steps or usual, most)
            notes.append(TabNote(each.note, length, each.techniques, each.voice))
        strings |= {lane(each.note): now for each in notes}
        nexts |= {each.voice: now for each in notes}
        events.append(Event.from_notes(event.step, notes))
    return tab.with_events(reversed(events))


def count_cut_notes(tab: Tab) -> int:
    """Return how many notes end before their time, since their string is struck again."""
    filled = with_durations_filled(tab)
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
    tab = _arrange_voices(with_durations_filled(add_time_signatures(tab)), num_voices)
    return with_coarsest_grid(tab)


def _arrange_voices(tab: Tab, num_voices: int) -> Tab:
    """Return the tab in one voice; or if all is in one of two, with held basses in the other.

    A note held while higher ones begin goes to the second voice if nothing sounds there, so that
    it is one note and no chain of ties; and so does the bass that such a bar begins with.
    """
    if num_voices > 1 and any(event.voices for event in tab.iter_events()) or not tab.is_fingered:
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
            notes.append(TabNote(*each[:3], voice=2 if is_held else 1))
        events.append(Event.from_notes(event.step, notes))
    return move_first_basses(tab.with_events(events))


def move_first_basses(tab: Tab) -> Tab:
    """Return the tab with the first note of a bar in voice 2 if it is as low as others there."""
    busy: list[tuple[int, int]] = []
    basses: dict[int, int] = {}  # by start of bar: the highest string of voice 2
    for start, _, event in tab.iter_placed_events():
        for (string, _), length, _, voice in event.tab_notes():
            if voice == 2:
                busy.append((start + event.step, start + event.step + length))
                basses[start] = min(string, basses.get(start, string))
    events = []
    for start, _, event in tab.iter_placed_events():
        if event.step or start not in basses:
            events.append(event)
            continue
        notes = list(event.tab_notes())
        lowest = notes[0]
        if lowest.note.string >= basses[start] and lowest.voice == 1:
            after = bisect_left(busy, (start, start))
            is_free = after == len(busy) or busy[after][0] >= start + lowest.duration_steps
            if is_free and (after == 0 or busy[after - 1][1] <= start):
                notes[0] = lowest._replace(voice=2)
        events.append(Event.from_notes(event.step, notes))
    return tab.with_events(events)


def check_tracks_have_same_bars(tracks: Sequence[Tab], needs_strings: bool = True) -> None:
    """Refuse tracks that cannot be written into one file, as for `check_tab`.

    Raises:
        ValueError: if a tab cannot be written down, its steps are columns, or a bar is not as long
            as the first track's.
    """
    lengths = []
    for tab in tracks:
        check_tab(tab, needs_strings)
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


def check_beat_count(bar_number: int, beats: int, max_beats: int, file_type: str) -> None:
    """Refuse a bar of more beats than a kind of file can say.

    Raises:
        ValueError: naming the bar.
    """
    if beats > max_beats:
        said = f"Bar {bar_number} has {beats} beats; a bar of a {file_type} file has at most"
        raise ValueError(f"{said} {max_beats}.")


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
    tempos: dict[int, int] = {}
    if voice == 1:
        for start, bar in zip(starts, tab.bars, strict=False):
            tempos |= {start + step: bpm for step, bpm in bar.tempo_changes}
    cuts |= tempos.keys()
    places = sorted(cuts)
    windows = [
        window
        for start, end in pairwise(starts)
        for own in [places[bisect_left(places, start) : bisect_left(places, end + 1)]]
        for begin in range(start, end, 4 * unit)
        for window in _iter_tuplets(own, begin, 4, unit)
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
        try:
            values = _split_into_note_values(after - now, unit, tuplet)
        except ValueError as error:
            raise ValueError(f"Bar {number + 1}: {error}") from None
        for value in values:
            end = now + int(value.duration_quarters * unit)
            notes = tuple(
                TiedNote(each, start == now, stop > end) for start, stop, each in sounding
            )
            beats[number].append(Beat(value, notes, tempos.get(now)))
            now = end
    return beats


def _iter_tuplets(
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
    is_even = {part.denominator for part in parts} in [{count} for count in TUPLET_TIMES]
    if fits and (is_even or quarters <= 1 and Fraction(1, 2) not in parts):
        yield start, int(end), lcm(*odd)
        return
    half = Fraction(quarters) / 2
    middle = start + half * unit
    if middle.denominator == 1 and half >= Fraction(1, 8):
        yield from _iter_tuplets(cuts, start, half, unit)
        yield from _iter_tuplets(cuts, int(middle), half, unit)


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
            f"this tab has {steps_per_quarter} steps to a quarter note, and no note value is "
            "that short."
        )
    return [NoteValue(1)] * wholes + found


@cache
def _shortest_spellings(steps_per_quarter: int, tuplet: int) -> list[list[NoteValue] | None]:
    """Return the fewest values for 0, 1, 2, ... steps, up to four whole notes; None if none do."""
    is_mixed = tuplet not in (1, *TUPLET_TIMES)
    coins = [
        (int(v.duration_quarters * steps_per_quarter), v)
        for v in NOTE_VALUES
        if (v.duration_quarters * steps_per_quarter).denominator == 1
        and (v.tuplet_notes == tuplet or is_mixed and tuplet % v.tuplet_notes == 0)
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
