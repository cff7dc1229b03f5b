"""Options of chapter 7 run as a script: another text, other sizes."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

DEFAULTS = {"steps": 1200, "last-steps": 800, "last-width": 64, "last-blocks": 3}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Climb a ladder of models.")
    about = "a text file, a folder of them, or a named corpus"
    parser.add_argument("--corpus", default="moby-dick", help=about)
    for name, value in DEFAULTS.items():
        parser.add_argument(f"--{name}", type=int, default=value, help=f"default {value}")
    return parser


def settings(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line: corpus, steps, last_steps, last_width, last_blocks.

    Args:
        arguments: what to read instead of the command line. A notebook has none of its own.
    """
    if arguments is None and "ipykernel" in sys.modules:
        arguments = []
    return _parser().parse_args(arguments)


@contextmanager
def one_sentence() -> Iterator[None]:
    """Ends the script with one sentence and exit code 2, where a setting or a text will not do."""
    try:
        yield
    except (ImportError, ValueError) as error:
        _parser().error(str(error))
