"""What is printed: on streams that may be closed or full, and without a word to the terminal.

Names and titles come from files of strangers. A control character in one could set the title of the
terminal, or write over what was printed before.
"""

import os
import re
import sys

# All but the line break and the tab, which lay out tables and music; and those characters that
# change the direction of writing.
CONTROL_CHARACTERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def escape_controls(text: str) -> str:
    r"""Return a text with control characters as JSON writes them: \u001b."""
    return CONTROL_CHARACTERS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def open_closed_streams() -> None:
    """Open the null device for standard streams that this process was started without.

    Otherwise Python has None in their place, and the next file that is opened gets their number,
    and what is printed to it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))


def discard_unwritten_output() -> None:
    """Discard what standard output and error cannot take: nobody reads on, or a disk is full.

    Otherwise Python tries again at the end of the process, and changes its exit code.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
