"""Validation of JSON when it is read.

The schema of a file is a dataclass with plain annotations, which pydantic checks. Nothing is
converted: a number in quotes is no number. A missing setting takes its default; an unknown one is
refused.
"""

from functools import cache
from pathlib import Path
from typing import Any

from slp_transformer._internal.atomic_write import require_extra

MAX_JSON_BYTES = 1 << 28  # bytes; the JSON of the largest vocabulary is far smaller
UNKNOWN_FIELD_ERRORS = (
    "unexpected_keyword_argument",
    "extra_forbidden",
)  # pydantic's names for such an error


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
        wrong = error.errors(include_url=False)
    # What is wrong with a known setting, rather than that another one is unknown.
    wrong.sort(key=lambda each: each["type"] in UNKNOWN_FIELD_ERRORS)
    raise ValueError(f"{source_name}: {format_validation_error(wrong[0])}")


@cache
def type_adapter(schema: Any) -> Any:
    """Return pydantic's adapter of a type."""
    return require_extra("pydantic", "Kept runs").TypeAdapter(schema)


def format_validation_error(error: dict[str, Any]) -> str:
    """Format one of pydantic's errors as the rest of a sentence."""
    place = error_path(error["loc"])
    if error["type"] == "json_invalid":
        return f"this is no JSON ({error['msg'].removeprefix('Invalid JSON: ')})."
    if error["type"] in ("missing", "missing_argument"):
        return f"{place} is missing."
    if error["type"] in UNKNOWN_FIELD_ERRORS:
        return f"{place} is nothing that this version knows: the file may be from a newer one."
    if error["type"] == "value_error":
        return error["msg"].removeprefix("Value error, ")
    value = repr(error["input"])
    value = value if len(value) <= 60 else value[:57] + "..."
    return f"{place or 'this'} {error['msg'].removeprefix('Input ')}, not {value}."


def error_path(location: tuple[str | int, ...]) -> str:
    """Format a location in JSON, as `records.3.step`."""
    text = ".".join(map(str, location))
    return text if len(text) <= 60 else text[:57] + "..."
