"""The bounds of untrusted input, all in one place; what is beyond is refused before the work.

Each reader takes its own from here. Together they keep any file under half a gigabyte of memory and
some seconds of time. Those of guitar music are in `slp_guitar.bounds`.
"""

from typing import NamedTuple


class Wait(NamedTuple):
    """A wait for something foreign, which has an end.

    Attributes:
        seconds: by the clock.
        says: what is said then.
    """

    seconds: float
    says: str


WAITS = {
    "strangers' programs": Wait(30, "it takes more than … seconds"),
}

# --- Files of any kind ---
MAX_JSON_BYTES = 1 << 28  # the JSON of the largest vocabulary is far smaller
MAX_SIDE_FILE_BYTES = 1 << 24  # what is handed on beside a published tokenizer
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
