"""Several processes: what they learn, measure and keep is what one process does."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest
import team_run
import torch
from checkpoint_folders import checkpoint_folder
from own_process import OWN, python
from safetensors.torch import load_file

from slp_transformer.training import distributed, train
from slp_transformer.training.checkpoints import STATE_FILE, load_model
from slp_transformer.training.strategy import make_strategy
from slp_transformer.training.train_config import TrainConfig

pytestmark = [
    pytest.mark.slow,  # two processes that load PyTorch, for each of them
    pytest.mark.xdist_group("two processes"),  # one launch makes what most of them look at
    pytest.mark.skipif(
        sys.platform == "win32", reason="processes are started and signalled as on POSIX"
    ),
]
HOWS = ("ddp", "fsdp")


def torchrun(*arguments, restarts: int = 0) -> subprocess.CompletedProcess:
    """team_run.py in two processes that torchrun starts, with this very package."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    launcher.append(f"--max-restarts={restarts}")
    # Without this the restarted look for each other where the dead were.
    variables = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"} if restarts else {}
    return python(*launcher, team_run.__file__, *arguments, **variables)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """What two processes left behind, after one process began two of the runs."""
    folder = tmp_path_factory.mktemp("together")
    for how in HOWS:
        with pytest.raises(OSError, match="plug"):
            team_run.windows(out_dir=folder / f"begun-{how}", report=team_run.stop_at(2))
    result = torchrun("together", folder)
    assert result.returncode == 0, result.stderr
    return folder


def results(folder: Path, rank: int = 0) -> dict:
    return json.loads((folder / f"{rank}.json").read_text("utf-8"))


def assert_close(expected, found, rtol: float = 1e-5) -> None:
    """That weights are the same to rounding."""
    assert expected.keys() == found.keys()
    for name in expected:
        torch.testing.assert_close(found[name], expected[name], rtol=rtol, atol=1e-5, msg=name)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("case", ["windows", "pairs", "lone", "idle"])
def test_two_processes_learn_and_measure_as_one(folder, case, how):
    model, records = team_run.CASES[case]()
    for rank in (0, 1):
        found = results(folder, rank)[f"{case}-{how}"]
        assert [r["step"] for r in found] == [r.step for r in records]
        for name in ("train_loss", "val_loss"):
            expected = [getattr(r, name) for r in records]
            assert [r[name] for r in found] == pytest.approx(expected, rel=1e-6)
        weights = torch.load(folder / f"{case}-{how}-{rank}.pt", weights_only=True)
        assert_close(model.state_dict(), weights)


def test_muon_goes_with_two_processes(folder):
    """To what bfloat16, in which PyTorch orthogonalizes, leaves of a sum in another order."""
    _, records = team_run.muon()
    for name in ("train_loss", "val_loss"):
        found = [r[name] for r in results(folder)["muon-ddp"]]
        assert found == pytest.approx([getattr(r, name) for r in records], rel=1e-3)
    first, second = (torch.load(folder / f"muon-ddp-{rank}.pt") for rank in (0, 1))
    assert all(torch.equal(W, second[name]) for name, W in first.items())


@pytest.mark.parametrize("how", HOWS)
def test_checkpoints_are_the_same_files(folder, tmp_path, how):
    team_run.windows(out_dir=tmp_path, parallel=how)
    mine, theirs = tmp_path, folder / f"windows-{how}"
    names = sorted(str(path.relative_to(mine)) for path in mine.rglob("*"))
    assert names == sorted(str(path.relative_to(theirs)) for path in theirs.rglob("*"))
    mine, theirs = (checkpoint_folder(each) for each in (mine, theirs))
    assert_close(*(load_file(each / "model.safetensors") for each in (mine, theirs)))
    states = [load_file(each / STATE_FILE) for each in (mine, theirs)]
    assert torch.equal(states[0].pop("random.batches"), states[1].pop("random.batches"))
    for state in states:
        del state["random.cpu"]  # of dropout, which each process draws for itself
    assert_close(*states, rtol=1e-4)
    for name in ("config.json", "checkpoint.json", "training.json"):
        written = [json.loads((each / name).read_text("utf-8")) for each in (mine, theirs)]
        for content in written:
            content.pop("eval_history", None)  # compared above, to rounding
        if name == "training.json":
            devices = [content["environment"].pop("devices") for content in written]
            assert devices == ["CPU", "2 × CPU"]
        if name == "checkpoint.json":  # lengths and checksums of numbers are their rounding's
            assert written[0]["files"].keys() == written[1]["files"].keys()
            assert written[0]["crc32"].keys() == written[1]["crc32"].keys()
            for content in written:
                del content["files"]["training.json"]
                content["crc32"] = content["crc32"]["config.json"]
        assert written[0] == written[1]


@pytest.mark.parametrize("how", HOWS)
def test_a_run_goes_from_one_process_to_two_and_back(folder, how):
    """One process made two steps, two processes the next two, one makes the last two."""
    assert results(folder)[f"stopped-{how}"] == ["OSError", "the plug is pulled"]
    assert results(folder, 1)[f"stopped-{how}"] == ["ValueError", "the plug is pulled"]
    assert checkpoint_folder(folder / f"begun-{how}").name == "step-00000004"
    model, records = team_run.windows(out_dir=folder / f"begun-{how}", resume=True)
    expected, whole = team_run.windows()
    assert_close(expected.state_dict(), model.state_dict())
    for a, b in zip(records, whole, strict=True):
        assert (a.step, a.train_loss, a.val_loss) == pytest.approx(
            (b.step, b.train_loss, b.val_loss), rel=1e-6
        )


@pytest.mark.parametrize("how", HOWS)
def test_as_many_processes_resume_to_the_last_bit_even_with_dropout(folder, how):
    assert results(folder, 0)[f"exact-{how}"] and results(folder, 1)[f"exact-{how}"]


@pytest.mark.parametrize("how", HOWS)
def test_each_process_drops_other_units(folder, how):
    assert results(folder, 0)[f"drawn-{how}"] != results(folder, 1)[f"drawn-{how}"]


def test_a_full_disk_of_the_first_ends_every_process_with_one_sentence(folder):
    kind, words = results(folder)["full"]
    assert kind == "ValueError" and "Nothing can be kept in" in words and "No space left" in words
    assert results(folder, 1)["full"] == [kind, words]


def test_after_a_run_sigterm_does_what_it_did(folder):
    assert results(folder, 0)["SIGTERM again"] and results(folder, 1)["SIGTERM again"]


def test_processes_that_are_given_different_things_are_refused(folder):
    for rank in (0, 1):
        kind, words = results(folder, rank)["unlike"]
        assert kind == "ValueError"
        assert "config.seed is 0 in process 0 and 1 in process 1" in words
        kind, words = results(folder, rank)["unlike models"]
        assert kind == "ValueError"
        assert "config.dropout is 0.0 in process 0 and 0.1 in process 1" in words


@pytest.mark.parametrize("how", HOWS)
def test_ctrl_c_in_one_process_stops_all_after_the_same_step(folder, how):
    kind, words = results(folder)[f"pressed-{how}"]
    assert kind == "StoppedBySignal" and "after step 4 of 9" in words and "resume=True" in words
    assert results(folder, 1)[f"pressed-{how}"] == [kind, words]
    assert checkpoint_folder(folder / f"pressed-{how}").name == "step-00000004"


def test_a_killed_process_ends_the_job_with_a_sentence_and_the_checkpoint_stands(tmp_path):
    result = torchrun("killed", tmp_path)
    assert result.returncode != 0
    assert "Process 0 of 2 ends, since another one died" in result.stderr
    assert f"The last checkpoint in {tmp_path} was kept" in result.stderr
    assert "resume=True" in result.stderr
    assert checkpoint_folder(tmp_path).name in ("step-00000002", "step-00000004")
    assert load_model(tmp_path, "last") is not None


def test_torchrun_restarts_a_run_that_goes_on_by_itself(tmp_path):
    result = torchrun("restarted", tmp_path, restarts=1)
    assert result.returncode == 0, result.stderr
    assert "Process 0 of 2 ends, since another one died" in result.stderr
    assert checkpoint_folder(tmp_path).name == "step-00000008"


def test_ctrl_c_at_torchrun_saves_once_and_says_how_to_go_on(tmp_path):
    for attempt in ("first", "second", "third"):
        folder = tmp_path / attempt
        result = torchrun("interrupted", folder)
        # Between two lines of its own (elastic/metrics/api.py) torchrun takes the signal for a bug.
        if "UnboundLocalError: cannot access local variable 'start'" not in result.stderr:
            break
    assert result.returncode != 0
    step = int(checkpoint_folder(folder).name.removeprefix("step-"))
    assert result.stderr.count(f"Stopped after step {step} of 9999") == 2  # by each process
    assert "resume=True" in result.stderr


def test_a_process_that_meets_nobody_says_so(monkeypatch, second_of_two):
    monkeypatch.setattr(distributed, "TIMEOUT", timedelta(seconds=1))
    with pytest.raises(ConnectionError, match="Process 1 of 2 could not connect to the others"):
        with make_strategy(TrainConfig(steps=1, device="cpu")):
            pass


ALONE = """
import sys
from slp_transformer._internal.signals import SignalHandler
from slp_transformer.training import distributed
from slp_transformer.training.strategy import make_strategy
from slp_transformer.training.train_config import TrainConfig
distributed.NOTICE_AFTER_S = 0.1
with SignalHandler(defer=False):
    with make_strategy(TrainConfig(steps=1, device="cpu")):
        pass
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_signal_ends_a_process_that_waits_for_one_that_has_died(second_of_two):
    process = subprocess.Popen(
        [sys.executable, "-c", ALONE], env=os.environ | OWN, stderr=subprocess.PIPE, text=True
    )
    assert "Process 1 of 2 waits for the others, for 10 minutes" in process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    assert "StoppedBySignal" in process.communicate(timeout=30)[1]


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("killed", [0, 1])
def test_the_meeting_of_three_ends_when_one_that_came_is_killed(killed, free_port):
    alone = ALONE.replace("NOTICE_AFTER_S = 0.1", "NOTICE_AFTER_S = distributed.DEAD_AFTER_S = 2")
    processes = []
    for rank in (0, 1):
        team = {"RANK": f"{rank}", "WORLD_SIZE": "3", "LOCAL_RANK": f"{rank}"}
        team |= {"MASTER_ADDR": "localhost", "MASTER_PORT": f"{free_port}"}
        processes.append(
            subprocess.Popen(
                [sys.executable, "-c", alone],
                env=os.environ | OWN | team,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    for rank, process in enumerate(processes):
        assert f"Process {rank} of 3 waits for the others" in process.stderr.readline()
    processes[killed].kill()
    begun = time.monotonic()
    said = processes[1 - killed].communicate(timeout=60)[1]
    assert "could not connect to the others" in said and time.monotonic() - begun < 30
    assert killed == 0 or "process 1 has ended before all were there" in said
    processes[killed].communicate()


@pytest.fixture
def free_port() -> int:
    with socket.socket() as one:
        one.bind(("localhost", 0))
        return one.getsockname()[1]


@pytest.mark.parametrize("missing", ["RANK", "MASTER_ADDR", "MASTER_PORT"])
def test_an_incomplete_environment_is_named(monkeypatch, missing):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "2")
    monkeypatch.delenv(missing)
    with pytest.raises(ValueError, match=f"variable {missing} expected"):
        with make_strategy(TrainConfig(steps=1, device="cpu")):
            pass


@pytest.fixture
def second_of_two(monkeypatch):
    values = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"}
    for name, value in {**values, "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)


def test_each_process_takes_a_cuda_device_of_its_own(monkeypatch, second_of_two):
    taken = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", taken.append)
    team = make_strategy(TrainConfig(steps=1))
    assert team.device == torch.device("cuda", 1) and taken == [team.device]
    assert str(team) == "2 × CUDA" and (team.rank, team.world_size) == (1, 2)
    whole = "torch.nn.parallel.DistributedDataParallel"
    monkeypatch.setattr(whole, lambda model, *given, **named: model)
    team.device = torch.device("meta")  # any but the CPU
    assert team.wrap(torch.nn.Linear(2, 3), lambda model: False).weight.device == team.device
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ValueError, match="has 1 CUDA devices, too few for its process 2"):
        make_strategy(TrainConfig(steps=1))
    with pytest.raises(ValueError, match='not on "cuda:0"'):
        make_strategy(TrainConfig(steps=1, device="cuda:0"))


def test_several_processes_on_a_mac_use_the_cpu(monkeypatch, second_of_two):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert make_strategy(TrainConfig(steps=1)).device == torch.device("cpu")
    with pytest.raises(ValueError, match='not on "mps"'):
        make_strategy(TrainConfig(steps=1, device="mps"))


def test_one_process_of_torchrun_is_like_any(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "1")
    model, plain = team_run.language_model(), team_run.language_model()
    options = {"steps": 2, "eval_interval": 1, "batch_size": 3}
    records = train(model, team_run.STREAM, team_run.STREAM, **options, parallel="fsdp")
    assert records == train(plain, team_run.STREAM, team_run.STREAM, **options)
    assert not torch.distributed.is_initialized()
