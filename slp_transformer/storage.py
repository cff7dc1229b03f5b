"""Files that are written whole or not at all, and libraries that only some work needs."""

import importlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any


def from_text_extra(module: str, purpose: str) -> ModuleType:
    """Import what comes with the `text` extra, at the moment it is needed.

    Args:
        module: the module's name, as in `import`.
        purpose: what needs it, as the message's first word or words ("Checkpoints").

    Raises:
        ImportError: naming the extra, if the module is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ImportError(
            f"{purpose} need {module.partition('.')[0]}, which comes with the text extra: "
            'python -m pip install "slp-transformer[text]".'
        ) from None


def flush_to_disk(path: Path) -> None:
    """Have a written file, or a folder's list of names, outlive a power cut."""
    if path.is_dir():
        if os.name == "nt":
            return  # Windows keeps a folder's names by itself and opens no folder
        handle = os.open(path, os.O_RDONLY)
    else:
        handle = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Offer a temporary name to write to; the file takes its own name once it is complete.

    A process killed on the way leaves the old file as it was, and beside it the unfinished one,
    which the next attempt writes over.
    """
    unfinished = path.with_name(f".{path.name}.writing")
    try:
        yield unfinished
        flush_to_disk(unfinished)
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    flush_to_disk(path.parent)


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file, whole or not at all."""
    with whole_file(path) as unfinished:
        unfinished.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8", newline="\n")


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises:
        ValueError: if it cannot be read, or is no JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} cannot be read: {error}.") from None
