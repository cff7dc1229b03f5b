"""How far a fingering agrees with the one that people wrote, and whether it can be played."""

from collections.abc import Sequence
from dataclasses import dataclass

from slp_transformer.guitar.fingering.grips import Grip
from slp_transformer.guitar.fretboard import MAX_SPAN, Tuning, is_playable


@dataclass(frozen=True)
class Agreement:
    """Counts over one piece, or several: they are added with ``+``.

    A note is right if it is on the string that people chose; its pitch is then right too. A note is
    *free* if its pitch has two places or more. A chord is an event of two notes or more.

    Attributes:
        notes: how many notes there are.
        right: how many are right.
        free_notes: how many of them are free.
        free_right: how many of those are right.
        chords: how many chords there are.
        chords_right: how many have every note right.
        events: how many events there are.
        events_right: how many have every note right.
        playable: how many can be played: distinct strings, fretted notes within the span.
        pitches_kept: how many notes sound at the pitch that was asked for.
    """

    notes: int = 0
    right: int = 0
    free_notes: int = 0
    free_right: int = 0
    chords: int = 0
    chords_right: int = 0
    events: int = 0
    events_right: int = 0
    playable: int = 0
    pitches_kept: int = 0

    def __add__(self, other: "Agreement") -> "Agreement":
        return total_of([self, other])

    def shares(self) -> dict[str, float]:
        """What is reported, from 0 to 1 each."""
        parts = {
            "strings": (self.right, self.notes),
            "free_strings": (self.free_right, self.free_notes),
            "chords": (self.chords_right, self.chords),
            "events": (self.events_right, self.events),
            "playable": (self.playable, self.events),
            "pitch": (self.pitches_kept, self.notes),
        }
        return {name: part / max(1, whole) for name, (part, whole) in parts.items()}


def agreement(
    written: Sequence[Grip],
    chosen: Sequence[Grip],
    tuning: Tuning,
    max_span: int = MAX_SPAN,
) -> Agreement:
    """Compare a fingering with the one that people wrote, both event by event.

    Raises:
        ValueError: if they have not equally many events, or notes in an event.
    """
    total = Agreement()
    for theirs, ours in zip(written, chosen, strict=True):
        right = [a == b for a, b in zip(theirs, ours, strict=True)]
        pitches = [tuning.pitch(note) for note in theirs]
        free = [len(tuning.positions(pitch)) > 1 for pitch in pitches]
        chord = len(theirs) > 1
        total += Agreement(
            len(right),
            sum(right),
            sum(free),
            sum(r for r, f in zip(right, free, strict=True) if f),
            int(chord),
            int(chord and all(right)),
            1,
            int(all(right)),
            int(is_playable(ours, max_span)),
            sum(tuning.pitch(n) == p for n, p in zip(ours, pitches, strict=True)),
        )
    return total


def total_of(pieces: Sequence[Agreement]) -> Agreement:
    """The counts of several pieces added up."""
    columns = zip(*(tuple(vars(piece).values()) for piece in pieces), strict=True)
    return Agreement(*map(sum, columns))
