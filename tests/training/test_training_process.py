"""What shows only in a process of its own: the real compiler, and how much memory is used."""

import shutil
import sys

import pytest
from own_process import printed

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
import sys, torch
from own_process import peak
from slp_transformer import TransformerConfig, TransformerLM
from slp_transformer.training.trainer import train

def stop(record):
    if record.step == 1:
        raise KeyboardInterrupt

model = TransformerLM(TransformerConfig(11, 5, model_dim=384, num_heads=2, num_blocks=8))
stream = torch.arange(11).repeat(3)
options = {"steps": 2, "eval_interval": 1, "batch_size": 1, "progress": False, "device": "cpu"}
resume = sys.argv[2] == "resume"
tiny = TransformerLM(TransformerConfig(11, 5, model_dim=4, num_heads=2, num_blocks=1))
for again in (False, True):  # what libraries take once, by whichever way, is not counted
    train(tiny, stream, stream, **options, out_dir=f"{sys.argv[1]}-{resume}", resume=again)
before = peak()
try:
    train(model, stream, stream, **options, out_dir=sys.argv[1], resume=resume, report=stop)
    assert resume
except KeyboardInterrupt:
    assert not resume
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from Linux's /proc")
def test_a_resumed_run_uses_no_more_memory_than_one_that_was_not_stopped(tmp_path):
    """A second copy of the weights alone would exceed it ten times over."""
    used = {how: int(printed(MEMORY, tmp_path, how)) for how in ("run", "resume")}
    weights = (tmp_path / "step-00000002" / "model.safetensors").stat().st_size
    assert weights > 50e6
    assert used["run"] > 3 * weights  # gradients, and two moments
    assert used["resume"] < used["run"] + weights / 10, used
