"""Files that others publish: where they are kept, and how they are downloaded and checked.

They are kept in the data directory: the folder that the environment variable
`SLP_TRANSFORMER_DATA` names, or else the place that the system has for such files (on Linux
~/.cache/slp-transformer). A file is downloaded once, and checked against its SHA-256 each time it
is asked for.

With `SLP_TRANSFORMER_OFFLINE=1` nothing is downloaded. On a machine without a network, copy the
file to the data directory under the name that the error message gives.
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from slp_transformer._internal.atomic_write import error_message, require_extra

DATA_DIR_VARIABLE, OFFLINE_VARIABLE = "SLP_TRANSFORMER_DATA", "SLP_TRANSFORMER_OFFLINE"


@dataclass(frozen=True)
class PublishedFile:
    """A file as its publisher offers it.

    Attributes:
        name: file name in the data directory.
        url: where it is published.
        sha256: its checksum, in hexadecimal digits.
        origin: a sentence on where the content is from, and under which terms.
    """

    name: str
    url: str
    sha256: str
    origin: str


def data_dir() -> Path:
    """Return the data directory, which may not exist yet.

    Raises:
        ImportError: if pooch is needed to find the system's cache directory and is not installed.
    """
    named = os.environ.get(DATA_DIR_VARIABLE)
    if named:
        return Path(named).expanduser()
    return Path(require_extra("pooch", "Downloads").os_cache("slp-transformer"))


def is_offline() -> bool:
    """Return whether `SLP_TRANSFORMER_OFFLINE` forbids downloads."""
    return os.environ.get(OFFLINE_VARIABLE, "").strip().lower() not in ("", "0", "false", "no")


def fetch_file(file: PublishedFile) -> Path:
    """Return the path of the file in the data directory, downloading it if it is missing.

    Raises:
        ValueError: if the file there has another checksum, or it cannot be downloaded. The message
            says what to do.
        ImportError: if pooch is needed and not installed.
    """
    path = data_dir() / file.name
    by_hand = f"Or get it in another way, and copy it to {path}."
    if path.exists():
        if compute_sha256(path) != file.sha256:
            raise ValueError(
                f"{path} is not the file that {file.url} should have: its SHA-256 is "
                f"{compute_sha256(path)}, not {file.sha256}. Delete it to download it anew."
            )
        return path
    if is_offline():
        raise ValueError(
            f"{path} does not exist, and {OFFLINE_VARIABLE} forbids downloading it from "
            f"{file.url}: unset that variable. {by_hand}"
        )
    pooch = require_extra("pooch", "Downloads")
    try:
        pooch.retrieve(file.url, f"sha256:{file.sha256}", path.name, path.parent)
    except OSError as error:  # the errors of requests are OSErrors too
        raise ValueError(
            f"{file.url} could not be downloaded ({root_cause_message(error)}): "
            f"try again. {by_hand}"
        ) from None
    except ValueError:  # pooch has deleted what came
        raise ValueError(
            f"What {file.url} sent was deleted, since its SHA-256 is not {file.sha256}: try again. "
            "If this happens again, the publisher has changed the file."
        ) from None
    return path


def compute_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits.

    Raises:
        ValueError: if the file cannot be read.
    """
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error_message(error)}.") from None


def root_cause_message(error: Exception) -> str:
    """Return the innermost message of a network error, which tends to be a chain of names."""
    while error.__context__ is not None:
        error = error.__context__
    return str(error).rstrip(".") or type(error).__name__
