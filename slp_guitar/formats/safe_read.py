"""Files of strangers: read with a bound on their size and on the work that they may make.

The libraries that know these files trust them: a count in a damaged file can have them loop for
minutes. Here they read from a stream that counts what they cost.
"""

import io
import time
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from slp_guitar.bounds import MAX_CPU_SECONDS, MAX_XML_ATTRIBUTES, MAX_XML_TAGS
from slp_guitar.tab import ReadProblem

T = TypeVar("T")
Read = tuple[list[T], list[ReadProblem]]
"""What was read, and what could not be."""


class TimeLimitedBytes(io.BytesIO):
    """Bytes that can be read for so long, in processor time, and no longer."""

    def __init__(self, raw_bytes: bytes):
        """Begin to count."""
        super().__init__(raw_bytes)
        self.deadline: float = time.process_time() + MAX_CPU_SECONDS
        self.num_reads: int = 0

    def read(self, size: int | None = -1) -> bytes:
        """Return the next bytes.

        Raises:
            ValueError: if the time is up.
        """
        self.num_reads += 1
        # To look at the clock costs more than to read a byte.
        if self.num_reads % 64 == 0 and time.process_time() > self.deadline:
            raise ValueError(f"it takes more than {MAX_CPU_SECONDS:g} seconds to read")
        return super().read(size)


def read_bytes(path: str | Path, file_type: str, max_bytes: int) -> bytes:
    """Return the content of a file.

    Args:
        path: the file.
        file_type: what it should be, for the sentence: "a MIDI file".
        max_bytes: bytes that it may have.

    Raises:
        ValueError: if there is no such file, it cannot be opened, is empty or larger.
    """
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder: name a file.")
    if not path.is_file():
        odd = path.exists()  # a pipe, say, which a reader would wait for
        raise ValueError(f"{path} is no ordinary file." if odd else f"There is no file {path}.")
    try:
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
    except OSError as error:
        raise ValueError(f"{path} cannot be opened: {error.strerror}.") from None
    if not content:
        raise ValueError(f"{path} is empty.")
    if len(content) > max_bytes:
        raise ValueError(f"{path} is too large for {file_type}: more than {max_bytes >> 10:,} KiB.")
    return content


def read_each_file(
    root: Path, paths: Iterable[Path], read: Callable[[Path, str], Read[T]]
) -> Read[T]:
    """Read files one by one; one that cannot be read is a problem, and no end to the others.

    Args:
        root: the folder that they are in, or the only file.
        paths: the files.
        read: reads one, which is called by its place in the folder.

    Returns:
        What was read, and what could not be.
    """
    found: list[T] = []
    problems: list[ReadProblem] = []
    for path in paths:
        name = path.name if path == root else path.relative_to(root).as_posix()
        try:
            more, wrong = read(path, name)
        except ValueError as error:
            more, wrong = [], [ReadProblem(name, 0, str(error))]
        found += more
        problems += wrong
    return found, problems


def decode_text(raw_bytes: bytes) -> str:
    """Text from bytes: UTF-8 if that fits, UTF-16 if marked as such, else Latin-1 as on Windows."""
    if raw_bytes.startswith((b"\xff\xfe", b"\xfe\xff")):
        return raw_bytes.decode("utf-16", errors="replace")
    for encoding in ("utf-8-sig", "cp1252"):
        try:
            return raw_bytes.decode(encoding)
        except UnicodeDecodeError:
            continue
    return raw_bytes.decode("latin-1")


def read_zip_member(content: bytes, name: str, max_bytes: int) -> bytes:
    """Return a file of a ZIP archive, unpacked no further than it may be large.

    Raises:
        ValueError: if it is larger, there is none, or it is packed by another method than these
            files are, whose library would unpack all of it at once.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if name not in archive.namelist():
            raise ValueError(f"there is no {name} in it")
        info = archive.getinfo(name)
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{name} in it is not packed by deflate, as it should be")
        with archive.open(info) as member:
            unpacked = member.read(max_bytes + 1)
    if len(unpacked) > max_bytes:
        raise ValueError(f"{name} in it has more than {max_bytes >> 10:,} KiB")
    return unpacked


def parse_xml(content: bytes) -> ET.Element:
    """Parse XML that defines no entities, which can grow without bound or name other files.

    Raises:
        ValueError: if it does, has more tags or attributes than memory may hold, or is no XML.
    """
    encoded = decode_text(content).encode("utf-8", "replace")  # the text may take four times that
    if b"<!ENTITY" in encoded:
        raise ValueError("it defines entities")
    if encoded.count(b"<") > MAX_XML_TAGS or encoded.count(b"=") > MAX_XML_ATTRIBUTES:
        raise ValueError(
            f"it has more than {MAX_XML_TAGS:,} tags, or {MAX_XML_ATTRIBUTES:,} attributes"
        )
    try:
        return ET.fromstring(encoded, ET.XMLParser(encoding="utf-8"))
    except ET.ParseError as error:
        raise ValueError(f"it is no XML: {error}") from None


@contextmanager
def translate_read_errors(path: str | Path, file_type: str) -> Iterator[None]:
    """Say in one sentence that a file is not what it should be, whatever a library makes of it.

    Raises:
        ValueError: for anything that goes wrong inside.
    """
    try:
        yield
    except KeyError as error:  # "'7'" alone says nothing
        reason = f"it names {str(error)[:100]}, which is not in it"
        raise ValueError(f"{path} cannot be read as {file_type}: {reason}.") from None
    except Exception as error:  # what a damaged file makes of a library is anybody's guess
        plain = "it ends too early" if isinstance(error, EOFError) else type(error).__name__
        reason = " ".join(str(error).split())[:120].rstrip(".") or plain
        raise ValueError(f"{path} cannot be read as {file_type}: {reason}.") from None
