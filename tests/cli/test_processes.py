"""The command line in processes of its own: pipes, Ctrl-C, torchrun."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import own_process
import pytest
import torch
from commands import SMALL, fine

from slp_transformer.data import load_moby_dick
from slp_transformer.training.checkpoints import load_model

ENVIRONMENT = {**os.environ, **own_process.OWN}
COMMAND = [sys.executable, "-m", "slp_transformer"]
POSIX = pytest.mark.skipif(os.name == "nt", reason="Windows sends Ctrl-C to groups of processes")


@pytest.mark.slow
def test_a_process_reads_and_writes_utf8_and_a_broken_pipe_is_quiet(at):
    text = "Süße Äpfel, €5.\n"
    Path("own.txt").write_text(text * 40, encoding="utf-8")
    fine("train", "text", "own.txt", "--out-dir", "a", *SMALL)
    words = [*COMMAND, "generate", "a", "--prompt-file", "-", "--max-new-tokens", "100000"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(words, env=ENVIRONMENT, **pipes) as started:
        with started.stdin as given:
            given.write(text.encode())
        assert started.stdout.read(20).decode().startswith(text[:-1])
        started.stdout.close()
        err = started.stderr.read()
        if os.name != "nt":  # where pipes break differently
            assert started.wait(timeout=300) == 141 and err == b"Loading PyTorch ...\n", err


def interrupted(words: list, at_work, environment=ENVIRONMENT, **options) -> tuple[int, str]:
    """Exit code and stderr of a process that gets Ctrl-C once it is at work."""
    started = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, **options
    )
    while not at_work(started):
        assert started.poll() is None, started.stderr.read()
        time.sleep(0.01)
    started.send_signal(signal.SIGINT)
    started.wait(timeout=300)
    with started.stdout, started.stderr:
        return started.returncode, started.stderr.read().decode("utf-8")


@pytest.fixture
def slow_torch(tmp_path):
    """Variables with which Python imports a torch that takes as long as it likes, and says so."""
    (tmp_path / "slow/torch").mkdir(parents=True)
    (tmp_path / "slow/torch/__init__.py").write_text(
        "import time\nprint('loading', flush=True)\ntime.sleep(300)\n", encoding="utf-8"
    )
    path = os.pathsep.join([str(tmp_path / "slow"), ENVIRONMENT["PYTHONPATH"]])
    return ENVIRONMENT | {"PYTHONPATH": path}


def is_loading(started: subprocess.Popen) -> bool:
    return started.stdout.readline() == b"loading\n"


SCRIPT = "import sys\nfrom slp_transformer.__main__ import main\nsys.exit(main())\n"


@POSIX
@pytest.mark.parametrize(
    ("start", "rank"),
    [("-m slp_transformer", "0"), ("-mslp_transformer", "0"), ("script", "0"), ("script", "1")],
)
def test_ctrl_c_while_torch_is_loaded_is_a_sentence_of_rank_zero(start, rank, slow_torch, at):
    Path("script").write_text(SCRIPT, encoding="utf-8")  # as pip writes it
    words = [sys.executable, *start.split(), "info", "--json"]
    said = "Loading PyTorch ...\nslp-transformer: Stopped before it began.\n"
    ended = interrupted(words, is_loading, slow_torch | {"RANK": rank})
    assert ended == (130, "" if rank == "1" else said)


@POSIX
@pytest.mark.parametrize(
    "start", [["-c", "from slp_transformer import TransformerLM"], ["-m", "another"], ["other.py"]]
)
def test_whoever_imports_the_package_keeps_their_ctrl_c(start, slow_torch, at):
    Path("another").mkdir()
    for name in ("other.py", "another/__init__.py"):
        Path(name).write_text("from slp_transformer import TransformerLM\n", encoding="utf-8")
    words = [sys.executable, *start, "slp_transformer", "slp-transformer"]
    code, said = interrupted(words, is_loading, slow_torch)
    assert code == -signal.SIGINT and said.endswith("KeyboardInterrupt\n")


@pytest.mark.slow
@POSIX
@pytest.mark.parametrize(
    ("source", "begun"), [("long.txt", "a/tokens/.*.writing"), ("-", "a/.*.writing")]
)
def test_ctrl_c_before_the_first_step_leaves_nothing(source, begun, at):
    Path("long.txt").write_text(load_moby_dick() * 40, encoding="utf-8")
    words = [*COMMAND, "train", "text", source, "--out-dir", "a", "--tokenizer", "bpe", *SMALL]
    code, said = interrupted(words, lambda _: any(Path().glob(begun)), stdin=subprocess.PIPE)
    assert (code, said) == (
        130, "slp-transformer: Stopped before the first step; nothing was saved.\n",
    )  # fmt: skip
    assert not Path("a").exists()


ONE_BY_ONE = """
import json, sys
from slp_transformer.__main__ import main
for number, words in enumerate(json.loads(sys.argv[1])):
    print(end="\\0" * (number > 0))
    sys.argv[1:] = words
    if main() != 0:
        sys.exit(f"{words} failed")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "odd",
    [
        {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "HOME": "/none", "USERPROFILE": "/none"},
        {"PYTHONOPTIMIZE": "2", "OMP_NUM_THREADS": "4"},
        # A processor without AVX.
        {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0", "ATEN_CPU_CAPABILITY": "default"},
    ],
)
def test_commands_work_in_an_odd_environment(at, odd):
    Path("own.txt").write_text("Töne über Töne, é und 𝄞. " * 40, encoding="utf-8")
    train = ["train", "text", "own.txt", "--out-dir", "a", *SMALL]
    commands = ["train", "--help"], train, ["generate", "a", "--max-new-tokens", "9"]
    ended = own_process.python("-c", ONE_BY_ONE, json.dumps(commands), **odd)
    assert ended.returncode == 0, ended.stderr
    assert len(said := ended.stdout.split("\0")) == 3 and all(said), said


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="torchrun needs a store that Windows' builds lack")
def test_two_processes_train_as_one_and_the_first_one_speaks(at):
    # The "--" keeps torchrun from taking our flags for abbreviations of its own.
    words = ["train", "text", "fox.txt", *SMALL, "--batch-size", "2"]
    words += ["--gradient-accumulation-steps", "2", "--dropout", "0"]
    torchrun = "-m torch.distributed.run --standalone --nproc-per-node=2 -m -- slp_transformer"
    ended = own_process.python(*torchrun.split(), *words, "--out-dir", "two")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("Trained 4 steps") == 1
    fine(*words, "--out-dir", "one")
    two, one = (load_model(run).state_dict() for run in ("two", "one"))
    assert all(torch.allclose(two[name], one[name], atol=1e-5) for name in one)
