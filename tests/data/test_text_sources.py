"""Sources as people have them: pipes, other encodings, hidden files, folders that are closed."""

import io
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest
from commands import SMALL, fine, weights

from slp_transformer.data import find_text_files, prepare_corpus
from slp_transformer.guitar import make_practice_corpus, read_tab_folder, write_tab

POSIX = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are POSIX's")


@POSIX
def test_a_pipe_is_read_as_standard_input_is(at):
    os.mkfifo("pipe")
    writing = "open('pipe', 'w').write(open('fox.txt').read())"
    with subprocess.Popen([sys.executable, "-c", writing]):
        fine("train", "text", "pipe", "--out-dir", "piped", *SMALL)
    Path("pipe").unlink()
    fine("train", "text", "fox.txt", "--out-dir", "file", *SMALL)
    assert weights("piped") == weights("file")
    fine("train", "--out-dir", "piped", "--resume", "--quiet")  # nothing is read again


def test_standard_input_from_a_terminal_says_that_it_waits(monkeypatch, caplog):
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=Keyboard(b"some text\n")))
    assert len(prepare_corpus("-", val_split=0.0).train) == 10
    assert "Waiting for text on standard input" in caplog.text


class Keyboard(io.BytesIO):
    """Bytes that come from a terminal."""

    def isatty(self) -> bool:
        return True


def test_hidden_files_and_folders_are_left_out_by_both_readers(tmp_path):
    (tab,) = make_practice_corpus(seed=0, num_pieces=1)
    for place in (".hidden", "open/.hidden", "open"):
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
        for name in (".secret.txt", "seen.txt"):
            write_tab(tab, tmp_path / place / name)
    assert find_text_files(tmp_path) == [tmp_path / "open/seen.txt"]
    tabs, problems = read_tab_folder(tmp_path)
    assert [each.source for each in tabs] == ["open/seen.txt"] and not problems


def test_a_folder_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    """As the test above, for the administrator too."""
    (tmp_path / "closed").mkdir()
    real = os.scandir

    def closed(path):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", closed)
    for read in (find_text_files, read_tab_folder):
        with pytest.raises(ValueError, match="closed cannot be read: Permission denied"):
            read(tmp_path)
