"""Merge a LoRA run with its base."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from slp_transformer._internal.atomic_write import atomic_write, check_is_file, check_is_no_link
from slp_transformer._internal.plugins import Options
from slp_transformer.cli.console import format_command, print_result
from slp_transformer.tasks.base import TOKENS, SavedRun
from slp_transformer.tasks.data_settings import Positional
from slp_transformer.tasks.run_config import CONFIG_FILE
from slp_transformer.tasks.saved_runs import open_run, read_current
from slp_transformer.training.run_folder import Checkpoint, find_checkpoints
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
    opened: SavedRun = field(init=False, repr=False)  # no flag: by `check`

    def check(self) -> None:
        """Open the run; refuse a folder without one, or without LoRA.

        Raises:
            ValueError: naming it.
        """
        object.__setattr__(self, "opened", open_run(self.run, self.checkpoint))
        if self.opened.checkpoint is None or self.opened.checkpoint.lora_base is None:
            raise ValueError(f"{self.run} is not a LoRA run.")


def execute(options: MergeOptions) -> None:
    """Merge, and print how to use the new run.

    Raises:
        ValueError: if the run's base is gone, or the folder cannot be used.
    """
    from slp_transformer.cli.train import cleanup_on_error
    from slp_transformer.training.checkpoints import save_checkpoint

    run, folder = options.run, options.out_dir
    if find_checkpoints(folder):
        raise ValueError(f"{folder} holds a run already: choose another folder.")
    checkpoint, model = read_current(options.opened, load_merged_model)
    with run_lock(folder), cleanup_on_error(folder):
        if options.opened.config is not None:
            options.opened.config.save(folder / CONFIG_FILE)
        if (run / TOKENS).is_dir():
            check_is_no_link(run / TOKENS)
            check_is_no_link(folder / TOKENS)
            (folder / TOKENS).mkdir(exist_ok=True)
            for path in (run / TOKENS).iterdir():
                # The run may be a stranger's, and a link in it lead to files of ours.
                check_is_no_link(path)
                check_is_file(path)
                with path.open("rb") as source, atomic_write(folder / TOKENS / path.name) as copy:
                    shutil.copyfileobj(source, copy)
        save_checkpoint(folder, checkpoint.step, model, tokenizer=checkpoint.tokenizer)
    print_result(
        f"The merged model is in {folder}. To use it:\n  {format_command('generate', folder)}"
    )


def load_merged_model(run: SavedRun) -> tuple[Checkpoint, Any]:
    """Load the model of a LoRA run and merge it; also return the checkpoint that it is of."""
    from slp_transformer.lora import merge_lora
    from slp_transformer.training.checkpoints import load_checkpoint_model

    assert run.checkpoint is not None, "check has refused it"
    model = load_checkpoint_model(run.checkpoint)
    merge_lora(model)
    return run.checkpoint, model
