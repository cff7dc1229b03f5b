"""The options of `train`: a preset, configuration files and flags, in layers."""

import argparse
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from slp_transformer._internal.plugins import Libraries, Options
from slp_transformer.cli.console import EXIT_OK, PROGRAM, format_command, format_count, print_result
from slp_transformer.cli.flags import check_task_flags
from slp_transformer.cli.parsing import parse_flags
from slp_transformer.data.text_files import STANDARD_INPUT
from slp_transformer.tasks.base import SavedRun
from slp_transformer.tasks.config_files import load_config
from slp_transformer.tasks.data_settings import DataSettings
from slp_transformer.tasks.registry import TASKS, load_task
from slp_transformer.tasks.run_config import CONFIG_FILE, TOKENIZER_SETTINGS, RunConfig
from slp_transformer.tasks.saved_runs import config_from_run, open_run
from slp_transformer.training.run_folder import (
    delete_old_checkpoints,
    find_checkpoints,
    load_model_spec,
    open_checkpoint,
)
from slp_transformer.training.run_lock import run_lock
from slp_transformer.training.train_config import RESUMABLE_SETTINGS

DataT = TypeVar("DataT", bound=DataSettings)


@dataclass(frozen=True)
class TrainOptions(Options, Generic[DataT]):
    """Train a model.

    Examples:
      slp-transformer train text my-texts --out-dir runs/mine
      slp-transformer train text novel.txt --out-dir runs/novel --tokenizer bpe --steps 5000
      cat *.txt | slp-transformer train text - --out-dir runs/mine
      slp-transformer train text --config shakespeare --out-dir runs/plays
      slp-transformer train pairs train.en --target train.de --out-dir runs/en-de
      slp-transformer train --out-dir runs/mine --resume
      slp-transformer train --out-dir runs/mine --resume --steps 9000     trains further
      slp-transformer train text other-texts --init-from runs/mine --lora-rank 4 --out-dir
      runs/other

    Ctrl-C stops after the current step and saves everything; --resume continues from there, with
    the same result as if nothing had happened. The run's folder holds config.toml, which repeats
    it.

    Attributes:
        run: what is trained, and how.
        out_dir: the folder of the run.
        config: a preset (`slp-transformer info` lists them) or a TOML file; flags override it.
        resume: continue the run in the folder.
        print_config: print all settings as TOML, and stop.
        tensorboard: write curves for TensorBoard.
        quiet: show no progress.
    """

    run: RunConfig[DataT]
    out_dir: Path | None = None
    config: str | None = None
    resume: bool = False
    print_config: bool = False
    tensorboard: bool = False
    quiet: bool = False
    saved: RunConfig[DataT] | None = field(default=None, init=False)  # of the run to be resumed
    initial: SavedRun | None = field(default=None, init=False)  # which it begins with

    def libraries(self) -> Libraries:
        """Return what the task takes for granted."""
        return load_task(self.run.data.task).libraries()


def parse_train(args: Sequence[str]) -> TrainOptions[Any]:
    """Parse the options of `train`: a preset, configuration files and flags, in layers.

    Raises:
        SystemExit: with 0 after help, or if there is nothing to train.
        ValueError: if they are wrong, or contradict each other, the run to be resumed, or what
            there is.
    """
    if "" in args:
        raise ValueError("One of the arguments is empty: name a file, a folder or a value.")
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
    if saved is not None and not saved.exists():
        kept = find_checkpoints(given.out_dir)
        held = f", but a {load_model_spec(kept[-1]).model} without a {CONFIG_FILE}" if kept else ""
        raise ValueError(f"There is no run in {given.out_dir} to resume{held}.")
    files = [file for file in (saved, given.config) if file is not None]
    if name is None and not files:
        if not {"-h", "--help"} & set(rest):
            wrong = (
                f"There is no task {rest[0]}" if rest and rest[0][:1] != "-" else "Name the task"
            )
            raise ValueError(
                f"{wrong}: {PROGRAM} train {'|'.join(TASKS)} (see {PROGRAM} train --help)."
            )
        name = "text"
    layered = load_config(*files, task=name)
    task = load_task(layered.data.task)
    initial: SavedRun | None = None
    if saved is not None and find_checkpoints(given.out_dir):
        initial = SavedRun(task, Path(given.out_dir), layered, open_checkpoint(given.out_dir))
    elif (start := given.init_from or layered.init_from) is not None:
        initial = open_run(start)
        if given.init_from is not None and saved is None:
            layered = config_from_run(layered, task, initial)
    check_task_flags(task.name, task.Data, TrainOptions[DataSettings], "train")
    kind: Any = TrainOptions[task.Data]  # type: ignore[name-defined]  # a class at run time
    options: TrainOptions[Any] = parse_flags(
        kind, f"train {task.name}", rest, TrainOptions(layered)
    )
    config = options.run.resolve_paths(Path())
    if options.print_config:
        print_result(config.to_toml(), end="")
        raise SystemExit(EXIT_OK)
    if options.out_dir is None:
        raise ValueError("Name the folder of the run: --out-dir FOLDER.")
    if saved is not None:
        before = load_config(saved) if given.config else layered
        config = resumed_config(before, config, options.out_dir, initial)
    else:
        before = None
        if config.init_from is not None:
            check_init_from(layered, config)
        task.check(config)
    options = replace(options, run=config)
    object.__setattr__(options, "saved", before)
    object.__setattr__(options, "initial", initial)
    return options


def resumed_config(
    saved: RunConfig[Any], config: RunConfig[Any], folder: Path, run: SavedRun | None
) -> RunConfig[Any]:
    """Return the configuration that a run resumes with.

    Args:
        saved: that of its folder.
        config: that which is asked for.
        folder: its folder.
        run: what it holds; not itself if it has no checkpoint.

    Raises:
        ValueError: if a setting differs that determines the result, or the run has made more steps
            than it should.
        SystemExit: with 0 if the run is finished.
    """
    if getattr(config.data, "source", None) == STANDARD_INPUT:
        config = replace(config, data=saved.data)
    for name, (before, after) in saved.changes(config).items():
        if name not in RESUMABLE_SETTINGS:
            flag = f"--{name.replace('_', '-')}"
            raise ValueError(
                f"The run was started with {name} {before}, not {after}: resume it without {flag}, "
                "or start another run in another folder."
            )
    state = run.checkpoint.run_state if run and run.checkpoint and run.folder == folder else None
    if state is None:
        return config
    steps, state = config.train.steps, replace(state, config=config.train)
    state.check_steps(steps, folder)
    if not state.is_finished():
        return config
    with contextlib.suppress(ValueError), run_lock(folder):  # unless another process is at it
        delete_old_checkpoints(folder, config.train.keep_last)
    why, more = f"it has made {format_count(steps, 'step')}", ("--steps", str(2 * steps))
    if state.step < steps:
        why = f"it stopped early, after step {state.step:,} of {steps:,}"
        more = ("--early-stopping-patience", "None")
    further = format_command("train", "--out-dir", folder, "--resume", *more)
    print_result(f"The run in {folder} is finished: {why}. To train it further:\n  {further}")
    raise SystemExit(EXIT_OK)


def check_init_from(before: RunConfig[Any], config: RunConfig[Any]) -> None:
    """Refuse another model or tokenizer than those of the run to begin with.

    Raises:
        ValueError: naming the setting.
    """
    fixed = {*vars(config.model), *TOKENIZER_SETTINGS} - {"dropout"}
    for name, (kept, asked) in before.changes(config).items():
        if name in fixed:
            instead = ""
            if name == "context_length" and asked < kept:
                instead = f" (--sequence-length {asked} trains on windows that short)"
            raise ValueError(
                f"{config.init_from} has {name} {kept}, not {asked}: leave out "
                f"--{name.replace('_', '-')}{instead}, or begin without --init-from."
            )
