"""Checksums of files, against bits that a disk or a copy has flipped; not against people."""

import errno
import zlib
from collections.abc import Mapping
from pathlib import Path, PureWindowsPath

from slp_transformer._internal.atomic_write import error_message

CHUNK_BYTES = 1 << 20  # bytes in memory at once


def file_crc32(path: Path) -> str:
    """Return the CRC-32 of a file, as eight hexadecimal digits."""
    checksum, buffer = 0, memoryview(bytearray(CHUNK_BYTES))
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(buffer):
            checksum = zlib.crc32(buffer[:count], checksum)
    return f"{checksum:08x}"


def verify_files(folder: Path, checksums: Mapping[str, str], what: str, advice: str) -> None:
    """Compare files with what was written.

    Args:
        folder: where they are.
        checksums: the CRC-32 of each file.
        what: what the files are together, for the message.
        advice: what to do, for its end.

    Raises:
        ValueError: naming the first file that is missing, cannot be read, or has changed.
    """
    for name, checksum in checksums.items():
        try:
            if PureWindowsPath(name).name != name or not (folder / name).is_file():
                raise FileNotFoundError(errno.ENOENT, "there is no such file")
            found = file_crc32(folder / name)
        except OSError as error:
            missing = isinstance(error, FileNotFoundError)
            verb, again = ("is damaged", "") if missing else ("cannot be read", "try again, or ")
            reason = f"{name}: {error_message(error)}"
            raise ValueError(f"{what} {folder} {verb} ({reason}): {again}{advice}.") from None
        if found != checksum:
            raise ValueError(
                f"{what} {folder} is damaged: {name} is not what was written (its CRC-32 is "
                f"{found}, not {checksum}): {advice}."
            )
