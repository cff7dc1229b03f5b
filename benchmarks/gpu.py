"""All that a GPU can show, in one visit of ten minutes and without a network.

Usage::

    python benchmarks/gpu.py --out DIR --tabs FOLDER --text FILE
    python benchmarks/gpu.py --out DIR --device cpu --tiny

FILE is Tiny Shakespeare, or another text; FOLDER holds ASCII guitar tabs, or two folders of them,
`train` and `valid`. Without one of them the recipe that learns from it is skipped.

PyTorch, numpy, safetensors and tqdm are enough. What needs more is skipped, and the report names
what is missing. Each step is a process of its own with a limit of its own. Its result stands in
DIR as soon as there is one, `DIR/STEP.json`, and so does the traceback of one that fails, while
the rest goes on. At the end there is a table of all, which `DIR/report.txt` keeps.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from text_file import write

HERE = Path(__file__).resolve().parent
# Name and seconds at most, shortest first. What a step leaves over, those after it may use.
STEPS = {
    "machine": 40,
    "resume": 60,
    "sharded": 60,
    "decode-b1": 75,
    "decode-b64": 75,
    "train-6x384": 85,
    "numbers": 60,
    "train-12x768": 90,
    "shakespeare": 180,
    "guitar": 180,
}
MINUTES = 9.0  # for which these seconds are meant; who gives more gives more to every step


def main() -> int:
    """Take the steps, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="for all steps together")
    parser.add_argument("--tabs", type=Path, help="folder of ASCII guitar tabs")
    parser.add_argument("--text", type=Path, help="Tiny Shakespeare, or another text file")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true", help="the same steps on next to nothing")
    parser.add_argument("--only", nargs="+", choices=STEPS, help="some of the steps")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)  # in its own process
    asked = parser.parse_args()
    for name in ("tabs", "text"):
        path = getattr(asked, name)
        if path is not None and not path.exists():
            parser.error(f"there is no {path}: --{name} names what is learned from.")
    if asked.step:
        sys.path[:0] = [str(HERE), str(HERE.parent)]
        import gpu_steps

        gpu_steps.take(asked)
        return 0
    asked.out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * asked.minutes
    steps = [name for name in STEPS if asked.only is None or name in asked.only]
    for name in steps:
        seconds = STEPS[name] * max(1.0, asked.minutes / MINUTES)
        seconds = min(seconds, end - time.monotonic())
        print(f"{name} …", flush=True)
        result = run(name, asked, seconds)
        print(f"{name}: {in_short(result)}", flush=True)
    report = "\n".join(table(asked.out, steps))
    write(asked.out / "report.txt", report + "\n")
    print("\n" + report)
    return 0


def run(name: str, asked: argparse.Namespace, seconds: float) -> dict[str, Any]:
    """Take a step in a process of its own, and write down how it went."""
    path, log = asked.out / f"{name}.json", asked.out / f"{name}.log"
    path.unlink(missing_ok=True)
    command = [sys.executable, str(HERE / "gpu.py"), "--step", name, "--out", str(asked.out)]
    command += ["--device", asked.device] + ["--tiny"] * asked.tiny
    for option in ("tabs", "text"):
        value = getattr(asked, option)
        command += [] if value is None else [f"--{option}", str(value)]
    began, how = time.monotonic(), {}
    if seconds < 5 and not asked.tiny:
        how["skipped"] = "no time was left"
    else:
        # The step keeps an eye on the clock itself; the limit is for one that hangs.
        environment = os.environ | {"SLP_SECONDS": str(max(seconds - 5, 5))}
        with log.open("w", encoding="utf-8") as written:
            both = {"stdout": written, "stderr": subprocess.STDOUT, "env": environment}
            process = subprocess.Popen(command, start_new_session=os.name != "nt", **both)
            try:
                if process.wait(timeout=max(seconds, 10)):
                    how["failed"] = log.read_text(encoding="utf-8", errors="replace")[-8000:]
            except subprocess.TimeoutExpired:
                end_all(process)
                how["cut off"] = f"after {seconds:.0f} s"
    result = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    result |= how | {"step": name, "seconds": round(time.monotonic() - began, 1)}
    write(path, json.dumps(result, indent=1) + "\n")
    return result


def end_all(process: subprocess.Popen) -> None:
    """End a step that takes too long, with all that it has started."""
    if os.name == "nt":
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


# --- What is said ------------------------------------------------------------------------------


def in_short(result: dict[str, Any]) -> str:
    """Return the outcome of a step in a line."""
    for word in ("skipped", "cut off"):
        if word in result:
            return f"{word}: {result[word]}"
    if "failed" in result:
        return f"failed: {result['failed'].strip().splitlines()[-1:]}"
    return f"done in {result['seconds']:.0f} s"


def table(out: Path, steps: list[str]) -> list[str]:
    """All results, a line each."""
    lines = []
    for name in steps:
        result = json.loads((out / f"{name}.json").read_text(encoding="utf-8"))
        lines.append(f"{name:14} {in_short(result)}")
        for row, value in result.get("table", {}).items():
            lines.append(f"    {row:44} {value}")
        for missing, why in result.get("left out", {}).items():
            lines.append(f"    {missing:44} left out: {why}")
    return lines


if __name__ == "__main__":
    raise SystemExit(main())
