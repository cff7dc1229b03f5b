"""Validation of JSON when it is read.

The schema of a file is a dataclass with plain annotations, which pydantic checks. Nothing is
converted: a number in quotes is no number. A missing setting takes its default; an unknown one is
refused, or left out with a warning.
"""

import logging
from functools import cache
from pathlib import Path
from typing import Any

from slp_transformer._internal.atomic_write import from_text_extra

LOG = logging.getLogger("slp_transformer")
LARGEST = 1 << 28  # bytes; the JSON of the largest vocabulary is far smaller
UNKNOWN = ("unexpected_keyword_argument", "extra_forbidden")  # pydantic's names for such an error


def read_as(kind: Any, path: Path, *, lenient: bool = False) -> Any:
    """Load a JSON file, validated against a schema.

    Args:
        kind: a dataclass, or any type that pydantic knows.
        path: the file.
        lenient: leave out settings that are not known, and say so; otherwise refuse them.

    Raises:
        ValueError: naming the file and the first place that is wrong.
        ImportError: if pydantic is not installed.
    """
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError(f"{path} is too large: it should have at most {LARGEST:,} bytes.")
        content = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None
    return parse_as(kind, content, str(path), lenient=lenient)


def parse_as(kind: Any, content: bytes, where: str, *, lenient: bool = False) -> Any:
    """Parse JSON text, validated against a schema.

    Args:
        kind: as there.
        content: the text, in UTF-8.
        where: what to call it in messages.
        lenient: as there.

    Raises:
        ValueError: naming `where` and the first place that is wrong.
        ImportError: if pydantic is not installed.
    """
    pydantic = from_text_extra("pydantic", "Kept runs")
    try:
        return adapter(kind).validate_json(content, strict=True, extra="forbid")
    except pydantic.ValidationError as error:
        wrong = error.errors(include_url=False)
    other = [each for each in wrong if each["type"] not in UNKNOWN]
    if other or not lenient:
        raise ValueError(f"{where}: {in_words((other or wrong)[0])}")
    names = ", ".join(sorted({dotted(each["loc"]) for each in wrong}))
    LOG.warning(f"{where} has settings that this version does not know, and leaves out: {names}.")
    return adapter(kind).validate_json(content, strict=True, extra="ignore")


@cache
def adapter(kind: Any) -> Any:
    """Return pydantic's adapter of a type."""
    return from_text_extra("pydantic", "Kept runs").TypeAdapter(kind)


def in_words(wrong: dict[str, Any]) -> str:
    """Format one of pydantic's errors as the rest of a sentence."""
    place = dotted(wrong["loc"])
    if wrong["type"] == "json_invalid":
        return f"this is no JSON ({wrong['msg'].removeprefix('Invalid JSON: ')})."
    if wrong["type"] in ("missing", "missing_argument"):
        return f"{place} is missing."
    if wrong["type"] in UNKNOWN:
        return f"{place} is nothing that this version knows: the file may be from a newer one."
    if wrong["type"] == "value_error":
        return wrong["msg"].removeprefix("Value error, ")
    value = repr(wrong["input"])
    value = value if len(value) <= 60 else value[:57] + "..."
    return f"{place or 'this'} {wrong['msg'].removeprefix('Input ')}, not {value}."


def dotted(place: tuple[str | int, ...]) -> str:
    """Format a location in JSON, as `records.3.step`."""
    text = ".".join(map(str, place))
    return text if len(text) <= 60 else text[:57] + "..."
