"""Merge a LoRA run with its base."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from slp_transformer._internal.atomic_write import atomic_write, check_is_no_link
from slp_transformer._internal.plugins import Options
from slp_transformer.cli.console import format_command, print_result
from slp_transformer.cli.run_options import check_run
from slp_transformer.modern.published_folders import is_pretrained_folder
from slp_transformer.tasks.base import TOKENS
from slp_transformer.tasks.data_settings import Positional
from slp_transformer.tasks.run_config import CONFIG_FILE
from slp_transformer.tasks.saved_runs import find_config, find_task
from slp_transformer.training.run_folder import (
    CheckpointChoice,
    checkpoint_folder,
    find_checkpoints,
    load_lora_base,
    load_tokenizer,
    step_of_checkpoint,
    with_retries_if_run_changes,
)
from slp_transformer.training.run_lock import run_lock


@dataclass(frozen=True)
class MergeOptions(Options):
    """Merge a LoRA run with its base into a run with all weights of its own.

    A run of `train --lora-rank` keeps A and B alone, and needs the run that it began with. Both
    runs stay as they are.

    Attributes:
        run: the folder of a LoRA run.
        out_dir: the folder of the merged run.
        checkpoint: the one with the lowest validation loss, or the last one.
    """

    run: Positional[Path]
    out_dir: Path
    checkpoint: Literal["best", "last"] = "best"

    def check(self) -> None:
        """Refuse a folder without a run.

        Raises:
            ValueError: naming it.
        """
        check_run(self.run, self.checkpoint)


def execute(options: MergeOptions) -> None:
    """Merge, and print how to use the new run.

    Raises:
        ValueError: if it is not a LoRA run, its base is gone, or the folder cannot be used.
    """
    from slp_transformer.cli.train import cleanup_on_error
    from slp_transformer.training.checkpoints import save_checkpoint

    run, folder, which = options.run, options.out_dir, options.checkpoint
    find_task(run)
    if is_pretrained_folder(run) or load_lora_base(checkpoint_folder(run, which)) is None:
        raise ValueError(f"{run} is not a LoRA run.")
    if find_checkpoints(folder):
        raise ValueError(f"{folder} holds a run already: choose another folder.")
    model, step, tokenizer = load_merged_model(run, which)
    with run_lock(folder), cleanup_on_error(folder):
        if config := find_config(run):
            config.save(folder / CONFIG_FILE)
        if (run / TOKENS).is_dir():
            check_is_no_link(folder / TOKENS)
            (folder / TOKENS).mkdir(exist_ok=True)
            for path in (run / TOKENS).iterdir():
                with path.open("rb") as source, atomic_write(folder / TOKENS / path.name) as copy:
                    shutil.copyfileobj(source, copy)
        save_checkpoint(folder, step, model, tokenizer=tokenizer)
    print_result(
        f"The merged model is in {folder}. To use it:\n  {format_command('generate', folder)}"
    )


@with_retries_if_run_changes
def load_merged_model(run: Path, which: CheckpointChoice) -> tuple[Any, int, Any]:
    """Load the model of a LoRA run and merge it; also return its step, and its tokenizer's JSON."""
    from slp_transformer.lora import merge_lora
    from slp_transformer.training.checkpoints import load_model

    folder = checkpoint_folder(run, which)
    model = load_model(folder, which)
    merge_lora(model)
    return model, step_of_checkpoint(folder), load_tokenizer(folder)
