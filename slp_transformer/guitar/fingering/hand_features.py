"""Passages as tensors: what a model of the hand reads, and the states it weighs."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.nn.utils.rnn import pad_sequence

from slp_transformer._internal.shape_types import Float, Int, Tensor
from slp_transformer.guitar.fingering.lattice import (
    MAX_NOTES_PER_GRIP,
    NUM_STRINGS,
    MomentStates,
    build_moment_states,
)
from slp_transformer.guitar.fingering.passages import Passage
from slp_transformer.guitar.fretboard import Tuning

NUM_GAP_CLASSES = 6  # not known, together, shorter, usual, longer, much longer


@dataclass(frozen=True)
class LatticeBatch:
    """Windows of passages, made ready.

    Each kind of moment (its pitches on a guitar) is once in `features`, `costs`, `state_mask`,
    `hand_frets` and `strings_used`; `moment_type_ids` says which kind each moment of each window
    is.

    Attributes:
        features: the features of each state of each kind.
        costs: what it costs a hand, as `HandCosts` has it.
        state_mask: which states there are.
        hand_frets: where the hand is.
        strings_used: which strings are taken.
        moment_type_ids: the kind of each moment.
        moment_mask: which moments there are.
        gap_classes: class of the time since the moment before.
        sustained_strings: of each state, the strings whose notes ring on into the next moment.
        has_sustained_fret: of each state, whether a finger holds one of them.
        target_states: which states have the written grip; all, where it is not among them.
    """

    features: Float[Tensor, "kinds S features"]
    costs: Float[Tensor, "kinds S"]
    state_mask: Tensor
    hand_frets: Int[Tensor, "kinds S"]
    strings_used: Float[Tensor, "kinds S strings"]
    moment_type_ids: Int[Tensor, "batch T"]
    moment_mask: Tensor
    gap_classes: Int[Tensor, "batch T"]
    sustained_strings: Float[Tensor, "batch T S strings"]
    has_sustained_fret: Float[Tensor, "batch T S"]
    target_states: Float[Tensor, "batch T S"]


class MomentTypes:
    """All kinds of moment of some passages, each made once."""

    def __init__(self):
        """Begin with none."""
        self.id_by_moment: dict[tuple[tuple[int, ...], Tuning], int] = {}
        self.moment_states: list[MomentStates] = []

    def get_or_add(self, pitches: tuple[int, ...], tuning: Tuning) -> int:
        """The number of a kind, made if it is new.

        Raises:
            UnplayableError: if no hand can play it.
        """
        if (pitches, tuning) not in self.id_by_moment:
            self.moment_states.append(build_moment_states(pitches, tuning))
            self.id_by_moment[pitches, tuning] = len(self.id_by_moment)
        return self.id_by_moment[pitches, tuning]


def classify_gap(relative_gap: float | None) -> int:
    """The class of a gap in units of the piece's median."""
    if relative_gap is None:
        return 0
    return 1 + sum(relative_gap > bound for bound in (0.05, 0.75, 1.5, 3.0))


class PassageWindows:
    """Passages as rows of numbers, from which windows are cut."""

    def __init__(self, passages: Sequence[Passage], moment_types: MomentTypes | None = None):
        """Read passages whole.

        Raises:
            UnplayableError: if a moment cannot be played.
        """
        self.passages, self.moment_types = list(passages), moment_types or MomentTypes()
        self.moment_type_ids, self.gap_classes = [], []
        self.sustained, self.target_grip_ids = [], []
        for passage in self.passages:
            kind = [self.moment_types.get_or_add(p, passage.tuning) for p in passage.moments]
            self.moment_type_ids.append(torch.tensor(kind))
            self.gap_classes.append(
                torch.tensor([classify_gap(gap) for gap in passage.relative_gaps()])
            )
            self.sustained.append(find_sustained_notes(passage))
            self.target_grip_ids.append(
                torch.tensor([self._target_grip_index(passage, i) for i in range(len(kind))])
            )

    def _target_grip_index(self, passage: Passage, moment_index: int) -> int:
        """Return the index of the written grip among a moment's grips; −1 if it is none of them."""
        if not passage.grips:
            return -1
        made = self.moment_types.moment_states[
            self.moment_types.id_by_moment[passage.moments[moment_index], passage.tuning]
        ]
        grip = passage.grips[moment_index]
        return made.grips.index(grip) if grip in made.grips else -1

    def build_batch(self, windows: Sequence[tuple[int, int, int]]) -> LatticeBatch:
        """Windows, each of them a passage's number, and where it begins and ends in it."""
        T = max(end - start for _, start, end in windows)

        def rows(lists, value=0):
            pieces = [lists[n][start:end] for n, start, end in windows]
            return torch.stack(
                [torch.cat([p, p.new_full((T - len(p), *p.shape[1:]), value)]) for p in pieces]
            )

        ids, gaps = rows(self.moment_type_ids), rows(self.gap_classes)
        gaps[:, 0] = 0
        rings, grips = rows(self.sustained), rows(self.target_grip_ids, -1)
        valid = torch.tensor([[t < end - start for t in range(T)] for _, start, end in windows])
        unique, where = torch.unique(ids, return_inverse=True)
        made = [self.moment_types.moment_states[kind] for kind in unique.tolist()]

        def padded(of_states, value=0):
            return pad_sequence(of_states, True, value)

        strings = padded([c.note_strings for c in made], -1)
        used = torch.nn.functional.one_hot(strings + 1, NUM_STRINGS + 1)[..., 1:].float()
        fretted = padded([c.is_fretted for c in made])
        grip_ids = padded([c.grip_ids for c in made], -2)
        there = grip_ids >= 0
        written = (grip_ids[where] == grips.unsqueeze(-1)).float()
        missing = written.sum(-1, keepdim=True) == 0
        written = torch.where(missing, there[where].float(), written)
        held_strings = torch.einsum("btn,btsnk->btsk", rings, used[where])
        held_fret = (torch.einsum("btn,btsn->bts", rings, fretted[where]) > 0).float()
        return LatticeBatch(
            padded([c.features for c in made]),
            padded([c.costs for c in made]),
            there,
            padded([c.hand_frets for c in made], 1),
            used.sum(-2),
            where,
            valid,
            gaps,
            held_strings,
            held_fret,
            written,
        )


def find_sustained_notes(passage: Passage) -> Float[Tensor, "T notes"]:
    """Return which notes of each moment ring on into the next, as far as that is known."""
    T = len(passage.moments)
    rings = torch.zeros(T, MAX_NOTES_PER_GRIP)
    if not passage.durations or not passage.onsets:
        return rings
    for t in range(T - 1):
        here, there = passage.onsets[t], passage.onsets[t + 1]
        if here is None or there is None or passage.durations[t] is None or there <= here:
            continue
        for n, length in enumerate(passage.durations[t][:MAX_NOTES_PER_GRIP]):
            rings[t, n] = float(here + length > there + 0.01)
    return rings
