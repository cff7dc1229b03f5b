"""Statistics of generated tabs, to be compared with those of tabs that people wrote.

None of them says that music is good; together they show where a model's differs from its training
data.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from slp_transformer.guitar.memorization import CopyDetector, MomentNotes, sounding_moments
from slp_transformer.guitar.tab import Event, Tab
from slp_transformer.guitar.tab_metrics import compute_hand_shifts, is_playable_event
from slp_transformer.guitar.theory import count_notes_in_best_scale

MAX_SMALL_SHIFT_FRETS = 4  # frets
REPETITION_WINDOW, MIN_DISTINCT_MOMENTS = 8, 4


@dataclass(frozen=True)
class CorpusStatistics:
    """Figures of some pieces; shares go from 0 to 1, and are None where there is nothing to count.

    Attributes:
        pieces: how many pieces there are.
        events: how many moments at which notes sound, in all of them.
        length: moments in a piece, on average.
        chords: share of the moments with two notes or more.
        playable_events: share of the moments that one hand can play.
        playable_chords: share of the chords that one hand can play.
        jumps: share of the hand's moves that go over four frets, as `compute_hand_shifts` has them.
        open_strings: share of the notes that are open strings.
        returning_bars: share of the bars with notes that are equal to an earlier one of their
            piece.
        monotonous: share of the stretches of eight moments that have fewer than four different.
        one_scale: share of the notes in the major scale that holds most of their piece's.
        ended: share of the pieces that come to an end by themselves.
        longest_copy: moments in the longest run that a piece shares with a learned one.
        mean_copy: the mean over the pieces of each one's longest such run.
    """

    pieces: int
    events: int
    length: float | None
    chords: float | None
    playable_events: float | None
    playable_chords: float | None
    jumps: float | None
    open_strings: float | None
    returning_bars: float | None
    monotonous: float | None
    one_scale: float | None
    ended: float | None
    longest_copy: int | None
    mean_copy: float | None

    def to_dict(self) -> dict[str, Any]:
        """All of it by name, for JSON."""
        return asdict(self)


def compute_corpus_statistics(
    tabs: Sequence[Tab], copy_detector: CopyDetector | None = None, is_complete: Sequence[bool] = ()
) -> CorpusStatistics:
    """The figures of some pieces.

    Args:
        tabs: the pieces.
        copy_detector: finds copies of training pieces; None to look for none.
        is_complete: whether each piece came to an end; unknown if empty.
    """
    pieces = [sounding_moments(tab) for tab in tabs]
    events = [Event(0, moment) for piece in pieces for moment in piece]
    chords = [event for event in events if len(event.notes) > 1]
    notes = [note for event in events for note in event.notes]
    moves = [move for piece in pieces for move in compute_hand_shifts(Event(0, m) for m in piece)]
    copies = [copy_detector.longest_copied_run(tab) for tab in tabs] if copy_detector else []
    inside, among = count_notes_in_best_scale(tabs)
    return CorpusStatistics(
        pieces=len(tabs),
        events=len(events),
        length=ratio_or_none(len(events), len(tabs)),
        chords=ratio_or_none(len(chords), len(events)),
        playable_events=share_where(events, is_playable_event),
        playable_chords=share_where(chords, is_playable_event),
        jumps=share_where(moves, lambda frets: frets > MAX_SMALL_SHIFT_FRETS),
        open_strings=share_where(notes, lambda note: note.fret == 0),
        returning_bars=share_where(
            [again for tab in tabs for again in find_repeated_bars(tab)], bool
        ),
        monotonous=share_where(
            [window for piece in pieces for window in sliding_windows(piece)],
            lambda window: len(set(window)) < MIN_DISTINCT_MOMENTS,
        ),
        one_scale=ratio_or_none(inside, among),
        ended=share_where(is_complete, bool),
        longest_copy=max(copies, default=None),
        mean_copy=ratio_or_none(sum(copies), len(copies)),
    )


def find_repeated_bars(tab: Tab) -> list[bool]:
    """For each bar with notes, whether an earlier one has its length and its notes in its steps."""
    seen: set[tuple[int, tuple[tuple[int, MomentNotes], ...]]] = set()
    found = []
    for bar in tab.bars:
        inside = tuple(
            (event.step, event.sounding_notes()) for event in bar.events if event.sounding_notes()
        )
        if inside:
            found.append((bar.steps, inside) in seen)
            seen.add((bar.steps, inside))
    return found


def sliding_windows(moments_in_piece: Sequence[MomentNotes]) -> list[Sequence[MomentNotes]]:
    """Every stretch of eight moments."""
    return [
        moments_in_piece[i : i + REPETITION_WINDOW]
        for i in range(len(moments_in_piece) - REPETITION_WINDOW + 1)
    ]


def share_where(items: Iterable[Any], predicate: Callable[[Any], bool]) -> float | None:
    """Return the share of items that satisfy a predicate; None if there are no items."""
    verdicts = [bool(predicate(thing)) for thing in items]
    return ratio_or_none(sum(verdicts), len(verdicts))


def ratio_or_none(part: float, whole: float) -> float | None:
    """A quotient; None where there is nothing to divide by."""
    return part / whole if whole else None
