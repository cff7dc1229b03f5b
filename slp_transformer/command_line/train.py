"""Train a language model on text or on guitar tabs."""

import argparse
import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch

from slp_transformer.checkpoint import checkpoint_folder, read_index
from slp_transformer.command_line.console import command, note, rank, result
from slp_transformer.command_line.flags import (
    MAY_CHANGE,
    add_settings,
    given_settings,
    refuse_changes,
)
from slp_transformer.command_line.runs import RECIPE, TOKENS
from slp_transformer.distributed import form_team
from slp_transformer.language_model import TransformerLM
from slp_transformer.progress import no_work_bars
from slp_transformer.recipes import (
    BUILT_IN,
    Recipe,
    Tables,
    make_recipe,
    place_of,
    read_recipe,
)
from slp_transformer.recipes.data import Data, prepare_data, reopen_data, tokenizer_to_json
from slp_transformer.run_state import Record
from slp_transformer.storage import from_text_extra, read_json
from slp_transformer.text.preparing import reopen
from slp_transformer.text.reading import STANDARD_INPUT, keep_standard_input
from slp_transformer.training import train

USAGE = "slp-transformer train [SOURCE] --run FOLDER [--recipe RECIPE] [--guitar] [settings]"
EXAMPLES = """examples:
  slp-transformer train my-texts --run runs/mine
  slp-transformer train novel.txt --run runs/novel --tokenizer bpe --steps 5000
  cat *.txt | slp-transformer train - --run runs/mine
  slp-transformer train my-tabs --guitar --run runs/tabs
  slp-transformer train --run runs/mine --resume

Ctrl-C stops after the current step and keeps everything: --resume goes on from there, with the
same result as if nothing had happened. The run's folder holds recipe.toml, which repeats it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what `train` takes."""
    parser.usage, parser.epilog = USAGE, EXAMPLES
    parser.add_argument(
        "source",
        nargs="?",
        metavar="SOURCE",
        help="what to learn from: a file, a folder, - for standard input, or the name of a corpus "
        "(`slp-transformer info` lists them); with --guitar a folder of ASCII tabs, or nothing "
        "for a practice corpus",
    )
    parser.add_argument("--run", type=Path, metavar="FOLDER", help="where the run is kept")
    parser.add_argument(
        "--recipe",
        metavar="RECIPE",
        help=f"{', '.join(BUILT_IN)}, or a TOML file; flags win",
    )
    parser.add_argument(
        "--guitar",
        action="store_const",
        const="guitar",
        dest="data.kind",
        default=argparse.SUPPRESS,
        help="learn guitar tablature rather than text",
    )
    parser.add_argument("--resume", action="store_true", help="go on with the run in the folder")
    parser.add_argument(
        "--show-recipe", action="store_true", help="print all settings as a recipe, and stop"
    )
    parser.add_argument("--tensorboard", action="store_true", help="keep curves for TensorBoard")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    add_settings(parser)


def act(arguments: argparse.Namespace) -> None:
    """Train, and say what to do next.

    Raises:
        ValueError: if the recipe, the data or the folder will not do.
        KeyboardInterrupt: on Ctrl-C, saying how to go on.
    """
    recipe = chosen_recipe(arguments)
    if arguments.show_recipe:
        result(recipe.to_toml(), end="")
        return
    folder = arguments.run
    if folder is None:
        raise ValueError("Say where the run is to be kept: --run FOLDER.")
    if read_index(folder) and not arguments.resume:
        raise ValueError(
            f"{folder} holds a run already: go on with it by --resume, or choose another folder."
        )
    for library in ("safetensors.torch", "tomli_w"):
        from_text_extra(library, "Kept runs")  # rather now than after the data
    cleaning = nothing_left_behind(folder) if rank() == 0 else contextlib.nullcontext()
    try:
        with cleaning, no_work_bars() if arguments.quiet else contextlib.nullcontext():
            records = run(recipe, folder, arguments)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(how_to_go_on(folder, recipe)) from None
    finished(folder, recipe, records)


# --- What to train -----------------------------------------------------------------------------


def chosen_recipe(arguments: argparse.Namespace) -> Recipe:
    """The recipe that the arguments ask for.

    Raises:
        ValueError: if there is no such recipe, nothing to learn from, or no run to resume.
    """
    given = given_settings(arguments)
    if arguments.source is not None:
        given.setdefault("data", {})["source"] = place_of(arguments.source, Path())
    if isinstance(other := given.get("data", {}).get("held_out"), str):
        given["data"]["held_out"] = place_of(other, Path())
    saved = arguments.run / RECIPE if arguments.run else None
    if arguments.resume and saved is not None and saved.exists():
        return resumed_recipe(saved, arguments.recipe, given)
    recipe = make_recipe(arguments.recipe, given)
    if recipe.data.source is None and recipe.data.kind == "text":
        if arguments.resume:
            raise ValueError(f"There is no run in {arguments.run} to resume.")
        if not arguments.show_recipe:
            raise ValueError(
                "Name what to learn from: a file, a folder, - for standard input, or a corpus "
                "(`slp-transformer info` lists them). Guitar tabs need --guitar."
            )
    return recipe


def resumed_recipe(saved: Path, recipe: str | None, given: Tables) -> Recipe:
    """The recipe that a run was begun with; only what it computes on may change.

    Raises:
        ValueError: if what is given now says something else.
    """
    begun = make_recipe(saved)
    if recipe is not None:
        said = read_recipe(recipe)
        given = {table: said.get(table, {}) | given.get(table, {}) for table in said | given}
    if given.get("data", {}).get("source") == STANDARD_INPUT:
        given["data"]["source"] = text_of(saved.parent)  # where it was kept
    refuse_changes(begun, given)
    now = {name: given["training"][name] for name in MAY_CHANGE & given.get("training", {}).keys()}
    return replace(begun, training=replace(begun.training, **now))


def text_of(folder: Path) -> str:
    """Where a run keeps what it read from standard input."""
    return str((folder / "text.txt").resolve())


# --- Training it -------------------------------------------------------------------------------


def run(recipe: Recipe, folder: Path, arguments: argparse.Namespace) -> list[Record]:
    """Make the data and the model of a recipe, and train."""
    settings = recipe.training
    with form_team(settings, folder) as team:  # of several processes the first makes the data
        data = team.alone(begin, recipe, folder, arguments.resume)
    if data is None:
        data = reopen_data(recipe.data, folder / TOKENS)
    torch.manual_seed(settings.seed)
    model = TransformerLM(recipe.config(data.tokenizer.vocab_size))
    describe(data, model)
    return train(
        model,
        data.learned,
        data.held_out,
        settings,
        folder=folder,
        resume=arguments.resume,
        tokenizer=tokenizer_to_json(data.tokenizer),
        progress=not arguments.quiet and rank() == 0,
        tensorboard=arguments.tensorboard,
    )


def begin(recipe: Recipe, folder: Path, resume: bool) -> Data:
    """Make the data, and keep the recipe once all is known to go together.

    Raises:
        ValueError: if there is no data, or too little of it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if recipe.data.source == STANDARD_INPUT:
        kept = str(keep_standard_input(Path(text_of(folder))))
        recipe = replace(recipe, data=replace(recipe.data, source=kept))
    data = (reopen_data if resume else prepare_data)(recipe.data, folder / TOKENS)
    config = recipe.config(data.tokenizer.vocab_size)
    N = recipe.training.context_length or config.context_length
    data.check_windows(N, recipe.data.held_out)
    recipe.save(folder / RECIPE)
    return data


def describe(data: Data, model: TransformerLM) -> None:
    """Say what is trained on what."""
    for problem in data.problems[:5]:
        note(problem)
    if len(data.problems) > 5:
        note(f"... and {len(data.problems) - 5} more that could not be read")
    size = sum(parameter.numel() for parameter in model.parameters())
    note(
        f"{len(data.learned):,} tokens to learn from, {len(data.held_out):,} held out; "
        f"vocabulary of {data.tokenizer.vocab_size:,}; model of {size:,} parameters."
    )


@contextlib.contextmanager
def nothing_left_behind(folder: Path) -> Iterator[None]:
    """If there is no checkpoint when something fails, leave the folder as it was."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    before = set(folder.iterdir()) if not missing else set()
    try:
        yield
    except BaseException:
        if folder.exists() and not read_index(folder):
            for path in set(folder.iterdir()) - before:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            for path in missing:
                path.rmdir()
        raise


# --- What to say at the end --------------------------------------------------------------------


def how_to_go_on(folder: Path, recipe: Recipe) -> str:
    """What to say after Ctrl-C."""
    if not read_index(folder):
        return "Stopped before the first step; nothing is kept."
    step = read_json(checkpoint_folder(folder) / "checkpoint.json")["step"]
    again = command("train", "--run", folder, "--resume")
    return f"Stopped; step {step} of {recipe.training.steps} is kept. To go on:\n  {again}"


def finished(folder: Path, recipe: Recipe, records: list[Record]) -> None:
    """Say what came of it, and what to type next."""
    best = min(records, key=lambda record: record.valid_loss)
    last = records[-1]
    early = " (it stopped improving)" if last.step < recipe.training.steps else ""
    result(
        f"Trained {last.step:,} steps{early}. Loss {best.valid_loss:.4f} nats per token on what "
        f"is held out, after step {best.step:,}."
    )
    prompt = () if recipe.data.kind == "guitar" else ("--prompt", opening(folder))
    result(f"The model is in {folder}. To have it write:\n  {command('generate', folder, *prompt)}")


def opening(folder: Path) -> str:
    """Two words from what was learned, for a prompt that the model is sure to know."""
    text = reopen(folder / TOKENS)
    words = text.tokenizer.decode(text.learned[:200].tolist()).split()
    return " ".join(words[:2])
