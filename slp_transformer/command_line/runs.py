"""A run that was kept: its model, what its tokens mean, and how it was made."""

import argparse
from dataclasses import dataclass
from pathlib import Path

import torch

from slp_transformer.checkpoint import Which, checkpoint_folder, load_model, load_tokenizer
from slp_transformer.language_model import TransformerLM
from slp_transformer.recipes import Recipe, make_recipe
from slp_transformer.recipes.data import Tokenizer, tokenizer_from_json

RECIPE, TOKENS = "recipe.toml", "tokens"  # in the run's folder


@dataclass(frozen=True)
class Run:
    """A run that was kept.

    Attributes:
        folder: the run's folder.
        model: its model, in evaluation mode.
        tokenizer: what the model's tokens mean.
        recipe: how it was made; None if it was trained from Python.
    """

    folder: Path
    model: TransformerLM
    tokenizer: Tokenizer
    recipe: Recipe | None


def add_run(parser: argparse.ArgumentParser) -> None:
    """Say which run a command takes, and where it is to compute."""
    parser.add_argument("run", type=Path, metavar="RUN", help="the folder that train kept it in")
    parser.add_argument(
        "--checkpoint", choices=("best", "last"), default="best", help="by held-out loss [best]"
    )
    parser.add_argument(
        "--device", metavar="NAME", help="cuda, mps or cpu; the first of them that is there"
    )


def load_run(folder: Path, which: Which, device: torch.device) -> Run:
    """Load a run's model and what belongs to it.

    Raises:
        ValueError: if there is no whole checkpoint, or not one of a language model with its
            tokenizer.
    """
    content = find_tokenizer(folder, which)
    model = load_model(folder, which)
    if not isinstance(model, TransformerLM):
        raise ValueError(f"{folder} holds no language model, but a {type(model).__name__}.")
    return Run(folder, model.to(device), tokenizer_from_json(content), find_recipe(folder))


def find_tokenizer(folder: Path, which: Which) -> object:
    """The JSON of a run's tokenizer.

    Raises:
        ValueError: if there is no run, or it was kept without a tokenizer.
    """
    if not folder.is_dir():
        raise ValueError(f"There is no folder {folder}: name one that a run was kept in.")
    content = load_tokenizer(folder, which)
    if content is None:
        place = checkpoint_folder(folder, which)
        raise ValueError(f"{place} was kept without a tokenizer, so its tokens have no names.")
    return content


def find_recipe(folder: Path) -> Recipe | None:
    """The recipe that a run was made by; None if there is none.

    Raises:
        ValueError: if it cannot be read.
    """
    path = folder / RECIPE
    return make_recipe(path) if path.exists() else None
