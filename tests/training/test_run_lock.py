"""One process owns a run: others are told, the dead let go, and what others put there stays."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from commands import SMALL, fine, refused
from own_process import OWN
from tiny_training import run

from slp_transformer.tasks.text import TextTask
from slp_transformer.training.run_folder import run_lock

HOLD = """
import sys, time
from pathlib import Path
from slp_transformer.training.run_folder import run_lock
with run_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(300)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the folder `run`."""
    words = [sys.executable, "-c", HOLD, str(tmp_path / "run")]
    started = subprocess.Popen(words, stdout=subprocess.PIPE, env={**os.environ, **OWN})
    assert started.stdout.readline().strip() == b"held"
    yield started
    started.kill()
    started.wait()
    started.stdout.close()


def test_a_second_process_is_told_and_touches_nothing(holder, at, capsys):
    assert holder.poll() is None
    said = refused(capsys, "train", "text", "fox.txt", "--out-dir", "run", *SMALL)
    assert "Another process trains in run: wait for it, stop it, or choose" in said
    with pytest.raises(ValueError, match="Another process trains in"):
        run("run")
    assert {path.name for path in Path("run").iterdir()} == {".lock"}


def test_a_dead_owner_lets_go(holder, at):
    holder.send_signal(getattr(signal, "SIGKILL", signal.SIGTERM))
    holder.wait()
    fine("train", "text", "fox.txt", "--out-dir", "run", *SMALL)
    assert not Path("run/.lock").exists()


def test_whoever_holds_it_may_ask_again_and_a_folder_made_in_vain_goes(tmp_path):
    folder = tmp_path / "a" / "b"
    with run_lock(folder):
        with run_lock(folder):
            assert (folder / ".lock").exists()
        assert (folder / ".lock").exists()
    assert list(tmp_path.iterdir()) == []
    with run_lock(folder):
        (folder / "kept").touch()
    assert [path.name for path in folder.iterdir()] == ["kept"]


def test_a_place_that_cannot_be_is_one_sentence(tmp_path):
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        said = rf"Nothing can be kept in {re.escape(str(place))}: .*file is a file\. Choose another"
        with pytest.raises(ValueError, match=said):
            with run_lock(place):
                pass


def test_the_folder_one_works_in_is_left_alone(at, capsys, monkeypatch):
    Path("tokens").mkdir()
    Path("tokens/mine.md").write_text("mine", encoding="utf-8")
    real = TextTask.prepare

    def meanwhile(*arguments):
        Path("draft.md").write_text("draft", encoding="utf-8")
        return real(*arguments)

    monkeypatch.setattr(TextTask, "prepare", meanwhile)
    said = refused(capsys, "train", "text", "fox.txt", "--out-dir", ".", "--context-length", "999")
    assert "too little" in said
    assert Path("draft.md").exists() and Path("tokens/mine.md").exists()
    assert Path("fox.txt").exists() and not Path("config.toml").exists()


def test_a_checkpoint_without_its_manifest_is_refused_and_not_begun_over(text_run, capsys):
    for path in text_run.glob("step-*/checkpoint.json"):
        path.unlink()
    begin = ["train", "text", "fox.txt", "--out-dir", "a", *SMALL]
    assert "holds a run already" in refused(capsys, *begin)
    for words in (["train", "--out-dir", "a", "--resume"], ["generate", "a"]):
        assert "checkpoint.json cannot be read" in refused(capsys, *words)
    assert len(list(text_run.glob("step-*/model.safetensors"))) == 1


def test_only_what_has_a_checkpoint_s_name_is_forgotten(tmp_path):
    for name in ("step-00000002-mine", "step-by-step", "step-7"):
        (tmp_path / name).mkdir()
    run(tmp_path)
    kept = {path.name for path in tmp_path.glob("step-*")}
    assert kept >= {"step-00000002-mine", "step-by-step", "step-7", "step-00000004"}
    assert "step-00000000" not in kept


@pytest.mark.skipif(os.name == "nt", reason="file modes are POSIX's")
def test_every_file_of_a_run_may_be_read_by_whom_the_umask_lets(at):
    before = os.umask(0o027)
    try:
        fine("train", "text", "fox.txt", "--out-dir", "run", *SMALL)
    finally:
        os.umask(before)
    modes = {path: path.stat().st_mode & 0o777 for path in Path("run").rglob("*")}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o640}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o750}


@pytest.mark.parametrize("where", ["mkdir", "acquire"])
def test_a_signal_while_it_is_taken_leaves_nothing(where, tmp_path, monkeypatch):
    filelock = pytest.importorskip("filelock")
    home = Path if where == "mkdir" else filelock.FileLock
    real = getattr(home, where)

    def stopped(*arguments, **options):
        real(*arguments, **options)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(home, where, stopped)
        with run_lock(tmp_path / "a" / "b"):
            pass
    assert list(tmp_path.iterdir()) == []
    with run_lock(tmp_path / "a"):
        pass
