"""A process that has loaded PyTorch once, and forks the processes of a class's files.

Loading PyTorch is most of the time that a file takes. No line of a student's runs here. Through a
socket this process is asked for a new one, how one has ended, and to end one; until then it is not
waited for, so that no other gets its number.

Linux alone has sockets that keep messages apart; elsewhere each file's process loads PyTorch.
"""

import contextlib
import gc
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any, BinaryIO

from slp_transformer._internal.bounds import WAITS

MAX_MESSAGE = 1 << 16
START_S = WAITS["a student's process to start"].seconds


class ForkedProcess:
    """A process of the server's, as `subprocess.Popen` has them.

    Attributes:
        pid: its number, and that of its group.
        stdin: what it reads.
        stdout: what it writes.
    """

    def __init__(self, server: "StudentServer", pid: int, stdin: BinaryIO, stdout: BinaryIO):
        """Take over a process that was just forked."""
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout
        self._server = server

    def wait(self, timeout: float) -> int:
        """Return the exit code, or the negative number of the signal that ended it.

        Raises:
            subprocess.TimeoutExpired: if it still runs after so many seconds.
        """
        code = self._server.ask({"wait": self.pid, "seconds": timeout})["code"]
        if code is None:
            raise subprocess.TimeoutExpired("a file", timeout)
        return int(code)

    def end(self) -> None:
        """End it and its group."""
        self._server.ask({"end": self.pid})
        for stream in (self.stdin, self.stdout):
            with contextlib.suppress(OSError):
                stream.close()


class StudentServer:
    """The server, as seen by the grader."""

    def __init__(self, command: Sequence[str], variables: dict[str, str]):
        """Start it; it loads PyTorch while the grader goes on.

        Args:
            command: Python and what it runs, which ends in `serve` with the number of a socket.
            variables: the environment.

        Raises:
            OSError: if this is not Linux, or it cannot be started.
        """
        if sys.platform != "linux":
            raise OSError("Only Linux has what this needs.")
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=variables,
                start_new_session=True,
            )

    def fork(self, home: str, variables: dict[str, str], arguments: Sequence[str]) -> ForkedProcess:
        """Start a process for a file.

        Raises:
            OSError: if the server has ended.
        """
        ours, theirs = socket.socketpair()  # through which a process can hand on a file
        read, write = os.pipe()
        stdin, stdout = os.fdopen(ours.detach(), "wb"), os.fdopen(read, "rb")
        try:
            request = {"home": home, "variables": variables, "arguments": [*arguments]}
            pid = self.ask(request, (theirs.fileno(), write))["pid"]
        except BaseException:
            stdin.close()
            stdout.close()
            raise
        finally:
            theirs.close()
            os.close(write)
        return ForkedProcess(self, pid, stdin, stdout)

    def ask(self, request: dict[str, Any], files: Sequence[int] = ()) -> dict[str, Any]:
        """Return what the server says to a request.

        Raises:
            OSError: if it has ended, or says nothing. It is ended then: an answer that comes late
                would be taken for that to another request.
        """
        try:
            self._socket.settimeout(START_S)
            socket.send_fds(self._socket, [json.dumps(request).encode()], files)
            message = self._socket.recv(MAX_MESSAGE)
            if not message:
                raise OSError("The server has ended.")
        except OSError:
            self.close()
            raise
        said: dict[str, Any] = json.loads(message)
        return said

    def close(self) -> None:
        """End the server."""
        self._socket.close()
        self._process.kill()
        self._process.wait()


def serve(connection: socket.socket) -> dict[str, Any] | None:
    """Fork a process for each request that asks for one.

    Returns:
        The request, in each of these processes; None in the server, once the grader has ended.
    """
    while True:
        message, files, *_ = socket.recv_fds(connection, MAX_MESSAGE, 2)
        if not message:
            return None
        request: dict[str, Any] = json.loads(message)
        if "wait" in request or "end" in request:
            _answer(connection, request)
            continue
        if (pid := os.fork()) == 0:
            connection.close()
            return request | {"files": files}
        for file in files:
            os.close(file)
        connection.send(json.dumps({"pid": pid}).encode())


def _answer(connection: socket.socket, request: dict[str, Any]) -> None:
    """Say how a process has ended, or end it."""
    code, pid = None, request.get("wait") or request["end"]
    if "end" in request:
        for kill in (os.killpg, os.kill):  # it may not have its group yet
            with contextlib.suppress(OSError):
                kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
    else:
        deadline = time.monotonic() + request["seconds"]
        while code is None:
            ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is not None:  # it stays until it is ended, so that its number is nobody's
                killed = ended.si_code != os.CLD_EXITED
                code = -ended.si_status if killed else ended.si_status
            elif time.monotonic() > deadline:
                break
            else:
                time.sleep(0.01)
    connection.send(json.dumps({"code": code}).encode())


def run(number: int) -> None:
    """Be the server, and in each process that it forks the student's.

    Args:
        number: of the socket.
    """
    from slp_transformer.check.grading import student_process
    from slp_transformer.check.grading.confinement import end_with_parent

    end_with_parent()
    student_process.import_what_writes()
    gc.collect()
    gc.freeze()  # what is shared stays shared
    with socket.socket(fileno=number) as connection:
        request = serve(connection)
    if request is None:
        return
    os.setsid()
    for standard, file in enumerate(request["files"]):
        os.dup2(file, standard)
        os.close(file)
    os.environ.clear()
    os.environ.update(request["variables"])
    os.chdir(request["home"])
    random.seed()
    folder, seconds = request["arguments"]
    student_process.main(folder, int(seconds), os.getppid())
