"""Copies: runs of moments that a generated piece shares with training pieces."""

from collections.abc import Iterable

from slp_transformer.guitar.fretboard import Note
from slp_transformer.guitar.tab import Tab

MomentNotes = tuple[Note, ...]


def sounding_moments(tab: Tab) -> list[MomentNotes]:
    """Return the sounding notes of each moment, whatever time passes between."""
    return [notes for event in tab.iter_events() if (notes := event.sounding_notes())]


class CopyDetector:
    """Finds the longest run of moments that a piece shares with one of some others."""

    def __init__(self, tabs: Iterable[Tab]):
        """Take the pieces that may have been copied from."""
        self.id_by_moment: dict[MomentNotes, int] = {}
        self.encoded_pieces = [
            [self.moment_id(moment) for moment in sounding_moments(tab)] for tab in tabs
        ]
        self.hashes_by_length: dict[int, set[int]] = {}

    def moment_id(self, moment: MomentNotes) -> int:
        """A number for each different moment."""
        return self.id_by_moment.setdefault(moment, len(self.id_by_moment))

    def run_hashes(self, length: int) -> set[int]:
        """The runs of one length in all pieces, as hashes of 64 bits."""
        if length not in self.hashes_by_length:
            self.hashes_by_length[length] = {
                run for piece in self.encoded_pieces for run in hash_runs(piece, length)
            }
        return self.hashes_by_length[length]

    def longest_copied_run(self, tab: Tab) -> int:
        """Return how many moments the longest run has that a tab shares with one of the pieces."""
        piece = [self.id_by_moment.get(moment, -1) for moment in sounding_moments(tab)]
        least, most = 0, 1  # a run that is there has shorter ones in it
        while self.contains_run(piece, most):  # copies are short: long runs are looked for last
            least, most = most, 2 * most
        while most - least > 1:
            middle = (least + most) // 2
            least, most = (middle, most) if self.contains_run(piece, middle) else (least, middle)
        return least

    def contains_run(self, piece: list[int], length: int) -> bool:
        """Return whether some run of that length is in one of the pieces."""
        return not self.run_hashes(length).isdisjoint(hash_runs(piece, length))


def hash_runs(ids: list[int], run_length: int) -> set[int]:
    """The runs of one length in a piece, as hashes."""
    return {hash(tuple(ids[i : i + run_length])) for i in range(len(ids) - run_length + 1)}
