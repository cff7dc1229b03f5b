"""A report on a folder of students' files: who passed what, which mistakes are common.

It runs what students wrote, each file in a process of its own with limits of time and memory.
That keeps a slip from stopping the report; it does not keep malice out.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from slp_transformer.check.mine import UnreadableFile, check_functions

WARNING = (
    "This runs students' code with your rights: use a container, or a machine that may be lost. "
    "Nothing is sent anywhere."
)
NO_MEMORY_LIMIT = "This system has no memory limit for a process; only the time is limited."


def report_on_folder(folder: Path, timeout_s: float, memory_mib: int) -> dict[str, Any]:
    """Check every .py and .ipynb below a folder.

    Raises:
        UnreadableFile: if there is none.
    """
    paths = sorted(p for p in folder.rglob("*") if p.suffix in (".py", ".ipynb") and p.is_file())
    paths = [
        p for p in paths if not any(part.startswith(".") for part in p.relative_to(folder).parts)
    ]
    if not paths:
        raise UnreadableFile(f"{folder} holds no .py or .ipynb file.")
    limits: dict[str, Any] = {"timeout_s": timeout_s, "memory_mib": memory_mib}
    if not has_memory_limit():
        limits |= {"memory_mib": None, "note": NO_MEMORY_LIMIT}
    students = []
    for path in paths:
        print(f"checking {path.relative_to(folder)}", file=sys.stderr)
        found = _check_in_own_process(path, timeout_s, memory_mib)
        students.append({"file": path.relative_to(folder).as_posix(), **found})
    verdicts = [(name, v) for s in students for name, v in s["functions"].items()]
    mistakes = Counter((name, m) for name, v in verdicts for m in v["mistakes"])
    return {
        "warning": WARNING,
        "limits": limits,
        "students": students,
        "passed": dict(sorted(Counter(n for n, v in verdicts if v["is_right"]).items())),
        "mistakes": [
            {"function": name, "mistake": mistake, "students": count}
            for (name, mistake), count in mistakes.most_common()
        ],
    }


def _check_in_own_process(path: Path, timeout_s: float, memory_mib: int) -> dict[str, Any]:
    failed: dict[str, Any] = {"functions": {}}
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        words = [
            "-m",
            "slp_transformer.check.class_report",
            str(path),
            str(result),
            str(memory_mib),
        ]
        try:
            done = subprocess.run(
                [sys.executable, *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=timeout_s,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )
            found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
            return found
        except subprocess.TimeoutExpired:
            return failed | {"error": f"It took more than {timeout_s:g} seconds."}
        except (OSError, ValueError):
            return failed | {"error": f"It ended without a result (exit code {done.returncode})."}


def has_memory_limit() -> bool:
    """Tell whether this system limits a process's memory."""
    return Path("/proc/self/statm").is_file()


def limit_memory(mib: int) -> None:
    """Let this process take so much memory more than it has, where the system can."""
    if has_memory_limit():
        import resource  # POSIX alone has it

        pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0])
        most = pages * resource.getpagesize() + mib * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def main(path: str, result: str, memory_mib: str) -> None:
    """Check one file, and write what was found."""
    limit_memory(int(memory_mib))
    found: dict[str, Any] = {"functions": {}, "error": None}
    try:
        _, verdicts = check_functions([Path(path)])
        found["functions"] = {name: asdict(verdicts[name]) for name in sorted(verdicts)}
    except UnreadableFile as error:
        found["error"] = str(error)
    Path(result).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
