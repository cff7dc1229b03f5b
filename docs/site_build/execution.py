"""Runs chapters: only when their code or the package behind it changed, and says what failed where.

A chapter is a percent script. Jupytext reads it, nbclient executes its cells, and the outputs are
kept in a cache, together with the names of the package's functions that ran. The key to the cache
is what the outputs depend on, by `chapter_source.key_of`.
(jupyter-cache finds a notebook again by its own cells. That a module behind them has changed is
among what its authors still wish for.)
"""

import json
import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from difflib import SequenceMatcher
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

import nbformat
from chapter_source import (
    Chapter,
    Ran,
    exact_key_of,
    files_of,
    key_of,
    module_name,
    package_files,
)
from filelock import FileLock
from forked_kernels import IPYTHON, PYTORCH, ForkedKernelManager
from links import SHOWN
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from traitlets.config import Config

from slp_transformer._internal.plugins import PACKAGES

WORKERS = 2
CLOSE_S = 5.0  # for kernels to end, and threads to see it


class ChapterError(Exception):
    """A cell that raised, or a figure without alt text; the message names chapter, line and cell.

    Attributes:
        outputs: the outputs up to the failure, one list for each code cell; empty if it never ran.
    """

    def __init__(self, message: str, outputs: list | None = None):
        super().__init__(message)
        self.outputs = outputs or []


# ---------------------------------------------------------------------------- the cache


class Cache:
    """The outputs of chapters, in a folder that git ignores; one file for each chapter."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._read: dict[Path, tuple[int, dict]] = {}

    def load(self, chapter: Chapter) -> list | None:
        """The outputs of each code cell, or None if the chapter has to run."""
        path = self._path(chapter)
        try:
            written = path.stat().st_mtime_ns
            if path not in self._read or self._read[path][0] != written:
                self._read[path] = (written, json.loads(path.read_text(encoding="utf-8")))
            kept = self._read[path][1]
            exact = exact_key_of(chapter, kept["ran"])
            if kept.get("exact") != exact:
                if kept["key"] != key_of(chapter, kept["ran"]):
                    return None
                self._write(path, kept | {"exact": exact})  # the next start need not parse
            return kept["outputs"]
        except (OSError, ValueError, KeyError, SyntaxError):  # as of a module while it is edited
            return None

    def load_stale(self, chapter: Chapter) -> list | None:
        """The outputs of the last run, of cells that are as they were; None if there was none."""
        try:
            kept = json.loads(self._path(chapter).read_text(encoding="utf-8"))
            before, outputs = kept["cells"], kept["outputs"]
        except (OSError, ValueError, KeyError):
            return None
        now = [cell.source for cell in chapter.code_cells]
        found: list[list] = [[] for _ in now]
        for i, j, size in SequenceMatcher(None, before, now, False).get_matching_blocks():
            found[j : j + size] = outputs[i : i + size]
        return found

    def store(self, chapter: Chapter, outputs: list, ran: Ran) -> None:
        """Keeps the outputs, and what ran, in place of what was kept before."""
        self.folder.mkdir(parents=True, exist_ok=True)
        kept = {"key": key_of(chapter, ran), "exact": exact_key_of(chapter, ran)}
        kept |= {"ran": ran, "outputs": outputs}
        kept["cells"] = [cell.source for cell in chapter.code_cells]
        self._write(self._path(chapter), kept)

    def _write(self, path: Path, kept: dict) -> None:
        fresh = path.with_suffix(f".{os.getpid()}.tmp")
        fresh.write_text(json.dumps(kept), encoding="utf-8")
        fresh.replace(path)

    def run(self, chapter: Chapter) -> list:
        """The outputs that are kept, or those of a run that then are.

        Whoever else wants the chapter at the same time, another build or a test, waits for it.

        Raises:
            ChapterError: when a cell raises or the kernel dies.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with FileLock(self._path(chapter).with_suffix(".lock")):
            outputs = self.load(chapter)
            if outputs is None:
                before = _times(chapter)
                outputs, ran = run_chapter(chapter)
                after = _times(chapter)
                if all(before.get(name) == after.get(name) for name in ran):  # none was edited
                    self.store(chapter, outputs, ran)
        return outputs

    def _path(self, chapter: Chapter) -> Path:
        return self.folder / f"{chapter.path.stem}.json"


def _times(chapter: Chapter) -> dict[str, int]:
    """When each file of our packages was last written, by a clock that may be wrong."""
    files = package_files(chapter.root)
    return {path.relative_to(chapter.root).as_posix(): path.stat().st_mtime_ns for path in files}


# ---------------------------------------------------------------------------- running


def run_chapter(chapter: Chapter) -> tuple[list, Ran]:
    """Executes a chapter in a fresh kernel, which begins in an empty folder of its own.

    So a chapter that reads a file next to it, or that leaves one behind, is noticed.

    Returns:
        the outputs of each code cell, and the functions of the package that ran or are shown.

    Raises:
        ChapterError: when a cell raises, the kernel dies, or a file is left behind.
    """
    with TemporaryDirectory(ignore_cleanup_errors=True) as place:
        outputs, ran = execute(chapter, Path(place))
        left = sorted(path.name for path in Path(place).iterdir())
    if left:
        raise ChapterError(f"{chapter.where(1)}: leaves {', '.join(left)} behind", outputs)
    return outputs, ran


RUNNING: set[NotebookClient] = set()  # those of which a chapter runs
RECORDING = f'__import__("runpy").run_path({str(Path(__file__).with_name("recording.py"))!r})'


def execute(chapter: Chapter, place: Path) -> tuple[list, Ran]:
    """Executes a chapter in a folder; what `run_chapter` says holds here too."""
    notebook = nbformat.from_dict(chapter.notebook)
    modules = [*IPYTHON, *(PYTORCH if "import torch" in chapter.code else ())]
    # The file says how to talk to the kernel: in a folder that is gone when this process ends.
    own = TemporaryDirectory(prefix="slp_kernel_", ignore_cleanup_errors=True)
    manager = {"modules": modules, "connection_file": str(Path(own.name, "kernel.json"))}
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        kernel_manager_class=ForkedKernelManager,
        timeout=None,
        coalesce_streams=True,
        resources={"metadata": {"path": str(place)}},
        # The kernel listens on this machine alone; without this word it warns about that.
        config=Config(
            {
                "KernelManager": {"transport_encryption": "auto"},
                "ForkedKernelManager": manager,
            }
        ),
    )
    # One thread each, so that two chapters on two cores do not get into each other's way; and the
    # package from this folder, wherever another copy may be installed.
    path = os.pathsep.join(filter(None, [str(chapter.root), os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "PYTHONPATH": path}
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    folders = tuple(str(chapter.root / name) for name in PACKAGES)
    start = f'{RECORDING}["start"]({folders!r})'
    first, last = map(nbformat.v4.new_code_cell, (start, f'{RECORDING}["report"]()'))
    notebook.cells = [first, *notebook.cells, last]
    # What a cell prints comes back as output. A kernel's own stderr has the errors of its shutdown,
    # which are nobody's; only of a kernel that died the last line is shown.
    with own, TemporaryFile("w+", encoding="utf-8", errors="replace") as stderr:
        RUNNING.add(client)
        try:
            client.execute(env=env, stderr=stderr)
        except CellExecutionError:
            raise ChapterError(_failure(chapter, cells), _outputs(cells)) from None
        except DeadKernelError as error:
            stderr.seek(0)
            reason = (stderr.read().strip().splitlines() or [str(error)])[-1]
            raise ChapterError(_failure(chapter, cells, reason), _outputs(cells)) from None
        finally:
            RUNNING.discard(client)
    outputs = _outputs(cells)
    return outputs, _ran(chapter, json.loads(last.outputs[0].text), outputs)


def _ran(chapter: Chapter, report: dict[str, list[str]], outputs: list) -> Ran:
    """Return what ran, and what the outputs show the source of, which may not have run."""
    root = chapter.root
    ran = {Path(file).relative_to(root).as_posix(): names for file, names in report.items()}
    for name in sorted(set(SHOWN.findall(json.dumps(outputs)))):
        for path in files_of(name, root):
            inner = name.removeprefix(module_name(path, root)).removeprefix(".")
            ran.setdefault(path.relative_to(root).as_posix(), []).append(f"{inner}.*")
    return ran


def _outputs(cells: list) -> list:
    return [json.loads(json.dumps(cell.outputs)) for cell in cells]


def _failure(chapter: Chapter, cells: list, reason: str = "no reason given") -> str:
    for index, cell in enumerate(cells):
        for output in cell.outputs:
            if output.output_type == "error":
                number, line = chapter.place(index)
                trace = re.sub(r"\x1b\[[\d;]*m", "", "\n".join(output.traceback))
                within = re.search(r"(?:Cell In\[\d+\]|<ipython-input[^>]*>), line (\d+)", trace)
                line += int(within[1]) - 1 if within else 0
                what = f"{output.ename}: {output.evalue}".strip().rstrip(":")
                return f"{chapter.where(line)} (cell {number}): {what}"
    started = [i for i, cell in enumerate(cells) if cell.get("execution_count")]
    number, line = chapter.place(min(started[-1] + 1, len(cells) - 1) if started else 0)
    return f"{chapter.where(line)} (cell {number}) or below: the kernel died ({reason})"


def run_all(
    chapters: list[Chapter], cache: Cache, say: Callable[[str], None]
) -> list[ChapterError]:
    """Runs chapters, two at a time, until all are done, and keeps their outputs.

    Returns:
        the failures, in the order of the chapters.
    """
    failures = {}

    def work(chapter: Chapter) -> float:
        start = time.perf_counter()
        say(f"Running {chapter.name}")
        cache.run(chapter)
        return time.perf_counter() - start

    with ThreadPoolExecutor(WORKERS) as pool:
        running = {pool.submit(work, chapter): chapter for chapter in chapters}
        for done, future in enumerate(as_completed(running), start=1):
            chapter = running[future]
            try:
                seconds = future.result()
            except ChapterError as error:
                failures[chapter.name] = error
                say(f"Failed {chapter.name}")
            else:
                say(f"Ran {chapter.name} in {seconds:.0f} s ({done} of {len(chapters)})")
    return [failures[name] for name in sorted(failures)]


class Background:
    """Runs chapters in a server's background, two at a time, the latest version of each alone.

    Chapters that somebody reads come first. The one opened last does not wait for one that runs
    already, and none that nobody reads is begun beside them.

    Attributes:
        failures: what went wrong, by key; a chapter is not tried again until its key changes.
    """

    def __init__(
        self,
        cache: Cache,
        say: Callable[[str], None],
        done: Callable[[Chapter, str], None],
        read: Callable[[], Sequence[str] | None] = tuple,
    ):
        """Begin with nothing to run.

        Args:
            cache: of outputs.
            say: tells what happens.
            done: called with a chapter and its key when it has run, or failed.
            read: returns the stems of the chapters that were opened, from the last one on; None
                to begin with none yet.
        """
        self.cache, self.say, self.done, self.read = cache, say, done, read
        self.failures: dict[str, ChapterError] = {}
        self._wanted: dict[str, str] = {}
        self._waiting: list[tuple[Chapter, str]] = []
        self._running: list[str] = []  # their stems
        self._is_closed = False
        self._lock = threading.Lock()

    def want(self, chapter: Chapter, key: str) -> None:
        """Asks for a chapter to be run, unless it already is or has failed."""
        if self._wanted.get(chapter.name) == key or key in self.failures:
            return
        self._wanted[chapter.name] = key  # until the server has taken note of what came of it
        with self._lock:
            self._waiting = [one for one in self._waiting if one[0].name != chapter.name]
            self._waiting.append((chapter, key))
        self.begin()

    def begin(self) -> None:
        """Begin with those that are wanted, as far as there is room, those that are read first."""
        with self._lock:
            read = self.read()
            if read is None or self._is_closed:
                return
            place = {stem: number for number, stem in enumerate(read)}
            self._waiting.sort(key=lambda one: place.get(one[0].path.stem, len(read)))
            while self._waiting:
                stem = self._waiting[0][0].path.stem
                room = WORKERS + (place.get(stem) == 0)
                would_slow = stem not in place and not place.keys().isdisjoint(self._running)
                if len(self._running) >= room or would_slow:
                    return
                self._running.append(stem)
                job = self._waiting.pop(0)
                threading.Thread(target=self._run, args=job, daemon=True).start()

    def _run(self, chapter: Chapter, key: str) -> None:
        try:
            self.say(f"Running {chapter.name} in the background")
            start = time.perf_counter()
            for is_last in (False, True):
                try:
                    self.cache.run(chapter)
                    self.say(f"Ran {chapter.name} in {time.perf_counter() - start:.0f} s")
                    break
                except ChapterError as error:
                    self.failures[key] = error
                    break
                except Exception as error:  # not of the chapter: it may do better another time
                    if is_last:
                        self.failures[key] = ChapterError(f"{chapter.name}: {error!r}")
                    else:
                        self.say(f"{chapter.name} is tried again, after {error!r}")
        finally:
            with self._lock:
                self._running.remove(chapter.path.stem)
        if self._wanted.get(chapter.name) == key and not self._is_closed:
            self.done(chapter, key)
        self.begin()

    def forget(self, chapter: Chapter) -> None:
        """Take note that a chapter has finished, so that it may be wanted again."""
        self._wanted.pop(chapter.name, None)

    def close(self) -> None:
        """End what runs: at Python's end, a kernel that a thread listens to is waited for."""
        with self._lock:
            self._is_closed = True
        until = time.monotonic() + CLOSE_S
        while self._running and time.monotonic() < until:
            for client in RUNNING.copy():  # one that has just begun may have no process yet
                process = getattr(getattr(client.km, "provisioner", None), "process", None)
                if process is not None:
                    with suppress(OSError):  # it has ended just now
                        process.kill()
            time.sleep(0.05)

    @property
    def is_busy(self) -> bool:
        """Whether a chapter runs, or waits for its turn."""
        return bool(self._wanted)


# ---------------------------------------------------------------------------- alt texts


def shows_picture(outputs: list) -> bool:
    """Tell if a cell's outputs contain an image or an inline SVG figure."""
    for output in outputs:
        for kind, data in output.get("data", {}).items():
            text = "".join(data) if isinstance(data, list) else str(data)
            if kind.startswith("image/") or (kind == "text/html" and re.search("<(svg|img)", text)):
                return True
    return False


def missing_alts(chapter: Chapter, outputs: list) -> list[str]:
    """One sentence for each cell that shows a figure and has no alt text."""
    sentences = []
    for index, (cell, shown) in enumerate(zip(chapter.code_cells, outputs, strict=True)):
        if shows_picture(shown) and not str(cell.metadata.get("alt", "")).strip():
            number, line = chapter.place(index)
            sentences.append(
                f"{chapter.where(line)} (cell {number}): shows a figure without alt text; "
                'say what it shows in the cell\'s first line: # %% alt="..."'
            )
    return sentences
