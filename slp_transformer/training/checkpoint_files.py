"""A run folder's checkpoints and their JSON files; nothing here needs PyTorch.

`slp_transformer.training.checkpoints` describes the layout, and reads and writes weights.
"""

import contextlib
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from slp_transformer._internal.atomic_write import read_json
from slp_transformer._internal.config_checks import check_size
from slp_transformer._internal.json_schema import load_validated
from slp_transformer.config import TransformerConfig
from slp_transformer.training.trainer_state import TrainerState

CheckpointChoice = Literal["last", "best", "average"]

FORMAT = 1
WEIGHTS_FILE, LORA_WEIGHTS_FILE = "model.safetensors", "lora.safetensors"
LORA_BASE_FILE = "base.json"
REQUIRED_FILES = {"config.json", "training.json", "state.pt"}  # and the weights
TEMP_FOLDER = ".writing"
EVALUATED_SUFFIX = "-evaluated"  # of a step that was saved before, its evaluation interrupted
CHECKPOINT_NAME = re.compile(rf"step-\d{{8,}}({EVALUATED_SUFFIX})?")


@dataclass(frozen=True)
class Manifest:
    """checkpoint.json: the files of a checkpoint.

    Attributes:
        format: the version of all its files together.
        step: training steps made so far.
        files: the size of each file in bytes.
    """

    format: int
    step: int = -1
    files: dict[str, int] = field(default_factory=dict)

    def __post_init__(self):
        """Refuse another format, missing files, and names of files elsewhere.

        Raises:
            ValueError: saying what is wrong.
        """
        if self.format != FORMAT:
            raise ValueError(
                f"this is not a checkpoint that this version can read: it says format "
                f"{self.format}, not {FORMAT}."
            )
        weights = LORA_WEIGHTS_FILE if LORA_BASE_FILE in self.files else WEIGHTS_FILE
        if missing := sorted((REQUIRED_FILES | {weights}) - self.files.keys()):
            raise ValueError(f"this checkpoint lacks {', '.join(missing)}.")
        if self.step < 0:
            raise ValueError(f"step must be 0 or more, not {self.step}.")
        for name in self.files:
            if not name or name in (".", "..") or Path(name).name != name or "\0" in name:
                raise ValueError(f"{name!r} is not the name of a file in this folder.")


@dataclass(frozen=True)
class ModelSpec:
    """config.json: the class of a model and its configuration.

    Attributes:
        model: the name of its class.
        config: its configuration; None for a class that is not of this package.
    """

    model: str
    config: TransformerConfig | None

    def to_dict(self) -> dict[str, Any]:
        """The specification as JSON."""
        return {"model": self.model, "config": self.config and self.config.to_dict()}


@dataclass(frozen=True)
class LoraBase:
    """base.json: the checkpoint that a LoRA adapter was trained on.

    Attributes:
        checkpoint: its folder.
        sha256: checksum of its weights file.
        rank: r, the columns of A and the rows of B.
    """

    checkpoint: str
    sha256: str
    rank: int

    def __post_init__(self):
        """Refuse an impossible rank.

        Raises:
            ValueError: saying what is wrong.
        """
        check_size(rank=self.rank)


def load_model_spec(folder: Path) -> ModelSpec:
    """Read the class of a checkpoint's model, and its configuration.

    Raises:
        ValueError: if the file cannot be read, or describes no model.
    """
    return load_validated(ModelSpec, folder / "config.json")


def load_lora_base(folder: Path) -> LoraBase | None:
    """Read which checkpoint a LoRA adapter belongs to; None if this is a full checkpoint.

    Raises:
        ValueError: if the file cannot be read, or says something else.
    """
    path = folder / LORA_BASE_FILE
    return load_validated(LoraBase, path) if path.exists() else None


def load_trainer_state(folder: Path) -> TrainerState | None:
    """Read the state of a checkpoint's run; None if its model was saved without a run.

    Raises:
        ValueError: if the file cannot be read, or holds something else.
    """
    return load_validated(TrainerState | None, folder / "training.json", lenient=True)


def load_tokenizer(run: str | Path, which: CheckpointChoice = "best") -> Any:
    """Read the tokenizer's JSON of a run's checkpoint; None if it was saved without one.

    Raises:
        ValueError: if there is no whole checkpoint.
    """
    path = checkpoint_folder(run, which) / "tokenizer.json"
    return read_json(path) if path.exists() else None


# --- The checkpoints of a run --------------------------------------------------------------------


def checkpoint_folder(run: str | Path, which: CheckpointChoice = "last") -> Path:
    """Find the folder of a run's last or best checkpoint, and check that it is whole.

    Args:
        run: the run's folder, or a checkpoint's own.
        which: "last" or "best"; "average" gives the last, with which averaging begins.

    Raises:
        ValueError: if there is none, or it is not whole, or not of this package.
    """
    which = "last" if which == "average" else which
    run = Path(run)
    own = (run / "checkpoint.json").exists()
    index = {which: "."} if own else find_checkpoints(run)
    if not index:
        raise ValueError(f"There is no checkpoint in {run}.")
    folder = run / index[which]
    for name, size in load_validated(
        Manifest, folder / "checkpoint.json", lenient=True
    ).files.items():
        found = (folder / name).stat().st_size if (folder / name).exists() else None
        if found != size:
            has = "is missing" if found is None else f"has {found} bytes"
            raise ValueError(f"The checkpoint {folder} is damaged: {name} {has}, not {size}.")
    return folder


def find_checkpoints(run: str | Path) -> dict[str, str]:
    """Find the names of a run's "last" and "best" checkpoint; empty if there is none yet.

    Where checkpoints.json is missing or damaged, the checkpoints themselves are read.

    Raises:
        ValueError: if none of the checkpoints' folders is whole, or checkpoints.json is a folder.
    """
    return load_checkpoint_index(run) or scan_checkpoints(Path(run))


def load_checkpoint_index(run: str | Path) -> dict[str, str]:
    """Read checkpoints.json; empty if it is missing or damaged.

    Raises:
        ValueError: if it is a folder, so that it could not be written either.
    """
    path = Path(run) / "checkpoints.json"
    if path.is_dir():
        raise ValueError(f"{path} is a folder, where a file should be: move it away.")
    try:
        index = read_json(path) if path.exists() else {}
    except ValueError:
        return {}
    sound = isinstance(index, dict) and set(index) == {"last", "best"}
    return index if sound and all(map(is_checkpoint_name, index.values())) else {}


def scan_checkpoints(run: Path) -> dict[str, str]:
    """Find what checkpoints.json should say, from the checkpoints that are whole.

    The last is the one of the last step, the best the one with the lowest validation loss.

    Raises:
        ValueError: if none of the checkpoints' folders is whole.
    """
    steps: dict[Path, int] = {}
    folders = [path for path in list_checkpoints(run) if any(path.iterdir())]
    for folder in folders:
        with contextlib.suppress(ValueError):
            steps[checkpoint_folder(folder)] = step_of(folder)
    if not steps:
        if folders:
            raise ValueError(
                f"{run} has no checkpoints.json, and none of its folders ({folders[0].name}, for "
                "one) is a whole checkpoint: move them away, or choose another folder."
            )
        return {}
    last = max(steps, key=lambda folder: (steps[folder], folder.name))
    state = load_trainer_state(last)
    losses = {record.step: record.val_loss for record in (state.eval_history if state else ())}
    evaluated = [folder for folder in reversed(steps) if steps[folder] in losses]
    best = min(evaluated, key=lambda folder: (losses[steps[folder]], steps[folder]), default=last)
    return {"last": last.name, "best": best.name}


def list_checkpoints(run: Path) -> list[Path]:
    """List the folders in a run that have a checkpoint's name, in order."""
    return [p for p in sorted(run.glob("step-*")) if is_checkpoint_name(p.name) and p.is_dir()]


def step_of(folder: Path) -> int:
    """The step in the name of a checkpoint's folder."""
    return int(folder.name.split("-")[1])


def is_checkpoint_name(name: object) -> bool:
    """Tell if this is a checkpoint's name."""
    return isinstance(name, str) and CHECKPOINT_NAME.fullmatch(name) is not None
