"""A forked kernel is like one that was started alone, and its end is noticed."""

import socket
import subprocess
import sys
import time

import chapter_source
import execution
import fork_server
import forked_kernels
import pytest

pytestmark = pytest.mark.skipif(not forked_kernels.CAN_FORK, reason="forks on Linux only")
SURROUNDINGS = """\
# %%
import os
import signal
import sys

from slp_transformer import low

hidden = {"JPY_PARENT_PID", "MPLBACKEND"}
{name: os.environ[name] for name in sorted(os.environ) if name not in hidden}

# %%
[hash("capo"), os.listdir(), sys.path, sys.argv[1:1], low.__name__, os.environ["MPLBACKEND"]]

# %%
[signal.getsignal(signal.SIGCHLD), __name__, len(os.listdir("/proc/self/task")) > 1]
"""


@pytest.fixture
def chapter(tmp_path):
    def read(text):
        (tmp_path / "slp_transformer").mkdir(exist_ok=True)
        for name in ("__init__", "low"):
            (tmp_path / "slp_transformer" / f"{name}.py").write_text("", encoding="utf-8")
        path = tmp_path / "07_small.py"
        path.write_text(text, encoding="utf-8")
        return chapter_source.read_chapter(path, tmp_path)

    return read


@pytest.mark.slow
def test_a_forked_kernel_has_the_surroundings_of_one_that_was_started(chapter, monkeypatch):
    surroundings = chapter(SURROUNDINGS)
    forked = execution.run_chapter(surroundings)
    monkeypatch.setattr(forked_kernels, "CAN_FORK", False)
    assert execution.run_chapter(surroundings) == forked


@pytest.mark.slow
def test_a_forked_kernel_that_dies_says_why(chapter):
    dies = "# %%\nimport os\n\nos.write(2, b'out of strings')\nos._exit(3)\n"
    with pytest.raises(execution.ChapterError, match=r"the kernel died \(out of strings\)"):
        execution.run_chapter(chapter(dies))


@pytest.mark.slow
def test_where_nothing_can_be_forked_a_kernel_is_started(chapter, monkeypatch):
    def refuse(*_):
        raise ConnectionResetError

    monkeypatch.setattr(forked_kernels.SERVER, "fork", refuse)
    outputs, _ = execution.run_chapter(chapter("# %%\n2 + 3\n"))
    assert outputs[0][0]["data"]["text/plain"] == "5"


@pytest.mark.slow
def test_a_server_that_ends_ends_the_chapters_that_it_runs(chapter, tmp_path):
    begun = tmp_path / "begun"
    waits = f"# %%\nimport time\nopen({str(begun)!r}, 'w').close()\ntime.sleep(600)\n"
    cache, told = execution.Cache(tmp_path / ".cache"), []
    background = execution.Background(cache, lambda _: None, lambda *done: told.append(done))
    background.want(chapter(waits), "key")
    end = time.monotonic() + 60
    while not begun.exists() and time.monotonic() < end:
        time.sleep(0.05)
    (client,) = execution.RUNNING
    process = client.km.provisioner.process
    background.close()
    assert process.poll() == 1
    assert not background._running
    assert not execution.RUNNING
    background.want(chapter("# %%\n2 + 3\n"), "other")
    assert not background._running
    assert not told  # that its kernel died


def test_the_end_of_a_process_is_seen_and_no_signal_is_sent_after_it():
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as child:
        process = forked_kernels.ForkedProcess(child.pid)
        assert process.poll() is None
        process.terminate()
        assert process.wait() == 1 == process.poll()
    process.kill()
    assert forked_kernels.ForkedProcess(child.pid).poll() == 1


def test_the_server_ends_when_nobody_asks():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        command = [sys.executable, "-S", fork_server.__file__, str(theirs.fileno()), "0.01"]
        subprocess.run(command, pass_fds=[theirs.fileno()], check=True, timeout=60)


def test_a_server_that_has_ended_is_started_again(monkeypatch):
    server, fresh = forked_kernels.ForkServer(), []
    ended, other = socket.socketpair()
    other.close()
    monkeypatch.setattr(server, "_connection", ended)
    monkeypatch.setattr(server, "_start", lambda _: fresh.append(ended) or ended)
    with pytest.raises(OSError, match="closed|descriptor"):
        server.fork({"environment": {}}, 2)
    assert fresh == [ended]


def test_a_fork_server_ends_in_silence_when_nobody_waits_for_its_answer(monkeypatch):
    monkeypatch.setattr(fork_server.signal, "signal", lambda *_: None)  # of this process
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        ours.send(b"an answer")
        theirs.close()
        assert fork_server.serve(ours) is None
