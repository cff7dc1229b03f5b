"""JSON files, read with a bound and written whole or not at all; with a schema, validated.

The schema of a JSON file is a dataclass with plain annotations, which pydantic checks. Nothing is
converted: a number in quotes is no number. A missing setting takes its default; an unknown one is
refused.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from slp_transformer._internal.atomic_write import check_is_file, error_message, write_file
from slp_transformer._internal.bounds import MAX_SETTINGS_BYTES
from slp_transformer._internal.extras import import_extra


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file, whole or not at all."""
    write_file(path, format_json(content))


def format_json(content: Any) -> str:
    """Return JSON as `write_json` writes it."""
    return json.dumps(content, indent=1) + "\n"


def read_json(path: Path, most: int = MAX_SETTINGS_BYTES) -> Any:
    """Read a JSON file of at most so many bytes.

    Raises:
        ValueError: if it cannot be read, is too large, or is no JSON.
    """
    content = read_bounded(path, most)
    try:
        return json.loads(content.decode("utf-8"))
    # It is no UTF-8 or no JSON, is nested too deeply, or has a number without end.
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read: {error_message(error)}.") from None


def read_settings(path: Path) -> dict[str, Any]:
    """Read a JSON file that holds settings by their names.

    Raises:
        ValueError: if it cannot be read, is too large, or holds something else.
    """
    content = read_json(path)
    if not isinstance(content, dict):
        raise ValueError(f"{path} must be a JSON object.")
    return content


def read_bounded(path: Path, most: int = MAX_SETTINGS_BYTES) -> bytes:
    """Return the content of a file of at most so many bytes.

    Raises:
        ValueError: if it cannot be read, or is too large.
    """
    try:
        check_is_file(path)
        if path.stat().st_size > most:
            raise ValueError(f"{path} is too large: it should have at most {most:,} bytes.")
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None


def load_validated(schema: Any, path: Path, most: int = MAX_SETTINGS_BYTES) -> Any:
    """Load a JSON file, validated against a schema.

    Args:
        schema: a dataclass, or any type that pydantic knows.
        path: the file.
        most: how many bytes it may have.

    Raises:
        ValueError: naming the file and the first place that is wrong.
        ImportError: if pydantic is not installed.
    """
    return validate_json(schema, read_bounded(path, most), str(path))


def validate_json(schema: Any, content: bytes, source_name: str) -> Any:
    """Parse JSON text, validated against a schema.

    Args:
        schema: a dataclass, or any type that pydantic knows.
        content: the text, in UTF-8.
        source_name: what to call it in messages.

    Raises:
        ValueError: naming `source_name` and the first place that is wrong.
        ImportError: if pydantic is not installed.
    """
    pydantic = import_extra("pydantic", "Kept runs")
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
    return import_extra("pydantic", "Kept runs").TypeAdapter(schema)
