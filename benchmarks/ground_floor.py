"""What a reader of the book's equations meets in the package, and what a pass costs: before, after.

Usage::

    python benchmarks/ground_floor.py . --rounds 0
    python benchmarks/ground_floor.py ../before . --save benchmarks/results/ground_floor/table.json

Each word is a folder with a checkout, and a column. Lines are all lines of files, those that a
folder does not have are left out. Definitions and modules are those of the package that run in one
pass of one head, and of a model. Milliseconds are CPU time of one thread, the least of all rounds,
since other processes can only add to it; the folders take turns, and ratios are to the first.
"""

import argparse
import ast
import inspect
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HEADS = ("attention", "multi_head", "block")
FAST = ("fast", "dropout", "_internal/dropout", "_internal/cross_entropy")
OUT_OF_THE_WAY = ("_internal/head_views", "_internal/initialization")
LINES = {
    "attention": HEADS[:1],
    "attention, multi_head, block": HEADS,
    "… and fast ways": HEADS + FAST,
    "… and what left these files": HEADS + FAST + OUT_OF_THE_WAY,
}
PASSES = {"forward": 40, "training step": 10, "decoding 64 tokens": 2, "watched pass": 20}


def main() -> None:
    """Print the table, and keep it if asked."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", type=Path, nargs="+", help="checkouts, the first is compared to")
    parser.add_argument("--rounds", type=int, default=60, help="of timing; 0 for none")
    parser.add_argument("--save", type=Path, help="a file for the table")
    settings = parser.parse_args()
    columns = [count(folder) | ask(folder, "trace") for folder in settings.folders]
    workers = [start(folder) for folder in settings.folders] if settings.rounds else []
    for name, passes in PASSES.items() if settings.rounds else ():
        seconds: list[list[float]] = [[] for _ in workers]
        for round_number in range(-1, settings.rounds):
            turn = round_number % len(workers)
            for k in [*range(turn, len(workers)), *range(turn)]:
                took = reply(workers[k], name)
                if round_number >= 0:  # the first warms up
                    seconds[k].append(took / passes * 1e3)
        for column, own in zip(columns, seconds, strict=True):
            column[f"{name}, CPU ms"] = round(min(own), 3)
            column[f"{name}, ratio"] = round(min(own) / min(seconds[0]), 3)
    for name in columns[0]:
        print(f"{name:42}", *(f"{column[name]:10}" for column in columns))
    if settings.save is not None:
        from timing import keep

        keep(argparse.Namespace(rounds=settings.rounds, save=settings.save), {"columns": columns})


def count(folder: Path) -> dict[str, Any]:
    """Count the lines of files, and of functions as a chapter would show them."""
    package = folder / "slp_transformer"
    files = {name: package / f"{name}.py" for names in LINES.values() for name in names}
    lengths = {
        name: len(path.read_text(encoding="utf-8").splitlines())
        for name, path in files.items()
        if path.exists()
    }
    table: dict[str, Any] = {
        f"lines: {what}": sum(lengths.get(name, 0) for name in names)
        for what, names in LINES.items()
    }
    calls = [
        node
        for path in sorted((folder / "chapters").glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "plotting.show_source"
    ]
    shortened = sum(any(word.arg == "only" for word in call.keywords) for call in calls)
    return table | {"chapters' sources": len(calls), "shortened by only=": shortened}


def start(folder: Path) -> subprocess.Popen[str]:
    """Start a process that answers for one checkout."""
    environment = os.environ | {"PYTHONPATH": str(folder.resolve()), "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] += os.pathsep + str(Path(__file__).resolve().parent)
    return subprocess.Popen(
        [sys.executable, "-c", "import ground_floor; ground_floor.answer()"],
        cwd=folder,  # which Python looks at first
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )


def reply(worker: subprocess.Popen[str], question: str) -> Any:
    """Return a process's answer."""
    assert worker.stdin and worker.stdout
    print(question, file=worker.stdin, flush=True)
    return json.loads(worker.stdout.readline())


def ask(folder: Path, question: str) -> Any:
    """Return the answer of a new process."""
    with start(folder) as worker:
        return reply(worker, question)


def answer() -> None:
    """Answer each line: CPU seconds of a work by its name, or what runs."""
    import torch

    import slp_transformer

    assert Path(slp_transformer.__file__).parents[1] == Path.cwd(), "another checkout was imported"
    torch.set_num_threads(1)
    work = make_work()
    for line in sys.stdin:
        name = line.strip()
        if name == "trace":
            print(json.dumps(trace_passes()), flush=True)
            continue
        begun = time.process_time()
        for _ in range(PASSES[name]):
            work[name]()
        print(time.process_time() - begun, flush=True)


def make_work() -> dict[str, Callable[[], Any]]:
    """Return what is timed: a small model, so that what surrounds PyTorch's kernels shows."""
    import torch

    from slp_transformer import TransformerConfig, TransformerLM, next_token_loss
    from slp_transformer.generation import generate
    from slp_transformer.hooks import record_activations

    torch.manual_seed(0)
    config = TransformerConfig(97, 128, 64, 4, 4, dropout=0.1)
    model, learner = TransformerLM(config).eval(), TransformerLM(config)
    ids = torch.randint(97, (4, 33))
    optimizer = torch.optim.AdamW(learner.parameters(), lr=1e-3)

    @torch.no_grad()
    def read() -> None:
        model(ids)

    def learn() -> None:
        next_token_loss(learner(ids[:, :-1]), ids[:, 1:]).backward()
        optimizer.step()
        optimizer.zero_grad()

    def watch() -> None:
        with record_activations(model):
            read()

    def write() -> None:
        generate(model, [[1, 2, 3]], 64, temperature=0)

    return dict(zip(PASSES, (read, learn, write, watch), strict=True))


def trace_passes() -> dict[str, int]:
    """Count the package's definitions and modules that run in a pass."""
    import torch

    import slp_transformer
    from slp_transformer import MultiHeadAttention, TransformerConfig, TransformerLM

    root, seen = str(Path(slp_transformer.__file__).parent), set[tuple[str, str]]()

    def watch(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_flags & inspect.CO_OPTIMIZED:
            if code.co_filename.startswith(root):
                seen.add((code.co_filename, code.co_qualname))

    table = {}
    head, X = MultiHeadAttention(8, 1), torch.randn(5, 8)
    model, ids = TransformerLM(TransformerConfig(31)), torch.arange(5)
    for name, run in {
        "one head": lambda: head(X, causal=True),
        "a model": lambda: model(ids),
    }.items():
        seen.clear()
        sys.setprofile(watch)
        run()
        sys.setprofile(None)
        table[f"definitions that run for {name}"] = len(seen)
        table[f"in modules, for {name}"] = len({file for file, _ in seen})
    return table


if __name__ == "__main__":
    main()
