"""A published tokenizer in a process of its own, which is ended when it takes too much."""

import itertools
import threading
from array import array
from collections.abc import Sequence
from typing import Any

from slp_transformer._internal.bounded_process import BoundedProcess, TookTooMuch
from slp_transformer._internal.bounds import (
    MAX_DECODED_BYTES,
    MAX_DECODED_BYTES_PER_TOKEN,
    MAX_TOKENIZER_BYTES,
    MAX_TOKENIZER_SECONDS,
    MAX_TOKENS,
    MAX_TOKENS_PER_BYTE,
    TOKENIZER_BYTES_PER_BYTE,
    TOKENIZER_BYTES_PER_FILE_BYTE,
    TOKENIZER_BYTES_PER_SECOND,
    TOKENIZER_FILE_BYTES_PER_SECOND,
    TOKENIZER_SECONDS_PER_REQUEST,
)


class BoundedTokenizer:
    """The methods of a `tokenizers.Tokenizer` that are used here, each under limits.

    Attributes:
        vocab_size: number of ids.
        largest_id: the largest of them; -1 if there are none.
        kind: the library's name for it: BPE, WordPiece, Unigram or WordLevel.
    """

    def __init__(self, content: str, *, split_special_tokens: bool = False):
        """Load a tokenizer.

        Args:
            content: of tokenizer.json.
            split_special_tokens: whether the name of a special token in a text is text.

        Raises:
            ValueError: if the library cannot read it, or it takes too much.
        """
        self.content: bytes = content.encode("utf-8", "surrogatepass")
        self.options: dict[str, Any] = {"split_special_tokens": split_special_tokens}
        self.process: BoundedProcess | None = None
        self.lock: threading.Lock = threading.Lock()
        self.stream_numbers: itertools.count[int] = itertools.count()
        self.seconds_left: float = 0.0
        self.about: dict[str, Any] = {}
        self.decode([])  # starts the process, and has it load the tokenizer
        self.vocab_size: int = self.about["vocab_size"]
        self.largest_id: int = self.about["largest_id"]
        self.kind: str = self.about["kind"]

    def encode(self, text: str, whole: bool) -> list[int]:
        """Return the ids of a text.

        Raises:
            ValueError: if the library cannot, or it takes too much, or makes too many.
        """
        content = text.encode("utf-8", "replace")
        most = MAX_TOKENS + MAX_TOKENS_PER_BYTE * len(content)
        return array("I", self.ask("encode", content, whole=whole, most=most)[1]).tolist()

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of some ids.

        Raises:
            ValueError: if the library cannot, or it takes too much, or makes too much.
        """
        most = MAX_DECODED_BYTES + MAX_DECODED_BYTES_PER_TOKEN * len(ids)
        return self.ask("decode", array("I", ids).tobytes(), most=most)[1].decode()

    def decode_next(self, stream: int, ids: Sequence[int]) -> tuple[str, int]:
        """Return the text that ids complete in one of the streams, and how many have none yet.

        Args:
            stream: the number of the stream.
            ids: its next tokens, all in one request: a long prompt has many.

        Raises:
            ValueError: as `decode`.
        """
        most = MAX_DECODED_BYTES + MAX_DECODED_BYTES_PER_TOKEN * len(ids)
        answer, text = self.ask("step", array("I", ids).tobytes(), stream=stream, most=most)
        return text.decode(), answer["pending"]

    def to_str(self) -> str:
        """Return the content of tokenizer.json, as the library writes it."""
        return self.ask("to_str")[1].decode()

    def ask(self, what: str, payload: bytes = b"", **options: Any) -> tuple[dict[str, Any], bytes]:
        """Ask the process for something; it is started, or started again, if it does not run.

        Raises:
            ValueError: if the library cannot do it, or the process was ended by its limits.
        """
        with self.lock:
            try:
                if self.process is None:
                    self.process, self.seconds_left = BoundedProcess(), MAX_TOKENIZER_SECONDS
                    self.about = self.exchange("load", self.content, self.options)[0]
                return self.exchange(what, payload, options)
            except BaseException as error:  # a signal, too: an answer may be under way
                ended = self.process is None or self.process.popen.poll() is not None
                if self.process is not None and (ended or not isinstance(error, ValueError)):
                    self.process.end()
                    self.process = None  # the next question starts another
                raise

    def exchange(self, what: str, payload: bytes, options: Any) -> tuple[dict[str, Any], bytes]:
        """Send a request and return the answer.

        What a process may take is for all requests together, and grows by a little with each:
        otherwise a text, its tokens and each word could take as long as they may, one by one.
        """
        assert self.process is not None
        more = len(payload) / TOKENIZER_BYTES_PER_SECOND
        memory = MAX_TOKENIZER_BYTES + TOKENIZER_BYTES_PER_BYTE * len(payload)
        if what == "load":
            more = len(payload) / TOKENIZER_FILE_BYTES_PER_SECOND
            memory = MAX_TOKENIZER_BYTES + TOKENIZER_BYTES_PER_FILE_BYTE * len(payload)
        self.seconds_left = max(self.seconds_left, 0) + more + TOKENIZER_SECONDS_PER_REQUEST
        try:
            answer, content = self.process.exchange(
                what, payload, options, self.seconds_left, memory
            )
        except TookTooMuch:
            seconds = MAX_TOKENIZER_SECONDS + more
            raise ValueError(
                f"it takes more than {seconds:.0f} seconds of a processor, or {memory >> 20:,} MiB"
            ) from None
        left = self.seconds_left - answer.pop("seconds")
        self.seconds_left = min(left, MAX_TOKENIZER_SECONDS)
        return answer, content

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy needs to start a process of its own."""
        hidden = ("process", "lock", "stream_numbers")
        return {name: value for name, value in vars(self).items() if name not in hidden}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore what `__getstate__` returned."""
        vars(self).update(state)
        self.process, self.lock = None, threading.Lock()
        self.stream_numbers = itertools.count()
