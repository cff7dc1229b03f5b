"""Options of chapter 7 run as a script: another text, other sizes, a folder to save to."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from slp_transformer._internal.atomic_write import atomic_write
from slp_transformer.plotting.figures import Figure

DEFAULTS = {"steps": 1200, "last-steps": 800, "last-width": 64, "last-blocks": 3}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Climb a ladder of models.")
    about = "a text file, a folder of them, or a named corpus"
    parser.add_argument("--corpus", default="moby-dick", help=about)
    parser.add_argument("--save", type=Path, help="folder for curves and texts")
    for name, value in DEFAULTS.items():
        parser.add_argument(f"--{name}", type=int, default=value, help=f"default {value}")
    return parser


def settings(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line: corpus, save, steps, last_steps, last_width, last_blocks.

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


def keep(
    folder: Path,
    curves: Mapping[str, Sequence[tuple[float, float]]],
    texts: Mapping[str, str],
    ladder: Figure,
) -> None:
    """Write curves (`losses.csv`, `losses.svg`) and texts (`samples.txt`) into a folder.

    Args:
        folder: made if it is not there.
        curves: of each rung, pairs of thousands of characters read and held-out loss in nats.
        texts: what each rung wrote.
        ladder: the figure of the curves.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rows = [f"{rung},{x:g},{y:.4f}" for rung in curves for x, y in curves[rung]]
    said = [f"--- {rung}\n{text}" for rung, text in texts.items()]
    files = {
        "losses.csv": "\n".join(["rung,thousands read,nats", *rows]) + "\n",
        "samples.txt": "\n\n".join(said) + "\n",
    }
    for name, content in files.items():
        with atomic_write(folder / name) as unfinished:
            unfinished.write_text(content, encoding="utf-8")
    ladder.save(folder / "losses.svg")
