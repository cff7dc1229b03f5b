"""Pitches in, tab out: what a guitarist asks for, what was done about it, and what it came to."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from slp_transformer.guitar.fingering.grips import Grip, OutOfReach, grips, reachable_grips
from slp_transformer.guitar.fingering.passages import Passage
from slp_transformer.guitar.fingering.viterbi import Extra, HandCosts, cheapest_path
from slp_transformer.guitar.fretboard import MAX_FRET, MAX_SPAN, STANDARD, Note, Tuning, pitch_name

Policy = Literal["refuse", "octave", "drop"]
OPEN = 1.0  # what preferring open strings, or not, is worth to a hand
ANEW = 2.0  # what an alternative pays for a grip that an earlier one has

Weigh = Callable[[Passage, Sequence[Sequence[Grip]]], Sequence[Sequence[float]]]
"""How a trained model likes each grip of each moment: the logarithm of its probability."""


@dataclass(frozen=True)
class Wishes:
    """What a guitarist asks of a fingering.

    Attributes:
        tuning: the guitar, with its capo.
        max_fret: last fret of the neck, counted from the nut.
        max_span: most frets between the fretted notes of a grip.
        position: the fret where the hand would rather be; None for anywhere.
        open: 1 to prefer open strings, −1 to avoid them, 0 for neither.
        pins: places that are settled, by the number of their moment from 0.
        out_of_reach: what to do about notes that this guitar cannot play: "refuse" the piece, move
            them by "octave", or "drop" them.
    """

    tuning: Tuning = STANDARD
    max_fret: int = MAX_FRET
    max_span: int = MAX_SPAN
    position: int | None = None
    open: int = 0
    pins: Mapping[int, tuple[Note, ...]] = field(default_factory=dict)
    out_of_reach: Policy = "refuse"

    def costs(self) -> HandCosts:
        """What a hand with these wishes would rather not do."""
        return HandCosts(open=-OPEN * self.open, position=self.position)


class PinError(ValueError):
    """A pin that cannot be kept.

    Attributes:
        moment: the number of its moment.
    """

    def __init__(self, moment: int, message: str):
        """Say why, without a full stop."""
        super().__init__(message)
        self.moment = moment


def fit(pitches: Sequence[int], wishes: Wishes) -> tuple[dict[int, int], list[str], str]:
    """Make a moment fit for a guitar: pitches that one hand can take.

    A pitch that is there twice is taken once.

    Args:
        pitches: what sounds at the moment, in any order.
        wishes: the guitar, and what to do about notes that it cannot play.

    Returns:
        The pitches that are left, lowest first, each with its place in `pitches`; what was changed;
        and why the moment cannot be played as it is, empty if it can.
    """
    notes: dict[int, int] = {}
    told = []
    for place, pitch in enumerate(pitches):
        moved = _moved(pitch, wishes) if wishes.out_of_reach == "octave" else pitch
        if moved != pitch:
            told.append(f"{pitch_name(pitch)} is moved to {pitch_name(moved)}")
        notes.setdefault(moved, place)
    if len(notes) < len(pitches):
        told.append("a pitch that is there twice is taken once")
    reason = _cannot(tuple(sorted(notes)), wishes)
    if reason and wishes.out_of_reach == "drop":
        for pitch in _dropped(tuple(sorted(notes)), wishes):
            del notes[pitch]
            told.append(f"{pitch_name(pitch)} is left out")
        reason = ""
    return dict(sorted(notes.items())), told, reason


def _cannot(pitches: tuple[int, ...], wishes: Wishes) -> str:
    """Why a hand cannot take these notes; empty if it can."""
    if not pitches:
        return ""
    try:
        reachable_grips(pitches, wishes.tuning, wishes.max_fret, wishes.max_span)
    except OutOfReach as reason:
        return str(reason)
    return ""


def _moved(pitch: int, wishes: Wishes) -> int:
    """The nearest octave of a pitch that is on the neck; the pitch itself if none is."""
    octaves = [pitch + 12 * k for k in sorted(range(-10, 11), key=abs)]
    return next((p for p in octaves if wishes.tuning.positions(p, wishes.max_fret)), pitch)


def _dropped(pitches: tuple[int, ...], wishes: Wishes) -> list[int]:
    """Which notes to leave out: those off the neck, then inner ones, until a hand can take it."""
    dropped = [p for p in pitches if not wishes.tuning.positions(p, wishes.max_fret)]
    left = [p for p in pitches if p not in dropped]
    while left and _cannot(tuple(left), wishes):
        # The melody counts most, then the bass; of the inner voices the lowest goes first.
        dropped.append(left.pop(1 if len(left) > 2 else 0))
    return dropped


def choose(
    passage: Passage,
    wishes: Wishes,
    alternatives: int = 1,
    weigh: Weigh | None = None,
) -> list[list[Grip]]:
    """Finger a piece that fits, once or in several ways.

    Args:
        passage: the piece, every moment of which this guitar can play.
        wishes: what is asked for.
        alternatives: how many fingerings; each further one pays for grips that earlier ones have.
        weigh: how a trained model likes the grips; the hand's costs alone if None.

    Returns:
        The fingerings, best first, without doubles, so that there may be fewer.

    Raises:
        PinError: if a pinned note does not sound at its moment, or no grip there has it.
    """
    reach = (wishes.tuning, wishes.max_fret, wishes.max_span)
    choices = [list(reachable_grips(pitches, *reach)) for pitches in passage.moments]
    for moment, notes in wishes.pins.items():
        choices[moment] = _pinned(passage, moment, notes, wishes)
    liked = weigh(passage, choices) if weigh else None
    costs = wishes.costs()
    if weigh:  # the model knows what hands do; only what is asked for comes on top
        costs = replace(
            costs, fret=0.0, behind=0.5, stretch=0.25, skipped=0.0, move=0.1, distance=0.15
        )
    paths: list[list[Grip]] = []
    for _ in range(alternatives):
        path = cheapest_path(choices, costs, _extra(choices, liked, paths))
        if path in paths:
            break
        paths.append(path)
    return paths


def _extra(
    choices: Sequence[Sequence[Grip]],
    liked: Sequence[Sequence[float]] | None,
    paths: Sequence[Sequence[Grip]],
) -> Extra | None:
    """What a grip costs beyond the hand: what a model says against it, and to have been there."""
    if liked is None and not paths:
        return None
    table = [
        {
            grip: (-liked[moment][k] if liked else 0.0)
            + ANEW * sum(path[moment] == grip for path in paths) * (len(choice) > 1)
            for k, grip in enumerate(choice)
        }
        for moment, choice in enumerate(choices)
    ]
    return lambda moment, grip: table[moment][grip]


def _pinned(passage: Passage, moment: int, notes: Sequence[Note], wishes: Wishes) -> list[Grip]:
    """The grips of a moment that have these notes, however far the hand has to stretch.

    Raises:
        PinError: if there are none.
    """
    pitches, tuning = passage.moments[moment], wishes.tuning
    for note in notes:
        try:
            pitch = tuning.pitch(note)
        except ValueError as error:
            raise PinError(moment, str(error).rstrip(".")) from None
        if pitch not in pitches:
            there = ", ".join(map(pitch_name, pitches))
            where = f"string {note.string}, fret {note.fret} is {pitch_name(pitch)}"
            raise PinError(moment, f"{where}, and what sounds there is {there}")
    for span in range(min(wishes.max_span, wishes.max_fret), wishes.max_fret + 1):
        found = grips(pitches, tuning, wishes.max_fret, span)
        if pinned := [grip for grip in found if set(notes) <= set(grip)]:
            return pinned
    raise PinError(moment, "no grip has all the places that are pinned")


# --- What it came to ---------------------------------------------------------------------------


def summary(path: Sequence[Grip], max_span: int = MAX_SPAN) -> dict[str, str]:
    """What a fingering is like, in a few names and values."""
    notes = [note for grip in path for note in grip]
    frets = [note.fret for note in notes if note.fret]
    places = [min(own) for grip in path if (own := [n.fret for n in grip if n.fret])]
    moves = [abs(a - b) for a, b in zip(places, places[1:], strict=False)]
    wide = sum(
        max(own) - min(own) > max_span for grip in path if (own := [n.fret for n in grip if n.fret])
    )
    far = sum(move > 4 for move in moves)
    said = {
        "notes": f"{len(notes):,} at {len(path):,} moments",
        "frets": f"{min(frets)} to {max(frets)}" if frets else "open strings alone",
        "open strings": f"{len(notes) - len(frets):,}",
        "hand": f"moves {sum(moves) / max(1, len(moves)):.1f} frets a grip, {far} leaps over 4",
    }
    return said | ({"stretches": f"{wide} grips over {max_span} frets"} if wide else {})
