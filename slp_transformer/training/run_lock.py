"""A lock on a run folder, which the system releases when its process dies."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from slp_transformer._internal.atomic_write import from_text_extra, reason_of

LOCK = ".lock"


@contextlib.contextmanager
def sole_owner(folder: Path) -> Iterator[None]:
    """Lock a folder, which is created if needed, and release it at the end.

    The same process may lock it again. A folder that was created and stays empty is removed.

    Raises:
        ValueError: if another process has locked it, or it cannot be written to.
        ImportError: if filelock is not installed.
    """
    filelock = from_text_extra("filelock", "Kept runs")
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    lock = filelock.FileLock(folder.resolve() / LOCK, timeout=0, is_singleton=True)
    before = lock.lock_counter
    try:  # all of it, for a signal may end it anywhere
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except filelock.Timeout:
            raise ValueError(
                f"Another process trains in {folder}: wait for it, stop it, or choose another "
                "folder."
            ) from None
        except OSError as error:
            in_the_way = next((p for p in (folder, *folder.parents) if p.is_file()), None)
            reason = f"{in_the_way} is a file" if in_the_way else reason_of(error)
            raise ValueError(
                f"Nothing can be kept in {folder}: {reason}. Choose another folder."
            ) from None
        yield
    finally:
        if lock.lock_counter > before:
            if not before:
                # While it is held: filelock does not take a file for a lock that has lost its
                # name. On Windows, which removes no open file, it goes when it is let go of.
                with contextlib.suppress(OSError):
                    (folder / LOCK).unlink()
            lock.release()
        discard(made)


def discard(folders: list[Path]) -> None:
    """Remove folders that are empty, the innermost first."""
    for folder in folders:
        with contextlib.suppress(OSError):  # there is something in it, or it is not there
            folder.rmdir()
