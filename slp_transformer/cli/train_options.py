"""The options of `train`: presets, configuration files and flags in layers. No PyTorch here."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from slp_transformer._internal.atomic_write import require_extra
from slp_transformer.cli.console import EXIT_OK, PROGRAM, command, print_result, rank
from slp_transformer.cli.options import Train
from slp_transformer.data.text_files import STANDARD_INPUT
from slp_transformer.tasks.base import Task
from slp_transformer.tasks.loaded_run import find_task
from slp_transformer.tasks.registry import TASKS, load_task
from slp_transformer.tasks.run_config import (
    CONFIG_FILE,
    FROM_DATA,
    ModelSettings,
    RunConfig,
    load_config,
    override,
    read_tables,
)
from slp_transformer.training.run_folder import (
    checkpoint_folder,
    delete_old_checkpoints,
    find_checkpoints,
    load_lora_base,
    load_model_spec,
    load_tokenizer,
    load_trainer_state,
    run_lock,
)
from slp_transformer.training.train_config import RESUMABLE_SETTINGS

STDIN_COPY = "text.txt"  # where a run keeps what it read from standard input


def parse_train(args: Sequence[str]) -> Train:
    """Parse the options of `train`.

    Raises:
        SystemExit: with 2 if they are wrong, with 0 if there is nothing to train.
        ValueError: if they contradict each other, the run to be resumed, or what there is.
    """
    name, rest = (args[0], args[1:]) if args and args[0] in TASKS else (None, args)
    peek = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for flag in ("--out-dir", "--config", "--init-from"):
        peek.add_argument(flag)
    peek.add_argument("--resume", action="store_true")
    try:
        given, _ = peek.parse_known_args(list(rest))
    except argparse.ArgumentError as error:
        raise ValueError(f"{error}.") from None
    saved = Path(given.out_dir) / CONFIG_FILE if given.out_dir and given.resume else None
    if given.resume and saved is not None and not saved.exists():
        raise ValueError(f"There is no run in {given.out_dir} to resume.")
    if name is None and saved is None and given.config is None:
        if not rest or rest[0] not in ("-h", "--help"):
            raise ValueError(
                f"Name the task: {PROGRAM} train {'|'.join(TASKS)} (see {PROGRAM} train --help)."
            )
        name = "text"
    base = load_config(*([saved] if saved else []), task=name if saved is None else None)
    if name not in (None, base.data.task):
        raise ValueError(f"The run in {given.out_dir} is of the task {base.data.task}, not {name}.")
    layered = base
    if given.config is not None:
        name = name or read_tables(given.config).get("task", "text")
        layered = load_config(given.config, task=name)
        if saved is not None:
            tables = {n: t for n, t in read_tables(given.config).items() if n != "task"}
            layered = override(base, tables)
    task = load_task(layered.data.task)
    if given.init_from is not None and saved is None:
        layered = config_from_run(layered, task, Path(given.init_from))
    tyro = require_extra("tyro", "Commands")
    options = tyro.cli(
        Train[task.Data],
        args=list(rest),
        default=Train(layered),
        prog=f"{PROGRAM} train {task.name}",
        config=(tyro.conf.OmitArgPrefixes,),
        console_outputs=rank() == 0,
    )
    config = options.run.resolve_paths(Path())
    options = replace(options, run=config)
    if options.print_config:
        print_result(config.to_toml(), end="")
        raise SystemExit(EXIT_OK)
    if options.out_dir is None:
        raise ValueError("Name the folder of the run: --out-dir FOLDER.")
    if saved is not None:
        return replace(options, run=check_resume(base, config, options.out_dir))
    if find_checkpoints(options.out_dir):
        raise ValueError(
            f"{options.out_dir} holds a run already: resume it with --resume, or choose another "
            "folder."
        )
    if config.init_from is not None:
        check_init_from(layered, config)
    task.check(config)
    return options


def changed_settings(before: RunConfig, after: RunConfig) -> dict[str, tuple[Any, Any]]:
    """Return the settings that differ, by name, with both values."""
    pairs = {}
    for name in ("data", "model", "train"):
        old, new = vars(getattr(before, name)), vars(getattr(after, name))
        pairs |= {field: (old[field], new[field]) for field in old}
    for field in ("init_from", "lora_rank"):
        pairs[field] = getattr(before, field), getattr(after, field)
    return {field: values for field, values in pairs.items() if values[0] != values[1]}


# --- Resuming ----------------------------------------------------------------------------------


def check_resume(saved: RunConfig, config: RunConfig, folder: Path) -> RunConfig:
    """Return the configuration that a run resumes with.

    Raises:
        ValueError: if a setting differs that determines the result, or the saved configuration is
            not that of the checkpoint.
        SystemExit: with 0 if the run is finished.
    """
    if getattr(config.data, "source", None) == STANDARD_INPUT:
        config = replace(config, data=saved.data)
    for name, (before, after) in changed_settings(saved, config).items():
        if name not in RESUMABLE_SETTINGS:
            flag = f"--{name.replace('_', '-')}"
            raise ValueError(
                f"The run was started with {name} {before}, not {after}: resume it without {flag}, "
                "or start another run in another folder."
            )
    if find_checkpoints(folder):
        check_model(config, folder)
        exit_if_finished(config, folder)
    return config


def check_model(config: RunConfig, folder: Path) -> None:
    """Refuse a configuration whose model is not the checkpoint's, before it is built.

    Raises:
        ValueError: naming the first difference.
    """
    kept = load_model_spec(checkpoint_folder(folder)).config
    if kept is None:
        return
    said = config.model.to_config(kept.vocab_size).to_dict()
    for name, value in kept.to_dict().items():
        if name not in FROM_DATA and said[name] != value:
            raise ValueError(
                f"{folder / CONFIG_FILE} says {name} {said[name]}, but the checkpoint has {value}: "
                "write that."
            )


def exit_if_finished(config: RunConfig, folder: Path) -> None:
    """Say that a run is finished, if it is, and how to train it further.

    Raises:
        SystemExit: with 0, if it is.
        ValueError: if it has made more steps than it should make.
    """
    state = load_trainer_state(checkpoint_folder(folder))
    if state is None:
        return
    steps, patience = config.train.steps, config.train.early_stopping_patience
    if state.step > steps:
        raise ValueError(
            f"The run in {folder} has made {state.step} steps already: choose as many or more, "
            f"not {steps}."
        )
    if state.step == steps and not state.losses:
        why, more = f"all of its {steps:,} steps are done", ("--steps", str(2 * steps))
    elif patience is not None and state.evals_since_best() >= patience:
        why = f"it stopped early, after {state.step:,} of {steps:,} steps"
        more = ("--early-stopping-patience", "None")
    else:
        return
    if rank() == 0:
        with run_lock(folder):  # which goes with all that a killed process left
            delete_old_checkpoints(folder, config.train.keep_last)
    further = command("train", "--out-dir", folder, "--resume", *more)
    print_result(f"The run in {folder} is finished: {why}. To train it further:\n  {further}")
    raise SystemExit(EXIT_OK)


# --- Beginning with another run ------------------------------------------------------------------


def config_from_run(config: RunConfig, task: Task, run: Path) -> RunConfig:
    """Return a configuration with the model and the tokenizer of a run to begin with.

    Raises:
        ValueError: if there is no such run, or it is of another task.
    """
    found = find_task(run)
    folder = checkpoint_folder(run, "best")
    spec, tokenizer = load_model_spec(folder), load_tokenizer(run, "best")
    if found.name != task.name:
        raise ValueError(f"{run} was trained for the task {found.name}, not {task.name}.")
    if spec.model != task.model_kind or spec.config is None or tokenizer is None:
        raise ValueError(f"{run} holds no {task.model_kind} with its tokenizer.")
    if load_lora_base(folder) is not None:
        raise ValueError(
            f"{run} is a LoRA run: merge it with its base first, by "
            f"{command('merge', run, '--out-dir', 'MERGED')}."
        )
    model = {n: v for n, v in spec.config.to_dict().items() if n not in FROM_DATA}
    data = replace(config.data, **task.tokenizer_settings(tokenizer))
    return replace(config, data=data, model=ModelSettings(**model))


def check_init_from(before: RunConfig, config: RunConfig) -> None:
    """Refuse another model or tokenizer than those of the run to begin with.

    Raises:
        ValueError: naming the setting.
    """
    fixed = {*vars(config.model), "tokenizer", "vocab_size", "shared_vocabulary"} - {"dropout"}
    for name, (kept, asked) in changed_settings(before, config).items():
        if name in fixed:
            raise ValueError(
                f"{config.init_from} has {name} {kept}, not {asked}: leave out "
                f"--{name.replace('_', '-')}, or begin without --init-from."
            )
