"""Kernels of chapters, forked by a process that has imported PyTorch once for all of them.

Only where a process can be told from another that has taken its number, which is on Linux; there
forking is also safe. Elsewhere, and if it fails, a kernel is started as jupyter_client does.
"""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from jupyter_client.manager import AsyncKernelManager
from traitlets import List, Unicode


def _can_fork() -> bool:
    """Return whether the system lets a process be watched, which some containers forbid."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


CAN_FORK = _can_fork()
IDLE_S = 60.0  # the server takes some 300 MB
ANSWER_S = 600.0  # the first answer comes after imports, which a busy machine takes long for
IPYTHON = ("ipykernel.kernelapp", "ipykernel.ipkernel", "IPython.core.completer")
PYTORCH = (
    *("torch", "torch._dynamo", "torch.testing", "torch.utils.flop_counter"),
    *("matplotlib.figure", "matplotlib.backends.backend_svg"),
)
"""What chapters with PyTorch import, or let it import: `_dynamo` is an optimizer's first step."""


class ForkedProcess:
    """A forked kernel: what jupyter_client asks of a `Popen`, of a process that is not our child.

    Attributes:
        pid: its number.
        returncode: None while it runs; then 1, as how it ended is known to its parent alone.
    """

    stdin = stdout = stderr = None

    def __init__(self, pid: int):
        """Watch a process; one that has ended already counts as ended."""
        self.pid = pid
        self.returncode: int | None = None
        try:
            self._fd = os.pidfd_open(pid)
        except ProcessLookupError:
            self.returncode = 1

    def poll(self) -> int | None:
        """Return None while the process runs."""
        return self.returncode if self.returncode is not None else self._watch(0)

    def wait(self) -> int | None:
        """Return when it has ended."""
        return self.returncode if self.returncode is not None else self._watch(None)

    def _watch(self, milliseconds: int | None) -> int | None:
        watched = select.poll()
        watched.register(self._fd, select.POLLIN)
        if watched.poll(milliseconds):
            os.close(self._fd)
            self.returncode = 1
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, if it still runs."""
        if self.poll() is None:
            signal.pidfd_send_signal(self._fd, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)


class ForkServer:
    """The process that forks, started when it is needed; it ends when idle, or with this one."""

    def __init__(self) -> None:
        """Begin without it."""
        self._lock = threading.Lock()
        self._connection: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def fork(self, request: dict[str, Any], stderr: int) -> ForkedProcess:
        """Fork a kernel.

        Raises:
            OSError: if a server that was just started does not answer, or the request is too large.
        """
        with self._lock:
            if self._connection is not None:
                with contextlib.suppress(OSError):  # it has ended since
                    return self._ask(self._connection, request, stderr)
            return self._ask(self._start(request["environment"]), request, stderr)

    def _ask(self, connection: socket.socket, request: dict[str, Any], stderr: int) -> Any:
        """Ask for a kernel; a connection without an answer is closed."""
        try:
            socket.send_fds(connection, [json.dumps(request).encode()], [stderr])
            answer = connection.recv(32)
            if not answer:
                raise ConnectionResetError("The process that forks kernels has ended.")
        except OSError:
            self._connection = None
            connection.close()
            raise
        return ForkedProcess(int(answer))

    def _start(self, environment: dict[str, str]) -> socket.socket:
        """Start it; the project is not on its path, but on that of each kernel."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        path = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
        script = Path(__file__).with_name("fork_server.py")
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, str(script), str(theirs.fileno()), str(IDLE_S)],
                env=environment | path,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        ours.settimeout(ANSWER_S)
        self._connection = ours
        return ours


SERVER = ForkServer()


class ForkedKernelManager(AsyncKernelManager):
    """Starts a kernel by forking, where that is possible."""

    modules = List(Unicode(), config=True, help="What is imported before kernels are forked.")

    async def _async_launch_kernel(self, kernel_cmd: list[str], **options: Any) -> None:
        provisioner: Any = self.provisioner
        if not CAN_FORK:
            return await super()._async_launch_kernel(kernel_cmd, **options)
        request = {
            "arguments": kernel_cmd[kernel_cmd.index("ipykernel_launcher") + 1 :],
            "environment": options["env"],
            "folder": str(options["cwd"]),
            "modules": list(self.modules),
        }
        try:
            process = SERVER.fork(request, options["stderr"].fileno())
        except OSError:
            return await super()._async_launch_kernel(kernel_cmd, **options)
        provisioner.process, provisioner.pid, provisioner.pgid = process, process.pid, process.pid
        self._reconcile_connection_info(provisioner.connection_info)
        return None
