"""Atomic writes of files, JSON that is validated, and imports of optional dependencies.

The schema of a JSON file is a dataclass with plain annotations, which pydantic checks. Nothing is
converted: a number in quotes is no number. A missing setting takes its default; an unknown one is
refused.
"""

import importlib
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

MAX_JSON_BYTES = 1 << 28  # bytes; the JSON of the largest vocabulary is far smaller
WINDOWS_RETRIES = (0.1, 0.2, 0.5, 1.0, 2.0)  # seconds between attempts to rename


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


def rename(source: Path, target: Path) -> None:
    """Rename a file, or a folder to a name that is free.

    Windows refuses this as long as another process has a file open, as virus scanners and indexers
    do for a moment with each new one: there it is tried again for some seconds.

    Raises:
        OSError: if it cannot be renamed.
    """
    for seconds in WINDOWS_RETRIES if os.name == "nt" else ():
        try:
            return os.replace(source, target)
        except PermissionError:
            time.sleep(seconds)
    return os.replace(source, target)


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
        rename(unfinished, path)
    except BaseException as error:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    fsync_path(path.parent)


def check_place(path: Path) -> None:
    """Refuse a path that no file can be written to.

    Raises:
        ValueError: if it is a folder, or in a folder that is not there.
    """
    if path.is_dir():
        raise ValueError(f"{path} is a folder: name a file to write to.")
    if not path.parent.is_dir():
        raise ValueError(f"There is no folder {path.parent} to write {path.name} to.")


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
    # It is not there, is no UTF-8 or no JSON, is nested too deeply, or has a number without end.
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read: {error_message(error)}.") from None


# --- JSON with a schema ---------------------------------------------------------------------------


def load_validated(schema: Any, path: Path) -> Any:
    """Load a JSON file, validated against a schema.

    Args:
        schema: a dataclass, or any type that pydantic knows.
        path: the file.

    Raises:
        ValueError: naming the file and the first place that is wrong.
        ImportError: if pydantic is not installed.
    """
    try:
        if path.stat().st_size > MAX_JSON_BYTES:
            raise ValueError(
                f"{path} is too large: it should have at most {MAX_JSON_BYTES:,} bytes."
            )
        content = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None
    return validate_json(schema, content, str(path))


def validate_json(schema: Any, content: bytes, source_name: str) -> Any:
    """Parse JSON text, validated against a schema.

    Args:
        schema: as there.
        content: the text, in UTF-8.
        source_name: what to call it in messages.

    Raises:
        ValueError: naming `source_name` and the first place that is wrong.
        ImportError: if pydantic is not installed.
    """
    pydantic = require_extra("pydantic", "Kept runs")
    try:
        return type_adapter(schema).validate_json(content, strict=True, extra="forbid")
    except pydantic.ValidationError as error:
        wrong = error.errors(include_url=False)[0]
    place = ".".join(map(str, wrong["loc"])) or "this"
    reason = f"{place}: {wrong['msg']} (found {wrong['input']!r:.60})."
    if wrong["type"] == "value_error":  # one of our own sentences
        reason = wrong["msg"].removeprefix("Value error, ")
    raise ValueError(f"{source_name}: {reason}")


@cache
def type_adapter(schema: Any) -> Any:
    """Return pydantic's adapter of a type."""
    return require_extra("pydantic", "Kept runs").TypeAdapter(schema)
