"""Show a run's model, tokenizer and progress; without a run, this machine and the presets."""

import dataclasses
import platform
from pathlib import Path
from typing import Any

import torch

import slp_transformer
from slp_transformer.cli.console import PROGRAM, command, print_result
from slp_transformer.cli.options import Info
from slp_transformer.config import TransformerConfig
from slp_transformer.data.corpora import data_dir, list_corpora
from slp_transformer.modern.published_folders import is_pretrained_folder
from slp_transformer.scaling_laws import count_parameters
from slp_transformer.tasks.base import format_table, to_json
from slp_transformer.tasks.loaded_run import find_config, find_task
from slp_transformer.tasks.run_config import PRESETS
from slp_transformer.training.checkpoint_files import (
    checkpoint_folder,
    find_checkpoints,
    load_lora_base,
    load_model_spec,
    load_tokenizer,
    load_trainer_state,
)
from slp_transformer.training.devices import pick_device
from slp_transformer.training.trainer_state import TrainerState


def execute(options: Info) -> None:
    """Print what is known.

    Raises:
        ValueError: if there is no such run.
    """
    content = machine_info() if options.run is None else run_info(options.run)
    if options.json:
        print_result(to_json(content))
    else:
        print_result("\n\n".join(f"{head}\n{indented(rows)}" for head, rows in content.items()))


def indented(rows: Any) -> str:
    """Return a table below a heading; a value that has parts in one line."""
    if not isinstance(rows, dict):
        return f"  {rows}"
    lines = format_table({name.replace("_", " "): format_value(v) for name, v in rows.items()})
    return "\n".join(f"  {line}" for line in lines.splitlines())


def format_value(value: Any) -> str:
    """Return a value for people."""
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


def machine_info() -> dict[str, Any]:
    """Return versions, devices, corpora and presets."""
    devices = [kind for kind in ("cuda", "mps", "cpu") if has_device(kind)]
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
        "data": {"folder": str(data_dir()), "corpora": list_corpora()},
        "presets": {name: first_comment(path) for name, path in PRESETS.items()},
    }


def has_device(kind: str) -> bool:
    """Return whether this machine has a device of a kind."""
    try:
        return bool(pick_device(kind))
    except ValueError:
        return False


def first_comment(path: Path) -> str:
    """Return the comment that a preset begins with."""
    return path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


# --- A run -------------------------------------------------------------------------------------


def run_info(folder: Path) -> dict[str, Any]:
    """Return the model configuration, parameters and files of a run, without loading its weights.

    Raises:
        ValueError: if there is no whole checkpoint in it.
    """
    task = find_task(folder)
    if is_pretrained_folder(folder):
        return task.info(folder)
    last = checkpoint_folder(folder, "last")
    spec, state = load_model_spec(last), load_trainer_state(last)
    run_config, config = find_config(folder), spec.config
    tokenizer = load_tokenizer(folder, "last")
    about = {
        "model": {"kind": spec.model} | (config.to_dict() if config else {}),
        "parameters": parameter_counts(spec.model, config) if config else None,
        "lora": lora_info(last),
        "tokenizer": None if tokenizer is None else task.tokenizer_info(tokenizer),
        "training": progress(folder, state),
        "settings": state.config.to_dict() if state else None,
        "data": run_config and {"task": task.name} | vars(run_config.data),
        "files": files(folder),
    }
    return {head: rows for head, rows in about.items() if rows is not None}


def parameter_counts(kind: str, config: TransformerConfig) -> dict[str, int]:
    """Return the number of parameters of each part."""
    count = count_parameters(config, encoder_decoder=kind == "EncoderDecoder")
    return dataclasses.asdict(count) | {"total": count.total}


def lora_info(folder: Path) -> dict[str, Any] | None:
    """Return rank and base of a LoRA checkpoint; None for others."""
    base = load_lora_base(folder)
    return base and {"rank": base.rank, "base": base.checkpoint}


def progress(folder: Path, state: TrainerState | None) -> dict[str, Any] | None:
    """Return the progress of a run."""
    if state is None:
        return None
    finished = state.finished()
    done = {"step": state.step, "of": state.config.steps, "finished": finished}
    if history := state.eval_history:
        last, best = history[-1], min(history, key=lambda record: record.val_loss)
        done |= {"train_loss": last.train_loss, "val_loss": last.val_loss}
        done |= {"best_val_loss": best.val_loss, "best_step": best.step}
    if not finished:
        done["to_resume"] = command("train", "--out-dir", folder, "--resume")
    return done


def files(folder: Path) -> dict[str, str]:
    """Return the run's checkpoints, and the size of all of its files."""
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return find_checkpoints(folder) | {
        "folder": str(folder.resolve()),
        "megabytes": round(size / 1e6, 2),
    }
