"""Train a model."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from slp_transformer._internal.atomic_write import (
    check_is_no_link,
    remove_path,
    remove_unfinished_files,
)
from slp_transformer._internal.docs_sections import see
from slp_transformer._internal.progress_bar import progress_bars_disabled
from slp_transformer._internal.signals import StoppedBySignal
from slp_transformer.cli.console import (
    MODULE,
    format_command,
    format_count,
    print_remarks,
    print_result,
    print_status,
    rank,
    world_size,
)
from slp_transformer.cli.train_options import TrainOptions
from slp_transformer.config import TransformerConfig
from slp_transformer.data.dataset import Dataset
from slp_transformer.data.text_files import is_stream, save_stdin
from slp_transformer.data.token_file import verify_token_folder
from slp_transformer.lora import add_lora
from slp_transformer.tasks.base import TOKENS, SavedRun, Task
from slp_transformer.tasks.registry import load_task
from slp_transformer.tasks.run_config import CONFIG_FILE, NONE, RunConfig
from slp_transformer.tasks.saved_runs import read_current
from slp_transformer.training.callbacks import TENSORBOARD_FOLDER
from slp_transformer.training.checkpoints import load_base_weights
from slp_transformer.training.devices import check_memory
from slp_transformer.training.lora_base import keep_lora_base, locate_lora_base
from slp_transformer.training.run_folder import (
    EvalRecord,
    LoraBase,
    find_checkpoints,
    step_of_checkpoint,
)
from slp_transformer.training.run_lock import run_lock
from slp_transformer.training.strategy import Strategy, make_strategy
from slp_transformer.training.trainer import train

EARLIER = "# until step "  # begins a comment of config.toml on a setting that was changed
STDIN_COPY = "text.txt"  # where a run keeps what it read from standard input
NEW_FILES = (CONFIG_FILE, STDIN_COPY, TOKENS, TENSORBOARD_FOLDER)


def execute(options: TrainOptions[Any]) -> None:
    """Train, and print what to do next.

    Raises:
        ValueError: if the data or the folder cannot be used.
        StoppedBySignal: on Ctrl-C and other signals, with the command that resumes.
    """
    config, folder = options.run, options.out_dir
    assert folder is not None
    with contextlib.ExitStack() as stack:
        if options.quiet:
            stack.enter_context(progress_bars_disabled())
        if rank() == 0:
            stack.enter_context(run_lock(folder))
            if find_checkpoints(folder) and not options.resume:
                raise ValueError(
                    f"{folder} holds a run already: resume it with --resume, or choose another "
                    f"folder.{see('resume')}"
                )
            stack.enter_context(cleanup_on_error(folder))
        try:
            records = prepare_and_train(options, folder)
        except KeyboardInterrupt as stopped:
            number = getattr(stopped, "signal_number", None)
            raise StoppedBySignal(format_resume_hint(folder, config), number) from None
    print_summary(folder, config, records)


def prepare_and_train(options: TrainOptions[Any], folder: Path) -> list[EvalRecord]:
    """Prepare the data and the model, and train."""
    config, task = options.run, load_task(options.run.data.task)
    task.initial = options.initial
    if config.lora_rank is not None:  # can the model have it? rather now than after the data
        with torch.device("meta"):
            add_lora(task.build_model(config.model.to_config(1)), config.lora_rank)
    strategy = make_strategy(config.train, folder)
    # Whatever words the data will have: a model too large is refused before they are read.
    check_step_memory(task, config, config.model.to_config(1), strategy)
    with strategy:  # rank 0 prepares the data
        data = strategy.run_on_rank_zero(
            prepare_data_and_save_config, task, config, folder, options.saved
        )
    if data is None:
        data = task.open(config, folder / TOKENS)
    torch.manual_seed(config.train.seed)
    model_config = task.model_config(config, data.tokenizer)
    check_step_memory(task, config, model_config, strategy)
    model = task.build_model(model_config)
    train_data, val_data = task.sources(config, data)
    base = load_initial_weights(model, options.initial, config.lora_rank, folder)
    print_overview(task, data, model)
    return train(
        model,
        train_data,
        val_data,
        config.train,
        out_dir=folder,
        resume=options.resume,
        tokenizer=data.tokenizer.to_json(),
        progress=not options.quiet and rank() == 0,
        tensorboard=options.tensorboard,
        lora_base=base,
        report=None if options.quiet else task.on_eval(model, data),
    )


def check_step_memory(
    task: Task[Any, Any, Any],
    config: RunConfig[Any],
    model_config: TransformerConfig,
    strategy: Strategy,
) -> None:
    """Refuse a model whose training step takes more memory than the device has.

    Raises:
        ValueError: saying what it needs at the least, and what to change.
    """
    single = strategy.world_size == 1
    length = config.train.sequence_length or model_config.context_length
    batch = config.train.batch_tokens or config.train.batch_size * length
    check_memory(
        model_config,
        strategy.device,
        copies=4 if single and config.lora_rank is None else 1,  # LoRA trains few numbers
        batch=batch if single else 0,
        encoder_decoder=task.model_kind == "EncoderDecoder",
    )


def prepare_data_and_save_config(
    task: Task[Any, Any, Any], config: RunConfig[Any], folder: Path, saved: RunConfig[Any] | None
) -> Dataset:
    """Prepare the data, and write the configuration once everything is known to fit.

    Args:
        task: the task.
        config: the configuration.
        folder: the run's folder.
        saved: the configuration that a run was last saved with; None for a new run.

    Raises:
        ValueError: if there is no data, or too little, or a link where data would be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if saved is None:  # a user may have put the tokens on another disk since
        check_is_no_link(folder / TOKENS)
        remove_unfinished_files(folder / TOKENS)
    source = getattr(config.data, "source", None)
    if saved is None and source is not None and is_stream(source):
        copy = str(save_stdin((folder / STDIN_COPY).resolve(), source))
        config = replace(config, data=replace(config.data, source=copy))
    if saved is None:
        data = task.prepare(config, folder / TOKENS)
        config.save(folder / CONFIG_FILE)
        return data
    verify_token_folder(folder / TOKENS)
    data = task.open(config, folder / TOKENS)
    config.save(folder / CONFIG_FILE, format_earlier_settings(saved, config, folder))
    return data


def format_earlier_settings(
    saved: RunConfig[Any], config: RunConfig[Any], folder: Path
) -> list[str]:
    """Return comments on the settings that a run had before it was resumed with others."""
    path, there = folder / CONFIG_FILE, find_checkpoints(folder)
    lines = path.read_text(encoding="utf-8").splitlines()
    comments = [line for line in lines if line.startswith(EARLIER)]
    for name, (before, _) in saved.changes(config).items():
        value = NONE if before is None else before
        comments.append(
            f"{EARLIER}{step_of_checkpoint(there[-1]) if there else 0}: {name} = {value!r}"
        )
    return comments


def load_initial_weights(
    model: nn.Module, run: SavedRun | None, rank: int | None, folder: Path
) -> LoraBase | None:
    """Load the weights that a new run begins with, if any; for LoRA add A and B.

    Args:
        model: the model.
        run: the opened run that it begins with, or is when it is resumed.
        rank: r of LoRA.
        folder: its own folder.

    Returns:
        The base that A and B belong to; None without LoRA.

    Raises:
        ValueError: if the base is gone, or was changed since the run was started.
    """
    own = run.checkpoint if run is not None and run.folder == folder else None
    if run is None or (own is not None and rank is None):
        return None
    if rank is None:
        return read_current(run, lambda run: load_base_weights(model, *weights_folder(run)))
    if own is not None:
        base = own.lora_base
    else:
        base = read_current(run, lambda run: keep_lora_base(*weights_folder(run), rank))
    if base is None:
        raise ValueError(f"{folder} is not a LoRA run: start a new one with --init-from.")
    place = Path(base.checkpoint) if own is None else locate_lora_base(own.folder, base)
    load_base_weights(model, place, base.published)
    add_lora(model, base.rank)
    return base


def weights_folder(run: SavedRun) -> tuple[Path, bool]:
    """Return the folder of an opened run's weights, and whether it is a published model's."""
    return (run.checkpoint.folder, False) if run.checkpoint else (run.folder, True)


def print_overview(task: Task[Any, Any, Any], data: Dataset, model: nn.Module) -> None:
    """Print what is trained on what."""
    print_remarks(data.warnings)
    if languages := getattr(data.tokenizer, "languages", None):
        print_status(f"From {' to '.join(languages)}.")
    size = sum(W.numel() for W in model.parameters())
    trainable = sum(W.numel() for W in model.parameters() if W.requires_grad)
    print_status(
        f"{len(data.train):,} training {task.unit}, {len(data.val):,} validation {task.unit}; "
        f"vocabulary of {data.tokenizer.vocab_size:,}; model of {size:,} parameters"
        f"{f', {trainable:,} of them trainable' if trainable < size else ''}."
    )
    if names := data.val_names:
        more = f", and {len(names) - 1} more" if len(names) > 1 else ""
        print_status(f"Held out: {names[0]}{more}.")


@contextlib.contextmanager
def cleanup_on_error(folder: Path) -> Iterator[None]:
    """On an error before the first checkpoint, remove what this process put into the folder.

    Nothing else in it is touched, whoever put it there, and whenever. What cannot be removed stays:
    it does not hide the error that led here.
    """
    before = set(folder.iterdir())
    try:
        yield
    except BaseException:
        names = () if find_checkpoints(folder) else NEW_FILES
        for path in {folder / name for name in names} - before:
            remove_path(path)
        remove_unfinished_files(folder)
        raise


def format_resume_hint(folder: Path, config: RunConfig[Any]) -> str:
    """Return what to print after Ctrl-C."""
    if not find_checkpoints(folder):
        return "Stopped before the first step; nothing was saved."
    step = step_of_checkpoint(find_checkpoints(folder)[-1])
    again = ("train", "--out-dir", folder, "--resume")
    how = f"To resume:\n  {format_command(*again)}"
    if world_size() > 1:
        line = format_command(*again, program=MODULE)
        how = f"To resume, start torchrun as before, with:\n  {line}"
    return f"Stopped; step {step} of {config.train.steps} is saved. {how}"


def print_summary(folder: Path, config: RunConfig[Any], records: Sequence[EvalRecord]) -> None:
    """Print the result, and a command that uses the model."""
    best, last = min(records, key=lambda record: record.val_loss), records[-1]
    early = " (stopped early)" if last.step < config.train.steps else ""
    print_result(
        f"Trained {format_count(last.step, 'step')}{early}. Best val loss {best.val_loss:.4f}, at "
        f"step {best.step:,}."
    )
    if last.full_val_loss is not None:
        print_result(
            f"That is the loss on {config.train.max_eval_samples:,} validation sequences; on all "
            f"of them, after the last step, it is {last.full_val_loss:.4f}."
        )
    following = load_task(config.data.task).next_command(folder)
    print_result(f"The model is in {folder}. To use it:\n  {format_command(*following)}")
