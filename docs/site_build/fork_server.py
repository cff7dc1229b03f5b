"""A process that has imported what every chapter imports, and forks the chapters' kernels.

`python fork_server.py FD IDLE_S` is asked through a socket, and ends when there have been neither
requests nor kernels for so many seconds. A kernel that is forked has not to start an
interpreter, nor to import IPython and PyTorch, which is most of what a short chapter takes. Nothing
of the project is imported here, so that an edit is seen by the next kernel; and nothing is computed
or drawn at random, so that a kernel's numbers are those of a kernel that was started by itself.
"""

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import sys
from typing import Any

MAX_REQUEST = 2**20  # bytes; the environment is most of it
STDERR = 2


def serve(connection: socket.socket) -> dict[str, Any] | None:
    """Fork a kernel for each request.

    Returns:
        The request, in each kernel; None in the server itself, when it is to end.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for a kernel here
    while True:
        try:
            message, files, *_ = socket.recv_fds(connection, MAX_REQUEST, 1)
        except TimeoutError:
            if has_kernels():
                continue
            return None
        except ConnectionError:
            return None  # who asked has ended, while an answer was under way
        if not message:
            return None
        request: dict[str, Any] = json.loads(message)
        for module in request["modules"]:
            with contextlib.suppress(ImportError):  # the chapter will say so
                importlib.import_module(module)
        gc.collect()
        gc.freeze()  # what is shared with kernels stays shared
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            connection.send(str(os.getpid()).encode())
            connection.close()
            os.dup2(files[0], STDERR)
            os.close(files[0])
            return request
        os.close(files[0])


def has_kernels() -> bool:
    """Return whether a kernel still runs."""
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


def become_kernel(request: dict[str, Any]) -> None:
    """Run a kernel in this process, as if it had been started with the request's environment."""
    os.environ.clear()
    os.environ.update(request["environment"], JPY_PARENT_PID=str(os.getppid()))
    os.chdir(request["folder"])
    first = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:] = [*first, *(path for path in sys.path if path not in first)]
    sys.argv[1:] = request["arguments"]
    importlib.import_module("ipykernel.kernelapp").launch_new_instance()


if __name__ == "__main__":
    del sys.path[0]  # this file's folder, which a kernel does not look into
    # Read when ipykernel and Matplotlib are imported, which is here.
    os.environ["JPY_PARENT_PID"] = str(os.getpid())
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    with socket.socket(fileno=int(sys.argv[1])) as ours:
        ours.settimeout(float(sys.argv[2]))
        asked = serve(ours)
    if asked is not None:
        become_kernel(asked)
