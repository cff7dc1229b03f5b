"""Interrupt small runs in many ways, and see that each goes on to the weights of one left in peace.

    python tests/stress/interruptions.py --kills 200 --signals 100 --races 20 --full-disks 40

- kills: SIGKILL at a random moment, or at a random operation on a file of the run.
- signals: Ctrl-C, SIGTERM or SIGHUP at a random moment, pressed once to three times.
- races: two to four processes train in one folder, begun at once.
- full disks: no file may grow beyond a random size, or flushing to the disk fails from a random
  moment on.

Then the run is resumed. A trial is kept if every process ended as it should (with the code of its
signal, or refused in one sentence with code 2), what it said to be kept is kept, and the resumed
run ends in the same weights, bit for bit, with no file left over; it is lost otherwise, and told.

Each command runs in a fork of this process, with PyTorch loaded, as `slp-transformer` would.
"""

import argparse
import faulthandler
import io
import json
import os
import platform
import random
import re
import resource
import shutil
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
import tqdm
import tqdm.auto

from slp_transformer.cli import main as command_line
from slp_transformer.data import load_moby_dick
from slp_transformer.training.run_folder import (
    EVALUATED_SUFFIX,
    checkpoint_folder,
    find_checkpoints,
)

SIZES = ["--model-dim", "8", "--num-heads", "2", "--num-blocks", "1", "--context-length", "13"]
STEPS = 24
HOW = [
    "--steps",
    str(STEPS),
    "--eval-interval",
    "4",
    "--batch-size",
    "3",
    "--dropout",
    "0.1",
    "--device",
    "cpu",
]
TRAIN = ["train", "text", "text.txt", *SIZES, *HOW, "--out-dir"]
SIGNALS = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129}
OPERATIONS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree")
LEFT = {"config.toml", "tokens", "metrics.json"}
SECONDS = 60.0  # that a command may take at the most


@dataclass(frozen=True)
class Ended:
    """How a command ended: its code, less than 0 for a signal that it died of, and what it said."""

    code: int
    said: str


class Lost(Exception):
    """What a trial lost."""


# --- One command -------------------------------------------------------------------------------


def begin(words: list[str], said: Path, prepare: Callable[[], None] | None = None) -> int:
    """Begin a command in a fork; its process id."""
    if child := os.fork():
        return child
    try:
        output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        for name, how in zip(
            SIGNALS, [signal.default_int_handler] + [signal.SIG_DFL] * 2, strict=True
        ):
            signal.signal(getattr(signal, name), how)
        for bar in (
            tqdm.tqdm,
            tqdm.auto.tqdm,
        ):  # or all forks share one lock
            bar.set_lock(threading.RLock())
        faulthandler.enable(all_threads=True)
        sys.argv = ["slp-transformer", *words]
        if prepare is not None:
            prepare()
        os._exit(command_line())
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def end(child: int, said: Path) -> Ended:
    """Wait for a command.

    Raises:
        Lost: if it does not end.
    """
    for _ in range(int(SECONDS / 0.01)):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            text = said.read_text("utf-8", errors="replace") if said.exists() else ""
            return Ended(os.waitstatus_to_exitcode(status), text)
        time.sleep(0.01)
    os.kill(child, signal.SIGABRT)  # at which faulthandler says where it is
    os.waitpid(child, 0)
    text = said.read_text("utf-8", errors="replace")
    raise Lost(f"it did not end in {SECONDS:.0f} s: {text[-3000:]}")


def run(words: list[str], prepare: Callable[[], None] | None = None) -> Ended:
    """A command from its beginning to its end."""
    return end(begin(words, Path("said.txt"), prepare), Path("said.txt"))


# --- What may happen to it ---------------------------------------------------------------------


def killed(draw: random.Random, took: float) -> None:
    """Kill a run, and go on with it."""
    if draw.random() < 0.5:
        child = begin([*TRAIN, "run"], Path("said.txt"))
        time.sleep(draw.uniform(0, 1.1 * took))
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        ended = end(child, Path("said.txt"))
    else:
        number = draw.randrange(400)
        ended = run([*TRAIN, "run"], lambda: die_at_operation(number))
    check(ended.code in (0, -signal.SIGKILL), f"ended with {ended}")
    go_on()


def die_at_operation(number: int) -> None:
    """Die just before the operation of that number on a file of the run."""
    seen = iter(range(number))

    def watch(event: str, arguments: tuple) -> None:
        if event in OPERATIONS and "run" in Path(str(arguments[0])).parts:
            if next(seen, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


def signalled(draw: random.Random, took: float) -> None:
    """Ask a run to stop, and go on with it."""
    name, child = draw.choice(list(SIGNALS)), begin([*TRAIN, "run"], Path("said.txt"))
    time.sleep(draw.uniform(0.02, 1.1 * took))
    for _ in range(draw.randint(1, 3)):
        with suppress(ProcessLookupError):
            os.kill(child, getattr(signal, name))
        time.sleep(draw.uniform(0, 0.02))
    ended = end(child, Path("said.txt"))
    check("Traceback" not in ended.said, f"{name}: {ended.said[-2000:]}")
    early = ended.code == -getattr(signal, name)  # before the command heard signals at all
    check(ended.code in (0, SIGNALS[name]) or early, f"{name} ended with {ended}")
    if told := re.search(rf"step (\d+) of {STEPS} is saved", ended.said):
        kept = json.loads((checkpoint_folder("run") / "checkpoint.json").read_text("utf-8"))["step"]
        check(kept == int(told[1]), f"step {kept} is kept, not {told[1]}")
    elif ended.code != 0 and "Trained" not in ended.said:
        check(not Path("run").exists() or early, f"something is left: {ended}")
    go_on()


def raced(draw: random.Random, took: float) -> None:
    """Have several processes train in one folder: one of them does, and the others are told."""
    outputs = [Path(f"said{n}.txt") for n in range(draw.randint(2, 4))]
    if draw.random() < 0.5:
        child = begin([*TRAIN, "run"], Path("said.txt"))
        time.sleep(draw.uniform(0.3, 0.9) * took)
        os.kill(child, signal.SIGKILL)
        end(child, Path("said.txt"))
    words = resuming()
    children = []
    for output in outputs:
        children.append(begin(words, output))
        time.sleep(draw.choice([0, draw.uniform(0, 0.3 * took)]))
    ends = [end(child, output) for child, output in zip(children, outputs, strict=True)]
    check(any(each.code == 0 for each in ends), f"none trained: {ends}")
    for each in ends:
        sentences = "Another process trains", "holds a run already", "finished"
        told = any(sentence in each.said for sentence in sentences)
        check(each.code == 0 or (each.code == 2 and told), str(each))
        check("Traceback" not in each.said, each.said[-2000:])
    go_on()


def full(draw: random.Random, took: float) -> None:
    """Fill the disk, make room, and go on."""
    if draw.random() < 0.5:
        size = draw.choice([0, 100, 1_000, 5_000, 8_000, 12_000, 20_000])

        def prepare() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    else:
        number = draw.randrange(60)

        def prepare() -> None:
            flush, seen = os.fsync, iter(range(number))

            def no_space(handle: int) -> None:
                if next(seen, None) is None:
                    raise OSError(28, "No space left on device")
                flush(handle)

            os.fsync = no_space

    ended = run([*TRAIN, "run"], prepare)
    check("Traceback" not in ended.said, ended.said[-2000:])
    check(ended.code in (0, 2), str(ended))
    if ended.code == 2:
        last = ended.said.strip().splitlines()[-1:] or [""]
        check(last[0].startswith("slp-transformer: ") or not ended.said, str(ended))
    go_on()


# --- Going on ----------------------------------------------------------------------------------


def resuming() -> list[str]:
    """The command that goes on with the run, or begins it where nothing is kept."""
    return ["train", "--out-dir", "run", "--resume"] if find_checkpoints("run") else [*TRAIN, "run"]


def go_on() -> None:
    """Go on with the run to its end, and compare.

    Raises:
        Lost: if it does not come to what a run left in peace comes to.
    """
    if find_checkpoints("run"):
        for which in ("last", "best"):
            checkpoint_folder("run", which)
    ended = run(resuming())
    finished = ended.code == 2 and "finished" in ended.said
    check(ended.code == 0 or finished, f"it does not go on: {ended}")
    for which in ("last", "best"):
        mine, whole = (checkpoint_folder(folder, which) for folder in ("run", "whole"))
        check(step_of(mine) == whole.name, f"the {which} is {mine.name}, not {whole.name}")
        for name in ("model.safetensors", "training.json", "state.safetensors"):
            same = (mine / name).read_bytes() == (whole / name).read_bytes()
            check(same, f"{mine / name} is another one")
    steps = {checkpoint_folder("whole", which).name for which in ("last", "best")}
    left = {step_of(path) for path in Path("run").iterdir()}
    check(left <= LEFT | steps, f"left over: {left - LEFT - steps}")


def step_of(folder: Path) -> str:
    """A checkpoint's name, whether or not it was kept before it was measured too."""
    return folder.name.removesuffix(EVALUATED_SUFFIX)


def check(holds: bool, otherwise: str) -> None:
    """Raise what is lost, unless it is not.

    Raises:
        Lost: saying what.
    """
    if not holds:
        raise Lost(otherwise)


# --- Campaigns ---------------------------------------------------------------------------------

KINDS = {"kills": killed, "signals": signalled, "races": raced, "full_disks": full}


def campaign(counts: dict[str, int], seed: int) -> dict[str, Counter]:
    """So many trials of each kind; those that were lost are told as they come."""
    torch.set_num_threads(1)
    results, home = {}, Path.cwd()
    with TemporaryDirectory(prefix="slp-transformer-") as folder:
        os.chdir(folder)
        try:
            Path("text.txt").write_text(load_moby_dick()[:6000], encoding="utf-8")
            with redirect_stdout(io.StringIO()):  # loads all that the forks then have
                command_line([*TRAIN, "loaded", "--quiet"])
            begun = time.monotonic()
            ended = run([*TRAIN, "whole"])
            took = time.monotonic() - begun
            if ended.code != 0:
                raise SystemExit(f"The run that is left in peace ended with {ended}")
            for kind, count in counts.items():
                results[kind] = Counter(tried=0, kept=0, lost=0)
                for number in range(count):
                    results[kind].update(tried=1)
                    try:
                        KINDS[kind](random.Random(f"{seed} {kind} {number}"), took)
                        results[kind].update(kept=1)
                    except (Lost, ValueError, OSError) as lost:
                        results[kind].update(lost=1)
                        print(f"lost, {kind} {number}: {lost!r}", flush=True)
                    shutil.rmtree("run", ignore_errors=True)
        finally:
            os.chdir(home)
    return results


def main() -> int:
    """Run the campaigns, and count."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for kind, default in (("kills", 20), ("signals", 10), ("races", 4), ("full-disks", 6)):
        parser.add_argument(f"--{kind}", type=int, default=default, help=f"trials [{default}]")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other moments [0]")
    parser.add_argument("--out", type=Path, metavar="FILE", help="also keep the counts as JSON")
    arguments = parser.parse_args()
    counts = {kind: getattr(arguments, kind) for kind in KINDS}
    begun = time.monotonic()
    results = campaign(counts, arguments.seed)
    for kind, count in results.items():
        words = ", ".join(f"{what} {count[what]}" for what in ("tried", "kept", "lost"))
        print(f"{kind.replace('_', ' ')}: {words}")
    if arguments.out is not None:
        content = {
            "command": "python tests/stress/interruptions.py " + " ".join(sys.argv[1:]),
            "date": date.today().isoformat(),
            "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
            "versions": {"python": platform.python_version(), "torch": torch.__version__},
            "seconds": round(time.monotonic() - begun),
            "results": {kind: dict(count) for kind, count in results.items()},
        }
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 1 if any(count["lost"] for count in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
