"""Each part that a model can be made of makes a difference, and is shown where parts are."""

import dataclasses
import json
from pkgutil import resolve_name
from typing import get_args

import names_table
import pytest
import torch
from commands import output, refused

from slp_transformer import TransformerConfig, TransformerLM
from slp_transformer._internal import parts
from slp_transformer._internal.choices import Phrase as PositionsChoice
from slp_transformer._internal.parts import MODEL_TABLES
from slp_transformer.generation.sharded_weights import SHARDED_PARAMETERS
from slp_transformer.modern import ModernConfig, ModernLM, RopeScaling
from slp_transformer.modern.families import HF_FAMILIES
from slp_transformer.modern.pretrained import read_config
from slp_transformer.tasks.model_settings import ModelSettings

V, N = 23, 13
SIZES = {"model_dim": 20, "num_heads": 2, "num_blocks": 2}
TABLES = {table.name: table for table in MODEL_TABLES}
SETTINGS = {field.name for field in dataclasses.fields(ModelSettings)} & TABLES.keys()


def outcome(setting, choice):
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
        with torch.no_grad():
            for W in model.parameters():
                W.copy_(torch.sin(torch.arange(W.numel()).view(W.shape) * 1.7 + 0.4))
    return model.double()(torch.arange(N) % V)


@pytest.mark.parametrize("setting", TABLES)
def test_no_two_choices_compute_the_same(setting, request):
    if setting == "positions":  # nor may one do nothing
        TABLES[setting].add("nothing", PositionsChoice("no positions at all"))
        request.addfinalizer(lambda: TABLES[setting].remove("nothing"))
    choices = [*TABLES[setting], *([False, True] if setting == "attention_bias" else [])]
    results = [outcome(setting, choice) for choice in choices]
    assert len(results) > 1 and all(result.isfinite().all() for result in results)
    for i, result in enumerate(results):
        for other in results[:i]:
            assert (result - other).abs().max() > 1e-6


def test_each_activation_s_layer_computes_it_and_is_read_by_all_cores():
    X = torch.randn(7, 6, generator=torch.Generator().manual_seed(3))
    for name, choice in TABLES["activation"].items():
        layer_type, function = resolve_name(choice.layer), resolve_name(choice.function)
        assert layer_type in SHARDED_PARAMETERS, name
        config = ModernConfig(V, N, 6, 1, num_blocks=1, ffn_bias=True, activation=name)
        layer = ModernLM(config).stack.blocks[0].ffn
        gate = function(X @ layer.W_1 + layer.b_1)
        if choice.is_pointwise:
            expected = gate @ layer.W_2 + layer.b_2
        else:
            expected = gate * (X @ layer.W_2 + layer.b_2) @ layer.W_3 + layer.b_3
        torch.testing.assert_close(layer(X), expected, msg=name)


@pytest.fixture(params=TABLES)
def added(request):
    """A table with an entry from outside, which does what one of its own does."""
    table = TABLES[request.param]
    like = list(table.values())[-1]
    table.add("from-outside", type(like)("what a plug-in adds"))
    yield table
    table.remove("from-outside")


def test_an_entry_from_outside_is_offered_documented_and_taken(added, capsys):
    setting = added.name
    page = names_table.fill("<!-- choices of parts -->")
    assert page.count("<code>from-outside</code> | what a plug-in adds") == 1
    last = [name for name in added if name != "from-outside"][-1]
    torch.testing.assert_close(outcome(setting, "from-outside"), outcome(setting, last))
    with pytest.raises(ValueError, match=f'{setting} must be .*"from-outside"'):
        outcome(setting, "nothing-there")
    if setting in SETTINGS:
        flag = f"--{setting.replace('_', '-')}"
        shown = " ".join(output(capsys, "train", "text", "--help").replace("│", " ").split())
        assert '"from-outside" (what a plug-in adds)' in shown
        said = refused(capsys, "train", "text", "x", "--out-dir", "y", flag, "nothing-there")
        assert "from-outside" in said
        assert ModelSettings(**{setting: "from-outside"}).to_config(V)


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


@pytest.mark.parametrize(
    "kind", [parts.Activation, parts.BookActivation, parts.NormOrder, parts.BookNormOrder]
)
def test_a_type_checker_knows_the_names_of_the_table(kind):
    """`Literal` for mypy and an editor, the table for everything else."""
    literal, table = kind.__origin__, kind.__metadata__[0]
    assert get_args(literal) == tuple(table)
