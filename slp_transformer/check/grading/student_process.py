"""The process that runs one student's file: it is given cases, and sends what comes out.

It judges nothing: answers are compared with the right ones in the grader's process, so that
whatever a student's code changes here, it can only change its own answers. What can be said about a
file before a line of it is run is sent first.
"""

import importlib
import json
import linecache
import os
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

from slp_transformer._internal.plugins import PACKAGES
from slp_transformer.check import CHECKS
from slp_transformer.check.diagnosing.calling import UnsupportedCall
from slp_transformer.check.grading.answer_codec import encode_answer
from slp_transformer.check.grading.confinement import confine_this_process, end_with_parent
from slp_transformer.check.student_file import load_checked_functions, parse_file

SYSTEM_PATHS = (  # of /etc and /run only what is known, for secrets stand there, too
    *("/usr", "/usr/lib", "/usr/lib64", "/usr/share", "/lib", "/lib64", "/opt", "/nix", "/proc"),
    *("/sys/devices/system", "/sys/fs/cgroup", "/sys/kernel/mm", "/dev/urandom", "/dev/random"),
    *("/etc/fonts", "/etc/group", "/etc/ld.so.cache", "/etc/localtime", "/etc/mime.types"),
    *("/etc/nsswitch.conf", "/etc/os-release", "/etc/passwd", "/etc/ssl/openssl.cnf"),
)


def main(folder: str, seconds: int, grader: int) -> None:
    """Answer the grader until it closes the pipe.

    Args:
        folder: that of the class, which is not to be read.
        seconds: of processor time.
        grader: the number of its process.
    """
    end_with_parent()
    import_what_writes()
    if os.getppid() != grader and sys.platform != "win32":  # it ended while this was loaded
        return
    read, write = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nowhere, standard)
    tempfile.tempdir = os.getcwd()  # or it is looked for by writing
    path = json.loads(read.readline())
    unlimited = confine_this_process(_readable_paths(folder), seconds, read.fileno())
    try:
        data = read.read(int(read.readline()))
        file = parse_file(path, data)
    except ValueError as error:
        _send_message(write, {"unusable": str(error)})
        return
    if path.endswith(".py"):  # so that messages can show a line
        linecache.cache[path] = (len(data), None, data.decode().splitlines(True), path)
    own = file.function_names_by_check()
    about = {
        "stubs": file.checks_without_function(),
        "own": [*own],
        "imported": {check: file.import_origin(check) for check in CHECKS if check not in own},
        "uses": {check: file.package_names_used_by(name) for check, name in own.items()},
        "codes": {check: file.fingerprint(name) for check, name in own.items()},
        "unlimited": unlimited,
    }
    _send_message(write, about)
    try:
        functions = load_checked_functions(file)
    except ValueError as error:
        _send_message(write, {"unusable": str(error)})
        return
    _send_message(write, {"functions": [*functions]})
    _answer_requests(read, write, functions)


def import_what_writes() -> None:
    """Import, while that is allowed, what makes a folder as it is imported: an optimizer does."""
    importlib.import_module("torch._dynamo")


def _answer_requests(
    read: BinaryIO, write: BinaryIO, functions: dict[str, Callable[..., Any]]
) -> None:
    runs: dict[str, Any] = {}
    for line in read:
        name, numbers, listed = json.loads(line)
        try:
            if name not in runs:
                start = CHECKS[name].start_attempt
                _, runs[name] = start(functions[name], one_row=name == "softmax")
            answers, changed = runs[name](numbers, listed)
        except UnsupportedCall as error:
            _send_message(write, {"unsupported": str(error)})
        else:
            _send_message(
                write, {"answers": [encode_answer(one) for one in answers], "changed": [*changed]}
            )


def _send_message(write: BinaryIO, message: dict[str, Any]) -> None:
    write.write(json.dumps(message).encode() + b"\n")
    write.flush()


def _readable_paths(folder: str) -> set[str]:
    """Return what Python needs to read, without folders in which the class's is.

    Of `sys.path` it is what packages are installed in: the grader's folder stands there, too.
    """
    paths = {sys.prefix, sys.base_prefix, *sysconfig.get_paths().values(), *SYSTEM_PATHS}
    paths |= {path for path in sys.path if path.endswith("-packages")}
    specs = [spec for name in (*PACKAGES, "torch", "numpy") if (spec := find_spec(name))]
    paths |= {path for spec in specs for path in spec.submodule_search_locations or ()}
    paths.add(os.getcwd())  # its own empty folder
    found = {Path(path).resolve() for path in paths if path}
    closed = Path(folder).resolve()
    return {str(path) for path in found if path not in (closed, *closed.parents)}


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
