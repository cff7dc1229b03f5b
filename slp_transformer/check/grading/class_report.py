"""A report on a class: each student's file in a process of its own, judged in this one.

A student's process is given cases and sends answers; the right answers, the table of mistakes and
the verdicts are here. Whatever it sends is read with bounds (`answer_codec`), whatever it prints is
thrown away, and however it ends is a row of the report.
"""

import json
import os
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import torch

from slp_transformer._internal.bounds import AWAY, WAITS
from slp_transformer.check.diagnosing.calling import UnsupportedCall
from slp_transformer.check.diagnosing.diagnosis import CHECKS, DEFAULT_TIMEOUT_S, AttemptEnded
from slp_transformer.check.diagnosing.timed_run import TimedOut
from slp_transformer.check.grading.answer_codec import decode_answer, to_short_line
from slp_transformer.check.grading.confinement import refused_calls
from slp_transformer.check.grading.student_server import START_S, ForkedProcess, StudentServer
from slp_transformer.check.student_file import (
    FILE_SUFFIXES,
    package_fingerprints,
    read_regular_file,
)
from slp_transformer.check.verdict import Verdict

DEFINE_S = WAITS["a student's definitions"].seconds
LIMIT_S = int(WAITS["a student's file"].seconds)
MAX_LINE_BYTES, MAX_PATH = 1 << 20, 4096  # of one that is cut, two could not be told apart
HOMES = ("HOME", "TMPDIR", "TEMP", "TMP", "MPLCONFIGDIR", "TORCHINDUCTOR_CACHE_DIR")
KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT", "PATHEXT")
ENDS_EARLY = "It ended itself, with code {}, while {}."
NO_ANSWER = "It sent something that is no answer while {}."

Report = dict[str, Any]


class StudentProcess:
    """The process of one file, and what goes between it and this one."""

    def __init__(self, folder: Path, home: str, server: StudentServer | None):
        """Start it.

        Args:
            folder: that of the class, which it may not read.
            home: an empty folder in which it runs.
            server: what forks it; None to start it by itself.
        """
        variables = _kept_variables() | dict.fromkeys(HOMES, home)
        self._process: subprocess.Popen[bytes] | ForkedProcess
        if server is not None:
            self._process = server.fork(home, variables, [str(folder), str(LIMIT_S)])
        else:
            module = "slp_transformer.check.grading.student_process"
            code = f"import runpy; runpy.run_module({module!r}, run_name='__main__')"
            ours, theirs = socket.socketpair()  # through which it can hand on a file
            with ours, theirs:
                self._process = subprocess.Popen(
                    [*_python(code), str(folder), str(LIMIT_S), str(os.getpid())],
                    stdin=subprocess.PIPE if sys.platform == "win32" else theirs.fileno(),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    cwd=home,
                    env=variables,
                    start_new_session=True,
                )
                self._process.stdin = self._process.stdin or os.fdopen(ours.detach(), "wb")
        self._lines: queue.Queue[bytes] = queue.Queue(4)
        self._has_ended = False
        self._ends_at = time.monotonic() + LIMIT_S
        self._messages: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.refused: set[str] = set()
        for work in (self._read, self._write, self._note_refused_calls):
            threading.Thread(target=work, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with suppress(OSError, ValueError):  # it was closed as the process was ended
            while (line := self._process.stdout.readline(MAX_LINE_BYTES)) and not self._has_ended:
                self._lines.put(line)
        self._lines.put(b"")

    def _write(self) -> None:
        assert self._process.stdin is not None
        with suppress(OSError, ValueError):  # what is received next says how it ended
            while message := self._messages.get():
                self._process.stdin.write(message)
                self._process.stdin.flush()

    def _note_refused_calls(self) -> None:
        assert self._process.stdin is not None
        with suppress(OSError, ValueError, KeyError, AttributeError):  # nobody can tell here
            self.refused.update(refused_calls(self._process.stdin.fileno()))

    def send(self, message: bytes) -> None:
        """Send a message without waiting until it is read; what nobody reads any more is lost."""
        self._messages.put(message)

    def receive(self, seconds: float, doing: str) -> Report:
        """Return the next message.

        Raises:
            AttemptEnded: saying how the process ended, or why the file cannot be used.
        """
        seconds = min(seconds, self._ends_at - time.monotonic())
        try:
            line = self._lines.get(timeout=max(seconds, 0.01))
        except queue.Empty:
            raise AttemptEnded(AWAY.format(doing)) from None
        if not line:
            try:
                code = self._process.wait(5)
            except (subprocess.TimeoutExpired, OSError):
                raise AttemptEnded(f"It sends nothing more while {doing}.") from None
            if code < 0:
                raise AttemptEnded(f"It was ended by signal {-code} while {doing}.")
            raise AttemptEnded(ENDS_EARLY.format(code, doing))
        try:
            message = json.loads(line)
            if not line.endswith(b"\n") or not isinstance(message, dict):
                raise ValueError("no message")
        except (ValueError, RecursionError):
            raise AttemptEnded(NO_ANSWER.format(doing)) from None
        if "unusable" in message:
            raise AttemptEnded(to_short_line(message["unusable"]))
        return message

    def end(self) -> None:
        """End the process, every other in its group, and the thread that reads from it."""
        self._has_ended = True
        self._messages.put(b"")
        with suppress(OSError):  # it has ended, or with the server all of its processes have
            if isinstance(self._process, ForkedProcess):
                self._process.end()
            elif sys.platform == "win32":
                self._process.kill()
            else:
                os.killpg(self._process.pid, signal.SIGKILL)
        if not isinstance(self._process, ForkedProcess):
            self._process.wait()
        with suppress(queue.Empty):  # what nobody asked for: the thread may wait for room
            while True:
                self._lines.get_nowait()


def _kept_variables() -> dict[str, str]:
    variables = {n: os.environ[n] for n in KEPT_VARIABLES if n in os.environ}
    return variables | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


def _python(code: str) -> list[str]:
    """Return a command that finds modules where this process does; its arguments come behind."""
    paths = json.dumps([os.path.abspath(one) for one in sys.path])
    return [sys.executable, "-c", f"import json, sys; sys.path[:] = json.loads({paths!r}); {code}"]


def _student_server() -> AbstractContextManager[StudentServer | None]:
    """Return a class's server, or none where there can be none."""
    code = "from slp_transformer.check.grading.student_server import run; run(int(sys.argv[1]))"
    try:
        return closing(StudentServer(_python(code), _kept_variables()))
    except OSError:
        return nullcontext()


def report_on_file(
    path: Path, folder: Path | None = None, server: StudentServer | None = None
) -> Report:
    """Return what is right in a file, and what is wrong, to be written as JSON.

    Args:
        path: a script or a notebook.
        folder: that of the class.
        server: what forks its process; None to start it by itself.
    """
    report: Report = {"file": to_short_line(path.name), "right": [], "wrong": {}, "missing": []}
    try:
        if folder and os.path.islink(path):  # it may lead to another's solution, or the teacher's
            raise ValueError("It is a link, not a file.")
        data = read_regular_file(path, "It")
    except ValueError as error:
        return report | {"error": str(error)}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        closed = folder or path.absolute().parent
        try:
            student = StudentProcess(closed, home, server)
        except OSError:  # the server has ended
            student = StudentProcess(closed, home, None)
        try:
            _fill_report(report, student, path.name, data)
        except AttemptEnded as error:
            report["error"] = str(error)
        finally:
            student.end()
        if student.refused:
            report["refused calls"] = sorted(student.refused)
    return report


def _fill_report(report: Report, student: StudentProcess, name: str, data: bytes) -> None:
    """Ask a student's process for answers, and judge them.

    Raises:
        AttemptEnded: if it ends, or says what it should not.
    """
    student.send(json.dumps(name).encode() + b"\n%d\n" % len(data) + data)
    about = student.receive(START_S, "it was read")
    # Until here no line of the student's was run, so that this is as it should be.
    report["missing"] = about["stubs"]
    if about["unlimited"]:
        report["not limited"] = about["unlimited"]
    defined = student.receive(DEFINE_S, "its definitions were run")
    if not isinstance(functions := defined.get("functions"), list):
        raise AttemptEnded(NO_ANSWER.format("its definitions were run"))
    copied = {one: package_fingerprints().get(about["codes"][one], "") for one in about["own"]}
    uses = {one: [*map(to_short_line, names)] for one, names in about["uses"].items()}
    for key, found in (("uses the package", uses), ("as in the package", copied)):
        if shown := {one: what for one, what in found.items() if what and one in functions}:
            report[key] = shown
    report["missing"] += [one for one in about["own"] if one not in functions]
    for check in (one for one in CHECKS if one in functions):
        if check in about["own"]:
            verdict = _judge_answers(check, student)
            if not verdict:
                report["wrong"][check] = verdict.text
            elif not uses[check]:
                report["right"].append(check)
        else:
            where = to_short_line(about["imported"][check] or "elsewhere")
            report.setdefault("imported", {})[check] = where


def _judge_answers(check: str, student: StudentProcess) -> Verdict:
    cases = CHECKS[check].cases()
    if check == "softmax":  # as its exercise asks
        cases = [case for case in cases if case["scores"].dim() == 1]
    run = partial(_answer_cases, check, student)
    return CHECKS[check].judge(lambda: (cases, run), DEFAULT_TIMEOUT_S)


def _answer_cases(
    check: str, student: StudentProcess, numbers: Sequence[int], listed: str
) -> tuple[list[Any], set[str]]:
    """Return a student's answers to cases, and the arguments that they change in place.

    Raises:
        AttemptEnded: if there are none.
        UnsupportedCall: if the function cannot be called as its exercise asks.
    """
    doing = f"{check} was tried"
    student.send(json.dumps([check, [*numbers], listed]).encode() + b"\n")
    message = student.receive(3 * DEFAULT_TIMEOUT_S, doing)
    if "unsupported" in message:
        raise UnsupportedCall(to_short_line(message["unsupported"]))
    try:
        answers = [decode_answer(one) for one in message["answers"][: len(numbers)]]
        if len(answers) < len(numbers) and not isinstance(answers[-1], TimedOut):
            raise ValueError("too few")
        changed = {one for one in CHECKS[check].arguments if one in message["changed"]}
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
        raise AttemptEnded(NO_ANSWER.format(doing)) from None
    return answers, changed


def _find_files(folder: Path) -> list[Path]:
    """Return the scripts and notebooks in a folder, and what cannot be looked into.

    Links are not followed, nor does this call itself: folders may be deeper than Python's stack.
    """
    folders, found = [folder], []
    while folders:
        one = folders.pop()
        try:
            for entry in os.scandir(one):
                is_link = entry.is_symlink()
                if not is_link and entry.is_dir():
                    folders.append(Path(entry))
                if entry.name.lower().endswith(FILE_SUFFIXES) or is_link and os.path.isdir(entry):
                    found.append(Path(entry))
        except OSError:
            found.append(one)
    return sorted(found)


def report_on_class(folder: Path) -> Report:
    """Return a report on each script and notebook in a folder, and the commonest mistakes.

    Functions that more than half of the files have are missing in the others.

    Raises:
        ValueError: if Python looks for modules in the folder: a student's `json.py` would be one.
    """
    if folder.resolve() in (Path(one).resolve() for one in sys.path):
        raise ValueError(f"{folder} is where Python looks for modules: go to another folder first.")
    torch.set_num_threads(1)
    with _student_server() as server:
        files = [
            report_on_file(path, folder, server)
            | {"file": to_short_line(path.relative_to(folder), MAX_PATH)}
            for path in _find_files(folder)
        ]
    had = Counter(n for one in files for n in [*one["right"], *one["wrong"], *one["missing"]])
    expected = [name for name in CHECKS if had[name] > len(files) / 2]
    for one in files:
        there = {*one["right"], *one["wrong"], *one.get("imported", ()), *one["missing"]}
        one["missing"] += [name for name in expected if name not in there]
    wrong = Counter(f"{n}: {text}" for one in files for n, text in one["wrong"].items())
    return {"files": files, "mistakes": dict(wrong.most_common())}
