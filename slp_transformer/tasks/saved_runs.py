"""A run, or a published model, in its folder. Nothing here needs PyTorch on import."""

from dataclasses import fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from slp_transformer._internal.docs_sections import see
from slp_transformer._internal.plugins import load_plugins
from slp_transformer.modern.published_folders import is_pretrained_folder
from slp_transformer.tasks.base import LoadedRun, Task
from slp_transformer.tasks.config_files import load_config, read_tables
from slp_transformer.tasks.registry import load_task
from slp_transformer.tasks.run_config import (
    CONFIG_FILE,
    TOKENIZER_SETTINGS,
    ModelSettings,
    RunConfig,
)
from slp_transformer.tasks.text import PublishedTask
from slp_transformer.training.run_folder import (
    CheckpointChoice,
    checkpoint_folder,
    load_lora_base,
    with_retries_if_run_changes,
)

PUBLISHED_WINDOW = 512  # tokens of a training window of a published model, if nobody says how many


def resolve_run(run: Path) -> Path:
    """Return a run's folder: as it is or, where there is none, that of a model by its name."""
    for plugin in load_plugins().values():
        if not run.exists() and str(run) in plugin.models:
            package, _, folder = plugin.models[str(run)].partition(":")
            return Path(str(files(package))) / folder
    return run


def find_task(folder: Path) -> Task[Any, Any, Any]:
    """Return the task that a run was trained for; of runs without a config.toml, that is text.

    Raises:
        ValueError: if there is no run.
    """
    if not folder.is_dir():
        raise ValueError(
            f"There is no folder {folder}: name the folder of a run, or of a published model (hf "
            "download OWNER/NAME --local-dir FOLDER fetches one)." + see("published models")
        )
    if is_pretrained_folder(folder):
        return PublishedTask()
    path = folder / CONFIG_FILE
    return load_task(read_tables(path).get("task", "text") if path.exists() else "text")


def find_config(folder: Path) -> RunConfig[Any] | None:
    """Return the configuration of a run; None if it has none.

    Raises:
        ValueError: if it cannot be read.
    """
    path = folder / CONFIG_FILE
    return load_config(path) if path.exists() else None


@with_retries_if_run_changes
def load_tokenizer_of(folder: Path, which: CheckpointChoice = "best") -> Any:
    """Return a run's tokenizer.

    Raises:
        ValueError: if there is no run, or it was saved without a tokenizer.
    """
    return find_task(folder).tokenizer_of(folder, which)


def load_run(
    folder: Path, which: CheckpointChoice, device_name: str | None, adapter: Path | None = None
) -> LoadedRun:
    """Load a run's model, and what belongs to it.

    Args:
        folder: the run's folder, or that of a published model.
        which: its checkpoint.
        device_name: where the model is to compute; the best device of this machine if None.
        adapter: the folder of a LoRA adapter in the layout of peft, to be merged with the model.

    Raises:
        ValueError: if there is no complete checkpoint, or its parts do not fit together.
    """
    from slp_transformer.training.devices import pick_device

    run = find_task(folder).load(folder, which, pick_device(device_name))
    if adapter is not None:
        from slp_transformer.lora import merge_lora
        from slp_transformer.modern.adapters import load_adapter

        load_adapter(run.model, adapter)
        merge_lora(run.model)
    return replace(run, config=find_config(folder))


def config_from_run(config: RunConfig[Any], task: Task[Any, Any, Any], run: Path) -> RunConfig[Any]:
    """Return a configuration with the model and the tokenizer of a run to begin with.

    Raises:
        ValueError: if there is no such run, or it is of another task.
    """
    name = find_task(run).name
    if name == PublishedTask.name and task.name == "text":
        return config_from_published(config, run)
    found = find_config(run)
    if name != task.name:
        raise ValueError(f"{run} was trained for the task {name}, not {task.name}.")
    if load_lora_base(checkpoint_folder(run, "best")) is not None:
        raise ValueError(
            f"{run} is a LoRA run: merge it with its base first (`slp-transformer merge`)."
            + see("lora")
        )
    if found is None:
        raise ValueError(f"{run} has no config.toml to say what model and tokenizer it has.")
    same = {name: v for name, v in vars(found.data).items() if name in TOKENIZER_SETTINGS}
    return replace(config, data=replace(config.data, **same), model=found.model)


def config_from_published(config: RunConfig[Any], folder: Path) -> RunConfig[Any]:
    """Return a configuration with the model of a published one to begin with, and its tokenizer.

    A window has at most `PUBLISHED_WINDOW` tokens if nothing else is said: few machines can train
    on windows as long as published models read.

    Raises:
        ValueError: if the model cannot be loaded, or has no tokenizer.
    """
    from slp_transformer.modern.hf_tokenizer import load_tokenizer
    from slp_transformer.modern.pretrained import read_published

    published = read_published(folder)
    model, kind = published.config, published.model.rpartition(":")[2]
    if kind != "ModernLM":
        raise ValueError(f"{folder} holds a model of class {kind}, which cannot continue a text.")
    load_tokenizer(folder, model)
    settings = {field.name: getattr(model, field.name) for field in fields(ModelSettings)}
    length = config.train.sequence_length or min(PUBLISHED_WINDOW, model.context_length)
    train = replace(config.train, sequence_length=length)
    return replace(config, model=ModelSettings(**settings), train=train)
