"""Signals that ask a run to stop: what is saved, when it is heeded, and how the command ends."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import own_process
import pytest
from checkpoint_folders import checkpoint_folder
from commands import SIZES
from tiny_training import STREAM, run, same, with_dropout
from unheard_signal import pipe_with_unheard_signal

from slp_transformer._internal import signals
from slp_transformer._internal.json_files import read_json
from slp_transformer._internal.signals import SignalHandler, StoppedBySignal
from slp_transformer.data.batches import TokenWindowSource
from slp_transformer.training import train

POSIX = pytest.mark.skipif(os.name == "nt", reason="signals are sent as POSIX has them")
ENVIRONMENT = {**os.environ, **own_process.OWN}
COMMAND = [sys.executable, "-m", "slp_transformer"]
LONG = [*SIZES, "--batch-size", "2", "--dropout", "0.1", "--eval-interval", "50", "--device", "cpu"]


@pytest.fixture(autouse=True)
def heeded():
    """Where a signal is ignored, as in a shell's background jobs, so it is by what is started."""
    numbers = [getattr(signal, n) for n in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, n)]
    plain = [signal.default_int_handler, signal.SIG_DFL, signal.SIG_DFL]
    before = [signal.signal(number, how) for number, how in zip(numbers, plain, strict=False)]
    yield
    for number, how in zip(numbers, before, strict=True):
        signal.signal(number, how)


@POSIX
def test_a_signal_that_interrupts_no_read_is_heeded(monkeypatch):
    """As one that comes right before the system's `read`: here another thread is interrupted."""
    monkeypatch.setattr(signals, "LOOK_S", 0.02)
    in_time = []
    with pytest.raises(StoppedBySignal):  # noqa: SIM117
        with SignalHandler(defer=False), pipe_with_unheard_signal(b"", in_time) as stream:
            signals.read_heeding_signals(stream, 7)
    assert in_time == [True]


class Pressing(TokenWindowSource):
    """Validation data that are interrupted during the first batch after the trial of one."""

    def iter_eval(self, batch_size):
        for batch in super().iter_eval(batch_size):
            batches.append(len(batch.targets))
            if len(batches) > 1:
                signal.raise_signal(signal.SIGINT)
            yield batch


batches: list[int] = []


@pytest.mark.parametrize("steps", [2, 4], ids=["on the way", "at the end"])
def test_an_evaluation_is_given_up_at_once_and_made_up_for(tmp_path, steps):
    """It is pressed during the first batch of seven."""
    expected, records = run(tmp_path / "whole", steps=steps, batch_size=1)
    batches.clear()
    how = {"steps": steps, "eval_interval": 2, "batch_size": 1, "progress": False}
    with pytest.raises(StoppedBySignal, match=f"after step 2 of {steps}"):
        train(with_dropout(), STREAM, Pressing(STREAM, 5), out_dir=tmp_path / "cut", **how)
    assert batches == [1, 1]
    model, again = run(
        tmp_path / "cut", steps=steps, batch_size=1, resume=True, model=with_dropout(5)
    )
    assert again == records and same(model, expected)
    last = read_json(checkpoint_folder(tmp_path / "cut") / "training.json")
    assert [r["step"] for r in last["eval_history"]] == [r.step for r in records]  # and it was kept


def test_what_listened_before_knows_and_is_put_back():
    before = signal.getsignal(signal.SIGINT)
    with SignalHandler(defer=True) as outer, SignalHandler(defer=True) as inner:
        signal.raise_signal(signal.SIGINT)
        assert inner.triggered and not outer.triggered
    assert outer.signal_number == signal.SIGINT and signal.getsignal(signal.SIGINT) is before
    with pytest.raises(StoppedBySignal), SignalHandler(defer=False):
        signal.raise_signal(signal.SIGINT)


def test_what_is_ignored_stays_ignored():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with SignalHandler(defer=False):
        signal.raise_signal(signal.SIGTERM)


def begun(folder: str, **options) -> subprocess.Popen:
    """A run of very many steps that has made some."""
    words = [*COMMAND, "train", "text", "fox.txt", "--out-dir", folder, *LONG, "--steps", "100000"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    started = subprocess.Popen(words, env=ENVIRONMENT, **pipes)
    while not Path(folder, "step-00000050").exists():
        assert started.poll() is None, started.stderr and started.stderr.read()
        time.sleep(0.01)
    return started


def step_of(folder: str) -> int:
    return json.loads((checkpoint_folder(folder) / "checkpoint.json").read_text("utf-8"))["step"]


@pytest.mark.slow
@POSIX
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])  # SIGHUP: below
def test_the_command_ends_with_the_signal_s_code_and_says_how_to_go_on(at, name):
    started = begun("a b")
    for _ in range(20):  # whoever presses again and again loses nothing, and hears no traceback
        started.send_signal(getattr(signal, name))
        time.sleep(0.02)
    out, said = started.communicate(timeout=300)
    assert started.returncode == 128 + getattr(signal, name), said
    assert b"slp-transformer train --out-dir 'a b' --resume" in said and b"Traceback" not in said
    assert f"step {step_of('a b')} of 100000 is saved".encode() in said


def test_the_first_of_several_signals_is_the_one_that_counts():
    """By it the command's exit code is made; an outer handler learns of it too."""
    with SignalHandler(defer=True) as outer:
        with SignalHandler(defer=True) as inner:
            assert not inner.triggered
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.raise_signal(number)
                assert inner.triggered and inner.signal_number == signal.SIGTERM
        assert outer.signal_number == signal.SIGTERM
        with SignalHandler(defer=True):
            signal.raise_signal(signal.SIGINT)
        assert outer.signal_number == signal.SIGTERM
    with pytest.raises(StoppedBySignal) as stopped, SignalHandler(defer=False):
        signal.raise_signal(signal.SIGTERM)
    assert stopped.value.signal_number == signal.SIGTERM
    assert StoppedBySignal().signal_number == signal.SIGINT


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals in Python")
def test_a_terminal_that_is_closed_takes_no_step_with_it(at):
    """Writing to it fails from then on, and the kernel sends SIGHUP."""
    import pty

    child, terminal = pty.fork()
    if not child:
        words = [*COMMAND, "train", "text", "fox.txt", "--out-dir", "a", *LONG, "--steps", "100000"]
        os.execve(sys.executable, words, ENVIRONMENT)
    while not Path("a/step-00000050").exists():
        os.read(terminal, 10_000)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 129
    assert step_of("a") >= 50 and not Path("a/.writing").exists()
