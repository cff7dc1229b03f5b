"""Fit the costs of a fingering to tab that people have written.

The weights are those under which the written fingerings are likeliest, not far from those of the
package: the probability of a path through grips and hands is proportional to e to the power of
minus its cost, and where the hand was, which nobody wrote, is summed over.

What is remembered, and what still rings, is taken from the cheapest fingering at the weights so
far, for a search has its own mistakes to remember. What styles ask for is not fitted.
"""

import random
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import NamedTuple

import torch
from torch import nn

from slp_guitar.fingering.costs import UNIT, HandCosts, load_weights
from slp_guitar.fingering.features import (
    HAND_FRETS,
    TIME_CLASSES,
    Features,
    Memory,
    classify_gaps,
    grip_features,
    hand_features,
    memory_features,
    move_features,
    pair_features,
    ringing_features,
)
from slp_guitar.fingering.grips import Grip, find_grips_or_placements
from slp_guitar.fingering.lattice import find_cheapest_fingering
from slp_guitar.fingering.passages import Passage, list_window_starts
from slp_guitar.fingering.ringing import Held, find_released_notes
from slp_transformer._internal.shape_types import Float, Int, Tensor

MAX_GRIPS = 10
"""Grips of a moment that are looked at: the easiest, and the written one."""
WINDOW_MOMENTS = 64
WINDOWS_PER_PART = 128
"""Windows that are looked at together."""
MAX_NATS = 0.5
"""Surprise per moment over which a window is left out of all rounds but the first: most of these
are misprints, or written for another instrument."""


class Rows:
    """Rows of features, each once, as one sparse matrix."""

    def __init__(self, names: dict[str, int]):
        """Take the numbers of the features that are known; new ones are added."""
        self.names = names
        self._keys: dict[object, int] = {}
        self._entries: list[tuple[int, int, int]] = []

    def add(self, key: object, features: Features) -> int:
        """Return the number of a row, which is made if its key is new; else none are looked at."""
        if key not in self._keys:
            self._keys[key] = row = len(self._keys)
            self._entries += [
                (row, self.names.setdefault(name, len(self.names)), value)
                for name, value in features
                if value
            ]
        return self._keys[key]

    def to_matrix(self) -> Float[Tensor, "rows features"]:
        """Return the rows as a sparse matrix."""
        entries = torch.tensor(self._entries, dtype=torch.long).view(-1, 3)
        size = (len(self._keys), len(self.names))
        return torch.sparse_coo_tensor(
            entries[:, :2].T, entries[:, 2].double(), size, check_invariants=True
        ).coalesce()


class Windows(NamedTuple):
    """Windows of written fingerings, padded, as numbers of rows; −1 where there is none.

    Attributes:
        grips: row of each grip, and of it with each hand.
        hands: the same with the hand at each fret.
        pairs: row of each grip after each grip of the moment before.
        history: row of what each grip takes elsewhere than before, or cuts.
        moves: which table of moves is that of a grip of the moment before: time class, and open.
        written: which grip is the written one; all, where it is none of them.
        there: which moments there are.
    """

    grips: Int[Tensor, "batch T G"]
    hands: Int[Tensor, "batch T G H"]
    pairs: Int[Tensor, "batch T G G"]
    history: Int[Tensor, "batch T G"]
    moves: Int[Tensor, "batch T G"]
    written: Tensor
    there: Tensor


class CostFitter(nn.Module):
    """The probability of written fingerings under costs, and its gradient."""

    def __init__(self, passages: Sequence[Passage], costs: HandCosts):
        """Read the features of passages, which have a written fingering.

        Args:
            passages: the pieces.
            costs: whose cheapest fingering is what is remembered of a piece.
        """
        super().__init__()
        self._costs = costs
        self.names: dict[str, int] = {}
        self._grips, self._hands, self._pairs, self._history, self._moves = (
            Rows(self.names) for _ in range(5)
        )
        for time_class in TIME_CLASSES:
            for was_open in (False, True):
                for a in HAND_FRETS:
                    for b in HAND_FRETS:
                        own = move_features(a, b, time_class, was_open)
                        self._moves.add((time_class, was_open, a, b), own)
        self._choices: dict[object, tuple[Grip, ...]] = {}
        rows = [self._read(passage) for passage in passages]
        lengths = [len(passage.moments) for passage in passages]
        spans = [
            (n, start, start + WINDOW_MOMENTS)
            for n, start in list_window_starts(lengths, WINDOW_MOMENTS)
        ]
        T, G, H = WINDOW_MOMENTS, MAX_GRIPS + 1, len(HAND_FRETS)
        shapes = [(T, G), (T, G, H), (T, G, G), (T, G), (T, G), (T, G), (T,)]
        w = Windows(*(torch.full((len(spans), *shape), -1) for shape in shapes))
        for i, (n, start, end) in enumerate(spans):
            for t, (grips, hands, pairs, history, moves, written) in enumerate(rows[n][start:end]):
                k = len(grips)
                w.grips[i, t, :k] = torch.tensor(grips)
                w.hands[i, t, :k] = torch.tensor(hands)
                if t:
                    w.pairs[i, t, : len(pairs), :k] = torch.tensor(pairs)
                    w.moves[i, t, : len(pairs)] = torch.tensor(moves)
                w.history[i, t, :k] = torch.tensor(history)
                w.written[i, t, :k] = torch.tensor(written)
                w.there[i, t] = 1
        self.windows = w
        parts = (self._grips, self._hands, self._pairs, self._history, self._moves)
        self.matrices = [part.to_matrix() for part in parts]
        first, begun = (
            torch.tensor([own.get(name, 0.0) for name in self.names], dtype=torch.float64)
            for own in (load_weights(), costs.weights)
        )
        self.first: Tensor = first
        self.weights = nn.Parameter(begun)

    def _choose(self, passage: Passage, t: int) -> tuple[Grip, ...]:
        """Return the grips of a moment that are looked at, without the written one."""
        key = (passage.tuning, passage.moments[t])
        if key not in self._choices:
            costs = HandCosts()
            grips = find_grips_or_placements(passage.moments[t], passage.tuning)
            least = [min(costs.price_at_each_fret(grip)) for grip in grips]
            ranked = sorted(range(len(grips)), key=least.__getitem__)[:MAX_GRIPS]
            self._choices[key] = tuple(grips[k] for k in ranked)
        return self._choices[key]

    def _read(self, passage: Passage) -> list[tuple]:
        """Return the rows of each moment."""
        found = []
        onsets = passage.onsets or (None,) * len(passage.moments)
        classes = classify_gaps(onsets)
        memory = Memory({}, {})
        remembered = find_cheapest_fingering(passage, self._costs)
        ringing = passage.ringing()
        held: Held = ()
        before: tuple[Grip, ...] = ()
        for t, (pitches, written) in enumerate(zip(passage.moments, passage.grips, strict=True)):
            choice = self._choose(passage, t)
            usual = find_grips_or_placements(pitches, passage.tuning)
            if written in usual and written not in choice:
                choice = (*choice, written)

            # Features are generators: they are only read where a row is new.
            grips = [self._grips.add(g, grip_features(g)) for g in choice]
            hands = [
                [self._hands.add((g, h), hand_features(g, h)) for h in HAND_FRETS] for g in choice
            ]
            last = passage.moments[t - 1] if t else ()
            pairs = [
                [
                    self._pairs.add((a, b, last, pitches), pair_features(a, b, last, pitches))
                    for b in choice
                ]
                for a in before
            ]
            history = []
            for grip in choice:
                own = (*memory_features(t, pitches, grip, memory), *ringing_features(held, grip))
                history.append(self._history.add(own, own))
            kind = 2 * TIME_CLASSES.index(classes[t])
            moves = [kind + (not any(note.fret for note in g)) for g in before]
            target = [int(g == written or written not in choice) for g in choice]
            found.append((grips, hands, pairs, history, moves, target))
            memory = memory.remember(t, pitches, remembered[t])
            released = find_released_notes(held, remembered[t])
            left = [one for one in held if one not in released]
            held = ringing.held_after(t, left, remembered[t]) if ringing else ()
            before = choice
        return found

    def losses(self, which: Tensor) -> Float[Tensor, "windows"]:
        """Return nats of surprise at the written fingering of each of some windows."""
        w = Windows(*(part[which] for part in self.windows))
        scores = [-(matrix @ self.weights) for matrix in self.matrices]
        H = len(HAND_FRETS)

        def look_up(part: int, rows: Tensor) -> Tensor:
            return scores[part].index_select(0, rows.clamp(min=0).flatten()).view(rows.shape)

        there = (w.grips >= 0).double()
        E = look_up(0, w.grips)[..., None] + look_up(1, w.hands) + look_up(3, w.history)[..., None]
        E = E.masked_fill(w.grips[..., None] < 0, -1e9)
        peak = E.detach().amax((-1, -2))
        E = (E - peak[..., None, None]).exp()
        pairs = look_up(2, w.pairs)
        pairs = pairs.masked_fill(w.pairs < 0, -1e9)
        pair_peak = pairs.detach().amax((-1, -2)).clamp(min=-1e8)
        pairs = (pairs - pair_peak[..., None, None]).exp()
        after = pairs.transpose(-1, -2).unbind(1)
        moves = scores[4].view(2 * len(TIME_CLASSES), H, H).exp()
        totals = []
        for mask in (there, w.written.clamp(min=0).double()):
            own = (E * mask[..., None]).unbind(1)
            a = own[0]
            s = a.sum((-1, -2)).clamp(min=1e-300)
            total, a = s.log() + peak[:, 0], a / s[:, None, None]
            for t in range(1, w.there.shape[1]):
                is_open = (w.moves[:, t] % 2 == 1) & (w.moves[:, t] >= 0)
                table = w.moves[:, t].amax(-1).clamp(min=0) // 2 * 2
                closed, opened = moves[table], moves[table + 1]
                b = torch.bmm(a * ~is_open[..., None], closed) + torch.bmm(
                    a * is_open[..., None], opened
                )
                b = torch.bmm(after[t], b) * own[t]
                s = b.sum((-1, -2)).clamp(min=1e-300)
                here = w.there[:, t] > 0
                a = torch.where(here[:, None, None], b / s[:, None, None], a)
                total = total + here * (s.log() + peak[:, t] + pair_peak[:, t])
            totals.append(total)
        return totals[0] - totals[1]


def fit_weights(
    passages: Sequence[Passage],
    say: Callable[[str], None],
    rounds: int = 2,
    steps: int = 18,
    l2: float = 100.0,
) -> dict[str, float]:
    """Fit weights to written fingerings; return them by the names of their features.

    Args:
        passages: the pieces, with a written fingering.
        say: is called with a line on each round.
        rounds: how often what is remembered is found anew.
        steps: of the optimizer (L-BFGS) in a round, at most.
        l2: how much the squares of what weights differ from those of the package count, halved.
    """
    weights = load_weights()
    for number in range(rounds):
        fitter = CostFitter(passages, HandCosts(weights))
        which = torch.arange(len(fitter.windows.there))
        if number:
            counts = (fitter.windows.there > 0).sum(1)
            with torch.no_grad():
                each = torch.cat([fitter.losses(part) for part in which.split(WINDOWS_PER_PART)])
            which = which[each <= MAX_NATS * counts]
        optimizer = torch.optim.LBFGS(
            [fitter.weights], max_iter=steps, history_size=20, line_search_fn="strong_wolfe"
        )

        def compute_loss(
            fitter: CostFitter = fitter,
            optimizer: torch.optim.Optimizer = optimizer,
            which: Tensor = which,
        ) -> Tensor:
            optimizer.zero_grad()
            losses = [fitter.losses(part).sum() for part in which.split(WINDOWS_PER_PART)]
            loss = torch.stack(losses).sum()
            loss = loss + l2 / 2 * ((fitter.weights - fitter.first) ** 2).sum()
            loss.backward()
            return loss

        optimizer.step(compute_loss)
        nats = compute_loss().item() / (fitter.windows.there[which] > 0).sum().item()
        say(f"round {number + 1} of {rounds}: {len(which)} windows, {nats:.4f} nats a moment")
        fitted = {name: fitter.weights[k].item() for name, k in fitter.names.items()}
        weights = weights | {name: round(w / UNIT) * UNIT for name, w in fitted.items()}
    return weights


def sample_by_composer(passages: Sequence[Passage], most: int) -> list[Passage]:
    """Return so many pieces, as few as possible of one composer."""
    by_composer: dict[str, list[Passage]] = {}
    for passage in random.Random(0).sample(passages, len(passages)):
        by_composer.setdefault(composer_of(passage), []).append(passage)
    rounds = zip_longest(*by_composer.values())
    return [one for each in rounds for one in each if one is not None][:most]


def composer_of(passage: Passage) -> str:
    """Return the composer of a piece: its folder, or else the name before a `_`."""
    return passage.name.rpartition("/")[0] or passage.name.partition("_")[0]
