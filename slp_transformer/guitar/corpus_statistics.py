"""What tabs are like: figures of pieces that a model wrote, to stand beside those of people's.

None of them says that music is good; together they tell where a model's is unlike what it learned.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from slp_transformer.guitar.memorization import Copies, Moment, moments
from slp_transformer.guitar.tab import Event, Tab
from slp_transformer.guitar.tab_metrics import hand_shifts, is_playable_event
from slp_transformer.guitar.theory import most_in_one_scale

FAR = 4  # frets
WINDOW, DIFFERENT = 8, 4


@dataclass(frozen=True)
class Likeness:
    """Figures of some pieces; shares go from 0 to 1, and are None where there is nothing to count.

    Attributes:
        pieces: how many pieces there are.
        events: how many moments at which notes sound, in all of them.
        length: moments in a piece, on average.
        chords: share of the moments with two notes or more.
        playable_events: share of the moments that one hand can play.
        playable_chords: share of the chords that one hand can play.
        jumps: share of the hand's moves that go over four frets, as `hand_shifts` has them.
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

    def figures(self) -> dict[str, Any]:
        """All of it by name, for JSON."""
        return asdict(self)


def likeness(
    tabs: Sequence[Tab], learned: Copies | None = None, ended: Sequence[bool] = ()
) -> Likeness:
    """The figures of some pieces.

    Args:
        tabs: the pieces.
        learned: the pieces that a model learned, to look for copies of them; None not to.
        ended: whether each piece came to an end; not told if empty.
    """
    pieces = [moments(tab) for tab in tabs]
    events = [Event(0, moment) for piece in pieces for moment in piece]
    chords = [event for event in events if len(event.notes) > 1]
    notes = [note for event in events for note in event.notes]
    moves = [move for piece in pieces for move in hand_shifts(Event(0, m) for m in piece)]
    copies = [] if learned is None else [learned.longest(tab) for tab in tabs]
    inside, among = most_in_one_scale(tabs)
    return Likeness(
        pieces=len(tabs),
        events=len(events),
        length=ratio(len(events), len(tabs)),
        chords=ratio(len(chords), len(events)),
        playable_events=share(events, is_playable_event),
        playable_chords=share(chords, is_playable_event),
        jumps=share(moves, lambda frets: frets > FAR),
        open_strings=share(notes, lambda note: note.fret == 0),
        returning_bars=share([again for tab in tabs for again in returns(tab)], bool),
        monotonous=share(
            [window for piece in pieces for window in windows(piece)],
            lambda window: len(set(window)) < DIFFERENT,
        ),
        one_scale=ratio(inside, among),
        ended=share(ended, bool),
        longest_copy=max(copies, default=None),
        mean_copy=ratio(sum(copies), len(copies)),
    )


def returns(tab: Tab) -> list[bool]:
    """For each bar with notes, whether an earlier one has its length and its notes in its steps."""
    seen: set[tuple[int, tuple[tuple[int, Moment], ...]]] = set()
    found = []
    for bar in tab.bars:
        inside = tuple((event.step, event.sounding()) for event in bar.events if event.sounding())
        if inside:
            found.append((bar.steps, inside) in seen)
            seen.add((bar.steps, inside))
    return found


def windows(piece: Sequence[Moment]) -> list[Sequence[Moment]]:
    """Every stretch of eight moments."""
    return [piece[i : i + WINDOW] for i in range(len(piece) - WINDOW + 1)]


def share(things: Iterable[Any], good: Callable[[Any], bool]) -> float | None:
    """How many of some things are so, from 0 to 1; None of nothing."""
    verdicts = [bool(good(thing)) for thing in things]
    return ratio(sum(verdicts), len(verdicts))


def ratio(part: float, whole: float) -> float | None:
    """A quotient; None where there is nothing to divide by."""
    return part / whole if whole else None
