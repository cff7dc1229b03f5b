"""Corpora that have a name: one in the package, others downloaded from their publisher.

A name has neither a dot nor a slash. It always means the corpus; a file or folder that happens to
have the same name is given as a path with a slash, "./moby-dick".

Downloads are kept in the data directory: the folder that the environment variable
`SLP_TRANSFORMER_DATA` names, or else the place that the system has for such files (on Linux
~/.cache/slp-transformer). A file is downloaded once, and checked against its SHA-256 each time it
is asked for.

With `SLP_TRANSFORMER_OFFLINE=1` nothing is downloaded. On a machine without a network, copy the
file to the data directory under the name that the error message gives.
"""

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


CORPORA = {
    "tiny-shakespeare": PublishedFile(
        name="tiny-shakespeare.txt",
        url="https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
        sha256="86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
        origin="40,000 lines of Shakespeare's plays, which are in the public domain, put together "
        "by Andrej Karpathy for char-rnn (2015).",
    ),
}
BUNDLED_CORPORA = {"moby-dick": Path(__file__).with_name("moby_dick.txt")}


def load_moby_dick() -> str:
    """Return the first 14 chapters of *Moby-Dick*: about 133,000 characters, 74 different ones.

    Herman Melville's novel was published in 1851 and is in the public domain; this is its text
    alone. A paragraph is a line, paragraphs are separated by an empty line and chapters by two,
    dashes are written "--", and all is ASCII.
    """
    return BUNDLED_CORPORA["moby-dick"].read_text(encoding="utf-8")


def list_corpora() -> list[str]:
    """Return the names that `fetch_corpus` knows."""
    return sorted(CORPORA.keys() | BUNDLED_CORPORA.keys())


def fetch_corpus(name: str) -> Path:
    """Return the path of a named corpus, downloading it if it is missing.

    Args:
        name: one of `list_corpora()`.

    Returns:
        A UTF-8 text file.

    Raises:
        ValueError: if the name is unknown, or the file cannot be downloaded or is not as published.
        ImportError: if pooch is needed and not installed.
    """
    if name in BUNDLED_CORPORA:
        return BUNDLED_CORPORA[name]
    if name not in CORPORA:
        raise ValueError(f"No corpus is called {name!r}; there are {', '.join(list_corpora())}.")
    return fetch_file(CORPORA[name])


def data_dir() -> Path:
    """Return the data directory, which may not exist yet.

    Raises:
        ImportError: if pooch is needed to find the system's cache directory and is not installed.
    """
    named = os.environ.get(DATA_DIR_VARIABLE)
    if named:
        return Path(named).expanduser()
    return Path(require_extra("pooch", "Downloads").os_cache("slp-transformer"))


def fetch_file(file: PublishedFile) -> Path:
    """Return the path of the file in the data directory, downloading it if it is missing.

    Raises:
        ValueError: if the file there has another checksum, or it cannot be downloaded or written.
            The message says what to do.
        ImportError: if pooch is not installed.
    """
    pooch, path = require_extra("pooch", "Downloads"), data_dir() / file.name
    network_error = require_extra("requests", "Downloads").RequestException
    offline = os.environ.get(OFFLINE_VARIABLE, "").strip().lower() not in ("", "0", "false", "no")
    by_hand = f"Or get it in another way, and copy it to {path}."
    try:
        sha256 = pooch.file_hash(path) if path.exists() else None
        if sha256 is None and not offline:
            pooch.retrieve(file.url, f"sha256:{file.sha256}", path.name, path.parent)
            return path
    except network_error as error:
        reason = root_cause_message(error)
        raise ValueError(
            f"{file.url} could not be downloaded ({reason}): try again. {by_hand}"
        ) from None
    except OSError as error:
        reason = error_message(error.__cause__ if isinstance(error.__cause__, OSError) else error)
        raise ValueError(f"{path} cannot be read or written: {reason}.") from None
    except ValueError:  # pooch has deleted what came
        raise ValueError(
            f"What {file.url} sent was deleted, since its SHA-256 is not {file.sha256}: try again. "
            "If this happens again, the publisher has changed the file."
        ) from None
    if sha256 is None:
        raise ValueError(
            f"{path} does not exist, and {OFFLINE_VARIABLE} forbids downloading it from {file.url}:"
            f" unset that variable. {by_hand}"
        )
    if sha256 != file.sha256:
        raise ValueError(
            f"{path} is not the file that {file.url} should have: its SHA-256 is {sha256}, not "
            f"{file.sha256}. Delete it to download it anew."
        )
    return path


def root_cause_message(error: BaseException) -> str:
    """Return the innermost message of a network error, which tends to be a chain of names."""
    while error.__context__ is not None:
        error = error.__context__
    return str(error).rstrip(".") or type(error).__name__
