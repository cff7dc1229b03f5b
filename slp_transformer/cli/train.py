"""Train a language model on text or on guitar tabs, or an encoder-decoder on pairs."""

import argparse
import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from slp_transformer._internal.atomic_write import from_text_extra, read_json
from slp_transformer._internal.progress_bar import no_work_bars
from slp_transformer._internal.signals import Stopped
from slp_transformer.cli.check_args import TEXT, text_of
from slp_transformer.cli.console import MODULE, command, note, processes, rank, result
from slp_transformer.cli.loaded_run import TOKENS
from slp_transformer.cli.sample_translations import translations_of
from slp_transformer.config import TransformerConfig
from slp_transformer.data import PairTokenizer, reopen_pairs
from slp_transformer.data.bucketing import PairsByLength
from slp_transformer.data.text_corpus import reopen
from slp_transformer.data.text_files import is_read_once, keep_standard_input
from slp_transformer.data.token_file import VAL_NAMES_FILE
from slp_transformer.encoder_decoder import EncoderDecoder
from slp_transformer.language_model import TransformerLM
from slp_transformer.lora import add_lora
from slp_transformer.tasks import RECIPE, Recipe
from slp_transformer.tasks.datasets import Data, prepare_data, reopen_data, tokenizer_to_json
from slp_transformer.training.checkpoint_files import Base, read_base
from slp_transformer.training.checkpoints import load_weights
from slp_transformer.training.devices import check_fits
from slp_transformer.training.fsdp import form_team
from slp_transformer.training.lora_checkpoint import base_of, check_rank, find_base
from slp_transformer.training.run_folder import (
    UNFINISHED,
    checkpoint_folder,
    read_index,
    written_index,
)
from slp_transformer.training.run_lock import sole_owner
from slp_transformer.training.trainer import CURVES, train
from slp_transformer.training.trainer_state import Record


def act(arguments: argparse.Namespace) -> None:
    """Train, and say what to do next.

    Raises:
        ValueError: if the recipe, the data or the folder will not do.
        Stopped: on Ctrl-C and its like, saying how to go on.
    """
    recipe, folder = arguments.chosen, arguments.run
    for library in ("safetensors.torch", "tomli_w"):
        from_text_extra(library, "Kept runs")  # rather now than after the data
    with contextlib.ExitStack() as stack:
        if arguments.quiet:
            stack.enter_context(no_work_bars())
        if rank() == 0:
            stack.enter_context(sole_owner(folder))
            if read_index(folder) and not arguments.resume:
                raise ValueError(
                    f"{folder} holds a run already: go on with it by --resume, or choose another "
                    "folder."
                )
            if read_index(folder) and not written_index(folder):
                note(f"{folder} had no sound checkpoints.json: its whole checkpoints say it again.")
            stack.enter_context(nothing_left_behind(folder))
        try:
            records = run(recipe, folder, arguments)
        except KeyboardInterrupt as stopped:
            number = getattr(stopped, "number", None)
            raise Stopped(how_to_go_on(folder, recipe), number) from None
    finished(folder, recipe, records)


# --- Training it -------------------------------------------------------------------------------


def run(recipe: Recipe, folder: Path, arguments: argparse.Namespace) -> list[Record]:
    """Make the data and the model of a recipe, and train."""
    settings, rank_of_lora = recipe.training, recipe.data.lora
    if rank_of_lora is not None:  # rather now than after the data
        check_rank(TransformerLM, recipe.config(1), rank_of_lora)
    with form_team(settings, folder) as team:  # of several processes the first makes the data
        data = team.alone(begin, recipe, folder, arguments.resume)
    if data is None:
        data = reopen_data(recipe.data, folder / TOKENS)
    torch.manual_seed(settings.seed)
    pairs = isinstance(data.tokenizer, PairTokenizer)
    config, alone = configured(recipe, data), team.size == 1
    N = settings.sequence_length or config.context_length
    batch = settings.batch_tokens or settings.batch_size * N
    told = {"copies": 4 if alone else 1, "batch": batch if alone else 0}
    check_fits(config, team.device, **told, encoder_decoder=pairs)
    model = EncoderDecoder(config) if pairs else TransformerLM(config)
    learned, held_out = data.sources(settings, N)
    base = None
    if rank_of_lora is not None:
        base = stand_beside(model, recipe, folder)
    elif recipe.data.start is not None and not read_index(folder):
        load_weights(model, checkpoint_folder(recipe.data.start, "best"))
    describe(data, model, learned)
    return train(
        model,
        learned,
        held_out,
        settings,
        folder=folder,
        resume=arguments.resume,
        tokenizer=tokenizer_to_json(data.tokenizer),
        progress=not arguments.quiet and rank() == 0,
        tensorboard=arguments.tensorboard,
        base=base,
        report=translations_of(model, data) if pairs and not arguments.quiet else None,
    )


def configured(recipe: Recipe, data: Data) -> TransformerConfig:
    """What the model is made of, for this data."""
    tokenizer = data.tokenizer
    return recipe.config(tokenizer.vocab_size, getattr(tokenizer, "source_vocab_size", None))


def stand_beside(model: TransformerLM, recipe: Recipe, folder: Path) -> Base:
    """Give a model the weights that stay, and put A and B beside them.

    Raises:
        ValueError: if the weights are gone, or were changed since the run was begun.
    """
    last = checkpoint_folder(folder) if read_index(folder) else None
    base = read_base(last) if last else base_of(recipe.data.start, recipe.data.lora)
    if base is None:
        raise ValueError(
            f"{folder} has no A and B to go on with: begin a new run with it, by --from."
        )
    load_weights(model, find_base(last, base) if last else Path(base.checkpoint))
    add_lora(model, base.rank)
    return base


def begin(recipe: Recipe, folder: Path, resume: bool) -> Data:
    """Make the data, and keep the recipe once all is known to go together.

    Raises:
        ValueError: if there is no data, or too little of it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    source = recipe.data.source
    if not resume and source is not None and is_read_once(source):
        kept = str(keep_standard_input(Path(text_of(folder)), source))
        recipe = replace(recipe, data=replace(recipe.data, source=kept))
    if resume:
        data = reopen_data(recipe.data, folder / TOKENS)
    else:
        window = recipe.config(1).context_length
        data = prepare_data(recipe.data, folder / TOKENS, window)
    config = configured(recipe, data)
    N = recipe.training.sequence_length or config.context_length
    data.check_windows(N, recipe.data.held_out)
    recipe.save(folder / RECIPE)
    return data


def describe(data: Data, model: TransformerLM | EncoderDecoder, source: Any) -> None:
    """Say what is trained on what."""
    for problem in data.problems[:5]:
        note(problem)
    if len(data.problems) > 5:
        note(f"... and {len(data.problems) - 5} more that could not be read")
    size = sum(parameter.numel() for parameter in model.parameters())
    learning = sum(W.numel() for W in model.parameters() if W.requires_grad)
    some = f", of which {learning:,} learn" if learning < size else ""
    what = "pairs" if data.texts else "tokens"
    if data.texts:
        note(f"From {' to '.join(data.tokenizer.languages)}.")
    note(
        f"{len(data.learned):,} {what} to learn from, {len(data.held_out):,} held out; "
        f"vocabulary of {data.tokenizer.vocab_size:,}; model of {size:,} parameters{some}."
    )
    if isinstance(source, PairsByLength):
        note(f"An epoch is about {source.batches_an_epoch:,} steps.")
    if data.which:
        more = f", and {len(data.which) - 1} more: {TOKENS}/{VAL_NAMES_FILE} names all"
        note(f"Held out: {data.which[0]}{more if len(data.which) > 1 else ''}.")


@contextlib.contextmanager
def nothing_left_behind(folder: Path) -> Iterator[None]:
    """If there is no checkpoint when something fails, remove what this process put into the folder.

    Nothing else in it is touched, whoever put it there, and whenever.
    """
    before = set(folder.iterdir())
    try:
        yield
    except BaseException:
        if not read_index(folder):
            for name in (RECIPE, TEXT, TOKENS, CURVES, UNFINISHED):
                if (folder / name) not in before:
                    remove(folder / name)
        raise


def remove(path: Path) -> None:
    """Remove a file or a whole folder; if that fails, what it was removed for counts more."""
    with contextlib.suppress(OSError):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


# --- What to say at the end --------------------------------------------------------------------


def how_to_go_on(folder: Path, recipe: Recipe) -> str:
    """What to say after Ctrl-C."""
    if not read_index(folder):
        return "Stopped before the first step; nothing is kept."
    step = read_json(checkpoint_folder(folder) / "checkpoint.json")["step"]
    again = ("train", "--run", folder, "--resume")
    how = f"To go on:\n  {command(*again)}"
    if processes() > 1:
        how = f"To go on, start torchrun as before, with:\n  {command(*again, program=MODULE)}"
    return f"Stopped; step {step} of {recipe.training.steps} is kept. {how}"


def finished(folder: Path, recipe: Recipe, records: list[Record]) -> None:
    """Say what came of it, and what to type next."""
    best = min(records, key=lambda record: record.valid_loss)
    last = records[-1]
    early = " (it stopped improving)" if last.step < recipe.training.steps else ""
    result(
        f"Trained {last.step:,} steps{early}. Loss {best.valid_loss:.4f} nats per token on what "
        f"is held out, after step {best.step:,}."
    )
    if last.whole_loss is not None:
        result(
            f"That was evaluated on {recipe.training.max_eval_samples:,} sequences; on all, "
            f"after the last step, it is {last.whole_loss:.4f}."
        )
    if recipe.data.kind == "translation":
        sentence = reopen_pairs(folder / TOKENS).texts[0][0]
        result(
            f"The model is in {folder}. To have it translate:\n"
            f"  {command('translate', folder, sentence)}"
        )
        return
    prompt = () if recipe.data.kind == "guitar" else ("--prompt", opening(folder))
    result(f"The model is in {folder}. To have it write:\n  {command('generate', folder, *prompt)}")


def opening(folder: Path) -> str:
    """Two words from what was learned, for a prompt that the model is sure to know."""
    text = reopen(folder / TOKENS)
    words = text.tokenizer.decode(text.learned[:200].tolist()).split()
    return " ".join(words[:2])
