"""One owner for a run's folder: two processes that train in it would ruin each other's work."""

import contextlib
import errno
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from slp_transformer._internal.atomic_write import (
    error_message,
    fsync_path,
    remove_unfinished_files,
)
from slp_transformer._internal.extras import import_extra

LOCK_FILE = ".lock"
# What network file systems answer that have no locks, beside ENOSYS, which filelock knows.
NO_LOCKS = (errno.ENOLCK, getattr(errno, "EOPNOTSUPP", errno.ENOLCK))


def folder_identity(path: Path) -> tuple[int, int] | None:
    """Return what a folder keeps when another takes its name; None if there is none."""
    try:
        info = path.stat()
    except OSError:
        return None
    return info.st_dev, info.st_ino


def check_same_folder(path: Path, before: tuple[int, int] | None) -> None:
    """Refuse to write to a folder that is another one than when it was locked.

    Raises:
        ValueError: if it was deleted, renamed or replaced.
    """
    if folder_identity(path) != before:
        raise ValueError(
            f"{path} was deleted or renamed during training, so nothing more is saved. If it has "
            "another name now, resume it there."
        )


@contextlib.contextmanager
def run_lock(run_dir: Path) -> Iterator[None]:
    """Lock a folder, which is created if needed, and release it at the end.

    The system releases it when the process dies. The same process may lock it again. A folder that
    was created and stays empty is removed. What a killed process was writing goes, once the folder
    is locked.

    Raises:
        ValueError: if another process has locked it, or it cannot be written to.
        ImportError: if filelock is not installed.
    """
    filelock = import_extra("filelock", "Kept runs")
    made = [path for path in (run_dir, *run_dir.parents) if not path.exists()]
    path = Path(os.path.realpath(run_dir)) / LOCK_FILE  # also of a link in a circle
    lock: Any = filelock.FileLock(path, timeout=0, is_singleton=True)
    before, existed = lock.lock_counter, path.exists()
    try:  # all of it, for a signal may end it anywhere
        try:
            run_dir.mkdir(parents=True, exist_ok=True)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that the file system has no locks
                try:
                    lock.acquire()
                except filelock.Timeout:
                    raise
                except OSError as error:
                    if not existed:
                        path.unlink(missing_ok=True)
                    if error.errno not in NO_LOCKS:
                        raise
                    # A file that names this process stands for a lock.
                    lock = filelock.SoftFileLock(path, timeout=0, is_singleton=True)
                    before = lock.lock_counter
                    lock.acquire()
            if not before:
                remove_unfinished_files(run_dir)
            for folder in made:
                fsync_path(folder.parent)
        except filelock.Timeout:
            who = gone = ""
            if isinstance(lock, filelock.SoftFileLock):  # which outlives a process that was killed
                process, host, *_ = [*path.read_text("utf-8", "replace").split(), "?", "?"]
                who = f" (process {process} on {host})"
                gone = f" If it has ended, delete {path}."
            raise ValueError(
                f"Another process trains in {run_dir}{who}: wait for it, stop it, or choose "
                f"another folder.{gone}"
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
                    path.unlink()
            lock.release()
        for folder in made:
            with contextlib.suppress(OSError):  # there is something in it, or it is not there
                folder.rmdir()
