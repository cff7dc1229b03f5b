"""Seconds to a loss on Tiny Shakespeare: other recipes and ours, in turns on one thread.

Usage::

    python benchmarks/time_to_loss.py tiny-shakespeare --save benchmarks/results/time_to_loss
    python benchmarks/time_to_loss.py input.txt --seeds 0 --save /tmp/here --shorter 20

Four blocks of width 128 with four heads, windows of 64 characters, twelve a step; the loss is the
mean over the whole held-out last tenth, in windows that do not overlap. All recipes of a seed are
trained in one process that gives each a few steps in turn, so that other work on the machine slows
all alike. Counted are the CPU seconds of the steps, data included, and beside them the seconds on
the wall; neither what precedes the first step nor measuring the loss is counted. A seed's runs are
kept in a file of its own: a seed that is there is not run again. Between two measurements the loss
is taken to fall in a straight line.
"""

import argparse
import json
import math
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import peers
import torch
import torch.nn.functional as F
from torch import nn

from slp_transformer._internal.json_files import write_json
from slp_transformer.data.batches import TokenWindowSource
from slp_transformer.data.dataset import Dataset
from slp_transformer.data.text_corpus import prepare_corpus
from slp_transformer.modern import ModernLM
from slp_transformer.plotting.figures import lines
from slp_transformer.tasks.config_files import load_config
from slp_transformer.training.optimizers import make_optimizer
from slp_transformer.training.step import training_step
from slp_transformer.training.train_config import TrainConfig

N, BATCH, TURN, EVERY = 64, 12, 20, 200  # window, windows a step, steps in a turn, and to a loss
TARGETS = (1.915, 1.775, 1.66)
SIZE = peers.Size(blocks=4, width=128, heads=4, batch=BATCH, context=N)
NANO = TrainConfig(
    steps=2000, batch_size=BATCH, learning_rate=1e-3, warmup_steps=100, adam_beta2=0.99
)
BEST_RATE = 3e-3  # of 1e-3 and 3e-3
CPU = torch.device("cpu")
Steps = Iterator[nn.Module]  # yields the model before the first step and after each


def nanogpt() -> nn.Module:
    """nanoGPT's model with nanoGPT's start."""
    model = peers.NanoGPT(SIZE, N)
    for name, W in model.named_parameters():
        if W.dim() == 2:
            narrow = name.endswith(("out.weight", "down.weight"))
            nn.init.normal_(W, std=0.02 / (math.sqrt(2 * SIZE.blocks) if narrow else 1))
    return model


def ours() -> nn.Module:
    """The model of the preset `shakespeare`."""
    return ModernLM(load_config("shakespeare").model.to_config(peers.VOCABULARY))


def trained(make: Callable[[], nn.Module], config: TrainConfig, stream: torch.Tensor) -> Steps:
    """Train by this package's step."""
    torch.manual_seed(config.seed)
    model = make()
    optimizer, source = make_optimizer(model, config), TokenWindowSource(stream, N)
    generator = torch.Generator().manual_seed(config.seed)
    yield model
    for step in range(config.steps):
        batch = source.draw(BATCH, generator)
        training_step(model, batch, optimizer, step, config, CPU)
        yield model


def by_trainer(config: TrainConfig, stream: torch.Tensor) -> Steps:
    """Train GPT-2 by Hugging Face's Trainer, in a thread of its own that waits between steps."""
    import transformers

    torch.manual_seed(config.seed)
    model = peers.hugging_face(SIZE, N)
    go, done = threading.Semaphore(0), threading.Semaphore(0)

    class Windows(torch.utils.data.Dataset):
        def __len__(self):
            return len(stream) - N

        def __getitem__(self, i):
            return {"input_ids": stream[i : i + N], "labels": stream[i : i + N]}

    class Wait(transformers.TrainerCallback):
        def on_step_begin(self, *_, **__):
            done.release()
            go.acquire()

    def run():
        torch.set_num_threads(1)
        with tempfile.TemporaryDirectory() as folder:
            how = transformers.TrainingArguments(
                folder,
                max_steps=config.steps,
                per_device_train_batch_size=BATCH,
                learning_rate=config.learning_rate,
                warmup_steps=config.warmup_steps,
                adam_beta2=config.adam_beta2,
                weight_decay=config.weight_decay,
                seed=config.seed,
                use_cpu=True,
                report_to=[],
                save_strategy="no",
                logging_strategy="no",
                disable_tqdm=True,
            )
            transformers.Trainer(model, how, train_dataset=Windows(), callbacks=[Wait()]).train()
        done.release()

    threading.Thread(target=run, daemon=True).start()
    logits = peers.Logits(model)
    done.acquire()
    yield logits
    for _ in range(config.steps):
        go.release()
        done.acquire()
        yield logits


@torch.no_grad()
def val_loss(model: nn.Module, stream: torch.Tensor) -> float:
    """Return the mean loss over a whole stream."""
    training, total = model.training, 0.0
    model.eval()
    count = (len(stream) - 1) // N * N
    ids, targets = (part.view(-1, N).split(64) for part in (stream[:count], stream[1 : count + 1]))
    for some, following in zip(ids, targets, strict=True):
        logits = model(some).flatten(0, 1)
        total += F.cross_entropy(logits, following.flatten(), reduction="sum").item()
    model.train(training)
    return total / count


def run_seed(corpus: Dataset, seed: int, shorter: int) -> dict[str, list[list[float]]]:
    """Train all recipes of a seed in turns.

    Returns:
        For each run, its points: steps, CPU seconds, seconds on the wall, loss.
    """
    stream, val = corpus.train[:], corpus.val[:]
    preset = load_config("shakespeare").train

    def budget(config: TrainConfig, steps: int = 2000) -> TrainConfig:
        return replace(config, steps=steps // shorter, seed=seed, bf16=False)

    tuned = budget(replace(NANO, learning_rate=BEST_RATE))
    runs = {
        "nanoGPT's recipe": (trained(nanogpt, budget(NANO), stream), budget(NANO).steps),
        "nanoGPT's, rate 3e-3": (trained(nanogpt, tuned, stream), tuned.steps),
        "Hugging Face Trainer": (by_trainer(tuned, stream), tuned.steps),
    }
    for steps in (320, 700, 1600):
        mine = budget(preset, steps)
        runs[f"ours, {steps} steps"] = (trained(ours, mine, stream), mine.steps)
    points = {name: [] for name in runs}
    spent = {name: [0, 0.0, 0.0] for name in runs}
    for steps, _ in runs.values():
        next(steps)
    names, turn = list(runs), 0
    while names:
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            steps, total = runs[name]
            cpu, wall = time.process_time(), time.perf_counter()
            done = min(TURN, total - spent[name][0])
            for _ in range(done):
                model = next(steps)
            spent[name][0] += done
            spent[name][1] += time.process_time() - cpu
            spent[name][2] += time.perf_counter() - wall
            if spent[name][0] % EVERY == 0 or spent[name][0] == total:
                points[name].append([*spent[name], val_loss(model, val)])
                print(seed, name, *(f"{x:.4g}" for x in points[name][-1]), flush=True)
        names = [name for name in names if spent[name][0] < runs[name][1]]
        turn += 1
    return points


def seconds_to(target: float, points: list[list[float]], column: int) -> float:
    """Return when a run's loss falls to a target; infinity if it does not."""
    for before, after in zip([None, *points], points, strict=False):
        if after[3] <= target:
            if before is None:
                return after[column]
            share = (before[3] - target) / (before[3] - after[3])
            return before[column] + share * (after[column] - before[column])
    return math.inf


def summarize(folder: Path) -> None:
    """Print and keep the medians over the seeds, and draw loss against seconds."""
    seeds = [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("seed-*.json"))]
    recipes: dict[str, list[str]] = {}
    for name in seeds[0]["runs"]:
        recipes.setdefault(name.partition(", ")[0] if "ours" in name else name, []).append(name)
    table: dict[str, dict] = {}
    for recipe, names in recipes.items():
        table[recipe] = {}
        for target in TARGETS:
            both = []
            for column in (1, 2):
                best = [
                    min(seconds_to(target, seed["runs"][name], column) for name in names)
                    for seed in seeds
                ]
                both.append(statistics.median(best))
            reached = [None if math.isinf(x) else round(x, 1) for x in both]
            table[recipe][str(target)] = dict(zip(("cpu", "wall"), reached, strict=True))
        print(f"{recipe:24}", *(f"{t}: {row}" for t, row in table[recipe].items()))
    write_json(folder / "table.json", {"seeds": len(seeds), "median": table})
    curves = {}
    for name in seeds[0]["runs"]:
        rows = zip(*(seed["runs"][name] for seed in seeds), strict=True)
        curves[name] = [
            [statistics.median(p[1] for p in row), statistics.median(p[3] for p in row)]
            for row in rows
        ]
    figure = lines(curves, "CPU seconds of one thread", "validation loss (nats a character)")
    figure.save(folder / "losses.svg")


def main() -> None:
    """Run the seeds that are missing, and summarize all."""
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description="Measure the seconds to a loss.")
    parser.add_argument("corpus", help="Tiny Shakespeare: its name, or a file")
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--shorter", type=int, default=1, help="divide all steps, to try it out")
    parser.add_argument("--save", type=Path, required=True)
    told = parser.parse_args()
    corpus = prepare_corpus(told.corpus, val_split=0.1)
    told.save.mkdir(parents=True, exist_ok=True)
    for seed in told.seeds:
        path = told.save / f"seed-{seed}.json"
        if path.exists():
            continue
        runs = run_seed(corpus, seed, told.shorter)
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True)
        about = {
            "command": " ".join(["python", "benchmarks/time_to_loss.py", *sys.argv[1:]]),
            "commit": commit.stdout.decode().strip(),
            "machine": platform.machine(),
            "torch": torch.__version__,
            "date": time.strftime("%Y-%m-%d"),
        }
        write_json(path, about | {"runs": runs})
    summarize(told.save)


if __name__ == "__main__":
    main()
