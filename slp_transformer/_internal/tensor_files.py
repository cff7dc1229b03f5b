"""Files of tensors, mapped by safetensors; one that cannot be read is a sentence."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from slp_transformer._internal.atomic_write import error_message
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
