"""Files that others publish: where they are kept, and how they are fetched and checked.

They are kept in the data directory: the folder that the environment variable
`SLP_TRANSFORMER_DATA` names, or else the place that the system has for such files (on Linux
~/.cache/slp-transformer). A file is downloaded once, and checked against its SHA-256 each time it
is asked for.

With `SLP_TRANSFORMER_OFFLINE=1` nothing is downloaded. A machine without a network gets a file by
hand: copy it to the data directory under the name that the message says. A download that breaks off
leaves what came in a `.part` file beside it, and goes on from there the next time: pooch checks and
names the file, but it cannot ask for the rest of one, which is what the second half of this module
is for. On a terminal, a download that takes a while shows a bar.
"""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from slp_transformer._internal.atomic_write import from_text_extra, reason_of
from slp_transformer._internal.progress_bar import work_bar

DATA, OFFLINE = "SLP_TRANSFORMER_DATA", "SLP_TRANSFORMER_OFFLINE"


@dataclass(frozen=True)
class PublishedFile:
    """A file as its publisher offers it.

    Attributes:
        name: what it is called in the data directory.
        url: where it is published.
        sha256: its checksum, in hexadecimal digits.
        size: in bytes.
        origin: a sentence on where the content is from, and under which terms.
    """

    name: str
    url: str
    sha256: str
    size: int
    origin: str


def data_folder() -> Path:
    """The data directory; it need not be there yet.

    Raises:
        ImportError: if pooch is needed to know the system's place and is not installed.
    """
    named = os.environ.get(DATA)
    if named:
        return Path(named).expanduser()
    return Path(from_text_extra("pooch", "Downloads").os_cache("slp-transformer"))


def is_offline() -> bool:
    """Whether `SLP_TRANSFORMER_OFFLINE` forbids downloads."""
    return os.environ.get(OFFLINE, "").strip().lower() not in ("", "0", "false", "no")


def fetch_file(file: PublishedFile) -> Path:
    """The file in the data directory, downloaded if it is not there yet.

    Raises:
        ValueError: if the file there is another one, or it is not there and cannot be downloaded.
            The message says what to do.
        ImportError: if pooch is needed and not installed.
    """
    path = data_folder() / file.name
    by_hand = f"Or get it in another way, and copy it to {path}."
    if path.exists():
        if checksum(path) != file.sha256:
            raise ValueError(
                f"{path} is not the file that {file.url} should have: its SHA-256 is "
                f"{checksum(path)}, not {file.sha256}. Delete it to download it anew."
            )
        return path
    if is_offline():
        raise ValueError(
            f"{path} is not there, and {OFFLINE} forbids to download it from {file.url}: unset "
            f"that variable. {by_hand}"
        )
    try:
        download(file, path)
    except OSError as error:  # requests raises kinds of it as well
        raise ValueError(
            f"{file.url} could not be downloaded ({short(error)}): try again, and it goes on from "
            f"what came so far. {by_hand}"
        ) from None
    return path


def checksum(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits.

    Raises:
        ValueError: if it cannot be read.
    """
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {reason_of(error)}.") from None


def download(file: PublishedFile, path: Path) -> None:
    """Download a file, and give it its name once its checksum is right.

    Raises:
        ValueError: if the checksum is wrong. What was downloaded is deleted.
        OSError: if the network or the disk fails.
    """
    pooch = from_text_extra("pooch", "Downloads")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")

    def resuming(url: str, output: str, _) -> None:
        """What pooch calls to download; it then checks the output and renames it."""
        done = part.stat().st_size if part.exists() else 0
        with work_bar("Download", file.size, done=done) as tell:
            complete_part(url, part, file.size, tell)
        os.replace(part, output)

    try:
        pooch.retrieve(file.url, f"sha256:{file.sha256}", path.name, path.parent, None, resuming)
    except ValueError:
        raise ValueError(
            f"What {file.url} sent was deleted, since its SHA-256 is not {file.sha256}: try again. "
            "If this happens again, the publisher has changed the file."
        ) from None


def complete_part(url: str, part: Path, size: int, tell: Callable[[int], Any]) -> None:
    """Download what a `.part` file lacks, trying again as long as each try brings something.

    Args:
        url: where from.
        part: the file, which need not be there yet.
        size: how many bytes it should have.
        tell: called with the number of bytes that came, or with less than 0 if some were dropped.

    Raises:
        OSError: if a try fails and brought nothing.
    """
    while True:
        have = part.stat().st_size if part.exists() else 0
        if have >= size:  # the checksum says whether this is the file
            return
        try:
            with open(part, "ab") as output:
                append(url, Watched(output, tell), have)
            reason = OSError("the connection was closed too early")
        except OSError as error:
            reason = error
        if part.stat().st_size <= have:
            raise reason


class Watched:
    """A file that tells how many bytes are written to it, or dropped from it."""

    def __init__(self, output: BinaryIO, tell: Callable[[int], Any]):
        """Watch a file that is open for appending."""
        self.output, self.tell, self.flush = output, tell, output.flush

    def write(self, content: bytes) -> None:
        """Append to the file."""
        self.output.write(content)
        self.tell(len(content))

    def clear(self, have: int) -> None:
        """Drop the bytes that it has."""
        self.output.truncate(0)
        self.tell(-have)


def append(url: str, output: Watched, have: int) -> None:
    """Ask a server for a file from byte `have` on, and append what it sends.

    What was there is dropped if the server sends the file from its beginning (it then answers 200
    instead of 206), or if the file does not go that far any more (416).

    Raises:
        OSError: if the server refuses, or the connection breaks.
    """
    pooch = from_text_extra("pooch", "Downloads")

    def look_at_answer(response, **_) -> None:
        sent = response.headers.get("Content-Range", "")
        if response.status_code in (200, 416):
            output.clear(have)
        elif response.status_code == 206 and not sent.startswith(f"bytes {have}-"):
            raise OSError(f"asked for the file from byte {have} on, the server sent {sent!r}")

    # Packed on the way, the bytes would not be those that the file consists of.
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    get = pooch.HTTPDownloader(headers=headers, hooks={"response": look_at_answer})
    get(url, output, None)


def short(error: Exception) -> str:
    """The gist of an error of the network, which tends to be a chain of names."""
    while error.__context__ is not None:
        error = error.__context__
    return str(error).rstrip(".") or type(error).__name__
