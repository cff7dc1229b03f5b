"""What a model of fingering is compared with: chance, the lowest fret, habits of each pitch."""

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from slp_transformer.guitar.fingering.grips import Grip, reachable_grips
from slp_transformer.guitar.fretboard import MAX_FRET, MAX_SPAN, Note, Tuning


def random_legal(
    moments: Sequence[tuple[int, ...]],
    tuning: Tuning,
    chance: random.Random,
    max_span: int = MAX_SPAN,
    max_fret: int = MAX_FRET,
) -> list[Grip]:
    """Any grip of each moment, all equally likely.

    Raises:
        OutOfReach: for the first moment that no hand can play.
    """
    return [chance.choice(reachable_grips(p, tuning, max_fret, max_span)) for p in moments]


def lowest_fret(
    moments: Sequence[tuple[int, ...]], tuning: Tuning, max_fret: int = MAX_FRET
) -> list[Grip]:
    """Each note on the lowest fret that is left, the lowest note of a chord first.

    Spans are not looked at: this is the rule of many tab editors.

    Raises:
        OutOfReach: for the first moment whose notes do not find a string each.
    """
    return [
        min(reachable_grips(p, tuning, max_fret, max_fret), key=lambda grip: [n.fret for n in grip])
        for p in moments
    ]


class StringHabits:
    """P(string given pitch), counted on tabs, every legal string half a time more than it occurs.

    Pitches are those of the tab; a guitar tuned otherwise has other habits.
    """

    def __init__(self, played: Iterable[tuple[Tuning, Sequence[Grip]]], max_fret: int = MAX_FRET):
        """Count how often a pitch was played on each string."""
        self.max_fret = max_fret
        self.counts: defaultdict[int, Counter[int]] = defaultdict(Counter)
        for tuning, events in played:
            for grip in events:
                for note in grip:
                    self.counts[tuning.pitch(note)][note.string] += 1

    def log_probability(self, note: Note, tuning: Tuning) -> float:
        """ln P(string given pitch), among the strings that have the pitch."""
        pitch = tuning.pitch(note)
        counts, places = self.counts.get(pitch, Counter()), tuning.positions(pitch, self.max_fret)
        total = sum(counts[place.string] for place in places) + 0.5 * len(places)
        return math.log((counts[note.string] + 0.5) / total)

    def of_grip(self, grip: Grip, tuning: Tuning) -> float:
        """The sum over a grip's notes."""
        return sum(self.log_probability(note, tuning) for note in grip)

    def likeliest(
        self, moments: Sequence[tuple[int, ...]], tuning: Tuning, max_span: int | None = None
    ) -> list[Grip]:
        """Of each moment's grips the likeliest, whatever the hand has to do for it.

        Args:
            moments: the pitches of each moment.
            tuning: the guitar.
            max_span: of the hand; not looked at if None.

        Raises:
            OutOfReach: for the first moment that no hand can play.
        """
        span = self.max_fret if max_span is None else max_span
        return [
            max(
                reachable_grips(p, tuning, self.max_fret, span),
                key=lambda grip: self.of_grip(grip, tuning),
            )
            for p in moments
        ]
