"""A fourth task is one module and one entry: it trains, resumes, generates and is evaluated."""

import sys

import own_process
import pytest
import torch
import toy_task
from commands import fine, output, refused, result, weights
from toy_task import MOVES

from slp_transformer.cli import main
from slp_transformer.tasks.base import TASKS
from slp_transformer.training.checkpoints import load_model
from slp_transformer.training.trainer import training_step

SIZES = ["--model-dim", "8", "--num-heads", "2", "--num-blocks", "1", "--context-length", "9"]
SMALL = [*SIZES, "--steps", "6", "--eval-interval", "2", "--batch-size", "3", "--device", "cpu"]


@pytest.fixture
def moves(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(TASKS, "moves", "toy_task:MoveTask")


def test_a_task_of_ones_own_goes_through_every_command(moves, capsys):
    train = ["train", "moves", "--games", "30", "--out-dir", "run", *SMALL, "--quiet"]
    assert "generate run" in output(capsys, *train)
    how = ["--prompt", "e4 e5", "--max-new-tokens", "12", "--num-samples", "2"]
    shown = output(capsys, "generate", "run", *how)
    games = [line for line in shown.splitlines() if line.startswith("e4")]
    for game in games:
        played = game.split()
        assert played[:2] == ["e4", "e5"] and set(played) <= set(MOVES)
        assert all(a != b for a, b in zip(played, played[1:], strict=False))
    assert len(games) == 2
    values = result(capsys, "evaluate", "run", "--samples", "1", "--max-new-tokens", "5")
    assert values["tokens"] == 18 and len(values["samples"]) == 1  # of 21 held out
    assert "task   moves" in output(capsys, "info", "run")
    assert "games must be 10 or more" in refused(
        capsys, "train", "moves", "--games", "3", "--out-dir", "b", *SMALL
    )
    assert "has no effect" in refused(capsys, "generate", "run", "--tuning", "drop-D")


def test_a_task_of_ones_own_resumes_to_the_same_weights(moves, monkeypatch):
    fine("train", "moves", "--out-dir", "whole", *SMALL, "--quiet")
    steps = iter(range(6))

    def interrupt(*args, **options):
        if next(steps) == 3:
            raise KeyboardInterrupt
        return training_step(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr("slp_transformer.training.trainer.training_step", interrupt)
        assert main(["train", "moves", "--out-dir", "cut", *SMALL, "--quiet"]) == 130
    fine("train", "--out-dir", "cut", "--resume", "--quiet")
    assert weights("cut") == weights("whole")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="processes are started as on POSIX")
def test_two_processes_train_a_task_of_ones_own_as_one_does(moves):
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    words = ["train", "moves", *SMALL, "--gradient-accumulation-steps", "2", "--quiet"]
    ended = own_process.python(*launcher, "--", toy_task.__file__, *words, "--out-dir", "two")
    assert ended.returncode == 0 and ended.stdout.count("Trained 6 steps") == 1, ended.stderr
    fine(*words, "--out-dir", "one")
    one, two = (load_model(run).state_dict() for run in ("one", "two"))
    assert one.keys() == two.keys()
    assert all(torch.allclose(two[name], W, atol=1e-5) for name, W in one.items())
