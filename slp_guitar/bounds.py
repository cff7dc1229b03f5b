"""The bounds of guitar music, all in one place; what is beyond is refused before the work.

Each reader takes its own from here, and so does the page that reads files in a browser. Together
they keep any file under half a gigabyte of memory and some seconds of time.
"""

import re
from fractions import Fraction
from functools import lru_cache

MAX_FILE_BYTES = {
    "MIDI": 1 << 20,
    "Guitar Pro 3 to 5": 4 << 20,
    "Guitar Pro 6 to 8": 8 << 20,
    "compressed Guitar Pro 6": 2 << 20,  # which is read bit by bit
    "MusicXML": 16 << 20,
    "alphaTex": 1 << 19,
    "ASCII tab": 4 << 20,
    "JAMS": 16 << 20,
}
MAX_UNPACKED_BYTES = 64 << 20  # of a file in a ZIP archive
MAX_XML_TAGS = 1_250_000  # an element takes about 110 bytes of memory,
MAX_XML_ATTRIBUTES = 600_000  # one with attributes about 300 more
MAX_CPU_SECONDS = 4.0  # processor time that a library may take to read one file
MAX_NOTES = 200_000  # of a file, rests and other beats included
MAX_SMALL_FILE_NOTES = 10_000  # of the smallest file, whose notes stand for several each,
FILE_BYTES_PER_NOTE = 2  # and one more for so many bytes of a larger file as it is on the disk
MAX_MIDI_NOTES = 50_000  # since each may be in a voice of its own
MAX_PLAYED_NOTES = 50_000  # of a tab, with its repeats played out
MAX_TEXT_LINES = 100_000  # of an ASCII tab, each of which may state a tuning
MAX_BARS = 10_000  # of a file, and with its repeats played out
MAX_BAR_QUARTERS = 1 << 10  # quarter notes in a bar
MAX_STEPS = 1 << 21  # steps in a piece, each a column of its ASCII tab
MAX_NUMBER = 10**6  # of whatever a score counts
MAX_DENOMINATOR = 1 << 32  # of a moment in a score, in quarter notes

NUMBER_PATTERN = re.compile(r"\s*([+-]?\d{1,9}(?:\.\d{1,9})?)\s*")


def max_notes_of_file(num_bytes: int) -> int:
    """Return how many notes and rests a file may have.

    A file can name one note many times, or be packed: without this, half a kilobyte could ask for
    half a minute. A real one has a note for five bytes, or for many more.
    """
    return min(MAX_NOTES, MAX_SMALL_FILE_NOTES + num_bytes // FILE_BYTES_PER_NOTE)


@lru_cache(maxsize=256)  # a score has few lengths, each many times
def parse_exact_number(text: str) -> Fraction:
    """Return a decimal number of a score, exactly.

    Raises:
        ValueError: if it is no number, or one that no score has.
    """
    found = NUMBER_PATTERN.fullmatch(text)
    number = Fraction(found[1]) if found else None
    if number is None or abs(number) > MAX_NUMBER:
        raise ValueError(f"{text[:20]!r} is no number of a score, at most {MAX_NUMBER:,}")
    return number


def check_score_moment(quarters: Fraction) -> None:
    """Refuse a moment that no score has: far away, or of a fraction that only grows.

    Raises:
        ValueError: if it is one.
    """
    if quarters.denominator > MAX_DENOMINATOR:
        raise ValueError("its lengths have no common unit of time")
    if abs(quarters.numerator) > MAX_NUMBER * quarters.denominator:
        raise ValueError(f"it is longer than {MAX_NUMBER:,} quarter notes")
