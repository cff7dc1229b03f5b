"""A run, or a published model, loaded from its folder."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from slp_transformer.modern.published_folders import is_pretrained_folder
from slp_transformer.tasks.base import LoadedRun, Task, load_task
from slp_transformer.tasks.run_config import (
    CONFIG_FILE,
    TOKENIZER_SETTINGS,
    RunConfig,
    load_config,
    read_tables,
)
from slp_transformer.tasks.text import PublishedTask
from slp_transformer.training.run_folder import (
    CheckpointChoice,
    checkpoint_folder,
    load_lora_base,
    load_tokenizer,
)


def find_task(folder: Path) -> Task:
    """Return the task that a run was trained for; of runs without a config.toml, that is text.

    Raises:
        ValueError: if there is no run.
    """
    if not folder.is_dir():
        raise ValueError(f"There is no folder {folder}: name the folder of a run.")
    if is_pretrained_folder(folder):
        return PublishedTask()
    path = folder / CONFIG_FILE
    return load_task(read_tables(path).get("task", "text") if path.exists() else "text")


def find_config(folder: Path) -> RunConfig | None:
    """Return the configuration of a run; None if it has none.

    Raises:
        ValueError: if it cannot be read.
    """
    path = folder / CONFIG_FILE
    return load_config(path) if path.exists() else None


def load_tokenizer_of(folder: Path, which: CheckpointChoice = "best") -> Any:
    """Return a run's tokenizer.

    Raises:
        ValueError: if there is no run, or it was saved without a tokenizer.
    """
    task = find_task(folder)
    content, path = load_tokenizer(folder, which), checkpoint_folder(folder, which)
    if content is None:
        raise ValueError(f"{path} was saved without a tokenizer, so its tokens have no names.")
    try:
        return task.load_tokenizer(content)
    except ValueError as error:
        raise ValueError(f"{path / 'tokenizer.json'}: {error}") from None


def load_run(folder: Path, which: CheckpointChoice, device_name: str | None) -> LoadedRun:
    """Load a run's model, and what belongs to it.

    Args:
        folder: the run's folder, or that of a published model.
        which: its checkpoint.
        device_name: where the model is to compute; the best device of this machine if None.

    Raises:
        ValueError: if there is no complete checkpoint, or its parts do not fit together.
    """
    from slp_transformer.lora import merge_lora
    from slp_transformer.training.checkpoints import load_model
    from slp_transformer.training.devices import pick_device

    task, device = find_task(folder), pick_device(device_name)
    if isinstance(task, PublishedTask):
        return task.load(folder, device)
    tokenizer, model = load_tokenizer_of(folder, which), load_model(folder, which)
    config: Any = model.config
    if task.model_kind not in [kind.__name__ for kind in type(model).__mro__]:
        raise ValueError(
            f"{folder} holds no {task.model_kind}, as the task {task.name} has, but a "
            f"{type(model).__name__}."
        )
    merge_lora(model)  # the same matrices, made once rather than for each token
    if tokenizer.vocab_size != config.vocab_size:
        raise ValueError(
            f"{checkpoint_folder(folder, which)} is damaged: its tokenizer has "
            f"{tokenizer.vocab_size} tokens, and its model {config.vocab_size}."
        )
    return LoadedRun(task, folder, model.to(device), tokenizer, find_config(folder))


def config_from_run(config: RunConfig, task: Task, run: Path) -> RunConfig:
    """Return a configuration with the model and the tokenizer of a run to begin with.

    Raises:
        ValueError: if there is no such run, or it is of another task.
    """
    name, found = find_task(run).name, find_config(run)
    if name != task.name:
        raise ValueError(f"{run} was trained for the task {name}, not {task.name}.")
    if load_lora_base(checkpoint_folder(run, "best")) is not None:
        raise ValueError(
            f"{run} is a LoRA run: merge it with its base first (`slp-transformer merge`)."
        )
    if found is None:
        raise ValueError(f"{run} has no config.toml to say what model and tokenizer it has.")
    same = {name: v for name, v in vars(found.data).items() if name in TOKENIZER_SETTINGS}
    return replace(config, data=replace(config.data, **same), model=found.model)
