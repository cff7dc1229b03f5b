"""A lock on a run folder, which the system releases when its process dies."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from slp_transformer._internal.atomic_write import error_message, require_extra

LOCK_FILE = ".lock"


@contextlib.contextmanager
def run_lock(run_dir: Path) -> Iterator[None]:
    """Lock a folder, which is created if needed, and release it at the end.

    The same process may lock it again. A folder that was created and stays empty is removed.

    Raises:
        ValueError: if another process has locked it, or it cannot be written to.
        ImportError: if filelock is not installed.
    """
    filelock = require_extra("filelock", "Kept runs")
    made = [path for path in (run_dir, *run_dir.parents) if not path.exists()]
    lock = filelock.FileLock(run_dir.resolve() / LOCK_FILE, timeout=0, is_singleton=True)
    before = lock.lock_counter
    try:  # all of it, for a signal may end it anywhere
        try:
            run_dir.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except filelock.Timeout:
            raise ValueError(
                f"Another process trains in {run_dir}: wait for it, stop it, or choose another "
                "folder."
            ) from None
        except OSError as error:
            in_the_way = next((p for p in (run_dir, *run_dir.parents) if p.is_file()), None)
            reason = f"{in_the_way} is a file" if in_the_way else error_message(error)
            raise ValueError(
                f"Nothing can be kept in {run_dir}: {reason}. Choose another folder."
            ) from None
        yield
    finally:
        if lock.lock_counter > before:
            if not before:
                # While it is held: filelock does not take a file for a lock that has lost its
                # name. On Windows, which removes no open file, it goes when it is let go of.
                with contextlib.suppress(OSError):
                    (run_dir / LOCK_FILE).unlink()
            lock.release()
        remove_empty_folders(made)


def remove_empty_folders(folders: list[Path]) -> None:
    """Remove folders that are empty, the innermost first."""
    for folder in folders:
        with contextlib.suppress(OSError):  # there is something in it, or it is not there
            folder.rmdir()
