"""Train one long run while much goes wrong, and compare it with one that is left alone.

    python tests/stress/soak.py --steps 20000 --seed 0

One process trains to four fifths of the steps, two as torchrun would start them go on to nine
tenths, and one makes the rest. Again and again the run is resumed, and then killed, asked to stop,
or given a full disk; between two of these its folder may be copied away and back. At the end its
last checkpoint must be that of the run left alone, bit for bit. The memory and open files of the
latter's first process are sampled: from the second quarter of its time to the last the memory must
not grow by more than 8 MiB, nor the files that are open in every sample of a quarter (a checkpoint
being written is open only for a moment).
"""

import argparse
import io
import os
import random
import resource
import shutil
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import chdir, redirect_stdout, suppress
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import interruptions
import torch
from interruptions import Ended, begin, check, command_line, end

from slp_transformer.data import load_moby_dick
from slp_transformer.training.run_folder import checkpoint_folder, find_checkpoints

GROWTH_KIB = 8 << 10
SAMPLES = Path("samples.txt")
FILES = ("model.safetensors", "training.json", "state.safetensors")


def sample() -> None:
    """Write the memory in KiB and the number of open files, fifty times a second."""

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


def start(
    words: list[str], processes: int, prepare: Callable[[], None] = lambda: None
) -> list[tuple[int, Path]]:
    """Begin a command in so many processes, with the environment that torchrun would give them.

    Returns:
        The id of each process, and the file of what it says.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def join(rank: int) -> None:
        if processes > 1:
            places = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": processes}
            places |= {"LOCAL_WORLD_SIZE": processes, "MASTER_ADDR": "127.0.0.1"}
            os.environ.update({name: str(place) for name, place in places.items()})
            os.environ["MASTER_PORT"] = str(port)
        prepare()

    files = [Path(f"said{rank}.txt") for rank in range(processes)]
    return [(begin(words, file, partial(join, rank)), file) for rank, file in enumerate(files)]


def finish(started: list[tuple[int, Path]]) -> list[Ended]:
    """Wait for the processes of a command, none of which may end in a traceback."""
    ends = [end(*each) for each in started]
    for ended in ends:
        check("Traceback" not in ended.said, ended.said[-2000:])
    return ends


def kill(children: list[int]) -> None:
    """Kill processes that have not ended."""
    for child in children:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def disturb(draw: random.Random, words: list[str], processes: int, patience: float) -> str:
    """Begin or resume the run, and let one thing go wrong, soon; return what."""
    ways = ["kill", "SIGINT", "SIGTERM", "full disk", "move"]
    what = draw.choice(ways if Path("run").exists() else ways[:-1])
    if what == "move":
        shutil.copytree("run", "away")
        shutil.rmtree("run")
        shutil.copytree("away", "run")
        shutil.rmtree("away")
    elif what == "full disk":
        size = draw.choice([0, 1_000, 8_000, 20_000])
        limits = (resource.RLIMIT_FSIZE, (size, size))
        for ended in finish(start(words, processes, lambda: resource.setrlimit(*limits))):
            check(ended.code in (0, 2), str(ended))
    else:
        started = start(words, processes)
        time.sleep(draw.uniform(0.5, 0.5 + patience))
        if what == "kill":
            kill([draw.choice(started)[0]])
            time.sleep(0.1)
        for child, _ in started:  # torchrun ends the others when one has died
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGTERM if what == "kill" else getattr(signal, what))
        # Who still waits for another to connect hears no signal: torchrun kills it after 30 s.
        timer = threading.Timer(30, kill, [[child for child, _ in started if processes > 1]])
        timer.start()
        finish(started)
        timer.cancel()
    return what


def soak(steps: int, seed: int) -> str:
    """Make both runs, and return what happened.

    Raises:
        Lost: if they differ, or memory or open files grew.
    """
    train = f"""train text text.txt --model-dim 8 --num-heads 2 --num-blocks 1 --context-length 13
        --eval-interval {steps // 100} --batch-size 4 --dropout 0.1 --quiet --device cpu
        --out-dir""".split()
    interruptions.TIMEOUT_S = 7200.0
    torch.set_num_threads(1)
    draw, happened = random.Random(seed), Counter[str]()
    with TemporaryDirectory(prefix="slp-transformer-") as folder, chdir(folder):
        Path("text.txt").write_text(load_moby_dick()[:6000], encoding="utf-8")
        with redirect_stdout(io.StringIO()):  # loads all that the forks then have
            command_line([*train, "loaded", "--steps", "2", "--eval-interval", "1"])
        for last, processes in ((steps * 8 // 10, 1), (steps * 9 // 10, 2), (steps, 1)):
            begun = time.monotonic()
            first = not find_checkpoints("whole")
            words = [*train, "whole", "--steps", str(last), *([] if first else ["--resume"])]
            for ended in finish(start(words, processes, sample if first else lambda: None)):
                check(ended.code == 0, str(ended))
            took = time.monotonic() - begun
            if first:
                seconds, (memory, files) = took, growth()
            patience = took / 20
            while not (Path("run") / f"step-{last:08d}").exists():
                resume = ["--resume"] if find_checkpoints("run") else []
                words = [*train, "run", "--steps", str(last), *resume]
                happened[disturb(draw, words, processes, patience)] += 1
                patience += 0.5  # however slow the machine, it comes to the end
            finish(start(words, processes))
            for name in FILES:
                mine, its = (checkpoint_folder(one) / name for one in ("run", "whole"))
                check(mine.read_bytes() == its.read_bytes(), f"{name} of step {last} is another")
    check(memory <= GROWTH_KIB and files <= 0, f"grew by {memory} KiB, {files} open files")
    what = ", ".join(f"{name} {count}" for name, count in sorted(happened.items()))
    return (
        f"{steps} steps, the first four fifths in {seconds:.0f} s; the same after {what}; "
        f"memory grew by {memory} KiB, open files by {files}"
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
