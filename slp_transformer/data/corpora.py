"""Corpora that have a name: one in the package, others downloaded from their publisher.

A name has neither a dot nor a slash. It always means the corpus; a file or folder that happens to
have the same name is given as a path with a slash, "./moby-dick".

Downloads are kept in the folder that the environment variable `SLP_TRANSFORMER_DATA` names, or
where the system keeps such files, and `SLP_TRANSFORMER_OFFLINE=1` forbids them: see
`slp_transformer.data.downloads`.
"""

from pathlib import Path

from slp_transformer.data.downloads import PublishedFile, fetch_file

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
