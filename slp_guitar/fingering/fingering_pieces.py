"""Fingerings of pieces by what a guitarist asks for: the best, others, and doubtful moments."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from slp_guitar.fingering.costs import HandCosts
from slp_guitar.fingering.grips import Grip, UnplayableError, find_grips
from slp_guitar.fingering.lattice import ExtraGripCost, FingeringLattice
from slp_guitar.fingering.passages import Passage
from slp_guitar.fingering.playable_chords import EASY, FingeringOptions, fit_chord_to_guitar
from slp_guitar.fingering.playable_pieces import PlayableMoment, PlayablePiece
from slp_guitar.fingering.questions import find_repeats, rank_questions, spread_answers
from slp_guitar.fingering.rolled_chords import roll_chords
from slp_guitar.fretboard import MAX_SPAN, Note, format_pitch
from slp_guitar.tab import Tab
from slp_guitar.theory import estimate_key
from slp_guitar.timing import bar_start_steps

OPEN_STRING_COST = 2.0  # what preferring open strings, or not, is worth to a hand
MAX_ALTERNATIVES = 2  # that a review shows
MAX_SUGGESTED_CAPO = 7
REPEATED_GRIP_COST = 4.0  # what an alternative pays for a grip that an earlier one has


def find_fingerings(
    piece: PlayablePiece, options: FingeringOptions, num_alternatives: int = 1
) -> tuple[list[tuple[Tab, list[Grip]]], list[tuple[str, str]]]:
    """Finger a piece, once or in several ways.

    Args:
        piece: the piece.
        options: the guitar and the preferences.
        num_alternatives: how many fingerings; each further one pays for grips that earlier ones
            have.

    Returns:
        Tabs, each with the fingering that it is made of, best first and without doubles, so that
        there may be fewer; and what was changed: where, and what.

    Raises:
        ValueError: if there is nothing to play, something cannot be played and is to be refused, or
            a pin is in the way; it says where.
    """
    problem, changes = _build_problem(piece, options)
    paths: list[list[Grip]] = []
    hands: list[list[int]] = []
    for _ in range(num_alternatives):
        extra = problem.make_extra_cost(paths)
        found = problem.build_lattice(problem.choices, extra).find_grips_and_hands()
        path = [grip for grip, _ in found]
        if path in paths:
            break
        paths.append(path)
        hands.append([hand for _, hand in found])
    lost = (problem.piece.describe_lost_techniques(path, options.tuning) for path in paths)
    changes += dict.fromkeys(each for own in lost for each in own)
    tabs = [problem.piece.build_tab(*own, options.tuning) for own in zip(paths, hands, strict=True)]
    return list(zip(tabs, paths, strict=True)), changes


class CapoSuggestion(NamedTuple):
    """A place for the capo.

    Attributes:
        capo: its fret; 0 for none.
        cost: what the cheapest fingering costs a hand that plays as `EASY` has it.
        key: the key that the shapes are of, None if none is clear.
        chords: grips of three notes or more, those that come most often first.
    """

    capo: int
    cost: float
    key: str | None
    chords: list[Grip]


def suggest_capos(piece: PlayablePiece, options: FingeringOptions) -> list[CapoSuggestion]:
    """Find the places of the capo with which a piece, at its pitches, is easiest; the best first.

    Where notes must be changed, those come first with which fewest are.

    Raises:
        ValueError: as `find_fingerings`, if it can be played with none.
    """
    found: list[tuple[int, float, CapoSuggestion]] = []
    for capo in range(MAX_SUGGESTED_CAPO + 1):
        tuning = replace(options.tuning, capo=capo)
        try:
            problem, changes = _build_problem(piece, replace(options, tuning=tuning, **EASY))
        except ValueError:
            if capo == MAX_SUGGESTED_CAPO and not found:
                raise
            continue
        lattice = problem.build_lattice(problem.choices, None)
        path = lattice.find_cheapest_path()
        chords = [g for g, _ in Counter(g for g in path if len(g) > 2).most_common()]
        key = estimate_key(problem.piece.build_tab(path, [1] * len(path), replace(tuning, capo=0)))
        own = CapoSuggestion(capo, lattice.lowest_cost, key, chords)
        found.append((len(changes), own.cost, own))
    return [own for *_, own in sorted(found, key=itemgetter(0, 1))]


class DoubtfulMoment(NamedTuple):
    """A moment that could well be played otherwise.

    Attributes:
        moment: the moment.
        places: where it is among those of the piece that are played, from 0, and after that where
            its notes come again between the same neighbors.
        paths: the fingering of the piece, and the cheapest ones with another grip at these places.
        extra_costs: what each of them costs more than the first.
    """

    moment: PlayableMoment
    places: list[int]
    paths: list[list[Grip]]
    extra_costs: list[float]


def find_doubtful_moments(
    piece: PlayablePiece, options: FingeringOptions, num_doubts: int
) -> list[DoubtfulMoment]:
    """Find the moments about which an answer helps most, the first one most.

    Those are moments where another grip is almost as good, and that come often.

    Args:
        piece: the piece.
        options: the guitar and the preferences.
        num_doubts: how many moments to return at most.
    """
    problem, _ = _build_problem(piece, options)
    choices, extra = problem.choices, problem.make_extra_cost([])
    lattice = problem.build_lattice(choices, extra)
    best, prices = lattice.find_cheapest_path(), lattice.price_grips()
    repeats = find_repeats(problem.passage.moments)
    doubts: list[DoubtfulMoment] = []
    for t in rank_questions(prices, repeats)[:num_doubts]:
        ranked = sorted(zip(prices[t], choices[t], strict=True))
        others = [grip for _, grip in ranked if grip != best[t]][:MAX_ALTERNATIVES]
        paths, more = [best], [0.0]
        for grip in others:
            asked = [
                [grip] if place in repeats[t] and choice == choices[t] else choice
                for place, choice in enumerate(choices)
            ]
            with_grip = problem.build_lattice(asked, extra)
            paths.append(with_grip.find_cheapest_path())
            more.append(with_grip.lowest_cost - lattice.lowest_cost)
        places = [t, *(place for place in repeats[t] if place != t)]
        doubts.append(DoubtfulMoment(problem.piece.moments[t], places, paths, more))
    return doubts


class _Problem(NamedTuple):
    """What is to be fingered: a piece that the guitar can play, its grips and what they cost."""

    piece: PlayablePiece
    passage: Passage
    choices: list[Sequence[Grip]]
    costs: HandCosts

    def build_lattice(
        self, choices: Sequence[Sequence[Grip]], extra_cost: ExtraGripCost | None
    ) -> FingeringLattice:
        """Return the fingerings with some of the grips."""
        return FingeringLattice(self.passage, choices, self.costs, extra_cost)

    def make_extra_cost(self, earlier_fingerings: Sequence[Sequence[Grip]]) -> ExtraGripCost | None:
        """Return a grip's extra cost for repeating an earlier fingering."""
        if not earlier_fingerings:
            return None
        return lambda moment, grip: (
            REPEATED_GRIP_COST
            * sum(path[moment] == grip for path in earlier_fingerings)
            * (len(self.choices[moment]) > 1)
        )


def _build_problem(
    piece: PlayablePiece, options: FingeringOptions
) -> tuple[_Problem, list[tuple[str, str]]]:
    """Make a piece fit for the guitar and list its grips; return also what was changed.

    Raises:
        ValueError: as `find_fingerings`.
    """
    moments, changes, refused = [], list(piece.changes), []
    if options.unplayable_policy == "roll":
        piece, rolled = roll_chords(piece, options)
        changes += rolled
    for moment in piece.moments:
        left, changed, reason = fit_chord_to_guitar(moment.pitches, options)
        changes += [(piece.describe_place(moment), what) for what in changed]
        if reason:
            refused.append(f"{piece.describe_place(moment)}: {reason}")
        elif left:
            notes = tuple(moment.notes[source] for source in left.values())
            moments.append(moment._replace(pitches=tuple(left), notes=notes))
    if refused:
        many = f"{len(refused)} moments are" if len(refused) > 1 else "One moment is"
        more = ", and so on" if len(refused) > 3 else ""
        raise UnplayableError(f"{many} out of this guitar's reach: {'; '.join(refused[:3])}{more}.")
    if not moments:
        raise ValueError("There is nothing to play: no note is left.")
    starts = bar_start_steps(piece.tab)
    onsets = tuple(float(starts[moment.bar_number - 1] + moment.step) for moment in moments)
    pitches, lasting = tuple(m.pitches for m in moments), piece.ringing_steps(moments)
    passage = Passage(options.tuning, pitches, onsets=onsets, durations=lasting)
    choices, num_repeats = _list_candidate_grips(piece, moments, options)
    if num_repeats:
        count = "one more moment" if num_repeats == 1 else f"{num_repeats} more moments"
        changes.append(("pins", f"they hold at {count}, where the same notes come again"))
    costs = HandCosts(
        options.weights,
        -OPEN_STRING_COST * options.open_string_preference,
        options.preferred_position,
    )
    own = replace(piece, moments=moments)
    return _Problem(own, passage, choices, costs), changes


def _list_candidate_grips(
    piece: PlayablePiece, moments: Sequence[PlayableMoment], options: FingeringOptions
) -> tuple[list[Sequence[Grip]], int]:
    """List the grips of each moment that is left: all, or those that have the pinned notes.

    A pin holds at the moment's repeats, too, where nothing else is pinned; return their number.

    Raises:
        ValueError: if there are none, naming the moment, or there is no moment where notes are
            pinned.
    """
    places = {(moment.bar_number, moment.number): t for t, moment in enumerate(moments)}
    own = {places[pin]: notes for pin, notes in options.pinned_notes.items() if pin in places}
    pinned = spread_answers(own, find_repeats([moment.pitches for moment in moments]))
    choices: list[Sequence[Grip]] = []
    for t, moment in enumerate(moments):
        try:
            choices.append(_narrowest_grips_with_pins(moment.pitches, pinned.get(t, ()), options))
        except ValueError as error:
            raise ValueError(f"{moment}: {str(error).rstrip('.')}.") from None
    for bar, number in options.pinned_notes.keys() - places.keys():
        count = sum(moment.bar_number == bar for moment in piece.moments)
        if 1 <= number <= count:
            raise ValueError(f"bar {bar}, moment {number}: nothing that is pinned there is left.")
        raise ValueError(f"Bar {bar} has {count} moments, so there is no {bar}:{number}.")
    return choices, len(pinned) - len(own)


def _narrowest_grips_with_pins(
    pitches: tuple[int, ...], pinned_notes: Sequence[Note], options: FingeringOptions
) -> Sequence[Grip]:
    """The grips of a moment that have these notes, which stretch the hand least.

    Raises:
        ValueError: if there are none.
    """
    for note in pinned_notes:
        pitch = options.tuning.pitch_of(note)
        if pitch not in pitches:
            there = ", ".join(map(format_pitch, pitches))
            where = f"string {note.string}, fret {note.fret} is {format_pitch(pitch)}"
            raise ValueError(f"{where}, and what sounds there is {there}")
    for span in range(min(options.max_span, options.max_fret), options.max_fret + 1):
        found = find_grips(pitches, options.tuning, options.max_fret, span)
        if pinned := [grip for grip in found if set(pinned_notes) <= set(grip)]:
            return pinned
    raise ValueError("no grip has all the places that are pinned")


def summarize_fingering(grip_path: Sequence[Grip], max_span: int = MAX_SPAN) -> dict[str, str]:
    """Return a summary of a fingering as names and values."""
    num_notes = sum(map(len, grip_path))
    fretted = [own for grip in grip_path if (own := [n.fret for n in grip if n.fret])]
    frets = [fret for own in fretted for fret in own]
    moves = [abs(min(a) - min(b)) for a, b in pairwise(fretted)]
    wide = sum(max(own) - min(own) > max_span for own in fretted)
    far = sum(move > 4 for move in moves)
    mean, plural = sum(moves) / max(1, len(moves)), "" if far == 1 else "s"
    summary = {
        "notes": f"{num_notes:,} at {len(grip_path):,} moments",
        "frets": f"{min(frets)} to {max(frets)}" if frets else "open strings alone",
        "open strings": f"{num_notes - len(frets):,}",
        "average position shift": f"{mean:.1f} frets; {far} shift{plural} of more than 4 frets",
    }
    return summary | ({"stretches": f"{wide} grips over {max_span} frets"} if wide else {})
