"""How much of the hand-written costs a trained hand should add, by cross-validation over composers.

Usage::

    python benchmarks/hand_cost_weight.py DATA --out-dir runs/folds

DATA is as in ``pitch_to_tab.py``; its lines also have ``"composer"``. The composers of train and
valid are dealt out to the folds, most notes first, each to the fold that has fewest; test is not
read. For each fold a hand is trained on the others, a tenth of whose pieces says which checkpoint
is best, and fingers the fold with each weight of the costs. Printed are the strings and chords that
are right: for each fold, and for all pieces together, which are then each fingered once by a hand
that knows none of their composer's. A fold whose hand is in the folder is not trained again.
"""

import argparse
import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from slp_guitar.fingering.hand_model import HandEnsemble, load_hand_ensemble
from slp_guitar.fingering.hand_training import make_hand_trainer
from slp_guitar.fingering.passages import (
    FingeringMetrics,
    Passage,
    compare_fingerings,
    read_passages_jsonl,
    sum_metrics,
)

WEIGHTS = (0.0, 0.25, 0.5, 1.0)


def read_by_composer(data: Path) -> list[tuple[str, Passage]]:
    """The pieces of train and valid, each with its composer."""
    pieces = []
    for path in (data / "train.jsonl", data / "valid.jsonl"):
        lines = path.read_text(encoding="utf-8").splitlines()
        composers = [json.loads(line)["composer"] for line in lines]
        pieces += zip(composers, read_passages_jsonl(path), strict=True)
    return [(composer, passage) for composer, passage in pieces if passage.grips]


def deal_out(pieces: Sequence[tuple[str, Passage]], num_folds: int) -> list[list[int]]:
    """The numbers of the pieces of each fold; no composer is in two."""
    notes: Counter[str] = Counter()
    for composer, passage in pieces:
        notes[composer] += sum(map(len, passage.moments))
    sizes, fold_of = [0] * num_folds, {}
    for composer, count in notes.most_common():
        fold = fold_of[composer] = sizes.index(min(sizes))
        sizes[fold] += count
    return [
        [n for n, (composer, _) in enumerate(pieces) if fold_of[composer] == fold]
        for fold in range(num_folds)
    ]


def train(passages: list[Passage], run: Path, steps: int) -> None:
    """Train a hand on nine tenths of some pieces, and choose its best checkpoint by the others."""
    random.Random(0).shuffle(passages)
    count = max(1, len(passages) // 10)
    make_hand_trainer(passages[count:], passages[:count], run, steps=steps).fit()


def row(fold: str, weight: float, metrics: Sequence[FingeringMetrics]) -> str:
    """A row of the table."""
    counts = sum_metrics(metrics)
    shares = {key: round(counts.to_shares()[key], 4) for key in ("strings", "chords")}
    return json.dumps({"fold": fold, "weight": weight, "notes": counts.num_notes} | shares)


def main() -> None:
    """Print one JSON object for each fold and weight, and for all folds together."""
    parser = argparse.ArgumentParser(description="Choose the weight of the hand-written costs.")
    parser.add_argument("data", type=Path, help="folder of train.jsonl and valid.jsonl")
    parser.add_argument("--out-dir", type=Path, required=True, help="folder of the folds' runs")
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=600)
    arguments = parser.parse_args()
    pieces = read_by_composer(arguments.data)
    found: dict[float, list[FingeringMetrics]] = {weight: [] for weight in WEIGHTS}
    for number, fold in enumerate(deal_out(pieces, arguments.folds), start=1):
        run, held_out = arguments.out_dir / f"fold-{number}", set(fold)
        if not run.exists():
            others = [piece for n, (_, piece) in enumerate(pieces) if n not in held_out]
            train(others, run, arguments.steps)
        models = load_hand_ensemble(run).models
        for weight in WEIGHTS:
            hand = HandEnsemble(models, weight)
            own = [pieces[n][1] for n in fold]
            metrics = [compare_fingerings(p.grips, hand.predict_grips(p), p.tuning) for p in own]
            found[weight] += metrics
            print(row(str(number), weight, metrics), flush=True)
    for weight, metrics in found.items():
        print(row("all", weight, metrics))


if __name__ == "__main__":
    main()
