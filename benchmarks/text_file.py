"""Text files of results."""

from pathlib import Path


def write(path: Path, text: str) -> None:
    """Write a file, whole or not at all."""
    unfinished = path.with_name(f".{path.name}.writing")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)
