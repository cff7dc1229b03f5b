"""The lattice of a passage: the states of each moment, their features, and windows of passages.

A state is a grip together with the fret at which the index finger lies. Most of its features are
relative: which finger takes a note, not which fret; how the notes of a grip lie to each other; so
that what was learned in one place of the neck holds in another.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from operator import itemgetter
from typing import NamedTuple

import torch
from torch.nn.utils.rnn import pad_sequence

from slp_guitar.fingering.grips import Grip, find_grips_or_placements
from slp_guitar.fingering.passages import Passage
from slp_guitar.fingering.viterbi import HAND_FRETS, HandCosts
from slp_guitar.fretboard import MAX_FRET, MAX_SPAN, Note, Tuning
from slp_transformer._internal.shape_types import Float, Int, Tensor

NUM_STRINGS = 6
MAX_STATES_PER_MOMENT = 40
"""States of a moment; where there are more, those that cost a hand most are left out."""
MAX_NOTES_PER_GRIP = 6
NUM_GAP_CLASSES = 6  # not known, together, shorter, usual, longer, much longer


class MomentStates(NamedTuple):
    """The states of one moment.

    Attributes:
        grips: the grips.
        grip_ids: of each state, its grip's place in `grips`.
        hand_frets: of each state, the fret of the index finger.
        features: of each state, a row of zeros and small counts.
        costs: of each state, what it costs a hand, as `HandCosts` has it.
    """

    grips: tuple[Grip, ...]
    grip_ids: Int[Tensor, "states"]
    hand_frets: Int[Tensor, "states"]
    features: Float[Tensor, "states features"]
    costs: Float[Tensor, "states"]


@lru_cache(maxsize=20_000)
def build_moment_states(pitches: tuple[int, ...], tuning: Tuning) -> MomentStates:
    """The states of notes that sound together.

    Raises:
        UnplayableError: if no hand can play them.
    """
    choices, costs = find_grips_or_placements(pitches, tuning), HandCosts()
    states = [
        (costs.grip_cost(grip, hand), k, hand)
        for k, grip in enumerate(choices)
        for hand in possible_hand_frets(grip)
    ]
    states = sorted(sorted(states)[:MAX_STATES_PER_MOMENT], key=itemgetter(1, 2))
    prices, ids, hands = zip(*states, strict=True)
    return MomentStates(
        choices,
        torch.tensor(ids),
        torch.tensor(hands),
        torch.stack([extract_features(choices[k], hand) for _, k, hand in states]),
        torch.tensor(prices),
    )


def possible_hand_frets(grip: Grip) -> Sequence[int]:
    """Return the frets of a hand that can take a grip: all, if no finger is needed."""
    frets = [note.fret for note in grip if note.fret]
    if not frets:
        return HAND_FRETS
    last = min(min(frets), HAND_FRETS[-1])
    return range(max(1, min(max(frets) - MAX_SPAN, last)), last + 1)


# --- Features of a state -----------------------------------------------------------------------

NUM_FINGER_CLASSES = 6  # 0 to 4 frets from the index finger, and open


_FEATURE_SIZES = {
    "any": 1,
    "size": MAX_NOTES_PER_GRIP,
    "hand": len(HAND_FRETS),
    "hand, with an open string": len(HAND_FRETS),
    "string": NUM_STRINGS,
    "finger": NUM_FINGER_CLASSES,
    "string and finger": NUM_STRINGS * NUM_FINGER_CLASSES,
    "fret": MAX_FRET + 1,
    "alone: string and finger": NUM_STRINGS * NUM_FINGER_CLASSES,
    "bass: string and finger": NUM_STRINGS * NUM_FINGER_CLASSES,
    "top: string and finger": NUM_STRINGS * NUM_FINGER_CLASSES,
    "span": 8,
    "fretted": MAX_NOTES_PER_GRIP + 1,
    "strings left out": NUM_STRINGS,
    "on the index fret": MAX_NOTES_PER_GRIP + 1,
    "neighbors: strings and frets apart": 5 * 11,
    "neighbors: one of them open": 5,
}
FEATURE_OFFSETS = dict(
    zip(_FEATURE_SIZES, accumulate(_FEATURE_SIZES.values(), initial=0), strict=False)
)
"""Where each kind of feature begins in a row."""
NUM_FEATURES = sum(_FEATURE_SIZES.values())


def extract_features(grip: Grip, hand_fret: int) -> Float[Tensor, "features"]:
    """Return the features of a grip that a hand at this fret takes."""
    frets = [note.fret for note in grip if note.fret]
    strings = [note.string for note in grip]
    fingers = [finger_offset_class(note, hand_fret) for note in grip]
    pairs = [NUM_FINGER_CLASSES * (s - 1) + f for s, f in zip(strings, fingers, strict=True)]
    found = [
        ("any", 0),
        ("size", min(len(grip), MAX_NOTES_PER_GRIP) - 1),
        ("hand", hand_fret - 1),
        ("span", min(7, max(frets) - min(frets)) if frets else 0),
        ("fretted", len(frets)),
        ("strings left out", max(strings) - min(strings) + 1 - len(strings)),
        ("on the index fret", frets.count(hand_fret)),
        *(("string", string - 1) for string in strings),
        *(("finger", finger) for finger in fingers),
        *(("string and finger", pair) for pair in pairs),
        *(("fret", note.fret) for note in grip),
    ]
    if len(frets) < len(grip):
        found.append(("hand, with an open string", hand_fret - 1))
    if len(grip) == 1:
        found.append(("alone: string and finger", pairs[0]))
    else:
        found += [("bass: string and finger", pairs[0]), ("top: string and finger", pairs[-1])]
    for a, b in pairwise(sorted(grip, key=lambda note: -note.string)):
        apart = min(a.string - b.string, 5) - 1
        if a.fret and b.fret:
            reach = max(-5, min(5, b.fret - a.fret)) + 5
            found.append(("neighbors: strings and frets apart", 11 * apart + reach))
        else:
            found.append(("neighbors: one of them open", apart))
    row = torch.zeros(NUM_FEATURES)
    for name, value in found:
        row[FEATURE_OFFSETS[name] + value] += 1.0
    return row


def finger_offset_class(note: Note, hand_fret: int) -> int:
    """Return how many frets from the index finger a note lies, 0 to 4; 5 for an open string."""
    if note.fret == 0:
        return NUM_FINGER_CLASSES - 1
    return max(0, min(NUM_FINGER_CLASSES - 2, note.fret - hand_fret))


# --- Windows of passages -------------------------------------------------------------------------


class LatticeBatch(NamedTuple):
    """Windows of passages as tensors.

    Each kind of moment (its pitches on a guitar) is once in `features`, `costs`, `state_mask` and
    `hand_frets`; `moment_type_ids` says which kind each moment of each window is.

    Attributes:
        features: the features of each state of each kind.
        costs: what it costs a hand, as `HandCosts` has it.
        state_mask: which states there are.
        hand_frets: where the hand is.
        moment_type_ids: the kind of each moment.
        moment_mask: which moments there are.
        gap_classes: class of the time since the moment before.
        target_states: which states have the written grip; all, where it is not among them.
    """

    features: Float[Tensor, "kinds S features"]
    costs: Float[Tensor, "kinds S"]
    state_mask: Tensor
    hand_frets: Int[Tensor, "kinds S"]
    moment_type_ids: Int[Tensor, "batch T"]
    moment_mask: Tensor
    gap_classes: Int[Tensor, "batch T"]
    target_states: Float[Tensor, "batch T S"]


def gap_class(relative_gap: float | None) -> int:
    """The class of a gap in units of the piece's median."""
    if relative_gap is None:
        return 0
    return 1 + sum(relative_gap > bound for bound in (0.05, 0.75, 1.5, 3.0))


class PassageWindows:
    """Passages as rows of numbers, from which windows are cut.

    Attributes:
        states: for each passage the states of each of its moments.
    """

    def __init__(self, passages: Sequence[Passage]):
        """Read passages.

        Raises:
            UnplayableError: if a moment cannot be played.
        """
        self.states: list[list[MomentStates]] = []
        self.gap_classes: list[Int[Tensor, moments]] = []
        self.target_grip_ids: list[Int[Tensor, moments]] = []
        for passage in passages:
            states = [build_moment_states(p, passage.tuning) for p in passage.moments]
            # The place of the written grip among a moment's grips; −1 if it is none of them.
            written = passage.grips or [None] * len(states)
            targets = [
                own.grips.index(grip) if grip in own.grips else -1
                for own, grip in zip(states, written, strict=True)
            ]
            gaps = [gap_class(gap) for gap in passage.relative_gaps()]
            self.states.append(states)
            self.gap_classes.append(torch.tensor(gaps))
            self.target_grip_ids.append(torch.tensor(targets))

    def build_batch(self, windows: Sequence[tuple[int, int, int]]) -> LatticeBatch:
        """Windows, each of them a passage's number, and where it begins and ends in it."""

        def padded(rows: Sequence[Tensor], value: float = 0) -> Tensor:
            return pad_sequence(list(rows), True, value)

        def cut(rows: Sequence[Tensor], value: float = 0) -> Tensor:
            return padded([rows[n][start:end] for n, start, end in windows], value)

        made: list[MomentStates] = []
        numbers: dict[int, int] = {}
        ids = []
        for n, start, end in windows:
            for states in self.states[n][start:end]:
                if id(states) not in numbers:
                    numbers[id(states)] = len(made)
                    made.append(states)
            ids.append(torch.tensor([numbers[id(own)] for own in self.states[n][start:end]]))
        where, gaps = padded(ids), cut(self.gap_classes)
        gaps[:, 0] = 0
        grip_ids = padded([states.grip_ids for states in made], -2)
        there = grip_ids >= 0
        written = grip_ids[where] == cut(self.target_grip_ids, -1).unsqueeze(-1)
        written = torch.where(written.any(-1, keepdim=True), written, there[where])
        return LatticeBatch(
            features=padded([states.features for states in made]),
            costs=padded([states.costs for states in made]),
            state_mask=there,
            hand_frets=padded([states.hand_frets for states in made], 1),
            moment_type_ids=where,
            moment_mask=padded([torch.ones(len(own), dtype=torch.bool) for own in ids]),
            gap_classes=gaps,
            target_states=written.float(),
        )
