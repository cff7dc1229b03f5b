"""Add A and B to the weights that they stand beside, and keep the whole model as a run."""

import argparse
import shutil
from pathlib import Path

from slp_transformer._internal.atomic_write import read_json
from slp_transformer.cli.console import command, result
from slp_transformer.cli.loaded_run import TOKENS, find_recipe
from slp_transformer.cli.train import nothing_left_behind
from slp_transformer.lora import merge_lora
from slp_transformer.tasks import RECIPE
from slp_transformer.training.checkpoint_files import (
    CheckpointChoice,
    checkpoint_folder,
    load_tokenizer,
)
from slp_transformer.training.checkpoints import load_model, save_checkpoint
from slp_transformer.training.run_lock import sole_owner


def act(arguments: argparse.Namespace) -> None:
    """Merge, and say what to do with the new run.

    Raises:
        ValueError: if the weights are not there, or the folder will not do.
    """
    run, folder = arguments.run, arguments.merged
    model = load_model(run, arguments.checkpoint)
    merge_lora(model)
    with sole_owner(folder), nothing_left_behind(folder):
        try:
            keep_beside(run, folder)
        except OSError as error:
            raise ValueError(f"Nothing can be kept in {folder}: {error.strerror}.") from None
        step = step_of(run, arguments.checkpoint)
        tokenizer = load_tokenizer(run, arguments.checkpoint)
        save_checkpoint(folder, step, model, tokenizer=tokenizer)
    result(f"The whole model is in {folder}. To have it write:\n  {command('generate', folder)}")


def keep_beside(run: Path, folder: Path) -> None:
    """Copy what `evaluate` reads beside the weights: the recipe, and the tokens held out."""
    if recipe := find_recipe(run):
        recipe.save(folder / RECIPE)
    if (run / TOKENS).is_dir():
        shutil.copytree(run / TOKENS, folder / TOKENS, dirs_exist_ok=True)


def step_of(run: Path, which: CheckpointChoice) -> int:
    """The step of a run's checkpoint."""
    return read_json(checkpoint_folder(run, which) / "checkpoint.json")["step"]
