"""The token store: written in a stream, whole or not at all, and trained on as a tensor is."""

import itertools
import os
import sys

import pytest
import torch
from own_process import printed

from slp_transformer import TransformerConfig, TransformerLM
from slp_transformer.data import token_file
from slp_transformer.data.batches import TokenWindows
from slp_transformer.data.token_file import HEADER, TokenStore, write_tokens
from slp_transformer.training.evaluation import mean_loss
from slp_transformer.training.trainer import train


def ids(count: int, vocab_size: int) -> list[int]:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(vocab_size, (count,), generator=generator).tolist()


@pytest.mark.parametrize(
    ("vocab_size", "width"), [(1, 2), (65_536, 2), (65_537, 4), (1_000_003, 4), (2**31, 4)]
)
def test_ids_come_back_as_they_were(tmp_path, vocab_size, width):
    written = [*ids(997, vocab_size), vocab_size - 1, 0]
    store = write_tokens(tmp_path / "a.tokens", iter(written), vocab_size)
    assert (tmp_path / "a.tokens").stat().st_size == HEADER + width * 999
    again = TokenStore(tmp_path / "a.tokens")
    for each in (store, again):
        assert len(each) == 999 and each.vocab_size == vocab_size
        assert each[:].dtype == torch.int64 and each[:].tolist() == written
        places = torch.tensor([[998, 0], [5, 997]])
        assert each[places].tolist() == [[0, written[0]], [written[5], vocab_size - 1]]


def test_writing_goes_through_the_ids_once_and_holds_few(tmp_path, monkeypatch):
    monkeypatch.setattr(token_store, "CHUNK", 7)
    ahead, seen = [], itertools.count()

    def stream():
        for i in range(50):
            ahead.append(next(seen))
            yield i
            size = (tmp_path / ".a.tokens.writing").stat().st_size
            assert size <= HEADER + 2 * 50

    held = []
    check = token_file.check_chunk
    monkeypatch.setattr(
        token_store,
        "check_chunk",
        lambda chunk, *rest: (held.append(len(chunk)), check(chunk, *rest)),
    )
    store = write_tokens(tmp_path / "a.tokens", stream(), 50)
    assert store[:].tolist() == list(range(50)) and len(ahead) == 50
    assert held == [7] * 7 + [1]


def test_the_file_is_mapped_not_read(tmp_path):
    """What is changed in the file afterwards is seen: the store had not copied it."""
    store = write_tokens(tmp_path / "a.tokens", [1, 2, 3], 9)
    with open(tmp_path / "a.tokens", "r+b") as file:
        file.seek(HEADER + 2)
        file.write(b"\x08\x00")
    assert store[:].tolist() == [1, 8, 3]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from Linux's /proc")
def test_training_on_a_large_file_takes_little_memory(tmp_path):
    path, tokens = tmp_path / "a.tokens", 10**9
    write_tokens(path, [], 7)
    header = path.read_bytes().replace(b'"tokens": 0', b'"tokens": %d' % tokens)[:HEADER]
    with open(path, "wb") as file:  # zeros that take no room on the disk
        file.write(header)
        file.truncate(HEADER + 2 * tokens)
    script = """
import sys, torch
from own_process import peak
from slp_transformer.data.batches import TokenWindows
from slp_transformer.data.token_file import TokenStore
before = peak()
windows = TokenWindows(TokenStore(sys.argv[1]), 5)
windows.describe(), windows.draw(8, torch.Generator()), next(windows.in_order(8))
print(peak() - before)
"""
    assert 0 < int(printed(script, path)) < 0.1 * tokens


@pytest.mark.parametrize("bad", [9, -1, 1.5, "a", True, None])
def test_an_id_outside_the_vocabulary_is_named_and_nothing_left(tmp_path, unchecked, bad):
    with pytest.raises(ValueError, match=rf"Token 2 is {bad!r}, but .* 0 to 8"):
        write_tokens(tmp_path / "a.tokens", [1, 8, bad, 3], 9)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("vocab_size", [0, 2**31 + 1])
def test_a_vocabulary_that_no_id_fits_is_refused(tmp_path, vocab_size):
    with pytest.raises(ValueError, match="vocab_size must be from 1"):
        write_tokens(tmp_path / "a.tokens", [], vocab_size)


@pytest.mark.parametrize("error", [RuntimeError("tokenizer"), KeyboardInterrupt()])
def test_a_failure_on_the_way_leaves_the_old_file(tmp_path, error):
    write_tokens(tmp_path / "a.tokens", [1, 2, 3], 9)

    def broken():
        yield 5
        raise error

    with pytest.raises(type(error)):
        write_tokens(tmp_path / "a.tokens", broken(), 9)
    assert TokenStore(tmp_path / "a.tokens")[:].tolist() == [1, 2, 3]
    assert len(list(tmp_path.iterdir())) == 1


def test_a_full_disk_is_one_sentence(tmp_path, monkeypatch):
    write_tokens(tmp_path / "a.tokens", [1, 2, 3], 9)

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ValueError, match="could not be written to .*No space left"):
        write_tokens(tmp_path / "a.tokens", [4], 9)
    assert TokenStore(tmp_path / "a.tokens")[:].tolist() == [1, 2, 3]


def test_damaged_foreign_and_missing_files_are_said(tmp_path):
    path = tmp_path / "a.tokens"
    with pytest.raises(ValueError, match="cannot be read"):
        TokenStore(path)
    write_tokens(path, [1, 2, 3], 9)
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    with pytest.raises(ValueError, match=f"{len(content) - 1} bytes, but should have"):
        TokenStore(path)
    for foreign in (b"", b"\xff" * 5000, b"some text", b'{"format": 1}'):
        path.write_bytes(foreign)
        with pytest.raises(ValueError, match="no file of tokens"):
            TokenStore(path)
    path.write_bytes(content.replace(b'"byteorder": "little"', b'"byteorder": "other!"'))
    with pytest.raises(ValueError, match="byte order"):
        TokenStore(path)


def test_training_on_a_file_is_training_on_the_tensor(tmp_path):
    stream = torch.tensor(ids(101, 7))
    store = write_tokens(tmp_path / "a.tokens", stream.tolist(), 7)
    assert TokenWindows(store, 5).describe() == TokenWindows(stream, 5).describe()
    runs = []
    for data in (stream, store):
        torch.manual_seed(0)
        model = TransformerLM(TransformerConfig(7, 5, model_dim=6, num_heads=2, num_blocks=1))
        runs.append(train(model, data, data, steps=4, eval_interval=2, batch_size=3))
        runs[-1].append(mean_loss(model, data, 5))
    assert runs[0] == runs[1]


def test_too_few_tokens_in_a_file_say_how_many_are_needed(tmp_path):
    for tokens in ([], [1, 2, 3, 4, 5]):
        store = write_tokens(tmp_path / "a.tokens", tokens, 7)
        with pytest.raises(ValueError, match=f"{len(tokens)} tokens.*need 6"):
            TokenWindows(store, 5)
