"""A tab: bars of events, each event the notes that sound together at one moment.

Time is kept as tab writers keep it: an event stands so many steps after the bar line, and a bar is
so many steps long. What a step lasts (a sixteenth, a triplet, or just one column of a text file) is
up to whoever wrote the tab.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from slp_transformer.guitar.fretboard import STANDARD, Note, Tuning


@dataclass(frozen=True)
class Event:
    """Notes that sound together.

    Attributes:
        step: steps from the bar line, 0 for the first moment of the bar.
        notes: the notes, lowest-sounding string first (string 6 before string 1).
    """

    step: int
    notes: tuple[Note, ...]


@dataclass(frozen=True)
class Bar:
    """One bar.

    Attributes:
        steps: how many steps the bar is long.
        events: its events, in order of `step`.
    """

    steps: int
    events: tuple[Event, ...]


@dataclass(frozen=True)
class Tab:
    """A piece of guitar music.

    Attributes:
        title: what the piece is called; may be empty.
        tuning: the guitar it is written for.
        bars: its bars, in order.
        source: where it was read from (a file name), or empty.
    """

    title: str = ""
    tuning: Tuning = STANDARD
    bars: tuple[Bar, ...] = field(default_factory=tuple)
    source: str = ""

    def events(self) -> Iterator[Event]:
        """Every event of the piece, in order."""
        for bar in self.bars:
            yield from bar.events
