"""Accuracy of tab from pitches after a few questions to the player.

Usage::

    python benchmarks/fingering_review.py DATA/valid.jsonl

DATA is as in ``pitch_to_tab.py``. The hand-position Viterbi fingers each piece. Then it asks how
the least certain moment is played: the one in which another grip is almost as cheap, as
``slp-transformer tab --review`` finds it. The answer, the written grip, is pinned, the rest
follows, and so on. For 0, 1, 3 and 6 answers to a hundred moments of a piece (rounded) it prints
the answers given and, over the moments that were **not** asked about, the shares of strings and
chords that are right. Beside it stand questions about moments drawn at random, with as many
answers. A moment whose written grip is none that one hand can take is asked about, and left as it
is.
"""

import argparse
import json
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from slp_transformer.guitar.fingering.grips import Grip, find_playable_grips
from slp_transformer.guitar.fingering.passages import (
    FingeringMetrics,
    Passage,
    compare_fingerings,
    read_passages_jsonl,
    sum_metrics,
)
from slp_transformer.guitar.fingering.viterbi import (
    HandCosts,
    find_cheapest_path,
    price_grips,
    rank_by_doubt,
)

ANSWERS_PER_HUNDRED = (0, 1, 3, 6)

Choices = list[Sequence[Grip]]
Picker = Callable[[Choices, set[int]], int | None]


def least_certain(choices: Choices, asked: set[int]) -> int | None:
    """The moment to ask about next: the least certain one that was not asked about."""
    ranked = rank_by_doubt(price_grips(choices, HandCosts()))
    return next((t for t in ranked if t not in asked), None)


def at_random(choices: Choices, asked: set[int]) -> int | None:
    """The moment to ask about next: any that was not asked about, the same ones in every run."""
    order = random.Random(0).sample(range(len(choices)), len(choices))
    return next((t for t in order if t not in asked), None)


def answer(
    passage: Passage, picker: Picker, counts: Sequence[int]
) -> list[tuple[int, FingeringMetrics]]:
    """Finger a passage with more and more answers.

    Returns:
        For each of the counts how many were given, and what is right of the moments that were not
        asked about.
    """
    choices: Choices = [find_playable_grips(p, passage.tuning) for p in passage.moments]
    asked: set[int] = set()
    results = []
    for count in counts:
        while len(asked) < count and (moment := picker(choices, asked)) is not None:
            asked.add(moment)
            if passage.grips[moment] in choices[moment]:
                choices[moment] = [passage.grips[moment]]
        path = find_cheapest_path(choices, HandCosts())
        rest = [t for t in range(len(path)) if t not in asked]
        theirs, ours = [[grips[t] for t in rest] for grips in (passage.grips, path)]
        results.append((len(asked), compare_fingerings(theirs, ours, passage.tuning)))
    return results


def measure(passages: Sequence[Passage], picker: Picker) -> Iterator[dict]:
    """Yield for each number of answers how many were given, and the shares of the rest."""
    results = [
        answer(
            passage, picker, [round(k * len(passage.moments) / 100) for k in ANSWERS_PER_HUNDRED]
        )
        for passage in passages
    ]
    for per_hundred, own in zip(ANSWERS_PER_HUNDRED, zip(*results, strict=True), strict=True):
        counts = sum_metrics([metrics for _, metrics in own])
        shares = counts.to_shares()
        yield {
            "answers_per_hundred": per_hundred,
            "answers": sum(asked for asked, _ in own),
            "moments": sum(len(passage.moments) for passage in passages),
            "notes_of_the_rest": counts.num_notes,
            "strings": round(shares["strings"], 4),
            "chords": round(shares["chords"], 4),
        }


def main() -> None:
    """Print one JSON object for each way of asking and number of answers."""
    parser = argparse.ArgumentParser(description="Measure what answers of a player are worth.")
    parser.add_argument("passages", type=Path, help="pieces with a written fingering, JSON Lines")
    passages = read_passages_jsonl(parser.parse_args().passages)
    for picker in (at_random, least_certain):
        for result in measure(passages, picker):
            print(json.dumps({"asked": picker.__name__} | result), flush=True)


if __name__ == "__main__":
    main()
