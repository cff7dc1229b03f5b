"""Plant small mistakes in the package, one at a time, and see which of them the tests catch.

    python tests/stress/mutants.py run --jobs 1 --out benchmarks/results/mutants/new.json
    python tests/stress/mutants.py compare benchmarks/results/mutants/baseline.json new.json

A mutant is the package with one small change: `<` becomes `<=`, a statement is deleted, a constant
is one larger. `mutants.json` holds each with the function that it is in, the lines before and after
the change, and the few test files that protect the code. `run` plants them in a copy of the
repository, so that the checkout is never changed and processes that a test starts meet the mutant
too. `compare` lists what was caught before and is not caught now.

A mutant whose lines are no longer in the package is gone: where code was only moved or renamed,
change its `file`, `function`, `before` and `after` in `mutants.json`.
"""

import argparse
import ast
import json
import os
import platform
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Any

ROOT = next(p for p in Path(__file__).resolve().parents if (p / "pyproject.toml").exists())
MUTANTS = Path(__file__).with_name("mutants.json")
SECONDS = 180.0  # that the tests of one mutant may take; an endless loop counts as caught
BYTES = 6 << 30  # of memory, for a list that grows without end
STATUSES = ("caught", "timeout", "survived", "gone", "error")
CAUGHT = ("caught", "timeout")

Mutant = dict[str, Any]
Result = dict[str, Any]


def planted(source: str, mutant: Mutant) -> str | None:
    """Return a module's source with a mutant's change, None if its lines are not there."""
    owner: Any = ast.parse(source)
    for name in mutant["function"].split("."):
        found = (node for node in owner.body if getattr(node, "name", None) == name)
        owner = next(found, None)
        if owner is None:
            return None
    lines = source.split("\n")
    first, last = owner.lineno - 1, owner.end_lineno
    parts = "\n".join(lines[first:last]).split(mutant["before"])
    nth = mutant.get("nth", 0) + 1  # of equal lines
    if len(parts) <= nth:
        return None
    before, after = (mutant["before"].join(some) for some in (parts[:nth], parts[nth:]))
    return "\n".join([*lines[:first], before + mutant["after"] + after, *lines[last:]])


def run_tests(folder: Path, tests: list[str], limit: float) -> Result:
    """Run test files in a copy of the repository, and return how they ended.

    Args:
        folder: the copy.
        tests: the files; `+slow` behind a name says that its slow tests run too.
        limit: the seconds that they may take.
    """
    command = [sys.executable, "-B", "-m", "pytest", "-x", "-q", "-n", "0", "--tb=short"]
    command += ["-p", "no:cacheprovider", f"--basetemp={folder.parent / 'tmp'}"]
    if any(test.endswith("+slow") for test in tests):
        command += ["-m", "slow or not slow"]
    environment = os.environ | {
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "COLUMNS": "200",  # for the names of failed tests
    }
    begun = time.monotonic()
    process = subprocess.Popen(
        [*command, *(test.removesuffix("+slow") for test in tests)],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    resource.prlimit(process.pid, resource.RLIMIT_DATA, (BYTES, BYTES))
    try:
        said, _ = process.communicate(timeout=limit)
        # 1: a test failed; 2: a test file could not even be imported; below 0: killed by a signal.
        code = process.returncode
        status = "caught" if code in (1, 2) or code < 0 else "survived" if code == 0 else "error"
    except subprocess.TimeoutExpired:
        said, status = "", "timeout"
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)  # also what a test has started
        except ProcessLookupError:
            pass
        process.wait()
    failed = re.findall(r"^(?:FAILED|ERROR) .*$", said, re.MULTILINE)
    seconds = round(time.monotonic() - begun, 1)
    return {"status": status, "seconds": seconds, "by": failed[-1][:240] if failed else ""}


def try_mutant(folder: Path, mutant: Mutant, sound: dict[str, float]) -> Result:
    """Plant a mutant in a copy of the repository, and run those of its tests that are sound."""
    path = folder / mutant["file"]
    source = path.read_text(encoding="utf-8") if path.exists() else ""
    mutated = planted(source, mutant)
    if mutated is None:
        return {"status": "gone"}
    tests = [test for test in mutant["tests"] if test in sound]
    if not tests:
        return {"status": "error", "by": "no tests that pass without it"}
    path.write_text(mutated, encoding="utf-8")
    try:
        return run_tests(folder, tests, max(SECONDS, 2 * sum(sound[test] for test in tests)))
    finally:
        path.write_text(source, encoding="utf-8")


def run(mutants: list[Mutant], jobs: int, out: Path) -> None:
    """Run each mutant's tests, and keep what came of them as it comes."""
    report = json.loads(out.read_text(encoding="utf-8")) if out.exists() else begin_report()
    done = {result["id"] for result in report["results"]}
    todo = [mutant for mutant in mutants if mutant["id"] not in done]
    with TemporaryDirectory(prefix="mutants-") as place, ThreadPoolExecutor(jobs) as pool:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(jobs):
            copies.put(copy_of_repository(Path(place) / str(number)))

        def in_a_copy(work: Any, *arguments: Any) -> Result:
            folder = copies.get()
            try:
                return work(folder, *arguments)
            finally:
                copies.put(folder)

        files = sorted({test for mutant in todo for test in mutant["tests"]})
        files = [test for test in files if (ROOT / test.removesuffix("+slow")).exists()]
        sound: dict[str, float] = {}
        for test, result in zip(
            files,
            pool.map(lambda test: in_a_copy(run_tests, [test], 3 * SECONDS), files),
            strict=True,
        ):
            if result["status"] == "survived":
                sound[test] = result["seconds"]
            else:
                print(f"{test} fails without a mutant: {result['by']}", flush=True)
        for mutant, result in zip(
            todo, pool.map(lambda mutant: in_a_copy(try_mutant, mutant, sound), todo), strict=True
        ):
            report["results"].append({"id": mutant["id"], "area": mutant["area"], **result})
            keep(report, out)
            print(f"{result['status']:9}{mutant['id']}  {result.get('by', '')}", flush=True)
    print_counts(report["results"])


def copy_of_repository(folder: Path) -> Path:
    skipped = (".git", "__pycache__", ".pytest_cache", ".ruff_cache", ".cache", "notebooks", "runs")
    ignore = shutil.ignore_patterns(*skipped)
    return Path(shutil.copytree(ROOT, folder / "copy", ignore=ignore, symlinks=True))


def begin_report() -> dict[str, Any]:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    return {
        "command": f"python {Path(__file__).resolve().relative_to(ROOT)} {' '.join(sys.argv[1:])}",
        "commit": commit,
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "results": [],
    }


def keep(report: dict[str, Any], out: Path) -> None:
    """Write a report, whole at any moment."""
    fresh = out.with_suffix(".new")
    fresh.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    fresh.replace(out)


def print_counts(results: Iterable[Result]) -> None:
    """Print how many mutants of each area ended how."""
    counts = Counter((result["area"], result["status"]) for result in results)
    print(f"{'area':14}" + "".join(f"{status:>10}" for status in STATUSES))
    areas = dict.fromkeys(area for area, _ in counts)
    for area in areas:
        print(f"{area:14}" + "".join(f"{counts[area, status]:10}" for status in STATUSES))
    sums = [sum(counts[area, status] for area in areas) for status in STATUSES]
    print(f"{'all':14}" + "".join(f"{count:10}" for count in sums))


def lost(before: dict[str, Result], after: dict[str, Result]) -> Iterator[tuple[str, str]]:
    """Yield the name and the new status of each mutant that was caught and is not now."""
    for name, result in before.items():
        status = after.get(name, {"status": "gone"})["status"]
        if result["status"] in CAUGHT and status not in CAUGHT:
            yield name, status


def compare(base: Path, new: Path) -> int:
    """Print what was caught and no longer is."""
    reports = [json.loads(path.read_text(encoding="utf-8"))["results"] for path in (base, new)]
    for path, results in zip((base, new), reports, strict=True):
        print(path)
        print_counts(results)
    before, after = ({result["id"]: result for result in results} for results in reports)
    found = list(lost(before, after))
    for name, status in found:
        print(f"{status:9}{name}  was: {before[name]['by']}")
    return 1 if {status for _, status in found} & {"survived", "error"} else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="run the mutants' tests")
    running.add_argument("--only", default="", metavar="PREFIX", help="of an id, or an area")
    running.add_argument("--jobs", type=int, default=1, help="processes at once [1]")
    running.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="keep the results, or go on"
    )
    comparing = commands.add_parser("compare", help="list what is no longer caught")
    comparing.add_argument("base", type=Path)
    comparing.add_argument("new", type=Path)
    given = parser.parse_args()
    if given.command == "compare":
        return compare(given.base, given.new)
    mutants = json.loads(MUTANTS.read_text(encoding="utf-8"))["mutants"]
    chosen = [m for m in mutants if m["id"].startswith(given.only) or m["area"] == given.only]
    run(chosen, given.jobs, given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
