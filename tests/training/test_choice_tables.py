"""Schedules, optimizers, ways to share a model: each entry acts, and one from outside is known."""

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import get_type_hints

import choice_tables
import pytest
import torch
from tiny_training import STREAM, language_model, same, stop_at

from slp_transformer._internal.choices import Choices
from slp_transformer.cli.parsing import parse_command_line
from slp_transformer.tasks.config_files import load_config
from slp_transformer.training import train
from slp_transformer.training.distributed import DDPStrategy
from slp_transformer.training.optimizers import OPTIMIZERS, OptimizerChoice, ParameterGroups
from slp_transformer.training.parallel import PARALLEL, ParallelChoice
from slp_transformer.training.schedules import SCHEDULES, Schedule
from slp_transformer.training.strategy import Strategy, make_strategy
from slp_transformer.training.train_config import TrainConfig

DOCS = Path(__file__).parents[2] / "docs"
TABLES = {"schedule": SCHEDULES, "optimizer": OPTIMIZERS, "parallel": PARALLEL}
PAGES = {"schedule": "command-line.md", "optimizer": "command-line.md", "parallel": "cluster.md"}
TINY = {"steps": 4, "eval_interval": 2, "batch_size": 3, "learning_rate": 0.01, "progress": False}


class Alone(DDPStrategy):
    """A way of sharing from outside."""


def every_weight(model: torch.nn.Module) -> list[torch.nn.Parameter]:
    """Return all parameters, as an optimizer of its own takes them."""
    return list(model.parameters())


def make_sgd(groups: ParameterGroups, config: TrainConfig) -> torch.optim.Optimizer:
    """Make an optimizer with other state than AdamW's."""
    return torch.optim.SGD(groups.own, lr=config.learning_rate, momentum=0.9)


DUMMIES = {
    "schedule": Schedule("every other step", lambda step, *_: float(step % 2)),
    "optimizer": OptimizerChoice(
        "all, with momentum", make_sgd, every_weight, ("momentum_buffer",)
    ),
    "parallel": ParallelChoice("nobody shares", f"{__name__}:Alone"),
}


@pytest.fixture(params=TABLES)
def setting(request) -> Iterator[str]:
    """Add an entry "dummy" from outside to a table, and return the setting's name."""
    TABLES[request.param].add("dummy", DUMMIES[request.param])
    yield request.param
    TABLES[request.param].remove("dummy")


def test_settings_are_chosen_from_the_tables():
    hints = get_type_hints(TrainConfig, include_extras=True)
    found = {n: t for n, hint in hints.items() for t in getattr(hint, "__metadata__", ())}
    assert found == TABLES and all(isinstance(table, Choices) for table in found.values())


def test_every_schedule_has_rates_of_its_own():
    settings = {"steps": 401, "learning_rate": 2.0, "warmup_steps": 3}
    rates = {}
    for name in SCHEDULES:
        config = TrainConfig(**settings, schedule=name)
        rates[name] = [config.learning_rate_at(step) for step in range(401)]
    for one, other in combinations(rates, 2):
        assert rates[one] != rates[other], f"{one} and {other} are the same"


def test_every_schedule_begins_with_the_warmup():
    for name in SCHEDULES:
        config = TrainConfig(steps=11, learning_rate=2.0, warmup_steps=3, schedule=name)
        rates = [config.learning_rate_at(step) for step in range(3)]
        assert rates == pytest.approx([2 / 3, 4 / 3, 2.0]), name


def resumed(how: dict, folder: Path) -> torch.nn.Module:
    """Return a model that was trained with an interruption after two of its steps."""
    with pytest.raises(OSError, match="plug"):
        train(language_model(), STREAM, STREAM, **how, out_dir=folder, report=stop_at(2))
    model = language_model()
    train(model, STREAM, STREAM, **how, out_dir=folder, resume=True)
    return model


def test_every_optimizer_makes_steps_of_its_own_and_resumes_to_the_same_bits(tmp_path):
    models = {}
    for name in OPTIMIZERS:
        how, models[name] = TINY | {"optimizer": name}, language_model()
        train(models[name], STREAM, STREAM, **how)
        assert same(resumed(how, tmp_path / name), models[name])
    for one, other in combinations(models, 2):
        assert not same(models[one], models[other]), f"{one} and {other} are the same"


def test_every_way_of_sharing_is_a_strategy_of_its_own(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    configs = [TrainConfig(steps=1, device="cpu", parallel=name) for name in PARALLEL]
    made = {type(make_strategy(config)) for config in configs}
    assert len(made) == len(PARALLEL) and all(issubclass(kind, Strategy) for kind in made)


@pytest.mark.parametrize("setting", TABLES)
def test_every_entry_says_what_it_is(setting):
    assert all(entry.summary.strip() for entry in TABLES[setting].values())


def test_no_name_acts_as_another():
    config = TrainConfig(steps=9)
    object.__setattr__(config, "schedule", "sine")
    with pytest.raises(KeyError, match="sine"):
        config.learning_rate_at(0)


def test_an_entry_from_outside_is_in_help_docs_and_refusals(setting, capsys, tmp_path):
    table = TABLES[setting]
    with pytest.raises(SystemExit):
        parse_command_line(["train", "text", "--help"])
    printed = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert f"--{setting} {{{','.join(table)}}}" in printed
    assert f'"dummy" ({table["dummy"].summary})' in printed
    page = choice_tables.fill((DOCS / PAGES[setting]).read_text("utf-8"))
    assert all(f"| `{name}` | {entry.summary} |" in page for name, entry in table.items())
    with pytest.raises(ValueError, match=rf'^{setting} must be .*"dummy", not'):
        TrainConfig(steps=1, **{setting: "sine"})
    with pytest.raises(SystemExit):
        parse_command_line(
            ["train", "text", f"--{setting}", "sine", "--out-dir", str(tmp_path / "run")]
        )
    assert "'dummy'" in capsys.readouterr().err


def test_an_entry_from_outside_is_read_from_a_file_and_others_are_refused(setting, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(f'[train]\n{setting} = "dummy"\n', encoding="utf-8")
    assert getattr(load_config(path).train, setting) == "dummy"
    path.write_text(f'[train]\n{setting} = "sine"\n', encoding="utf-8")
    with pytest.raises(ValueError, match=rf'{setting} must be .*"dummy", not \'sine\''):
        load_config(path)


def test_an_entry_from_outside_acts(setting, monkeypatch, tmp_path):
    if setting == "parallel":
        monkeypatch.setenv("WORLD_SIZE", "2")
        assert type(make_strategy(TrainConfig(steps=1, device="cpu", parallel="dummy"))) is Alone
        return
    how, usual, other = TINY | {setting: "dummy"}, language_model(), language_model()
    train(usual, STREAM, STREAM, **TINY)
    train(other, STREAM, STREAM, **how)
    assert not same(usual, other) and same(resumed(how, tmp_path), other)
