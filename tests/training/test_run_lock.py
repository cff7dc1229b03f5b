"""One process owns a run: others are told, the dead let go, and what others put there stays."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import own_process
import pytest
from commands import SMALL, fine, refused
from own_process import OWN
from tiny_training import run
from whole import whole

from slp_transformer.tasks.text import TextTask
from slp_transformer.training import run_lock as run_lock_module
from slp_transformer.training.run_lock import run_lock

HOLD = """
import sys, time
from pathlib import Path
from slp_transformer.training.run_lock import run_lock
with run_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(300)
"""

NO_FLOCK = """
def flock(*_):
    raise OSError(%d, "no locks")

fcntl.flock = flock
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
    told = "Another process trains in run: wait for it, stop it, or choose another folder."
    assert said == f"slp-transformer: {told}"
    with pytest.raises(ValueError, match=whole(told)):
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
        said = f"{tmp_path / 'file'} is a file. Choose another folder."
        with pytest.raises(ValueError, match=whole(f"Nothing can be kept in {place}: {said}")):
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


@pytest.mark.skipif(os.name == "nt", reason="Windows locks otherwise")
@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EIO])
def test_where_the_file_system_has_no_locks_a_file_stands_for_one(
    tmp_path, monkeypatch, number, recwarn
):
    """Without a warning; and nothing is left of a lock that fails."""
    import fcntl

    def flock(*_):
        raise OSError(number, os.strerror(number))

    folder = tmp_path / "a" / f"run-{number}"
    monkeypatch.setattr(fcntl, "flock", flock)
    if number == errno.EIO:
        with pytest.raises(
            ValueError,
            match=whole(
                "Nothing can be kept in …run-5: Input/output error. Choose another folder."
            ),
        ):
            with run_lock(folder):
                pass
    else:
        with run_lock(folder):
            assert str(os.getpid()) in (folder / ".lock").read_text("utf-8")
            with run_lock(folder):
                pass
            script = HOLD.replace(
                "import sys, time", f"import fcntl, sys, time\n{NO_FLOCK % number}"
            )
            other = own_process.python("-c", script, folder)
            assert "Another process trains in" in other.stderr and "Warning" not in other.stderr
    assert not folder.parent.exists() and not recwarn.list


@pytest.mark.skipif(os.name == "nt", reason="Windows locks otherwise")
def test_a_lock_of_another_machine_is_told_with_its_process_and_the_way_on(tmp_path, monkeypatch):
    """It was killed there, and its file stays where the file system has no locks."""
    import fcntl

    def flock(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)
    (tmp_path / ".lock").write_text("4711\nothernode\n", encoding="utf-8")
    with pytest.raises(
        ValueError,
        match=whole(
            "Another process trains in … (process 4711 on "
            "othernode): wait for it, stop it, or choose another folder. If it has ended,"
            " delete ….lock."
        ),
    ):
        with run_lock(tmp_path):
            pass
    (tmp_path / ".lock").unlink()
    with run_lock(tmp_path):
        pass


def test_the_folder_above_a_new_run_is_flushed_to_the_disk(tmp_path, monkeypatch):
    """Otherwise a power cut may take the run, and each of its checkpoints, with it."""
    flushed = []
    monkeypatch.setattr(run_lock_module, "fsync_path", flushed.append)
    with run_lock(tmp_path / "a" / "b"):
        assert flushed == [tmp_path / "a", tmp_path]
