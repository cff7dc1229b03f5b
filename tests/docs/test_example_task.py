"""The example of a task in a package of its own: tunes in ABC, found by its entry point."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import own_process
import pytest
import torch
from checkpoint_folders import checkpoint_folder
from own_process import python

from slp_transformer.training.checkpoints import load_model

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "docs" / "example_task"
sys.path.append(str(EXAMPLE))
pytest.importorskip("tyro", reason="commands need the text extra")

from abc_notation import METERS, Bars, NotReadable, read_tune, write_abc  # noqa: E402
from abc_task import BOS, EOS, TuneSession, TuneTokenizer  # noqa: E402

JIG = """X:7
T:Made for this test
M:6/8
L:1/8
K:D
A | d2f "D"e>dc | (3ABc B A3 | {g}fed c2 |]
|: B | A3 F3 |1 D3 D2 :|2 D3 d2 ||
"""
WORDS = (
    "M:6/8 K:D A | d2 f e3/2 d/2 c | A2/3 B2/3 c2/3 B A3 | f e d c2 || "
    "|: B | A3 F3 | [1 D3 D2 :| [2 D3 d2 ||"
).split()


def test_a_tune_is_read_by_hand():
    assert read_tune(JIG) == WORDS


def test_what_was_written_is_read_back():
    assert read_tune(write_abc(WORDS)) == WORDS


def test_a_unit_of_sixteenths_and_a_mode():
    tune = "X:1\nM:2/4\nL:1/16\nK:A dorian\nA2B2c2d2 | e8 |]\n"
    assert read_tune(tune) == "M:2/4 K:Ador A B c d | e4 ||".split()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("d2f", "d3f"), "bar 2, which does not add up before c"),
        (("c2 |]", "c |]"), "bar 4, which does not add up before ||"),
        (("K:D", "K:H"), "the key 'H'"),
        (("M:6/8", "M:7/8"), "the meter '7/8'"),
        (("{g}fed", "[fa]ed"), "the sign '['"),
        (("|: B", "K:G\n|: B"), "a change of key or meter"),
    ],
)
def test_what_is_not_read_is_named(change, said):
    with pytest.raises(NotReadable) as error:
        read_tune(JIG.replace(*change))
    assert said in str(error.value)


@pytest.mark.slow
def test_any_walk_along_what_is_allowed_adds_up():
    tokenizer = TuneTokenizer([BOS, EOS, *dict.fromkeys(WORDS), "M:2/4", "K:Am"])
    session, chance = TuneSession(tokenizer), random.Random(3)
    for _ in range(40):
        ids = session.begin(None)
        while ids[-1] != session.stop and len(ids) < 150:
            ids.append(chance.choice(sorted(session.allowed(ids))))
        words = tokenizer.decode(ids)
        bars = Bars(METERS[words[0].removeprefix("M:")])
        for word in words[2:]:
            assert bars.allows(word)
            bars = bars.after(word)
        assert bars.may_end == (ids[-1] == session.stop) or len(ids) == 150


COMMANDS = """
import json, sys
from slp_transformer.cli import main
sys.stderr = sys.stdout
for words in json.loads(sys.argv[1]):
    print(main(words), end="\\0")
"""


@pytest.fixture
def installed(tmp_path):
    """Run commands in a process that finds the package as if it were installed."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text("utf-8"))["project"]
    info = tmp_path / "site" / "slp_transformer_tunes-0.1.0.dist-info"
    info.mkdir(parents=True)
    about = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(about, "utf-8")
    ((group, entries),) = project["entry-points"].items()
    lines = [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n", "utf-8")
    path = os.pathsep.join(map(str, (ROOT, EXAMPLE, info.parent)))

    def run(*commands):
        words = json.dumps([command.split() for command in commands])
        how = {"PYTHONPATH": path, "PYTHONUTF8": "1"}
        done = python("-c", COMMANDS, words, cwd=tmp_path, **how)
        assert done.returncode == 0, done.stderr
        return done.stdout.split("\0")[:-1]

    run.path = path
    return run


@pytest.mark.slow
def test_it_trains_resumes_to_the_same_weights_writes_and_is_evaluated(installed, tmp_path):
    (tmp_path / "tunes.abc").write_text("\n".join(JIG for _ in range(30)), "utf-8")
    small = "--model-dim 8 --num-heads 2 --num-blocks 1 --context-length 37 --batch-size 3"
    train = f"train tunes tunes.abc {small} --device cpu --quiet --eval-interval 2 --val-split 0.2"
    train += " --schedule inverse-sqrt --warmup-steps 0"  # whatever the number of steps
    write = "generate {0} --max-new-tokens 60 --output {0}.abc --seed 5"
    *ends, measured, about, refused, usage = installed(
        f"{train} --out-dir whole --steps 6", f"{train} --out-dir two --steps 4",
        "train --out-dir two --resume --steps 6 --quiet", write.format("whole"),
        write.format("two"), "generate whole --max-new-tokens 60 --output more.abc --num-samples 2",
        "evaluate whole", "info whole", "generate whole --tuning drop-D",
        "--help",
    )  # fmt: skip
    assert all(said.endswith("0") for said in (*ends, measured, about, usage)) and refused.endswith(
        "2"
    )
    whole, two = (
        (checkpoint_folder(tmp_path / run) / "model.safetensors").read_bytes()
        for run in ("whole", "two")
    )
    assert whole == two
    whole, two = ((tmp_path / f"{run}.abc").read_text("utf-8") for run in ("whole", "two"))
    assert whole.partition("K:")[2] == two.partition("K:")[2]
    assert (tmp_path / "more-2.abc").exists()
    assert re.search("train tunes my-tunes --out-dir runs/tunes +folk tunes in ABC\n", usage)
    assert "loss" in measured and re.search(r"task +tunes\n", about)
    assert "--tuning has no effect here" in refused


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="processes are started as on POSIX")
def test_killed_and_resumed_or_in_two_processes_it_trains_as_in_one(installed, tmp_path):
    (tmp_path / "tunes.abc").write_text("\n".join(JIG for _ in range(30)), "utf-8")
    train = "train tunes tunes.abc --model-dim 8 --num-heads 2 --num-blocks 1 --context-length 37"
    train += " --batch-size 4 --gradient-accumulation-steps 2 --device cpu --quiet --steps 100"
    train += " --eval-interval 2 --val-split 0.2"
    (said,) = installed(f"{train} --out-dir one")
    assert said.endswith("0")
    environment = os.environ | own_process.OWN | {"PYTHONPATH": installed.path}
    module = ["-m", "slp_transformer"]
    killed = [sys.executable, *module, *train.split(), "--out-dir", "cut"]
    with subprocess.Popen(killed, cwd=tmp_path, env=environment) as process:
        while process.poll() is None and not list(tmp_path.glob("cut/step-*[1-9]*")):
            time.sleep(0.01)  # until there is a checkpoint of another step than 0
        process.kill()
    assert process.returncode == -signal.SIGKILL, "it was killed on its way"
    (said,) = installed("train --out-dir cut --resume --quiet")
    assert said.endswith("0")
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", *module]
    ended = python(
        *launcher, *train.split(), "--out-dir", "two", cwd=tmp_path, PYTHONPATH=installed.path
    )
    assert ended.returncode == 0, ended.stderr
    one, cut, two = (load_model(tmp_path / run).state_dict() for run in ("one", "cut", "two"))
    assert all(torch.equal(cut[name], W) for name, W in one.items())
    assert all(torch.allclose(two[name], W, atol=1e-4) for name, W in one.items())
