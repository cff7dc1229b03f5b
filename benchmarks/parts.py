"""What each part of today's recipe buys: taken out of it, and put into the book's, alone.

Usage::

    python benchmarks/parts.py tiny-shakespeare --save benchmarks/results/parts --curves

Tiny Shakespeare as in `time_to_loss.py`. All variants train for the same CPU seconds: a variant
makes as many steps as its own step, timed in turns with the others before, takes of those that the
whole recipe needs for `--steps`. All have the learning rate of the preset `shakespeare`. A seed's
losses are kept in a file of its own: a seed that is there is not run again. With `--curves` seed
0's variants are trained again for the same steps, and measured on the way.
"""

import argparse
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from time_to_loss import Steps, trained, val_loss

from slp_transformer._internal.json_files import read_json, write_json
from slp_transformer.data.dataset import Dataset
from slp_transformer.data.text_corpus import prepare_corpus
from slp_transformer.tasks.config_files import load_config
from slp_transformer.tasks.run_config import ModelSettings
from slp_transformer.tasks.text import TextTask

ROUNDS = 9  # of timing, a step each
POINTS = 8  # of a curve, each measured on an eighth of the held-out part
BOOK = {"optimizer": "adamw", "positions": "learned", "normalization": "layer", "qk_norm": False}
BOOK |= {"activation": "relu", "zero_init": False, "tied": True}
TODAY = {"optimizer": "muon", "positions": "rotary", "normalization": "rms", "qk_norm": True}
TODAY |= {"activation": "relu2", "zero_init": True, "tied": False}


def variants() -> dict[str, dict[str, Any]]:
    """Return both recipes, each with one part exchanged for the other's."""
    made = {"today": TODAY, "book": BOOK}
    made |= {f"today, {part} {BOOK[part]}": TODAY | {part: BOOK[part]} for part in BOOK}
    return made | {f"book, {part} {TODAY[part]}": BOOK | {part: TODAY[part]} for part in BOOK}


def begin(corpus: Dataset, parts: dict[str, Any], steps: int, seed: int) -> Steps:
    """Begin the training of a variant."""
    preset, parts = load_config("shakespeare"), dict(parts)
    how = {"optimizer": parts.pop("optimizer"), "steps": steps, "seed": seed, "bf16": False}
    settings = vars(preset.model) | parts | {"ffn_bias": parts["normalization"] == "layer"}
    config = ModelSettings(**settings).to_config(corpus.tokenizer.vocab_size)
    train_config = replace(preset.train, **how)
    return trained(lambda: TextTask().build_model(config), train_config, corpus.train[:])


def run_seed(corpus: Dataset, seed: int, steps: int) -> dict[str, dict[str, float]]:
    """Train every variant for the same seconds."""
    clocks = {name: begin(corpus, parts, ROUNDS, seed) for name, parts in variants().items()}
    took: dict[str, list[float]] = {name: [] for name in clocks}
    for run in clocks.values():
        next(run)
    for _ in range(ROUNDS):
        for name, run in clocks.items():
            start = time.process_time()
            next(run)
            took[name].append(time.process_time() - start)
    step = {name: statistics.median(seconds[1:]) for name, seconds in took.items()}
    results = {}
    for name, parts in variants().items():
        count, start = round(steps * step["today"] / step[name]), time.process_time()
        *_, model = begin(corpus, parts, count, seed)
        seconds = time.process_time() - start
        loss = val_loss(model, corpus.val[:])
        results[name] = {"steps": count, "cpu": round(seconds, 1), "loss": round(loss, 4)}
        print(seed, name, results[name], flush=True)
    return results


def run_curves(corpus: Dataset, folder: Path) -> None:
    """Train the first seed's variants for their steps again; keep each curve as it ends."""
    steps = {name: run["steps"] for name, run in read_json(folder / "seed-0.json")["runs"].items()}
    path, val = folder / "curves-seed-0.json", corpus.val[:]
    kept = read_json(path) if path.exists() else provenance() | {"runs": {}}
    for name, parts in variants().items():
        if name in kept["runs"]:
            continue
        total, spent, curve = steps[name], 0.0, []
        run = begin(corpus, parts, total, 0)
        next(run)
        marks = {round(total * k / POINTS) for k in range(1, POINTS + 1)}
        for step in range(1, total + 1):
            start = time.process_time()
            model = next(run)
            spent += time.process_time() - start
            if step in marks:
                part = val if step == total else val[: len(val) // 8]
                curve.append([step, round(spent, 2), round(val_loss(model, part), 4)])
        kept["runs"][name] = curve
        print(name, curve[-1], flush=True)
        write_json(path, kept)


def provenance() -> dict[str, str]:
    """Return the command, the commit and the date."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True)
    return {
        "command": " ".join(["python", "benchmarks/parts.py", *sys.argv[1:]]),
        "commit": commit.stdout.decode().strip(),
        "date": time.strftime("%Y-%m-%d"),
    }


def summarize(folder: Path) -> None:
    """Print and keep the median over the seeds, and the extremes."""
    kept = [read_json(path) for path in sorted(folder.glob("seed-*.json"))]
    table = {}
    for name in kept[0]["runs"]:
        losses = sorted(seed["runs"][name]["loss"] for seed in kept)
        steps = statistics.median(seed["runs"][name]["steps"] for seed in kept)
        table[name] = {"steps": steps, "loss": statistics.median(losses), "losses": losses}
        print(f"{name:32} {table[name]}")
    write_json(folder / "table.json", table)


def main() -> None:
    """Run the seeds that are missing, and summarize all."""
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description="Measure what each part buys.")
    parser.add_argument("corpus", help="Tiny Shakespeare: its name, or a file")
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=200, help="of the whole recipe")
    parser.add_argument("--curves", action="store_true", help="measure seed 0 on the way")
    parser.add_argument("--save", type=Path, required=True)
    told = parser.parse_args()
    corpus = prepare_corpus(told.corpus, val_split=0.1)
    told.save.mkdir(parents=True, exist_ok=True)
    for seed in told.seeds:
        path = told.save / f"seed-{seed}.json"
        if path.exists():
            continue
        runs = run_seed(corpus, seed, told.steps)
        write_json(path, provenance() | {"runs": runs})
    summarize(told.save)
    if told.curves:
        run_curves(corpus, told.save)


if __name__ == "__main__":
    main()
