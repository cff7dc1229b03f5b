"""Settings on the command line: flags, recipes, and those of a run that goes on."""

import dataclasses
import tomllib
from pathlib import Path

import pytest
from commands import SENTENCE, SMALL, fine, refused, weights
from slp_transformer.cli.flags import flag_name
from slp_transformer.tasks.setting_fields import NOT_TO_CHOOSE, all_settings

from slp_transformer import TransformerConfig
from slp_transformer.tasks import BUILT_IN, make_recipe
from slp_transformer.training.train_config import TrainConfig

# --- Recipes -------------------------------------------------------------------------------------


def test_every_setting_has_a_flag_and_an_explanation(capsys):
    settings = {(s.table, s.name): s for s in all_settings()}
    for table, owner in (("model", TransformerConfig), ("training", TrainConfig)):
        fields = {(table, field.name) for field in dataclasses.fields(owner)}
        assert fields - NOT_TO_CHOOSE <= settings.keys()
    fine("train", "--help")
    shown = capsys.readouterr().out
    for setting in settings.values():
        assert setting.help
        if setting.name not in ("source", "kind"):
            assert f"  {flag_name(setting)}" in shown


def test_flags_win_over_the_recipe_and_the_recipe_over_the_built_in_one(at, capsys):
    Path("mine.toml").write_text(
        '[data]\nsource = "fox.txt"\n[model]\nmodel_dim = 24\n'
        '[training]\nsteps = 7\nmax_grad_norm = "none"\n',
        encoding="utf-8",
    )
    fine("train", "--config", "mine.toml", "--steps", "9", "--bf16", "--print-config")
    told = tomllib.loads(capsys.readouterr().out)
    built_in = make_recipe("text").tables()
    assert told["training"]["steps"] == 9 and told["training"]["bf16"] is True
    assert told["model"]["model_dim"] == 24 and told["training"]["max_grad_norm"] == "none"
    assert told["training"]["batch_size"] == built_in["training"]["batch_size"]
    assert told["data"]["source"] == str(at.resolve() / "fox.txt")
    assert not (at / "runs").exists()


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_resolved_recipe_survives_its_file(name, tmp_path):
    recipe = make_recipe(name, {"training": {"max_grad_norm": None, "early_stopping_patience": 3}})
    recipe.save(tmp_path / "config.toml")
    assert make_recipe(tmp_path / "config.toml").tables() == recipe.tables()


def test_the_kept_recipe_repeats_the_run(at, monkeypatch):
    fine("train", "text", "fox.txt", "--out-dir", "a", *SMALL, "--dropout", "0.2", "--seed", "5")
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    fine("train", "--config", "../a/config.toml", "--out-dir", "b", "--quiet")
    assert weights("../a") == weights("b")


@pytest.mark.parametrize(
    ("toml", "sentence"),
    [
        ("[training]\nstpes = 3", '[training] has no "stpes": did you mean "steps"?'),
        ("[trainign]\nsteps = 3", 'A recipe has no "trainign": did you mean "training"?'),
        ("steps = 3", 'A recipe has no "steps"'),
        ("training = 3", "training must be a table"),
        ('[training]\nsteps = "many"', "steps must be a whole number, not 'many'"),
        ("[training]\nsteps = true", "steps must be a whole number, not True"),
        ("[training]\nsteps = 2.0", "steps must be a whole number, not 2.0"),
        ("[training]\nbf16 = 1", 'bf16 must be true or false or "none", not 1'),
        ('[model]\nnorm = "none"', 'norm must be "pre" or "post", not \'none\''),
        ('[model]\nactivation = "tanh"', 'must be "relu" or "gelu" or "swiglu"'),
        ("[model]\nvocab_size = 9", '[model] has no "vocab_size"'),
        ("[model]\nnum_heads = 0", "num_heads must be a whole number of 1 or more"),
        ("[data]\nheld_out = 1.5", "held_out must be a share between 0 and 1"),
        ("[data\n", "is no TOML"),
    ],
)
def test_a_wrong_recipe_is_refused_by_name(toml, sentence, at, capsys):
    Path("r.toml").write_text(toml, encoding="utf-8")
    said = refused(capsys, "train", "text", "fox.txt", "--config", "r.toml", "--out-dir", "a")
    assert sentence in said and not Path("a").exists()


# --- Resuming ------------------------------------------------------------------------------------


def test_resume_refuses_what_contradicts(at, capsys):
    fine("train", "text", "fox.txt", "--out-dir", "a", *SMALL)
    kept = weights("a")
    said = refused(capsys, "train", "--out-dir", "a", "--resume", "--eval-interval", "3")
    assert "begun with eval_interval 2, which 3 contradicts" in said
    Path("wolf.txt").write_text(SENTENCE * 20, encoding="utf-8")
    assert "source" in refused(capsys, "train", "text", "wolf.txt", "--out-dir", "a", "--resume")
    assert "holds a run already" in refused(capsys, "train", "text", "fox.txt", "--out-dir", "a")
    assert "no run in b to resume" in refused(capsys, "train", "--out-dir", "b", "--resume")
    fine("train", "text", "fox.txt", "--out-dir", "a", "--resume", *SMALL)
    assert weights("a") == kept
