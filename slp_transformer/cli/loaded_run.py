"""A run that was kept: its model, what its tokens mean, and how it was made."""

from dataclasses import dataclass
from pathlib import Path

import torch

from slp_transformer.data import PairTokenizer
from slp_transformer.encoder_decoder import EncoderDecoder
from slp_transformer.generation.translation import Translator
from slp_transformer.language_model import TransformerLM
from slp_transformer.lora import merge_lora
from slp_transformer.modern.hf_tokenizer import PretrainedTokenizer
from slp_transformer.modern.hf_tokenizer import load_tokenizer as load_published_tokenizer
from slp_transformer.modern.pretrained import from_pretrained, read_config
from slp_transformer.modern.published_folders import is_pretrained
from slp_transformer.tasks import RECIPE, Recipe, make_recipe
from slp_transformer.tasks.datasets import Tokenizer, tokenizer_of
from slp_transformer.training.checkpoint_files import CheckpointChoice, checkpoint_folder
from slp_transformer.training.checkpoints import load_model

TOKENS = "tokens"  # in the run's folder


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
    tokenizer: Tokenizer | PretrainedTokenizer
    recipe: Recipe | None


def load_run(folder: Path, which: CheckpointChoice, device: torch.device) -> Run:
    """Load a run's model and what belongs to it.

    Raises:
        ValueError: if there is no whole checkpoint, or not one of a language model with its
            tokenizer.
    """
    if is_pretrained(folder):
        return load_published(folder, device)
    tokenizer = tokenizer_of(folder, which)
    if isinstance(tokenizer, PairTokenizer):
        raise ValueError(
            f"{folder} holds no language model: it translates from {tokenizer.languages[0]} into "
            f"{tokenizer.languages[1]} (`slp-transformer translate`)."
        )
    model = load_model(folder, which)
    merge_lora(model)  # the same matrices, made once rather than for each token
    if not isinstance(model, TransformerLM):
        raise ValueError(f"{folder} holds no language model, but a {type(model).__name__}.")
    if tokenizer.vocab_size != model.config.vocab_size:
        raise ValueError(
            f"{checkpoint_folder(folder, which)} is damaged: its tokenizer has "
            f"{tokenizer.vocab_size} tokens, and its model {model.config.vocab_size}."
        )
    return Run(folder, model.to(device), tokenizer, find_recipe(folder))


def load_translator(folder: Path, which: CheckpointChoice, device: torch.device) -> Translator:
    """The model of a run with `--translation`, and its tokenizer.

    Raises:
        ValueError: if there is no whole checkpoint, or it does not translate.
    """
    tokenizer = None if is_pretrained(folder) else tokenizer_of(folder, which)
    if not isinstance(tokenizer, PairTokenizer):
        raise ValueError(
            f"{folder} does not translate: it holds a language model, which writes on "
            "(`slp-transformer generate`)."
        )
    model = load_model(folder, which)
    if not isinstance(model, EncoderDecoder):
        raise ValueError(f"{folder} holds no encoder-decoder, but a {type(model).__name__}.")
    try:
        return Translator(model.to(device), tokenizer)
    except ValueError as error:
        raise ValueError(f"{checkpoint_folder(folder, which)} is damaged: {error}") from None


def load_published(folder: Path, device: torch.device) -> Run:
    """A model that others have published, with its tokenizer.

    Raises:
        ValueError: if one of them is missing, cannot be loaded whole, or writes no text.
    """
    tokenizer = load_published_tokenizer(folder, read_config(folder))
    model = from_pretrained(folder, device=device)
    if not isinstance(model, TransformerLM):
        raise ValueError(
            f"{folder} holds no language model, but a {type(model).__name__}: it says which words "
            "are hidden in a text and cannot write on."
        )
    return Run(folder, model, tokenizer, None)


def find_recipe(folder: Path) -> Recipe | None:
    """The recipe that a run was made by; None if there is none.

    Raises:
        ValueError: if it cannot be read.
    """
    path = folder / RECIPE
    return make_recipe(path, kept=True) if path.exists() else None
