"""Interrupt small runs in many ways, and see that each resumes to the weights of one left alone.

    python tests/stress/interruptions.py --kills 200 --signals 100 --races 20 --full-disks 40

- kills: SIGKILL at a random moment, or at one of all operations on the run's files (the newest
  file may then be cut in half).
- signals: Ctrl-C, SIGTERM or SIGHUP at a random moment, pressed once to three times.
- races: two to four processes train in one folder, begun at once.
- full disks: no file may grow beyond a random size, or flushing to the disk fails from a random
  moment on.

Then the run is resumed. A trial is kept if every process ended as it should (with the code of its
signal, or refused in one sentence with code 2), the step that it reported as saved is saved, and
the resumed run ends in the same weights, bit for bit, with no file left over; else it is lost.

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
from contextlib import chdir, redirect_stdout, suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
import tqdm
import tqdm.auto

from slp_transformer.cli import main as command_line
from slp_transformer.data import load_moby_dick
from slp_transformer.training.run_folder import EVALUATED_SUFFIX, find_checkpoints
from tests.helpers.checkpoint_folders import checkpoint_folder

STEPS = 24
TRAIN = f"""train text text.txt --model-dim 8 --num-heads 2 --num-blocks 1 --context-length 13
    --steps {STEPS} --eval-interval 4 --batch-size 3 --dropout 0.1 --device cpu --out-dir""".split()
SIGNALS = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129}
OPERATIONS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree")
LEFT = {"config.toml", "tokens", "metrics.json"}
TIMEOUT_S = 60.0  # that a command may take


@dataclass(frozen=True)
class Ended:
    """The end of a command, and its output."""

    code: int  # less than 0 for a signal that it died of
    said: str


class Lost(Exception):
    """Raised when a trial has lost something."""


def begin(words: list[str], said: Path, prepare: Callable[[], None] | None = None) -> int:
    """Begin a command in a fork, and return its process id."""
    if child := os.fork():
        return child
    try:
        output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        for bar in (tqdm.tqdm, tqdm.auto.tqdm):  # or all forks share one lock
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
    """Wait for a command."""
    for _ in range(int(TIMEOUT_S / 0.01)):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            text = said.read_text("utf-8", errors="replace") if said.exists() else ""
            return Ended(os.waitstatus_to_exitcode(status), text)
        time.sleep(0.01)
    os.kill(child, signal.SIGABRT)  # at which faulthandler says where it is
    os.waitpid(child, 0)
    text = said.read_text("utf-8", errors="replace")
    raise Lost(f"it did not end in {TIMEOUT_S:.0f} s: {text[-3000:]}")


def run(words: list[str], prepare: Callable[[], None] | None = None) -> Ended:
    return end(begin(words, Path("said.txt"), prepare), Path("said.txt"))


def killed(draw: random.Random, whole: "Whole") -> None:
    if draw.random() < 0.5:
        child = begin([*TRAIN, "run"], Path("said.txt"))
        time.sleep(draw.uniform(0, 1.1 * whole.seconds))
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        ended = end(child, Path("said.txt"))
    else:
        number, cut = draw.randrange(whole.operations), draw.random() < 0.5
        ended = run([*TRAIN, "run"], lambda: at_operation(number, lambda: die(cut)))
    check(ended.code in (0, -signal.SIGKILL), f"ended with {ended}")
    resume()


def at_operation(number: int, act: Callable[[], None]) -> None:
    """Act just before each operation from that number on, on a file of the run."""
    seen = iter(range(number))

    def watch(event: str, arguments: tuple) -> None:
        if event in OPERATIONS and {"run", "whole"} & {*Path(str(arguments[0])).parts}:
            if next(seen, None) is None:
                act()

    sys.addaudithook(watch)


def die(cut: bool) -> None:
    """Die at once, with the newest file half-written if it is to be cut."""
    written = [path for path in Path("run").glob(".*.writing/*") if path.is_file()]
    if cut and written:
        newest = max(written, key=lambda path: path.stat().st_mtime_ns)
        os.truncate(newest, newest.stat().st_size // 2)
    os.kill(os.getpid(), signal.SIGKILL)


def signalled(draw: random.Random, whole: "Whole") -> None:
    """Ask a run to stop, and resume it."""
    name, child = draw.choice(list(SIGNALS)), begin([*TRAIN, "run"], Path("said.txt"))
    time.sleep(draw.uniform(0.02, 1.1 * whole.seconds))
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
    resume()


def raced(draw: random.Random, whole: "Whole") -> None:
    """Have several processes train in one folder: one of them does, and the others are refused."""
    outputs = [Path(f"said{n}.txt") for n in range(draw.randint(2, 4))]
    if draw.random() < 0.5:
        child = begin([*TRAIN, "run"], Path("said.txt"))
        time.sleep(draw.uniform(0.3, 0.9) * whole.seconds)
        os.kill(child, signal.SIGKILL)
        end(child, Path("said.txt"))
    words = resume_command()
    children = []
    for output in outputs:
        children.append(begin(words, output))
        time.sleep(draw.choice([0, draw.uniform(0, 0.3 * whole.seconds)]))
    ends = [end(child, output) for child, output in zip(children, outputs, strict=True)]
    check(any(each.code == 0 for each in ends), f"none trained: {ends}")
    for each in ends:
        sentences = "Another process trains", "holds a run already", "finished"
        told = any(sentence in each.said for sentence in sentences)
        check(each.code == 0 or (each.code == 2 and told), str(each))
        check("Traceback" not in each.said, each.said[-2000:])
    resume()


def full(draw: random.Random, whole: "Whole") -> None:
    """Fill the disk, make room, and resume."""
    size = draw.choice([0, 100, 1_000, 5_000, 8_000, 12_000, 20_000])
    number, limited = draw.randrange(60), draw.random() < 0.5

    def prepare() -> None:
        flush, seen = os.fsync, iter(range(number))

        def no_space(handle: int) -> None:
            if next(seen, None) is None:
                raise OSError(28, "No space left on device")
            flush(handle)

        if limited:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        else:
            os.fsync = no_space

    ended = run([*TRAIN, "run"], prepare)
    check("Traceback" not in ended.said, ended.said[-2000:])
    check(ended.code in (0, 2), str(ended))
    if ended.code == 2:
        last = ended.said.strip().splitlines()[-1:] or [""]
        check(last[0].startswith("slp-transformer: ") or not ended.said, str(ended))
    resume()


def resume_command() -> list[str]:
    """Return the command that resumes the run, or starts it where nothing is saved."""
    return ["train", "--out-dir", "run", "--resume"] if find_checkpoints("run") else [*TRAIN, "run"]


def resume() -> None:
    """Resume the run to its end, and compare."""
    if find_checkpoints("run"):
        for which in ("last", "best"):
            checkpoint_folder("run", which)
    ended = run(resume_command())
    check(ended.code == 0, f"it does not resume: {ended}")
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
    """Return a checkpoint's name, whether or not it was saved before it was evaluated too."""
    return folder.name.removesuffix(EVALUATED_SUFFIX)


def check(holds: bool, otherwise: str) -> None:
    """Count a trial as lost unless something holds."""
    if not holds:
        raise Lost(otherwise)


@dataclass(frozen=True)
class Whole:
    """The run that is left alone."""

    seconds: float
    operations: int  # on files of its folder


def run_whole() -> Whole:
    """Train the run that is left alone, twice: to measure its time, and to count its operations."""
    begun = time.monotonic()
    first = run([*TRAIN, "whole"])
    seconds = time.monotonic() - begun
    shutil.rmtree("whole")
    tally = os.open("operations", os.O_WRONLY | os.O_CREAT)
    again = run([*TRAIN, "whole"], lambda: at_operation(0, lambda: os.write(tally, b"x")))
    if first.code or again.code:
        raise SystemExit(f"The run that is left alone ended with {first} and {again}")
    return Whole(seconds, Path("operations").stat().st_size)


KINDS = {"kills": killed, "signals": signalled, "races": raced, "full_disks": full}


DEFAULTS = {"kills": 20, "signals": 10, "races": 4, "full_disks": 6}
Trial = Callable[[random.Random, Whole], None]


def campaign(counts: dict[str, int], seed: int, kinds: dict[str, Trial]) -> dict[str, Counter]:
    """Make so many trials of each kind; those that are lost are printed as they come."""
    torch.set_num_threads(1)
    results = {kind: Counter(tried=0, kept=0, lost=0) for kind in counts}
    with TemporaryDirectory(prefix="slp-transformer-") as folder, chdir(folder):
        Path("text.txt").write_text(load_moby_dick()[:6000], encoding="utf-8")
        with redirect_stdout(io.StringIO()):  # loads all that the forks then have
            command_line([*TRAIN, "loaded", "--quiet"])
        whole = run_whole()
        for kind, number in [(kind, n) for kind, count in counts.items() for n in range(count)]:
            results[kind].update(tried=1)
            try:
                kinds[kind](random.Random(f"{seed} {kind} {number}"), whole)
                results[kind].update(kept=1)
            except (Lost, ValueError, OSError) as lost:
                results[kind].update(lost=1)
                print(f"lost, {kind} {number}: {lost!r}", flush=True)
            shutil.rmtree("run", ignore_errors=True)
    return results


def main(about: str, kinds: dict[str, Trial], defaults: dict[str, int]) -> int:
    parser = argparse.ArgumentParser(description=about.partition("\n")[0])
    for kind, default in defaults.items():
        flag = f"--{kind.replace('_', '-')}"
        parser.add_argument(flag, type=int, default=default, help=f"trials [{default}]")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other moments [0]")
    parser.add_argument("--out", type=Path, metavar="FILE", help="also save the counts as JSON")
    arguments, begun = parser.parse_args(), time.monotonic()
    counts = {kind: getattr(arguments, kind) for kind in kinds}
    results = campaign(counts, arguments.seed, kinds)
    for kind, count in results.items():
        words = ", ".join(f"{name} {number}" for name, number in count.items())
        print(f"{kind.replace('_', ' ')}: {words}")
    if arguments.out is not None:
        content = {
            "command": f"python tests/stress/{Path(sys.argv[0]).name} " + " ".join(sys.argv[1:]),
            "date": date.today().isoformat(),
            "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
            "versions": {"python": platform.python_version(), "torch": torch.__version__},
            "seconds": round(time.monotonic() - begun),
            "results": results,
        }
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 1 if any(count["lost"] for count in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main(__doc__, KINDS, DEFAULTS))
