"""Presets and TOML files: from them to the configuration of a run. Nothing here needs PyTorch."""

import json
import tomllib
from collections.abc import Iterable
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from slp_transformer._internal.bounds import MAX_TOML_BYTES, MAX_TOML_DOTS
from slp_transformer._internal.config_checks import suggest_closest_match
from slp_transformer._internal.docs_sections import see
from slp_transformer._internal.json_files import read_bounded, validate_json
from slp_transformer._internal.plugins import load_plugins, record_plugin_problem
from slp_transformer.tasks.registry import TASKS, load_task
from slp_transformer.tasks.run_config import (
    NONE,
    ModelSettings,
    RunConfig,
    Tables,
    replace_values,
    resolve_paths,
)
from slp_transformer.training.train_config import TrainConfig


def find_presets() -> dict[str, Traversable]:
    """Return the files of all presets by name: ours, then those of plug-ins."""
    found: dict[str, Traversable] = {}
    packages = {name: plugin.presets for name, plugin in load_plugins().items() if plugin.presets}
    for plugin, package in {"": "slp_transformer.tasks", **packages}.items():
        try:
            own = sorted(files(package).joinpath("presets").iterdir(), key=lambda file: file.name)
        except (ImportError, OSError) as error:
            record_plugin_problem(f"The presets of the plug-in {plugin} cannot be read: {error}.")
            continue
        for file in own:
            name, dot, suffix = file.name.rpartition(".")
            if suffix == "toml" and found.setdefault(name, file) is not file:
                record_plugin_problem(
                    f'Two plug-ins have a preset "{name}": that of {plugin} is left out.'
                )
    return found


PRESETS = find_presets()


def load_config(*names: str | Path, task: str | None = None) -> RunConfig[Any]:
    """Load a run's configuration from presets and TOML files, later ones overriding earlier ones.

    Args:
        *names: names of presets, or files.
        task: the task's name; that of the last file, or "text", if None.

    Raises:
        ValueError: if there is no such preset or file, it is not TOML, is of another task, or a
            setting has an unknown name or an impossible value.
    """
    tables = [(read_tables(name), str(name)) for name in names]
    named = [table["task"] for table, _ in tables if "task" in table]
    task = task or (named[-1] if named else "text")
    if wrong := [name for table, name in tables if table.get("task", task) != task]:
        raise ValueError(f"{wrong[0]} configures another task than {task}.")
    if task in PRESETS:
        tables.insert(0, (read_tables(task), task))
    try:
        return build_config(task, tables)
    except ValueError as whole:  # of the first file with which it is this that is wrong
        for last, (_, name) in enumerate(tables, start=1):
            try:
                build_config(task, tables[:last])
            except ValueError as error:
                if str(error) == str(whole):
                    raise ValueError(f"{name}: {error}") from None
        raise


def build_config(task: str, tables: Iterable[tuple[Tables, str]]) -> RunConfig[Any]:
    """Return the configuration of a task by tables, each with the name of its preset or file.

    Raises:
        ValueError: if a name is unknown, or a value of the wrong type or impossible.
    """
    Data: Any = load_task(task).Data
    settings = RunConfig(Data(), ModelSettings(), TrainConfig(steps=2000)).to_dict()
    for table, source in tables:
        check_names(table, ("task", *settings), "A configuration")
        for name, value in table.items():
            if isinstance(value, dict) and isinstance(settings[name], dict):
                check_names(value, settings[name], f"[{name}]")
                settings[name] |= value
            elif name != "task":
                settings[name] = value
        if source not in PRESETS:
            resolve_paths(settings, Data.paths, Path(source).parent)
    content = json.dumps(settings, default=str).encode()
    return validate_json(RunConfig[Data], content, "The configuration")


def read_tables(name: str | Path) -> Tables:
    """Read a preset or a TOML file.

    Raises:
        ValueError: if there is none, or it is not TOML.
    """
    preset, path = PRESETS.get(str(name)), Path(name)
    if not (preset or path.is_file() or path.suffix == ".toml"):
        raise ValueError(
            f'There is no preset "{name}": {suggest_closest_match(str(name), PRESETS)} '
            "A configuration of your own is a TOML file."
        )
    content = preset.read_bytes() if preset else read_bounded(path, MAX_TOML_BYTES)
    if any(line.count(b".") > MAX_TOML_DOTS for line in content.split(b"\n")):
        raise ValueError(f"{name} has a line with more than {MAX_TOML_DOTS} dots.")
    try:
        tables = tomllib.loads(content.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ValueError(f"The configuration {name} is not TOML: {error}.") from None
    if tables.get("task", "text") not in list(TASKS):  # a table cannot be looked up
        names = suggest_closest_match(str(tables["task"]), TASKS)
        raise ValueError(f'{name}: there is no task "{tables["task"]}": {names}')
    return replace_values(tables, NONE, None)


def check_names(names: Iterable[str], known: Iterable[str], where: str) -> None:
    """Refuse names that no setting has.

    Raises:
        ValueError: naming the first one, and the closest right one.
    """
    known = list(known)
    for name in names:
        if name not in known:
            raise ValueError(
                f'{where} has no "{name}": {suggest_closest_match(name, known)}'
                f"{see('configuration')}"
            )
