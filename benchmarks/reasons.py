"""Why blocks add, why the norm comes first, and what dropout is for: small runs over three seeds.

    python benchmarks/reasons.py depth --save benchmarks/results/reasons/depth.json
    python benchmarks/reasons.py dropout --save benchmarks/results/reasons/dropout.json

"depth" trains chapter 5's eight sentences in deep and narrow stacks, whose blocks are pre-norm,
post-norm, or add nothing: each sublayer then hands on its own output, of a normalized copy of its
input. AdamW runs at one rate from the first step, without warmup. "dropout" trains one model on a
short text, which it reads many times over, and on a long one, with and without dropout.
"""

import argparse
import ast
import json
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from slp_transformer import TransformerConfig, TransformerLM
from slp_transformer._internal.atomic_write import write_file
from slp_transformer.block import ResidualBlock
from slp_transformer.data import load_moby_dick, train_tokenizer
from slp_transformer.training import train

ROOT = Path(__file__).resolve().parents[1]
SEEDS = (0, 1, 2)
EVERY = 10  # steps between two points of a curve


def sentences() -> list[list[str]]:
    """The eight sentences of chapter 5."""
    chapter = (ROOT / "chapters" / "05_language_model.py").read_text("utf-8")
    for node in ast.parse(chapter).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "text":
            return [line.split() for line in ast.literal_eval(node.value).splitlines()]
    raise SystemExit("Chapter 5 has no text any more.")


def forward_nothing_added(block: Any, X: torch.Tensor, mha: Any, mha_across: Any) -> torch.Tensor:
    """Hand on what each sublayer makes of a normalized copy of its input, and nothing else."""
    return block.ffn(block.norm_2(mha(block.norm_1(X))))


def train_stack(kind: str, depth: int, start: str, seed: int) -> list[list[float]]:
    """The loss at every tenth step of 200, and at the last."""
    lines = sentences()
    words = sorted({word for line in lines for word in line})
    ids = torch.tensor([[words.index(word) for word in line] for line in lines])
    torch.manual_seed(seed)
    norm = "post" if kind == "post-norm" else "pre"
    sizes = {"model_dim": 32, "num_heads": 2, "num_blocks": depth}
    config = TransformerConfig(len(words), 10, **sizes, norm=norm, initialization=start)
    model = TransformerLM(config)
    if kind == "nothing added":
        for block in model.stack.blocks:
            block.orders = ResidualBlock.orders | {"pre": forward_nothing_added}
    optimizer, curve = torch.optim.AdamW(model.parameters(), lr=3e-3), []
    for step in range(201):
        loss = cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        if step % EVERY == 0:
            curve.append([step, round(loss.item(), 4)])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return curve


def run_depth() -> dict[str, Any]:
    """All kinds of stacks, by their name and seed."""
    runs = {}
    for start in ("xavier", "gpt2"):
        for depth in (3, 24):
            for kind in ("pre-norm", "post-norm", "nothing added"):
                name = f"{kind}, {depth} blocks, {start}"
                runs[name] = [train_stack(kind, depth, start, seed) for seed in SEEDS]
                print(name, [curve[-1][1] for curve in runs[name]], flush=True)
    return runs


def medians(runs: dict[str, Any]) -> dict[str, list[list[float]]]:
    """What chapter 2 draws: of each kind of 24 blocks the median over the seeds, step by step."""
    drawn = {}
    for kind in ("pre-norm", "post-norm", "nothing added", "post-norm, small start"):
        name, _, small = kind.partition(", ")
        curves = runs[f"{name}, 24 blocks, {'gpt2' if small else 'xavier'}"]
        drawn[kind] = [
            [points[0][0], statistics.median(loss for _, loss in points)]
            for points in zip(*curves, strict=True)
        ]
    return drawn


def run_dropout() -> dict[str, Any]:
    """The losses of training and validation, by the size of the text and the share dropped."""
    text = load_moby_dick()
    tokenizer = train_tokenizer([text], token_type="characters")
    stream, runs = torch.tensor(tokenizer.encode(text)), {}
    cut = len(stream) * 9 // 10
    held_out = stream[cut : cut + 8000]
    for size in (5_000, cut):
        for share in (0.0, 0.2):
            name, runs_of = f"{size:,} characters, dropout {share}", []
            for seed in SEEDS:
                torch.manual_seed(seed)
                sizes = {"model_dim": 64, "num_heads": 4, "num_blocks": 2, "dropout": share}
                model = TransformerLM(TransformerConfig(tokenizer.vocab_size, 32, **sizes))
                how = {"steps": 800, "batch_size": 16, "eval_interval": 100, "seed": seed}
                how |= {"learning_rate": 6e-3}
                records = train(model, stream[:size], held_out, **how)
                curve = [[r.step, round(r.train_loss, 4), round(r.val_loss, 4)] for r in records]
                runs_of.append(curve)
            runs[name] = runs_of
            print(name, [curve[-1][1:] for curve in runs_of], flush=True)
    return runs


def format_record(record: dict[str, Any]) -> str:
    """Return JSON with a line for each value, and for each entry of a table."""
    lines = []
    for name, value in record.items():
        text = json.dumps(value)
        if isinstance(value, dict):
            rows = (f"  {json.dumps(key)}: {json.dumps(entry)}" for key, entry in value.items())
            text = "{\n" + ",\n".join(rows) + "\n }"
        lines.append(f" {json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> None:
    """Run one of the two and write it with its command, commit, machine and date."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["depth", "dropout"])
    parser.add_argument("--save", type=Path, required=True)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True)
    start = time.process_time()
    runs = run_depth() if asked.what == "depth" else run_dropout()
    record = {
        "command": " ".join(["python", "benchmarks/reasons.py", *sys.argv[1:]]),
        "commit": commit.stdout.decode().strip(),
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{platform.machine()}, {platform.system()}, PyTorch {torch.__version__}",
        "cpu_seconds": round(time.process_time() - start),
        "seeds": SEEDS,
        "runs": runs,
    }
    record |= {"medians": medians(runs)} if asked.what == "depth" else {}
    write_file(asked.save, format_record(record))


if __name__ == "__main__":
    main()
