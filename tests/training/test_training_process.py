"""What shows only in a process of its own: the real compiler, and how much memory is used."""

import shutil
import sys

import pytest
from own_process import printed

from slp_transformer import TransformerConfig, TransformerLM
from slp_transformer.training.checkpoints import save_checkpoint

COMPILED = """
import sys, torch
from slp_transformer import TransformerConfig, TransformerLM
from slp_transformer.training import load_model, train

stream = torch.arange(7).repeat(5)
runs = []
for compile in (False, True):
    torch.manual_seed(0)
    model = TransformerLM(TransformerConfig(7, 5, model_dim=4, num_heads=1, num_blocks=1))
    options = {"steps": 3, "eval_interval": 3, "batch_size": 2, "learning_rate": 1e-2}
    options |= {"device": "cpu", "compile": compile, "progress": False}
    records = train(model, stream, stream[:11], **options, out_dir=f"{sys.argv[1]}-{compile}")
    kept = load_model(f"{sys.argv[1]}-{compile}", "last")
    runs.append([records[0].train_loss, records[0].val_loss, *model.parameters()])
    assert all(map(torch.equal, kept.parameters(), model.parameters()))
assert type(model) is TransformerLM
for eager, compiled in zip(*runs, strict=True):
    torch.testing.assert_close(compiled, eager, rtol=1e-4, atol=1e-5)
from torch._dynamo.utils import counters
print(counters["frames"]["ok"], counters["stats"]["unique_graphs"], len(counters["graph_break"]))
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not any(map(shutil.which, ("c++", "g++", "clang++", "cl"))),
    reason="torch.compile needs a C++ compiler on the CPU, and none is installed",
)
def test_a_compiled_run_learns_and_keeps_what_an_eager_one_does(tmp_path):
    frames, graphs, breaks = map(int, printed(COMPILED, tmp_path / "run").split())
    assert frames >= 2 and graphs >= 2  # to learn, and to measure
    assert breaks == 0


MEMORY = """
import gc, sys, torch
from own_process import peak
from slp_transformer import TransformerConfig, TransformerLM
from slp_transformer.training import load_model, train

def stop(record):
    if record.step == 1:
        raise KeyboardInterrupt

def run(folder, resume, dim=4):
    model = TransformerLM(TransformerConfig(11, 5, model_dim=dim, num_heads=2, num_blocks=4))
    options = {"steps": 2, "eval_interval": 1, "batch_size": 1, "progress": False, "device": "cpu"}
    stream = torch.arange(11).repeat(3)
    try:
        train(model, stream, stream, **options, out_dir=folder, resume=resume, report=stop)
        assert resume
    except KeyboardInterrupt:
        assert not resume

def most(do, *arguments):  # that this process has used, since `before`
    do(*arguments)
    gc.collect()
    return peak() - before

kept, folder = sys.argv[1:]
for resume in (False, True):  # what libraries take once is not counted
    run(f"{folder}-tiny", resume)
load_model(f"{folder}-tiny")
before = peak()
print(most(TransformerLM, TransformerConfig(11, 5, model_dim=384, num_heads=2, num_blocks=4)))
print(most(load_model, kept), most(run, folder, False, 384), most(run, folder, True, 384))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from Linux's /proc")
def test_neither_loading_nor_resuming_holds_the_weights_twice(tmp_path):
    """A second copy of the weights would exceed what making or training a model takes by far."""
    config = TransformerConfig(11, 5, model_dim=384, num_heads=2, num_blocks=4)
    folder = save_checkpoint(tmp_path / "kept", 1, TransformerLM(config))
    weights = (folder / "model.safetensors").stat().st_size
    assert weights > 25e6
    made, loaded, ran, resumed = map(int, printed(MEMORY, folder, tmp_path / "run").split())
    assert made > 0.9 * weights and loaded < made + weights / 5
    assert ran > 3 * weights  # gradients, and two moments
    assert resumed < ran + weights / 5


GROWTH = """
import os, sys
from pathlib import Path
from statistics import median
import torch
from slp_transformer import TransformerConfig, TransformerLM
from slp_transformer.training import train

samples = []

def sample(record):
    status = Path("/proc/self/status").read_text("utf-8")
    files = len(os.listdir("/proc/self/fd"))
    samples.append((int(status.partition("VmRSS:")[2].split()[0]), files))

model, stream = TransformerLM(TransformerConfig(11, 5, 6, 2, 1)), torch.arange(11).repeat(3)
options = {"steps": 2000, "eval_interval": 10, "device": "cpu", "progress": False}
train(model, stream, stream, **options, out_dir=sys.argv[1], report=sample)
parts = [list(zip(*part)) for part in (samples[50:100], samples[150:])]
print(*(int(median(late) - median(early)) for early, late in zip(*parts)))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from Linux's /proc")
def test_a_long_run_needs_no_more_memory_nor_open_files_as_it_goes(tmp_path):
    """From the second quarter of its 200 checkpoints to the last."""
    kibibytes, files = map(int, printed(GROWTH, tmp_path / "run").split())
    assert kibibytes <= 8 << 10 and files <= 0
