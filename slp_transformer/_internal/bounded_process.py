"""A process that runs what strangers wrote, and is ended when it takes too much.

A tokenizer.json or a chat template is a program: a few hundred bytes of it can make gigabytes of a
word, and while a library computes, no signal ends the process.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

from slp_transformer._internal.bounds import WAITS

WORKER = Path(__file__).with_name("bounded_worker.py")


class TookTooMuch(ValueError):
    """The process was ended by its limits.

    Attributes:
        of_memory: whether by that of memory, as far as that is known.
    """

    def __init__(self, of_memory: bool):
        """Take which limit it was."""
        super().__init__("it takes too much")
        self.of_memory: bool = of_memory


class BoundedProcess:
    """A process, which ends with this object."""

    def __init__(self) -> None:
        """Start it."""
        # Where this package was found, the other process finds it too.
        found = os.pathsep.join(map(os.path.abspath, sys.path))  # "" is the folder we are in
        self.popen: subprocess.Popen[bytes] = subprocess.Popen(
            [sys.executable, "-P", str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # where Rust writes of its panics
            env=os.environ | {"RAYON_NUM_THREADS": "1", "PYTHONPATH": found},
        )
        self.end: Any = weakref.finalize(self, end_process, self.popen)

    def exchange(
        self, what: str, payload: bytes, options: Any, seconds: float, memory: int
    ) -> tuple[dict[str, Any], bytes]:
        """Send a request and return the answer.

        Args:
            what: a method of its `Worker`.
            payload: bytes for it.
            options: its other arguments.
            seconds: of a processor that it may take from here on.
            memory: bytes that it may take from here on.

        Raises:
            TookTooMuch: if it was ended.
            ValueError: if it cannot do it.
        """
        popen = self.popen
        assert popen.stdin and popen.stdout
        head = {"do": what, "bytes": len(payload), "seconds": seconds, "memory": memory}
        # By the clock, where a system has no such limit, or much else to do.
        clock = threading.Timer(WAITS["strangers' programs"].seconds + seconds, popen.kill)
        clock.daemon = True
        clock.start()
        try:
            with contextlib.suppress(BrokenPipeError):  # it has ended: there is no answer
                line = json.dumps(head | {"options": options}).encode()
                popen.stdin.write(line + b"\n" + payload)
                popen.stdin.flush()
            line = popen.stdout.readline()
            answer = json.loads(line) if line.endswith(b"\n") else {"bytes": 0}
            content = popen.stdout.read(answer["bytes"])
        finally:
            clock.cancel()
        if not line.endswith(b"\n") or len(content) < answer["bytes"]:
            of_time = (getattr(signal, "SIGXCPU", signal.SIGTERM), getattr(signal, "SIGKILL", 1))
            raise TookTooMuch(-popen.wait() not in of_time and os.name == "posix")
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer, content


def end_process(process: subprocess.Popen[bytes]) -> None:
    """End a process, and close its pipes."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
