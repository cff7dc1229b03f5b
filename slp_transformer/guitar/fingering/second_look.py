"""A second look: what a fingering of the whole piece says about each moment of it.

A lattice knows of the past only where the hand is. Whether it plays this note where it played it
before, and this passage where it plays what comes before and after, shows only when all of a piece
has been fingered once. So each grip is compared with what the first look holds probable around it;
what that is worth is learned by logistic regression, from pieces that the first look had not seen.
"""

import math
from bisect import bisect_left
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import torch
from torch import nn

from slp_transformer._internal.shape_types import Float, Int, Tensor
from slp_transformer.guitar.fingering.grips import Grip
from slp_transformer.guitar.fingering.lattice import STRINGS
from slp_transformer.guitar.fingering.passages import Passage

Likely = tuple[tuple[Grip, ...], Float[Tensor, "grips"]]
"""The grips of a moment, and the probability of each."""

AROUND = ((-1, -1), (1, 1), (-4, -1), (1, 4), (-2, 2), (-4, 4), (-8, 8), (-16, 16), (-32, 32))
"""Moments before and after over which the hand's place is compared."""
WITHIN = (8, 32, None)
"""Moments on either side in which a pitch is looked for again; None for all of the piece."""
FEATURES = 2 * len(AROUND) + 2 + len(WITHIN) + 2 + 2
NEAR = 8  # moments on either side over which open strings are counted
BESIDE = 3  # moments before, and after, in which a string is in use
LEAST = 0.02  # below which a probability is not told from this one


@dataclass
class Sums:
    """Rows that something had at several moments, to be added up over a range of them.

    Attributes:
        times: the moments, in order.
        sums: the sum of the rows before each of them, and of all.
    """

    times: list[int] = field(default_factory=list)
    sums: list[Tensor] = field(default_factory=list)

    def add(self, t: int, row: Float[Tensor, "n"]) -> None:
        """Add the row of a moment that is later than all before."""
        self.times.append(t)
        self.sums.append(row if not self.sums else self.sums[-1] + row)

    def elsewhere(self, t: int, reach: int | None) -> tuple[int, Tensor]:
        """How many other moments there are within reach of this one, and the sum of their rows."""
        first = 0 if reach is None else bisect_left(self.times, t - reach)
        last = len(self.times) if reach is None else bisect_left(self.times, t + reach + 1)
        here = bisect_left(self.times, t)
        return last - first - 1, self._of(first, last) - self._of(here, here + 1)

    def _of(self, first: int, last: int) -> Tensor:
        """The sum of some rows."""
        before = self.sums[first - 1] if first else torch.zeros_like(self.sums[0])
        return self.sums[last - 1] - before


class Surroundings:
    """What a first look holds probable in a piece, made ready to compare grips with."""

    def __init__(self, passage: Passage, looked: Sequence[Likely]):
        """Take in a first look at all moments of a piece."""
        self.passage, self.looked = passage, looked
        self.frets, self.open, places, weights, opens = [], [], [], [], []
        self.strings: list[dict[int, Tensor]] = []  # of each moment, by pitch
        self.pitches: dict[int, Sums] = {}
        self.grips: dict[Hashable, Sums] = {}
        for t, (grips, likely) in enumerate(looked):
            frets = torch.tensor([mean_fret(grip) for grip in grips])
            self.frets.append(frets)
            self.open.append(torch.tensor([share_open(grip) for grip in grips]))
            opens.append(float((likely * self.open[-1]).sum()))
            weights.append(float(likely[~frets.isnan()].sum()))
            places.append(float((likely * frets.nan_to_num()).sum()))
            taken: dict[int, Tensor] = {}  # a pitch may sound on two strings at once
            for k, pitch in enumerate(passage.moments[t]):
                row = taken.setdefault(pitch, torch.zeros(STRINGS))
                row.index_add_(0, strings_of(grips, k), likely)
            self.strings.append(taken)
            for pitch, row in taken.items():
                self.pitches.setdefault(pitch, Sums()).add(t, row)
            for key in self._keys(t):
                self.grips.setdefault(key, Sums()).add(t, likely)
        self.weights, self.places = weights, places
        self.opens, self.summed_opens = opens, [0.0, *accumulate(opens)]
        self.summed_weights = [0.0, *accumulate(weights)]
        self.summed_places = [0.0, *accumulate(places)]

    def _keys(self, t: int) -> tuple[Hashable, Hashable]:
        """The moment with its neighbours, and alone: what may come back in the piece."""
        row = self.passage.moments
        beside = tuple(row[i] if 0 <= i < len(row) else None for i in (t - 1, t, t + 1))
        return beside, row[t]

    def features(self, t: int) -> Float[Tensor, "grips features"]:
        """How each grip of a moment compares with what is around it, that moment left out."""
        grips, rows = self.looked[t][0], []
        for first, last in AROUND:
            apart = self._apart(t, t + first, t + last)
            rows += [apart.abs().clamp(max=10) / 4, apart.clamp(-8, 8) / 4]
        first, last = max(0, t - NEAR), min(len(self.looked), t + NEAR + 1)
        others = self.summed_opens[last] - self.summed_opens[first] - self.opens[t]
        rows += [self.open[t], self.open[t] * others / max(1, last - first - 1)]
        for reach in WITHIN:
            agrees = torch.zeros(len(grips))
            for k, pitch in enumerate(self.passage.moments[t]):
                count, row = self.pitches[pitch].elsewhere(t, reach)
                if count:
                    agrees += (row[strings_of(grips, k)] / count).clamp(min=LEAST).log()
            rows.append(agrees / len(grips[0]))
        for key in self._keys(t):
            count, row = self.grips[key].elsewhere(t, None)
            agrees = (row / count).clamp(min=LEAST).log() if count else torch.zeros(len(grips))
            rows.append(agrees)
        rows += [self._in_use(t, range(max(0, t - BESIDE), t))]
        rows += [self._in_use(t, range(t + 1, min(len(self.looked), t + BESIDE + 1)))]
        return torch.stack(rows, dim=1)

    def _in_use(self, t: int, moments: range) -> Float[Tensor, "grips"]:
        """How often other notes take a grip's strings in some moments, a note of it on average."""
        grips, used = self.looked[t][0], torch.zeros(len(self.looked[t][0]))
        for k, pitch in enumerate(self.passage.moments[t]):
            taken = torch.zeros(STRINGS)
            for u in moments:
                taken += sum(row for other, row in self.strings[u].items() if other != pitch)
            used += taken[strings_of(grips, k)]
        return used / len(grips[0])

    def _apart(self, t: int, first: int, last: int) -> Float[Tensor, "grips"]:
        """How many frets each grip lies above what is fretted in a range of moments; 0 if open."""
        first, last = max(0, first), min(len(self.looked), last + 1)
        own = first <= t < last
        weight = self.summed_weights[max(first, last)] - self.summed_weights[first]
        place = self.summed_places[max(first, last)] - self.summed_places[first]
        weight, place = weight - own * self.weights[t], place - own * self.places[t]
        if weight < 0.3:  # hardly anything is fretted there
            return torch.zeros(len(self.frets[t]))
        return (self.frets[t] - place / weight).nan_to_num()


def strings_of(grips: Sequence[Grip], k: int) -> Int[Tensor, "grips"]:
    """The string of each grip's note k, from 0."""
    return torch.tensor([grip[k].string - 1 for grip in grips])


def mean_fret(grip: Grip) -> float:
    """Where the fingers are, on average; not a number where none is needed."""
    frets = [note.fret for note in grip if note.fret]
    return sum(frets) / len(frets) if frets else math.nan


def share_open(grip: Grip) -> float:
    """The share of its strings that no finger takes."""
    return sum(note.fret == 0 for note in grip) / len(grip)


class SecondLook(nn.Module):
    """What it is worth to a grip that it goes with its surroundings.

    Attributes:
        weights: of `Surroundings.features`.
    """

    def __init__(self):
        """Make one that heeds nothing."""
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(FEATURES))

    @torch.no_grad()
    def forward(self, passage: Passage, looked: Sequence[Likely]) -> list[Float[Tensor, "grips"]]:
        """What speaks for each grip of each moment, as a logarithm.

        Args:
            passage: the piece.
            looked: the first look at it.
        """
        around = Surroundings(passage, looked)
        return [around.features(t) @ self.weights for t in range(len(looked))]


def learn_second_look(
    passages: Sequence[Passage],
    looks: Sequence[Sequence[Likely]],
    decay: float = 1e-4,
    rounds: int = 60,
) -> SecondLook:
    """Logistic regression of the grips that people wrote on what is around them.

    What the first look holds of a grip itself counts too, with a weight of its own, so that the
    others learn only what it does not know.

    Args:
        passages: fingered pieces.
        looks: a first look at each of them, of models that had not learned from it.
        decay: how strongly the squares of weights are held down.
        rounds: of L-BFGS.

    Raises:
        ValueError: if no piece has a moment that was written and leaves a choice.
    """
    X, first, written, of = _choices(passages, looks)
    second, own = SecondLook(), nn.Parameter(torch.ones(()))
    parameters = [second.weights, own]
    optimiser = torch.optim.LBFGS(parameters, max_iter=rounds, line_search_fn="strong_wolfe")
    count = int(of[-1]) + 1

    def surprised() -> Float[Tensor, ""]:
        optimiser.zero_grad()
        u = own * first + X @ second.weights
        highest = torch.full((count,), -torch.inf).scatter_reduce(0, of, u.detach(), "amax")
        summed = torch.zeros(count).index_add(0, of, (u - highest[of]).exp())
        loss = (summed.log() + highest - u[written]).mean()
        loss = loss + decay * second.weights.square().sum()
        loss.backward()
        return loss

    optimiser.step(surprised)
    return second.requires_grad_(False)


def _choices(
    passages: Sequence[Passage], looks: Sequence[Sequence[Likely]]
) -> tuple[
    Float[Tensor, "choices features"],
    Float[Tensor, "choices"],
    Int[Tensor, "moments"],
    Int[Tensor, "choices"],
]:
    """All grips of all moments that leave a choice.

    Returns:
        Their features, the logarithms of the first look, which of them were written, and which
        moment each is of.

    Raises:
        ValueError: if there are none.
    """
    X, first, written, of, begun = [], [], [], [], 0
    for passage, looked in zip(passages, looks, strict=True):
        around = Surroundings(passage, looked)
        for t, (grips, likely) in enumerate(looked):
            if len(grips) > 1 and passage.grips[t] in grips:
                X.append(around.features(t))
                first.append(likely.clamp(min=1e-4).log())
                of.append(torch.full((len(grips),), len(written)))
                written.append(begun + grips.index(passage.grips[t]))
                begun += len(grips)
    if not X:
        raise ValueError("No fingered piece here leaves a choice: there is nothing to learn.")
    return torch.cat(X), torch.cat(first), torch.tensor(written), torch.cat(of)
