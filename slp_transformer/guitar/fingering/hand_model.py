"""A model of the hand: a lattice in which what grips and moves are worth is learned.

The scores of states and of moves between them are learned; the probability of a whole fingering is
its score over that of all fingerings (a conditional random field: Lafferty, McCallum and Pereira
2001). Where the hand was, nobody wrote down, so the probability of written tab sums over it.

A state of the lattice is a grip together with the fret at which the index finger lies. Most of its
features are relative: which finger takes a note, not which fret; how the notes of a grip lie to
each other; so that what was learned in one place of the neck holds in another.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, pairwise
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from slp_transformer._internal.shape_types import Float, Int, Tensor
from slp_transformer.guitar.fingering.grips import Grip, find_playable_grips
from slp_transformer.guitar.fingering.passages import Passage
from slp_transformer.guitar.fingering.viterbi import HAND_FRETS, HandCosts
from slp_transformer.guitar.fretboard import MAX_FRET, MAX_SPAN, Note, Tuning
from slp_transformer.training.checkpoints import load_weights
from slp_transformer.training.run_folder import checkpoint_folder, retry_while_run_changes

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
    choices, costs = find_playable_grips(pitches, tuning), HandCosts()
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
    fingers = [finger_class(note, hand_fret) for note in grip]
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


def finger_class(note: Note, hand_fret: int) -> int:
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


# --- The model ------------------------------------------------------------------------------------

MASKED_SCORE = -1e4  # the score of a state that is not there
WINDOW_MOMENTS = 128  # moments of a window that count
CONTEXT_MOMENTS = 48  # more of them on either side
WINDOWS_PER_BATCH = 16  # windows that are read at a time
MIN_LOG_PROB = -12.0  # logarithm of the probability of a grip that the model does not weigh
WHOLE_CHORD_BONUS = 0.5  # weight of a whole grip relative to its notes
DEFAULT_COST_WEIGHT = 0.25  # of `HandCosts` relative to the trained model; by cross-validation


class HandModel(nn.Module):
    """Scores of states and moves, read off the notes."""

    def __init__(self, move_dim: int = 24):
        """Make a model.

        Args:
            move_dim: rank of what is learned of pairs of states.
        """
        super().__init__()
        self.state_score: nn.Linear = nn.Linear(NUM_FEATURES, 1, bias=False)
        nn.init.zeros_(self.state_score.weight)
        self.leaves: nn.Linear = nn.Linear(NUM_FEATURES, move_dim, bias=False)
        self.arrives: nn.Linear = nn.Linear(NUM_FEATURES, move_dim, bias=False)
        for layer in (self.leaves, self.arrives):
            nn.init.normal_(layer.weight, std=0.05)
        # Moving the hand: by gap in time and frets moved.
        self.moves: nn.Parameter = nn.Parameter(
            torch.zeros(NUM_GAP_CLASSES, 2 * len(HAND_FRETS) - 1)
        )
        self.trust: nn.Parameter = nn.Parameter(torch.ones(2))  # in the costs of `viterbi`

    def forward(
        self, batch: LatticeBatch
    ) -> tuple[Float[Tensor, "batch T S"], Float[Tensor, "batch U S S"]]:
        """Scores of the states of each moment, and of the moves from each moment to the next.

        Returns:
            The two; a move's rows are the states it leaves, its columns those it comes to.
        """
        phi, where = batch.features, batch.moment_type_ids
        score = self.state_score(phi).squeeze(-1) - self.trust[0] * batch.costs
        U = score[where].masked_fill(~batch.state_mask[where], MASKED_SCORE)
        places = torch.tensor(HAND_FRETS)
        apart = places - places.unsqueeze(1)  # from a row's place to a column's
        costs = torch.tensor(HandCosts().move_costs())  # the same in both directions
        table = self.moves[:, apart + len(HAND_FRETS) - 1] - self.trust[1] * costs
        at = nn.functional.one_hot(batch.hand_frets - 1, len(HAND_FRETS)).float()
        # Two rows a pair of states, whose product scores what is learned of them and the move.
        before, after = where[:, :-1], where[:, 1:]
        left = torch.cat(
            [self.leaves(phi)[before], at[before] @ table[batch.gap_classes[:, 1:]]], -1
        )
        right = torch.cat([self.arrives(phi), at], -1)[after]
        return U, left @ right.mT


# --- Sums over all fingerings ------------------------------------------------------------------


def log_partition(
    state_scores: Float[Tensor, "batch T S"],
    move_scores: Float[Tensor, "batch U S S"],
    state_masks: Float[Tensor, "kinds batch T S"],
    moment_mask: Tensor,
) -> Float[Tensor, "kinds batch"]:
    """Logarithm of the summed scores of all paths through allowed states.

    Args:
        state_scores: scores of states.
        move_scores: scores of moves.
        state_masks: 0 or 1 for each state, once for every sum that is wanted.
        moment_mask: which moments there are; those at the end may be padding.

    Returns:
        The sums, one for each kind and batch.
    """
    peaks = state_scores.amax(-1).detach()
    E = (torch.exp(state_scores - peaks.unsqueeze(-1)) * state_masks).unbind(2)
    highest = move_scores.detach().amax((-1, -2))
    steps = torch.exp(move_scores - highest[..., None, None]).unbind(1)
    s = E[0].sum(-1).clamp(min=1e-30)
    a, total = E[0] / s.unsqueeze(-1), s.log() + peaks[:, 0]
    for t, step in enumerate(steps, start=1):
        b = torch.einsum("kbs,bsr->kbr", a, step) * E[t]
        s = b.sum(-1).clamp(min=1e-30)
        here = moment_mask[:, t]
        a = torch.where(here[:, None], b / s.unsqueeze(-1), a)
        total = total + here * (s.log() + peaks[:, t] + highest[:, t - 1])
    return total


def hand_model_loss(model: nn.Module, batch: LatticeBatch) -> Float[Tensor, ""]:
    """Nats that the model is surprised by the written fingerings, summed over their moments."""
    U, M = model(batch)
    there = batch.state_mask[batch.moment_type_ids].float()
    all_paths, written = log_partition(
        U, M, torch.stack([there, batch.target_states]), batch.moment_mask
    )
    return (all_paths - written).sum()


def compute_state_marginals(
    state_scores: Float[Tensor, "batch T S"],
    move_scores: Float[Tensor, "batch U S S"],
    state_mask: Tensor,
    moment_mask: Tensor,
) -> Float[Tensor, "batch T S"]:
    """Probability of each state, all fingerings considered: the gradient of the logarithm."""
    with torch.enable_grad():
        U, allowed = state_scores.detach().requires_grad_(), state_mask.float().unsqueeze(0)
        total = log_partition(U, move_scores.detach(), allowed, moment_mask).sum()
    return torch.autograd.grad(total, U)[0]


# --- Trained models at work -----------------------------------------------------------------------


class HandEnsemble:
    """One or several trained models of the hand, which agree on a fingering by their mean."""

    def __init__(self, models: Sequence[HandModel], cost_weight: float = DEFAULT_COST_WEIGHT):
        """Take models.

        Args:
            models: the models.
            cost_weight: how much of the costs that were thought out (`HandCosts`) each model adds
                to what it has learned.
        """
        self.models: list[HandModel] = [model.eval() for model in models]
        self.cost_weight = cost_weight

    def grip_probabilities(
        self, passage: Passage, pinned: Sequence[Grip] = ()
    ) -> list[tuple[tuple[Grip, ...], Float[Tensor, "grips"]]]:
        """The grips of each moment, and how probable each is, the whole piece considered.

        Args:
            passage: the piece; its written grips are not looked at.
            pinned: the grip of each moment that is given, and an empty one of each other.

        Raises:
            ValueError: if the guitar is not one that the model can know.
            UnplayableError: if no hand can play a moment.
        """
        if len(passage.tuning.open_pitches) > NUM_STRINGS:
            raise ValueError(
                f"A fingering model knows up to {NUM_STRINGS} strings and {MAX_FRET} frets; this "
                f"guitar has {len(passage.tuning.open_pitches)}: leave the model out."
            )
        reader = PassageWindows([replace(passage, grips=tuple(pinned))])
        T, found = len(passage.moments), []
        starts = range(0, T, WINDOW_MOMENTS)
        cuts = [
            (0, max(0, s - CONTEXT_MOMENTS), min(T, s + WINDOW_MOMENTS + CONTEXT_MOMENTS))
            for s in starts
        ]
        for n in range(0, len(cuts), WINDOWS_PER_BATCH):
            some = cuts[n : n + WINDOWS_PER_BATCH]
            mean = self._mean_state_marginals(reader.build_batch(some))
            for start, (_, first, _), rows in zip(starts[n:], some, mean, strict=False):
                for t in range(start, min(T, start + WINDOW_MOMENTS)):
                    states = reader.states[0][t]
                    likely = torch.zeros(len(states.grips))
                    likely.index_add_(0, states.grip_ids, rows[t - first][: len(states.grip_ids)])
                    found.append((states.grips, likely))
        return found

    @torch.no_grad()
    def _mean_state_marginals(self, batch: LatticeBatch) -> Float[Tensor, "batch T S"]:
        """Probability of each state of windows: the mean over the models."""
        there = batch.target_states.bool()
        costs = batch.costs[batch.moment_type_ids].masked_fill(~there, 0.0)
        hands = batch.hand_frets[batch.moment_type_ids] - 1
        moves = torch.tensor(HandCosts().move_costs())[
            hands[:, :-1].unsqueeze(-1), hands[:, 1:].unsqueeze(-2)
        ]
        mean = torch.zeros(there.shape)
        for model in self.models:
            U, M = model(batch)
            U, M = U - self.cost_weight * costs, M - self.cost_weight * moves
            mean += compute_state_marginals(U, M, there, batch.moment_mask)
        return mean / len(self.models)

    def predict_grips(self, passage: Passage) -> list[Grip]:
        """At each moment the grip of which most notes are expected to be right."""
        return [
            select_best_grip(grips, likely) for grips, likely in self.grip_probabilities(passage)
        ]

    def grip_log_probs(
        self, passage: Passage, choices: Sequence[Sequence[Grip]]
    ) -> list[list[float]]:
        """The logarithm of the probability of each of some grips of each moment.

        Where there is one grip to choose from, the probabilities of the others follow from it.
        """
        pinned = [choice[0] if len(choice) == 1 else () for choice in choices]
        found, weights = self.grip_probabilities(passage, pinned), []
        for (grips, likely), choice in zip(found, choices, strict=True):
            known = dict(zip(grips, likely.clamp(min=1e-9).log().tolist(), strict=True))
            weights.append([max(MIN_LOG_PROB, known.get(grip, MIN_LOG_PROB)) for grip in choice])
        return weights


def select_best_grip(choices: Sequence[Grip], probs: Float[Tensor, "grips"]) -> Grip:
    """Of a moment's grips the one with most notes expected to be right, wholly right ones first."""
    each = probs.tolist()
    on: dict[tuple[int, object], float] = {}
    for grip, p in zip(choices, each, strict=True):
        for place in enumerate(grip):
            on[place] = on.get(place, 0.0) + p
    worth = [
        sum(on[place] for place in enumerate(grip)) + WHOLE_CHORD_BONUS * p
        for grip, p in zip(choices, each, strict=True)
    ]
    return choices[max(range(len(choices)), key=worth.__getitem__)]


def load_hand_ensemble(*run_dirs: str | Path) -> HandEnsemble:
    """Load the best models of runs, to agree on fingerings.

    Raises:
        ValueError: if there is no run, or it is damaged; the sentence names the file.
        ImportError: if safetensors or pydantic is not installed.
    """
    models = []
    for run_dir in run_dirs:
        if (Path(run_dir) / "config.toml").exists():  # which the runs of `train` have
            raise ValueError(f"{run_dir} holds a model of tokens, not of a hand.")
        models.append(load_hand(run_dir))
    return HandEnsemble(models)


@retry_while_run_changes
def load_hand(run_dir: str | Path) -> HandModel:
    """Load the best model of a run."""
    model = HandModel()
    load_weights(model, checkpoint_folder(run_dir, "best"))
    return model
