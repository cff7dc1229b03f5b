"""Atomic writes of files, and imports of optional dependencies."""

import importlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any


def require_extra(module: str, purpose: str, extra: str = "text") -> ModuleType:
    """Import a module of an optional dependency, at the moment it is needed.

    Args:
        module: the module's name, as in `import`.
        purpose: what needs it, as the message's first word or words ("Checkpoints").
        extra: the extra of this package that installs it.

    Raises:
        ImportError: naming the extra, if the module is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ImportError(
            f"{purpose} need {module.partition('.')[0]}, which comes with the {extra} extra: "
            f'python -m pip install "slp-transformer[{extra}]".'
        ) from None


def fsync_path(path: Path) -> None:
    """Flush a file, or the entries of a folder, to the disk."""
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
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to; it is renamed to `path` once it is complete.

    A process that is killed on the way leaves the old file untouched, and the temporary one, which
    the next attempt overwrites.

    Raises:
        OSError: of the file, under its own name, if it cannot be written.
    """
    unfinished = path.with_name(f".{path.name}.writing")
    try:
        yield unfinished
        fsync_path(unfinished)
        os.replace(unfinished, path)
    except BaseException as error:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    fsync_path(path.parent)


def error_message(error: Exception) -> str:
    """Return why a file could not be read or written: the system's message without its number."""
    message = getattr(error, "strerror", None) or str(error)
    return re.sub(r" \(os error \d+\)", "", message).rpartition("I/O error: ")[2].rstrip(".")


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file, whole or not at all."""
    with atomic_write(path) as unfinished:
        unfinished.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8", newline="\n")


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises:
        ValueError: if it cannot be read, or is no JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None
    except RecursionError:
        raise ValueError(f"{path} cannot be read: it is nested too deeply.") from None
    except ValueError as error:  # no UTF-8, no JSON, or a number of thousands of digits
        raise ValueError(f"{path} cannot be read: {error}.") from None
