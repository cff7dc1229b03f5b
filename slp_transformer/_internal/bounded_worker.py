"""The program that runs a published tokenizer or chat template, under limits of time and memory.

`slp_transformer._internal.bounded_process` starts it and talks to it through pipes. It imports
nothing of this package for a tokenizer, so that it starts at once. Each message is a line of JSON,
which says how many bytes follow.
"""

import json
import math
import signal
import sys
import time
from array import array
from collections.abc import Callable
from typing import Any, BinaryIO


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until there are no more."""
    worker = Worker()
    while line := requests.readline():
        request = json.loads(line)
        payload = requests.read(request["bytes"])
        begun = time.process_time()
        limit_resources(request["seconds"], request["memory"])
        try:
            answer, content = getattr(worker, request["do"])(payload, **request["options"])
        except (KeyboardInterrupt, SystemExit):
            raise
        except Exception as error:
            answer, content = {"error": str(error)}, b""
        except BaseException as error:  # a panic of Rust's: parts of the file do not fit each other
            answer, content = {"error": f"its tokenizer.json is damaged ({error})"}, b""
        head = {"bytes": len(content), "seconds": time.process_time() - begun}
        answers.write(json.dumps(head | answer).encode() + b"\n" + content)
        answers.flush()


def limit_resources(seconds: float, memory: int) -> None:
    """End this process when it uses more from here on; Windows has no such limits.

    Args:
        seconds: of processor time.
        memory: bytes of memory.
    """
    try:
        import resource
    except ImportError:
        return
    usage = resource.getrusage(resource.RUSAGE_SELF)
    until = math.ceil(usage.ru_utime + usage.ru_stime + seconds)
    set_soft_limit(resource, resource.RLIMIT_CPU, until)
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
    except OSError:  # no Linux
        return
    set_soft_limit(resource, resource.RLIMIT_AS, used + memory)


def set_soft_limit(resource: Any, kind: int, value: int) -> None:
    """Set a limit, no higher than the one that was set for this process."""
    hard = resource.getrlimit(kind)[1]
    soft = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (soft, hard))


class Worker:
    """What others wrote, and what is asked of it; each method returns an answer and its bytes."""

    def render(self, content: bytes) -> tuple[dict[str, Any], bytes]:
        """Render a chat template; Python with its sandbox takes memory of its own."""
        from slp_transformer._internal.template_sandbox import render

        try:
            return {}, json.dumps(render(**json.loads(content))).encode()
        except MemoryError:
            raise ValueError("it needs more memory than a template may take") from None

    def load(self, content: bytes, split_special_tokens: bool) -> tuple[dict[str, Any], bytes]:
        """Make the tokenizer of the content of tokenizer.json, and describe it."""
        import tokenizers

        self.tokenizer = tokenizers.Tokenizer.from_str(content.decode())
        if split_special_tokens:  # "<|end|>" in a text is text
            self.tokenizer.encode_special_tokens = True
        self.new_stream: Callable[[], Any] = lambda: tokenizers.decoders.DecodeStream(
            skip_special_tokens=True
        )
        self.streams: dict[int, tuple[Any, list[int]]] = {}  # and the ids without text so far
        return {
            "vocab_size": self.tokenizer.get_vocab_size(),
            "largest_id": max(self.tokenizer.get_vocab().values(), default=-1),
            "kind": type(self.tokenizer.model).__name__,
        }, b""

    def encode(self, text: bytes, whole: bool, most: int) -> tuple[dict[str, Any], bytes]:
        """Return the ids of a text."""
        ids = self.tokenizer.encode(text.decode(), add_special_tokens=whole).ids
        if len(ids) > most:
            raise ValueError(f"it makes {len(ids):,} tokens of {len(text):,} bytes")
        return {}, array("I", ids).tobytes()

    def decode(self, content: bytes, most: int) -> tuple[dict[str, Any], bytes]:
        """Return the text of some ids."""
        ids = array("I", content)
        text = self.tokenizer.decode(ids.tolist()).encode()
        if len(text) > most:
            raise ValueError(f"it makes {len(text):,} bytes of {len(ids):,} tokens")
        return {}, text

    def step(self, content: bytes, stream: int, most: int) -> tuple[dict[str, Any], bytes]:
        """Return the text that ids complete in one of the streams that are being decoded.

        The answer says how many of the last ids have no text so far.
        """
        decoder, pending = self.streams.get(stream) or (self.new_stream(), [])
        texts, size = [], 0
        for token in array("I", content):
            pending.append(token)
            try:
                text = decoder.step(self.tokenizer, token)
            except BaseException:  # bytes that are no character: the stream begins anew
                decoder, text = self.new_stream(), self.tokenizer.decode(pending)
            if text:
                pending = []
                texts.append(text.encode())
                size += len(texts[-1])
            if size > most:
                raise ValueError(f"it makes {size:,} bytes of {len(content) // 4:,} tokens")
        self.streams[stream] = decoder, pending
        return {"pending": len(pending)}, b"".join(texts)

    def to_str(self, _: bytes) -> tuple[dict[str, Any], bytes]:
        """Return the content of tokenizer.json, as the library writes it."""
        return {}, self.tokenizer.to_str().encode()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the other process's to handle
    serve(sys.stdin.buffer, sys.stdout.buffer)
