"""Tell what a run is made of; without a run, what there is on this machine."""

import argparse
import dataclasses
import platform
from pathlib import Path
from typing import Any

import torch

import slp_transformer
from slp_transformer.cli import published_model
from slp_transformer.cli.console import PROGRAM, command, result, result_json, table
from slp_transformer.cli.loaded_run import find_recipe
from slp_transformer.config import TransformerConfig
from slp_transformer.data import PairTokenizer, TextTokenizer
from slp_transformer.data.corpora import corpus_names
from slp_transformer.data.downloads import data_dir
from slp_transformer.modern.published_folders import is_pretrained
from slp_transformer.scaling_laws import count_parameters
from slp_transformer.tasks import BUILT_IN
from slp_transformer.tasks.datasets import tokenizer_from_json
from slp_transformer.training.checkpoint_files import Memory, read_base, read_made_of, read_memory
from slp_transformer.training.devices import pick_device
from slp_transformer.training.run_folder import (
    checkpoint_folder,
    load_tokenizer,
    read_index,
)
from slp_transformer.training.trainer_state import RunState


def act(arguments: argparse.Namespace) -> None:
    """Print what is known.

    Raises:
        ValueError: if there is no such run.
    """
    content = about_here() if arguments.run is None else about_run(arguments.run)
    if arguments.json:
        result_json(content)
    else:
        result("\n\n".join(f"{head}\n{indented(rows)}" for head, rows in content.items()))


def indented(rows: Any) -> str:
    """A table below a heading; a value that has parts in one line."""
    if not isinstance(rows, dict):
        return f"  {rows}"
    lines = table({name.replace("_", " "): in_a_line(value) for name, value in rows.items()})
    return "\n".join(f"  {line}" for line in lines.splitlines())


def in_a_line(value: Any) -> str:
    """A value for people."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "none" if value is None else str(value)


# --- This machine ------------------------------------------------------------------------------


def about_here() -> dict[str, Any]:
    """Versions, devices, and what can be trained on."""
    devices = [kind for kind in ("cuda", "mps", "cpu") if is_there(kind)]
    return {
        "versions": {
            PROGRAM: slp_transformer.__version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
        },
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "devices": devices,
            "threads": torch.get_num_threads(),
        },
        "data": {"folder": str(data_dir()), "corpora": corpus_names()},
        "recipes": {name: first_comment(path) for name, path in BUILT_IN.items()},
    }


def is_there(kind: str) -> bool:
    """Whether this machine has a device of a kind."""
    try:
        return bool(pick_device(kind))
    except ValueError:
        return False


def first_comment(path: Path) -> str:
    """What a recipe says of itself."""
    return path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


# --- A run -------------------------------------------------------------------------------------


def about_run(folder: Path) -> dict[str, Any]:
    """What a run is made of, without loading its weights.

    Raises:
        ValueError: if there is no whole checkpoint in it.
    """
    if not folder.is_dir():
        raise ValueError(f"There is no folder {folder}: name one that a run was kept in.")
    if is_pretrained(folder):
        return published_model.about(folder)
    last = checkpoint_folder(folder, "last")
    made_of, memory = read_made_of(last), read_memory(last)
    recipe = find_recipe(folder)
    config = made_of.config
    about = {
        "model": {"kind": made_of.model} | (config.to_dict() if config else {}),
        "parameters": parameters(made_of.model, config) if config else None,
        "lora": beside(last),
        "tokenizer": about_tokenizer(load_tokenizer(folder, "last")),
        "training": progress(folder, memory),
        "settings": memory.settings.to_dict() if memory else None,
        "data": None if recipe is None else dataclasses.asdict(recipe.data),
        "files": files(folder),
    }
    return {head: rows for head, rows in about.items() if rows is not None}


def parameters(kind: str, config: TransformerConfig) -> dict[str, int]:
    """How many parameters there are, by what they do."""
    count = count_parameters(config, encoder_decoder=kind == "EncoderDecoder")
    return dataclasses.asdict(count) | {"total": count.total}


def beside(folder: Path) -> dict[str, Any] | None:
    """What A and B of a checkpoint stand beside, if it has them."""
    base = read_base(folder)
    return base and {"rank": base.rank, "beside": base.checkpoint}


def about_tokenizer(content: Any) -> dict[str, Any] | None:
    """What the tokens are."""
    if content is None:
        return None
    tokenizer = tokenizer_from_json(content)
    if isinstance(tokenizer, PairTokenizer):
        told = {"kind": tokenizer.source.kind, "from": tokenizer.languages[0]}
        told |= {"into": tokenizer.languages[1], "tokens": tokenizer.vocab_size}
        own = tokenizer.source_vocab_size
        return told if own is None else told | {"tokens_of_the_source": own}
    kind = tokenizer.kind if isinstance(tokenizer, TextTokenizer) else "guitar tablature"
    return {"kind": kind, "tokens": tokenizer.vocab_size}


def progress(folder: Path, memory: Memory | None) -> dict[str, Any] | None:
    """How far a run has come."""
    if memory is None:
        return None
    state = RunState(memory.settings, memory.data)
    state.step, state.losses, state.records = memory.step, memory.losses, memory.records
    finished = state.finished()
    told = {"step": state.step, "of": state.settings.steps, "finished": finished}
    if state.records:
        last, best = state.records[-1], min(state.records, key=lambda record: record.valid_loss)
        told |= {"train_loss": last.train_loss, "valid_loss": last.valid_loss}
        told |= {"best_valid_loss": best.valid_loss, "best_step": best.step}
    if not finished:
        told["to_go_on"] = command("train", "--run", folder, "--resume")
    return told


def files(folder: Path) -> dict[str, str]:
    """The run's checkpoints, and how large all of its files are."""
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return read_index(folder) | {"folder": str(folder.resolve()), "megabytes": round(size / 1e6, 2)}
