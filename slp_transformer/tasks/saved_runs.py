"""A run, or a published model, in its folder. Nothing here needs PyTorch on import."""

from collections.abc import Callable
from dataclasses import fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from slp_transformer._internal.docs_sections import see
from slp_transformer._internal.plugins import load_plugins
from slp_transformer.modern.published_folders import is_pretrained_folder
from slp_transformer.tasks.base import LoadedRun, SavedRun, Task
from slp_transformer.tasks.config_files import load_config
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
    open_checkpoint,
    with_retries_if_run_changes,
)

T = TypeVar("T")
PUBLISHED_WINDOW = 512  # tokens of a training window of a published model, if nobody says how many


def resolve_run(run: Path) -> Path:
    """Return a run's folder: as it is or, where there is none, that of a model by its name."""
    for plugin in load_plugins().values():
        if not run.exists() and str(run) in plugin.models:
            package, _, folder = plugin.models[str(run)].partition(":")
            return Path(str(files(package))) / folder
    return run


def find_run(folder: Path) -> SavedRun:
    """Find a run, without a checkpoint yet; of runs without a config.toml the task is text.

    Raises:
        ValueError: if there is no run, or its config.toml cannot be read.
    """
    if not folder.is_dir():
        raise ValueError(
            f"There is no folder {folder}: name the folder of a run, or of a published model (hf "
            "download OWNER/NAME --local-dir FOLDER fetches one)." + see("published models")
        )
    if is_pretrained_folder(folder):
        return SavedRun(PublishedTask(), folder)
    path = folder / CONFIG_FILE
    config = load_config(path) if path.exists() else None
    return SavedRun(load_task("text" if config is None else config.data.task), folder, config)


def open_run(run: str | Path | SavedRun, which: CheckpointChoice = "best") -> SavedRun:
    """Open a run: read each of its files of JSON and TOML once.

    Args:
        run: the folder of a run, or of a published model; or what `find_run` found.
        which: its checkpoint.

    Raises:
        ValueError: if there is no run, or no complete checkpoint in it.
    """
    found = run if isinstance(run, SavedRun) else find_run(Path(run))
    if isinstance(found.task, PublishedTask):
        return found
    return replace(found, checkpoint=open_checkpoint(found.folder, which))


def read_current(run: SavedRun, read: Callable[[SavedRun], T]) -> T:
    """Call a function that reads the weights of an opened run.

    If a process that trains in the run has deleted the opened checkpoint, or one that it is to be
    averaged with, it is called with the run opened anew: what it reads is always of one state.

    Raises:
        ValueError: by the function, or if the run changes all the time.
    """

    @with_retries_if_run_changes
    def read_or_reopen(folder: Path) -> T:
        checkpoint = run.checkpoint
        if checkpoint is None or all(folder.exists() for folder in checkpoint.averaged):
            return read(run)
        return read(open_run(folder, checkpoint.which))

    return read_or_reopen(run.folder)


def load_run(
    run: SavedRun, device_name: str | None = None, adapter: Path | None = None
) -> LoadedRun:
    """Load an opened run's model, and what belongs to it.

    Args:
        run: the run, or a published model.
        device_name: where the model is to compute; the best device of this machine if None.
        adapter: the folder of a LoRA adapter in the layout of peft, to be merged with the model.

    Raises:
        ValueError: if its parts do not fit together.
    """
    from slp_transformer.training.devices import pick_device

    device = pick_device(device_name)
    loaded = read_current(run, lambda run: run.task.load(run, device))
    if adapter is not None:
        from slp_transformer.lora import merge_lora
        from slp_transformer.modern.adapters import load_adapter

        load_adapter(loaded.model, adapter)
        merge_lora(loaded.model)
    return loaded


def config_from_run(
    config: RunConfig[Any], task: Task[Any, Any, Any], run: SavedRun
) -> RunConfig[Any]:
    """Return a configuration with the model and the tokenizer of a run to begin with.

    Raises:
        ValueError: if it is of another task.
    """
    if run.checkpoint is None and task.name == "text":
        return config_from_published(config, run.folder)
    if run.task.name != task.name:
        raise ValueError(f"{run.folder} was trained for the task {run.task.name}, not {task.name}.")
    if run.checkpoint is not None and run.checkpoint.lora_base is not None:
        raise ValueError(
            f"{run.folder} is a LoRA run: merge it with its base first (`slp-transformer merge`)."
            + see("lora")
        )
    if run.config is None:
        raise ValueError(f"{run.folder} has no config.toml to say what model and tokenizer it has.")
    same = {name: v for name, v in vars(run.config.data).items() if name in TOKENIZER_SETTINGS}
    return replace(config, data=replace(config.data, **same), model=run.config.model)


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
