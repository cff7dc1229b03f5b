"""Settings: flags, presets, configuration files, and those of a resumed run."""

import dataclasses
import pickle
import re
import tomllib
from pathlib import Path

import pytest
from commands import SMALL, fine, weights

from slp_transformer import TransformerConfig
from slp_transformer.modern import ModernConfig
from slp_transformer.tasks.config_files import PRESETS, load_config
from slp_transformer.tasks.registry import TASKS, load_task
from slp_transformer.tasks.run_config import FROM_DATA, ModelSettings
from slp_transformer.training.train_config import TrainConfig


@pytest.mark.parametrize("task", TASKS)
def test_every_setting_has_a_flag_and_an_explanation(task, capsys):
    fine("train", task, "--help")
    shown = capsys.readouterr().out
    for owner in (ModelSettings, TrainConfig, load_task(task).Data):
        for field in dataclasses.fields(owner):
            assert f"    {field.name}: " in owner.__doc__
            if field.name != "source":
                assert f"--{field.name.replace('_', '-')}" in shown


def test_the_settings_are_those_of_the_book_s_model_and_make_it():
    book = {f.name: f.default for f in dataclasses.fields(TransformerConfig)}
    ours = {f.name: f.default for f in dataclasses.fields(ModelSettings)}
    assert book.keys() - ours.keys() == set(FROM_DATA)
    assert ModelSettings().to_config(23) == TransformerConfig(23)
    modern = {f.name for f in dataclasses.fields(ModernConfig)}
    assert (
        ours.keys() <= modern
        and ours.items()
        >= {name: value for name, value in book.items() if name not in FROM_DATA}.items()
    )
    for name, value in {"qk_norm": True, "positions": "rotary", "activation": "relu2"}.items():
        settings = ModelSettings(**{name: value})
        assert settings.modern_parts() == [name] and type(settings.to_config(23)) is ModernConfig


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


def test_the_file_that_is_wrong_is_named_and_not_one_that_the_next_completes(tmp_path):
    first, second = tmp_path / "a.toml", tmp_path / "b.toml"
    first.write_text("[train]\ncooldown_steps = 5\n", encoding="utf-8")
    second.write_text('[train]\nschedule = "wsd"\nlearning_rate = -1.0\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"b\.toml: .*learning_rate must be"):
        load_config(first, second)
    with pytest.raises(ValueError, match=r"a\.toml: .*cooldown_steps belongs to"):
        load_config(first)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"a." * 100 + b"a = 1", 'no "a": there are data'),
        (b"a." * 101 + b"a = 1", "a line with more than 100 dots"),
        (b"#" * (1 << 19) + b"#", "is too large: it should have at most 524,288 bytes"),
        (b"\xff = 1", "is not TOML"),
    ],
)
def test_a_configuration_that_takes_long_to_read_is_refused_before(content, why, tmp_path):
    """Of a key of 100,000 parts Python's reader makes more than 20 GB."""
    path = tmp_path / "long.toml"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"long.toml.*{why}"):
        load_config(path)


def test_settings_of_a_model_say_what_they_are_and_can_be_sent_to_another_process():
    made = ModelSettings(num_blocks=3)
    assert pickle.loads(pickle.dumps(made)) == made  # our own bytes
    named = re.findall(r"^    (\w+): ", ModelSettings.__doc__, re.MULTILINE)
    assert named == [each.name for each in dataclasses.fields(made)]
