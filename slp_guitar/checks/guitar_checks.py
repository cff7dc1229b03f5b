"""Checks for the guitar's chapter: from string and fret to pitch, and what a hand can play (12)."""

import math
from collections.abc import Sequence
from itertools import pairwise, takewhile

import torch
from torch import Tensor

from slp_transformer.check.diagnosing.diagnosis import Inputs, check
from slp_transformer.check.diagnosing.random_inputs import seeded_randn, vector

STANDARD_TUNING = (40, 45, 50, 55, 59, 64)  # E2 to E4, as MIDI numbers, the lowest string first


def _pitch_cases() -> list[Inputs]:
    standard, drop_d = STANDARD_TUNING, (38, *STANDARD_TUNING[1:])
    bass, ukulele, seven = STANDARD_TUNING[:4], (67, 60, 64, 69), (35, *STANDARD_TUNING)
    given = [(1, 0, standard), (6, 3, standard), (2, 12, drop_d), (6, 0, drop_d), (4, 5, bass)]
    return [*given, (4, 2, ukulele), (1, 15, standard), (1, 2, seven)]


@check(
    "the pitch of a place",
    _pitch_cases,
    "strings from the lowest: String 1 is treated as the lowest; it is the highest.",
    lambda tuning, solve: solve(tuning=tuning[::-1]),
    "string + 1: This uses the next string: string 1 is the last entry of `tuning`.",
    "fret not added [fret = 0]: The fret is not added: each fret raises the pitch by a semitone.",
    "whole tones [fret doubled]: A fret is counted as a whole tone; it is a semitone.",
    "standard tuning: `tuning` is not used: this is always standard tuning.",
    lambda solve: solve(tuning=STANDARD_TUNING),
    "fourths: The strings are taken to be five semitones apart, from 64 down; use `tuning`.",
    lambda string, fret: 64 - 5 * (string - 1) + fret,
    "sorted: The strings are sorted by pitch; `tuning` is in order already, and the lowest string "
    "need not have the lowest pitch.",
    lambda string, fret, tuning: sorted(tuning)[-string] + fret,
    "index: `tuning[string]` counts from the lowest string, and from 0; use `tuning[-string]`.",
    lambda string, fret, tuning: tuning[string] + fret,
    "fret + 1: The pitch is one semitone too high: fret 0 is the open string.",
    "fret − 1: The pitch is one semitone too low: fret 1 is one above the open string.",
    "fret subtracted [− for +]: The fret is subtracted; a higher fret sounds higher.",
)
def pitch(string: int, fret: int, tuning: Sequence[int]) -> int:
    """Check `pitch(string, fret, tuning)`: a MIDI number; string 1 is the highest, tuning[-1]."""
    return tuning[len(tuning) - string] + fret


def _places_cases() -> list[Inputs]:
    unison, seven = (38, 45, 50, 50, 57, 62), (35, *STANDARD_TUNING)
    ukulele = (67, 60, 64, 69)  # not in order
    given = [(64, 20), (40, 20), (59, 12), (76, 12), (76, 11)]
    others = [(52, unison, 9), (66, seven, 5)]
    others += [(67, ukulele, 12), (64, ukulele, 12), (72, ukulele, 7)]
    return [*((midi, STANDARD_TUNING, frets) for midi, frets in given), *others]


@check(
    "the number of places",
    _places_cases,
    "open strings left out [< for ≤]: Open strings are left out: fret 0 counts, too.",
    "frets − 1: The last fret is left out.",
    "below the nut: A place has a fret below 0: that string is too high for the pitch.",
    lambda midi, tuning, frets: sum(-frets <= midi - o <= frets for o in tuning),
    "beyond the neck: A place has a fret beyond the neck.",
    lambda frets, solve: solve(frets=frets + 100),
    "below the nut (anywhere): …",
    lambda midi, tuning, frets: sum(midi - opened <= frets for opened in tuning),
    "first only: Only one place is counted.",
    lambda right: min(right, 1),
    "frets + 1: One fret too many is counted: `frets` is the last one.",
    "frets not used: `frets` is not used: necks have different lengths.",
    lambda midi, tuning: sum(0 <= midi - o <= 20 for o in tuning),
    "strings in order: The loop ends at the first string that is too high; a later one may be "
    "lower.",
    lambda midi, tuning, frets: sum(
        midi - o <= frets for o in takewhile(lambda o: o <= midi, tuning)
    ),
    "frets: These are the frets; return how many places there are.",
    lambda midi, tuning, frets: [midi - o for o in tuning if 0 <= midi - o <= frets],
    "fret turned [sides of −]: The pitch is subtracted from the open string; it is the other way "
    "round.",
    "different frets: Frets that occur on two strings are counted once; each string is a place of "
    "its own.",
    lambda midi, tuning, frets: len({midi - o for o in tuning if 0 <= midi - o <= frets}),
    "octaves: Notes an octave away are counted as well; they have another pitch.",
    lambda midi, tuning, frets: sum(
        (midi - o - f) % 12 == 0 for o in tuning for f in range(frets + 1)
    ),
    "whether: This says whether there is a place; return how many there are.",
    lambda midi, tuning, frets: any(0 <= midi - o <= frets for o in tuning),
    "places: These are the places; return how many there are.",
    lambda midi, tuning, frets: [
        (i, midi - o) for i, o in enumerate(tuning) if 0 <= midi - o <= frets
    ],
    "frets from 1 [midi − 1]: An open string is counted as fret 1; it is fret 0.",
    "octaves (by remainder): …",
    lambda midi, tuning, frets: sum((midi - opened) % 12 <= frets for opened in tuning),
    "frets not used (12): …",
    lambda midi, tuning: sum(0 <= midi - opened <= 12 for opened in tuning),
    "lowest string left out: The lowest string is left out: count from tuning[0].",
    lambda tuning, solve: solve(tuning=tuning[1:]),
    "highest string left out: The highest string, tuning[-1], is left out.",
    lambda tuning, solve: solve(tuning=tuning[:-1]),
    may_be_empty=("frets",),
)
def count_places(midi: int, tuning: Sequence[int], frets: int) -> int:
    """Check `count_places(midi, tuning, frets)`: on how many strings a pitch can be played."""
    return sum(0 <= midi - opened <= frets for opened in tuning)


def _span_cases() -> list[Inputs]:
    given = [(0, 2, 2), (3, 2, 0, 0, 0, 3), (None, 3, 2, 0, 1, 0), (0, 0), (5, 9, None), (7,)]
    return [(frets,) for frets in (*given, (11, 0, 14), (1, 2, 3, 4, 5, 6, 7, 9))]


@check(
    "the span of a grip",
    _span_cases,
    "open strings counted: Open strings count as fret 0; no finger is needed there.",
    lambda frets: max(played := [f for f in frets if f is not None]) - min(played),
    "one too many: The span is the difference of the two frets; do not add 1.",
    lambda frets, right: right + any(frets),
    "highest fret [no − min(pressed)]: This is the highest fret; subtract the lowest pressed fret.",
    "first and last string: This is the difference of the first and last pressed frets; use the "
    "lowest and highest.",
    lambda frets: abs((pressed := [f for f in frets if f] or [0])[-1] - pressed[0]),
    "first and last string (signed): …",
    lambda frets: (pressed := [f for f in frets if f] or [0])[-1] - pressed[0],
    "None counted: Open strings, and strings that are not played, count as fret 0; leave them out.",
    lambda frets: max(f or 0 for f in frets) - min(f or 0 for f in frets),
    "fret 1 left out: Fret 1 is treated like an open string; only fret 0 is.",
    lambda frets, solve: solve(frets=[f for f in frets if f != 1]),
    "strings: This counts strings; the span is a difference of frets.",
    lambda frets: (s := ([i for i, f in enumerate(frets) if f] or [0]))[-1] - s[0],
    "neighbors: Only neighboring frets are compared; compare the highest with the lowest.",
    lambda frets: max((abs(a - b) for a, b in pairwise(f for f in frets if f)), default=0),
    "nothing pressed: If no fret is pressed, max() fails: the span is 0 then.",
    lambda frets: max(f for f in frets if f) - min(f for f in frets if f),
    "strings pressed: This counts the pressed strings; the span is a difference of frets.",
    lambda frets: sum(map(bool, frets)),
    "different frets (less one): This counts frets; the span is the difference of the highest and "
    "the lowest.",
    lambda frets: max(len({f for f in frets if f}) - 1, 0),
    "different frets: This counts frets; the span is the difference of the highest and the lowest.",
    lambda frets: len({f for f in frets if f}),
)
def span(frets: Sequence[int | None]) -> int:
    """Check `span(frets)`: highest minus lowest fret that is pressed; 0 if none is."""
    pressed = [fret for fret in frets if fret]
    return max(pressed) - min(pressed) if pressed else 0


def _allowed_cases() -> list[Inputs]:
    u = seeded_randn(71)(7)
    given = [
        (vector(2, 1, 0), [1, 0, 1]),
        (vector(-1, -2, 5), [1, 1, 0]),
        (u, [0, 1, 1, 0, 1, 0, 1]),
        (vector(1000, 1, 0), [0, 1, 1]),
        (vector(1000, 1, 0), [1, 0, 1]),
        (vector(-20000, 0, 1), [1, 0, 0]),
        (vector(-2e9, 0, 1), [1, 0, 0]),
    ]
    return [(u, torch.tensor(allowed) > 0) for u, allowed in given]


@check(
    "masked sampling, `probs` after a mask",
    _allowed_cases,
    "logits 0 [0 for −∞]: Forbidden tokens have the logit 0, and exp(0) is 1; it should be −∞.",
    "not renormalized: The probabilities do not sum to 1: mask before the softmax.",
    lambda u, allowed: torch.softmax(u, -1) * allowed,
    "−allowed: Allowed tokens are masked, and forbidden ones are kept.",
    "most probable [then one-hot]: The most probable token gets probability 1; the others keep a "
    "share.",
    "shorter: Forbidden tokens are removed; they keep their place, with probability 0.",
    lambda u, allowed: torch.softmax(u[allowed], -1),
    "−100: A finite difference is not enough: a forbidden token with a large logit still wins; "
    "use −∞.",
    lambda u, allowed: torch.softmax(u - 100.0 * ~allowed, -1),
    "finite [-20 for −∞]: A finite number is not enough: an allowed logit may be lower still; use "
    "−∞.",
    "finite (−1000): …",
    lambda u, allowed: torch.softmax(u.masked_fill(~allowed, -1e3), -1),
    "finite (−10⁴): …",
    lambda u, allowed: torch.softmax(u.masked_fill(~allowed, -1e4), -1),
    "finite (−10⁹): …",
    lambda u, allowed: torch.softmax(u.masked_fill(~allowed, -1e9), -1),
    "not normalized: The probabilities do not sum to 1: divide by their sum.",
    lambda u, allowed: u.float().exp() * allowed,
    "shares of the logits: The logits are divided by their sum; take the softmax.",
    lambda u, allowed: u * allowed / (u * allowed).sum(),
    "exp first: exp of a large logit is ∞: let `torch.softmax` subtract the maximum.",
    lambda u, allowed: (y := (u.float().exp() * allowed)) / y.sum(),
    "0 times −∞ [allowed = 0]: 0 · −∞ is NaN: use `masked_fill` or `torch.where`.",
    "added: `allowed` is added to the logits, and 0 leaves them as they are; use −∞.",
    lambda u, allowed: torch.softmax(u + allowed, -1),
    "renormalized too late: If forbidden tokens have nearly all the probability, the rest is "
    "rounded to 0: mask before the softmax.",
    lambda u, allowed: (y := (torch.softmax(u.float(), -1) * allowed)) / y.sum(),
    "softmax twice [softmax of u]: The softmax is taken twice: of the logits, and then of "
    "probabilities.",
)
def only_allowed(u: Tensor, allowed: Tensor) -> Tensor:
    """Check `only_allowed(u, allowed)`: probabilities that are 0 where `allowed` is False."""
    return torch.softmax(u.masked_fill(~allowed, -math.inf), -1)
