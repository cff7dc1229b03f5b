"""Baselines for fingering models: chance, the strings of each pitch, and the bootstrap."""

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from slp_guitar.fingering.grips import Grip, find_grips_or_placements, find_placements
from slp_guitar.fingering.passages import FingeringMetrics, sum_metrics
from slp_guitar.fretboard import MAX_SPAN, Note, Tuning


def random_legal(
    moments: Sequence[tuple[int, ...]],
    tuning: Tuning,
    chance: random.Random,
    max_span: int = MAX_SPAN,
) -> list[Grip]:
    """Any grip of each moment, all equally likely.

    Raises:
        UnplayableError: for the first moment that no hand can play.
    """
    return [chance.choice(find_grips_or_placements(p, tuning, max_span)) for p in moments]


class StringHabits:
    """P(string given pitch), counted on tabs, every legal string half a time more than it occurs.

    Pitches are those of the tab; a guitar tuned otherwise has other habits.
    """

    def __init__(self, played: Iterable[tuple[Tuning, Sequence[Grip]]]):
        """Count how often a pitch was played on each string."""
        self.counts: defaultdict[int, Counter[int]] = defaultdict(Counter)
        for tuning, events in played:
            for grip in events:
                for note in grip:
                    self.counts[tuning.pitch_of(note)][note.string] += 1

    def log_probability(self, note: Note, tuning: Tuning) -> float:
        """ln P(string given pitch), among the strings that have the pitch."""
        pitch = tuning.pitch_of(note)
        counts, places = self.counts.get(pitch, Counter()), tuning.positions_of(pitch)
        total = sum(counts[place.string] for place in places) + 0.5 * len(places)
        return math.log((counts[note.string] + 0.5) / total)

    def of_grip(self, grip: Grip, tuning: Tuning) -> float:
        """The sum over a grip's notes."""
        return sum(self.log_probability(note, tuning) for note in grip)

    def likeliest(self, moments: Sequence[tuple[int, ...]], tuning: Tuning) -> list[Grip]:
        """Of each moment's grips the likeliest, whatever the hand has to do for it.

        Raises:
            UnplayableError: for the first moment that no hand can play.
        """
        return [
            max(
                find_placements(p, tuning),
                key=lambda grip: self.of_grip(grip, tuning),
            )
            for p in moments
        ]


def bootstrap(
    pieces: Sequence[FingeringMetrics],
    baseline: Sequence[FingeringMetrics] | None = None,
    *,
    draws: int = 10_000,
    share: str = "strings",
) -> tuple[float, float]:
    """The middle 95% of the strings right, or of another share, with pieces drawn anew.

    Args:
        pieces: the counts of each piece.
        baseline: of another fingering of the same pieces, drawn together with them: the interval is
            then that of the difference, ours less the baseline's.
        draws: how often.
        share: which of `FingeringMetrics.to_shares`.

    Returns:
        The two ends of the interval.

    Raises:
        ValueError: if there are no pieces, or the two lists differ in length.
    """
    if not pieces or (baseline is not None and len(baseline) != len(pieces)):
        raise ValueError("A bootstrap needs pieces, and the same ones for both fingerings.")

    def right(counts: Sequence[FingeringMetrics]) -> float:
        return sum_metrics(counts).to_shares()[share]

    chance, found = random.Random(0), []
    for _ in range(draws):
        places = chance.choices(range(len(pieces)), k=len(pieces))
        value = right([pieces[i] for i in places])
        found.append(value - (right([baseline[i] for i in places]) if baseline else 0.0))
    found.sort()
    return found[round(0.025 * (draws - 1))], found[round(0.975 * (draws - 1))]
