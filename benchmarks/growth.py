"""Memory and CPU seconds by the size of the data: they should be flat, and linear.

Usage::

    python benchmarks/growth.py text --megabytes 5 50 --save benchmarks/results/growth/text.json
    python benchmarks/growth.py text --tokenizer words --stages prepare train evaluate --steps 2
    python benchmarks/growth.py guitar --notes 300 3000 --files 10 100 --save FILE

Each stage is a process of its own, a command of `slp-transformer` or a script of a peer: bare
`tokenizers`, which counts and encodes the same text, and a plain PyTorch loop, which trains and
evaluates a model of the same size on the same tokens. Peaks are of anonymous memory (Linux's
RssAnon, looked at every few milliseconds): files that are mapped can be given back. The text is
drawn from a seed: words of a fixed list, the frequent ones more often, so that the vocabulary stops
growing.
"""

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from timing import keep
from torch import nn

from slp_guitar import make_practice_corpus, write_tab
from slp_guitar.tab import Tab

STAGES = ["prepare", "tokenizers", "train", "PyTorch loop", "evaluate", "resume", "generate"]
SIZES = {"--num-blocks": 1, "--model-dim": 32, "--num-heads": 4, "--context-length": 128}
BATCH, VOCABULARY = 32, 2048
ONE_THREAD = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
HERE = Path(__file__).resolve()
INTERVAL = 0.005  # seconds between two looks at a process's memory
MEBIBYTE = 2**20


def main() -> None:
    """Measure the stages that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    what = parser.add_subparsers(dest="what", required=True)
    text = what.add_parser("text", help="prepare, train, evaluate, resume, generate")
    text.add_argument("--megabytes", type=int, nargs="+", default=[5, 50, 500])
    text.add_argument("--steps", type=int, default=200)
    text.add_argument("--tokenizer", choices=["bpe", "words", "characters"], default="bpe")
    text.add_argument("--stages", nargs="+", choices=STAGES, default=STAGES)
    guitar = what.add_parser("guitar", help="tab, convert, train tabs")
    guitar.add_argument("--notes", type=int, nargs="+", default=[300, 3000, 30_000])
    guitar.add_argument("--files", type=int, nargs="+", default=[10, 100, 1000])
    for each in (text, guitar):
        each.add_argument("--save", type=Path, help="a file for the table")
        each.add_argument("--folder", type=Path, help="a folder for the data, with room")
    for name in CHILDREN:
        child = what.add_parser(name)
        child.add_argument("words", nargs="+")
    settings = parser.parse_args()
    if settings.what in CHILDREN:
        return CHILDREN[settings.what](*settings.words)
    with tempfile.TemporaryDirectory(dir=settings.folder) as folder:
        os.chdir(folder)
        table = text_table(settings) if settings.what == "text" else guitar_table(settings)
    keep(settings, table)


def measure(*words: Any) -> dict[str, float]:
    """Run a process, and return its CPU seconds and its peak of anonymous memory.

    Raises:
        RuntimeError: with what it printed, if it fails.
    """
    with tempfile.TemporaryFile() as printed:
        command, how = [*map(str, words)], {"stdout": printed, "stderr": subprocess.STDOUT}
        process = subprocess.Popen(command, env=os.environ | ONE_THREAD, **how)
        peak, ended = 0, 0
        while not ended:
            peak = max(peak, anonymous_bytes(process.pid))
            time.sleep(INTERVAL)
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        if status:
            printed.seek(0)
            raise RuntimeError(f"{words} failed: {printed.read().decode()}")
    return {
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 2),
        "anonymous_mb": round((peak or usage.ru_maxrss * 1024) / MEBIBYTE),
    }


def anonymous_bytes(pid: int) -> int:
    """Return a process's anonymous memory; 0 if it has ended, or the system does not say."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return 1024 * sum(int(line.split()[1]) for line in status.splitlines() if "RssAnon" in line)


def show(name: str, size: str, found: dict[str, float]) -> dict[str, float]:
    """Print a row, and return it."""
    print(
        f"{size:>14} {name:16} {found['cpu_s']:9.2f} s {found['anonymous_mb']:7.0f} MiB", flush=True
    )
    return found


# --- Text ----------------------------------------------------------------------------------------


def write_text(path: Path, megabytes: int) -> None:
    """Write a text of a size: lines of made-up words, by Zipf's law."""
    draw = np.random.default_rng(0)
    syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
    words = ["".join(draw.choice(syllables, n)) for n in draw.integers(1, 5, 20_000)]
    weights = 1 / np.arange(1, len(words) + 1)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        while file.tell() < megabytes * 10**6:
            rows = draw.choice(len(words), (10_000, 12), p=weights / weights.sum())
            file.writelines(" ".join(words[i] for i in row) + "\n" for row in rows)


def text_table(settings: argparse.Namespace) -> dict[str, Any]:
    """Measure every stage on every size of text."""
    ours, table = (sys.executable, "-m", "slp_transformer"), {}
    sizes = [word for pair in SIZES.items() for word in pair]
    how = [*sizes, "--batch-size", BATCH, "--device", "cpu", "--quiet"]
    how += ["--eval-interval", settings.steps, "--max-eval-samples", 64]
    for megabytes in settings.megabytes:
        text, run = Path(f"{megabytes}.txt"), Path(f"run-{megabytes}")
        write_text(text, megabytes)
        begin = ["train", "text", text, "--tokenizer", settings.tokenizer]
        begin += ["--vocab-size", VOCABULARY] if settings.tokenizer != "characters" else []
        stages = {
            "prepare": [sys.executable, HERE, "prepare", text, settings.tokenizer],
            "tokenizers": [sys.executable, HERE, "tokenizers", text],
            "train": [*ours, *begin, "--out-dir", run, *how, "--steps", settings.steps],
            "PyTorch loop": [sys.executable, HERE, "loop", run / "tokens", settings.steps],
            "evaluate": [*ours, "evaluate", run, "--device", "cpu"],
            "resume": [*ours, "train", "--out-dir", run, "--resume", "--quiet"],
            "generate": [*ours, "generate", run, "--max-new-tokens", 500, "--device", "cpu"],
        }
        stages["resume"] += ["--steps", settings.steps + 20]
        table[megabytes] = {
            name: show(name, f"{megabytes} MB", measure(*stages[name])) for name in settings.stages
        }
        text.unlink()
    return table


def prepare(text: str, tokenizer: str) -> None:
    """Prepare a text, as `train` does before its first step."""
    from slp_transformer.data import prepare_corpus

    size = VOCABULARY if tokenizer != "characters" else None
    prepare_corpus(text, tokenizer, size, output_dir="tokens")


def bare_tokenizers(text: str) -> None:
    """Learn a vocabulary with `tokenizers` alone, and write the ids of the text to a file."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(pieces(text), trainer)
    with Path("ids.bin").open("wb") as file:
        for piece in pieces(text):
            np.array(tokenizer.encode(piece).ids, dtype=np.uint16).tofile(file)


def pieces(text: str) -> Iterator[str]:
    """Yield a text a mebibyte at a time, as a first attempt would."""
    with Path(text).open(encoding="utf-8") as file:
        while piece := file.read(MEBIBYTE):
            yield piece


class Plain(nn.Module):
    """A language model of PyTorch's own layers."""

    def __init__(self) -> None:
        """Build it of the sizes that ours has."""
        super().__init__()
        N, d = SIZES["--context-length"], SIZES["--model-dim"]
        self.words, self.places = nn.Embedding(VOCABULARY, d), nn.Embedding(N, d)
        layer = nn.TransformerEncoderLayer(d, 4, 4 * d, 0.0, batch_first=True, norm_first=True)
        self.stack = nn.TransformerEncoder(layer, 1, nn.LayerNorm(d), enable_nested_tensor=False)
        self.mask = nn.Transformer.generate_square_subsequent_mask(N)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return logits."""
        X = self.words(ids) + self.places.weight
        return self.stack(X, mask=self.mask, is_causal=True) @ self.words.weight.T


def plain_loop(tokens: str, steps: str) -> None:
    """Train, and then evaluate on all that is held out, as scripts do."""
    train, val = (np.load(Path(tokens, f"{part}.npy"), mmap_mode="r") for part in ("train", "val"))
    N, model, draw = SIZES["--context-length"], Plain(), np.random.default_rng(0)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, fused=True)

    def loss(stream: np.ndarray, starts: Sequence[int]) -> torch.Tensor:
        rows = np.stack([stream[i : i + N + 1] for i in starts]).astype(np.int64)
        ids = torch.from_numpy(rows)
        return nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())

    for _ in range(int(steps)):
        optimizer.zero_grad()
        loss(train, draw.integers(len(train) - N, size=BATCH)).backward()
        optimizer.step()
    model.eval()
    total, starts = 0.0, range(0, len(val) - N, N)
    with torch.no_grad():
        for i in range(0, len(starts), BATCH):
            part = starts[i : i + BATCH]
            total += loss(val, part).item() * len(part)
    print(total / len(starts))


# --- Guitar --------------------------------------------------------------------------------------


def guitar_table(settings: argparse.Namespace) -> dict[str, Any]:
    """Measure the fingering and conversion of a piece by its notes, and training by files."""
    ours, table = (sys.executable, "-m", "slp_transformer"), {}
    for notes in settings.notes:
        tab, midi = Path(f"{notes}.txt"), Path(f"{notes}.mid")
        write_tab(long_tab(notes), tab)
        stages = {
            "convert to .mid": [*ours, "convert", tab, "-o", midi, "--steps-per-quarter", 2],
            "tab": [*ours, "tab", midi, "-o", "fingered.txt"],
            "convert to .gp5": [*ours, "convert", tab, "-o", "a.gp5", "--steps-per-quarter", 2],
        }
        row = {name: show(name, f"{notes} notes", measure(*w)) for name, w in stages.items()}
        table[f"{notes} notes"] = row
    for files in settings.files:
        folder = Path(f"tabs-{files}")
        folder.mkdir()
        corpus = make_practice_corpus()
        for i in range(files):
            write_tab(corpus[i % len(corpus)], folder / f"{i}.txt")
        words = [*ours, "train", "tabs", folder, "--out-dir", f"run-{files}", "--steps", 20]
        words += ["--context-length", 64, "--batch-size", 8, "--device", "cpu", "--quiet"]
        table[f"{files} files"] = {
            "train tabs": show("train tabs", f"{files} files", measure(*words))
        }
    return table


def long_tab(notes: int) -> Tab:
    """Return a practice piece that goes on, by the bars of others, until it has so many notes."""
    pieces, bars, count = make_practice_corpus(), [], 0
    like = (pieces[0].tuning, pieces[0].steps_per_quarter)
    for piece in itertools.cycle(pieces):
        if (piece.tuning, piece.steps_per_quarter) != like:
            continue
        for bar in piece.bars:
            if count >= notes:
                return replace(pieces[0], bars=tuple(bars))
            bars.append(bar)
            count += sum(len(event.notes) for event in bar.events)


CHILDREN = {"prepare": prepare, "tokenizers": bare_tokenizers, "loop": plain_loop}

if __name__ == "__main__":
    main()
