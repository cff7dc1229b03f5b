"""The lattice of a piece: at each moment every grip, held by a hand at every place it can be.

A state is a grip together with the fret at which the index finger lies. Most of its features
is relative: which finger takes a note, not which fret; how the notes of a grip lie to each other;
so that what was learned in one place of the neck holds in another.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch

from slp_transformer._internal.shape_types import Float, Int, Tensor
from slp_transformer.guitar.fingering.grips import Grip, find_playable_grips
from slp_transformer.guitar.fingering.viterbi import HAND_FRETS, HandCosts
from slp_transformer.guitar.fretboard import MAX_FRET, MAX_SPAN, Note, Tuning

NUM_STRINGS = 6
MAX_STATES_PER_MOMENT = (
    40  # states of a moment; where there are more, those that cost a hand most are left out
)
MAX_NOTES_PER_GRIP = 6


@dataclass(frozen=True)
class MomentStates:
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
    kept = [choices[k] for k, _ in states]
    pad = [-1] * MAX_NOTES_PER_GRIP
    return MomentStates(
        choices,
        torch.tensor([k for k, _ in states]),
        torch.tensor([hand for _, hand in states]),
        torch.stack(
            [extract_features(grip, hand) for grip, (_, hand) in zip(kept, states, strict=True)]
        ),
        torch.tensor([([n.string - 1 for n in g] + pad)[:MAX_NOTES_PER_GRIP] for g in kept]),
        torch.tensor(
            [
                ([float(n.fret > 0) for n in g] + [0.0] * MAX_NOTES_PER_GRIP)[:MAX_NOTES_PER_GRIP]
                for g in kept
            ]
        ),
        torch.tensor([costs.grip_cost(choices[k], hand) for k, hand in states]),
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


def _feature_offsets() -> tuple[dict[str, int], int]:
    """Return the offset of each kind of feature in a row, and the length of a row."""
    sizes = {
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
    places, total = {}, 0
    for name, size in sizes.items():
        places[name] = total
        total += size
    return places, total


FEATURE_OFFSETS, NUM_FEATURES = _feature_offsets()


def extract_features(grip: Grip, hand_fret: int) -> Float[Tensor, "extract_features"]:
    """Return the features of a grip that a hand at this fret takes."""
    row = torch.zeros(NUM_FEATURES)

    def say(name: str, value: int = 0) -> None:
        row[FEATURE_OFFSETS[name] + value] += 1.0

    say("any")
    say("size", min(len(grip), MAX_NOTES_PER_GRIP) - 1)
    say("hand", hand_fret - 1)
    if any(note.fret == 0 for note in grip):
        say("hand, with an open string", hand_fret - 1)
    for note in grip:
        say("string", note.string - 1)
        say("finger", finger_class(note, hand_fret))
        say("string and finger", string_finger_index(note, hand_fret))
        say("fret", note.fret)
    if len(grip) == 1:
        say("alone: string and finger", string_finger_index(grip[0], hand_fret))
    else:
        say("bass: string and finger", string_finger_index(grip[0], hand_fret))
        say("top: string and finger", string_finger_index(grip[-1], hand_fret))
    frets = [note.fret for note in grip if note.fret]
    strings = [note.string for note in grip]
    say("span", min(7, max(frets) - min(frets)) if frets else 0)
    say("fretted", len(frets))
    say("strings left out", max(strings) - min(strings) + 1 - len(strings))
    say("on the index fret", sum(fret == hand_fret for fret in frets))
    across = sorted(grip, key=lambda note: -note.string)
    for a, b in zip(across, across[1:], strict=False):
        apart = min(abs(a.string - b.string), 5) - 1
        if a.fret and b.fret:
            say(
                "neighbors: strings and frets apart",
                11 * apart + max(-5, min(5, b.fret - a.fret)) + 5,
            )
        else:
            say("neighbors: one of them open", apart)
    return row


def finger_class(note: Note, hand_fret: int) -> int:
    """Return how many frets from the index finger a note lies, 0 to 4; 5 for an open string."""
    return (
        NUM_FINGER_CLASSES - 1
        if note.fret == 0
        else max(0, min(NUM_FINGER_CLASSES - 2, note.fret - hand_fret))
    )


def string_finger_index(note: Note, hand_fret: int) -> int:
    """String and finger as one number."""
    return NUM_FINGER_CLASSES * (note.string - 1) + finger_class(note, hand_fret)
