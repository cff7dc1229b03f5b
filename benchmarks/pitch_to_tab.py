"""Accuracy of tab from pitches against the tab that people wrote: baselines and costs.

Usage::

    python benchmarks/pitch_to_tab.py DATA --split valid
    python benchmarks/pitch_to_tab.py DATA --split test --span 5
    python benchmarks/pitch_to_tab.py DATA --costs my-costs.json --costs-alone
    python benchmarks/pitch_to_tab.py DATA --folds 3

DATA holds ``train.jsonl``, ``valid.jsonl`` and ``test.jsonl``, one piece a line, made by a parser
that is not this project's: ``{"file": ..., "open_midi": [low, ...], "events": [[bar, [[string,
fret], ...], onset or null, durations or null], ...]}`` with string 0 the lowest; a duration is null
where it is not known, and what else an event has is not read.
Pitches are given, and nothing of the written tab is seen while fingering. Notes above the last fret
are left out.

Printed for each way, as shares: strings right, of all notes and of those with two places or more;
chords (two notes and more) with every note right; events that can be played (distinct strings, a
fretted span of at most four); held notes whose string is struck again too early, as far as
durations are known; and the middle 95% when pieces, or composers with all of theirs, are drawn anew
(paired bootstrap) of the strings right, and of their gain over the costs of the package.

With folds, the composers of train and valid are dealt out, and each fold is measured by costs that
were fitted to pieces of the others: a piece of each composer, as far as four times as many go as
are fitted to. The test split is not read.
"""

import argparse
import json
import random
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from fingering_baselines import StringHabits, bootstrap, random_legal

from slp_guitar.fingering.cost_fitting import composer_of, fit_weights, sample_by_composer
from slp_guitar.fingering.costs import CUT, HandCosts, load_weights, read_weights
from slp_guitar.fingering.grips import (
    Grip,
    find_grips_or_placements,
    place_on_lowest_frets,
)
from slp_guitar.fingering.lattice import FingeringLattice, find_cheapest_fingering
from slp_guitar.fingering.passages import (
    FingeringMetrics,
    Passage,
    compare_fingerings,
    read_passages_jsonl,
    sum_metrics,
)
from slp_guitar.fretboard import MAX_SPAN

Way = Callable[[Passage], Sequence[Grip]]
SHIPPED = "costs set by hand, and notes ring"


def find_ways(learned: Sequence[Passage], span: int, fitted: Path | None) -> dict[str, Way]:
    """The ways to be compared, by name."""
    habits = StringHabits((p.tuning, p.grips) for p in learned)
    chance = random.Random(0)

    def search(costs: HandCosts, share: float = 0.0) -> Way:
        def way(passage: Passage) -> Sequence[Grip]:
            choices = [find_grips_or_placements(p, passage.tuning, span) for p in passage.moments]

            def extra(_: int, grip: Grip) -> float:
                return -share * habits.of_grip(grip, passage.tuning)

            used = extra if share else None
            return FingeringLattice(passage, choices, costs, used).find_cheapest_path()

        return way

    ways: dict[str, Way] = {
        "random legal": lambda p: random_legal(p.moments, p.tuning, chance, span),
        "lowest fret": lambda p: place_on_lowest_frets(p.moments, p.tuning),
        "P(string given pitch)": lambda p: habits.likeliest(p.moments, p.tuning),
        SHIPPED: search(HandCosts()),
        "the same, and nothing rings": search(HandCosts({**load_weights(), CUT: 0.0})),
        "the first and 0.3 of that prior": search(HandCosts(), 0.3),
    }
    return ways | (
        {f"costs of {fitted.name}": search(HandCosts(read_weights(fitted)))} if fitted else {}
    )


def measure(way: Way, passages: Sequence[Passage]) -> list[FingeringMetrics]:
    """The counts of each piece."""
    return [compare_fingerings(p.grips, way(p), p.tuning, MAX_SPAN, p.ringing()) for p in passages]


def by_composer(
    found: Sequence[FingeringMetrics], passages: Sequence[Passage]
) -> list[FingeringMetrics]:
    """The counts of each composer."""
    groups: dict[str, list[FingeringMetrics]] = defaultdict(list)
    for one, passage in zip(found, passages, strict=True):
        groups[composer_of(passage)].append(one)
    return list(map(sum_metrics, groups.values()))


def row(
    name: str,
    found: list[FingeringMetrics],
    base: list[FingeringMetrics],
    passages: Sequence[Passage],
    draws: int,
) -> dict:
    """A row of the table."""
    line = {"way": name}
    line |= {key: round(value, 4) for key, value in sum_metrics(found).to_shares().items()}
    for unit, own, other in (
        ("", found, base),
        (" over composers", by_composer(found, passages), by_composer(base, passages)),
    ):
        line[f"95 %{unit}"] = [round(end, 4) for end in bootstrap(own, draws=draws)]
        line[f"gain 95 %{unit}"] = [round(end, 4) for end in bootstrap(own, other, draws=draws)]
    return line


def measure_folds(passages: Sequence[Passage], folds: int, pieces: int, draws: int) -> None:
    """Print what costs do on composers to which they were not fitted."""
    groups: dict[str, list[Passage]] = defaultdict(list)
    for passage in passages:
        groups[composer_of(passage)].append(passage)
    dealt: list[list[Passage]] = [[] for _ in range(folds)]
    for group in sorted(groups.values(), key=lambda own: -sum(len(p.moments) for p in own)):
        min(dealt, key=lambda own: sum(len(p.moments) for p in own)).extend(group)
    measured: list[Passage] = []
    shipped: list[FingeringMetrics] = []
    fitted: list[FingeringMetrics] = []
    for n, fold in enumerate(dealt):
        others = [p for k, own in enumerate(dealt) if k != n for p in own]
        weights = fit_weights(sample_by_composer(others, pieces), lambda line: None)
        by_hand = find_ways([], MAX_SPAN, None)[SHIPPED]
        by_others = partial(find_cheapest_fingering, costs=HandCosts(weights))
        own = sample_by_composer(fold, 4 * pieces)
        measured += own
        shipped += measure(by_hand, own)
        fitted += measure(by_others, own)
    print(json.dumps({"folds": folds, "pieces": len(measured), "composers": len(groups)}))
    for name, found in ((SHIPPED, shipped), ("fitted to other composers", fitted)):
        print(json.dumps(row(name, found, shipped, measured, draws)), flush=True)


def main() -> None:
    """Measure every way, and print one JSON object for each."""
    parser = argparse.ArgumentParser(description="Measure pitch to tab.")
    parser.add_argument("data", type=Path, help="folder of train.jsonl, valid.jsonl, test.jsonl")
    parser.add_argument("--split", choices=("valid", "test"), default="valid")
    parser.add_argument("--span", type=int, default=MAX_SPAN, help="of a grip, in frets [4]")
    parser.add_argument("--costs", type=Path, help="also those that `fit-costs` wrote")
    parser.add_argument("--costs-alone", action="store_true", help="no baselines")
    parser.add_argument("--folds", type=int, help="fit to composers of the other folds")
    parser.add_argument("--pieces", type=int, default=16, help="that a fold is fitted to [16]")
    parser.add_argument("--draws", type=int, default=10_000, help="of the bootstrap [10000]")
    arguments = parser.parse_args()
    for name in ("train", arguments.split):
        if not (arguments.data / f"{name}.jsonl").is_file():
            parser.error(f"There is no {arguments.data / name}.jsonl.")
    learned = read_passages_jsonl(arguments.data / "train.jsonl")
    if arguments.folds:
        learned += read_passages_jsonl(arguments.data / "valid.jsonl")
        measure_folds(learned, arguments.folds, arguments.pieces, arguments.draws)
        return
    passages = read_passages_jsonl(arguments.data / f"{arguments.split}.jsonl")
    written = measure(lambda passage: passage.grips, passages)
    counted = sum_metrics(written)
    people = round(counted.to_shares()["playable"], 4)
    print(
        json.dumps(
            {
                "split": arguments.split,
                "pieces": len(passages),
                "composers": len({composer_of(passage) for passage in passages}),
                "notes": counted.num_notes,
                "chords": counted.num_chords,
                "span": arguments.span,
                "people's events playable": people,
                "held notes": counted.held_notes,
                "people's notes cut": round(counted.to_shares()["cut"], 4),
            }
        )
    )
    ways = find_ways(learned, arguments.span, arguments.costs)
    if arguments.costs_alone:
        ways = {name: way for name, way in ways.items() if "costs" in name}
    found, took = {}, {}
    for name, way in ways.items():
        begun = time.perf_counter()
        found[name] = measure(way, passages)
        took[name] = time.perf_counter() - begun
    for name, each in found.items():
        line = row(name, each, found[SHIPPED], passages, arguments.draws)
        print(json.dumps(line | {"seconds": round(took[name], 1)}), flush=True)


if __name__ == "__main__":
    main()
