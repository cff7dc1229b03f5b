"""Agreement of a fingering with the one that people wrote, and playability."""

from collections.abc import Sequence
from typing import NamedTuple

from slp_transformer.guitar.fingering.grips import Grip
from slp_transformer.guitar.fretboard import MAX_SPAN, Tuning, is_playable_grip


class FingeringMetrics(NamedTuple):
    """Counts over one piece, or several (`sum_metrics`).

    A note is right if it is on the string that people chose; its pitch is then right too. A note is
    *free* if its pitch has two places or more. A chord is an event of two notes or more.

    Attributes:
        num_notes: how many notes there are.
        correct_notes: how many are right.
        ambiguous_notes: how many of them are free.
        correct_ambiguous_notes: how many of those are right.
        num_chords: how many chords there are.
        correct_chords: how many have every note right.
        num_events: how many events there are.
        correct_events: how many have every note right.
        playable_events: how many can be played: distinct strings, fretted notes within the span.
        correct_pitches: how many notes sound at the pitch that was asked for.
    """

    num_notes: int = 0
    correct_notes: int = 0
    ambiguous_notes: int = 0
    correct_ambiguous_notes: int = 0
    num_chords: int = 0
    correct_chords: int = 0
    num_events: int = 0
    correct_events: int = 0
    playable_events: int = 0
    correct_pitches: int = 0

    def to_shares(self) -> dict[str, float]:
        """Return the reported shares, each from 0 to 1."""
        parts = {
            "strings": (self.correct_notes, self.num_notes),
            "free_strings": (self.correct_ambiguous_notes, self.ambiguous_notes),
            "chords": (self.correct_chords, self.num_chords),
            "events": (self.correct_events, self.num_events),
            "playable": (self.playable_events, self.num_events),
            "pitch": (self.correct_pitches, self.num_notes),
        }
        return {name: part / max(1, whole) for name, (part, whole) in parts.items()}


def compare_fingerings(
    reference_grips: Sequence[Grip],
    predicted_grips: Sequence[Grip],
    tuning: Tuning,
    max_span: int = MAX_SPAN,
) -> FingeringMetrics:
    """Compare a fingering with the one that people wrote, both event by event.

    Raises:
        ValueError: if they have not equally many events, or notes in an event.
    """
    events = []
    for theirs, ours in zip(reference_grips, predicted_grips, strict=True):
        right = [a == b for a, b in zip(theirs, ours, strict=True)]
        pitches = [tuning.pitch_of(note) for note in theirs]
        free = [len(tuning.positions_of(pitch)) > 1 for pitch in pitches]
        chord = len(theirs) > 1
        events.append(
            FingeringMetrics(
                num_notes=len(right),
                correct_notes=sum(right),
                ambiguous_notes=sum(free),
                correct_ambiguous_notes=sum(r for r, f in zip(right, free, strict=True) if f),
                num_chords=int(chord),
                correct_chords=int(chord and all(right)),
                num_events=1,
                correct_events=int(all(right)),
                playable_events=int(is_playable_grip(ours, max_span)),
                correct_pitches=sum(
                    tuning.pitch_of(n) == p for n, p in zip(ours, pitches, strict=True)
                ),
            )
        )
    return sum_metrics(events)


def sum_metrics(metrics: Sequence[FingeringMetrics]) -> FingeringMetrics:
    """The counts of several pieces added up."""
    return FingeringMetrics(*map(sum, zip(*metrics, strict=True)))
