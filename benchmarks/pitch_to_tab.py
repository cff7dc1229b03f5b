"""Accuracy of tab from pitches against the tab that people wrote: baselines and costs.

Usage::

    python benchmarks/pitch_to_tab.py DATA --split valid
    python benchmarks/pitch_to_tab.py DATA --split test --span 5
    python benchmarks/pitch_to_tab.py DATA --costs my-costs.json --costs-alone

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
the strings right, and of their gain over the costs of the package.
"""

import argparse
import json
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from fingering_baselines import StringHabits, bootstrap, random_legal

from slp_guitar.fingering.costs import CUT, HandCosts, load_weights, read_weights
from slp_guitar.fingering.grips import (
    Grip,
    find_grips_or_placements,
    place_on_lowest_frets,
)
from slp_guitar.fingering.lattice import FingeringLattice
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
    parser.add_argument("--costs", type=Path, help="also those that `fit-costs` wrote")
    parser.add_argument("--costs-alone", action="store_true", help="no baselines")
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
    ways = find_ways(learned, arguments.span, arguments.costs)
    if arguments.costs_alone:
        ways = {name: way for name, way in ways.items() if "costs" in name}
    found, took = {}, {}
    for name, way in ways.items():
        begun = time.perf_counter()
        found[name] = measure(way, passages)
        took[name] = time.perf_counter() - begun
    for name, each in found.items():
        line = row(name, each, found[SHIPPED], arguments.draws, took[name])
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
