"""Passages as tensors: what a model of the hand reads, and the states it weighs."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.nn.utils.rnn import pad_sequence

from slp_transformer._internal.shape_types import Float, Int, Tensor
from slp_transformer.guitar.fingering.lattice import NOTES, STRINGS, Column, column
from slp_transformer.guitar.fingering.passages import Passage
from slp_transformer.guitar.fretboard import Tuning

GAPS = 6  # not known, together, shorter, usual, longer, much longer


@dataclass(frozen=True)
class Columns:
    """Windows of passages, made ready.

    Each kind of moment (its pitches on a guitar) stands once in `features`, `costs`, `there`,
    `hands` and `used`; `where` says which kind each moment of each window is.

    Attributes:
        features: what is said of each state of each kind.
        costs: what it costs a hand, as `HandCosts` has it.
        there: which states there are.
        hands: where the hand is.
        used: which strings are taken.
        where: the kind of each moment.
        valid: which moments there are.
        gaps: class of the time since the moment before.
        held_strings: of each state, the strings whose notes ring on into the next moment.
        held_fret: of each state, whether a finger holds one of them.
        written: which states have the written grip; all, where it is not among them.
    """

    features: Float[Tensor, "kinds S features"]
    costs: Float[Tensor, "kinds S"]
    there: Tensor
    hands: Int[Tensor, "kinds S"]
    used: Float[Tensor, "kinds S strings"]
    where: Int[Tensor, "batch T"]
    valid: Tensor
    gaps: Int[Tensor, "batch T"]
    held_strings: Float[Tensor, "batch T S strings"]
    held_fret: Float[Tensor, "batch T S"]
    written: Float[Tensor, "batch T S"]


class Kinds:
    """All kinds of moment of some passages, each made once."""

    def __init__(self):
        """Begin with none."""
        self.ids: dict[tuple[tuple[int, ...], Tuning], int] = {}
        self.columns: list[Column] = []

    def id_of(self, pitches: tuple[int, ...], tuning: Tuning) -> int:
        """The number of a kind, made if it is new.

        Raises:
            OutOfReach: if no hand can play it.
        """
        if (pitches, tuning) not in self.ids:
            self.columns.append(column(pitches, tuning))
            self.ids[pitches, tuning] = len(self.ids)
        return self.ids[pitches, tuning]


def gap_class(gap: float | None) -> int:
    """The class of a gap in units of the piece's median."""
    if gap is None:
        return 0
    return 1 + sum(gap > bound for bound in (0.05, 0.75, 1.5, 3.0))


class Reader:
    """Passages as rows of numbers, from which windows are cut."""

    def __init__(self, passages: Sequence[Passage], kinds: Kinds | None = None):
        """Read passages whole.

        Raises:
            OutOfReach: if a moment cannot be played.
        """
        self.passages, self.kinds = list(passages), kinds or Kinds()
        self.ids, self.gaps, self.rings, self.grips = [], [], [], []
        for passage in self.passages:
            kind = [self.kinds.id_of(p, passage.tuning) for p in passage.moments]
            self.ids.append(torch.tensor(kind))
            self.gaps.append(torch.tensor([gap_class(gap) for gap in passage.gaps()]))
            self.rings.append(ringing(passage))
            self.grips.append(torch.tensor([self._grip(passage, i) for i in range(len(kind))]))

    def _grip(self, passage: Passage, i: int) -> int:
        """Which of a moment's grips was written; −1 if it is none of them."""
        if not passage.grips:
            return -1
        made = self.kinds.columns[self.kinds.ids[passage.moments[i], passage.tuning]]
        grip = passage.grips[i]
        return made.grips.index(grip) if grip in made.grips else -1

    def windows(self, cuts: Sequence[tuple[int, int, int]]) -> Columns:
        """Windows, each of them a passage's number, and where it begins and ends in it."""
        T = max(end - start for _, start, end in cuts)

        def rows(lists, value=0):
            pieces = [lists[n][start:end] for n, start, end in cuts]
            return torch.stack(
                [torch.cat([p, p.new_full((T - len(p), *p.shape[1:]), value)]) for p in pieces]
            )

        ids, gaps = rows(self.ids), rows(self.gaps)
        gaps[:, 0] = 0
        rings, grips = rows(self.rings), rows(self.grips, -1)
        valid = torch.tensor([[t < end - start for t in range(T)] for _, start, end in cuts])
        unique, where = torch.unique(ids, return_inverse=True)
        made = [self.kinds.columns[kind] for kind in unique.tolist()]

        def padded(of_states, value=0):
            return pad_sequence(of_states, True, value)

        strings = padded([c.strings for c in made], -1)
        used = torch.nn.functional.one_hot(strings + 1, STRINGS + 1)[..., 1:].float()
        fretted, which = padded([c.fretted for c in made]), padded([c.which for c in made], -2)
        there = which >= 0
        written = (which[where] == grips.unsqueeze(-1)).float()
        missing = written.sum(-1, keepdim=True) == 0
        written = torch.where(missing, there[where].float(), written)
        held_strings = torch.einsum("btn,btsnk->btsk", rings, used[where])
        held_fret = (torch.einsum("btn,btsn->bts", rings, fretted[where]) > 0).float()
        return Columns(
            padded([c.features for c in made]),
            padded([c.costs for c in made]),
            there,
            padded([c.hands for c in made], 1),
            used.sum(-2),
            where,
            valid,
            gaps,
            held_strings,
            held_fret,
            written,
        )


def ringing(passage: Passage) -> Float[Tensor, "T notes"]:
    """Which notes of each moment ring on into the next, as far as that is known."""
    T = len(passage.moments)
    rings = torch.zeros(T, NOTES)
    if not passage.lengths or not passage.onsets:
        return rings
    for t in range(T - 1):
        here, there = passage.onsets[t], passage.onsets[t + 1]
        if here is None or there is None or passage.lengths[t] is None or there <= here:
            continue
        for n, length in enumerate(passage.lengths[t][:NOTES]):
            rings[t, n] = float(here + length > there + 0.01)
    return rings
