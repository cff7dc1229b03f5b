"""Scaling laws on a small scale: many models, their losses, and how far a law reaches.

Usage::

    python benchmarks/scaling.py tiny-shakespeare --save benchmarks/results/scaling
    python benchmarks/scaling.py moby-dick --widths 8 16 32 --tokens 16 18

Every model has two blocks and a head for each 16 of its width, and reads windows of 64 characters,
eight at a time. Each pair of a width and a number of tokens is a run of its own, with its whole
schedule of learning rates. A run's loss is the mean over all of the held-out last tenth.

Fitted are L(N) on the runs that read the most tokens among those that every width read, L(D) on the
widest model, and L(C) on the frontier: the runs that no run of less compute beats. Each law is also
fitted without its last quarter (at least one run) and then asked for it: what it gets wrong there
says how far it reaches. With ``--fit`` a recorded study is fitted anew, and nothing is trained.
"""

import argparse
import csv
import json
import platform
import subprocess
import sys
import time
from pathlib import Path

import torch

from slp_transformer import TransformerConfig, TransformerLM
from slp_transformer.data.dataset import Dataset
from slp_transformer.data.text_corpus import prepare_corpus
from slp_transformer.scaling_laws import PowerLaw, count_parameters, total_training_flops
from slp_transformer.training import train

N, BATCH, BLOCKS = 64, 8, 2
Run = dict[str, float]


def run(corpus: Dataset, width: int, tokens: int, seed: int) -> Run:
    """Train one model and measure it."""
    heads = max(1, width // 16)
    config = TransformerConfig(corpus.tokenizer.vocab_size, N, width, heads, BLOCKS)
    torch.manual_seed(seed)
    model, began = TransformerLM(config), time.process_time()
    steps = tokens // (N * BATCH)
    how = {"steps": steps, "eval_interval": steps, "batch_size": BATCH, "seed": seed}
    # The best of three to five rates at widths of 8, 32 and 128, and a line between them.
    rate = 0.12 * width**-0.75
    record = train(model, corpus.train, corpus.val, learning_rate=rate, **how)[-1]
    size = count_parameters(config).matrices
    return {
        "width": width,
        "parameters": size,
        "tokens": steps * N * BATCH,
        "compute": total_training_flops(size, steps * N * BATCH),
        "loss": round(record.val_loss, 4),
        "cpu_seconds": round(time.process_time() - began, 1),
        "seed": seed,
    }


def frontier(runs: list[Run]) -> list[Run]:
    """The runs that no run of less compute beats."""
    best: list[Run] = []
    for each in sorted(runs, key=lambda r: (r["compute"], r["loss"])):
        if not best or each["loss"] < best[-1]["loss"]:
            best.append(each)
    return best


def chosen(runs: list[Run]) -> dict[str, list[Run]]:
    """Which runs each law is fitted to, smallest first."""
    widths = {r["width"] for r in runs}
    read = {d: {r["width"] for r in runs if r["tokens"] == d} for d in {r["tokens"] for r in runs}}
    most = max(d for d in read if read[d] == widths)
    return {
        "parameters": sorted((r for r in runs if r["tokens"] == most), key=lambda r: r["width"]),
        "tokens": sorted((r for r in runs if r["width"] == max(widths)), key=lambda r: r["tokens"]),
        "compute": frontier(runs),
    }


def fit(runs: list[Run]) -> dict[str, dict]:
    """The three laws, what each leaves unexplained, and how it foretells its last runs."""
    laws = {}
    for name, taken in chosen(runs).items():
        x, losses = [r[name] for r in taken], [r["loss"] for r in taken]
        law, kept = PowerLaw.fit(x, losses), max(2, len(x) - max(1, len(x) // 4))
        early = PowerLaw.fit(x[:kept], losses[:kept])
        laws[name] = {
            "scale": law.scale,
            "exponent": law.exponent,
            "x": x,
            "losses": losses,
            "residuals": [round(loss - law(size), 4) for size, loss in zip(x, losses, strict=True)],
            "fitted_to_the_first": kept,
            "foretold": [round(early(size), 4) for size in x[kept:]],
            "found": losses[kept:],
        }
    return laws


def report(laws: dict[str, dict]) -> None:
    """Print the laws."""
    for name, law in laws.items():
        largest = max(map(abs, law["residuals"]))
        print(
            f"L({name}) = ({law['scale']:.3g} / x)^{law['exponent']:.4f}, {len(law['x'])} runs, "
            f"residuals up to {largest:.3f} nats. From the first {law['fitted_to_the_first']} it "
            f"foretells {law['foretold']}; found were {law['found']}."
        )


def machine() -> dict[str, str]:
    """Return the machine and the versions of this run."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, encoding="utf-8"
    ).stdout.strip()
    return {
        "command": " ".join(["python", "benchmarks/scaling.py", *sys.argv[1:]]),
        "commit": commit,
        "machine": platform.machine(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "date": time.strftime("%Y-%m-%d"),
    }


def save(folder: Path, runs: list[Run], about: dict[str, str]) -> None:
    """Keep the runs as a table and the laws beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "runs.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(runs[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(runs)
    record = json.dumps({**about, "laws": fit(runs)}, indent=1)
    (folder / "laws.json").write_text(record + "\n", encoding="utf-8")


def main() -> None:
    """Train every model that the command line names, and fit."""
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description="Fit scaling laws to many small models.")
    parser.add_argument("corpus", help="a text file, a folder of them, or a named corpus")
    parser.add_argument("--widths", nargs="+", type=int, default=[8, 16, 32, 64, 128, 256])
    about = "powers of two, of the tokens that every width reads"
    parser.add_argument("--tokens", nargs="+", type=int, default=[16, 17, 18, 19, 20], help=about)
    about = "likewise, for all but the widest"
    parser.add_argument("--more", nargs="*", type=int, default=[22], help=about)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", type=Path, help="folder for runs and laws")
    parser.add_argument("--fit", action="store_true", help="corpus is a runs.csv: fit it again")
    told = parser.parse_args()
    if told.fit:
        rows = csv.DictReader(Path(told.corpus).read_text(encoding="utf-8").splitlines())
        report(fit([{k: float(v) for k, v in row.items()} for row in rows]))
        return
    try:
        corpus = prepare_corpus(told.corpus)
    except (ValueError, ImportError) as error:
        parser.error(str(error))
    runs = []
    for width in sorted(told.widths):
        more = told.more if width < max(told.widths) else []
        for power in (*told.tokens, *more):
            runs.append(run(corpus, width, 2**power, told.seed))
            print(json.dumps(runs[-1]), flush=True)
    if told.save:
        save(told.save, runs, machine())
    report(fit(runs))


if __name__ == "__main__":
    main()
