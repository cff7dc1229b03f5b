"""Chords made fit for a guitar: what a guitarist asks for, and notes that cannot be played."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any, Literal

from slp_guitar.fingering.grips import explain_unplayable, find_grips
from slp_guitar.fretboard import MAX_FRET, MAX_SPAN, STANDARD, Note, Tuning, format_pitch

UnplayablePolicy = Literal["refuse", "octave", "drop", "roll"]
EASY: dict[str, Any] = {"preferred_position": 1, "open_string_preference": 1, "max_span": 3}
"""The options of a fingering for beginners: the first position, open strings, few stretches."""

MAX_SEARCHED_NOTES = 7
"""Notes of a chord among which those to leave out are sought; lower inner ones beyond go first."""


@dataclass(frozen=True)
class FingeringOptions:
    """The options of a fingering.

    Attributes:
        tuning: the guitar, with its capo.
        max_fret: highest fret, counted from the nut.
        max_span: most frets between the fretted notes of a grip.
        preferred_position: fret of the preferred position; None for no preference.
        open_string_preference: 1 to prefer open strings, −1 to avoid them, 0 for neither.
        pinned_notes: notes forced onto a string and fret, by the numbers of their bar and of their
            moment in it, from 1.
        unplayable_policy: what to do about notes that this guitar cannot play: "refuse" the piece,
            move them by "octave", "drop" them, or "roll" chords: play them in parts,
            and move single notes.
        weights: of the costs of the hand; those of the package if None.
    """

    tuning: Tuning = STANDARD
    max_fret: int = MAX_FRET
    max_span: int = MAX_SPAN
    preferred_position: int | None = None
    open_string_preference: int = 0
    pinned_notes: Mapping[tuple[int, int], tuple[Note, ...]] = field(default_factory=dict)
    unplayable_policy: UnplayablePolicy = "refuse"
    weights: Mapping[str, float] | None = None


def fit_chord_to_guitar(
    pitches: Sequence[int], options: FingeringOptions
) -> tuple[dict[int, int], list[str], str]:
    """Make a moment fit for a guitar: pitches that one hand can take.

    A pitch that is there twice is taken once.

    Args:
        pitches: what sounds at the moment, in any order.
        options: the guitar, and what to do about notes that it cannot play.

    Returns:
        The pitches that are left, lowest first, each with its place in `pitches`; what was changed;
        and why the moment cannot be played as it is, empty if it can.
    """
    notes: dict[int, int] = {}
    changes = []
    for place, pitch in enumerate(pitches):
        moved = (
            nearest_octave_on_neck(pitch, options)
            if options.unplayable_policy == "octave"
            else pitch
        )
        if moved != pitch:
            changes.append(f"{format_pitch(pitch)} is moved to {format_pitch(moved)}")
        notes.setdefault(moved, place)
    if len(notes) < len(pitches):
        changes.append("a pitch that is there twice is taken once")
    notes = dict(sorted(notes.items()))
    reason = _explain_unplayable(tuple(notes), options)
    if reason and options.unplayable_policy == "drop":
        for pitch in _choose_dropped_pitches(tuple(notes), options):
            del notes[pitch]
            changes.append(f"{format_pitch(pitch)} is left out")
        reason = ""
    if reason and options.unplayable_policy == "octave":
        octaves = _choose_moved_pitches(tuple(notes), options)
        left: dict[int, int] = {}
        for (pitch, place), octave in zip(notes.items(), octaves, strict=True):
            if octave is None:
                changes.append(f"{format_pitch(pitch)} is left out")
                continue
            left[octave] = place
            if octave != pitch:
                changes.append(f"{format_pitch(pitch)} is moved to {format_pitch(octave)}")
        notes, reason = dict(sorted(left.items())), ""
    return notes, changes, reason


def _explain_unplayable(pitches: tuple[int, ...], options: FingeringOptions) -> str:
    """Why a hand cannot take these notes; empty if it can."""
    if find_grips(pitches, options.tuning, options.max_fret, options.max_fret):
        return ""
    return explain_unplayable(pitches, options.tuning, options.max_fret)


def _choose_moved_pitches(
    pitches: tuple[int, ...], options: FingeringOptions
) -> Sequence[int | None]:
    """Return where the notes of a chord are moved to so that a hand can take it; None: left out.

    As few as possible are moved, by one octave; of these the inner ones rather than the bass, and
    the melody last. Where that is not enough, notes are left out as if they were dropped.
    """
    if len(pitches) <= len(options.tuning.open_pitches):
        octaves = [
            [p, *(q for q in (p - 12, p + 12) if options.tuning.positions_of(q, options.max_fret))]
            for p in pitches
        ]

        def price(chord: tuple[int, ...]) -> tuple[int, bool, bool]:
            moved = [a != b for a, b in zip(pitches, chord, strict=True)]
            return sum(moved), moved[-1], moved[0]

        for chord in sorted(product(*octaves), key=price):
            if len(set(chord)) == len(chord) and not _explain_unplayable(
                tuple(sorted(chord)), options
            ):
                return chord
    dropped = _choose_dropped_pitches(pitches, options)
    return [None if pitch in dropped else pitch for pitch in pitches]


def nearest_octave_on_neck(pitch: int, options: FingeringOptions) -> int:
    """The nearest octave of a pitch that is on the neck; the pitch itself if none is."""
    octaves = [pitch + 12 * k for k in sorted(range(-10, 11), key=abs)]
    return next((p for p in octaves if options.tuning.positions_of(p, options.max_fret)), pitch)


def _choose_dropped_pitches(pitches: tuple[int, ...], options: FingeringOptions) -> list[int]:
    """Return the notes to leave out: those off the neck, and as few others as leave the melody.

    The bass stays rather than inner voices; of these go those that sound in another octave, too,
    and then the lowest.
    """
    on_neck = [p for p in pitches if options.tuning.positions_of(p, options.max_fret)]
    searched = [*on_neck[:1], *on_neck[1:][1 - MAX_SEARCHED_NOTES :]]

    def price(chord: tuple[int, ...]) -> tuple[bool, int, list[int]]:
        pitch_classes = {pitch % 12 for pitch in chord}
        return searched[0] not in chord, -len(pitch_classes), [-pitch for pitch in chord]

    for size in range(min(len(searched), len(options.tuning.open_pitches)), 0, -1):
        chords = [(*others, searched[-1]) for others in combinations(searched[:-1], size - 1)]
        for chord in sorted(chords, key=price):
            if find_grips(chord, options.tuning, options.max_fret, options.max_fret):
                return [pitch for pitch in pitches if pitch not in chord]
    return list(pitches)
