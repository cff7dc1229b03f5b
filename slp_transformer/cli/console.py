"""What goes where: results to stdout, everything else to stderr, and endings that scripts trust."""

import contextlib
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = "slp-transformer"
MODULE = "-m -- slp_transformer"  # the program, as torchrun is told it
FINE, FAILED, BAD_INPUT, BROKEN_PIPE = 0, 1, 2, 141
SIGNALLED = 128  # and the number of the signal, as shells have it


def rank() -> int:
    """Which of the processes that torchrun started this one is; 0 if there is only one."""
    return int(os.environ.get("RANK", "0"))


def processes() -> int:
    """How many processes torchrun has started; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def result(text: str, end: str = "\n") -> None:
    """Print a result, which another program may read; of several processes the first one does."""
    if rank() == 0:
        print(text, end=end, flush=True)


def result_json(content: Any) -> None:
    """Print a result as JSON."""
    result(as_json(content))


def as_json(content: Any) -> str:
    """A result as JSON, which has no word for NaN."""
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)


def note(text: str) -> None:
    """Tell the person at the keyboard something."""
    if rank() == 0:
        print(text, file=sys.stderr, flush=True)


def failure(text: str) -> None:
    """Say why there is no result; each process says it, since its reason may be its own."""
    who = f"{PROGRAM} (process {rank()})" if rank() else PROGRAM
    with contextlib.suppress(OSError):  # the terminal may have been closed
        print(f"{who}: {text}", file=sys.stderr, flush=True)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that the machine, or its accelerator, has no memory left.

    PyTorch has a class for an accelerator's alone; a CPU's is told by its words on each system.
    """
    said = str(error).lower()
    words = ("out of memory", "can't allocate memory", "not enough memory")
    return isinstance(error, MemoryError) or any(word in said for word in words)


def is_of_the_compiler(error: BaseException) -> bool:
    """Whether `torch.compile` has failed, in whichever of its parts."""
    return type(error).__module__.startswith(("torch._dynamo", "torch._inductor"))


def what_needs_no_compiler(command: str) -> str:
    """What to say when PyTorch could not compile a model."""
    return (
        f"PyTorch could not compile the model on this machine: {command} without --compile. A run "
        "that was begun with it goes on with --resume --no-compile."
    )


def what_takes_less(command: str) -> str:
    """What to say when memory was not enough."""
    how = {
        "train": "choose a smaller --batch-size (with more --gradient-accumulation-steps the steps "
        "stay the same), --context-length, --model-dim or --num-blocks",
        "generate": "ask for fewer --num-samples or --tokens, or a smaller --num-beams",
    }
    return f"There is not enough memory for this: {how.get(command, 'take a smaller model')}."


def command(*words: str | Path, program: str = PROGRAM) -> str:
    """A command as it can be pasted into this system's shell."""
    words = [*program.split(), *map(str, words)]
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
