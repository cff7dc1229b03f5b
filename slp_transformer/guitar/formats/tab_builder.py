"""Notes from notation made into a tab: ties joined, doubles left out, time in coarse steps."""

from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate, pairwise

from slp_transformer.guitar.fretboard import Note, Tuning
from slp_transformer.guitar.tab import TECHNIQUE_KINDS, Bar, Event, Tab, TabNote, Technique
from slp_transformer.guitar.timing import drop_repeated_changes, find_common_steps_per_quarter

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


@dataclass
class NoteEvent:
    """A note as it is read; moments are in quarter notes from the beginning of the piece."""

    onset_quarters: Fraction
    duration_quarters: Fraction
    note: Note
    techniques: set[Technique] = field(default_factory=set)
    voice: int = 1


@dataclass
class TabBuilder:
    """Collects the bars and notes of one instrument and builds a tab.

    Attributes:
        bars: the headers of the bars.
        notes: the notes.
        omission_counts: how often something was left out, by message.
    """

    bars: list[BarHeader] = field(default_factory=list)
    notes: list[NoteEvent] = field(default_factory=list)
    omission_counts: Counter[str] = field(default_factory=Counter)
    _last_by_voice_and_string: dict[tuple[int, int], NoteEvent] = field(default_factory=dict)

    def add_note(self, note_event: NoteEvent) -> NoteEvent:
        """Take in a note that begins."""
        self.notes.append(note_event)
        self._last_by_voice_and_string[note_event.voice, note_event.note.string] = note_event
        return note_event

    def extend_tied_note(
        self, onset_quarters: Fraction, duration_quarters: Fraction, string: int, voice: int
    ) -> NoteEvent | None:
        """Hold on the last note of a voice and string; None if there is none to hold."""
        struck = self._last_by_voice_and_string.get((voice, string))
        if struck is None or struck.onset_quarters + struck.duration_quarters != onset_quarters:
            self.omission_counts["ties that continue no note are left out"] += 1
            return None
        struck.duration_quarters += duration_quarters
        return struck

    def build_tab(self, title: str, tuning: Tuning, source: str) -> tuple[Tab, list[str]]:
        """The tab, and what of the file is not in it."""
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
            if struck.note.string in moment:
                self.omission_counts["notes on a string that is struck already are left out"] += 1
                continue
            end = round((struck.onset_quarters + struck.duration_quarters) * unit)
            techniques = tuple(
                sorted(struck.techniques, key=lambda t: (TECHNIQUE_KINDS.index(t.kind), t))
            )
            moment[struck.note.string] = TabNote(
                struck.note, max(1, end - onset), techniques, struck.voice
            )
        bars = [
            Bar(
                after - start,
                tuple(Event.from_notes(step, own[step].values()) for step in sorted(own)),
                header.time_signature,
                header.tempo,
                header.starts_repeat,
                header.num_plays,
                header.endings,
            )
            for (start, after), header, own in zip(pairwise(steps), self.bars, events, strict=True)
        ]
        omissions = [
            f"{count} {what}" if count > 1 else what for what, count in self.omission_counts.items()
        ]
        return Tab(title, tuning, tuple(drop_repeated_changes(bars)), source, unit), omissions

    def _mark_pull_offs(self) -> None:
        """Tell pulls from hammers, which most files do not: a pull leads down."""
        following: dict[int, NoteEvent] = {}
        for struck in sorted(self.notes, key=lambda note: note.onset_quarters, reverse=True):
            after = following.get(struck.note.string)
            if Technique("hammer") in struck.techniques and after:
                if after.note.fret < struck.note.fret:
                    struck.techniques -= {Technique("hammer")}
                    struck.techniques |= {Technique("pull")}
            following[struck.note.string] = struck
