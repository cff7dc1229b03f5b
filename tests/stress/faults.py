"""Let the system fail a small run in many ways, and see that no checkpoint is lost.

    python tests/stress/faults.py --faults 200 --power-cuts 200 --flips 500 --readers 200

- faults: one call of the system on the run's files fails, or all from one on, or a write stops
  halfway (full disk, I/O error, too many files, no rights, a signal); then the run is resumed.
- power cuts: what the disk would hold after one. Names are as they were at a moment after the last
  flush of a folder; files that were not flushed are empty, zeros, or cut in half. Then the run is
  resumed, or begun where nothing was saved; a checkpoint whose save had returned has to be there.
- flips: one bit of a checkpoint or of the corpus; `info --verify` says so.
- readers: `load_model`, `open_checkpoint` and `load_run`, beside a run that saves every step.

The first two need a C compiler, for `fault_shim.c`. A trial is kept as `interruptions.py` says.
"""

import ctypes
import errno
import os
import random
import shutil
import subprocess
import sys
import sysconfig
import time
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

import interruptions
from interruptions import TRAIN, Whole, begin, check, end, resume, run

from slp_transformer.tasks.saved_runs import load_run, open_run
from slp_transformer.training.checkpoints import load_model
from slp_transformer.training.run_folder import (
    find_checkpoints,
    open_checkpoint,
    step_of_checkpoint,
    verify_checkpoint_checksums,
)
from tests.helpers.checkpoint_folders import checkpoint_folder

SHIM = Path(__file__).with_name("fault_shim.c")
OPEN, WRITE, FLUSH, RENAME, REMOVE, MAKE, READ = (1 << n for n in range(7))
CHANGING = OPEN | WRITE | FLUSH | RENAME | REMOVE | MAKE
FAIL_ONCE, FAIL_FROM, SHORT_WRITE, KILL = range(1, 5)
ERRORS = [errno.ENOSPC, errno.EIO, errno.EACCES, errno.EMFILE, errno.EDQUOT, errno.EROFS]
DATA_BYTES = (".safetensors", ".npy", ".json")
LOG = "calls.log"


def find_compiler() -> str | None:
    """Return the C compiler of this machine, if there is one and the shim is for it."""
    words = [os.environ.get("CC", ""), (sysconfig.get_config_var("CC") or "").split(" ")[0], "cc"]
    found = (shutil.which(word) for word in words if word)
    return next(filter(None, found), None) if sys.platform == "linux" else None


def preload_shim() -> bool:
    """Start this program again with the shim preloaded; False if it cannot be compiled."""
    if "fault_shim" in os.environ.get("LD_PRELOAD", ""):
        return True
    if (compiler := find_compiler()) is None:
        return False
    library = Path(mkdtemp(prefix="slp-transformer-")) / "fault_shim.so"
    words = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SHIM), "-ldl"]
    if subprocess.run(words).returncode:
        return False
    os.environ["LD_PRELOAD"] = str(library)
    os.execv(sys.executable, [sys.executable, *sys.argv])


def arm(kinds: int, action: int, number: int, place: int) -> None:
    """Have one call on the run's files fail, in this process."""
    ctypes.CDLL(None).fault_arm(os.fsencode(Path("run").absolute()), kinds, action, number, place)


def count_calls() -> int:
    """Return how many calls a run makes that may fail, and log them."""
    tally = Path("tally")

    def prepare() -> None:
        library = ctypes.CDLL(None)
        arm(CHANGING | READ, 0, 0, 0)
        library.fault_log(os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND))
        library.fault_count.restype = ctypes.c_long
        leave = os._exit

        def told(code: int) -> None:
            tally.write_text(str(library.fault_count()), encoding="utf-8")
            leave(code)

        os._exit = told

    ended = run([*TRAIN, "run"], prepare)
    check(ended.code == 0, f"the run that is logged ended with {ended}")
    shutil.rmtree("run")
    return int(tally.read_text(encoding="utf-8"))


def faulted(draw: random.Random, whole: Whole) -> None:
    """Let calls of the system fail, and resume."""
    if not Path(LOG).exists():
        Path("calls").write_text(str(count_calls()), encoding="utf-8")
    place = draw.randint(1, int(Path("calls").read_text(encoding="utf-8")))
    kinds = draw.choice([CHANGING, CHANGING | READ, draw.choice([WRITE, FLUSH, RENAME, OPEN])])
    action = draw.choice([FAIL_ONCE, FAIL_ONCE, FAIL_FROM, SHORT_WRITE, KILL])
    place = place if kinds & READ else draw.randint(1, place)
    number = draw.choice(ERRORS)
    ended = run([*TRAIN, "run"], lambda: arm(kinds, action, number, place))
    about = f"{errno.errorcode[number]} at call {place} of {kinds}, {action}: {ended}"
    check("Traceback" not in ended.said, about)
    check(ended.code in (0, 2, -9 if action == KILL else 0), about)
    resume()


# --- Power cuts ----------------------------------------------------------------------------------


def read_log() -> list[tuple[str, str, str, bytes]]:
    """Return the calls of a run: a letter, one or two paths, and a flushed file's content."""
    calls, content = [], Path(LOG).read_bytes()
    place = 0
    while place < len(content):
        line_end = content.index(b"\n", place)
        what, size, one, other = content[place:line_end].decode().split("\t")
        place = line_end + 1 + int(size)
        calls.append((what, one, other, content[line_end + 1 : place]))
    return calls


def names_after(calls: list[tuple[str, str, str, bytes]]) -> dict[str, int | None]:
    """Return what has a name after some calls: files by number, folders as None.

    safetensors renames its files by a call that the shim does not see: what is flushed under a name
    that nobody gave it is the file that was created last in that folder.
    """
    names: dict[str, int | None] = {}
    for number, (what, one, other, _) in enumerate(calls):
        if what == "M":
            names[one] = None
        elif what == "C":
            names.setdefault(one, number)
        elif what == "F" and one not in names:
            beside = [n for n in names if os.path.dirname(n) == os.path.dirname(one)]
            names[one] = names.pop(max(beside, key=lambda name: names[name] or -1))
        elif what == "U":
            names = {n: v for n, v in names.items() if n != one and not n.startswith(f"{one}/")}
        elif what == "R":
            moved = [name for name in names if name == one or name.startswith(f"{one}/")]
            for name in moved:
                names[other + name.removeprefix(one)] = names.pop(name)
    return names


def flushed_by(calls: list[tuple[str, str, str, bytes]]) -> dict[int, bytes]:
    """Return the content of each file that was flushed, by number."""
    names: dict[str, int | None] = {}
    found: dict[int, bytes] = {}
    for number, (what, one, _, content) in enumerate(calls):
        names = names_after(calls[: number + 1])
        if what == "F":
            found[names[one]] = content
    return found


def cut_off(draw: random.Random, whole: Whole) -> None:
    """Make the folder that a power cut would leave, and resume."""
    if not Path(LOG).exists():
        Path("calls").write_text(str(count_calls()), encoding="utf-8")
    calls, base = read_log(), str(Path("run").absolute())
    moment = draw.randrange(1, len(calls) + 1)
    flushes = [n + 1 for n, call in enumerate(calls[:moment]) if call[0] == "D"]
    certain = max(flushes, default=0)
    names = names_after(calls[: draw.randint(certain, moment)])
    contents = flushed_by(calls[:moment])
    Path("run").mkdir()
    for name, number in sorted(names.items()):
        path = Path("run") / Path(name).relative_to(base)
        if number is None:
            path.mkdir(parents=True, exist_ok=True)
        elif number in contents:
            path.write_bytes(contents[number])
        else:  # what was never flushed is anything
            size = draw.randrange(4000)
            path.write_bytes(draw.choice([b"", bytes(size), draw.randbytes(size)]))
    (Path("run") / ".lock").unlink(missing_ok=True)
    saved = [name for name in names_after(calls[:certain]) if name.endswith("/checkpoint.json")]
    kept = {Path(name).parent.name for name in saved if "/step-" in name}
    there = {path.name for path in find_checkpoints("run")}
    lost = {name for name in kept if name not in there and names.keys() & {f"{base}/{name}"}}
    check(not lost, f"after call {moment}: {lost} are gone")
    for path in find_checkpoints("run"):
        verify_checkpoint_checksums(checkpoint_folder(path))
    if not find_checkpoints("run"):
        shutil.rmtree("run")  # nothing was saved that could be resumed
    resume()


# --- Flipped bits, and readers -------------------------------------------------------------------


def flipped(draw: random.Random, whole: Whole) -> None:
    """Turn one bit of a run, and have it verified."""
    shutil.copytree("whole", "run")
    paths = [*Path("run/tokens").iterdir(), *checkpoint_folder("run").iterdir()]
    path = draw.choices(paths, [path.stat().st_size for path in paths])[0]
    if draw.random() < 0.5:
        path = draw.choice(paths)
    content = bytearray(path.read_bytes())
    place = draw.randrange(8 * len(content))
    content[place // 8] ^= 1 << place % 8
    path.write_bytes(content)
    ended = run(["info", "run", "--verify"])
    about = f"bit {place} of {path}: {ended}"
    check(ended.code == 2 and "Traceback" not in ended.said, about)
    check(str(path.parent) in ended.said or path.name in ended.said, about)


def read_beside(draw: random.Random, whole: Whole) -> None:
    """Read a run beside the process that trains in it, in one way."""
    words = [*TRAIN, "run", "--steps", "1000000"]
    words[words.index("--eval-interval") + 1] = "1"
    child = begin(words, Path("writer.txt"))
    try:
        while not find_checkpoints("run") or step_of_checkpoint(find_checkpoints("run")[-1]) < 3:
            time.sleep(0.01)
        for _ in range(10):
            which = draw.choice(["last", "best"])
            draw.choice([load_model, open_checkpoint])("run", which)
            opened = open_run("run", which)
            time.sleep(draw.choice([0, 0.2]))  # the writer deletes what was opened meanwhile
            load_run(opened, "cpu")
    finally:
        with suppress(ProcessLookupError):
            os.kill(child, 9)
        end(child, Path("writer.txt"))


KINDS = {"faults": faulted, "power_cuts": cut_off, "flips": flipped, "readers": read_beside}
DEFAULTS = {"faults": 20, "power_cuts": 20, "flips": 20, "readers": 3}


if __name__ == "__main__":
    kinds = KINDS
    if not preload_shim():
        print("There is no C compiler here: faults and power cuts are left out.", flush=True)
        kinds = {name: KINDS[name] for name in ("flips", "readers")}
    sys.exit(interruptions.main(__doc__, kinds, DEFAULTS))
