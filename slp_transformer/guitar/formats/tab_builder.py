"""Notes from notation made into a tab: ties joined, doubles left out, time in coarse steps."""

from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate, pairwise

from slp_transformer.guitar.fretboard import Note, Tuning
from slp_transformer.guitar.tab import KINDS, Bar, Event, Played, Tab, Technique
from slp_transformer.guitar.timing import common_unit, only_changes

ROUNDED = 24
"""Steps to a quarter note for what is in no grid that a tab may have."""


@dataclass
class Said:
    """What a file says of a bar beyond its notes; lengths are in quarter notes."""

    length: Fraction
    metre: tuple[int, int] | None = None
    tempo: int | None = None
    repeat_from: bool = False
    repeats: int = 0
    endings: tuple[int, ...] = ()


@dataclass
class Struck:
    """A note as it is read; moments are in quarter notes from the beginning of the piece."""

    onset: Fraction
    duration: Fraction
    note: Note
    techniques: set[Technique] = field(default_factory=set)
    voice: int = 1


@dataclass
class Gathered:
    """What is read of one instrument, bar after bar.

    Attributes:
        bars: what is said of the bars.
        notes: the notes.
        told: how often what was left out, by what is said of it.
    """

    bars: list[Said] = field(default_factory=list)
    notes: list[Struck] = field(default_factory=list)
    told: Counter[str] = field(default_factory=Counter)
    _last: dict[tuple[int, int], Struck] = field(default_factory=dict)

    def strike(self, struck: Struck) -> Struck:
        """Take in a note that begins."""
        self.notes.append(struck)
        self._last[struck.voice, struck.note.string] = struck
        return struck

    def hold(self, onset: Fraction, duration: Fraction, string: int, voice: int) -> Struck | None:
        """Hold on the last note of a voice and string; None if there is none to hold."""
        struck = self._last.get((voice, string))
        if struck is None or struck.onset + struck.duration != onset:
            self.told["ties that continue no note are left out"] += 1
            return None
        struck.duration += duration
        return struck

    def tab(self, title: str, tuning: Tuning, source: str) -> tuple[Tab, list[str]]:
        """The tab, and what of the file is not in it."""
        starts = list(accumulate((bar.length for bar in self.bars), initial=Fraction(0)))
        moments = [*starts, *(n.onset for n in self.notes)]
        moments += [n.onset + n.duration for n in self.notes]
        unit = common_unit(moments)
        if unit is None:
            unit = ROUNDED
            self.told[f"times are rounded to {unit} steps to a quarter note"] = 1
        steps = [round(start * unit) for start in starts]
        self._name_slurs()
        events: list[dict[int, dict[int, Played]]] = [defaultdict(dict) for _ in self.bars]
        for struck in self.notes:
            onset = min(round(struck.onset * unit), steps[-1] - 1)
            number = bisect_right(steps, onset) - 1
            moment = events[number][onset - steps[number]]
            if struck.note.string in moment:
                self.told["notes on a string that is struck already are left out"] += 1
                continue
            end = round((struck.onset + struck.duration) * unit)
            techniques = tuple(sorted(struck.techniques, key=lambda t: (KINDS.index(t.kind), t)))
            moment[struck.note.string] = Played(
                struck.note, max(1, end - onset), techniques, struck.voice
            )
        bars = [
            Bar(
                after - start,
                tuple(Event.of(step, own[step].values()) for step in sorted(own)),
                said.metre,
                said.tempo,
                said.repeat_from,
                said.repeats,
                said.endings,
            )
            for (start, after), said, own in zip(pairwise(steps), self.bars, events, strict=True)
        ]
        told = [f"{count} {what}" if count > 1 else what for what, count in self.told.items()]
        return Tab(title, tuning, tuple(only_changes(bars)), source, unit), told

    def _name_slurs(self) -> None:
        """Tell pulls from hammers, which most files do not: a pull leads down."""
        following: dict[int, Struck] = {}
        for struck in sorted(self.notes, key=lambda note: note.onset, reverse=True):
            after = following.get(struck.note.string)
            if Technique("hammer") in struck.techniques and after:
                if after.note.fret < struck.note.fret:
                    struck.techniques -= {Technique("hammer")}
                    struck.techniques |= {Technique("pull")}
            following[struck.note.string] = struck
