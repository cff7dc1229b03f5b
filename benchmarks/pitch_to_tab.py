"""Accuracy of tab from pitches against the tab that people wrote: baselines, trained models.

Usage::

    python benchmarks/pitch_to_tab.py DATA --split valid
    python benchmarks/pitch_to_tab.py DATA --split test --span 5
    python benchmarks/pitch_to_tab.py DATA --hand runs/hand runs/other

RUNs are what `python -m slp_guitar.fingering.hand_training` has trained.
Several hands agree by the mean of their probabilities.

DATA holds ``train.jsonl``, ``valid.jsonl`` and ``test.jsonl``, one piece a line, made by a parser
that is not this project's: ``{"file": ..., "open_midi": [low, ...], "events": [[bar, [[string,
fret], ...], onset or null, durations or null], ...]}`` with string 0 the lowest; a duration is null
where it is not known, and what else an event has is not read.
Pitches are given, and nothing of the written tab is seen while fingering. Notes above the last fret
are left out.

Printed for each way, as shares: strings right, of all notes and of those with two places or more;
chords (two notes and more) with every note right; events that can be played (distinct strings, a
fretted span of at most four); held notes whose string is struck again too early, as far as
durations are known; and the middle 95% when pieces are drawn anew (paired bootstrap) of
the strings right, and of their gain over the hand-position Viterbi.
"""

import argparse
import json
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from fingering_baselines import StringHabits, bootstrap, random_legal

from slp_guitar.fingering.fitted_costs import FittedCosts, load_weights
from slp_guitar.fingering.grips import (
    Grip,
    find_grips_or_placements,
    place_on_lowest_frets,
)
from slp_guitar.fingering.hand_model import (
    DEFAULT_COST_WEIGHT,
    HandEnsemble,
    load_hand_ensemble,
)
from slp_guitar.fingering.lattice import FingeringLattice
from slp_guitar.fingering.passages import (
    FingeringMetrics,
    Passage,
    compare_fingerings,
    read_passages_jsonl,
    sum_metrics,
)
from slp_guitar.fingering.viterbi import HandCosts, find_cheapest_path
from slp_guitar.fretboard import MAX_SPAN

Way = Callable[[Passage], Sequence[Grip]]
VITERBI = "hand-position Viterbi"
FITTED = "fitted costs, and notes ring"


def baselines(learned: Sequence[Passage], span: int) -> dict[str, Way]:
    """The ways to be compared with, by name."""
    habits = StringHabits((p.tuning, p.grips) for p in learned)
    chance = random.Random(0)

    def list_choices(passage: Passage) -> list[Sequence[Grip]]:
        return [find_grips_or_placements(p, passage.tuning, span) for p in passage.moments]

    def with_habits(passage: Passage) -> Sequence[Grip]:
        def extra(_: int, grip: Grip) -> float:
            return -0.3 * habits.of_grip(grip, passage.tuning)

        return find_cheapest_path(list_choices(passage), HandCosts(), extra)

    fitted_costs = FittedCosts(load_weights())

    def with_fitted_costs(passage: Passage) -> Sequence[Grip]:
        return FingeringLattice(passage, list_choices(passage), fitted_costs).find_cheapest_path()

    return {
        "random legal": lambda p: random_legal(p.moments, p.tuning, chance, span),
        "lowest fret": lambda p: place_on_lowest_frets(p.moments, p.tuning),
        "P(string given pitch)": lambda p: habits.likeliest(p.moments, p.tuning),
        VITERBI: lambda p: find_cheapest_path(list_choices(p), HandCosts()),
        FITTED: with_fitted_costs,
        "Viterbi + 0.3 of that prior": with_habits,
    }


def trained(arguments: argparse.Namespace) -> dict[str, Way]:
    """The models that were asked for: each hand, and all together."""
    runs, caution = arguments.hand or [], arguments.caution
    ways: dict[str, Way] = {
        str(run): HandEnsemble(load_hand_ensemble(run).models, 0).predict_grips for run in runs
    }
    if runs:
        hand = HandEnsemble(load_hand_ensemble(*runs).models, caution)
        ways[f"{caution} of the costs with {len(runs)} RUN"] = hand.predict_grips
    return ways


def measure(way: Way, passages: Sequence[Passage]) -> list[FingeringMetrics]:
    """The counts of each piece."""
    return [compare_fingerings(p.grips, way(p), p.tuning, MAX_SPAN, p.ringing()) for p in passages]


def row(
    name: str, found: list[FingeringMetrics], base: list[FingeringMetrics], draws: int, took: float
) -> dict:
    """A row of the table."""
    shares = {key: round(value, 4) for key, value in sum_metrics(found).to_shares().items()}
    interval = [round(end, 4) for end in bootstrap(found, draws=draws)]
    gain = [round(end, 4) for end in bootstrap(found, base, draws=draws)]
    return {"way": name, **shares, "95 %": interval, "gain 95 %": gain, "seconds": round(took, 1)}


def main() -> None:
    """Measure every way, and print one JSON object for each."""
    parser = argparse.ArgumentParser(description="Measure pitch to tab.")
    parser.add_argument("data", type=Path, help="folder of train.jsonl, valid.jsonl, test.jsonl")
    parser.add_argument("--split", choices=("valid", "test"), default="valid")
    parser.add_argument("--span", type=int, default=MAX_SPAN, help="of a grip, in frets [4]")
    parser.add_argument("--hand", type=Path, nargs="+", metavar="RUN", help="models of the hand")
    parser.add_argument(
        "--caution", type=float, default=DEFAULT_COST_WEIGHT, help="of Viterbi's costs"
    )
    parser.add_argument("--models-alone", action="store_true", help="of the baselines, Viterbi")
    parser.add_argument("--draws", type=int, default=10_000, help="of the bootstrap [10000]")
    arguments = parser.parse_args()
    for name in ("train", arguments.split):
        if not (arguments.data / f"{name}.jsonl").is_file():
            parser.error(f"There is no {arguments.data / name}.jsonl.")
    learned = read_passages_jsonl(arguments.data / "train.jsonl")
    passages = read_passages_jsonl(arguments.data / f"{arguments.split}.jsonl")
    written = measure(lambda passage: passage.grips, passages)
    counted = sum_metrics(written)
    people = round(counted.to_shares()["playable"], 4)
    print(
        json.dumps(
            {
                "split": arguments.split,
                "pieces": len(passages),
                "notes": counted.num_notes,
                "chords": counted.num_chords,
                "span": arguments.span,
                "people's events playable": people,
                "held notes": counted.held_notes,
                "people's notes cut": round(counted.to_shares()["cut"], 4),
            }
        )
    )
    base = baselines(learned, arguments.span)
    ways = (
        {name: base[name] for name in (VITERBI, FITTED)} if arguments.models_alone else base
    ) | trained(arguments)
    found, took = {}, {}
    for name, way in ways.items():
        begun = time.perf_counter()
        found[name] = measure(way, passages)
        took[name] = time.perf_counter() - begun
    for name, each in found.items():
        line = row(name, each, found[VITERBI], arguments.draws, took[name])
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
