"""A tokenizer.json of a stranger makes neither gigabytes of a word nor minutes."""

import copy
import json
import os
import pickle
import signal
import subprocess
import sys
import time

import pytest
import tokenizers
from own_process import OWN

from slp_transformer.modern import bounded_tokenizer, hf_tokenizer
from slp_transformer.modern.bounded_tokenizer import BoundedTokenizer
from slp_transformer.modern.hf_tokenizer import PretrainedTokenizer
from slp_transformer.tasks.generation_session import TextWatch

posix = pytest.mark.skipif(os.name == "nt", reason="Windows has no limits for a process")
DOUBLE = {"type": "Replace", "pattern": {"String": " "}, "content": "  "}
GROW = {"type": "Replace", "pattern": {"Regex": "."}, "content": "  "}


def content(**parts) -> str:
    """The content of a tokenizer.json with a token for each letter."""
    vocab = {chr(i): i for i in range(32, 127)}
    model = {"type": "BPE", "vocab": vocab, "merges": []}
    return json.dumps({"version": "1.0", "added_tokens": [], "model": model} | parts)


def sequence(kind: str, part: dict, count: int = 40) -> dict:
    return {"type": "Sequence", kind: [part] * count}


@posix
@pytest.mark.parametrize(
    ("parts", "says"),
    [
        pytest.param(
            {"normalizer": sequence("normalizers", DOUBLE)},
            "cannot encode this text: it takes more",
            marks=pytest.mark.slow,
        ),
        (
            {"normalizer": {"type": "Prepend", "prepend": "ab" * 3000}},
            "cannot encode this text: it makes 6,011 tokens of 11 bytes",
        ),
        pytest.param(
            {"decoder": sequence("decoders", {"type": "Fuse"}, 1) | {"decoders": [GROW] * 40}},
            "cannot decode these tokens: it takes more than 1 seconds of a processor, or 128 MiB",
            marks=pytest.mark.slow,
        ),
    ],
    ids=["doubled blanks", "a long beginning", "a decoder that grows"],
)
def test_a_bomb_is_one_sentence_and_the_next_text_has_a_process_again(parts, says, monkeypatch):
    monkeypatch.setattr(bounded_tokenizer, "MAX_TOKENIZER_SECONDS", 1.0)
    tokenizer = PretrainedTokenizer(BoundedTokenizer(content(**parts)))
    for _ in range(2):
        with pytest.raises(ValueError, match=f"The tokenizer {says}") as told:
            tokenizer.decode(tokenizer.encode("hello world"))
        assert "\n" not in str(told.value)
    with pytest.raises(ValueError, match="The tokenizer "):
        tokenizer.stream_decoder().decode_next(tokenizer.encode("hello world")[0])
    assert tokenizer.vocab_size == 95 and tokenizer.kind == "BPE"


@posix
def test_requests_share_what_a_process_may_take(monkeypatch):
    """A text and each of its tokens may not take, one by one, as long as they may together."""
    ours, left = BoundedTokenizer(content()), []
    exchange = BoundedTokenizer.exchange

    def watched(self, what, payload, options):
        answer = exchange(self, what, payload, options)
        left.append(self.seconds_left)
        return answer

    monkeypatch.setattr(BoundedTokenizer, "exchange", watched)
    monkeypatch.setattr(bounded_tokenizer, "TOKENIZER_SECONDS_PER_REQUEST", 0.0)
    monkeypatch.setattr(bounded_tokenizer, "TOKENIZER_BYTES_PER_SECOND", 1e30)
    for _ in range(3):
        ours.encode("a b " * 5000, False)
    assert 3 >= left[0] > left[1] > left[2] > 0
    ours.seconds_left = -7.0
    monkeypatch.setattr(bounded_tokenizer, "TOKENIZER_SECONDS_PER_REQUEST", 0.05)
    assert ours.encode("ab", False) == [97, 98] and 0 < ours.seconds_left <= 0.05


@pytest.mark.slow
def test_what_a_bounded_tokenizer_does_is_what_the_library_does():
    library = tokenizers.Tokenizer.from_str(content(decoder={"type": "Fuse"}))
    ours = PretrainedTokenizer(library)
    text = "The quick brown fox, 13 times. " * 50
    ids = library.encode(text).ids
    assert ours.encode(text) == ids and ours.decode(ids) == library.decode(ids) == text
    stream = ours.stream_decoder()
    assert "".join(map(stream.decode_next, ids)) + stream.flush() == text
    assert json.loads(ours.library.to_str()) == json.loads(library.to_str())
    for other in (copy.deepcopy(ours.library), pickle.loads(pickle.dumps(ours.library))):
        assert other.encode(text, False) == ids and other.kind == "BPE"


def test_the_text_of_a_long_prompt_is_one_request(monkeypatch):
    ours = PretrainedTokenizer(BoundedTokenizer(content(decoder={"type": "Fuse"})))
    ids, asked = ours.encode("a b " * 500), []
    exchange = ours.library.exchange
    monkeypatch.setattr(ours.library, "exchange", lambda *a: asked.append(a[0]) or exchange(*a))
    watch = TextWatch(ours.stream_decoder(), ids, ())
    assert watch.prompt == "a b " * 500 and asked == ["step"]
    assert watch.feed(ids[0]) + watch.finish() == "a"


def test_its_process_ends_with_it_and_starts_again_when_it_was_killed():
    ours = BoundedTokenizer(content())
    first = ours.process.popen
    first.kill()
    first.wait()
    with pytest.raises(ValueError, match="it takes more than"):
        ours.encode("a", False)
    assert ours.encode("a", False) == [97]
    second = ours.process.popen
    del ours
    assert second.wait(timeout=20) != 0


def test_a_token_whose_text_took_too_much_is_not_decoded_once_more():
    ours = PretrainedTokenizer(BoundedTokenizer(content()))
    stream = ours.stream_decoder()
    assert stream.decode_next(97) == "a"
    ours.library.process.popen.kill()
    ours.library.process.popen.wait()
    with pytest.raises(ValueError, match="The tokenizer cannot decode these tokens: it takes more"):
        stream.decode_next(98)
    assert ours.library.process is None


SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
from slp_transformer._internal import bounds
from slp_transformer._internal.signals import SignalHandler
from slp_transformer.modern import bounded_tokenizer
bounded_tokenizer.MAX_TOKENIZER_SECONDS = 60.0
bounded_tokenizer.MAX_TOKENIZER_BYTES = 8 << 30
tokenizer = bounded_tokenizer.BoundedTokenizer({content!r})
print("ready", tokenizer.process.popen.pid, flush=True)
with SignalHandler(defer=False):
    tokenizer.encode("hello world", False)
"""


@posix
def test_a_signal_ends_both_processes_while_the_library_computes():
    """The library holds the lock of Python's interpreter, so that no handler would run."""
    growing = content(normalizer=sequence("normalizers", DOUBLE, 26))
    script = SCRIPT.replace("{content!r}", repr(growing))
    words = [sys.executable, "-c", script, os.path.dirname(__file__)]
    process = subprocess.Popen(
        words, env=os.environ | OWN, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    worker = int(process.stdout.readline().split()[1])
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=30)[1]
    assert "StoppedBySignal" in said
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)


def test_the_settings_of_a_published_tokenizer_reach_the_process():
    special = [{"id": 95, "content": "<|end|>", "special": True, "single_word": False}]
    special[0] |= {"lstrip": False, "rstrip": False, "normalized": False}
    parts = json.loads(content(added_tokens=special))
    for split, found in ((False, [95]), (True, [ord(letter) for letter in "<|end|>"])):
        files = {hf_tokenizer.TOKENIZER_CONFIG_FILE: json.dumps({"split_special_tokens": split})}
        made = hf_tokenizer.make_tokenizer(parts, "here", None, (), files)
        assert made.encode("<|end|>") == found


def test_the_size_of_a_text_is_the_same_in_pieces(monkeypatch):
    """A decoder drops the first space of a text alone, and may not see a character's bytes."""
    from tokenizers import decoders

    library = tokenizers.Tokenizer(
        tokenizers.models.BPE(
            {"<unk>": 0, "▁": 1, "a": 2, "▁a": 3} | {f"<0x{i:02X}>": 4 + i for i in range(256)},
            [("▁", "a")],
            byte_fallback=True,
        )
    )
    library.decoder = decoders.Sequence([
        decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
        decoders.Strip(" ", 1, 0),
    ])  # fmt: skip
    ours = PretrainedTokenizer(library)
    monkeypatch.setattr(hf_tokenizer, "CONTEXT_TOKENS", 17)
    ids = ours.encode("▁a▁aa▁🎸a▁▁aé▁a" * 3)
    said = ours.decode(ids)
    assert said == "a aa 🎸a  aé a a aa 🎸a  aé a a aa 🎸a  aé a"
    for length in (1, 3, 19, 1000):
        pieces = [ids[i : i + length] for i in range(0, len(ids), length)]
        assert ours.measure_text(pieces) == (len(said), len(said.encode()), 0)
