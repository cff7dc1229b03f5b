"""Settings: flags, presets, configuration files, and those of a resumed run."""

import dataclasses
import tomllib
from pathlib import Path

import pytest
from commands import SENTENCE, SMALL, fine, refused, weights

from slp_transformer import TransformerConfig
from slp_transformer.tasks.base import TASKS, load_task
from slp_transformer.tasks.run_config import FROM_DATA, PRESETS, load_config
from slp_transformer.training.train_config import TrainConfig

# --- Configurations ------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_every_setting_has_a_flag_and_an_explanation(task, capsys):
    fine("train", task, "--help")
    shown = capsys.readouterr().out
    for owner in (TransformerConfig, TrainConfig, load_task(task).Data):
        for field in dataclasses.fields(owner):
            assert f"    {field.name}: " in owner.__doc__
            if field.name not in (*FROM_DATA, "source"):
                assert f"--{field.name.replace('_', '-')}" in shown


def test_flags_win_over_the_file_and_the_file_over_the_preset(at, capsys):
    Path("mine.toml").write_text(
        '[data]\nsource = "fox.txt"\n[model]\nmodel_dim = 24\n'
        '[train]\nsteps = 7\nmax_grad_norm = "none"\n',
        encoding="utf-8",
    )
    given = ["--config", "mine.toml", "--steps", "9", "--bf16", "True"]
    fine("train", "text", *given, "--print-config")
    printed = tomllib.loads(capsys.readouterr().out)
    assert printed["train"]["steps"] == 9 and printed["train"]["bf16"] is True
    assert printed["model"]["model_dim"] == 24 and printed["train"]["max_grad_norm"] == "none"
    assert printed["train"]["batch_size"] == load_config(task="text").train.batch_size
    assert printed["data"]["source"] == str(at.resolve() / "fox.txt")
    assert not (at / "runs").exists()


@pytest.mark.parametrize("name", PRESETS)
def test_a_saved_configuration_does_not_need_its_preset(name, tmp_path):
    config = load_config(name)
    train = dataclasses.replace(config.train, max_grad_norm=None, early_stopping_patience=3)
    config = dataclasses.replace(config, train=train)
    config.save(tmp_path / "config.toml")
    assert load_config(tmp_path / "config.toml") == config


def test_the_saved_configuration_repeats_the_run(at, monkeypatch):
    fine("train", "text", "fox.txt", "--out-dir", "a", *SMALL, "--dropout", "0.2", "--seed", "5")
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    fine("train", "--config", "../a/config.toml", "--out-dir", "b", "--quiet")
    assert weights("../a") == weights("b")


@pytest.mark.parametrize(
    ("toml", "sentence"),
    [
        ("[train]\nstpes = 3", '[train] has no "stpes": did you mean "steps"?'),
        ("[trani]\nsteps = 3", 'A configuration has no "trani": did you mean "train"?'),
        ("steps = 3", 'A configuration has no "steps"'),
        ("train = 3", "train should be an object, not 3"),
        ('[train]\nsteps = "many"', "steps should be a valid integer, not 'many'"),
        ("[train]\nsteps = true", "steps should be a valid integer, not True"),
        ("init_from = 3", "init_from should be a valid string, not 3"),
        ("[train]\nsteps = 2.5", "steps should be a valid integer"),
        ("[train]\nbf16 = 1", "bf16 should be a valid boolean, not 1"),
        ('[model]\nnorm = "none"', "norm should be 'pre' or 'post', not None"),
        ('[model]\nactivation = "tanh"', "should be 'relu', 'gelu' or 'swiglu'"),
        ("[model]\nvocab_size = 9", '[model] has no "vocab_size"'),
        ("[model]\nnum_heads = 0", "num_heads must be a whole number of 1 or more"),
        ("[data]\nval_split = 1.5", "val_split must be a share between 0 and 1"),
        ('task = "tabs"', "configures another task than text"),
        ('task = "txet"', 'there is no task "txet": did you mean "text"?'),
        ("[data\n", "is not TOML"),
    ],
)
def test_a_wrong_configuration_is_refused_by_name(toml, sentence, at, capsys):
    Path("r.toml").write_text(toml, encoding="utf-8")
    message = refused(capsys, "train", "text", "fox.txt", "--config", "r.toml", "--out-dir", "a")
    assert sentence in message and not Path("a").exists()


# --- Resuming ------------------------------------------------------------------------------------


def test_resume_refuses_what_contradicts(at, capsys):
    fine("train", "text", "fox.txt", "--out-dir", "a", *SMALL)
    kept = weights("a")
    message = refused(capsys, "train", "--out-dir", "a", "--resume", "--eval-interval", "3")
    assert "started with eval_interval 2, not 3" in message
    Path("wolf.txt").write_text(SENTENCE * 20, encoding="utf-8")
    assert "source" in refused(capsys, "train", "text", "wolf.txt", "--out-dir", "a", "--resume")
    assert "configures another task than tabs" in refused(
        capsys, "train", "tabs", "--out-dir", "a", "--resume"
    )
    assert "holds a run already" in refused(capsys, "train", "text", "fox.txt", "--out-dir", "a")
    assert "no run in b to resume" in refused(capsys, "train", "--out-dir", "b", "--resume")
    fine("train", "text", "fox.txt", "--out-dir", "a", "--resume", *SMALL)
    assert weights("a") == kept
