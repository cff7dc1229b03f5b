"""Train one long run while much goes wrong, and compare it with one that is left alone.

    python tests/stress/soak.py --steps 20000 --seed 0

Again and again the run is resumed, and then killed, asked to stop, or given a full disk; between
two of these its folder may be copied away and back. At the end its last checkpoint must be that of
the run left alone, bit for bit. The latter's memory and open files are sampled: from the second
quarter of its time to the last the memory must not grow by more than 8 MiB, nor the files that are
open in every sample of a quarter (a checkpoint that is being written is open only for a moment).
"""

import argparse
import io
import os
import random
import resource
import shutil
import signal
import threading
import time
from collections import Counter
from contextlib import chdir, redirect_stdout, suppress
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import interruptions
import torch
from interruptions import begin, check, command_line, end, run

from slp_transformer.data import load_moby_dick
from slp_transformer.training.run_folder import checkpoint_folder, find_checkpoints

GROWTH_KIB = 8 << 10
RESUME = ["train", "--out-dir", "run", "--resume"]
SAMPLES = Path("samples.txt")
FILES = ("model.safetensors", "training.json", "state.safetensors")


def sample() -> None:
    """Write memory in KiB and the number of open files of this process, fifty times a second."""

    def write() -> None:
        while not find_checkpoints("whole"):
            time.sleep(0.05)
        while True:
            status = Path("/proc/self/status").read_text("utf-8")
            memory = status.partition("VmRSS:")[2].split()[0]
            with open(SAMPLES, "a", encoding="utf-8") as file:
                print(memory, len(os.listdir("/proc/self/fd")), file=file)
            time.sleep(0.02)

    threading.Thread(target=write, daemon=True).start()


def growth() -> tuple[int, int]:
    """Return by how much memory and open files grew from the second quarter to the last."""
    rows = [tuple(map(int, line.split())) for line in SAMPLES.read_text("utf-8").splitlines()]
    quarter = len(rows) // 4
    parts = (rows[quarter : 2 * quarter], rows[3 * quarter : -1])
    (memory, files), (memory_later, files_later) = (zip(*part, strict=True) for part in parts)
    return int(median(memory_later) - median(memory)), min(files_later) - min(files)


def disturb(draw: random.Random, train: list[str], seconds: float) -> str:
    """Resume the run, and let one thing go wrong; return what."""
    words = (
        ["train", "--out-dir", "run", "--resume"] if find_checkpoints("run") else [*train, "run"]
    )
    what = draw.choice(["kill", "SIGINT", "SIGTERM", "full disk", "move"])
    if what == "move" and Path("run").exists():
        shutil.copytree("run", "away")
        shutil.rmtree("run")
        shutil.copytree("away", "run")
        shutil.rmtree("away")
    elif what == "full disk":
        size = draw.choice([0, 1_000, 8_000, 20_000])
        ended = run(words, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)))
        check(ended.code in (0, 2) and "Traceback" not in ended.said, str(ended))
    else:
        child = begin(words, Path("said.txt"))
        time.sleep(draw.uniform(0.5, 0.5 + seconds / 10))
        with suppress(ProcessLookupError):
            os.kill(child, getattr(signal, what, signal.SIGKILL))
        ended = end(child, Path("said.txt"))
        check("Traceback" not in ended.said, ended.said[-2000:])
    return what


def soak(steps: int, seed: int) -> str:
    """Make both runs, and return what happened.

    Raises:
        Lost: if they differ, or memory or open files grew.
    """
    train = f"""train text text.txt --model-dim 8 --num-heads 2 --num-blocks 1 --context-length 13
        --steps {steps} --eval-interval {steps // 100} --batch-size 3 --dropout 0.1 --quiet
        --device cpu --out-dir""".split()
    interruptions.TIMEOUT_S = 7200.0
    torch.set_num_threads(1)
    draw, happened = random.Random(seed), Counter[str]()
    with TemporaryDirectory(prefix="slp-transformer-") as folder, chdir(folder):
        Path("text.txt").write_text(load_moby_dick()[:6000], encoding="utf-8")
        with redirect_stdout(io.StringIO()):  # loads all that the forks then have
            command_line([*train, "loaded", "--steps", "2", "--eval-interval", "1"])
        begun = time.monotonic()
        whole = run([*train, "whole"], sample)
        check(whole.code == 0, str(whole))
        seconds, (memory, files) = time.monotonic() - begun, growth()
        last = f"step-{steps:08d}"
        while not (Path("run") / last).exists():
            happened[disturb(draw, train, seconds)] += 1
        run(RESUME)
        for name in FILES:
            mine, its = (checkpoint_folder(one) / name for one in ("run", "whole"))
            check(mine.read_bytes() == its.read_bytes(), f"{name} is another one")
    check(memory <= GROWTH_KIB and files <= 0, f"grew by {memory} KiB, {files} open files")
    what = ", ".join(f"{name} {count}" for name, count in sorted(happened.items()))
    return (
        f"{steps} steps in {seconds:.0f} s; the same after {what}; memory grew by {memory} KiB, "
        f"open files by {files}"
    )


def main() -> None:
    """Soak, and say what happened."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=2000, help="of the run [2000]")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other moments [0]")
    arguments = parser.parse_args()
    print(soak(arguments.steps, arguments.seed))


if __name__ == "__main__":
    main()
