"""Pieces that are to be played on a guitar: moments of pitches, and tabs from grips for them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from slp_guitar.fingering.grips import Grip
from slp_guitar.fretboard import Tuning, get_scale_length
from slp_guitar.hand import FINGERS, choose_fingers
from slp_guitar.tab import Event, Tab, TabNote, Technique
from slp_guitar.techniques import TECHNIQUES


class PlayableMoment(NamedTuple):
    """Notes to be fingered together.

    Attributes:
        bar_number: the bar, from 1.
        number: which moment of its bar it is, from 1.
        step: steps from the bar line.
        pitches: the pitches.
        notes: as many notes with their other details; where they were played does not matter.
    """

    bar_number: int
    number: int
    step: int
    pitches: tuple[int, ...]
    notes: tuple[TabNote, ...]

    def __str__(self) -> str:
        return f"bar {self.bar_number}, moment {self.number}"


@dataclass(frozen=True)
class PlayablePiece:
    """Something to be fingered.

    Attributes:
        tab: its bars, with or without events.
        moments: its moments.
        changes: what was left out when it was read: where, and what.
    """

    tab: Tab
    moments: Sequence[PlayableMoment]
    changes: Sequence[tuple[str, str]] = ()

    def transpose(self, half_steps: int) -> "PlayablePiece":
        """Return the piece so many half steps higher, or lower where there are fewer than none."""
        moments = [
            one._replace(pitches=tuple(pitch + half_steps for pitch in one.pitches))
            for one in self.moments
        ]
        return replace(self, moments=moments)

    def ringing_steps(self, moments: Sequence[PlayableMoment]) -> tuple[tuple[float, ...], ...]:
        """Return for how many steps the strings of each note of some moments should be left alone.

        One that rings on does so until it is struck again, at most to the end of its bar.
        """
        struck: dict[tuple[int, int], int] = {}  # by bar and pitch: when it comes next
        found: list[tuple[float, ...]] = []
        for number, _, step, pitches, notes in reversed(moments):
            own = []
            for pitch, note in zip(pitches, notes, strict=True):
                rings = any(technique.kind == "let ring" for technique in note.techniques)
                end = struck.get((number, pitch), self.tab.bars[number - 1].steps)
                own.append(float(max(note.duration_steps, (end - step) * rings)))
            found.append(tuple(own))
            struck |= {(number, pitch): step for pitch in pitches}
        return tuple(reversed(found))

    def describe_place(self, moment: PlayableMoment) -> str:
        """Return where a moment is: its bar, its number and, where there is time, its beat."""
        unit, bars = self.tab.steps_per_quarter, self.tab.bars[: moment.bar_number]
        if unit is None:
            return str(moment)
        signatures = [bar.time_signature for bar in bars if bar.time_signature]
        _, kind = signatures[-1] if signatures else (4, 4)
        return f"{moment} (beat {1 + moment.step * kind / (4 * unit):.4g})"

    def build_tab(self, grips: Sequence[Grip], hands: Sequence[int], tuning: Tuning) -> Tab:
        """A tab from a grip for each moment, with as many notes as the moment has, and its fingers.

        Techniques that make no sense at the new places are left out. Fingers that the piece names
        stay where all notes of their moment do; elsewhere they are chosen.

        Args:
            grips: the grips.
            hands: at which fret the hand is for each.
            tuning: the guitar.
        """
        events: list[list[Event]] = [[] for _ in self.tab.bars]
        kept = self._possible_techniques(grips, tuning)
        scale = get_scale_length(tuning)
        for moment, grip, hand, techniques in zip(self.moments, grips, hands, kept, strict=True):
            named = any(one.kind in FINGERS for own in techniques for one in own)
            chosen = [] if named else choose_fingers(grip, hand, scale, tuning.capo)
            fingers = [(Technique(FINGERS[n - 1]),) if n else () for n in chosen or [0] * len(grip)]
            details = zip(moment.notes, grip, techniques, fingers, strict=True)
            played = [
                each._replace(note=n, techniques=(*own, *finger))
                for each, n, own, finger in details
            ]
            events[moment.bar_number - 1].append(Event.from_notes(moment.step, played))
        bars = zip(self.tab.bars, events, strict=True)
        filled = tuple(replace(bar, events=tuple(own)) for bar, own in bars)
        return replace(self.tab, tuning=tuning, bars=filled)

    def describe_lost_techniques(
        self, grips: Sequence[Grip], tuning: Tuning
    ) -> list[tuple[str, str]]:
        """Return which techniques `build_tab` leaves out: where, and what."""
        lost = {
            (f"bar {moment.bar_number}", f"{TECHNIQUES[gone.kind].plural} don't go with the places")
            for moment, kept in zip(
                self.moments, self._possible_techniques(grips, tuning), strict=True
            )
            for note, own in zip(moment.notes, kept, strict=True)
            for gone in set(note.techniques) - set(own)
        }
        return sorted(lost, key=lambda each: (int(each[0].split()[1]), each[1]))

    def _possible_techniques(
        self, grips: Sequence[Grip], tuning: Tuning
    ) -> list[list[tuple[Technique, ...]]]:
        """Return the techniques of each note of each moment that its new place allows.

        What leads to a note must still lead to it, along one string and to another fret. An open
        string is not bent, a harmonic is where it is on the string, and fingers are a grip's.
        """
        targets: dict[int, tuple[int, int]] = {}  # by string before: the next moment, and note
        nexts: dict[int, tuple[tuple[int, int], int]] = {}  # by string now: the same, and fret
        found: list[list[tuple[Technique, ...]]] = []
        for place in reversed(range(len(grips))):
            pairs = list(zip(self.moments[place].notes, grips[place], strict=True))
            stays = tuning == self.tab.tuning and all(new == old.note for old, new in pairs)
            own = []
            for old, new in pairs:
                is_same = new == old.note and tuning == self.tab.tuning
                target = targets.get(old.note.string)
                after, fret = nexts.get(new.string, (None, 0))
                leads = target is None or target == after and fret != new.fret
                lost = set() if is_same else {"harmonic"}
                lost |= set() if is_same or new.fret else {"bend", "vibrato"}
                lost |= set() if stays else set(FINGERS)
                lost |= set() if leads else {k for k, s in TECHNIQUES.items() if s.leads_on}
                own.append(tuple(each for each in old.techniques if each.kind not in lost))
            found.append(own)
            for number, (old, new) in enumerate(pairs):
                targets[old.note.string] = place, number
                nexts[new.string] = (place, number), new.fret
        return found[::-1]


def piece_from_tab(tab: Tab) -> PlayablePiece:
    """A tab, with or without strings, as a piece: its pitches, to be fingered (anew)."""
    moments, changes = [], []
    for number, bar in enumerate(tab.bars, start=1):
        count = 0
        for event in bar.events:
            sounding = set(event.sounding_notes())
            played = tuple(n for n in event.tab_notes() if n.note in sounding)
            if len(played) < len(event.notes):
                changes.append((f"bar {number}", "a note without a pitch is left out"))
            if played:
                count += 1
                pitches = tuple(tab.tuning.pitch_of(each.note) for each in played)
                moments.append(PlayableMoment(number, count, event.step, pitches, played))
    return PlayablePiece(tab, moments, changes)
