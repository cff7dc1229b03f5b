"""Each part that a model can be made of makes a difference, and is shown where parts are."""

import dataclasses
import json
from typing import get_args

import names_table
import pytest
import torch
import torch.nn.functional as F
from commands import output, refused

from slp_transformer import (
    FeedForward,
    InputEncoding,
    TransformerBlock,
    TransformerConfig,
    TransformerLM,
    TransformerStack,
)
from slp_transformer._internal import parts
from slp_transformer._internal.choices import Phrase
from slp_transformer._internal.parts import MODEL_TABLES
from slp_transformer.feedforward import ACTIVATIONS, make_feedforward
from slp_transformer.generation.sharded_weights import SHARDED_PARAMETERS
from slp_transformer.modern import ModernConfig, ModernLM, RopeScaling
from slp_transformer.modern.families import HF_FAMILIES
from slp_transformer.modern.pretrained import read_config
from slp_transformer.tasks.run_config import ModelSettings

V, N = 23, 13
SIZES = {"model_dim": 20, "num_heads": 2, "num_blocks": 2}
TABLES = {table.name: table for table in MODEL_TABLES}
SETTINGS = {field.name for field in dataclasses.fields(ModelSettings)} & TABLES.keys()


def without_rotation(model):
    for block in model.stack.blocks:
        block.attention.rotary = None


def outcome(setting, choice, change=lambda model: None):
    """What a model computes that has a choice, the same numbers in all weights of one shape."""
    if setting == "initialization":
        torch.manual_seed(1)
        config = TransformerConfig(V, N, **SIZES, scaled_embeddings=True, initialization=choice)
        model = TransformerLM(config)
    else:
        changes = {setting: choice}
        if setting == "rope_type":
            scaling = RopeScaling(choice, 3.0, original_context_length=40)
            changes = {"rope_scaling": scaling, "rope_base": 50.0}
        model = ModernLM(ModernConfig(V, N, **SIZES, **changes))
        change(model)
        with torch.no_grad():
            for W in model.parameters():
                W.copy_(torch.sin(torch.arange(W.numel()).view(W.shape) * 1.7 + 0.4))
    return model.double()(torch.arange(N) % V)


@pytest.mark.parametrize("setting", TABLES)
def test_no_two_choices_compute_the_same(setting):
    choices = [*TABLES[setting], *([False, True] if setting == "attention_bias" else [])]
    results = [outcome(setting, choice) for choice in choices]
    if setting == "positions":  # nor may one do nothing
        results.append(outcome(setting, "rotary", without_rotation))
    assert len(results) > 1 and all(result.isfinite().all() for result in results)
    for i, result in enumerate(results):
        for other in results[:i]:
            assert (result - other).abs().max() > 1e-6


def test_each_activation_s_layer_computes_it_and_is_read_by_all_cores():
    X = torch.randn(7, 6, generator=torch.Generator().manual_seed(3))
    for name in TABLES["activation"]:
        config = ModernConfig(V, N, 6, 1, num_blocks=1, ffn_bias=True, activation=name)
        layer = ModernLM(config).stack.blocks[0].ffn
        assert type(layer) in SHARDED_PARAMETERS, name
        first = X @ layer.W_1 + layer.b_1
        if name == "swiglu":
            expected = F.silu(first) * (X @ layer.W_2 + layer.b_2) @ layer.W_3 + layer.b_3
        else:
            expected = ACTIVATIONS[name](first) @ layer.W_2 + layer.b_2
        torch.testing.assert_close(layer(X), expected, msg=name)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("setting", TABLES)
def test_a_name_that_nothing_computes_is_refused_by_name(setting, request):
    """Nothing falls through to another part, as it would by a plain `else`."""
    TABLES[setting].add("named-only", Phrase("a name without a part"))
    request.addfinalizer(lambda: TABLES[setting].remove("named-only"))
    with pytest.raises((ValueError, KeyError), match="named-only"):
        outcome(setting, "named-only")


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "choices"),
    [
        (lambda name: make_feedforward(6, None, name), "relu.*swiglu"),
        (lambda name: FeedForward(6, activation=name), "relu.*relu2"),
        (lambda name: TransformerBlock(6, 2, norm=name), '"pre" or "post"'),
        (lambda name: TransformerBlock(6, 2, activation=name), "relu.*swiglu"),
        (lambda name: InputEncoding(V, N, 6, positions=name), "learned.*sinusoidal"),
        (lambda name: TransformerStack(1, 6, 2, initialization=name), "gpt2.*bert"),
    ],
)
@pytest.mark.parametrize("name", ["rleu", "output"])
def test_a_module_refuses_a_choice_that_it_does_not_know_when_it_is_made(make, choices, name):
    with pytest.raises(ValueError, match=f"must be .*{choices}.*, not '{name}'"):
        make(name)


def test_names_are_offered_and_documented(capsys):
    page = names_table.fill("<!-- choices of parts -->")
    shown = " ".join(output(capsys, "train", "text", "--help").replace("│", " ").split())
    for setting, table in TABLES.items():
        for name, entry in table.items():
            assert page.count(f"<code>{name}</code> | {entry.summary}") == 1
            if setting in SETTINGS:
                assert f'"{name}" ({entry.summary})' in shown
                assert ModelSettings(**{setting: name}).to_config(V)
    for setting in SETTINGS:
        flag = f"--{setting.replace('_', '-')}"
        said = refused(capsys, "train", "text", "x", "--out-dir", "y", flag, "nothing-there")
        assert all(name in said for name in TABLES[setting])


@pytest.mark.usefixtures("unchecked")
def test_settings_that_are_no_choice_of_a_table_are_refused():
    for setting in SETTINGS:
        for make in (ModelSettings, lambda **choice: ModernConfig(V, **choice)):
            with pytest.raises(ValueError, match=f"{setting} must be"):
                make(**{setting: "nothing-there"})


def test_a_family_from_outside_is_read_offered_and_documented(tmp_path, monkeypatch):
    llama = HF_FAMILIES["llama"]
    known = llama.activations[1] | {"relu": "relu"}
    own = {"model_type": "alpaca", "title": "Alpaca", "activations": ("hidden_act", known)}
    monkeypatch.setitem(HF_FAMILIES, "alpaca", dataclasses.replace(llama, **own))
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "alpaca", "hidden_act": "relu"}), encoding="utf-8")
    assert read_config(tmp_path).activation == "relu"
    path.write_text(json.dumps({"model_type": "vicuna"}), encoding="utf-8")
    with pytest.raises(ValueError, match="known are .*alpaca"):
        read_config(tmp_path)
    assert "| Alpaca | `alpaca` |" in names_table.fill("<!-- families -->")


KINDS = [kind for kind in vars(parts).values() if hasattr(kind, "__metadata__")]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__metadata__[0].name)
def test_a_type_checker_knows_the_names_of_the_table(kind):
    """`Literal` for mypy and an editor, the table for everything else."""
    literal, table = kind.__origin__, kind.__metadata__[0]
    assert get_args(literal) == tuple(table) and len(KINDS) >= len(TABLES) + 2
