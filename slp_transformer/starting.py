"""Ctrl-C while the command is being loaded.

The command imports the package, and with it torch, before a line of its own can run: that takes
seconds, in which Ctrl-C would print a traceback. So the package looks first of all whether it is
imported for the command. If so, Ctrl-C ends the process with a sentence until `main` takes over;
for everyone else who imports the package nothing changes.
"""

import os
import signal
import sys
import threading
from pathlib import Path
from typing import NoReturn

PROGRAM, INTERRUPTED = "slp-transformer", 130


def is_the_command() -> bool:
    """Whether this process is `slp-transformer` or `python -m slp_transformer`."""
    words = getattr(sys, "argv", [])
    if not words:
        return False
    if words[0] != "-m":  # what it is until Python has found the module
        return Path(words[0]).stem == PROGRAM
    module = sys.orig_argv[-len(words)]  # before the module's own arguments
    return module.removeprefix("-m") == "slp_transformer"


def stop(*_) -> NoReturn:
    """End at once: nothing was begun that would have to be put in order."""
    if os.environ.get("RANK", "0") == "0":
        os.write(2, f"{PROGRAM}: Stopped before it began.\n".encode())
    os._exit(INTERRUPTED)


def heed_ctrl_c() -> None:
    """Have Ctrl-C end the command in one sentence, unless somebody else sees to it."""
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_the_command() and usual and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, stop)


def loaded() -> None:
    """Have Ctrl-C raise KeyboardInterrupt as usual, now that there is somebody to catch it."""
    if signal.getsignal(signal.SIGINT) is stop:
        signal.signal(signal.SIGINT, signal.default_int_handler)


heed_ctrl_c()
