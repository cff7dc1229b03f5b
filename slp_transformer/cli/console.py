"""Results go to stdout, everything else to stderr; exit codes, and hints after failures."""

import contextlib
import errno
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from slp_transformer._internal.atomic_write import atomic_write
from slp_transformer._internal.signals import SignalHandler
from slp_transformer._internal.terminal import escape_controls

PROGRAM = "slp-transformer"
MODULE = "-m -- slp_transformer"  # the program, as torchrun takes it
EXIT_OK, FAILED, BAD_INPUT, BROKEN_PIPE = 0, 1, 2, 141
MAX_REMARKS = 8  # remarks of one kind that are printed
SIGNALLED = 128  # and the number of the signal, as shells have it


def rank() -> int:
    """Return the rank of this process among those that torchrun started; 0 if there is only one."""
    return int(os.environ.get("RANK", "0"))


def world_size() -> int:
    """Return how many processes torchrun has started; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def print_result(text: str, end: str = "\n", escape: bool = True) -> None:
    """Print a result, which another program may read, on rank 0.

    Raises:
        OSError: naming standard output, if it cannot be written to.
    """
    if rank() == 0:
        try:
            print(escape_controls(text) if escape else text, end=end, flush=True)
        except OSError as error:
            if is_broken_pipe(error):
                raise
            raise OSError(error.errno, error.strerror, "Standard output") from error


def print_text(text: str, end: str = "\n") -> None:
    """Print what a model wrote as it is, but for a terminal, which it could give commands."""
    print_result(text, end, escape=sys.stdout.isatty())


@contextlib.contextmanager
def open_lines(path: Path | None) -> Iterator[Callable[[str], Any]]:
    """Yield what writes lines to a file, which is there once all are, or else prints them."""
    if path is None:
        yield print_text
        return
    with atomic_write(path) as file:
        yield lambda line: file.write(f"{line}\n".encode())
    print_status(f"Written to {path}.")


def print_status(text: str, end: str = "\n") -> None:
    """Print a status message to stderr, on rank 0, if it can be written to."""
    if rank() == 0:
        with contextlib.suppress(OSError):
            print(escape_controls(text), end=end, file=sys.stderr, flush=True)


def print_remarks(remarks: Sequence[object]) -> None:
    """Print the first remarks on some data, and the number of the others."""
    for remark in remarks[:MAX_REMARKS]:
        print_status(str(remark))
    if len(remarks) > MAX_REMARKS:
        print_status(f"... and {len(remarks) - MAX_REMARKS} more like this")


def print_error(text: str) -> None:
    """Print why there is no result; on each rank, since reasons may differ."""
    who = f"{PROGRAM} (process {rank()})" if rank() else PROGRAM
    with contextlib.suppress(OSError):  # the terminal may have been closed
        print(f"{who}: {escape_controls(text)}", file=sys.stderr, flush=True)


def explain_resource_error(error: BaseException, command: str) -> str:
    """Return what to try after `torch.compile` failed or memory was not enough; else nothing.

    PyTorch has an error class for accelerators alone; on a CPU the message says it.
    """
    if type(error).__module__.startswith(("torch._dynamo", "torch._inductor")):
        return (
            f"PyTorch could not compile the model on this machine: {command} without --compile. A "
            "run that was begun with it resumes with --resume --no-compile."
        )
    words = ("out of memory", "can't allocate memory", "not enough memory")
    if not (isinstance(error, MemoryError) or any(word in str(error).lower() for word in words)):
        return ""
    if command in ("tab", "convert", "info", "export"):
        return "There is not enough memory for this: end other programs, or raise the limit."
    return (
        "There is not enough memory for this: choose a smaller model, --batch-size, "
        "--context-length, --num-samples or --max-new-tokens."
    )


def format_count(count: int, noun: str) -> str:
    """Return a count and a noun."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def format_command(*words: str | Path, program: str = PROGRAM) -> str:
    """Return a command as it can be pasted into this system's shell."""
    line = [*program.split(), *map(str, words)]
    return subprocess.list2cmdline(line) if os.name == "nt" else shlex.join(line)


def set_utf8_output() -> None:
    """Print UTF-8 wherever the output goes, on Windows too."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")


def is_broken_pipe(error: OSError) -> bool:
    """Tell if a reader like `head` has closed the pipe, which Windows calls an invalid argument."""
    invalid = os.name == "nt" and error.errno == errno.EINVAL and error.filename is None
    return invalid or isinstance(error, BrokenPipeError)


# --- Loading PyTorch, which takes seconds ---------------------------------------------------------


@contextlib.contextmanager
def torch_import_notice(quiet: bool = False) -> Iterator[None]:
    """Say that PyTorch is being loaded, if it is not yet, and let Ctrl-C end the process.

    In the middle of its import PyTorch may take KeyboardInterrupt for an error of its own.
    """
    if "torch" in sys.modules:
        yield
        return
    if not quiet:
        print_status("Loading PyTorch ...")
    with ExitOnSignal(defer=False):
        yield


class ExitOnSignal(SignalHandler):
    """Ends the process at once."""

    def handle_signal(self, number: int, _: FrameType | None) -> NoReturn:
        """Say so on rank 0, and end."""
        if rank() == 0:
            os.write(2, f"{PROGRAM}: Stopped before it began.\n".encode())
        os._exit(SIGNALLED + number)
