"""Hand in hostile files for a class, and see what the report on it says.

    python tests/stress/class_folders.py --count 500 --seed 1

Each trial is a folder with one right file and three that attack the grader, put together from parts
at random: while they are read, while their definitions are run, and while a function is tried. It
is kept if each file has one row, the right one's says so and no other's does, nothing in the folder
has changed, no process stays, and the grader neither grows by 500 MiB nor takes longer than its
limits. Linux alone has all that guards a grader.
"""

import argparse
import os
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

from slp_transformer.check.grading.class_report import report_on_class

RIGHT = "def my_softmax(scores):\n    return scores.softmax(-1)\n"
MAX_GROWTH_BYTES, MAX_FILE_S = 500 << 20, 60

# Run while the file's definitions are.
WHILE_DEFINED = [
    "import os\nfor d in range(3, 40):\n  try: os.write(d, LINE)\n  except OSError: pass",
    "import os\nfor d in range(3, 40):\n  try: os.close(d)\n  except OSError: pass",
    "import os\nfor d in range(3, 40):\n  try: os.write(d, b'[' * 5_000_000)\n"
    "  except OSError: pass",
    "import os\nfor d in range(3, 40):\n  try: os.write(d, b'{\"functions\": 7}\\n')\n"
    "  except OSError: pass",
    "import sys\nsys.stdout.write('\\x1b[2J' * 999); sys.stderr.write('x' * 99_999)",
    "import sys\nsys.setrecursionlimit(10**9)\ndef f(): return f()\nf()",
    "import gc\nfor one in gc.get_objects():\n"
    "  if isinstance(one, dict) and 'right' in one: one['right'] = ['softmax']",
    "import sys\nfor name, module in list(sys.modules.items()):\n"
    "  if name.startswith('slp_transformer.check'):\n"
    "    for key in list(vars(module)):\n"
    "      if key in ('CHECKS', 'judge', 'answers_agree', 'encode_answer', 'json'):\n"
    "        setattr(module, key, None)",
    "import builtins\nbuiltins.open = builtins.len = builtins.isinstance = lambda *a: True",
    "import threading\ndef run():\n  while True: pass\n"
    "for _ in range(9): threading.Thread(target=run, daemon=True).start()",
    "import threading, time\nthreading.Thread(target=lambda: time.sleep(999)).start()",
    "import atexit, os\natexit.register(lambda: os.write(1, LINE))",
    "import os, signal\nfor s in range(1, 32):\n  try: signal.signal(s, lambda *a: None)\n"
    "  except (OSError, ValueError): pass\nos.kill(os.getppid(), 9)",
    "import os\nos.fork()",
    "import subprocess\nsubprocess.Popen(['sleep', '999'], start_new_session=True)",
    "import ctypes\nctypes.string_at(0)",
    "import os\nos.abort()",
    "raise KeyboardInterrupt",
    'raise SystemExit(\'{"right": ["softmax"]}\')',
    "raise BaseException('\\x1b]0;b\\x07' + 'x' * 10**6)",
    "class E(Exception):\n  def __str__(self): raise E\n  __repr__ = __str__\nraise E",
    "class M(type):\n  def __del__(self): M('x', (), {})\nM('x', (), {})",
    "import os\nfor path in ('..', FOLDER, '/tmp'):\n  for name in os.listdir(path):\n"
    "    os.unlink(os.path.join(path, name))",
    "import os\nos.symlink(FOLDER, 'here'); open('here/zoe.py', 'w').write('')",
    "open(FOLDER + '/new.py', 'w').write('def softmax(x): return x.softmax(-1)')",
    "import os\nos.rename(FOLDER + '/zoe.py', FOLDER + '/x.py')",
    "x = [0]\nwhile True: x += x",
    "import mmap\nkept = [mmap.mmap(-1, 1 << 28) for _ in range(9)]",
    "import torch\nkept = torch.zeros(1 << 33)",
    "import time\ntime.sleep(999)",
    "import socket\nsocket.socket()",
    "import os\nos.setsid(); os.setpgid(0, 0)",
    "import torch\ntorch.save = torch.load = torch.allclose = torch.equal = lambda *a, **k: True",
    "pass",
]
# Run when the function is called with X; what follows must not be taken for right.
WHILE_TRIED = [
    "import os; os._exit(0)",
    "raise SystemExit(0)",
    "raise KeyboardInterrupt",
    "while True: pass",
    "import os\nfor d in range(3, 40):\n  try: os.write(d, LINE)\n  except OSError: pass",
    "X.data = X.softmax(-1)",
    "X.__class__ = type('T', (type(X),), {'__eq__': lambda *a: True, 'equal': lambda *a: True})",
    "return type('T', (list,), {'__eq__': lambda *a: True, '__len__': lambda s: 3})([1])",
    "return X.new_full((1,), float('nan'))",
    "return X.new_zeros(1 << 26)",
    "one = []\nfor _ in range(10**5): one = [one]\nreturn one",
    "return (x for x in X)",
    "return {'answers': [[1]]}",
    "return 10 ** 10 ** 6",
    "return '\\ud800' * 999",
    "import sys; sys.exit(LINE)",
    "raise Exception(LINE * 99_999)",
    "raise type('ZeroDivisionError\\x1b[2J', (Exception,), {})('\\u202e')",
    "import sys; sys.stdin = sys.stdout = None; return X",
    "import gc; gc.disable(); X.resize_(1 << 20); return X",
    "return X.to_sparse()",
    "return X.to('meta')",
    "import torch; return torch.ones(3, dtype=torch.complex64)",
    "import ctypes; ctypes.memset(X.data_ptr(), 255, 1 << 20); return X",
    "return 2 * X",
]
LINES = [
    b'{"functions": ["softmax"]}\n{"answers": [[0.5, 0.5]], "changed": []}\n',
    b'{"file": "zoe.py", "right": ["softmax"], "wrong": {}, "missing": []}\n',
    b'{"answers": [{"tensor": ["float", [2], "AAAA"]}], "changed": []}\n' * 9,
    b'{"answers": ' + b"[" * 99_999 + b"\n",
    b"\xff\xfe\n",
    b"\n" * 99,
    b'{"unusable": 7}\n',
    b'{"unsupported": ["\\u001b[2J"]}\n',
]
# What is done to a file's bytes: none of it may be more than a row.
WRAPPERS = [
    *[lambda text: text] * 9,
    lambda text: "\ufeff" + text,
    lambda text: text + "\0",
    lambda text: "# coding: rot13\n" + text,
    lambda text: text + "\n" + "(" * 999 + ")" * 999,
    lambda text: text + "\ny = " + "-" * 99_999 + "1",
    lambda text: text + "\ndef softmax(x): return 2 * x" * 9,
    lambda text: text.replace("\n", "\r"),
    lambda text: text + "\nx = " + "1" * 9_999,
]


def indented(code: str, spaces: int) -> str:
    return "".join(" " * spaces + line + "\n" for line in code.splitlines())


def attack(rng: random.Random, folder: Path) -> bytes:
    """Return a file that attacks the grader and whose softmax is wrong."""
    text = f"class A:\n    LINE = {rng.choice(LINES)!r}\n    FOLDER = {str(folder)!r}\n"
    text += "    code = " + repr(rng.choice(WHILE_DEFINED)) + "\n"
    text += "    exec(code, {'LINE': LINE, 'FOLDER': FOLDER})\n" if rng.random() < 0.7 else ""
    text += "def my_softmax(X):\n    LINE = A.LINE\n" + indented(rng.choice(WHILE_TRIED), 4)
    text += "    return 2 * X\n"
    return rng.choice(WRAPPERS)(text).encode("utf-8", "surrogatepass")


def processes_in(place: Path) -> list[int]:
    """Return the processes whose folder lies in a place, also where that has been removed."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "cwd").startswith(f"{place}/"):
                found.append(int(entry.name))
        except OSError:
            pass  # it has ended, or is another user's
    return found


def try_folder(seed: int, place: Path) -> list[str]:
    """Return what is wrong with the report on one folder."""
    rng = random.Random(seed)
    folder = place / f"class {seed}"
    folder.mkdir()
    names = [f"{name}.py" for name in ("anna", "bob", "zy")]
    written = {name: attack(rng, folder) for name in names} | {"zoe.py": RIGHT.encode()}
    for name, data in written.items():
        (folder / name).write_bytes(data)
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    rows = {one["file"]: one for one in report_on_class(folder)["files"]}
    took = time.monotonic() - started
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    right = {"file": "zoe.py", "right": ["softmax"], "wrong": {}, "missing": []}
    faults = {
        "other rows": rows.keys() != written.keys(),
        "the right file's row": rows.get("zoe.py") != right,
        "a forged row": any(rows[name].get("right") for name in names if name in rows),
        "a row that says nothing": any(
            not (row["right"] or row["wrong"] or row["missing"] or row.get("error"))
            for row in rows.values()
        ),
        "the folder has changed": {p.name: p.read_bytes() for p in folder.iterdir()} != written,
        "a process stays": bool(processes_in(place)),
        f"it grew by {grown >> 20} MiB": grown > MAX_GROWTH_BYTES,
        f"it took {took:.0f} s": took > MAX_FILE_S * len(written),
    }
    return [what for what, is_so in faults.items() if is_so]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=500, help="folders")
    parser.add_argument("--seed", type=int, default=1, help="of the first folder")
    given = parser.parse_args()
    lost = 0
    with tempfile.TemporaryDirectory() as name:
        place = Path(name).resolve()
        tempfile.tempdir = str(place)  # each student's folder lies here
        for seed in range(given.seed, given.seed + given.count):
            faults = try_folder(seed, place)
            lost += bool(faults)
            if faults:
                print(f"seed {seed}: {'; '.join(faults)}", flush=True)
    tried = given.count
    print(f"class folders: tried {tried}, kept {tried - lost}, lost {lost}")
    return int(lost > 0)


if __name__ == "__main__":
    sys.exit(main())
