"""Streams that are closed or full, and names that would give the terminal commands."""

import errno
import mmap
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from commands import SENTENCE, SMALL, fine, refused
from own_process import OWN
from sampled import mostly_slow

from slp_guitar.commands.song_options import TabOptions
from slp_transformer import cli
from slp_transformer._internal.extras import import_extra
from slp_transformer._internal.terminal import escape_controls
from slp_transformer.cli import main
from slp_transformer.cli.parsing import parse_flags

POSIX = pytest.mark.skipif(os.name == "nt", reason="a shell of POSIX closes streams")
TAB = "e|-1-2-|\nB|-----|\nG|-----|\nD|-----|\nA|-----|\nE|-----|\n"
TRAIN = ["train", "text", "own.txt", "--out-dir", "run", *SMALL]


@pytest.fixture
def at(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("own.txt").write_text(SENTENCE * 40, encoding="utf-8")
    Path("a.tab").write_text(TAB, encoding="utf-8")
    return tmp_path


def shell(line: str) -> subprocess.CompletedProcess:
    """Run a line of the shell, in which "slp" is the command."""
    program = f'slp() {{ "{sys.executable}" -m slp_transformer "$@"; }}\n'
    return subprocess.run(
        ["sh", "-c", program + line], env=os.environ | OWN, capture_output=True, text=True
    )


@POSIX
@pytest.mark.usefixtures("at")
@pytest.mark.parametrize(
    ("words", "code", "says"),
    mostly_slow(
        [
            ("tab a.tab >&-", 0, ""),
            ("tab a.tab 2>&-", 0, ""),
            ("tab a.tab <&- >&- 2>&-", 0, ""),
            ("tab none.tab 2>&-", 2, ""),
            ("tab none.tab 2>/dev/full", 2, ""),
            ("tab a.tab >/dev/full", 2, "Standard output could not be .*written: No space left"),
            ("--version >/dev/full 2>/dev/full", 2, ""),
        ],
        ("tab a.tab <&- >&- 2>&-", 0, ""),
        unpack=True,
    ),
)
def test_a_closed_or_full_stream_is_no_traceback(words, code, says):
    if "/dev/full" in words and not Path("/dev/full").exists():
        pytest.skip("only Linux has a device that is always full")
    ended = shell(f"slp {words}")
    assert ended.returncode == code, ended.stderr
    assert "Traceback" not in ended.stderr and "Exception ignored" not in ended.stderr
    assert re.search(says, ended.stderr)


@POSIX
@pytest.mark.usefixtures("at")
@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("causal_mask >/dev/full", 2, "check: standard output: No space left on device.\n"),
        pytest.param("nothing >&- 2>/dev/full", 2, "", marks=pytest.mark.slow),
    ],
)
def test_checks_end_in_a_sentence_if_nothing_can_be_printed(words, code, says):
    if not Path("/dev/full").exists():
        pytest.skip("only Linux has a device that is always full")
    ended = shell(f'"{sys.executable}" -m slp_transformer.check {words}')
    assert (ended.returncode, ended.stderr) == (code, says)


@pytest.mark.slow
@POSIX
@pytest.mark.usefixtures("at")
def test_with_standard_input_closed_nothing_is_read_from_another_file():
    ended = shell(f"slp train text - --out-dir run {' '.join(SMALL)} <&-")
    assert ended.returncode == 2 and "Standard input is empty" in ended.stderr
    assert not Path("run").exists()


@pytest.mark.usefixtures("at")
def test_training_goes_on_when_nothing_can_be_printed_to_stderr(monkeypatch):
    class Full:
        """A stream on a full disk."""

        encoding = "utf-8"

        def write(self, text):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        def flush(self):
            pass

        def isatty(self):
            return False

    monkeypatch.setattr(sys, "stderr", Full())
    assert main([word for word in TRAIN if word != "--quiet"]) == 0
    assert Path("run/step-00000004").is_dir()


@POSIX
def test_a_current_folder_that_was_deleted_is_told_before_pytorch_is_loaded(
    tmp_path, monkeypatch, capsys
):
    """Where Intel's library is part of PyTorch, that would end the process."""
    (tmp_path / "own.txt").write_text(SENTENCE * 40, encoding="utf-8")
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    words = ["train", "text", str(tmp_path / "own.txt"), "--out-dir", str(tmp_path / "run")]
    assert "The current folder was deleted" in refused(capsys, *words)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("stated", "used"), [("1", 20), ("19", 20), ("20", 20), ("90", 90)])
def test_help_is_laid_out_for_twenty_columns_at_least(stated, used, monkeypatch):
    """Tyro tries for ever to lay it out for a few."""
    seen = []
    monkeypatch.setenv("COLUMNS", stated)
    monkeypatch.setattr("tyro.cli", lambda *_, **__: seen.append(shutil.get_terminal_size()[0]))
    parse_flags(TabOptions, "tab", ["a.tab"])
    assert seen == [used] and os.environ["COLUMNS"] == stated


@pytest.mark.usefixtures("at")
def test_too_little_memory_to_load_pytorch_is_told(monkeypatch, capsys):
    def load(name):
        raise ImportError("libtorch_cpu.so: failed to map segment", name="torch._C")

    monkeypatch.setattr("slp_transformer.cli.import_object", lambda *_: load)
    assert "not enough memory to load PyTorch" in refused(capsys, "tab", "a.tab")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_a_limit_under_which_pytorch_would_end_the_process_is_told(at, monkeypatch, capsys):
    """Where a limit falls into its libraries' own start, they abort."""
    asked = []

    def refuse(descriptor, size, **options):
        asked.append((size >= 500 << 20, options["prot"] == mmap.PROT_READ))  # which takes none
        raise OSError(errno.ENOMEM, "no")

    little = SimpleNamespace(mmap=refuse, PROT_READ=mmap.PROT_READ, MAP_PRIVATE=mmap.MAP_PRIVATE)
    monkeypatch.setattr(cli, "mmap", little)
    assert "not enough memory to load PyTorch" in refused(capsys, *TRAIN)
    assert asked == [(True, True)] and not Path("run").exists()
    monkeypatch.setattr(cli, "mmap", mmap)
    cli._check_before_torch()


@pytest.mark.usefixtures("at")
def test_a_tab_that_needs_more_memory_is_not_told_of_models(monkeypatch, capsys):
    def fill(options):
        raise MemoryError

    monkeypatch.setattr("slp_transformer.cli.import_object", lambda *_: fill)
    said = refused(capsys, "tab", "a.tab")
    assert "not enough memory" in said and "--batch-size" not in said


def test_a_library_that_is_there_and_cannot_be_loaded_is_not_to_be_installed(monkeypatch):
    def load(module):
        raise ImportError("libx.so: failed to map segment", name=module)

    monkeypatch.setattr("importlib.import_module", load)
    with pytest.raises(ImportError, match="need safetensors, which cannot be loaded: libx.so"):
        import_extra("safetensors.torch", "Checkpoints")


@pytest.mark.usefixtures("at")
def test_a_limit_of_processes_is_named(monkeypatch, capsys):
    def start(options):
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr("slp_transformer.cli.import_object", lambda *_: start)
    assert "No further process or thread could be started: " in refused(capsys, "tab", "a.tab")


def test_control_characters_are_shown_as_json_writes_them():
    assert escape_controls("a\x1b]0;owned\x07\tb\n") == "a\\u001b]0;owned\\u0007\tb\n"
    assert escape_controls("\x9b31m\x7f\r\u202e") == "\\u009b31m\\u007f\\u000d\\u202e"
    assert escape_controls("Dvořák, 中文 🎸") == "Dvořák, 中文 🎸"


@pytest.mark.usefixtures("at")
@pytest.mark.parametrize("command", ["tab", "convert", "info", "generate", "evaluate"])
def test_a_name_of_a_stranger_gives_the_terminal_no_command(command, capsys):
    name = "\x1b]0;owned\x07.tab"
    words = [command, name, *(["-o", "b.mid"] if command == "convert" else [])]
    assert "\\u001b]0;owned\\u0007" in refused(capsys, *words)


def test_a_name_too_many_gives_the_terminal_no_command(capsys):
    """As where a shell's * stands for the names of all files in a folder."""
    assert main(["tab", "a.mid", "\x1b]0;owned\x07.mid"]) == 2
    said = capsys.readouterr().err
    assert "Unrecognized options: \\u001b]0;owned\\u0007.mid" in said and "\x1b" not in said


@pytest.mark.usefixtures("at")
def test_titles_and_names_of_tracks_are_escaped(capsys):
    mido = pytest.importorskip("mido")
    song = mido.MidiFile()
    song.tracks.append(mido.MidiTrack())
    song.tracks[0].append(mido.MetaMessage("track_name", name="\x1b]0;owned\x07x"))
    song.tracks[0].append(mido.Message("note_on", note=52, velocity=64))
    song.tracks[0].append(mido.Message("note_off", note=52, time=480))
    song.save("e.mid")
    fine("tab", "e.mid")
    shown = capsys.readouterr().out
    assert shown.startswith("\\u001b]0;owned\\u0007x") and "\x1b" not in shown
    fine("convert", "e.mid", "-o", "e.musicxml")
    printed = capsys.readouterr()
    assert "\x1b" not in printed.out + printed.err


@POSIX
@pytest.mark.usefixtures("at")
def test_links_in_a_circle_are_one_sentence(capsys):
    Path("loop").symlink_to("loop")
    assert "no file or folder" in refused(capsys, "train", "text", "loop", "--out-dir", "r")
    assert "Nothing can be kept in loop" in refused(
        capsys, "train", "text", "own.txt", "--out-dir", "loop"
    )
    for words in (["generate", "loop"], ["info", "loop"], ["tab", "loop"], ["evaluate", "loop"]):
        assert "loop" in refused(capsys, *words)


@pytest.mark.usefixtures("at")
@pytest.mark.parametrize("eps", ["inf", "nan", "-1", "1e30"])
def test_an_epsilon_that_no_norm_can_have_is_refused(eps, capsys):
    said = refused(capsys, *TRAIN, "--eps", eps)
    assert (
        "eps must be 0 or more, and at most 1, as it is added" in said and not Path("run").exists()
    )
