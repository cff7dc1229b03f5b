"""What goes where: results to stdout, everything else to stderr, and endings that scripts trust."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from slp_transformer.starting import PROGRAM

FINE, FAILED, BAD_INPUT, BROKEN_PIPE = 0, 1, 2, 141


def rank() -> int:
    """Which of the processes that torchrun started this one is; 0 if there is only one."""
    return int(os.environ.get("RANK", "0"))


def result(text: str, end: str = "\n") -> None:
    """Print a result, which another program may read; of several processes the first one does."""
    if rank() == 0:
        print(text, end=end, flush=True)


def result_json(content: Any) -> None:
    """Print a result as JSON."""
    result(json.dumps(content, indent=1, ensure_ascii=False))


def note(text: str) -> None:
    """Tell the person at the keyboard something."""
    if rank() == 0:
        print(text, file=sys.stderr, flush=True)


def failure(text: str) -> None:
    """Say why there is no result; each process says it, since its reason may be its own."""
    who = f"{PROGRAM} (process {rank()})" if rank() else PROGRAM
    print(f"{who}: {text}", file=sys.stderr, flush=True)


def command(*words: str | Path) -> str:
    """A command as it can be pasted into this system's shell."""
    words = [PROGRAM, *map(str, words)]
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


def table(rows: dict[str, Any]) -> str:
    """Names and values, one beside the other."""
    width = max(map(len, rows), default=0)
    return "\n".join(f"{name:<{width}}  {value}".rstrip() for name, value in rows.items())


def speak_utf8() -> None:
    """Have results come out as UTF-8 wherever they go, on Windows too."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")


def nobody_listens() -> None:
    """Let what is still to be printed go nowhere: a reader like `head` has closed the pipe."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
