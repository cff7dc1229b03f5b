"""A class's files, each in a process of its own: what is right is found, and nobody forges it."""

import ast
import importlib
import inspect
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import planted_2017  # noqa: F401  each plants its attempts
import planted_book  # noqa: F401
import planted_fingering  # noqa: F401
import planted_interpret  # noqa: F401
import planted_modern  # noqa: F401
import pytest
import torch
from planted import ALL, ODD, verdict
from sampled import mostly_slow
from whole import whole

from slp_transformer import check
from slp_transformer._internal.plugins import PACKAGES
from slp_transformer.check import student_file
from slp_transformer.check.__main__ import main
from slp_transformer.check.diagnosing.comparing import NotNumeric
from slp_transformer.check.diagnosing.diagnosis import DEFAULT_TIMEOUT_S
from slp_transformer.check.diagnosing.timed_run import RaisedError, TimedOut
from slp_transformer.check.grading import (
    class_report,
    confinement,
    student_process,
    student_server,
)
from slp_transformer.check.grading.answer_codec import (
    MAX_NUMBERS,
    decode_answer,
    encode_answer,
    to_short_line,
)
from slp_transformer.check.grading.class_report import AttemptEnded, StudentProcess, report_on_class
from slp_transformer.check.student_file import fingerprint, package_fingerprints, parse_file

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="what Linux alone can guard")


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return folder


# --- Answers on their way -----------------------------------------------------------------------


RIGHT = {one.check: one for one in ALL if one.mistake is None}
SOME = [*RIGHT.values(), *[one for one in ALL if one.mistake][::9], *ODD[::9]]
AFAR = mostly_slow(SOME, *SOME[::3])


def judged_from_afar(planted):
    """The verdict on answers that have gone through JSON."""
    one = check.CHECKS[planted.check]

    def begin():
        cases, run = one.start_attempt(planted.attempt, one_row=planted.one_row)

        def far(numbers, listed):
            answers, changed = run(numbers, listed)
            lines = json.loads(json.dumps([encode_answer(answer) for answer in answers]))
            return [decode_answer(line) for line in lines], changed

        return cases, far

    return one.judge(begin, DEFAULT_TIMEOUT_S)


@pytest.mark.parametrize("one", AFAR, ids=lambda one: f"{one.check}: {one.what}")
def test_a_verdict_is_the_same_from_another_process(one):
    if "random" not in (near := verdict(one)).text:
        assert str(judged_from_afar(one)) == str(near)


@pytest.mark.parametrize(
    "answer",
    [
        None, True, 3, -0.5, float("inf"), [1, [2.5, None]], (1, torch.tensor([[2, 3]])),
        torch.zeros(0, 3).double(), torch.tensor(True), RaisedError("E", "m", "l"), TimedOut("l"),
    ],
)  # fmt: skip
def test_an_answer_comes_back_as_it_was(answer):
    found = decode_answer(json.loads(json.dumps(encode_answer(answer))))
    assert type(found) is type(answer) and str(found) == str(answer)


def nested(depth: int) -> dict:
    return {"list": [nested(depth - 1)]} if depth else {"tuple": []}


def test_an_answer_of_just_as_much_as_may_be_is_read():
    """As many axes, numbers and lists in lists; of text the first letters."""
    data = 8 * "A" + "AAA="
    assert decode_answer({"tensor": ["float", [1] * 8, data]}).shape == (1,) * 8
    assert len(decode_answer({"list": [0] * 20_000})) == 20_000
    assert decode_answer({"tensor": ["int", [20_000, 0], ""]}).shape == (20_000, 0)
    assert str(decode_answer(nested(8))) == "[" * 8 + "()" + "]" * 8
    assert decode_answer({"timeout": "a" * 301}) == TimedOut("a" * 300)


@pytest.mark.parametrize(
    "sent",
    [
        "text", [], {}, {"tensor": ["float", [2], "AAAA"]}, {"tensor": ["float", [-1], ""]},
        {"tensor": ["object", [0], ""]}, {"tensor": ["int", [10**9, 0], ""]},
        {"tensor": 1}, {"pickle": "x"}, {"error": ["E"]}, {"list": [{"list": ["x"]}]},
        {"tensor": ["float", [1] * 9, 8 * "A" + "AAA="]}, {"list": [0] * 20_001}, nested(9),
        {"tensor": ["float", [2], 8 * "A" + "AAA="]}, {"tensor": ["int", [20_001, 0], ""]},
        {"tensor": ["bool", [4_000, 4_000], ""]}, {"error": "E", "timeout": "E"}, {"error": "abc"},
    ],
)  # fmt: skip
def test_what_is_no_answer_is_refused(sent):
    with pytest.raises((ValueError, TypeError, LookupError)):
        decode_answer(sent)


def test_a_large_answer_is_told_by_its_shape():
    with pytest.raises(NotNumeric, match=r"It returns \[3×7000\]: too much to be right."):
        decode_answer(encode_answer(torch.zeros(3, 7000)))
    assert decode_answer(encode_answer(torch.zeros(MAX_NUMBERS))).shape == (MAX_NUMBERS,)
    assert to_short_line("a\x1b[2J\nb") == "a\\x1b[2J\\x0ab"


# --- Whose function it is -----------------------------------------------------------------------


def test_what_is_imported_or_uses_the_package_is_told_before_it_is_run():
    source = """
from torch import softmax
from slp_transformer import causal_mask as my_causal_mask, check
import slp_transformer.loss as loss

def my_ffn(x): return helper(x)
def helper(x): return Tool().run(x)
class Tool:
    def run(self, x): return loss.next_token_loss(x)
def my_layer_norm(x):
    from slp_transformer.layer_norm import LayerNorm
def block(X, my_ffn, check):
    'As slp_transformer.block.'
    loss = my_ffn(X)
    return check(loss)
def my_top_k(u, k): ...
def temperature(u, tau): return check.CHECKS["temperature"].solve(u, tau)
def top_p(u, p): return __import__("slp_transformer").top_p(u, p)
check.attention(my_attention)
"""
    file = parse_file("bo.py", source.encode())
    own = file.function_names_by_check()
    assert {*own} == {"ffn", "layer_norm", "block", "temperature", "top_p"}
    assert file.import_origin("causal_mask") == "slp_transformer.causal_mask"
    assert file.import_origin("softmax") == "torch.softmax"
    uses = {one: file.package_names_used_by(name) for one, name in own.items()}
    assert uses == {
        "ffn": ["slp_transformer.loss"],
        "layer_norm": ["slp_transformer.layer_norm.LayerNorm"],
        "block": [],
        "temperature": ["slp_transformer.check"],
        "top_p": ["slp_transformer"],
    }
    assert sorted(file.checks_without_function()) == ["attention", "top_k"]


def test_a_hand_in_that_imports_a_solution_is_named_whichever_package_has_it():
    source = """
from slp_guitar.fretboard import is_playable_grip as taken
from slp_transformer import causal_mask
def temperature(u, tau):
    import slp_guitar
    return u / tau
def is_playable_grip(places): return taken(places)
"""
    file = parse_file("bo.py", source.encode())
    own = file.function_names_by_check()
    assert {one: file.package_names_used_by(name) for one, name in own.items()} == {
        "temperature": ["slp_guitar"],
        "is_playable_grip": ["slp_guitar.fretboard.is_playable_grip"],
    }


def test_a_pasted_solution_of_any_package_is_recognized_and_its_files_can_be_read():
    homes = {name.partition(".")[0] for name in package_fingerprints().values()}
    assert homes == {*PACKAGES}
    readable = student_process._readable_paths("/nowhere")
    for name in PACKAGES:
        assert str(Path(importlib.import_module(name).__file__).parent) in readable


def test_of_the_grader_s_folders_a_student_reads_where_packages_are_and_nothing_else(
    tmp_path, monkeypatch
):
    """`python -m` puts the current folder, which may be the teacher's home, in `sys.path`."""
    installed = tmp_path / "site-packages"
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(installed), *sys.path])
    readable = student_process._readable_paths("/nowhere")
    assert str(installed) in readable
    assert not readable & {str(tmp_path), "/", "/etc", "/etc/shadow", "/run"}


@pytest.mark.parametrize(
    "value", ["open(PATH, 'w').write('run')", "f\"{open(PATH, 'w')}\"", "[open(PATH, 'w')]"]
)
def test_a_computed_constant_of_a_student_s_file_is_not_run(value, tmp_path):
    path = tmp_path / "made"
    text = f"X = {value}\nY = [1, -2.5, 'a']\ndef softmax(z): return Y\n"
    file = parse_file("a.py", text.replace("PATH", "P").encode())
    file.modules[0].body.insert(0, ast.parse(f"P = {str(path)!r}").body[0])
    functions = student_file.load_checked_functions(file)
    assert functions["softmax"](0) == [1, -2.5, "a"] and not path.exists()


def test_an_own_function_stands_before_an_imported_one():
    file = parse_file("bo.py", b"from torch import softmax\ndef my_softmax(x): return x\n")
    assert (
        file.possible_names_for("softmax")[-1] == "my_softmax"
        and "softmax" in file.function_names_by_check()
    )


def test_the_function_of_every_exercise_is_found_without_a_call_of_its_check():
    exercises = (Path(__file__).parents[2] / "chapters" / "exercises").glob("*.py")
    text = "\n".join(path.read_text("utf-8") for path in exercises)
    asked = re.findall(r"^check\.(\w+)\((my_\w+)", text, re.MULTILINE)
    script = "".join(f"def {name}():\n    return 0\n" for _, name in asked)
    found = parse_file("mine.py", script.encode()).function_names_by_check()
    assert len(asked) > 60 and asked == [(check, found.get(check)) for check, _ in asked]


def test_a_long_function_of_the_package_is_known_by_its_code_and_a_short_one_is_anybodys():
    source = inspect.getsource(check.CHECKS["beam_step"]._solve)
    source = source[source.index("def beam_step") :]
    file = parse_file("bo.py", source.replace("beam_step", "my_beam_step").encode())
    known = package_fingerprints()
    where = "slp_transformer.check.tables.sampling_checks.beam_step"
    assert known[file.fingerprint("my_beam_step")] == where
    renamed = parse_file("bo.py", source.replace("places", "p").encode())
    assert renamed.fingerprint("beam_step") not in known
    assert fingerprint(parse_file("x.py", b"def f(x):\n    return x\n").defined["f"]) == ""


# --- What a class may hand in -------------------------------------------------------------------


def test_what_is_no_file_is_a_row(tmp_path):
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "large.ipynb").write_bytes(b" " * (student_file.MAX_FILE_BYTES + 1))
    expected = {"folder.py": "It is a folder, not a file.", "large.ipynb": "more than 32 MiB"}
    if sys.platform != "win32":
        os.mkfifo(tmp_path / "pipe.py")
        for name, leads in {"loop.py": "loop.py", "zero.py": "/dev/zero", "up": ".."}.items():
            (tmp_path / name).symlink_to(leads)
            expected[name] = "It is a link, not a file."
        expected["pipe.py"] = "It is a pipe,"
    rows = {one["file"]: one["error"] for one in report_on_class(tmp_path)["files"]}
    assert rows.keys() == expected.keys()
    assert all(expected[name] in rows[name] for name in rows), rows
    assert "a device" in class_report.report_on_file(Path(os.devnull))["error"]  # named by oneself


@on_linux
def test_a_folder_that_cannot_be_looked_into_is_a_row_beside_the_others(tmp_path, monkeypatch):
    """A path of more than 4,096 bytes, which no command lists: it is made step by step."""
    monkeypatch.chdir(tmp_path)
    for _ in range(20):
        os.mkdir("a" * 250)
        os.chdir("a" * 250)
    (tmp_path / "B.PY").mkdir()
    deep, other = report_on_class(tmp_path)["files"]
    assert "File name too long" in (deep["error"] if len(deep["file"]) > 4000 else other["error"])
    assert {one["file"] for one in (deep, other)} > {"B.PY"}


def test_a_class_is_not_reported_on_from_within(tmp_path, monkeypatch, capsys):
    """Python would import a student's json.py as its own."""
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.chdir(tmp_path)
    assert main(["--json", "."]) == 2
    assert "go to another folder" in capsys.readouterr().err


def test_a_file_of_windows_begins_with_a_mark():
    assert "softmax" in parse_file("A.py", b"\xef\xbb\xbfdef softmax(x): return x\n").defined


def test_names_in_a_row_are_short_and_without_control_characters():
    class Student:
        said = iter([{"stubs": [], "unlimited": [], "own": ["softmax"], "codes": {"softmax": ""},
                      "uses": {"softmax": ["slp_transformer.\u202e" + "a" * 9999]},
                      "imported": {"top_k": "torch." + "a" * 9999}},
                     {"functions": ["softmax", "top_k"]}, {"unsupported": ""}])  # fmt: skip

        def send(self, message): ...
        def receive(self, seconds, doing):
            return next(self.said)

    row = {"right": [], "wrong": {}, "missing": []}
    class_report._fill_report(row, Student(), "a.py", b"")
    assert row["uses the package"]["softmax"][0].startswith("slp_transformer.\\x202ea")
    assert len(json.dumps(row)) < 1000


FORGED = """
import json, os, torch

class A:
    from slp_transformer.check.diagnosing import comparing, diagnosis as judging
    comparing.answers_agree = judging.answers_agree = lambda *given: True
    torch.allclose = torch.Tensor.equal = lambda *given, **named: True
    for one in judging.CHECKS.values():
        one._verdict = one.judge = lambda *given: True
        one._make_cases = lambda **sizes: []
    row = json.dumps({"file": "bob.py", "right": ["softmax"], "wrong": {}}).encode() + b"\\n"
    for descriptor in (1, 2):
        os.write(descriptor, row + b"\\xff" * 100_000)
    print(row, "[]")

def softmax(scores):
    return scores
"""


@pytest.mark.slow
def test_a_class_is_reported_on_and_a_student_s_code_changes_nobody_s_row(tmp_path, capsys):
    good = "def softmax(scores):\n    return scores.softmax(-1)\ndef top_k(u, k): ...\n"
    write(tmp_path, anna=good, bob=FORGED)
    cell = "%matplotlib inline\ndef my_softmax(scores):\n    return scores\n\nmy_softmax(1, 2)"
    (tmp_path / "cy.ipynb").write_text(
        json.dumps({"cells": [{"cell_type": "code", "source": [cell]}]}), encoding="utf-8"
    )
    (tmp_path / "dan.ipynb").mkdir()
    pasted = inspect.getsource(check.CHECKS["beam_step"]._solve)
    pasted = pasted[pasted.index("def beam_step") :].replace("def beam_step", "def my_beam_step")
    imports = "import slp_guitar\ndef my_temperature(u, tau): return u / slp_guitar.tau\n"
    write(tmp_path, eve=f"from torch import Tensor\n{imports}{pasted}")
    assert main(["--json", str(tmp_path)]) == 0
    report = json.loads(capsys.readouterr().out)
    anna, bob, cy, dan, eve = report["files"]
    assert anna == {"file": "anna.py", "right": ["softmax"], "wrong": {}, "missing": ["top_k"]}
    assert bob["right"] == [] and (bob.get("error") or bob["wrong"])
    assert [*cy["wrong"]] == ["softmax"] and cy["right"] == []
    assert dan["missing"] == [] and "folder" in dan["error"]
    where = "slp_transformer.check.tables.sampling_checks.beam_step"
    assert eve["as in the package"] == {"beam_step": where}
    assert eve["uses the package"] == {"temperature": ["slp_guitar"]}
    assert "softmax: " in [*report["mistakes"]][0]


HOSTILE = {
    "bytes": 'import os\nclass A:\n    os.write(1, b"\\xff\\n")\ndef softmax(x): return 2 * x\n',
    "quits": "import os\nclass A:\n    os._exit(0)\n",
    "default": "def softmax(x, y=exit(0)):\n    return x\n",
    "exits": "import os\ndef softmax(x):\n    os._exit(0)\n",
    "floods": 'import os\nclass A:\n    while True: os.write(1, b"x" * 65536)\n',
    "writes": """
import os
class A:
    for descriptor in range(3, 30):
        try:
            os.write(descriptor, b'{"functions": ["softmax"]}\\n{"answers": [[1]]}\\n')
        except OSError: pass
def softmax(x): return x
""",
    "answers": """
import os, threading
def spam():
    while True:
        for descriptor in range(3, 9):
            try: os.write(descriptor, b'{"answers": [[0.5, 0.5]], "changed": []}\\n')
            except OSError: pass
class A:
    threading.Thread(target=spam, daemon=True).start()
def softmax(x): return x
""",
    "grows": "def softmax(x):\n    x = [0]\n    while True: x += x\n",
    "shares": """
import mmap
def softmax(x):
    parts = [mmap.mmap(-1, 1 << 28) for _ in range(9)]
    return x.softmax(-1)
""",
    "hangs": "def softmax(x):\n    while True: pass\n",
    "kills": """
import os, signal
class A:
    for process in (os.getppid(), 0):
        try: os.kill(process, signal.SIGKILL)
        except OSError: pass
    try:
        if os.fork() == 0:
            os.setsid()
            while True: pass
    except OSError: pass
def softmax(x): return 2 * x
""",
    "signals": """
import fcntl, os, signal
class A:
    read, write = os.pipe()
    try:
        fcntl.fcntl(read, fcntl.F_SETOWN, os.getppid())
        fcntl.fcntl(read, 10, signal.SIGKILL)  # F_SETSIG
        fcntl.fcntl(read, fcntl.F_SETFL, os.O_ASYNC)
        os.write(write, b"x")
    except OSError: pass
def softmax(x): return 2 * x
""",
    "grows down": """
import ctypes
class A:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    at = libc.mmap(None, 1200 << 20, 3, 0x2 | 0x20 | 0x100, -1, 0)
    if at != 2**64 - 1:
        ctypes.memset(at, 1, 1200 << 20)
        raise ValueError("1.2 GB")
def softmax(x): return 2 * x
""",
    "threads": """
import threading, time
class A:
    n = 0
    threading.stack_size(32768)
    try:
        while n < 3000:
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start(); n += 1
    except RuntimeError:
        pass
    if n > 999: raise ValueError(n)
    raise ValueError("some threads")
""",
    "others": """
import os, resource
def try_on(other):
    limit = resource.RLIMIT_NOFILE
    for what, change in {
        "priority": lambda: os.setpriority(os.PRIO_PROCESS, other, 19),
        "affinity": lambda: os.sched_setaffinity(other, {0}),
        "scheduler": lambda: os.sched_setscheduler(other, os.SCHED_IDLE, os.sched_param(0)),
        "files": lambda: resource.prlimit(other, limit, (0, 0)),
        "its limits": lambda: resource.prlimit(other, limit),
    }.items():
        try: change()
        except OSError: pass
        else: yield what
class A:
    server = os.getppid()
    grader = int(open(f"/proc/{server}/stat").read().rsplit(")", 1)[1].split()[1])
    raise ValueError(f"others: {[*try_on(server), *try_on(grader)]}")
""",
    "calls": """
import ctypes, errno
class A:
    libc, through = ctypes.CDLL(None, use_errno=True), []
    for number in REFUSED:
        ctypes.set_errno(0)
        if libc.syscall(number, 0, 0, 0, 0, 0, 0) != -1 or ctypes.get_errno() != errno.EPERM:
            through.append(number)
    raise ValueError(f"calls: {through}")
""",
    "connects": """
import socket
def softmax(x):
    socket.create_connection(("127.0.0.1", 9))
""",
    "reads": """
from pathlib import Path
class A:
    exec(Path("ANNA").read_text())
def softmax(x): return A.my_softmax(x)
""",
    "overwrites": """
from pathlib import Path
class A:
    try: Path("ANNA").write_text("def softmax(x): return x")
    except OSError: pass
def softmax(x): return 2 * x
""",
}


def test_control_characters_of_names_and_errors_are_shown_as_escapes(tmp_path, capsys):
    """A file's name and its error could set the title of the terminal."""
    assert main([str(tmp_path / "a\x1b]0;b\x07.py")]) == 2
    with pytest.raises(SystemExit, match="2"):
        main(["a.py", "b\x1b]0;c\x07.py"])
    write(tmp_path, anna="def softmax(x):\n    raise ValueError('\\x1b[2J')\n")
    assert main([str(tmp_path / "anna.py")]) == 1
    said = capsys.readouterr()
    assert "a\\u001b]0;b\\u0007.py" in said.err and "b\\u001b]0;c\\u0007.py" in said.err
    assert "\\u001b[2J" in said.out
    assert "\x1b" not in said.err + said.out


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX's limits")
def test_without_linux_s_counts_every_limit_is_set_and_what_they_miss_is_said(monkeypatch):
    import resource

    def gone(*given):
        raise FileNotFoundError(*given)

    limits = {}
    monkeypatch.setattr(confinement, "open", gone, raising=False)
    monkeypatch.setattr(confinement, "_set_limit", limits.__setitem__)
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(OSError, match="RLIMIT_DATA does not count all memory"):
        confinement._limit_resources(7)
    assert limits[resource.RLIMIT_CPU] == 7 and limits[resource.RLIMIT_CORE] == 0
    assert limits[resource.RLIMIT_DATA] == (1 << 30) + confinement.MEMORY_BYTES
    assert limits[resource.RLIMIT_AS] == (1 << 40) + confinement.ADDRESS_BYTES
    assert limits[resource.RLIMIT_FSIZE] == confinement.FILE_BYTES
    assert limits[resource.RLIMIT_NOFILE] == confinement.OPEN_FILES


@pytest.mark.slow
@on_linux
def test_every_end_of_a_student_s_process_is_a_row(tmp_path, monkeypatch):
    monkeypatch.setattr(class_report, "DEFINE_S", 8)  # those that never end are waited for
    anna = tmp_path / "zoe.py"
    known = {int(call.split()[1]) for call in all_allowed_calls()}
    refused = sorted({*range(480)} - known - {335, 336})  # uprobes', which no filter is asked about
    for name, text in HOSTILE.items():
        text = text.replace("ANNA", str(anna)).replace("REFUSED", str(refused))
        write(tmp_path, **{name: text})
    write(tmp_path, zoe="def my_softmax(scores):\n    return scores.softmax(-1)\n")
    rows = {one["file"]: one for one in report_on_class(tmp_path)["files"]}
    assert len(rows) == len(HOSTILE) + 1
    assert rows["zoe.py"] == {"file": "zoe.py", "right": ["softmax"], "wrong": {}, "missing": []}
    said = {}
    for name in HOSTILE:
        row = rows[f"{name}.py"]
        assert "not limited" not in row
        assert row["right"] == []
        said[name] = row.get("error") or row["wrong"]["softmax"]
    ends = {
        "bytes": "It differs from", "quits": "It ended itself, with code 0, while its",
        "default": "SystemExit", "exits": "with code 0, while softmax was tried",
        "floods": "It did not come back while its definitions", "writes": "",
        "answers": "", "grows": "MemoryError", "shares": "PermissionError",
        "signals": "It differs from", "connects": "PermissionError",
        "hangs": "did not come back within 5 seconds", "kills": "It differs from",
        "grows down": "It differs from", "threads": "some threads", "others": "others: []",
        "calls": "calls: []", "reads": "Permission denied", "overwrites": "It differs from",
    }  # fmt: skip
    assert {name: said[name] for name, words in ends.items() if words not in said[name]} == {}
    for thread in threading.enumerate():  # none waits for room for what nobody asked for
        if "_read" in thread.name:
            thread.join(10)
            assert not thread.is_alive()


@pytest.mark.slow
@on_linux
def test_a_student_who_fills_the_pipe_that_it_reads_is_a_row_and_nobody_waits(
    tmp_path, monkeypatch
):
    """The grader writes into it what nobody reads; the row's clock goes on."""
    monkeypatch.setattr(class_report, "LIMIT_S", 9)
    monkeypatch.setattr(class_report, "START_S", 3)
    fills = """
import fcntl, json, os, time
class A:
    end = -1
    for fd in range(3, 30):
        try:
            if fd == end or not os.readlink(f"/proc/self/fd/{fd}").startswith("pipe:"): continue
            if fcntl.fcntl(fd, fcntl.F_GETFL) & 3 == 0:
                end = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK)
                for size in (4096, 1):
                    try:
                        while True: os.write(end, b" " * size)
                    except BlockingIOError: pass
            else: answers = fd
        except OSError: pass
    os.write(answers, json.dumps({"functions": ["softmax"]}).encode() + b"\\n")
    while True: time.sleep(1)
def softmax(x): return x
"""
    write(tmp_path, bob=fills, zoe="def my_softmax(scores):\n    return scores.softmax(-1)\n")
    begun = time.monotonic()
    bob, zoe = report_on_class(tmp_path)["files"]
    assert "It did not come back while softmax was tried" in bob["error"]
    assert zoe["right"] == ["softmax"] and time.monotonic() - begun < 60
    for thread in threading.enumerate():
        if "_write" in thread.name:
            thread.join(10)
            assert not thread.is_alive()


def test_a_file_s_time_begins_with_its_start(tmp_path):
    class Server:
        def fork(self, *arguments):
            files = open(os.devnull, "wb"), open(os.devnull, "rb")  # noqa: SIM115
            return student_server.ForkedProcess(None, 1, *files)

    student = class_report.StudentProcess(tmp_path, str(tmp_path), Server())
    student._messages.put(b"")
    assert student._ends_at - time.monotonic() <= class_report.LIMIT_S


# --- The filter of system calls -----------------------------------------------------------------


def all_allowed_calls() -> list[str]:
    own = [*confinement.ALLOWED_WITH, confinement.CLONE3]
    return [*", ".join(confinement.ALLOWED).split(", "), *own]


def filtered(
    column: int, number: int, *arguments: int, machine: int | None = None, tells: bool = False
) -> str:
    """What the filter says to a call, as the kernel reads it; with the second one if it tells."""
    real = confinement.MACHINES[("x86_64", "aarch64")[column]][1]
    words = {0: number, 4: real if machine is None else machine}
    words |= {16 + 8 * n: value & 0xFFFFFFFF for n, value in enumerate(arguments)}
    first = said_by(confinement._system_call_rules(column, real, tells), words)
    second = said_by(confinement._rules_after_telling(column), words) if tells else "yes"
    return first if second == "yes" else second


def said_by(rules: list, words: dict[int, int]) -> str:
    at, held = 0, 0
    while True:
        rule = rules[at]
        at += 1
        if rule.code == 0x20:
            held = words.get(rule.value, 0)
        elif rule.code == 0x54:
            held &= rule.value
        elif rule.code == 0x06:
            ends = {0x7FFF0000: "yes", 0x80000000: "kill", 0x50001: "EPERM", 0x50026: "ENOSYS"}
            return (ends | {0x7FC00000: "told"})[rule.value]
        else:
            holds = {0x15: held == rule.value, 0x35: held >= rule.value, 0x45: held & rule.value}
            at += rule.yes if holds[rule.code] else rule.no


@pytest.mark.parametrize("column", [0, 1], ids=["x86_64", "aarch64"])
def test_calls_that_are_known_are_allowed_and_all_others_refused(column):
    free = {int(call.split()[1 + column]) for call in ", ".join(confinement.ALLOWED).split(", ")}
    own = {int(call.split()[1 + column]) for call in all_allowed_calls()} - free
    for number in {*range(600)} - own:
        assert filtered(column, number) == ("yes" if number in free else "EPERM"), number
        tells = {int(call.split()[1 + column]) for call in confinement.TELLING}
        told = "EPERM" if number in tells else "yes" if number in free else "told"
        assert filtered(column, number, tells=True) == told, number
    assert filtered(column, 0, machine=3) == "kill"  # of another machine, with other numbers
    assert filtered(column, 0x40000000) == "kill"
    clone, clone3, mmap, prlimit, prctl, fcntl, openat = (
        (56, 435, 9, 302, 157, 72, 257) if column == 0 else (220, 435, 222, 261, 167, 25, 56)
    )
    assert filtered(column, clone3) == "ENOSYS"
    assert filtered(column, clone, 17) == "EPERM" and filtered(column, clone, 0x3D0F00) == "yes"
    for flags, said in ((0x22, "yes"), (0x21, "EPERM"), (0x122, "EPERM"), (0x2, "yes")):
        assert filtered(column, mmap, 0, 4096, 3, flags) == said
    assert filtered(column, prlimit, 0) == "yes" and filtered(column, prlimit, 1) == "EPERM"
    assert filtered(column, prctl, 15) == "yes" and filtered(column, prctl, 1) == "EPERM"
    assert filtered(column, fcntl, 0, 3) == "yes" and filtered(column, fcntl, 0, 8) == "EPERM"
    assert filtered(column, fcntl, 0, 6) == "EPERM"  # a lock, for which others would wait
    # Old kernels' Landlock lets what may be read be emptied (0x200); what is opened for nothing (3)
    # no version asks about.
    for flags in (0x200, 0x203, 3):
        assert filtered(column, openat, 0, 0, flags) == "EPERM"
    assert filtered(column, openat) == "yes" and filtered(column, openat, 0, 0, 0x80241) == "yes"
    assert column or filtered(column, 2, 0, 0x200) == "EPERM"


HEADERS = (
    Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    Path("/usr/include/asm-generic/unistd.h"),  # aarch64's
)


@pytest.mark.parametrize("column", [0, 1], ids=["x86_64", "aarch64"])
def test_numbers_of_calls_are_the_kernel_s(column):
    if not HEADERS[column].exists():
        pytest.skip("the kernel's headers are not installed")
    text = HEADERS[column].read_text("utf-8")
    known = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text))
    known |= {"newfstatat": known["fstatat"]} if column else {}
    named = ", ".join(confinement.REFUSED).split(", ")
    for call in [*all_allowed_calls(), *named, *confinement.TELLING]:
        name, *numbers = call.split()
        assert known.get(name, "-1") == numbers[column], name


def children(process: int) -> list[int]:
    path = Path(f"/proc/{process}/task/{process}/children")
    return [int(one) for one in path.read_text("utf-8").split()]


@pytest.mark.slow
@on_linux
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_student_s_process_ends_with_the_grader(tmp_path, how):
    write(tmp_path, bob="class A:\n    while True: pass\n")
    grader = subprocess.Popen([sys.executable, "-m", "slp_transformer.check", "--json", tmp_path])
    while not (started := children(grader.pid)):
        assert grader.poll() is None
        time.sleep(0.05)
    grader.send_signal(how)
    assert grader.wait(10) != 0
    for _ in range(600):  # it may be loading PyTorch
        if not Path(f"/proc/{started[0]}").exists():
            break
        time.sleep(0.05)
    assert not Path(f"/proc/{started[0]}").exists()


REFUSED = """
import ctypes, os
class Here:
    for call in (os.fork, lambda: os.kill(0, 0), lambda: os.mkdir("new")):
        try: call()
        except PermissionError: pass
    ctypes.CDLL(None).syscall(599)
"""
ENDLESS = "def softmax(z, forever=any(iter(int, 1))): pass"
TWO_RIGHT = """
import os, torch
class Here:
    assert os.getcwd() == os.environ["HOME"] and os.listdir(".") == []
    torch.optim.AdamW(torch.nn.Linear(2, 2).parameters()).step()  # which imports half of PyTorch
softmax = lambda z: torch.softmax(z, -1)
def causal_mask(N):
    return torch.full((N, N), -torch.inf).triu(1)
"""


@on_linux
@pytest.mark.slow
@pytest.mark.parametrize("ends", [False, True], ids=["", "its server has ended"])
def test_pytorch_is_loaded_once_for_a_class(tmp_path, monkeypatch, ends):
    more = {} if ends else {"b": TWO_RIGHT, "c": ENDLESS, "d": TWO_RIGHT}
    write(tmp_path, a=TWO_RIGHT, e=REFUSED + TWO_RIGHT, **more)
    monkeypatch.setattr(class_report, "DEFINE_S", 3)
    started, start = [], subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda *a, **k: started.append(start(*a, **k)) or started[-1]
    )

    class Server(student_server.StudentServer):
        def fork(self, *arguments):
            if ends and len(started) == 1:
                os.kill(self._process.pid, signal.SIGKILL)
            return super().fork(*arguments)

    monkeypatch.setattr(class_report, "StudentServer", Server)
    rows = {one["file"]: one for one in report_on_class(tmp_path)["files"]}
    assert len(started) == (3 if ends else 1)
    names = [*({"mkdir", "mkdirat"} & {*(calls := rows["e.py"].pop("refused calls"))})]
    assert sorted({*calls}) == sorted(["clone", "kill", *names, "number 599"])
    assert not any("refused calls" in one for one in rows.values())
    assert ends or "did not come back" in rows.pop("c.py")["error"], rows
    assert all(one["right"] == ["causal_mask", "softmax"] for one in rows.values()), rows
    assert all(process.poll() is not None for process in started)


class Ended:
    """A process that has ended, or cannot be asked."""

    def __init__(self, code):
        self.code = code

    def wait(self, seconds):
        assert seconds == 5
        if isinstance(self.code, Exception):
            raise self.code
        return self.code


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        (b"", 0, "It ended itself, with code 0, while top_k was tried."),
        (b"", 3, "It ended itself, with code 3, while top_k was tried."),
        (b"", -9, "It was ended by signal 9 while top_k was tried."),
        (b"", subprocess.TimeoutExpired("a", 5), "It sends nothing more while top_k was tried."),
        (b"", OSError(), "It sends nothing more while top_k was tried."),
        (b'{"a": 1}', 0, "It sent something that is no answer while top_k was tried."),
        (b"[1]\n", 0, "It sent something that is no answer while top_k was tried."),
        (b"\xff\n", 0, "It sent something that is no answer while top_k was tried."),
        (b"[" * 99_999 + b"\n", 0, "It sent something that is no answer while top_k was tried."),
        (b'{"unusable": "a\\u001bb"}\n', 0, "a\\x1bb"),
    ],
)
def test_how_a_student_s_process_ends_is_told_in_one_sentence(line, code, told):
    student = object.__new__(StudentProcess)
    student._lines, student._ends_at = queue.Queue(), time.monotonic() + 60
    student._process = Ended(code)
    student._lines.put(line)
    with pytest.raises(AttemptEnded, match=whole(told)):
        student.receive(3.0, "top_k was tried")
    student._lines.put(b'{"answers": 1}\n')
    assert student.receive(3.0, "top_k was tried") == {"answers": 1}
    begun = time.monotonic()
    with pytest.raises(AttemptEnded, match=whole("It did not come back while it was read.")):
        student.receive(0.05, "it was read")
    assert time.monotonic() - begun < 30


class SaysAll:
    """A student that says what is in a list, and answers as a function of a reader's would."""

    def __init__(self, about, functions):
        self.said, self.asked, self.functions = [about, {"functions": [*functions]}], [], functions

    def send(self, message):
        self.asked.append(message)
        if len(self.asked) == 1:
            return
        name, numbers, listed = json.loads(message)
        answer = self.functions[name]
        if isinstance(answer, dict):
            self.said.append(answer)
            return
        _, run = check.CHECKS[name].start_attempt(answer, one_row=name == "softmax")
        answers, changed = run(numbers, listed)
        answers = [encode_answer(one) for one in answers]
        self.said.append({"answers": answers, "changed": [*changed]})

    def receive(self, seconds, doing):
        self.waited = seconds, doing
        return self.said.pop(0)


def test_a_row_of_the_report_is_what_was_found_and_nothing_else():
    pasted = next(code for code in package_fingerprints())
    own = {"softmax": "", "temperature": "", "top_k": pasted, "lm_head": "", "ffn": ""}
    about = {
        "stubs": ["draw"], "own": [*own], "unlimited": ["Files are not guarded here."],
        "codes": own, "uses": {one: [] for one in own} | {"temperature": ["slp_transformer.loss"]},
        "imported": {"block": "", "top_p": "torch.top_p"},
    }  # fmt: skip
    right = {one: check.CHECKS[one].solve for one in ("softmax", "temperature", "top_k")}
    right["softmax"] = lambda scores: scores.softmax(-1) if scores.dim() == 1 else 1 / 0
    student = SaysAll(about, right | {"lm_head": lambda H, E: H @ E, "block": 1, "top_p": 1})
    row = {"right": [], "wrong": {}, "missing": []}
    class_report._fill_report(row, student, "a.py", b"content")
    assert student.asked[0] == b'"a.py"\n7\ncontent' and student.waited[0] == 15
    assert row.pop("wrong").keys() == {"lm_head"}
    assert row == {
        "right": ["softmax", "top_k"],
        "missing": ["draw", "ffn"],
        "not limited": ["Files are not guarded here."],
        "uses the package": {"temperature": ["slp_transformer.loss"]},
        "as in the package": {"top_k": package_fingerprints()[pasted]},
        "imported": {"block": "elsewhere", "top_p": "torch.top_p"},
    }


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"answers": [], "changed": []},
        {"answers": ["x"] * 99, "changed": []},
        {"answers": [1.0], "changed": []},
        {"answers": 3, "changed": []},
        {"answers": [0.5] * 99},
        {"answers": [0.5] * 99, "changed": 3},
    ],
)
def test_answers_of_another_form_end_an_attempt(answer):
    about = {
        "stubs": [],
        "own": ["top_k"],
        "unlimited": [],
        "codes": {"top_k": ""},
        "uses": {"top_k": []},
    }
    told = "It sent something that is no answer while top_k was tried."
    with pytest.raises(AttemptEnded, match=whole(told)):
        row = {"right": [], "wrong": {}, "missing": []}
        class_report._fill_report(row, SaysAll(about, {"top_k": answer}), "a.py", b"")
    told = "It sent something that is no answer while its definitions were run."
    with pytest.raises(AttemptEnded, match=whole(told)):
        student = SaysAll(about, {})
        student.said[1] = {"functions": "top_k"}
        class_report._fill_report(row, student, "a.py", b"")
    row = {"right": [], "wrong": {}, "missing": []}
    class_report._fill_report(
        row, SaysAll(about, {"top_k": {"unsupported": "No\x1b."}}), "a.py", b""
    )
    assert row == {"right": [], "wrong": {"top_k": "No\\x1b."}, "missing": []}


def test_what_more_than_half_of_a_class_has_is_missing_in_the_others(tmp_path, monkeypatch):
    rows = {
        "a.py": (["softmax"], {"top_k": "No."}, []),
        "b.py": (["softmax", "ffn"], {"top_k": "No."}, []),
        "c.py": ([], {"top_p": "It is."}, ["ffn"]),
        "d.py": ([], {}, ["softmax"]),
    }
    write(tmp_path, **{name.removesuffix(".py"): "" for name in rows})

    def found(path, folder, server):
        keys = ("right", "wrong", "missing")
        return dict(zip(keys, rows[path.name], strict=True)) | {"file": "?"}

    monkeypatch.setattr(class_report, "report_on_file", found)
    report = report_on_class(tmp_path)
    assert report["mistakes"] == {"top_k: No.": 2, "top_p: It is.": 1}
    assert [*report["mistakes"]][0] == "top_k: No."
    missing = {one["file"]: one["missing"] for one in report["files"]}  # ffn: two of four
    assert missing == {"a.py": [], "b.py": [], "c.py": ["ffn", "softmax"], "d.py": ["softmax"]}


@on_linux
def test_a_student_whose_time_is_over_is_asked_once_more_and_is_a_row():
    student = object.__new__(StudentProcess)
    student._lines, student._ends_at = queue.Queue(), time.monotonic() - 5
    with pytest.raises(AttemptEnded, match=whole("It did not come back while softmax was tried.")):
        student.receive(3.0, "softmax was tried")
    student._lines.put(b'{"functions": []}\n')
    assert student.receive(3.0, "softmax was tried") == {"functions": []}


def test_a_server_that_answers_too_late_is_ended(monkeypatch):
    """Its answer would be taken for that to another request, one process for another."""
    monkeypatch.setattr(student_server, "START_S", 0.3)
    code = "import socket, sys, time; s = socket.socket(fileno=int(sys.argv[1])); s.recv(9999); "
    late = student_server.StudentServer(
        [sys.executable, "-c", code + "time.sleep(1); s.send(b'{}')"], dict(os.environ)
    )
    with pytest.raises(OSError, match="timed out"):
        late.ask({"wait": 1, "seconds": 0})
    assert late._process.poll() is not None
    with pytest.raises(OSError):
        late.ask({"wait": 1, "seconds": 0})
    late.close()
