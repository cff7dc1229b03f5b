"""Metrics of generated tablature, to be compared with those of tabs that people wrote.

How many of the events can be played is the first question players ask of such tab, and published
systems that generate it have not reported it; people who write tab by hand are above 99.9 percent.
Distinct strings and a reach of four frets are the usual conditions. TART (arXiv 2510.02597) masks
reused strings and reaches over five frets; how far the hand moves belongs to the costs that
fingering search has minimized since Sayegh (1989).

None of these figures says that music is good; together they show where a model's differs from its
training data.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, combinations, pairwise, zip_longest
from typing import Any, TypeVar

from slp_guitar.fretboard import MAX_FRET, MAX_SPAN, Note, is_playable_grip
from slp_guitar.tab import Event, Tab
from slp_guitar.theory import count_notes_in_best_scale, ends_on_tonic, estimate_key

NUM_STRINGS = 6
MAX_SMALL_SHIFT_FRETS = 4  # frets
REPETITION_WINDOW, MIN_DISTINCT_MOMENTS = 8, 4
MomentNotes = tuple[Note, ...]
T = TypeVar("T")


def is_playable_event(event: Event, max_span: int = MAX_SPAN, max_fret: int = MAX_FRET) -> bool:
    """Return whether one hand can play an event on a six-string guitar.

    True when every fret is from 0 to `max_fret` and a hand holds the notes (`is_playable_grip`).
    """
    on_neck = (1 <= string <= NUM_STRINGS and 0 <= fret <= max_fret for string, fret in event.notes)
    return all(on_neck) and is_playable_grip(event.notes, max_span)


def compute_playable_share(
    events: Iterable[Event], max_span: int = MAX_SPAN, max_fret: int = MAX_FRET
) -> float:
    """Share of the events that one hand can play, from 0 to 1.

    Args:
        events: for instance `tab.iter_events()`.
        max_span: most frets between the lowest and the highest fretted note.
        max_fret: last fret that counts as on the neck; pass ``MAX_FRET - capo`` where there is a
            capo.

    Returns:
        The share; 0.0 if there are no events, since nothing written is nothing to play.
    """
    return share_where(events, lambda event: is_playable_event(event, max_span, max_fret)) or 0.0


def compute_hand_shifts(events: Iterable[Event]) -> list[int]:
    """Return the frets that the hand moves from one event to the next, never negative.

    The hand is where its lowest fretted note is. Events of open strings alone need no hand and
    leave it where it was, so there is one number less than there are events with a fretted note.
    """
    fretted = ([note.fret for note in event.notes if note.fret > 0] for event in events)
    places = [min(frets) for frets in fretted if frets]
    return [abs(after - before) for before, after in zip(places, places[1:], strict=False)]


# --- Statistics of pieces ------------------------------------------------------------------------


def compute_corpus_statistics(
    tabs: Sequence[Tab],
    copy_detector: "CopyDetector | None" = None,
    is_complete: Sequence[bool] = (),
) -> dict[str, Any]:
    """The figures of some pieces; shares go from 0 to 1.

    Args:
        tabs: the pieces.
        copy_detector: finds copies of training pieces; None to look for none.
        is_complete: whether each piece came to an end; unknown if empty.

    Returns:
        By name, with None where there is nothing to count:

        - pieces: how many pieces there are.
        - events: how many moments at which notes sound, in all of them.
        - length: moments in a piece, on average.
        - chords: share of the moments with two notes or more.
        - playable_events: share of the moments that one hand can play.
        - playable_chords: share of the chords that one hand can play.
        - jumps: share of `compute_hand_shifts` that go over four frets.
        - open_strings: share of the notes that are open strings.
        - returning_bars: share of the bars with notes that equal an earlier one of their piece.
        - monotonous: share of the stretches of eight moments that have fewer than four different.
        - same_rhythm: share of the bars with notes that are as long as the bar before, and have
            them in the same steps.
        - usual_length: share of the bars that have their piece's most frequent length.
        - clashes: share of the chords with a semitone between two notes, whatever the octaves.
        - tonic_endings: share of the pieces that come to an end, or of all where that is unknown,
            whose last bass note is the tonic of their estimated key.
        - one_scale: share of the notes in the major scale that holds most of their piece's.
        - ended: share of the pieces that come to an end by themselves.
        - longest_copy: moments in the longest run that a piece shares with a training piece.
        - mean_copy: the mean over the pieces of each one's longest such run.
    """
    pieces = [sounding_moments(tab) for tab in tabs]
    events = [Event(0, moment) for piece in pieces for moment in piece]
    chords = [event for event in events if len(event.notes) > 1]
    notes = [note for event in events for note in event.notes]
    moves = [move for piece in pieces for move in compute_hand_shifts(Event(0, m) for m in piece)]
    repeated = [again for tab in tabs for again in repeated_bar_flags(tab)]
    windows = [window for piece in pieces for window in sliding_windows(piece, REPETITION_WINDOW)]
    copies = [copy_detector.longest_copied_run_length(tab) for tab in tabs] if copy_detector else []
    inside, among = count_notes_in_best_scale(tabs)
    pitches = [[tab.tuning.pitch_of(n) for n in m] for tab in tabs for m in sounding_moments(tab)]
    finished = [tab for tab, end in zip_longest(tabs, is_complete, fillvalue=True) if end]
    return {
        "pieces": len(tabs),
        "events": len(events),
        "length": divide_or_none(len(events), len(tabs)),
        "chords": divide_or_none(len(chords), len(events)),
        "playable_events": share_where(events, is_playable_event),
        "playable_chords": share_where(chords, is_playable_event),
        "jumps": share_where(moves, lambda frets: frets > MAX_SMALL_SHIFT_FRETS),
        "open_strings": share_where(notes, lambda note: note.fret == 0),
        "returning_bars": share_where(repeated, bool),
        "monotonous": share_where(windows, lambda w: len(set(w)) < MIN_DISTINCT_MOMENTS),
        "same_rhythm": share_where(iter_repeated_rhythm_flags(tabs), bool),
        "usual_length": share_where(iter_usual_length_flags(tabs), bool),
        "clashes": share_where((chord for chord in pitches if len(chord) > 1), has_semitone),
        "tonic_endings": share_where(
            filter(sounding_moments, finished), lambda tab: ends_on_tonic(tab, estimate_key(tab))
        ),
        "one_scale": divide_or_none(inside, among),
        "ended": share_where(is_complete, bool),
        "longest_copy": max(copies, default=None),
        "mean_copy": divide_or_none(sum(copies), len(copies)),
    }


def sounding_moments(tab: Tab) -> list[MomentNotes]:
    """Return the sounding notes of each moment, whatever time passes between."""
    return [notes for event in tab.iter_events() if (notes := event.sounding_notes())]


def repeated_bar_flags(tab: Tab) -> list[bool]:
    """For each bar with notes, whether an earlier one has its length and its notes in its steps."""
    seen: set[tuple[int, tuple[tuple[int, MomentNotes], ...]]] = set()
    found = []
    for bar in tab.bars:
        inside = tuple((e.step, e.sounding_notes()) for e in bar.events if e.sounding_notes())
        if inside:
            found.append((bar.steps, inside) in seen)
            seen.add((bar.steps, inside))
    return found


def iter_repeated_rhythm_flags(tabs: Iterable[Tab]) -> Iterator[bool]:
    """For each bar with notes but a first one, whether its steps are those of the bar before."""
    for tab in tabs:
        rhythms = [
            (bar.steps, [e.step for e in bar.events if e.sounding_notes()]) for bar in tab.bars
        ]
        yield from (own == before for before, own in pairwise(rhythms) if own[1])


def iter_usual_length_flags(tabs: Iterable[Tab]) -> Iterator[bool]:
    """For each bar, whether it is as long as most bars of its piece."""
    for tab in tabs:
        counts = Counter(bar.steps for bar in tab.bars)
        usual = max(counts, key=counts.__getitem__, default=0)
        yield from (bar.steps == usual for bar in tab.bars)


def has_semitone(pitches: Sequence[int]) -> bool:
    """Return whether two pitches are a minor second, a major seventh or octaves more apart."""
    return any((a - b) % 12 in (1, 11) for a, b in combinations(pitches, 2))


def sliding_windows(items: Sequence[T], length: int) -> list[Sequence[T]]:
    """Every stretch of so many items."""
    return [items[i : i + length] for i in range(len(items) - length + 1)]


def share_where(items: Iterable[Any], predicate: Callable[[Any], bool]) -> float | None:
    """Return the share of items that satisfy a predicate; None if there are no items."""
    verdicts = [bool(predicate(thing)) for thing in items]
    return divide_or_none(sum(verdicts), len(verdicts))


def divide_or_none(part: float, whole: float) -> float | None:
    """A quotient; None where there is nothing to divide by."""
    return part / whole if whole else None


class CopyDetector:
    """Finds the longest run of moments that a piece shares with one of some others."""

    def __init__(self, tabs: Iterable[Tab]):
        """Take the pieces that may have been copied from."""
        self.places: dict[tuple[MomentNotes, MomentNotes], list[int]] = defaultdict(list)
        moments = chain.from_iterable((*sounding_moments(tab), ()) for tab in tabs)
        for place, pair in enumerate(pairwise((*moments, ()))):  # an empty one parts two pieces
            self.places[pair].append(place)
        self.moments: set[MomentNotes] = {first for first, _ in self.places}

    def longest_copied_run_length(self, tab: Tab) -> int:
        """Return how many moments the longest run has that a tab shares with one of the pieces."""
        piece, runs = sounding_moments(tab), dict[int, int]()
        longest = int(not self.moments.isdisjoint(piece))
        for pair in pairwise(piece):  # `runs` has the length of each run by where its end is
            runs = {place: runs.get(place - 1, 1) + 1 for place in self.places.get(pair, ())}
            longest = max(longest, *runs.values(), 0)
        return longest
