"""Files of tensors, mapped by safetensors; one that cannot be read is a sentence."""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from slp_transformer._internal.atomic_write import (
    apply_umask,
    check_is_file,
    error_message,
    fsync_path,
)
from slp_transformer._internal.extras import import_extra


def safetensors_error_class() -> type[Exception]:
    """Return the error of safetensors for files that it cannot read or write."""
    return import_extra("safetensors", "Weights").SafetensorError


@contextmanager
def open_tensors(path: Path) -> Iterator[Any]:
    """Map a file of tensors.

    Raises:
        ValueError: if it cannot be read.
    """
    check_is_file(path)
    try:
        with import_extra("safetensors", "Weights").safe_open(path, framework="pt") as file:
            yield file
    except (OSError, RuntimeError, safetensors_error_class()) as error:
        # PyTorch opens the file once more to map it, at once or for the first tensor, by the
        # version of safetensors; a RuntimeError that does not name the file is somebody else's.
        if isinstance(error, RuntimeError) and str(path) not in str(error):
            raise
        reason = error_message(error)
        if isinstance(error, FileNotFoundError) and path.exists():  # as safetensors calls them all
            reason = "the system could not open it this time; try again"
        raise ValueError(f"{path} cannot be read: {reason}.") from None


def write_tensors(
    path: Path, tensors: dict[str, Any], purpose: str, metadata: dict[str, str] | None = None
) -> None:
    """Write tensors of one device to a file, and flush it to the disk.

    Args:
        path: the file.
        tensors: by name.
        purpose: as in `import_extra`.
        metadata: what else the file says.

    Raises:
        OSError: if it cannot be written; safetensors has an error of its own for that.
    """
    save_file = import_extra("safetensors.torch", purpose).save_file
    try:
        save_file(tensors, path, metadata=metadata)
    except safetensors_error_class() as error:
        number = re.search(r"\(os error (\d+)\)", str(error))
        reason = error_message(error)
        raise OSError(int(number[1]) if number else errno.EIO, reason, str(path)) from error
    apply_umask(path)
    fsync_path(path)
