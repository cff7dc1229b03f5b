"""Show a run's model, tokenizer and progress; without a run, this machine and the presets."""

import contextlib
import platform
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import slp_transformer
from slp_transformer._internal.plugins import Options
from slp_transformer.cli.console import PROGRAM, format_command, print_result
from slp_transformer.config import TransformerConfig
from slp_transformer.data.text_files import data_dir, list_corpora
from slp_transformer.modern.config import ModernConfig
from slp_transformer.tasks.base import TOKENS, SavedRun, format_table, to_json
from slp_transformer.tasks.config_files import PRESETS
from slp_transformer.tasks.data_settings import Positional
from slp_transformer.tasks.saved_runs import open_run, resolve_run
from slp_transformer.training.run_folder import (
    MANIFEST_FILE,
    TrainerState,
    choose_best_checkpoint,
    find_checkpoints,
    verify_checkpoint_checksums,
    with_retries_if_run_changes,
)

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class InfoOptions(Options):
    """Show a run's model, tokenizer and progress; without a run, this machine and the presets.

    Attributes:
        run: the folder of a run, or of a published model.
        verify: compare the run's checkpoints and corpus with their checksums.
        json: print JSON.
    """

    run: Positional[Path | None] = None
    verify: bool = False
    json: bool = False
    opened: SavedRun | None = field(default=None, init=False)  # no flag: by `check`

    def __post_init__(self) -> None:
        """Find a model that is given by its name."""
        object.__setattr__(self, "run", self.run and resolve_run(self.run))

    def check(self) -> None:
        """Open the run; refuse a folder without one, or a request to verify nothing.

        Raises:
            ValueError: naming it.
        """
        if self.run is not None:
            object.__setattr__(self, "opened", open_run(self.run, "last"))
        if self.verify and (self.opened is None or self.opened.checkpoint is None):
            raise ValueError("--verify needs a run: only runs have checksums.")


def execute(options: InfoOptions) -> None:
    """Print what is known.

    Raises:
        ValueError: if there is no such run.
    """
    verified = verify_checksums(options.run) if options.run is not None and options.verify else {}
    run = options.opened
    content = collect_machine_info() if run is None else collect_run_info(run)
    if verified:
        content["files"] |= verified
    if options.json:
        print_result(to_json(content))
        return
    sections = []
    for head, rows in content.items():
        table = format_table({name.replace("_", " "): format_value(v) for name, v in rows.items()})
        sections.append("\n  ".join([head, *table.splitlines()]))
    print_result("\n\n".join(sections))


def format_value(value: Any) -> str:
    """Return a value for people."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def collect_machine_info() -> dict[str, Any]:
    """Return versions, devices, corpora and presets."""
    import torch

    from slp_transformer.training.devices import available_devices

    folder = {}
    with contextlib.suppress(ImportError):  # without pooch there are no downloads
        folder["folder"] = str(data_dir())
    presets = {name: path.read_text("utf-8").splitlines()[0] for name, path in PRESETS.items()}
    return {
        "versions": {
            PROGRAM: slp_transformer.__version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
        },
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "devices": available_devices(),
            "threads": torch.get_num_threads(),
        },
        "data": folder | {"corpora": list_corpora()},
        "presets": {name: comment.removeprefix("# ") for name, comment in presets.items()},
    }


def collect_run_info(run: SavedRun) -> dict[str, Any]:
    """Return the model configuration, parameters and files of a run, without loading its weights.

    Raises:
        ValueError: if a published model has a part that is not supported.
    """
    from slp_transformer.modern.pretrained import build_on_meta
    from slp_transformer.scaling_laws import count_parameters

    folder, task, last = run.folder, run.task, run.checkpoint
    if last is None:
        return collect_published_info(folder)
    spec, state, base = last.spec, last.run_state, last.lora_base
    about: dict[str, Any] = {"model": {"kind": spec.model}}
    config = spec.to_dict()["config"]
    if isinstance(config, dict):  # that of a class from elsewhere may be anything
        about["model"] |= config
    if isinstance(spec.config, ModernConfig):
        about["parameters"] = {"total": count_weights(build_on_meta(spec.config))}
    elif isinstance(spec.config, TransformerConfig):
        count = count_parameters(spec.config, encoder_decoder=spec.model == "EncoderDecoder")
        about["parameters"] = asdict(count) | {"total": count.total}
    if base is not None:
        about["lora"] = {"rank": base.rank, "base": base.checkpoint}
    if last.tokenizer is not None:
        about["tokenizer"] = task.tokenizer_info(task.tokenizer_of(run))
    if state is not None:
        about |= {"training": collect_progress(folder, state), "settings": state.config.to_dict()}
    if run.config is not None:
        about["data"] = {"task": task.name} | vars(run.config.data)
    folders = [path for path in find_checkpoints(folder) if path.name <= last.folder.name]
    best = choose_best_checkpoint([*folders, last.folder], state)
    names = {"best": best.name, "last": last.folder.name}
    return about | {"files": names | collect_folder_info(folder)}


@with_retries_if_run_changes
def verify_checksums(folder: Path) -> dict[str, Any]:
    """Compare a run's checkpoints and corpus with their checksums; say what has some.

    Raises:
        ValueError: naming the first file that has changed since it was written.
    """
    from slp_transformer.data.token_file import verify_token_folder

    folders = [folder] if (folder / MANIFEST_FILE).exists() else find_checkpoints(folder)
    verified = {path.name: verify_checkpoint_checksums(path) for path in folders}
    if (folder / TOKENS).is_dir():
        verified[TOKENS] = verify_token_folder(folder / TOKENS)
    without = [name for name, has_checksums in verified.items() if not has_checksums]
    return {"verified": [name for name in verified if name not in without], "unverified": without}


def collect_published_info(folder: Path) -> dict[str, Any]:
    """Return what is known of a published model, without loading its weights.

    Raises:
        ValueError: if it has a part that is not supported.
    """
    from slp_transformer.modern.hf_tokenizer import TOKENIZER_FILE, load_tokenizer
    from slp_transformer.modern.pretrained import read_published

    published = read_published(folder)
    config, model = published.config, published.build_on_meta()
    about = {
        "model": {"kind": type(model).__name__, **config.to_dict()},
        "parameters": {"total": count_weights(model)},
        "files": collect_folder_info(folder),
    }
    if (folder / TOKENIZER_FILE).is_file():
        tokenizer = load_tokenizer(folder, config)
        about["tokenizer"] = {"kind": tokenizer.kind, "tokens": tokenizer.vocab_size}
    return about


def count_weights(model: "nn.Module") -> int:
    """Return how many numbers a model learns."""
    return sum(W.numel() for W in model.parameters())


def collect_progress(folder: Path, state: TrainerState) -> dict[str, Any]:
    """Return the progress of a run."""
    finished = state.is_finished()
    done: dict[str, Any] = {"step": state.step, "of": state.config.steps, "finished": finished}
    if history := state.eval_history:
        last, best = history[-1], min(history, key=lambda record: record.val_loss)
        done |= {"train_loss": last.train_loss, "val_loss": last.val_loss}
        done |= {"best_val_loss": best.val_loss, "best_step": best.step}
    if not finished:
        done["to_resume"] = format_command("train", "--out-dir", folder, "--resume")
    return done


@with_retries_if_run_changes
def collect_folder_info(folder: Path) -> dict[str, Any]:
    """Return where a folder is, and the size of all of its files."""
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return {"folder": str(folder.resolve()), "megabytes": round(size / 1e6, 2)}
