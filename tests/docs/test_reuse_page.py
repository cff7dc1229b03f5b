"""The programs of the page Reuse run as they stand, and its tables hold names that there are."""

import re
import sys
from dataclasses import fields
from pathlib import Path

import names_table
import pytest
import torch
from foreign import MODELS, foreign
from own_process import python
from torch import nn

from slp_transformer.interpret import find_hook_points, patch_activations
from slp_transformer.modern import ModernConfig, ModernLM, from_pretrained
from slp_transformer.modern.families import HF_FAMILIES
from slp_transformer.modern.language_model import make_stack

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reuse.md").read_text(encoding="utf-8")
PROGRAMS = {
    f"{heading} {number}": program
    for heading, text in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    for number, program in enumerate(re.findall(r"```python\n(.*?)```", text, re.DOTALL), 1)
}


# PyTorch is imported once for all programs, each of which then runs in a process of its own.
EACH = """
import os, runpy, sys, torch
for program in sys.argv[1:]:
    child = os.fork()
    if not child:
        runpy.run_path(program, run_name="__main__")
        sys.exit()
    if os.waitpid(child, 0)[1]:
        sys.exit(f"{program} failed")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="forks, and torchrun's gloo, as Linux has them")
def test_programs_run_as_they_stand(tmp_path):
    """In one folder and in the page's order, since a later one loads what an earlier one saved."""
    (tmp_path / "my-texts").mkdir()
    text = "the cat sat on the mat, and the dog on the log. " * 99
    (tmp_path / "my-texts" / "one.txt").write_text(text, encoding="utf-8")
    train = "-m slp_transformer train text my-texts --out-dir runs/mine --steps 20".split()
    train += "--model-dim 32 --num-blocks 2 --context-length 64".split()
    assert python(*train, cwd=tmp_path).returncode == 0
    *alone, many = PROGRAMS.items()
    assert many[1].startswith("# many.py")
    for name, program in PROGRAMS.items():
        (tmp_path / f"{name}.py").write_text(program, encoding="utf-8")
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    for command in (
        ["-c", EACH, *(f"{name}.py" for name, _ in alone)],
        [*torchrun, f"{many[0]}.py"],
    ):
        done = python(*command, cwd=tmp_path)
        assert done.returncode == 0, done.stderr[-3000:]


def test_programs_are_short():
    assert len(PROGRAMS) >= 12
    for name, program in PROGRAMS.items():
        lines = [line for line in program.splitlines() if line.strip()]
        assert len(lines) <= 15 and max(map(len, lines)) <= 100, name


def column(rows, place):
    cells = [names_table.as_code(row[place]) for row in rows]
    return {name for cell in cells for name in re.findall("`(.+?)`", cell)}


def block_of(model, begin):
    return {name.removeprefix(begin) for name in model.state_dict()}


def test_parameters_are_those_that_there_are():
    rows = [row for row in names_table.parameter_rows() if "…" not in row[0]]
    modern = ModernConfig(
        11, num_blocks=1, attention_bias=True, ffn_bias=True, normalization="layer"
    )
    ours = block_of(ModernLM(names_table.LLAMA), names_table.BLOCK[0])
    ours |= block_of(ModernLM(names_table.GPT2), names_table.BLOCK[0])
    ours |= block_of(make_stack(modern, cross_attention=True), "blocks.0.")
    assert column(rows, 0) <= ours
    ours = {name for name in ours if "blocks" not in name and "cross" not in name}
    assert ours - column(rows, 0) <= {"final_norm.gamma", "final_norm.beta"}  # of a bare stack
    layers = nn.TransformerEncoderLayer(12, 3), nn.TransformerDecoderLayer(12, 3)
    stacks = [
        nn.TransformerEncoder(layers[0], 1, nn.LayerNorm(12), enable_nested_tensor=False),
        nn.TransformerDecoder(layers[1], 1, nn.LayerNorm(12)),
    ]
    torchs = [block_of(stack, names_table.BLOCK[1]) for stack in stacks]
    assert column(rows, 1) <= torchs[0] | torchs[1] and torchs[0] <= column(rows, 1)
    for place, name, begin in ((2, "gpt2", "transformer.h.0."), (3, "llama", "model.layers.0.")):
        kind, config, sizes = MODELS[name]
        biases = {"attention_bias": True, "mlp_bias": True} if name == "llama" else {}
        theirs = block_of(kind(config(**sizes | biases)), begin)
        assert column(rows, place) == {key for key in theirs if ".1." not in key}


def test_settings_are_those_that_there_are():
    rows = names_table.setting_rows()
    read = {ours for family in HF_FAMILIES.values() for ours in family.settings} - {"num_segments"}
    assert read <= column(rows, 0) <= {field.name for field in fields(ModernConfig)}
    for place, name in ((3, "gpt2"), (4, "llama")):
        _, config, sizes = MODELS[name]
        made = config(**sizes)
        own = {"rope_theta", "rope_scaling"}  # of older files, which are written as well
        assert [key for key in column(rows, place) - own if not hasattr(made, key)] == []
    by_name = {row[0]: row for row in rows}
    assert by_name["num_kv_heads"][4] == "num_key_value_heads" and by_name["num_kv_heads"][3] == ""
    assert by_name["hidden_dim"][3:5] == ["n_inner", "intermediate_size"]
    arguments = (
        nn.Transformer.__init__.__annotations__ | nn.TransformerEncoder.__init__.__annotations__
    )
    assert column(rows, 1) <= arguments.keys()


def test_hooks_are_those_that_there_are(tmp_path):
    theirs = foreign("llama", tmp_path)
    model, ids = from_pretrained(tmp_path), torch.arange(7)[None]
    own = [name for name in find_hook_points(model) if name.startswith("0.")]
    assert set(names_table.HOOKS) == set(own)
    with torch.no_grad(), patch_activations(model) as seen:
        model(ids)
        output = theirs(ids, output_hidden_states=True, output_attentions=True)
    for ours, (name, _) in names_table.HOOKS.items():
        if name:
            kind, place = re.findall(r"\w+", name)
            torch.testing.assert_close(seen[ours], output[kind][int(place)])


def test_the_page_has_every_table():
    filled = names_table.fill(PAGE)
    assert "<!-- names" not in filled and filled.count("TransformerLens |") == 3
