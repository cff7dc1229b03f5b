"""Accuracy of tab from pitches against the tab that people wrote: baselines and costs.

Usage::

    python benchmarks/pitch_to_tab.py DATA --split valid
    python benchmarks/pitch_to_tab.py DATA --split test --span 5
    python benchmarks/pitch_to_tab.py DATA --costs my-costs.json --costs-alone
    python benchmarks/pitch_to_tab.py DATA --leave-out 1 4 > part1.jsonl
    python benchmarks/pitch_to_tab.py DATA --left-out part*.jsonl

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

With ``--leave-out 1 4`` each composer of the first of four parts of train and valid is measured, on
one piece, by costs that were fitted to pieces of the others; ``--left-out`` compares what
the parts printed, and draws composers anew. The test split is not read.
"""

import argparse
import json
import random
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
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
PIECES_OF_COMPOSER = 1  # that are measured when a composer is left out
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


def read_split(path: Path) -> list[Passage]:
    """The pieces of a file, each named by its composer, where that is said, before its own name."""
    said = [json.loads(line).get("composer") for line in path.read_text("utf-8").splitlines()]
    passages = zip(said, read_passages_jsonl(path), strict=True)
    return [
        replace(each, name=f"{composer.replace('_', ' ')}_{each.name}") if composer else each
        for composer, each in passages
    ]


def leave_composers_out(passages: Sequence[Passage], pieces: int, part: int, parts: int) -> None:
    """Print for each composer of a part what costs do that were fitted to pieces of all others.

    A fit to the same pieces is made once: leaving out a composer of whom none is fitted to changes
    nothing.
    """
    groups: dict[str, list[Passage]] = defaultdict(list)
    for passage in passages:
        groups[composer_of(passage)].append(passage)
    fitted_to = set(map(composer_of, sample_by_composer(passages, pieces)))
    ordered = sorted(groups, key=lambda own: (own not in fitted_to, own))
    by_hand, fits = find_ways([], MAX_SPAN, None)[SHIPPED], dict[str, Way]()
    for composer in ordered[part - 1 :: parts]:
        left = composer if composer in fitted_to else ""
        if left not in fits:
            others = [p for p in passages if composer_of(p) != left]
            weights = fit_weights(sample_by_composer(others, pieces), lambda line: None)
            fits[left] = partial(find_cheapest_fingering, costs=HandCosts(weights))
        own = sample_by_composer(groups[composer], PIECES_OF_COMPOSER)
        shipped, fitted = (sum_metrics(measure(way, own)) for way in (by_hand, fits[left]))
        line = {"composer": composer, "pieces": len(own), "shipped": shipped, "fitted": fitted}
        print(json.dumps(line, ensure_ascii=False), flush=True)


def compare_left_out(paths: Sequence[Path], draws: int) -> None:
    """Print what the costs do on composers that were left out, from what the parts printed."""
    lines = [json.loads(line) for path in paths for line in path.read_text("utf-8").splitlines()]
    shipped = [FingeringMetrics(*line["shipped"]) for line in lines]
    print(json.dumps({"composers": len(lines), "pieces": sum(line["pieces"] for line in lines)}))
    for name in ("shipped", "fitted"):
        found = [FingeringMetrics(*line[name]) for line in lines]
        row: dict = {"way": name, **sum_metrics(found).to_shares()}
        for share in ("strings", "chords"):
            row[f"{share}, 95 %"] = bootstrap(found, draws=draws, share=share)
            row[f"{share}, gain, 95 %"] = bootstrap(found, shipped, draws=draws, share=share)
        print(json.dumps(row))


def main() -> None:
    """Measure every way, and print one JSON object for each."""
    parser = argparse.ArgumentParser(description="Measure pitch to tab.")
    parser.add_argument("data", type=Path, help="folder of train.jsonl, valid.jsonl, test.jsonl")
    parser.add_argument("--split", choices=("valid", "test"), default="valid")
    parser.add_argument("--span", type=int, default=MAX_SPAN, help="of a grip, in frets [4]")
    parser.add_argument("--costs", type=Path, help="also those that `fit-costs` wrote")
    parser.add_argument("--costs-alone", action="store_true", help="no baselines")
    parser.add_argument(
        "--leave-out", type=int, nargs=2, help="a part of composers, and of how many"
    )
    parser.add_argument("--left-out", type=Path, nargs="+", help="what the parts printed")
    parser.add_argument("--pieces", type=int, default=16, help="that costs are fitted to [16]")
    parser.add_argument("--draws", type=int, default=10_000, help="of the bootstrap [10000]")
    arguments = parser.parse_args()
    for name in ("train", arguments.split):
        if not (arguments.data / f"{name}.jsonl").is_file():
            parser.error(f"There is no {arguments.data / name}.jsonl.")
    if arguments.left_out:
        compare_left_out(arguments.left_out, arguments.draws)
        return
    learned = read_split(arguments.data / "train.jsonl")
    if arguments.leave_out:
        learned += read_split(arguments.data / "valid.jsonl")
        leave_composers_out(learned, arguments.pieces, *arguments.leave_out)
        return
    passages = read_split(arguments.data / f"{arguments.split}.jsonl")
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
