"""Results as tables and as JSON. Nothing here needs PyTorch."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Report:
    """The results of an evaluation.

    Attributes:
        values: as JSON.
        text: as a person reads them.
    """

    values: dict[str, Any]
    text: str


def format_table(rows: Mapping[str, Any]) -> str:
    """Return names and values in two columns."""
    width = max(map(len, rows), default=0)
    return "\n".join(f"{name:<{width}}  {value}".rstrip() for name, value in rows.items())


def to_json(content: Any) -> str:
    """Return a result as JSON, which has no NaN."""
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
