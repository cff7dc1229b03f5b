"""Kernels in which a reader runs the cells of an open page, on their own machine.

A kernel has run exactly the cells above the one to run, as the page shows them: what is missing is
run first, and if a cell above has another text by now, all of them in a new kernel. Nothing that a
reader runs is kept among the outputs of the chapters.
"""

import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from chapter_source import PACKAGE
from jupyter_client.manager import KernelManager
from serving import stamps
from traitlets.config import Config

MAX_KERNELS = 3  # with PyTorch each takes some 400 MB
MAX_OUTPUT = 200_000  # characters of what one cell puts out
READY_S = 60
UPDATE_S = 0.2  # between two looks at what a cell has put out so far
Key = tuple[str, str]  # a chapter's stem, and its part: "chapter" or "exercises"
Event = dict[str, Any]


class KernelError(Exception):
    """A kernel that cannot be had, or has died; the message says so in a sentence."""


@dataclass
class Collected:
    """What a cell has put out so far.

    Attributes:
        outputs: as in a notebook.
        is_cut: whether it was too much.
    """

    outputs: list[Any] = field(default_factory=list)
    is_cut: bool = False
    _size: int = 0
    _clear_before_next: bool = False

    def take(self, message: dict[str, Any]) -> bool:
        """Take a message of the kernel, and tell if the outputs are others by now."""
        kind, content = message["msg_type"], message["content"]
        if kind == "clear_output":
            self._clear_before_next = content["wait"]
            if not content["wait"]:
                self.outputs.clear()
            return True
        if kind == "update_display_data":
            return self._update(message)
        if kind not in ("stream", "display_data", "execute_result", "error") or self.is_cut:
            return False
        if self._clear_before_next:
            self.outputs.clear()
            self._clear_before_next = False
        made = nbformat.v4.output_from_msg(message)
        made["display_id"] = content.get("transient", {}).get("display_id")
        if kind == "error" and content["ename"] == "StdinNotImplementedError":
            made.update(ename="input()", evalue="", traceback=[NO_INPUT])
        self._size += len(str(made))
        if self._size > MAX_OUTPUT:
            self.is_cut = True
            text = f"\n… The output is cut here, after {MAX_OUTPUT:,} characters.\n"
            made = nbformat.v4.new_output("stream", name="stderr", text=text)
        last = self.outputs[-1] if self.outputs else None
        if kind == "stream" and last and last.get("name") == made.get("name") and not self.is_cut:
            last["text"] += made["text"]
        else:
            self.outputs.append(made)
        return True

    def _update(self, message: dict[str, Any]) -> bool:
        display_id = message["content"].get("transient", {}).get("display_id")
        for output in self.outputs:
            if output.get("display_id") == display_id:
                output["data"] = nbformat.from_dict(message["content"]["data"])
        return True


NO_INPUT = "input() cannot ask anything here: write the value into the cell instead."


class Kernel:
    """One kernel, and the cells that it has run; one request at a time uses it.

    Attributes:
        executed: the sources of the cells that ran, in their order.
        exercises: those of the exercises that ran, by their numbers; they may run in any order.
        used: when it was used last.
    """

    def __init__(self, root: Path) -> None:
        """Start a kernel in an empty folder of its own.

        Raises:
            KernelError: if it does not start.
        """
        self.root = root
        self.executed: list[str] = []
        self.exercises: dict[int, str] = {}
        self.used = time.monotonic()
        self._package = stamps([root / PACKAGE])
        self._place = TemporaryDirectory(prefix="slp_cells_", ignore_cleanup_errors=True)
        config = Config({"KernelManager": {"transport_encryption": "auto"}})
        self._manager = KernelManager(kernel_name="python3", config=config)
        # The file says how to talk to the kernel: in a folder that is gone with it.
        self._manager.connection_file = str(Path(self._place.name, ".kernel.json"))
        path = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
        env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "PYTHONPATH": path}
        try:
            with open(os.devnull, "w", encoding="utf-8") as nowhere:
                self._manager.start_kernel(env=env, cwd=self._place.name, stderr=nowhere)
            self._client = self._manager.blocking_client()
            self._client.start_channels()
            self._client.wait_for_ready(timeout=READY_S)
        except Exception as error:
            self.close()
            raise KernelError(f"The kernel did not start: {error}") from None

    @property
    def has_old_package(self) -> bool:
        """Whether the package has changed since the kernel was started."""
        return stamps([self.root / PACKAGE]) != self._package

    def run(self, source: str) -> Iterator[Collected]:
        """Run a cell; yields what it has put out, now and then, and at its end.

        Raises:
            KernelError: if the kernel dies.
        """
        self.used = time.monotonic()
        made = Collected()
        asked = self._client.execute(source, allow_stdin=False, stop_on_error=True)
        shown_at, has_news = time.monotonic(), False
        try:
            while True:
                try:
                    message = self._client.get_iopub_msg(timeout=UPDATE_S)
                except queue.Empty:
                    message = None
                    if not self._manager.is_alive():
                        text = "The kernel has died; the next run starts another."
                        raise KernelError(text) from None
                if message and message["parent_header"].get("msg_id") == asked:
                    content = message["content"]
                    if message["msg_type"] == "status" and content["execution_state"] == "idle":
                        break
                    has_news |= made.take(message)
                if has_news and time.monotonic() - shown_at > UPDATE_S:
                    yield made
                    shown_at, has_news = time.monotonic(), False
        except GeneratorExit:  # the page was closed: nobody waits for the rest
            self.interrupt()
            raise
        self.used = time.monotonic()
        yield made

    def interrupt(self) -> None:
        """Stop the cell that runs."""
        self._manager.interrupt_kernel()

    def close(self) -> None:
        """End the kernel, and remove its folder."""
        try:
            if hasattr(self, "_client"):
                self._client.stop_channels()
            if self._manager.has_kernel:
                self._manager.shutdown_kernel(now=True)
        finally:
            self._place.cleanup()


class Kernels:
    """The kernels of a server, at most three."""

    def __init__(self, root: Path, start: Callable[[Path], Kernel] = Kernel) -> None:
        """Begin without any.

        Args:
            root: the project's folder.
            start: starts a kernel.
        """
        self.root = root
        self._start = start
        self._running: dict[Key, Kernel] = {}
        self._busy: dict[Key, threading.Lock] = {}
        self._lock = threading.Lock()

    def run(
        self,
        key: Key,
        above: list[str],
        source: str,
        called: dict[int, str] | None = None,
        exercise: int | None = None,
    ) -> Iterator[Event]:
        """Run a cell after those above it.

        Args:
            key: the chapter and its part.
            above: the sources of the cells above, from the first on.
            source: of the cell.
            called: the sources of the exercises whose functions it calls, by their numbers.
            exercise: the cell's number, if it is an exercise itself.

        Yields:
            What happens: "progress" with the number of cells above that ran, "note" with a
            sentence, "outputs" of the cell so far, and "end" with how it ended: "ok", "error",
            "failed above" with the place of that cell among those above and called, or "dead".
        """
        start = time.monotonic()
        with self._lock:
            busy = self._busy.setdefault(key, threading.Lock())
        with busy:  # one cell after the other
            try:
                kernel = self._get(key)
                if kernel.has_old_package:
                    yield {"kind": "note", "text": "The package has changed: this is a new kernel."}
                shared = min(len(kernel.executed), len(above))
                if kernel.has_old_package or kernel.executed[:shared] != above[:shared]:
                    self.restart(key)
                    kernel = self._get(key)
                missing = [(place, None, above[place]) for place in range(len(above))]
                del missing[: len(kernel.executed)]
                for place, (number, text) in enumerate((called or {}).items(), len(above)):
                    if kernel.exercises.get(number) != text:
                        missing.append((place, number, text))
                of = len(above) + len(called or {})
                for place, number, text in missing:
                    yield {"kind": "progress", "done": place, "of": of}
                    *_, made = kernel.run(text)
                    if has_error(made):
                        yield {"kind": "outputs", "outputs": made.outputs}
                        yield {"kind": "end", "state": "failed above", "at": place}
                        return
                    _keep(kernel, number, text)
                if exercise is None:
                    del kernel.executed[len(above) :]
                for made in kernel.run(source):
                    yield {"kind": "outputs", "outputs": made.outputs}
                if exercise is None or not has_error(made):
                    _keep(kernel, exercise, source)
                state = "error" if has_error(made) else "ok"
                yield {"kind": "end", "state": state, "seconds": time.monotonic() - start}
            except KernelError as error:
                self.restart(key)
                yield {"kind": "end", "state": "dead", "text": str(error)}

    def _get(self, key: Key) -> Kernel:
        with self._lock:
            if key not in self._running:
                if len(self._running) >= MAX_KERNELS:
                    idle = [other for other in self._running if not self._busy[other].locked()]
                    if not idle:
                        raise KernelError(
                            f"{MAX_KERNELS} chapters are running already: stop one of them first."
                        )
                    self._running.pop(min(idle, key=lambda k: self._running[k].used)).close()
                self._running[key] = self._start(self.root)
            return self._running[key]

    def interrupt(self, key: Key) -> None:
        """Stop what runs in a chapter's kernel, if it has one."""
        with self._lock:
            kernel = self._running.get(key)
        if kernel:
            kernel.interrupt()

    def restart(self, key: Key) -> None:
        """End a chapter's kernel; the next run starts another."""
        with self._lock:
            kernel = self._running.pop(key, None)
        if kernel:
            kernel.close()

    def close(self) -> None:
        """End all kernels."""
        with self._lock:
            running, self._running = list(self._running.values()), {}
        for kernel in running:
            kernel.close()


def _keep(kernel: Kernel, exercise: int | None, source: str) -> None:
    """Keep what a kernel has run: a cell, or an exercise with its number."""
    if exercise is None:
        kernel.executed.append(source)
    else:
        kernel.exercises[exercise] = source


def has_error(made: Collected) -> bool:
    """Tell if a cell raised."""
    return any(output.output_type == "error" for output in made.outputs)
