"""Atomic writes of files: whole or not at all, under names that nobody can guess.

What is being written has a random name in the same folder, and is created for that: a link that
somebody put there is never followed. It gets its own name once it is complete and on the disk.
"""

import errno
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from slp_transformer._internal.bounds import WAITS

WINDOWS_RETRIES = (0.1, 0.2, 0.5, 1.0, 2.0)  # seconds between attempts to rename
RANDOM_NAME = re.compile(r"\.[0-9a-f]{16}\.(writing|exporting)")
ABANDONED_S = 60.0  # a file or folder without a lock that is older is nobody's
SWEPT: set[Path] = set()  # folders in which this process has looked for such files
LEFTOVER = re.compile(r"(\..+)?\.writing|\.preparing")  # of killed processes; older names, too
STREAM_NAME = re.compile(r"/dev/(stdout|stderr|fd/\d+)|/proc/(self|\d+)/fd/\d+")
# What a file system answers that cannot flush a folder, or a folder that may not be listed.
NO_FOLDER_SYNC = {errno.EINVAL, errno.EACCES, getattr(errno, "ENOTSUP", errno.EINVAL)}


class NotSyncedError(OSError):
    """What was written is in its place, but the disk did not confirm that it will stay."""


def fsync_path(path: Path) -> None:
    """Flush a file, or the entries of a folder, to the disk.

    Raises:
        NotSyncedError: of a folder, in whose entries a power cut may now undo the last change.
        OSError: of a file.
    """
    if not path.is_dir():
        handle = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
        try:
            return os.fsync(handle)
        finally:
            os.close(handle)
    if os.name == "nt":
        return  # Windows keeps a folder's names by itself and opens no folder
    try:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in NO_FOLDER_SYNC:
            raise NotSyncedError(error.errno, error.strerror, str(path)) from error


def rename_path(source: Path, target: Path) -> None:
    """Rename a file, or a folder to a name that is free.

    Windows refuses this as long as another process has a file open, as virus scanners and indexers
    do for a moment with each new one: there it is tried again for some seconds.

    Raises:
        OSError: if it cannot be renamed.
    """
    for seconds in WINDOWS_RETRIES if os.name == "nt" else ():
        try:
            return os.replace(source, target)
        except PermissionError:
            time.sleep(seconds)
    return os.replace(source, target)


def random_name(doing: str = "writing") -> str:
    """Return a name for what is being written, which `remove_abandoned_files` knows."""
    return f".{os.urandom(8).hex()}.{doing}"


def open_new_file(path: Path) -> BinaryIO:
    """Create a file, with the mode of the umask, and open it.

    Raises:
        OSError: if it cannot be created, or there is anything of that name, a link as well.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
    for name in ("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY"):
        flags |= getattr(os, name, 0)
    return os.fdopen(os.open(path, flags, 0o666), "w+b")


def make_random_folder(parent: Path) -> Path:
    """Create a folder under a random name."""
    path = parent / random_name()
    path.mkdir()  # never follows a link, nor takes what is there
    return path


def apply_umask(path: Path) -> None:
    """Give a file the mode that others have in its folder, which this process created.

    safetensors makes files that only their owner can read.
    """
    path.chmod(path.parent.stat().st_mode & 0o666)


@contextmanager
def make_locked_folder(parent: Path) -> Iterator[Path]:
    """Yield a new folder, locked, under a random name; those that killed processes left go.

    Windows opens no folder, so there they stay.
    """
    remove_abandoned_files(parent)
    path = parent / random_name("exporting")
    path.mkdir()
    handle = -1
    try:
        with suppress(OSError):  # Windows opens no folder
            handle = os.open(path, os.O_RDONLY)
            lock_file(handle)
        yield path
    finally:
        if handle >= 0:
            os.close(handle)


def remove_unfinished_files(folder: Path) -> None:
    """Remove what killed processes were writing in a folder; links go, what they name stays."""
    with suppress(OSError):
        for path in folder.iterdir():
            if LEFTOVER.fullmatch(path.name):
                remove_path(path)


def remove_abandoned_files(folder: Path) -> None:
    """Remove files and exports of killed processes from a folder that several may write to.

    Who writes one holds a lock on it, which ends with the process; on Windows a file that is open
    cannot be removed. One that was made just now may have no lock yet.
    """
    with suppress(OSError):
        for path in folder.iterdir():
            is_kind = path.is_dir if path.suffix == ".exporting" else path.is_file
            if not RANDOM_NAME.fullmatch(path.name) or path.is_symlink() or not is_kind():
                continue
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > ABANDONED_S:
                    handle = os.open(path, os.O_RDONLY)
                    try:
                        lock_file(handle)
                    finally:
                        os.close(handle)
                    remove_path(path)


def lock_file(file: BinaryIO | int) -> None:
    """Lock a file or folder that is open, as long as it is; Windows does so by itself.

    Raises:
        OSError: if another process has it locked, or the file system has no locks.
    """
    if os.name != "nt":
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def remove_path(path: Path) -> None:
    """Remove a file, a link (not what it names), or a folder with all that is in it, if it can."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def check_is_file(path: Path) -> None:
    """Refuse a pipe, a socket, a device or a folder: some could be waited for without an end.

    Raises:
        ValueError: if it is one; what is not there at all is left to whoever opens it.
    """
    with suppress(OSError):
        if not stat.S_ISREG(path.stat().st_mode):
            raise ValueError(f"{path} cannot be read: it is no file.")


def check_is_no_link(path: Path) -> None:
    """Refuse a link where this package is about to write, or copy, a name of its own.

    Raises:
        ValueError: if it is one.
    """
    if path.is_symlink():
        raise ValueError(
            f"{path} is a link, which is not followed: put what it names in its place, or remove "
            "it."
        )


def _open_stream(path: Path) -> BinaryIO:
    """Open a pipe or a device to write to; what was written there before stays.

    Raises:
        OSError: if it cannot be opened, or nobody reads from a pipe for some seconds.
    """
    if os.name == "nt" or not path.is_fifo():
        return path.open("ab")
    seconds, says = WAITS["a pipe's reader"]
    deadline = time.monotonic() + seconds
    while True:
        try:
            handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC)
            os.set_blocking(handle, True)
            return os.fdopen(handle, "ab")
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            if time.monotonic() > deadline:
                raise OSError(errno.ENXIO, says, str(path)) from None
        time.sleep(0.02)


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Yield a new file to write to, which becomes `path` once it is complete.

    A process that is killed on the way leaves the old file untouched. A pipe, a terminal or
    another device, such as /dev/stdout, is written to at the end.

    Raises:
        NotSyncedError: if the file is in its place, but may not outlast a power cut.
        OSError: of the file, under its own name, if it cannot be written.
    """
    try:
        if STREAM_NAME.fullmatch(str(path)) or (path.exists() and not path.is_file()):
            with tempfile.TemporaryFile() as unfinished:
                yield unfinished
                unfinished.seek(0)
                with _open_stream(path) as stream:
                    shutil.copyfileobj(unfinished, stream)
            return
        temp = path.with_name(random_name())
        if path.parent not in SWEPT:
            SWEPT.add(path.parent)
            remove_abandoned_files(path.parent)
        try:
            with open_new_file(temp) as file:
                with suppress(OSError):
                    lock_file(file)
                yield file
                file.flush()
                os.fsync(file.fileno())
            rename_path(temp, path)
        except BaseException:
            remove_path(temp)
            raise
        fsync_path(path.parent)
    except NotSyncedError as error:
        raise NotSyncedError(error.errno, error.strerror, str(path)) from error
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file, whole or not at all; text as UTF-8 with the line breaks that it has."""
    with atomic_write(path) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


def check_writable_path(path: Path) -> None:
    """Refuse a path that no file can be written to.

    Raises:
        ValueError: if it is a folder, or in a folder that is not there.
    """
    if path.is_dir():
        raise ValueError(f"{path} is a folder: name a file to write to.")
    if not path.parent.is_dir():
        raise ValueError(f"There is no folder {path.parent} to write {path.name} to.")


def error_message(error: Exception) -> str:
    """Return why a file could not be read or written: the system's message without its number."""
    message = getattr(error, "strerror", None) or str(error)
    return re.sub(r" \(os error \d+\)", "", message).rpartition("I/O error: ")[2].rstrip(".")
