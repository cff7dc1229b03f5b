"""The token store: written in a stream, whole or not at all, and trained on as a tensor is."""

import os

import numpy
import pytest
import torch
from whole import whole

from slp_transformer.data.token_file import HEADER_BYTES, TokenStore, write_tokens


def ids(count: int, vocab_size: int) -> list[int]:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(vocab_size, (count,), generator=generator).tolist()


@pytest.mark.parametrize(
    ("vocab_size", "width"), [(1, 2), (65_536, 2), (65_537, 4), (1_000_003, 4), (2**31, 4)]
)
def test_ids_come_back_as_they_were(tmp_path, vocab_size, width):
    written = [*ids(997, vocab_size), vocab_size - 1, 0]
    store = write_tokens(tmp_path / "a.npy", iter(written), vocab_size)
    assert (tmp_path / "a.npy").stat().st_size == HEADER_BYTES + width * 999
    again = TokenStore(tmp_path / "a.npy", vocab_size)
    for each in (store, again):
        assert len(each) == 999 and each.vocab_size == vocab_size
        assert each[:].dtype == torch.int64 and each[:].tolist() == written
        assert numpy.load(each.path, allow_pickle=False).tolist() == written
        places = torch.tensor([[998, 0], [5, 997]])
        assert each[places].tolist() == [[0, written[0]], [written[5], vocab_size - 1]]


@pytest.mark.parametrize("bad", [9, -1])
def test_an_id_outside_the_vocabulary_is_named_and_nothing_left(tmp_path, bad):
    with pytest.raises(ValueError, match=f"from 0 to 8, not {bad}"):
        write_tokens(tmp_path / "a.npy", [1, 8, bad, 3], 9)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [RuntimeError("tokenizer"), KeyboardInterrupt()])
def test_a_failure_on_the_way_leaves_the_old_file(tmp_path, error, monkeypatch):
    write_tokens(tmp_path / "a.npy", [1, 2, 3], 9)

    def broken():
        yield 5
        raise error

    with pytest.raises(type(error)):
        write_tokens(tmp_path / "a.npy", broken(), 9)

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=whole("[Errno 28] No space left on device: '…a.npy'")):
        write_tokens(tmp_path / "a.npy", [4], 9)
    assert TokenStore(tmp_path / "a.npy", 9)[:].tolist() == [1, 2, 3]
    assert len(list(tmp_path.iterdir())) == 1


def test_damaged_foreign_and_missing_files_are_said(tmp_path):
    path = tmp_path / "a.npy"
    with pytest.raises(
        ValueError, match=whole("The tokens in …a.npy cannot be read: No such file or directory.")
    ):
        TokenStore(path, 9)
    write_tokens(path, [1, 2, 3], 9)
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    with pytest.raises(ValueError, match="a.npy is damaged"):
        TokenStore(path, 9)
    broken = [content[:place] + b"(" + content[place + 1 :] for place in (20, 30, 114)]
    for foreign in (b"", b"\xff" * 5000, b"some text", content.replace(b"<u2", b"|O8"), *broken):
        path.write_bytes(foreign)
        with pytest.raises(ValueError, match="a.npy is damaged, or no file of tokens"):
            TokenStore(path, 9)
    path.write_bytes(content[:-1] + b"\x80")
    assert TokenStore(path, 9)[:2].tolist() == [1, 2]
    with pytest.raises(
        ValueError, match=whole("…a.npy is damaged: it has an id that is not from 0 to 8.")
    ):
        TokenStore(path, 9)[:]
    numpy.save(path, numpy.zeros((3, 2), "float32"))
    with pytest.raises(
        ValueError, match=whole("…a.npy is no file of tokens that write_tokens wrote.")
    ):
        TokenStore(path, 9)


@pytest.mark.skipif(os.name == "nt", reason="Windows cuts no file that is mapped")
def test_a_file_that_is_cut_while_it_is_used_is_a_sentence_and_no_signal(tmp_path):
    """Reading what is mapped beyond its end would kill the process."""
    store = write_tokens(tmp_path / "a.npy", [1, 2, 3] * 50_000, 7)
    assert store[:3].tolist() == [1, 2, 3]
    os.truncate(store.path, 5000)
    with pytest.raises(
        ValueError,
        match=whole(
            "…a.npy was cut short while it was in use: it has 5,000 bytes, not 300,128. "
            "Restore it, then resume."
        ),
    ):
        store[torch.tensor([140_000])]
