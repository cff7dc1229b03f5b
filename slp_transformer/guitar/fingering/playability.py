"""Pitches in, tab out: what a guitarist asks for, what was done about it, and what it came to."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from slp_transformer.guitar.fingering.grips import (
    Grip,
    UnplayableError,
    find_grips,
    find_playable_grips,
)
from slp_transformer.guitar.fingering.passages import Passage
from slp_transformer.guitar.fingering.viterbi import ExtraGripCost, HandCosts, find_cheapest_path
from slp_transformer.guitar.fretboard import (
    MAX_FRET,
    MAX_SPAN,
    STANDARD,
    Note,
    Tuning,
    format_pitch,
)

UnplayablePolicy = Literal["refuse", "octave", "drop"]
OPEN_STRING_COST = 1.0  # what preferring open strings, or not, is worth to a hand
REPEATED_GRIP_COST = 2.0  # what an alternative pays for a grip that an earlier one has

GripScorer = Callable[[Passage, Sequence[Sequence[Grip]]], Sequence[Sequence[float]]]
"""Returns the log-probability, under a trained model, of each grip of each moment."""


@dataclass(frozen=True)
class FingeringOptions:
    """The options of a fingering.

    Attributes:
        tuning: the guitar, with its capo.
        max_fret: highest fret, counted from the nut.
        max_span: most frets between the fretted notes of a grip.
        preferred_position: fret of the preferred position; None for no preference.
        open_string_preference: 1 to prefer open strings, −1 to avoid them, 0 for neither.
        pinned_notes: notes forced onto a string and fret, by the number of their moment from 0.
        unplayable_policy: what to do about notes that this guitar cannot play: "refuse" the piece,
            move them by "octave", or "drop" them.
    """

    tuning: Tuning = STANDARD
    max_fret: int = MAX_FRET
    max_span: int = MAX_SPAN
    preferred_position: int | None = None
    open_string_preference: int = 0
    pinned_notes: Mapping[int, tuple[Note, ...]] = field(default_factory=dict)
    unplayable_policy: UnplayablePolicy = "refuse"

    def to_hand_costs(self) -> HandCosts:
        """Return the costs of a hand with these preferences."""
        return HandCosts(
            per_open_string=-OPEN_STRING_COST * self.open_string_preference,
            preferred_position=self.preferred_position,
        )


class PinError(ValueError):
    """A pin that cannot be kept.

    Attributes:
        moment_index: the number of its moment.
    """

    def __init__(self, moment_index: int, message: str):
        """Say why, without a full stop."""
        super().__init__(message)
        self.moment_index = moment_index


def fit_moment(
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
        moved = _nearest_octave(pitch, options) if options.unplayable_policy == "octave" else pitch
        if moved != pitch:
            changes.append(f"{format_pitch(pitch)} is moved to {format_pitch(moved)}")
        notes.setdefault(moved, place)
    if len(notes) < len(pitches):
        changes.append("a pitch that is there twice is taken once")
    reason = _why_unplayable(tuple(sorted(notes)), options)
    if reason and options.unplayable_policy == "drop":
        for pitch in _choose_dropped_pitches(tuple(sorted(notes)), options):
            del notes[pitch]
            changes.append(f"{format_pitch(pitch)} is left out")
        reason = ""
    return dict(sorted(notes.items())), changes, reason


def _why_unplayable(pitches: tuple[int, ...], options: FingeringOptions) -> str:
    """Why a hand cannot take these notes; empty if it can."""
    if not pitches:
        return ""
    try:
        find_playable_grips(pitches, options.tuning, options.max_fret, options.max_span)
    except UnplayableError as reason:
        return str(reason)
    return ""


def _nearest_octave(pitch: int, options: FingeringOptions) -> int:
    """The nearest octave of a pitch that is on the neck; the pitch itself if none is."""
    octaves = [pitch + 12 * k for k in sorted(range(-10, 11), key=abs)]
    return next((p for p in octaves if options.tuning.positions_of(p, options.max_fret)), pitch)


def _choose_dropped_pitches(pitches: tuple[int, ...], options: FingeringOptions) -> list[int]:
    """Return the notes to leave out: those off the neck, then inner ones until a grip exists."""
    dropped = [p for p in pitches if not options.tuning.positions_of(p, options.max_fret)]
    left = [p for p in pitches if p not in dropped]
    while left and _why_unplayable(tuple(left), options):
        # The melody counts most, then the bass; of the inner voices the lowest goes first.
        dropped.append(left.pop(1 if len(left) > 2 else 0))
    return dropped


def find_fingerings(
    passage: Passage,
    options: FingeringOptions,
    num_alternatives: int = 1,
    score_grips: GripScorer | None = None,
) -> list[list[Grip]]:
    """Finger a piece that fits, once or in several ways.

    Args:
        passage: the piece, every moment of which this guitar can play.
        options: what is asked for.
        num_alternatives: how many fingerings; each further one pays for grips that earlier ones
            have.
        score_grips: how a trained model likes the grips; the hand's costs alone if None.

    Returns:
        The fingerings, best first, without doubles, so that there may be fewer.

    Raises:
        PinError: if a pinned note does not sound at its moment, or no grip there has it.
    """
    reach = (options.tuning, options.max_fret, options.max_span)
    choices = [list(find_playable_grips(pitches, *reach)) for pitches in passage.moments]
    for moment, notes in options.pinned_notes.items():
        choices[moment] = _grips_with_pinned_notes(passage, moment, notes, options)
    liked = score_grips(passage, choices) if score_grips else None
    costs = options.to_hand_costs()
    if score_grips:  # the model knows hands; only the preferences are added
        costs = replace(
            costs,
            per_fret=0.0,
            per_fret_behind_index=0.5,
            per_fret_of_stretch=0.25,
            per_skipped_string=0.0,
            per_move=0.1,
            per_fret_moved=0.15,
        )
    paths: list[list[Grip]] = []
    for _ in range(num_alternatives):
        path = find_cheapest_path(choices, costs, _make_extra_cost(choices, liked, paths))
        if path in paths:
            break
        paths.append(path)
    return paths


def _make_extra_cost(
    candidate_grips: Sequence[Sequence[Grip]],
    grip_log_probs: Sequence[Sequence[float]] | None,
    earlier_fingerings: Sequence[Sequence[Grip]],
) -> ExtraGripCost | None:
    """Return the extra cost of a grip: from a model, and for repeating an earlier fingering."""
    if grip_log_probs is None and not earlier_fingerings:
        return None
    table = [
        {
            grip: (-grip_log_probs[moment][k] if grip_log_probs else 0.0)
            + REPEATED_GRIP_COST
            * sum(path[moment] == grip for path in earlier_fingerings)
            * (len(choice) > 1)
            for k, grip in enumerate(choice)
        }
        for moment, choice in enumerate(candidate_grips)
    ]
    return lambda moment, grip: table[moment][grip]


def _grips_with_pinned_notes(
    passage: Passage, moment_index: int, pinned_notes: Sequence[Note], options: FingeringOptions
) -> list[Grip]:
    """The grips of a moment that have these notes, however far the hand has to stretch.

    Raises:
        PinError: if there are none.
    """
    pitches, tuning = passage.moments[moment_index], options.tuning
    for note in pinned_notes:
        try:
            pitch = tuning.pitch_of(note)
        except ValueError as error:
            raise PinError(moment_index, str(error).rstrip(".")) from None
        if pitch not in pitches:
            there = ", ".join(map(format_pitch, pitches))
            where = f"string {note.string}, fret {note.fret} is {format_pitch(pitch)}"
            raise PinError(moment_index, f"{where}, and what sounds there is {there}")
    for span in range(min(options.max_span, options.max_fret), options.max_fret + 1):
        found = find_grips(pitches, tuning, options.max_fret, span)
        if pinned := [grip for grip in found if set(pinned_notes) <= set(grip)]:
            return pinned
    raise PinError(moment_index, "no grip has all the places that are pinned")


def summarize_fingering(grip_path: Sequence[Grip], max_span: int = MAX_SPAN) -> dict[str, str]:
    """Return a summary of a fingering as names and values."""
    notes = [note for grip in grip_path for note in grip]
    frets = [note.fret for note in notes if note.fret]
    places = [min(own) for grip in grip_path if (own := [n.fret for n in grip if n.fret])]
    moves = [abs(a - b) for a, b in zip(places, places[1:], strict=False)]
    wide = sum(
        max(own) - min(own) > max_span
        for grip in grip_path
        if (own := [n.fret for n in grip if n.fret])
    )
    far = sum(move > 4 for move in moves)
    mean, plural = sum(moves) / max(1, len(moves)), "" if far == 1 else "s"
    summary = {
        "notes": f"{len(notes):,} at {len(grip_path):,} moments",
        "frets": f"{min(frets)} to {max(frets)}" if frets else "open strings alone",
        "open strings": f"{len(notes) - len(frets):,}",
        "average position shift": f"{mean:.1f} frets; {far} shift{plural} of more than 4 frets",
    }
    return summary | ({"stretches": f"{wide} grips over {max_span} frets"} if wide else {})
