"""The text that comes with the package, so that a first training needs nothing else."""

from pathlib import Path

MOBY_DICK = Path(__file__).with_name("moby_dick.txt")


def moby_dick() -> str:
    """The first 14 chapters of *Moby-Dick*: about 133,000 characters, 74 different ones.

    Herman Melville's novel was published in 1851 and is in the public domain; this is its text
    alone. A paragraph is a line, paragraphs are separated by an empty line and chapters by two,
    dashes are written "--", and all is ASCII.
    """
    return MOBY_DICK.read_text(encoding="utf-8")
