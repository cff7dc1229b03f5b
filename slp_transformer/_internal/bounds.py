"""The bounds of untrusted input, all in one place; what is beyond is refused before the work.

Each reader takes its own from here. Together they keep most files under half a gigabyte of memory,
and all to some seconds of time. Those of guitar music are in `slp_guitar.bounds`.
"""

from typing import NamedTuple


class Wait(NamedTuple):
    """A wait for something foreign, which has an end.

    Attributes:
        seconds: by the clock.
        says: what is said then; in braces, what it is about.
    """

    seconds: float
    says: str


AWAY = "It did not come back while {}."
WAITS = {
    # beside the seconds of a processor, which a system may not count
    "strangers' programs": Wait(30, "it takes more than {} seconds"),
    "a pipe's reader": Wait(3, "nobody reads from this pipe"),
    "a checkpoint that stays": Wait(
        10,
        "{} could not be read in {:g} seconds, because a process that trains in it saves and "
        "deletes checkpoints all the time: try again, or let it keep more of them (--keep-last).",
    ),
    "the others of a group": Wait(600, "Process {} of {} could not connect to the others ({})"),
    "a sign of life from one of a group": Wait(10, "process {} has ended before all were there"),
    "a student's process to start": Wait(60, AWAY),
    "a student's definitions": Wait(20, AWAY),
    "a student's function": Wait(5, "It did not come back within {:g} seconds."),
    "a student's file": Wait(120, AWAY),
    "a wrong part of a model": Wait(120, "Yours has not ended after {:.0f} seconds."),
}
"""Waits for the user's terminal and pipes have no end, but look for a signal (`signals`)."""

# --- Files of any kind ---
# JSON takes twenty times its size of memory; of nothing but empty lists, seventy times. Settings,
# the files of a model's tensors, and what is handed on beside a tokenizer; then a vocabulary,
# held-out pairs, a line of a text.
MAX_SETTINGS_BYTES, MAX_JSON_BYTES = 1 << 24, 1 << 26
# Of a configuration, and in one of its lines: a key of n parts takes Python's reader n² of memory.
MAX_TOML_BYTES, MAX_TOML_DOTS = 1 << 19, 100
MAX_GZIP_BYTES, MAX_GZIP_RATIO = 1 << 24, 50  # of text in a .gz file, and so many times its size
MAX_LINE_BYTES = 1 << 20  # of a sentence on standard input, where a line may have no end

# --- Published tokenizers, each of which runs in a process of its own ---
MAX_TOKENIZER_SECONDS = 3.0  # processor time of the process, and more for
TOKENIZER_SECONDS_PER_REQUEST = 0.05  # each request,
TOKENIZER_BYTES_PER_SECOND = 50_000  # long texts,
TOKENIZER_FILE_BYTES_PER_SECOND = 1_000_000  # and for large vocabularies as they are loaded
MAX_TOKENIZER_BYTES = 128 << 20  # memory, and more for each byte
TOKENIZER_BYTES_PER_BYTE = 2048  # of a text,
TOKENIZER_BYTES_PER_FILE_BYTE = 64  # and of tokenizer.json
MAX_TOKENIZER_PARTS = 1000  # steps, patterns and pieces of a template; published ones have tens
MAX_TOKENS, MAX_TOKENS_PER_BYTE = 4096, 32  # that are made of a text
MAX_DECODED_BYTES, MAX_DECODED_BYTES_PER_TOKEN = 1 << 16, 4096  # that are made of tokens
