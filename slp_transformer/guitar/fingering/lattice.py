"""The lattice of a piece: at each moment every grip, held by a hand at every place it can be.

A state is a grip together with the fret at which the index finger lies. Most of its features
are relative: which finger takes a note, not which fret; how the notes of a grip lie to each other;
so that what was learned in one place of the neck holds in another.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple

import torch
from torch.nn.utils.rnn import pad_sequence

from slp_transformer._internal.shape_types import Float, Int, Tensor
from slp_transformer.guitar.fingering.grips import Grip, find_playable_grips
from slp_transformer.guitar.fingering.passages import Passage
from slp_transformer.guitar.fingering.viterbi import HAND_FRETS, HandCosts
from slp_transformer.guitar.fretboard import MAX_FRET, MAX_SPAN, Note, Tuning

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
        note_strings: of each state, the strings of its notes from 0, in order; −1 where there are
            none.
        is_fretted: of each state and note, whether a finger is needed.
        costs: of each state, what it costs a hand, as `HandCosts` has it.
    """

    grips: tuple[Grip, ...]
    grip_ids: Int[Tensor, "states"]
    hand_frets: Int[Tensor, "states"]
    features: Float[Tensor, "states features"]
    note_strings: Int[Tensor, "states notes"]
    is_fretted: Float[Tensor, "states notes"]
    costs: Float[Tensor, "states"]


@lru_cache(maxsize=20_000)
def build_moment_states(pitches: tuple[int, ...], tuning: Tuning) -> MomentStates:
    """The states of notes that sound together.

    Raises:
        UnplayableError: if no hand can play them.
    """
    choices = find_playable_grips(pitches, tuning)
    costs = HandCosts()
    states = [(k, hand) for k, grip in enumerate(choices) for hand in possible_hand_frets(grip)]
    if len(states) > MAX_STATES_PER_MOMENT:
        states.sort(key=lambda state: costs.grip_cost(choices[state[0]], state[1]))
        states = sorted(states[:MAX_STATES_PER_MOMENT])
    held = [(choices[k], hand) for k, hand in states]
    note_strings = torch.full((len(states), MAX_NOTES_PER_GRIP), -1)
    is_fretted = torch.zeros(len(states), MAX_NOTES_PER_GRIP)
    for row, (grip, _) in enumerate(held):
        for column, note in enumerate(grip[:MAX_NOTES_PER_GRIP]):
            note_strings[row, column] = note.string - 1
            is_fretted[row, column] = float(note.fret > 0)
    return MomentStates(
        choices,
        torch.tensor([k for k, _ in states]),
        torch.tensor([hand for _, hand in states]),
        torch.stack([extract_features(grip, hand) for grip, hand in held]),
        note_strings,
        is_fretted,
        torch.tensor([costs.grip_cost(grip, hand) for grip, hand in held]),
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
    row = torch.zeros(NUM_FEATURES)

    def add(name: str, value: int = 0) -> None:
        row[FEATURE_OFFSETS[name] + value] += 1.0

    frets = [note.fret for note in grip if note.fret]
    strings = [note.string for note in grip]
    fingers = [finger_class(note, hand_fret) for note in grip]
    pairs = [NUM_FINGER_CLASSES * (s - 1) + f for s, f in zip(strings, fingers, strict=True)]
    add("any")
    add("size", min(len(grip), MAX_NOTES_PER_GRIP) - 1)
    add("hand", hand_fret - 1)
    if len(frets) < len(grip):
        add("hand, with an open string", hand_fret - 1)
    for note, finger, pair in zip(grip, fingers, pairs, strict=True):
        add("string", note.string - 1)
        add("finger", finger)
        add("string and finger", pair)
        add("fret", note.fret)
    if len(grip) == 1:
        add("alone: string and finger", pairs[0])
    else:
        add("bass: string and finger", pairs[0])
        add("top: string and finger", pairs[-1])
    add("span", min(7, max(frets) - min(frets)) if frets else 0)
    add("fretted", len(frets))
    add("strings left out", max(strings) - min(strings) + 1 - len(strings))
    add("on the index fret", frets.count(hand_fret))
    for a, b in pairwise(sorted(grip, key=lambda note: -note.string)):
        apart = min(a.string - b.string, 5) - 1
        if a.fret and b.fret:
            reach = max(-5, min(5, b.fret - a.fret)) + 5
            add("neighbors: strings and frets apart", 11 * apart + reach)
        else:
            add("neighbors: one of them open", apart)
    return row


def finger_class(note: Note, hand_fret: int) -> int:
    """Return how many frets from the index finger a note lies, 0 to 4; 5 for an open string."""
    if note.fret == 0:
        return NUM_FINGER_CLASSES - 1
    return max(0, min(NUM_FINGER_CLASSES - 2, note.fret - hand_fret))


# --- Windows of passages -------------------------------------------------------------------------


class LatticeBatch(NamedTuple):
    """Windows of passages as tensors.

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


def classify_gap(relative_gap: float | None) -> int:
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
        self.sustained: list[Float[Tensor, "moments notes"]] = []
        self.target_grip_ids: list[Int[Tensor, moments]] = []
        for passage in passages:
            states = [build_moment_states(p, passage.tuning) for p in passage.moments]
            # The place of the written grip among a moment's grips; −1 if it is none of them.
            written = passage.grips or [None] * len(states)
            targets = [
                own.grips.index(grip) if grip in own.grips else -1
                for own, grip in zip(states, written, strict=True)
            ]
            gaps = [classify_gap(gap) for gap in passage.relative_gaps()]
            self.states.append(states)
            self.gap_classes.append(torch.tensor(gaps))
            self.sustained.append(find_sustained_notes(passage))
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
        strings = padded([states.note_strings for states in made], -1)
        used = torch.nn.functional.one_hot(strings + 1, NUM_STRINGS + 1)[..., 1:].float()
        fretted = padded([states.is_fretted for states in made])
        grip_ids = padded([states.grip_ids for states in made], -2)
        there, rings = grip_ids >= 0, cut(self.sustained)
        written = grip_ids[where] == cut(self.target_grip_ids, -1).unsqueeze(-1)
        written = torch.where(written.any(-1, keepdim=True), written, there[where])
        return LatticeBatch(
            features=padded([states.features for states in made]),
            costs=padded([states.costs for states in made]),
            state_mask=there,
            hand_frets=padded([states.hand_frets for states in made], 1),
            strings_used=used.sum(-2),
            moment_type_ids=where,
            moment_mask=padded([torch.ones(len(own), dtype=torch.bool) for own in ids]),
            gap_classes=gaps,
            sustained_strings=torch.einsum("btn,btsnk->btsk", rings, used[where]),
            has_sustained_fret=(torch.einsum("btn,btsn->bts", rings, fretted[where]) > 0).float(),
            target_states=written.float(),
        )


def find_sustained_notes(passage: Passage) -> Float[Tensor, "T notes"]:
    """Return which notes of each moment ring on into the next, as far as that is known."""
    rings = torch.zeros(len(passage.moments), MAX_NOTES_PER_GRIP)
    times = zip(pairwise(passage.onsets), passage.durations, strict=False)
    for t, ((here, there), durations) in enumerate(times):
        if here is None or there is None or durations is None or there <= here:
            continue
        for n, length in enumerate(durations[:MAX_NOTES_PER_GRIP]):
            rings[t, n] = float(here + length > there + 0.01)
    return rings
