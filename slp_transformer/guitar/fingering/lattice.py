"""The lattice of a piece: at each moment every grip, held by a hand at every place it can be.

A state is a grip together with the fret at which the index finger lies. Most of what is said of it
is relative: which finger takes a note, not which fret; how the notes of a grip lie to each other;
so that what was learned in one place of the neck holds in another.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch

from slp_transformer._internal.shape_types import Float, Int, Tensor
from slp_transformer.guitar.fingering.grips import Grip, reachable_grips
from slp_transformer.guitar.fingering.viterbi import HANDS, HandCosts
from slp_transformer.guitar.fretboard import MAX_FRET, MAX_SPAN, Note, Tuning

STRINGS = 6
MOST = 40  # states of a moment; where there are more, those that cost a hand most are left out
NOTES = 6


@dataclass(frozen=True)
class Column:
    """The states of one moment.

    Attributes:
        grips: the grips.
        which: of each state, its grip's place in `grips`.
        hands: of each state, the fret of the index finger.
        features: of each state, what is said of it: a row of zeros and small counts.
        strings: of each state, the strings of its notes from 0, in order; −1 where there are none.
        fretted: of each state and note, whether a finger is needed.
        costs: of each state, what it costs a hand, as `HandCosts` has it.
    """

    grips: tuple[Grip, ...]
    which: Int[Tensor, "states"]
    hands: Int[Tensor, "states"]
    features: Float[Tensor, "states features"]
    strings: Int[Tensor, "states notes"]
    fretted: Float[Tensor, "states notes"]
    costs: Float[Tensor, "states"]


@lru_cache(maxsize=20_000)
def column(pitches: tuple[int, ...], tuning: Tuning) -> Column:
    """The states of notes that sound together.

    Raises:
        OutOfReach: if no hand can play them.
    """
    choices = reachable_grips(pitches, tuning)
    costs = HandCosts()
    states = [(k, hand) for k, grip in enumerate(choices) for hand in hands_of(grip)]
    if len(states) > MOST:
        states.sort(key=lambda state: costs.of_grip(choices[state[0]], state[1]))
        states = sorted(states[:MOST])
    kept = [choices[k] for k, _ in states]
    pad = [-1] * NOTES
    return Column(
        choices,
        torch.tensor([k for k, _ in states]),
        torch.tensor([hand for _, hand in states]),
        torch.stack([features(grip, hand) for grip, (_, hand) in zip(kept, states, strict=True)]),
        torch.tensor([([n.string - 1 for n in g] + pad)[:NOTES] for g in kept]),
        torch.tensor([([float(n.fret > 0) for n in g] + [0.0] * NOTES)[:NOTES] for g in kept]),
        torch.tensor([costs.of_grip(choices[k], hand) for k, hand in states]),
    )


def hands_of(grip: Grip) -> Sequence[int]:
    """Where a hand can be that takes a grip: anywhere, if no finger is needed."""
    frets = [note.fret for note in grip if note.fret]
    if not frets:
        return HANDS
    last = min(min(frets), HANDS[-1])
    return range(max(1, min(max(frets) - MAX_SPAN, last)), last + 1)


# --- What is said of a state -------------------------------------------------------------------

FINGERS = 6  # 0 to 4 frets from the index finger, and open


def _offsets() -> tuple[dict[str, int], int]:
    """Where each kind of feature begins in a row, and how long a row is."""
    sizes = {
        "any": 1,
        "size": NOTES,
        "hand": len(HANDS),
        "hand, with an open string": len(HANDS),
        "string": STRINGS,
        "finger": FINGERS,
        "string and finger": STRINGS * FINGERS,
        "fret": MAX_FRET + 1,
        "alone: string and finger": STRINGS * FINGERS,
        "bass: string and finger": STRINGS * FINGERS,
        "top: string and finger": STRINGS * FINGERS,
        "span": 8,
        "fretted": NOTES + 1,
        "strings left out": STRINGS,
        "on the index fret": NOTES + 1,
        "neighbours: strings and frets apart": 5 * 11,
        "neighbours: one of them open": 5,
    }
    places, total = {}, 0
    for name, size in sizes.items():
        places[name] = total
        total += size
    return places, total


PLACES, FEATURES = _offsets()


def features(grip: Grip, hand: int) -> Float[Tensor, "features"]:
    """What is said of a grip that a hand at this fret takes."""
    row = torch.zeros(FEATURES)

    def say(name: str, value: int = 0) -> None:
        row[PLACES[name] + value] += 1.0

    say("any")
    say("size", min(len(grip), NOTES) - 1)
    say("hand", hand - 1)
    if any(note.fret == 0 for note in grip):
        say("hand, with an open string", hand - 1)
    for note in grip:
        say("string", note.string - 1)
        say("finger", finger_of(note, hand))
        say("string and finger", both(note, hand))
        say("fret", note.fret)
    if len(grip) == 1:
        say("alone: string and finger", both(grip[0], hand))
    else:
        say("bass: string and finger", both(grip[0], hand))
        say("top: string and finger", both(grip[-1], hand))
    frets = [note.fret for note in grip if note.fret]
    strings = [note.string for note in grip]
    say("span", min(7, max(frets) - min(frets)) if frets else 0)
    say("fretted", len(frets))
    say("strings left out", max(strings) - min(strings) + 1 - len(strings))
    say("on the index fret", sum(fret == hand for fret in frets))
    across = sorted(grip, key=lambda note: -note.string)
    for a, b in zip(across, across[1:], strict=False):
        apart = min(abs(a.string - b.string), 5) - 1
        if a.fret and b.fret:
            say(
                "neighbours: strings and frets apart",
                11 * apart + max(-5, min(5, b.fret - a.fret)) + 5,
            )
        else:
            say("neighbours: one of them open", apart)
    return row


def finger_of(note: Note, hand: int) -> int:
    """How many frets from the index finger a note lies, 0 to 4; 5 for an open string."""
    return FINGERS - 1 if note.fret == 0 else max(0, min(FINGERS - 2, note.fret - hand))


def both(note: Note, hand: int) -> int:
    """String and finger as one number."""
    return FINGERS * (note.string - 1) + finger_of(note, hand)
