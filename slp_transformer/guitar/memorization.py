"""How much of a piece stands in others, note for note."""

from collections.abc import Iterable

from slp_transformer.guitar.fretboard import Note
from slp_transformer.guitar.tab import Tab

Moment = tuple[Note, ...]


def moments(tab: Tab) -> list[Moment]:
    """What sounds, moment after moment, whatever time passes between."""
    return [notes for event in tab.events() if (notes := event.sounding())]


class Copies:
    """Finds the longest run of moments of a piece that stands in one of some others."""

    def __init__(self, tabs: Iterable[Tab]):
        """Take the pieces that may have been copied from."""
        self.names: dict[Moment, int] = {}
        self.pieces = [[self.name(moment) for moment in moments(tab)] for tab in tabs]
        self.runs: dict[int, set[int]] = {}

    def name(self, moment: Moment) -> int:
        """A number for each different moment."""
        return self.names.setdefault(moment, len(self.names))

    def runs_of(self, length: int) -> set[int]:
        """The runs of one length in all pieces, as hashes of 64 bits."""
        if length not in self.runs:
            self.runs[length] = {run for piece in self.pieces for run in runs(piece, length)}
        return self.runs[length]

    def longest(self, tab: Tab) -> int:
        """How many moments the longest run has that a tab shares with one of the pieces."""
        piece = [self.names.get(moment, -1) for moment in moments(tab)]
        least, most = 0, 1  # a run that is there has shorter ones in it
        while self.holds(piece, most):  # copies are short: long runs are looked for last
            least, most = most, 2 * most
        while most - least > 1:
            middle = (least + most) // 2
            least, most = (middle, most) if self.holds(piece, middle) else (least, middle)
        return least

    def holds(self, piece: list[int], length: int) -> bool:
        """Whether some run of that length is in one of the pieces."""
        return not self.runs_of(length).isdisjoint(runs(piece, length))


def runs(piece: list[int], length: int) -> set[int]:
    """The runs of one length in a piece, as hashes."""
    return {hash(tuple(piece[i : i + length])) for i in range(len(piece) - length + 1)}
