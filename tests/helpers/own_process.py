"""Python in a process of its own, and the memory that such a process has used."""

import os
import re
import subprocess
import sys
from pathlib import Path

import slp_transformer

PLACES = Path(slp_transformer.__file__).parent.parent, Path(__file__).parent
OWN = {
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": os.pathsep.join(map(str, PLACES)),
    # Every tensor of 64 KiB or more in pages of its own. Otherwise a peak depends on the holes in
    # glibc's heap, and those on the address where it begins, which is another in each run.
    "MALLOC_MMAP_THRESHOLD_": "65536",
}


def environment() -> dict[str, str]:
    """This process's variables, and this very package to be imported, wherever it is."""
    return {**os.environ, "PYTHONPATH": str(PLACES[0])}


def python(*arguments, cwd=None, **variables: str) -> subprocess.CompletedProcess:
    """Run Python, importing this very package and the tests' modules, without shape checks."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **OWN, **variables},
        capture_output=True,
        encoding="utf-8",
        timeout=1200,
    )


def printed(script: str, *arguments) -> str:
    """What a script prints."""
    result = python("-c", script, *arguments)
    assert result.returncode == 0, result.stderr
    return result.stdout


def peak() -> int:
    """The most memory that this process has had so far, in bytes; on Linux alone.

    Not `ru_maxrss`, which a process inherits from the one that started it: under a large one it
    does not move.
    """
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024
