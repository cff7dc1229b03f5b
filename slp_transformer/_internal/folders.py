"""Listing of files, the same on every system."""

import os
from pathlib import Path


def list_files(folder: Path) -> list[Path]:
    """Return the files in a folder and its subfolders, sorted by path, without hidden ones.

    Raises:
        ValueError: if a folder cannot be read.
    """

    def refuse(error: OSError) -> None:
        raise ValueError(f"The folder {error.filename} cannot be read: {error.strerror}.")

    found = []
    for place, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(place, name) for name in names if not name.startswith(".")]
    return sorted(
        (path for path in found if path.is_file()), key=lambda path: path.relative_to(folder).parts
    )
