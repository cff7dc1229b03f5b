"""Notes which functions of the package run. A chapter's kernel executes this, not the hook."""

import json
import sys
import threading
from types import FrameType
from typing import Any


def start(folder: str) -> None:
    """Begins to note each function that is called and defined in a folder, by its file."""
    ran: dict[str, set[str]] = {}

    def called(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if code.co_filename.startswith(folder):
            ran.setdefault(code.co_filename, set()).add(code.co_qualname)

    vars(sys)["slp_ran"] = ran
    threading.settrace(called)
    sys.settrace(called)


def report() -> None:
    """Prints what ran, as JSON."""
    sys.settrace(None)
    print(json.dumps({file: sorted(names) for file, names in vars(sys)["slp_ran"].items()}))
