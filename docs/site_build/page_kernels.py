"""Kernels in which a reader runs the cells of an open page, on their own machine.

A kernel has run exactly the cells above the one to run, as the page shows them: what is missing is
run first, and if a cell above has another text by now, all of them in a new kernel. A cell that is
run again finds the names of those above it, and none that an earlier text of its own has left.
Nothing that a reader runs is kept among the outputs of the chapters.
"""

import contextlib
import os
import queue
import re
import threading
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from jupyter_client.manager import KernelManager
from live_server import stamps
from traitlets.config import Config

from slp_transformer._internal.plugins import PACKAGES

MAX_KERNELS = 3  # with PyTorch each takes some 400 MB
MAX_OUTPUT = 200_000  # characters of what one cell puts out
READY_S = 60
MAX_PICTURE = 4_000_000  # of a picture, which is not cut
MAX_PICTURES = 8_000_000  # of all pictures of a cell
MAX_OUTPUTS = 500  # of a cell, one after the other
UPDATE_S = 0.2  # between two looks at what a cell has put out so far
TICK_S = 1.0  # between two signs of life of a cell that puts out nothing
REPLY_S = 5.0  # for what a kernel answers when it has finished a cell
CLOSE_S = 5.0  # for kernels to end with the server
LATE_S = 5.0  # for the next output of what a cell leaves running
Key = tuple[str, str]  # a chapter's stem, and its part: "chapter" or "exercises"
Event = dict[str, Any]


class KernelError(Exception):
    """A kernel that cannot be had, or has died; the message says so in a sentence."""


@dataclass
class Stop:
    """What a reader wants of a cell that runs.

    Attributes:
        times: how often Stop was clicked.
        ends_kernel: whether the kernel is to end with it.
    """

    times: int = 0
    ends_kernel: bool = False


@dataclass
class Collected:
    """What a cell has put out so far.

    Attributes:
        outputs: as in a notebook.
        is_cut: whether it was too much. An error is kept nevertheless.
        has_failed: whether the kernel says so at its end; of some errors, as of a group, it sends
            no traceback.
        num_left: how many threads and tasks that the cell has begun still run.
    """

    outputs: list[Any] = field(default_factory=list)
    is_cut: bool = False
    has_failed: bool = False
    num_left: int = 0
    _execution: int = 0  # the kernel's own count, which no page shows
    _size: int = 0
    _pictures_size: int = 0
    _is_full: bool = False
    _clear_before_next: bool = False

    def take(self, message: dict[str, Any]) -> bool:
        """Take a message of the kernel, and tell if the outputs are others by now."""
        kind, content = message["msg_type"], message["content"]
        if kind == "execute_input":
            self._execution = content["execution_count"]
        if kind == "clear_output":
            self._clear_before_next = content["wait"]
            if not content["wait"]:
                self._clear()
            return True
        if kind == "update_display_data":
            return self._update(message)
        if kind not in ("stream", "display_data", "execute_result", "error"):
            return False
        if self._clear_before_next:
            self._clear()
        if self.is_cut and kind != "error":
            return False
        made = nbformat.v4.output_from_msg(message)
        if kind == "error":
            made.traceback = [self._with_cells(line) for line in made.traceback]
            self.outputs.append(_shortened(made))
        elif kind == "stream":
            self._write(made)
        else:
            made["display_id"] = content.get("transient", {}).get("display_id")
            self._show(made)
        return True

    def _with_cells(self, line: str) -> str:
        """Name cells in a line of a traceback as the page can: it shows no counts of the kernel."""

        def name(match: re.Match[str]) -> str:
            is_own = int(match[2]) == self._execution
            return f"{'This cell' if is_own else 'A cell that ran before'}{match[1].rstrip()}"

        return CELL.sub(name, line)

    def page(self, text: str) -> None:
        """Take what a pager would show, as of `print?`."""
        self._show(nbformat.v4.new_output("display_data", {"text/plain": text}))

    def _clear(self) -> None:
        self.outputs.clear()
        self.is_cut = self._is_full = self._clear_before_next = False
        self._size = self._pictures_size = 0

    def _write(self, made: Any) -> None:
        """Append a stream to its last part; a carriage return has its line written over."""
        room = MAX_OUTPUT - self._size
        last = self.outputs[-1] if self.outputs else None
        if not last or last.get("name") != made.name:
            last = nbformat.v4.new_output("stream", name=made.name, text="")
            self.outputs.append(last)
        whole, newline, line = last.text.rpartition("\n")
        line = _overwritten((line + made.text).replace("\r\n", "\n"))
        before = len(last.text)
        last.text = whole + newline + line
        added = len(last.text) - before
        if added > room:
            last.text = last.text[: before + room]
            self._cut()
        self._size += added

    def _show(self, made: Any) -> None:
        """Append what is displayed."""
        if len(self.outputs) >= MAX_OUTPUTS:
            return self._cut(f"{MAX_OUTPUTS} outputs")
        given = dict(made.data)
        made.data, is_too_long = self._fitting(given)
        self.outputs.append(made)
        self._say_what_is_missing(given)
        if is_too_long:
            self._cut()
        return None

    def _fitting(self, given: dict[str, Any]) -> tuple[Any, bool]:
        """Return what there is room for, and if that is not all; of a long text its beginning.

        A picture is not cut: it is taken or left.
        """
        kinds = {kind: text for kind, text in given.items() if kind not in SCRIPTS}
        pictures = {kind: len(str(text)) for kind, text in kinds.items() if _is_picture(kind)}
        for kind, size in pictures.items():
            if size > MAX_PICTURE or self._pictures_size + size > MAX_PICTURES:
                del kinds[kind]
            else:
                self._pictures_size += size
        room = MAX_OUTPUT - self._size
        texts = {kind: len(str(text)) for kind, text in kinds.items() if not _is_picture(kind)}
        is_too_long = sum(texts.values()) > room or (not kinds and not pictures)
        if is_too_long:
            kinds = {k: v for k, v in kinds.items() if _is_picture(k) or k == "text/plain"}
            if "text/plain" in kinds:
                kinds["text/plain"] = str(kinds["text/plain"])[:room]
        self._size += sum(len(str(text)) for kind, text in kinds.items() if not _is_picture(kind))
        return nbformat.from_dict(kinds), is_too_long

    def _say_what_is_missing(self, given: dict[str, Any]) -> None:
        """Name what an output had and the page does not show, each kind of it once."""
        shown = self.outputs[-1].data
        if not SCRIPTS.isdisjoint(given) or "<script" in str(given.get("text/html")):
            self._say(NO_SCRIPT)
        for kind in filter(_is_picture, given.keys() - shown.keys()):
            size = len(str(given[kind]))
            if size > MAX_PICTURE:
                self._say(NO_PICTURE.format(size / 1e6))
            elif not self._is_full:
                self._is_full = True
                self._say(NO_MORE_PICTURES)

    def _cut(self, after: str = "") -> None:
        self.is_cut = True
        after = after or f"{MAX_OUTPUT:,} characters"
        self._say(f"\n… The output is cut here, after {after}.")

    def _say(self, sentence: str) -> None:
        """Append a sentence of ours."""
        text = f"{sentence}\n"
        self.outputs.append(nbformat.v4.new_output("stream", name="stderr", text=text))

    def _update(self, message: dict[str, Any]) -> bool:
        display_id = message["content"].get("transient", {}).get("display_id")
        for output in self.outputs:
            if output.get("display_id") == display_id:
                for kind, text in output["data"].items():  # gives its room back
                    size = len(str(text))
                    if _is_picture(kind):
                        self._pictures_size -= size
                    else:
                        self._size -= size
                output["data"], _ = self._fitting(message["content"]["data"])
        return True

    @property
    def wait_s(self) -> float:
        """How long the page waits for the next look: each sends all outputs, and takes its time."""
        size = self._size + self._pictures_size + 1000 * len(self.outputs)
        return UPDATE_S * (1 + size / 500_000)


CELL = re.compile(r"Cell((?:\x1b\[[\d;]*m| )*)In ?\[(\d+)\]")
MAX_TRACEBACK = 20_000  # characters; a deep recursion has millions


def _overwritten(text: str) -> str:
    """Return each line from its last carriage return on, unless nothing has come after that yet."""
    if "\r" not in text:
        return text
    return "\n".join(line[line.rfind("\r", 0, -1) + 1 :] for line in text.split("\n"))


def _is_picture(kind: str) -> bool:
    return kind.startswith("image/")


def _shortened(error: Any) -> Any:
    """Return an error whose traceback has room: its beginning and its last lines."""
    if error.ename == "StdinNotImplementedError":
        error.update(ename="input()", evalue="", traceback=[NO_INPUT])
    trace = "\n".join(error.traceback)
    if len(trace) > MAX_TRACEBACK:
        lines = trace[: MAX_TRACEBACK // 2].split("\n")[:-1]
        last = trace[-MAX_TRACEBACK // 2 :].partition("\n")[2] or trace[-MAX_TRACEBACK // 2 :]
        error.traceback = [*lines, "… Lines are left out here …", last]
    return error


SCRIPTS = {"application/javascript", "application/vnd.jupyter.widget-view+json"}
LATE = {"stream", "display_data"}  # what a thread or a task of an earlier cell may put out
NO_SCRIPT = """The page runs no script of an output: widgets and animations stand still.
Figures need `%matplotlib inline` (the default); an animation can be shown as a GIF."""
NO_PICTURE = "A picture of {:.1f} MB is left out: make it smaller or coarser (4 MB at most)."
NO_MORE_PICTURES = "From here on pictures are left out: a cell shows 8 MB of them."
NO_INPUT = """Nothing can be asked here, neither by input() nor by a debugger:
write the value into the cell, and print what you want to see."""
PREPARE = (
    f"__import__('runpy').run_path({str(Path(__file__).with_name('reader_kernel.py'))!r})"
    "['prepare'](get_ipython())"
)
# The body of a module, other than the cell itself, among the frames of the last error.
WAS_IMPORTING = (
    "any(frame.f_code.co_name == '<module>' and frame.f_globals.get('__name__') != '__main__'"
    " for frame, _ in __import__('traceback').walk_tb("
    "getattr(__import__('sys'), 'last_traceback', None)))"
)


NUM_LEFT = "get_ipython().background.count()"  # see `reader_kernel.Background`


class Kernel:
    """One kernel, and the cells that it has run; one request at a time uses it.

    Attributes:
        executed: the sources of the cells that ran, in their order.
        exercises: those of the exercises that ran, by their numbers; they may run in any order.
        used: when it was used last.
        has_half_import: whether a module was stopped while it was imported: none can import it
            again in this kernel.
    """

    def __init__(self, root: Path) -> None:
        """Start a kernel in an empty folder of its own.

        Raises:
            KernelError: if it does not start.
        """
        self.root = root
        self.executed: list[str] = []
        self.exercises: dict[int, str] = {}
        self.has_half_import = False
        self.used = time.monotonic()
        self._package = stamps(root / name for name in PACKAGES)
        self._place = TemporaryDirectory(prefix="slp_cells_", ignore_cleanup_errors=True)
        config = Config({"KernelManager": {"transport_encryption": "auto"}})
        self._manager = KernelManager(kernel_name="python3", config=config)
        # The file says how to talk to the kernel: in a folder that is gone with it.
        self._manager.connection_file = str(Path(self._place.name, ".kernel.json"))
        path = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
        env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "PYTHONPATH": path}
        try:
            with open(os.devnull, "w", encoding="utf-8") as nowhere:  # not the server's terminal
                streams = {"stdout": nowhere, "stderr": nowhere}
                self._manager.start_kernel(env=env, cwd=self._place.name, **streams)
            self._client = self._manager.blocking_client()
            self._client.start_channels()
            self._client.wait_for_ready(timeout=READY_S)
            # Not as a cell, after which IPython puts the `write` of streams back.
            expression = {"prepare": PREPARE}
            self._client.execute("", silent=True, user_expressions=expression, allow_stdin=False)
        except Exception as error:
            self.close()
            raise KernelError(f"The kernel did not start: {error}") from None

    @property
    def has_old_package(self) -> bool:
        """Whether the package has changed since the kernel was started."""
        return stamps(self.root / name for name in PACKAGES) != self._package

    def begin(self, num_above: int, exercises: Collection[int] = ()) -> None:
        """Let the next cell find the names that so many cells above have left, and exercises.

        Args:
            num_above: how many of the cells that ran are above it.
            exercises: the numbers of those that it may call.

        Raises:
            KernelError: if a cell has taken away what this needs.
        """
        self._change_names(f"begin({num_above}, {[*exercises]})")

    def keep(self, source: str, place: int, exercise: int | None) -> None:
        """Take note of a cell that has run, with the names that it has left.

        Args:
            source: of the cell.
            place: how many cells are above it.
            exercise: its number, if it is an exercise, which may run in any order.

        Raises:
            KernelError: if a cell has taken away what this needs.
        """
        self._change_names(f"keep({place}, {exercise})")
        if exercise is None:
            self.executed.append(source)
        else:
            self.exercises[exercise] = source

    def _change_names(self, call: str) -> None:
        if self._evaluate(f"get_ipython().kept_names.{call}", "") != "None":
            raise KernelError("The kernel's own names are gone. The next run begins afresh.")

    def run(self, source: str, stop: Stop) -> Iterator[Collected | None]:
        """Run a cell; yields what it has put out, now and then, and at its end.

        Args:
            source: of the cell.
            stop: tells when a reader has enough of it.

        Yields:
            What is put out so far, or None as a sign that it still runs; at last all outputs.

        Raises:
            KernelError: if the kernel dies, or is to end.
        """
        self.used = time.monotonic()
        made = Collected()
        asked = self._client.execute(source, allow_stdin=False, user_expressions={"left": NUM_LEFT})
        shown_at, has_news, has_begun, interrupts = time.monotonic(), False, False, 0
        while True:
            try:
                message = self._client.get_iopub_msg(timeout=UPDATE_S)
            except queue.Empty:
                message = None
                if not self._manager.is_alive():
                    text = "The kernel has died; the next run starts another."
                    raise KernelError(text) from None
            if stop.ends_kernel:
                raise KernelError("You ended the kernel. The next run begins afresh.")
            if message and message["parent_header"].get("msg_id") != asked:
                has_news |= message["msg_type"] in LATE and made.take(message)
            elif message:
                has_begun = True
                content = message["content"]
                if message["msg_type"] == "status" and content["execution_state"] == "idle":
                    break
                has_news |= made.take(message)
            # What has not begun yet would not notice.
            if has_begun and stop.times > interrupts:
                self._manager.interrupt_kernel()
                interrupts = stop.times
            waited = time.monotonic() - shown_at
            if waited > (made.wait_s if has_news else TICK_S):
                yield made if has_news else None
                shown_at, has_news = time.monotonic(), False
        answer = self._answer(asked)
        if not answer:  # as after `sys.stdout = None`: it would go on so, and run nothing
            yield made
            raise KernelError("The kernel no longer answers. The next run begins afresh.")
        made.has_failed = answer.get("status") == "error"
        payload = {one.get("source"): one for one in answer.get("payload", [])}
        if "page" in payload:
            made.page(payload["page"]["data"].get("text/plain", ""))
        if "ask_exit" in payload:  # it has a second to live, in which another cell could begin
            yield made
            raise KernelError("The cell ended the kernel. The next run begins afresh.")
        if interrupts:
            self.has_half_import = self._was_importing()
        made.num_left = int(_value(answer, "left", "0"))
        yield from self._late(made, stop)
        self.used = time.monotonic()
        yield made

    def _late(self, made: Collected, stop: Stop) -> Iterator[Collected]:
        """Wait for what a cell has left running, unless it is silent for long."""
        heard_at = time.monotonic()
        while made.num_left and not stop.times and time.monotonic() - heard_at < LATE_S:
            yield made
            made.num_left = int(self._evaluate(NUM_LEFT, "0"))
            with contextlib.suppress(queue.Empty):
                while True:
                    message = self._client.get_iopub_msg(timeout=UPDATE_S)
                    if message["msg_type"] in LATE and made.take(message):
                        heard_at = time.monotonic()

    def _answer(self, asked: str) -> dict[str, Any]:
        """Return what the kernel answers to a request; nothing if it does not in time."""
        while True:
            try:
                reply = self._client.get_shell_msg(timeout=REPLY_S)
            except queue.Empty:
                return {}
            if reply["parent_header"].get("msg_id") == asked:
                return reply["content"]

    def _was_importing(self) -> bool:
        """Whether the last error fell into a module that was being imported."""
        return self._evaluate(WAS_IMPORTING, "True") != "False"

    def _evaluate(self, expression: str, default: str) -> str:
        """Return what an expression is in the kernel; `default` if that cannot be known."""
        asked = self._client.execute(
            "", silent=True, user_expressions={"value": expression}, allow_stdin=False
        )
        return _value(self._answer(asked), "value", default)

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
        self._stops: dict[Key, Stop] = {}  # of what runs
        self._is_closing = False
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
            What happens: "waiting" for another cell of the chapter, "progress" with the number of
            cells above that ran, "running" when the cell itself does, "note" with a sentence,
            "outputs" of the cell so far, "tick" as a sign of life, and "end" with how it ended:
            "ok", "error", "stopped", "failed above" with the place of that cell among those above
            and called, or "dead".
        """
        start = time.monotonic()
        with self._lock:
            busy = self._busy.setdefault(key, threading.Lock())
        is_free = busy.acquire(blocking=False)
        while not is_free:  # one cell after the other
            yield {"kind": "waiting"}
            is_free = busy.acquire(timeout=TICK_S)
        stop = self._stops[key] = Stop()
        try:
            yield from self._run(key, above, source, called or {}, exercise, stop, start)
        except KernelError as error:
            self._end(key)
            state = "stopped" if stop.times or stop.ends_kernel else "dead"
            yield {"kind": "end", "state": state, "text": str(error)}
        except GeneratorExit:  # the page was closed: nobody knows how far the kernel is
            self._end(key)
            raise
        finally:
            del self._stops[key]
            busy.release()

    def _run(
        self,
        key: Key,
        above: list[str],
        source: str,
        called: dict[int, str],
        exercise: int | None,
        stop: Stop,
        start: float,
    ) -> Iterator[Event]:
        kernel = self._get(key)
        if kernel.has_old_package:
            yield {"kind": "note", "text": "The package has changed: this is a new kernel."}
        shared = min(len(kernel.executed), len(above))
        if kernel.has_old_package or kernel.executed[:shared] != above[:shared]:
            self._end(key)
            kernel = self._get(key)
        missing = [(place, None, above[place]) for place in range(len(above))]
        del missing[: len(kernel.executed)]
        has_run = [
            number for number, text in called.items() if kernel.exercises.get(number) == text
        ]
        for place, (number, text) in enumerate(called.items(), len(above)):
            if number not in has_run:
                missing.append((place, number, text))
        kernel.begin(min(len(kernel.executed), len(above)), has_run)
        of = len(above) + len(called)
        for place, number, text in missing:
            if stop.times or stop.ends_kernel:
                break
            yield {"kind": "progress", "done": place, "of": of}
            made = None
            for made in kernel.run(text, stop):  # noqa: B007
                yield {"kind": "tick"}
            if stop.times:
                break
            if has_error(made):
                yield {"kind": "outputs", "outputs": made.outputs}
                yield {"kind": "end", "state": "failed above", "at": place}
                return
            kernel.keep(text, place, number)
        if stop.times or stop.ends_kernel:
            # A cell above that was stopped half-way, perhaps in an import, is not to be built on.
            self._end(key)
            yield {"kind": "end", "state": "stopped", "text": STOPPED_AFRESH}
            return
        said = []
        if exercise is None:
            if len(kernel.executed) > len(above) + 1:
                said.append(BELOW_RAN)
            del kernel.executed[len(above) :]
        yield {"kind": "running"}
        for made in kernel.run(source, stop):
            if made and not kernel.has_half_import:  # whose traceback is of the import
                yield {"kind": "outputs", "outputs": made.outputs}
            else:
                yield {"kind": "tick"}
        if stop.times and has_error(made):
            text = "You stopped it."
            if kernel.has_half_import:
                self._end(key)
                text = STOPPED_AFRESH
            yield {"kind": "end", "state": "stopped", "text": text}
            return
        if exercise is None or not has_error(made):
            kernel.keep(source, len(above), exercise)
        state = "error" if has_error(made) else "ok"
        end = {"kind": "end", "state": state, "seconds": time.monotonic() - start}
        if made and made.num_left:
            said.append(STILL_RUNS)
        yield end | ({"text": " ".join(said)} if said else {})

    def _get(self, key: Key) -> Kernel:
        with self._lock:
            if self._is_closing:
                raise KernelError("The server has stopped: start it again.")
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
        """Stop what runs in a chapter's kernel, or is about to; nothing else."""
        if stop := self._stops.get(key):
            stop.times += 1

    def restart(self, key: Key) -> None:
        """End a chapter's kernel; the next run starts another."""
        if stop := self._stops.get(key):
            stop.ends_kernel = True  # by the thread that talks to it
        else:
            self._end(key)

    def _end(self, key: Key) -> None:
        with self._lock:
            kernel = self._running.pop(key, None)
        if kernel:
            kernel.close()

    def close(self) -> None:
        """End all kernels, each by the thread that talks to it, if there is one."""
        self._is_closing = True
        for stop in list(self._stops.values()):
            stop.ends_kernel = True
        end = time.monotonic() + CLOSE_S
        while self._stops and time.monotonic() < end:
            time.sleep(TICK_S / 100)
        with self._lock:
            running, self._running = list(self._running.values()), {}
        for kernel in running:
            kernel.close()


BELOW_RAN = "Cells below it had run in this kernel: Restart begins afresh."
STILL_RUNS = (
    "What it has begun in the background still runs; what that puts out comes with the next cell."
)
STOPPED_AFRESH = "You stopped it. The next run begins in a new kernel."


def _value(answer: dict[str, Any], name: str, default: str) -> str:
    """Return what an expression was when a kernel answered; `default` if it was not evaluated."""
    found = answer.get("user_expressions", {}).get(name, {})
    return found.get("data", {}).get("text/plain", default)


def has_error(made: Collected | None) -> bool:
    """Tell if a cell raised."""
    if made is None:
        return False
    return made.has_failed or any(output.output_type == "error" for output in made.outputs)
