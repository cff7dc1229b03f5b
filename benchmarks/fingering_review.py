"""Accuracy of tab from pitches after a few questions to the player.

Usage::

    python benchmarks/fingering_review.py DATA/valid.jsonl
    python benchmarks/fingering_review.py DATA/valid.jsonl --at-once --answers 6 --most-useful

DATA is as in ``pitch_to_tab.py``. Each piece is fingered as ``slp-transformer tab`` does it: at
the lowest costs. Then it asks how the moment is played about which an
answer helps most, as ``tab --review`` finds it. The answer, the written grip, is pinned, here and
where the same notes come again between the same neighbors, as ``tab --pin`` has it; the rest
follows, and so on. For 0, 1, 3 and 6 answers to a hundred moments
of a piece (rounded) it prints the answers given and, over the moments that were **not** asked
about, the shares of strings and chords that are right. Beside it stand questions about moments
drawn at random, with as many answers, unless ``--most-useful`` leaves them out; ``--answers``
takes other numbers. With ``--at-once`` the questions between two of these
numbers are asked together, as ``tab --review N`` lists them. A moment whose written grip is none
that one hand can take is asked about, and left as it is.
"""

import argparse
import json
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from slp_guitar.fingering.costs import HandCosts
from slp_guitar.fingering.grips import Grip, find_grips_or_placements
from slp_guitar.fingering.lattice import FingeringLattice
from slp_guitar.fingering.passages import (
    FingeringMetrics,
    Passage,
    compare_fingerings,
    read_passages_jsonl,
    sum_metrics,
)
from slp_guitar.fingering.questions import (
    find_repeats,
    rank_questions,
    spread_answers,
)

DEFAULT_ANSWERS_PER_HUNDRED = (0, 1, 3, 6)

Choices = list[Sequence[Grip]]


def pose(passage: Passage, choices: Choices) -> FingeringLattice:
    """The grips of each moment, at the costs of the package."""
    return FingeringLattice(passage, choices, HandCosts())


def most_useful(passage: Passage, choices: Choices) -> list[int]:
    """The moments that have a choice, those first about which an answer helps most."""
    repeats = find_repeats(passage.moments)
    return rank_questions(pose(passage, choices).price_grips(), repeats)


def at_random(passage: Passage, choices: Choices) -> list[int]:
    """All moments, in the same random order in every run."""
    return random.Random(0).sample(range(len(choices)), len(choices))


Picker = Callable[[Passage, Choices], list[int]]


def answer(
    passage: Passage, picker: Picker, counts: Sequence[int], at_once: bool
) -> list[tuple[int, FingeringMetrics]]:
    """Finger a passage with more and more answers.

    Returns:
        For each of the counts how many were given, and what is right of the moments that were not
        asked about.
    """
    choices: Choices = [find_grips_or_placements(p, passage.tuning) for p in passage.moments]
    repeats, every = find_repeats(passage.moments), list(choices)
    asked: dict[int, Grip] = {}
    results = []
    for count in counts:
        while len(asked) < count:
            others = [t for t in picker(passage, choices) if t not in asked]
            questions = others[: count - len(asked) if at_once else 1]
            if not questions:
                break
            asked.update((t, passage.grips[t]) for t in questions)
            for t, grip in spread_answers(asked, repeats).items():
                choices[t] = [grip] if grip in every[t] else every[t]
        path = pose(passage, choices).find_cheapest_path()
        rest = [t for t in range(len(path)) if t not in asked]
        theirs, ours = [[grips[t] for t in rest] for grips in (passage.grips, path)]
        results.append((len(asked), compare_fingerings(theirs, ours, passage.tuning)))
    return results


def measure(
    passages: Sequence[Passage],
    picker: Picker,
    at_once: bool,
    answers: Sequence[int] = DEFAULT_ANSWERS_PER_HUNDRED,
) -> Iterator[dict]:
    """Yield for each number of answers how many were given, and the shares of the rest."""
    results = []
    for passage in passages:
        counts = [round(k * len(passage.moments) / 100) for k in answers]
        results.append(answer(passage, picker, counts, at_once))
    for per_hundred, own in zip(answers, zip(*results, strict=True), strict=True):
        rest = sum_metrics([metrics for _, metrics in own])
        shares = rest.to_shares()
        yield {
            "answers_per_hundred": per_hundred,
            "answers": sum(asked for asked, _ in own),
            "moments": sum(len(passage.moments) for passage in passages),
            "notes_of_the_rest": rest.num_notes,
            "strings": round(shares["strings"], 4),
            "chords": round(shares["chords"], 4),
        }


def main() -> None:
    """Print one JSON object for each way of asking and number of answers."""
    parser = argparse.ArgumentParser(description="Measure what answers of a player are worth.")
    parser.add_argument("passages", type=Path, help="pieces with a written fingering, JSON Lines")
    parser.add_argument("--at-once", action="store_true", help="ask all questions of a row at once")
    parser.add_argument(
        "--answers",
        type=int,
        nargs="+",
        default=DEFAULT_ANSWERS_PER_HUNDRED,
        metavar="N",
        help="to a hundred moments, in order [0 1 3 6]",
    )
    parser.add_argument("--most-useful", action="store_true", help="no questions at random")
    arguments = parser.parse_args()
    passages = read_passages_jsonl(arguments.passages)
    for picker in (most_useful,) if arguments.most_useful else (at_random, most_useful):
        for result in measure(passages, picker, arguments.at_once, arguments.answers):
            print(json.dumps({"asked": picker.__name__} | result), flush=True)


if __name__ == "__main__":
    main()
