"""What a command line asks for, and what is refused before PyTorch is loaded."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from slp_transformer.cli.console import FINE, command, result
from slp_transformer.cli.flags import given_settings, refuse_changes
from slp_transformer.data.pair_files import HUGGING_FACE
from slp_transformer.data.text_files import STANDARD_INPUT, find_texts, is_read_once
from slp_transformer.data.token_types import is_pair_tokenizer
from slp_transformer.modern.published_folders import is_pretrained
from slp_transformer.tasks import (
    PLACES,
    RECIPE,
    Recipe,
    Tables,
    make_recipe,
    place_of,
    read_recipe,
)
from slp_transformer.tasks.data_settings import PAIRS_ALONE
from slp_transformer.tasks.setting_fields import NONE, NOT_TO_CHOOSE
from slp_transformer.training.checkpoint_files import (
    read_base,
    read_made_of,
    read_memory,
    since_best,
)
from slp_transformer.training.run_folder import Which, checkpoint_folder, load_tokenizer, read_index
from slp_transformer.training.train_config import EPOCH, NO_EPOCHS, RESUMABLE_SETTINGS

TEXT = "text.txt"  # where a run keeps what it read from standard input


def look(arguments: argparse.Namespace) -> None:
    """Look at what is asked for, as far as that goes without PyTorch.

    Raises:
        ValueError: if something cannot be done, or is not there.
        SystemExit: with 0, if all is answered already.
    """
    if arguments.command == "train":
        arguments.chosen = chosen_recipe(arguments)
        if arguments.show_recipe:
            result(arguments.chosen.to_toml(), end="")
            raise SystemExit(FINE)
        check_training(arguments, arguments.chosen)
        return
    if arguments.command == "tab":  # it has no run, and needs no PyTorch
        return
    given = {name: getattr(arguments, name, None) for name in ("tokens", "seed")}
    if getattr(arguments, "samples", 0) is None:  # `evaluate` without samples
        refuse_idle(arguments, ("tokens", "seed"), "it is for --samples N, which is not given")
    for name, usual in (("tokens", 500), ("seed", 0)):
        if getattr(arguments, name, usual) is None:
            setattr(arguments, name, usual)
    for name in ("samples", "num_samples", "tokens"):
        if getattr(arguments, name, None) is not None:
            check_count(name, getattr(arguments, name))
    if arguments.run is not None:
        check_run(arguments.run)
    if arguments.command == "evaluate":
        check_evaluating(arguments, [name for name, value in given.items() if value is not None])
    if arguments.command == "merge":
        check_merging(arguments.run, arguments.checkpoint, arguments.merged)
    if arguments.command == "generate" and not is_guitar(arguments.run, arguments.checkpoint):
        refuse_idle(arguments, ("tuning", "capo"), f"{arguments.run} writes text, not tabs")


def refuse_idle(arguments: argparse.Namespace, names: Sequence[str], why: str) -> None:
    """Refuse flags that would be read and then forgotten.

    Raises:
        ValueError: naming the first of them.
    """
    for name in names:
        if getattr(arguments, name) is not None:
            raise ValueError(f"There is no use for --{name.replace('_', '-')}: {why}.")


def is_guitar(run: Path, which: Which) -> bool:
    """Whether a run is of guitar tablature."""
    content = None if is_pretrained(run) else load_tokenizer(run, which)
    return isinstance(content, dict) and content.get("kind") == "tab tokens"


def translates(run: Path, which: Which) -> bool:
    """Whether a run has learned to translate."""
    return not is_pretrained(run) and is_pair_tokenizer(load_tokenizer(run, which))


def check_count(name: str, count: int) -> None:
    """Refuse to write nothing.

    Raises:
        ValueError: naming the flag.
    """
    if count < 1:
        raise ValueError(f"--{name.replace('_', '-')} must be 1 or more, not {count}.")


def check_run(folder: Path) -> None:
    """Refuse a folder that holds neither a run nor a model that others have published.

    Raises:
        ValueError: naming it.
    """
    if not folder.is_dir():
        raise ValueError(f"There is no folder {folder}: name one that a run was kept in.")
    if not is_pretrained(folder):
        checkpoint_folder(folder)


def check_evaluating(arguments: argparse.Namespace, given: Sequence[str]) -> None:
    """Refuse what is for translation where there is none, and the other way round.

    Args:
        arguments: what is asked for.
        given: which of "tokens" and "seed" were said, rather than left to their defaults.

    Raises:
        ValueError: naming the flag.
    """
    if not translates(arguments.run, arguments.checkpoint):
        names = ("target", "num_beams", "length_penalty")
        refuse_idle(arguments, names, f"{arguments.run} does not translate")
        return
    refuse_idle(arguments, given, "a translation ends by itself, and draws nothing")
    if arguments.target is not None and arguments.source is None:
        raise ValueError(f"{arguments.target} translates nothing: name its source too.")
    if arguments.num_beams is not None:
        check_count("num_beams", arguments.num_beams)


def check_merging(run: Path, which: Which, merged: Path | None) -> None:
    """Refuse to merge what is whole, or to merge it into a folder that is taken.

    Raises:
        ValueError: saying which.
    """
    if merged is None:
        raise ValueError("Say where the whole model is to be kept: --run FOLDER.")
    if is_pretrained(run) or read_base(checkpoint_folder(run, which)) is None:
        raise ValueError(f"{run} has no A and B to merge: its model is whole.")
    if read_index(merged):
        raise ValueError(f"{merged} holds a run already: choose another folder.")


def check_training(arguments: argparse.Namespace, recipe: Recipe) -> None:
    """Refuse to begin without a place for the run, or without something to learn from.

    Raises:
        ValueError: saying what is missing.
    """
    if arguments.run is None:
        raise ValueError("Say where the run is to be kept: --run FOLDER.")
    if arguments.resume:
        say_if_finished(arguments.run, recipe)
        return
    if read_index(arguments.run):
        raise ValueError(
            f"{arguments.run} holds a run already: go on with it by --resume, or choose another "
            "folder."
        )
    source = recipe.data.source
    if recipe.data.kind == "text":
        if not is_read_once(source):
            find_texts(source)
    elif recipe.data.kind == "translation":
        check_pair_files(recipe)
    elif source is not None and not Path(source).exists():
        raise ValueError(f"There is no folder {source}; name one with .txt or .tab files in it.")


def check_pair_files(recipe: Recipe) -> None:
    """Refuse to begin without the files of the pairs.

    Raises:
        ValueError: naming the one that is not there.
    """
    data = recipe.data
    unseen = None if isinstance(data.held_out, float) else data.held_out
    for source, target in ((data.source, data.target), (unseen, data.held_out_target)):
        for path in (source, target):
            if path and not path.startswith(HUGGING_FACE) and not Path(path).is_file():
                raise ValueError(
                    f"There is no file {path}: name a table of pairs (.csv, .tsv), or two files "
                    "whose lines translate each other, SOURCE and --target."
                )
        if target is not None and source is None:
            raise ValueError(f"{target} translates nothing: name its source too.")


def say_if_finished(folder: Path, recipe: Recipe) -> None:
    """Say of a run that has nothing left to do that it is finished, and how to take it further.

    Raises:
        SystemExit: with 0, if it is.
        ValueError: if it has made more steps than it should make.
    """
    if not read_index(folder) or (memory := read_memory(checkpoint_folder(folder))) is None:
        return
    steps, patience = recipe.training.steps, recipe.training.early_stopping_patience
    if memory.step > steps:
        raise ValueError(
            f"The run in {folder} has made {memory.step} steps already: choose as many or more, "
            f"not {steps}."
        )
    if memory.step == steps and not memory.losses:
        told, more = f"all of its {steps:,} steps are made", ("--steps", str(2 * steps))
    elif patience is not None and since_best(memory.records) >= patience:
        told = f"it stopped improving, after {memory.step:,} of {steps:,} steps"
        more = ("--early-stopping-patience", NONE)
    else:
        return
    further = command("train", "--run", folder, "--resume", *more)
    result(f"The run in {folder} is finished: {told}. To take it further:\n  {further}")
    raise SystemExit(FINE)


# --- What to train -------------------------------------------------------------------------------


def chosen_recipe(arguments: argparse.Namespace) -> Recipe:
    """The recipe that the arguments ask for.

    Raises:
        ValueError: if there is no such recipe, nothing to learn from, or no run to resume.
    """
    given = given_settings(arguments)
    if arguments.source is not None:
        given.setdefault("data", {})["source"] = place_of(arguments.source, Path())
    for name in PLACES[1:]:
        if isinstance(place := given.get("data", {}).get(name), str):
            given["data"][name] = place_of(place, Path())
    saved = arguments.run / RECIPE if arguments.run else None
    if arguments.resume and saved is not None and saved.exists():
        return resumed_recipe(saved, arguments.recipe, given)
    recipe = make_recipe(arguments.recipe, given)
    refuse_text_settings(recipe, given)
    if recipe.data.start is not None and not arguments.resume:
        said = {} if arguments.recipe is None else read_recipe(arguments.recipe)
        recipe = begun_with(recipe, said.get("model", {}) | given.get("model", {}), given)
    refuse_pair_settings(recipe, given)
    if recipe.data.source is None and recipe.data.kind == "text":
        if arguments.resume:
            raise ValueError(f"There is no run in {arguments.run} to resume.")
        if not arguments.show_recipe:
            raise ValueError(
                "Name what to learn from: a file, a folder, - for standard input, or a corpus "
                "(`slp-transformer info` lists them). Guitar tabs need --guitar."
            )
    return recipe


def refuse_text_settings(recipe: Recipe, given: Tables) -> None:
    """Refuse what is for text where tabs are learned.

    Raises:
        ValueError: naming the flag.
    """
    for name in ("tokenizer", "vocab_size"):
        if recipe.data.kind == "guitar" and name in given.get("data", {}):
            raise ValueError(
                f"There is no use for --{name.replace('_', '-')}: guitar tabs have tokens of their "
                "own."
            )


def refuse_pair_settings(recipe: Recipe, given: Tables) -> None:
    """Refuse what is for pairs where there are none, and windows where there are no streams.

    Raises:
        ValueError: naming the flag.
    """
    said = {*given.get("data", {}), *given.get("training", {})}
    pairs = recipe.data.kind == "translation"
    if recipe.training.eval_interval == EPOCH and recipe.training.batch_tokens is None:
        raise ValueError(NO_EPOCHS)
    idle = ("sequence_length", "lora") if pairs else (*PAIRS_ALONE, "batch_tokens")
    for name in idle:
        if name in said:
            why = "pairs are not cut into windows" if pairs else "it is for --translation"
            raise ValueError(f"There is no use for --{name.replace('_', '-')}: {why}.")


LEARNED = {"text": "text", "guitar": "guitar tabs", "translation": "pairs of sentences"}


def kind_of(tokenizer: Any) -> str:
    """What a run with such a tokenizer learns from."""
    if is_pair_tokenizer(tokenizer):
        return "translation"
    tabs = isinstance(tokenizer, dict) and tokenizer.get("kind") == "tab tokens"
    return "guitar" if tabs else "text"


def begun_with(recipe: Recipe, model: dict[str, Any], given: Tables) -> Recipe:
    """A recipe with the model and the tokens of the run that it begins with.

    Args:
        recipe: names that run.
        model: what was said of the model; just its dropout may differ.
        given: what flags said.

    Raises:
        ValueError: if there is no such run, or what was said contradicts it.
    """
    start = Path(recipe.data.start)
    check_run(start)
    folder = checkpoint_folder(start, "best")
    made_of, tokenizer = read_made_of(folder), load_tokenizer(start, "best")
    kind = kind_of(tokenizer)
    needed = "EncoderDecoder" if kind == "translation" else "TransformerLM"
    if made_of.model != needed or made_of.config is None or tokenizer is None:
        raise ValueError(f"{start} holds no model of ours with its tokenizer to begin with.")
    if read_base(folder) is not None:
        raise ValueError(
            f"{start} has A and B beside the weights of another run: make it whole first, by "
            f"{command('merge', start, '--run', 'MERGED')}."
        )
    kept = made_of.config.to_dict()
    for name, value in model.items():
        if name != "dropout" and kept[name] != value:
            raise ValueError(
                f"{start} has {name} {kept[name]}, which {value} contradicts: leave it out, or "
                "begin without --from."
            )
    for name in ("tokenizer", "vocab_size", "shared_vocabulary"):
        if name in given.get("data", {}):
            raise ValueError(
                f"There is no use for --{name.replace('_', '-')}: the tokens are those of {start}."
            )
    if (asked := given.get("data", {}).get("kind", kind)) != kind:
        raise ValueError(
            f"{start} learned {LEARNED[kind]}, not {LEARNED[asked]}: leave out --{asked}."
        )
    chosen = {k: v for k, v in kept.items() if ("model", k) not in NOT_TO_CHOOSE}
    chosen |= {k: v for k, v in model.items() if k == "dropout"}
    data = replace(recipe.data, kind=kind)
    if kind == "text":
        data = replace(data, tokenizer=tokenizer.get("kind"))
    if kind == "translation":
        shared = {"shared_vocabulary": tokenizer.get("target") is None}
        data = replace(data, tokenizer=tokenizer.get("source", {}).get("kind"), **shared)
    return replace(recipe, data=data, model=chosen)


def resumed_recipe(saved: Path, recipe: str | None, given: Tables) -> Recipe:
    """The recipe that a run was begun with; only what it computes on may change.

    Raises:
        ValueError: if what is given now says something else.
    """
    begun = make_recipe(saved, kept=True)
    if recipe is not None:
        said = read_recipe(recipe)
        given = {table: said.get(table, {}) | given.get(table, {}) for table in said | given}
    if given.get("data", {}).get("source") == STANDARD_INPUT:
        given["data"]["source"] = text_of(saved.parent)  # where it was kept
    refuse_changes(begun, given)
    check_model(begun, saved)
    now = {
        name: given["training"][name]
        for name in RESUMABLE_SETTINGS & given.get("training", {}).keys()
    }
    return replace(begun, training=replace(begun.training, **now))


def check_model(recipe: Recipe, saved: Path) -> None:
    """Refuse a recipe whose model is another than the one that was kept, before it is built.

    Raises:
        ValueError: naming the first difference.
    """
    if not read_index(saved.parent):
        return
    config = read_made_of(checkpoint_folder(saved.parent)).config
    if config is None:
        return
    kept, said = config.to_dict(), recipe.config(config.vocab_size).to_dict()
    for name, value in kept.items():
        if said[name] != value:
            raise ValueError(
                f"{saved} says {name} {said[name]}, but the run was begun with {value}: write that."
            )


def text_of(folder: Path) -> str:
    """Where a run keeps what it read from standard input."""
    return str((folder / TEXT).resolve())
