"""Prepares the kernel in which a reader runs cells; the kernel executes this, not the hook."""

import asyncio
import io
import os
import re
import sys
import threading
import warnings
from collections.abc import Collection
from types import TracebackType
from typing import Any

from IPython.core.error import StdinNotImplementedError

# As far from white as from the dark scheme's page, about 4 to 1: the picture has no background.
INK_COLOR = "#7e7e82"
INK = ["text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"]

MAX_FRAMES = 12  # at either end of a traceback; IPython takes 5 ms for each of thousands


HIDDEN = "A figure is not shown: the page shows those of `%matplotlib inline` (the default)."


def prepare(shell: Any) -> None:
    """Prepare a kernel's shell: short tracebacks, figures for light and dark pages, no debugger.

    Also `background` and `kept_names`, which the server asks for by expressions.
    """
    shell.set_custom_exc((Exception,), _show_shortened)
    shell.background = Background()
    shell.kept_names = KeptNames(shell.user_ns)
    kernel = os.getpid()
    shell.events.register("post_run_cell", lambda result: end_fork(kernel, result))
    shell.events.register("pre_run_cell", shell.background.begin)
    shell.events.register("post_run_cell", shell.background.end)
    shell.events.register("post_run_cell", close_hidden_figures)
    warnings.filterwarnings("ignore", "To exit: use")  # names keys of a terminal
    sys.breakpointhook = _refuse_questions
    sys.stdin = NoInput()
    check_encoding(sys.stdout, "strict")
    check_encoding(sys.stderr, "backslashreplace")
    shell.config.InlineBackend.rc = {
        **dict.fromkeys(["figure.facecolor", "axes.facecolor"], "none"),
        **dict.fromkeys(INK, INK_COLOR),
    }


def _refuse_questions(*_: Any, **__: Any) -> Any:
    raise StdinNotImplementedError


class NoInput(io.TextIOBase):
    """A standard input that cannot be read, rather than one that is at its end."""

    readline = read = _refuse_questions


def check_encoding(stream: Any, errors: str) -> None:
    """Let a stream take what no encoding has as Python's own does: a kernel cannot send it."""
    write = stream.write

    def checked(text: Any) -> Any:
        return write(text.encode(errors=errors).decode() if isinstance(text, str) else text)

    stream.write = checked


def end_fork(kernel: int, result: Any) -> None:
    """End a process that the cell has forked, as at the end of a script: it is no second kernel."""
    if os.getpid() != kernel:
        sys.stdout.flush()
        os._exit(0 if result.success else 1)


class Background:
    """What a cell leaves running when it ends: threads and tasks that it has begun.

    Not the threads that a library lets end with the process.
    """

    def __init__(self) -> None:
        """Begin before any cell."""
        self._before: set[Any] = set()
        self._left: list[Any] = []

    def begin(self, _: Any) -> None:
        """Note what runs before a cell."""
        self._before = _running()

    def end(self, _: Any) -> None:
        """Note what a cell has left."""
        self._left = list(_running() - self._before)

    def count(self) -> int:
        """Return how many of them still run."""
        self._left = [one for one in self._left if one in _running()]
        return len(self._left)


class KeptNames:
    """The names that a cell may use: those that the cells above it have given, as they stand now.

    Without this a verdict might be one on a function that an earlier run of a cell has left under
    a name that its text no longer has. What a name stands for is shared, not copied.
    """

    def __init__(self, names: dict[str, Any]) -> None:
        """Begin before any cell.

        Args:
            names: of the kernel, by which cells find them.
        """
        self._names = names
        self._after = [self._own()]  # so many cells of the page
        self._of_exercises: dict[int, dict[str, Any]] = {}
        self._before: dict[str, Any] = {}

    def _own(self) -> dict[str, Any]:
        return {name: it for name, it in self._names.items() if not HISTORY.fullmatch(name)}

    def begin(self, num_above: int, exercises: Collection[int] = ()) -> None:
        """Let the next cell find names of the cells above it, and of some exercises, alone."""
        names = dict(self._after[num_above])
        for number in exercises:
            names |= self._of_exercises[number]
        for name in self._own().keys() - names.keys():
            del self._names[name]
        self._names.update(names)
        self._before = names

    def keep(self, place: int, exercise: int | None) -> None:
        """Keep the names that a cell has left, or those that an exercise has given or changed.

        Args:
            place: how many cells of the page are above it.
            exercise: its number, if it is an exercise.
        """
        now, before = self._own(), self._before
        if exercise is None:
            self._after[place + 1 :] = [now]
        else:
            given = {name: it for name, it in now.items() if before.get(name, self) is not it}
            self._of_exercises[exercise] = given
        self._before = now


HISTORY = re.compile(r"_{1,3}|_i{1,3}|_i?\d+|_[dio]h|In|Out")  # IPython's


def _running() -> set[Any]:
    threads = {
        thread
        for thread in threading.enumerate()
        if not thread.daemon
        or getattr(getattr(thread, "_target", None), "__module__", "") == "__main__"
    }
    return threads | asyncio.all_tasks()


def close_hidden_figures(_: Any = None) -> None:
    """Name the figures of a cell that no backend will show; inline ones are closed by now."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot and "inline" not in pyplot.get_backend() and pyplot.get_fignums():
        pyplot.close("all")
        print(HIDDEN, file=sys.stderr)


def _show_shortened(
    shell: Any, etype: type, value: BaseException, tb: TracebackType, tb_offset: int | None = None
) -> None:
    seen: set[int] = set()
    one: BaseException | None = value
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        one.__traceback__ = shortened(one.__traceback__)
        one = one.__cause__ or one.__context__
    shell.showtraceback((etype, value, value.__traceback__), tb_offset=tb_offset)


def shortened(tb: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames in its middle, if it has very many."""
    frames = []
    while tb is not None:
        frames.append(tb)
        tb = tb.tb_next
    if len(frames) > 2 * MAX_FRAMES:
        del frames[MAX_FRAMES:-MAX_FRAMES]
    made = None
    for one in reversed(frames):
        made = TracebackType(made, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return made
