"""Call what a reader wrote so that nothing it does can hurt: an error, a loop without an end.

The submission runs in a thread of its own. If that does not come back in time, Python is asked to
raise an exception inside it, which ends a loop on every system; a signal would work on some only.
"""

import ctypes
import random
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class RaisedError:
    """A submission that stopped with an error.

    Attributes:
        kind: the exception's name.
        message: what it says, its first line.
        source_line: the reader's line, as words; empty if it is not known.
    """

    kind: str
    message: str = ""
    source_line: str = ""


@dataclass(frozen=True)
class TimedOut:
    """A submission that did not come back in time.

    Attributes:
        source_line: the line where it was.
    """

    source_line: str = ""


class _StopThread(BaseException):
    """Ends the thread of a submission that takes too long."""


def run_with_timeout(
    call: Callable[[dict[str, Any]], Any],
    cases: Sequence[dict[str, Any]],
    submission: Any,
    timeout_s: float,
) -> tuple[list[Any], set[str]]:
    """Return the submission's answer to each case, and the inputs that it changed in place.

    Each case is a fresh copy; random generators are afterwards as they were.

    Args:
        call: hands a case to the submission.
        cases: the inputs, by name.
        submission: the function or module, whose file tells which line of an error is the reader's.
        timeout_s: how long all cases together may take.
    """
    found: list[Any] = []
    changed: set[str] = set()
    file = _source_file(submission)

    def work() -> None:
        try:
            for case in cases:
                inputs = {name: _copy_input(value) for name, value in case.items()}
                try:
                    found.append(call(inputs))
                except _StopThread:
                    raise
                except BaseException as error:  # whatever a reader's code may raise
                    found.append(_to_raised_error(error, file))
                changed.update(n for n in case if not _is_unchanged(case[n], inputs[n]))
        except _StopThread:
            pass

    torch_state, state = torch.get_rng_state(), random.getstate()
    thread = threading.Thread(target=work, daemon=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stack_size = threading.stack_size(16 * 2**20)  # macOS leaves little for deep recursion
        thread.start()
        threading.stack_size(stack_size)
        try:
            thread.join(timeout_s)
        except KeyboardInterrupt:  # a reader's Stop
            _stop_thread(thread)
            raise
        if thread.is_alive():
            frames = traceback.extract_stack(sys._current_frames().get(thread.ident or 0))
            found.append(TimedOut(_describe_last_line(frames, file)))
            _stop_thread(thread)
    torch.set_rng_state(torch_state)
    random.setstate(state)
    return found[: len(cases)], changed


def _stop_thread(thread: threading.Thread) -> None:
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    for _ in range(3):  # an `except:` of the reader's may swallow the first
        raise_in(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(_StopThread))
        thread.join(0.2)
        if not thread.is_alive():
            return


def _copy_input(value: Any) -> Any:
    if isinstance(value, list):
        return list(value)
    return value.detach().clone() if isinstance(value, Tensor) else value


def _is_unchanged(before: Any, after: Any) -> bool:
    if not isinstance(before, Tensor):
        return not isinstance(before, list) or before == after
    return before.shape == after.shape and torch.equal(before.nan_to_num(), after.nan_to_num())


def _source_file(submission: Any) -> str | None:
    function = submission.forward if isinstance(submission, nn.Module) else submission
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    function = getattr(function, "func", function)  # functools.partial
    if not hasattr(function, "__code__"):
        function = vars(type(function)).get("__call__", function)
    code = getattr(function, "__code__", None)
    return None if code is None else code.co_filename


def _to_raised_error(error: BaseException, file: str | None) -> RaisedError:
    lines = (str(error).strip() or " ").splitlines()
    message = lines[0] if len(lines[0]) <= 200 else lines[0][:197] + "…"
    place = _describe_last_line(traceback.extract_tb(error.__traceback__), file)
    return RaisedError(type(error).__name__, message.rstrip("."), place)


def _describe_last_line(frames: Iterable[traceback.FrameSummary], file: str | None) -> str:
    """Return the innermost line of a file, as words; empty if none is in it."""
    own = [frame for frame in frames if frame.filename == file]
    if not own:
        return ""
    return f"line {own[-1].lineno}" + (f", “{own[-1].line}”" if own[-1].line else "")
