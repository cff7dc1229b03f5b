"""Damage the files of small runs in many ways, and see what the command line makes of each.

    python tests/stress/mutations.py --count 2000 --seed 0

Each trial copies a run, damages one file (bits, lengths, types, keys, depth, numbers, tensors) and
gives one command to it: `info`, `generate`, `evaluate`, `translate` or `train --resume`. It
is kept if the command does its work or refuses in one sentence with code 2, leaves the other files
alone, and takes at most 5 seconds of a core and 1 GiB; it is lost otherwise, and told. The last
lines count both. Each command runs in a fork of this process, with PyTorch loaded.
"""

import argparse
import json
import math
import os
import random
import shutil
import signal
import sys
import time
import tomllib
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import safetensors.torch
import torch

from slp_transformer.cli import main as command_line
from slp_transformer.data import load_moby_dick
from slp_transformer.data.bundled_pairs import number_to_english, number_to_spanish

SECONDS, BYTES = 5.0, 1 << 30  # of a core's time, so that a busy machine does not change a verdict
MAX_CPU_SECONDS = 60  # of a command that does not end
HANGS = 1800.0  # seconds by the clock, on a very busy machine, after which one will not end
LIMIT = 3 << 30  # bytes of data, beyond which neither a campaign nor a command gets any more
SMALL = """--model-dim 8 --num-heads 2 --num-blocks 1 --context-length 13 --steps 4
    --eval-interval 2 --batch-size 3 --device cpu --quiet""".split()
RUNS = {
    "characters": "text text.txt",
    "words": "text text.txt --tokenizer words --vocab-size 50",
    "bpe": "text text.txt --tokenizer bpe --vocab-size 300",
    "sinusoidal": "text text.txt --positions sinusoidal",
    "guitar": "tabs",
    "translation": "pairs pairs.csv --tokenizer words --vocab-size 50 --batch-tokens 60",
}
COMMANDS = {
    "info": ["info", "RUN"],
    "generate": ["generate", "RUN", "--max-new-tokens", "20", "--device", "cpu"],
    "evaluate": ["evaluate", "RUN", "--device", "cpu"],
    "translate": ["translate", "RUN", "five", "--device", "cpu"],
    "resume": ["train", "--out-dir", "RUN", "--resume", "--steps", "5", "--quiet"],
}
ODD = [
    None, True, False, -1, 0, 1, 2, 10**9, 10**30, -(10**30), 0.5, 1e308, math.nan, math.inf,
    "", "x", "none", "../..", "/", "\x00", "é" * 5000, [], {}, [[]], {"a": {}}, [None] * 1000,
]  # fmt: skip


@dataclass(frozen=True)
class Trial:
    """What was done to something of a kind, and what came of it.

    Attributes:
        problem: what is wrong with that; empty where all is well.
    """

    kind: str
    damage: str
    outcome: str
    seconds: float
    mebibytes: int
    problem: str


# --- Damage --------------------------------------------------------------------------------------


def damage(path: Path, draw: random.Random) -> str:
    """Damage a file in one way, and say in which."""
    ways = [flip, flip, cut, insert, vanish]
    if path.suffix == ".json":
        ways += [change_json] * 12 + [nest]
    if path.suffix == ".toml":
        ways += [change_toml] * 8 + [nest]
    if path.suffix == ".safetensors":
        ways += [change_weights] * 10
    return draw.choice(ways)(path, draw)


def flip(path: Path, draw: random.Random) -> str:
    content = bytearray(path.read_bytes())
    places = [draw.randrange(len(content)) for _ in range(draw.choice([1, 1, 4, 100]))]
    for place in places:
        content[place] ^= 1 << draw.randrange(8)
    path.write_bytes(content)
    return f"{len(places)} bits turned, the first at byte {places[0]}"


def cut(path: Path, draw: random.Random) -> str:
    content = path.read_bytes()
    size = draw.choice([0, 1, len(content) - 1, draw.randrange(len(content))])
    path.write_bytes(content[:size])
    return f"cut to {size} of {len(content)} bytes"


def insert(path: Path, draw: random.Random) -> str:
    content, size = path.read_bytes(), draw.choice([1, 10, 5000])
    place = draw.randrange(len(content) + 1)
    path.write_bytes(content[:place] + draw.randbytes(size) + content[place:])
    return f"{size} bytes put in at {place}"


def vanish(path: Path, draw: random.Random) -> str:
    """Remove a file, or put a folder in its place."""
    path.unlink()
    if draw.random() < 0.5:
        path.mkdir()
        return "a folder in its place"
    return "removed"


def nest(path: Path, draw: random.Random) -> str:
    if path.suffix == ".toml":
        path.write_text("a = " + "[" * 100_000, encoding="utf-8")
        return "nested deeply"
    place = draw.choice(["whole", *json.loads(path.read_text(encoding="utf-8"))])
    deep = draw.choice(["[", '{"a": ']) * draw.choice([300, 100_000])
    text = deep if place == "whole" else f'{{"{place}": {deep}'
    path.write_text(text, encoding="utf-8")
    return f"nested {len(deep)} deep at {place}"


def places_in(content: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in JSON: what holds it, and by which key."""
    keys = content if isinstance(content, dict) else range(len(content))
    for key in keys:
        yield content, key
        if isinstance(content[key], dict | list):
            yield from places_in(content[key])


def change(content: Any, draw: random.Random) -> str:
    """Change, remove or add one thing in JSON."""
    holder, key = draw.choice(list(places_in(content)) or [([None], 0)])
    way = draw.choice(["change", "change", "change", "remove", "add", "swap"])
    if way == "remove":
        del holder[key]
    elif way == "add" and isinstance(holder, dict):
        holder["unheard_of"] = draw.choice(ODD)
    elif way == "swap":
        other, place = draw.choice(list(places_in(content)))
        holder[key] = json.loads(json.dumps(other[place]))
    else:
        holder[key] = draw.choice(ODD)
        return f"{key!r} becomes {holder[key]!r:.40}"
    return f"{way} {key!r}"


def change_json(path: Path, draw: random.Random) -> str:
    content = json.loads(path.read_text(encoding="utf-8"))
    said = change(content, draw)
    path.write_text(json.dumps(content), encoding="utf-8")
    return said


def change_toml(path: Path, draw: random.Random) -> str:
    import tomli_w

    content = tomllib.loads(path.read_text(encoding="utf-8"))
    said = change(content, draw)
    with suppress(TypeError, ValueError):
        path.write_text(tomli_w.dumps(content), encoding="utf-8")
    return said


def other_tensor(tensor: torch.Tensor, draw: random.Random) -> torch.Tensor:
    """A tensor that does not belong where this one does."""
    return draw.choice([
        tensor.flatten()[:0], tensor.flatten()[:-1], torch.full_like(tensor.float(), math.nan),
        torch.full_like(tensor.float(), 1e38), tensor.to(torch.int64), tensor.to(torch.float16),
        tensor.unsqueeze(0), torch.randint_like(tensor, 0, 200),
    ]).clone()  # fmt: skip


def change_weights(path: Path, draw: random.Random) -> str:
    """Change one tensor of the weights or of the training state."""
    weights = safetensors.torch.load_file(path)
    name = draw.choice(sorted(weights))
    way = draw.choice(["remove", "rename", "change", "change", "change"])
    if way == "change":
        weights[name] = other_tensor(weights[name], draw)
        way = f"{weights[name].dtype} {tuple(weights[name].shape)} for"
    else:
        tensor = weights.pop(name)
        if way == "rename":
            weights["unheard.of"] = tensor
    safetensors.torch.save_file(weights, path)
    return f"{way} {name}"


def fix_sizes(folder: Path) -> None:
    """Have the manifest say the sizes as they are, so that the damage is met further in."""
    with suppress(OSError):  # the damage may be that it is a folder
        (folder / "checksums.json").unlink()
    path = folder / "checkpoint.json"
    with suppress(ValueError, OSError, LookupError, TypeError, AttributeError, RecursionError):
        manifest = json.loads(path.read_text(encoding="utf-8"))
        for name in manifest["files"]:
            manifest["files"][name] = (folder / name).stat().st_size
        manifest.pop("crc32", None)  # as older versions wrote it
        path.write_text(json.dumps(manifest), encoding="utf-8")


# --- Trials --------------------------------------------------------------------------------------


def make_runs(folder: Path) -> None:
    (folder / "text.txt").write_text(load_moby_dick()[:3000], encoding="utf-8")
    pairs = [(number_to_english(n), number_to_spanish(n)) for n in range(99)]
    table = "".join(f"{source},{target}\n" for source, target in [("English", "Spanish"), *pairs])
    (folder / "pairs.csv").write_text(table, encoding="utf-8")
    for name, words in RUNS.items():
        words = words.replace("text.txt", f"{folder}/text.txt")
        words = words.replace("pairs.csv", f"{folder}/pairs.csv").split()
        if unheard(["train", *words, "--out-dir", str(folder / name), *SMALL]):
            raise RuntimeError(f"The run {name} could not be made.")
    # Each command is given to sound runs: what is imported on the way, forks need not import.
    for name in ("characters", "guitar", "translation"):
        shutil.copytree(folder / name, folder / "sound")
        for command, words in COMMANDS.items():
            code = unheard([str(folder / "sound") if word == "RUN" else word for word in words])
            suits = (command == "translate") <= (name == "translation") and (
                command != "generate" or name != "translation"
            )
            if code != (0 if suits else 2):
                raise RuntimeError(f"{command} of the sound run {name} ended with {code}.")
        shutil.rmtree(folder / "sound")


def unheard(words: list[str]) -> int:
    """The exit code of a command, without its words."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        with redirect_stdout(nowhere), redirect_stderr(nowhere):
            return command_line(words)


def one_trial(folder: Path, number: int, seed: int) -> Trial:
    """Damage a copy of a run, and give it a command."""
    draw = random.Random(f"{seed} {number}")
    name, command = draw.choice(sorted(RUNS)), draw.choice(sorted(COMMANDS))
    run = folder / "trial"
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(folder / name, run)
    files = sorted(p for p in run.rglob("*") if p.is_file() and p.stat().st_size)
    weights = [1 if path.suffix == ".npy" else 3 for path in files]
    path = draw.choices(files, weights)[0]
    told = damage(path, draw)
    if draw.random() < 0.7:
        fix_sizes(path.parent)
    before = contents(run)
    words = [str(run) if word == "RUN" else word for word in COMMANDS[command]]
    return give(words, folder, name, f"{path.relative_to(run)}, {told}, {command}", run, before)


def give(words, folder: Path, kind: str, told: str, run: Path, before: dict[str, bytes]) -> Trial:
    """Give a command to a damaged folder, and judge how it ends."""
    code, seconds, memory, said = in_a_fork(words, folder / "said.txt")
    changed = code == 2 and contents(run) != before
    problem = verdict(code, seconds, memory, said, changed)
    if problem:
        problem += f": {said.strip().splitlines()[-3:]}"
    outcome = {0: "did their work", 2: "refused"}.get(code, f"ended with {code}")
    return Trial(kind, told, outcome, seconds, memory >> 20, problem)


def contents(run: Path) -> dict[str, bytes]:
    """What the files of a run hold; config.toml may be written again, and a lock left."""
    return {
        str(path.relative_to(run)): path.read_bytes()
        for path in run.rglob("*")
        if path.is_file() and path.name not in ("config.toml", ".lock")
    }


def verdict(code: int | None, seconds: float, memory: int, said: str, changed: bool) -> str:
    """What is wrong with how a command ended; nothing, if it ended well."""
    sentences = [line for line in said.splitlines() if line.startswith("slp-transformer:")]
    if seconds > SECONDS or code is None:
        return "too slow"
    if memory > BYTES:
        return f"{memory >> 20} MiB"
    if "Traceback" in said or code not in (0, 2):
        return f"ended with {code}"
    if code == 2 and len(sentences) != 1:
        return "not one sentence"
    if "panicked" in said:
        return "a panic is shown"
    if "not enough memory" in said:
        return "out of memory"
    return "files were changed" if changed else ""


def in_a_fork(words: list[str], said: Path) -> tuple[int | None, float, int, str]:
    """Exit code, seconds, bytes and words of a command in a fork of this process."""
    begun, seconds = time.monotonic(), 0.0
    child = os.fork()
    if child == 0:
        code = 1
        limit("RLIMIT_CPU", MAX_CPU_SECONDS)
        with open(said, "w", encoding="utf-8") as out:
            os.dup2(out.fileno(), 1)
            os.dup2(out.fileno(), 2)
            high_water(reset=True)
            before = status_bytes("RssAnon")
            try:
                code = command_line(words)
            except BaseException:
                traceback.print_exc()
            # A fork has its parent's memory, but maps files anew as it needs them.
            grown = high_water() - status_bytes("RssFile") - status_bytes("RssShmem") - before
            print(f"peak {max(0, grown)}", flush=True)
            sys.stderr.flush()
        os._exit(code)
    code = None
    while code is None and time.monotonic() - begun < HANGS:
        ended, status, used = os.wait4(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            seconds = used.ru_utime + used.ru_stime
        else:
            time.sleep(0.002)
    if code is None:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    text = said.read_text(encoding="utf-8", errors="replace")
    text, told, peak = text.rpartition("peak ")
    return code, seconds, int(peak) if told else 0, text if told else peak


def high_water(reset: bool = False) -> int:
    """The most memory that this process has had, in bytes; 0 where the system does not say."""
    with suppress(OSError):
        if reset:
            Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    return status_bytes("VmHWM")


def status_bytes(name: str) -> int:
    """What the system says of this process's memory, in bytes; 0 where it does not say."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) << 10
    return 0


def limit(name: str, most: int) -> None:
    """Limit what this process and its forks get of a resource, where the system can."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        which = getattr(resource, name)
        resource.setrlimit(which, (most, resource.getrlimit(which)[1]))


def make_trials(trials: Iterable[Trial]) -> list[Trial]:
    """Make trials one after the other; those that are lost are printed as they come."""
    made = []
    for number, trial in enumerate(trials):
        made.append(trial)
        if trial.problem:
            print(f"lost, number {number}: {trial}", flush=True)
    return made


def campaign(count: int, seed: int, make=make_runs, one_trial=one_trial) -> list[Trial]:
    torch.set_num_threads(1)
    limit("RLIMIT_DATA", LIMIT)  # bytes that are asked for in vain beyond it
    with TemporaryDirectory(prefix="slp-transformer-") as folder:
        make(Path(folder))
        return make_trials(one_trial(Path(folder), number, seed) for number in range(count))


def summary(trials: list[Trial]) -> list[dict]:
    """Return what came of each kind."""
    rows = []
    for kind in sorted({trial.kind for trial in trials}):
        own = [trial for trial in trials if trial.kind == kind]
        rows.append({
            "kind": kind,
            "tried": len(own),
            "lost": sum(bool(trial.problem) for trial in own),
            **dict(sorted(Counter(trial.outcome for trial in own).items())),
            "slowest_seconds": round(max(trial.seconds for trial in own), 2),
            "most_mebibytes": max(trial.mebibytes for trial in own),
        })  # fmt: skip
    return rows


def main(about: str, campaign: Callable[[int, int], list[Trial]]) -> int:
    """Run a campaign as the command line asks, and count."""
    parser = argparse.ArgumentParser(description=about.partition("\n")[0])
    parser.add_argument(
        "--count", type=int, default=100, help="trials (of each kind of file) [100]"
    )
    parser.add_argument("--seed", type=int, default=0, help="another seed, other damage [0]")
    parser.add_argument("--out", type=Path, help="a JSON file for the counts")
    arguments = parser.parse_args()
    trials = campaign(arguments.count, arguments.seed)
    rows = summary(trials)
    for row in rows:
        print(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in row.items()))
    lost = [asdict(trial) for trial in trials if trial.problem]
    print(f"tried {len(trials)}, kept {len(trials) - len(lost)}, lost {len(lost)}")
    if arguments.out:
        found = {"date": str(date.today()), "seed": arguments.seed, "kinds": rows, "lost": lost}
        arguments.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main(__doc__, campaign))
