"""Put a pipe, a socket, a device or a link in any place of a folder, and see that no command waits.

    python tests/stress/special_files.py --count 200 --seed 1 --out special_files.json

Each trial copies a run or a published model, puts one special file in the place of one of its files
(or of a text beside it), and gives a command to it. It is kept if the command does its work or
refuses in one sentence with code 2, within five seconds.
"""

import argparse
import contextlib
import io
import json
import os
import platform
import random
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import torch

from slp_transformer.cli import main as command_line

MAX_WAIT_S, STUCK_S = 5.0, 30
TEXT = "the quick brown fox jumps over the lazy dog. " * 40
SMALL = "--model-dim 8 --num-blocks 1 --num-heads 2 --context-length 8 --steps 2 --batch-size 2"
COMMANDS = {
    "info": "info FOLDER",
    "info --verify": "info FOLDER --verify",
    "generate": "generate FOLDER --prompt the --max-new-tokens 2 --device cpu",
    "evaluate": "evaluate FOLDER TEXT --device cpu",
    "export": "export FOLDER NEW",
    "resume": "train --out-dir FOLDER --resume --steps 3 --device cpu --quiet",
    "continue": "train text TEXT --init-from FOLDER --out-dir NEW --steps 1 --device cpu --quiet",
}


def place(kind: str, path: Path) -> None:
    """Put a special file there."""
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as one:
            here = Path.cwd()
            os.chdir(path.parent)  # a socket's path may not be long
            one.bind(path.name)
            os.chdir(here)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to({"link to itself": path.name, "dangling link": "nothing"}.get(kind, kind))


def run(words: list[str], log: Path) -> tuple[int, float]:
    """Give words to the command line in a fork of this process; return its code and seconds."""
    begun = time.monotonic()
    if (process := os.fork()) == 0:
        signal.alarm(STUCK_S)
        into = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        nowhere = os.open(os.devnull, os.O_RDONLY)
        for standard, file in enumerate((nowhere, into, into)):
            os.dup2(file, standard)
        code = 1
        try:
            code = command_line(words)
        except BaseException:
            import traceback

            traceback.print_exc()
        sys.stdout.flush()
        os._exit(code)
    _, status = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status), time.monotonic() - begun


def run_here(words: list[str]) -> None:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        command_line(words)


def main() -> int:
    """Run the campaign, and return 1 if a trial was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    draw, lost, longest = random.Random(options.seed), [], 0.0
    tried: Counter[str] = Counter()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as home:
        at, text = Path(home), Path(home, "fox.txt")
        text.write_text(TEXT, encoding="utf-8")
        for kind, words in {
            "run": f"train text {text} --out-dir {at / 'run'} {SMALL} --device cpu --quiet",
            "model": f"export {at / 'run'} {at / 'model'}",
        }.items():
            assert run(words.split(), at / "log")[0] == 0, (kind, (at / "log").read_text("utf-8"))
        for words in COMMANDS.values():  # so that a fork has its modules
            for word in ("info", "generate", "evaluate", "export"):
                if words.startswith(word):
                    given = words.replace("FOLDER", f"{at / 'model'}").replace("TEXT", f"{text}")
                    run_here(given.replace("NEW", f"{at / 'warm'}").split())
        folders = {one: at / one for one in ("run", "model")}
        places = {
            one: sorted(p.relative_to(f) for p in f.rglob("*") if p.is_file())
            for one, f in folders.items()
        }
        kinds = ["pipe", "socket", "folder", "link to itself", "dangling link"]
        kinds += ["/dev/zero", "/dev/tty", "/dev/stdin", "/dev/full", "/proc/self/mem"]
        for number in range(options.count):
            which, kind = draw.choice([*folders]), draw.choice(kinds)
            name = draw.choice([*COMMANDS][: 7 if which == "run" else 4])
            trial = at / f"trial-{number}"
            shutil.copytree(folders[which], trial / "folder")
            shutil.copy(text, trial)
            where = draw.choice([*places[which], None])
            place(kind, trial / text.name if where is None else trial / "folder" / where)
            given = {"FOLDER": "folder", "TEXT": text.name, "NEW": "new"}
            given = {word: str(trial / name) for word, name in given.items()}
            words = [given.get(word, word) for word in COMMANDS[name].split()]
            code, seconds = run(words, at / "log")
            said = (at / "log").read_text("utf-8", "replace")
            longest = max(longest, seconds)
            tried[kind] += 1
            if code not in (0, 2) or seconds > MAX_WAIT_S or "Traceback" in said:
                lost.append([which, kind, str(where), name, code, round(seconds, 1), said[-300:]])
                print(lost[-1])
            shutil.rmtree(trial)
    found = {
        "command": f"python tests/stress/special_files.py {' '.join(sys.argv[1:])}",
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "results": {"tried": dict(tried), "longest_seconds": round(longest, 2), "lost": lost},
    }
    print(json.dumps(found["results"] | {"lost": len(lost)}))
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return bool(lost)


if __name__ == "__main__":
    sys.exit(main())
