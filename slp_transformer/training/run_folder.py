"""A run's folder: its checkpoints, and the JSON in them; nothing here needs PyTorch.

`slp_transformer.training.checkpoints` describes the layout, and reads and writes tensors.
"""

import contextlib
import functools
import json
import re
import time
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path, PureWindowsPath
from pkgutil import resolve_name
from typing import Any, Literal, ParamSpec, TypeVar

from slp_transformer._internal.atomic_write import make_random_folder, remove_path
from slp_transformer._internal.bounds import MAX_JSON_BYTES, WAITS
from slp_transformer._internal.checksums import verify_files
from slp_transformer._internal.config_checks import check_positive_sizes
from slp_transformer._internal.docs_sections import see
from slp_transformer._internal.json_files import load_validated, read_json, validate_json
from slp_transformer.modern.published_folders import is_pretrained_folder
from slp_transformer.training.train_config import RESUMABLE_SETTINGS, TrainConfig

P = ParamSpec("P")
T = TypeVar("T")
CheckpointChoice = Literal["last", "best", "average"]

MANIFEST_FILE, LORA_BASE_FILE = "checkpoint.json", "base.json"
WEIGHTS_FILE, LORA_WEIGHTS_FILE = "model.safetensors", "lora.safetensors"
EVALUATED_SUFFIX = "-evaluated"  # of a step that was saved before, its evaluation interrupted
KEPT_FILE = "lora-base"  # marks a checkpoint that LoRA runs need, which is not deleted
CHECKPOINT_NAME = re.compile(rf"step-\d{{8,}}({EVALUATED_SUFFIX})?")
BOOK_CONFIG = "slp_transformer.config:TransformerConfig"
MODELS = {  # that are loaded by name: the class, and that of its configuration
    "TransformerLM": ("slp_transformer.language_model:TransformerLM", BOOK_CONFIG),
    "EncoderDecoder": ("slp_transformer.encoder_decoder:EncoderDecoder", BOOK_CONFIG),
    "ModernLM": ("slp_transformer.modern:ModernLM", "slp_transformer.modern:ModernConfig"),
    "Bert": ("slp_transformer.modern:Bert", "slp_transformer.modern:BertConfig"),
}


# --- Reading beside a process that trains --------------------------------------------------------


def with_retries_if_run_changes(read: Callable[P, T]) -> Callable[P, T]:
    """Let a function that reads a run's checkpoints begin anew when one was deleted meanwhile.

    An error counts if the run has the same checkpoints before and after it; as long as a process
    saves and deletes some, it may be of a folder that is no longer there.

    Args:
        read: takes the run's folder, or a checkpoint's own, as its first argument.

    Raises:
        ValueError: by the function, also if the run still changes after some seconds.
    """

    @functools.wraps(read)
    def read_until_unchanged(*args: P.args, **kwargs: P.kwargs) -> T:
        run = Path(str(args[0] if args else next(iter(kwargs.values()))))
        seconds, says = WAITS["a checkpoint that stays"]
        deadline = time.monotonic() + seconds
        while True:
            before = list_checkpoint_names(run)
            try:
                return read(*args, **kwargs)
            except (OSError, ValueError) as error:
                if list_checkpoint_names(run) == before:
                    raise
                if time.monotonic() > deadline:
                    raise ValueError(says.format(run, seconds)) from error

    return read_until_unchanged


def list_checkpoint_names(run: Path) -> list[str]:
    """Return the names of a run's checkpoints, or that of a checkpoint as long as it is there."""
    if CHECKPOINT_NAME.fullmatch(run.name):
        return [run.name] if run.exists() else []
    return [path.name for path in list_checkpoints(run)]


# --- The files of a checkpoint -------------------------------------------------------------------


@dataclass(frozen=True)
class EvalRecord:
    """One evaluation during a training run; losses are means in nats per token.

    Attributes:
        step: training steps made so far.
        train_loss: loss of the steps since the last evaluation (with label smoothing, if any).
        val_loss: loss on the validation sequences, which are the same in all evaluations.
        full_val_loss: loss on all validation data, in the last record of a run that evaluates on a
            subset; None elsewhere.
        val_metrics: what was measured beside the validation loss, by name; empty in runs of
            version 0.2.
        full_val_metrics: the same beside the loss on all validation data.
    """

    step: int
    train_loss: float
    val_loss: float
    full_val_loss: float | None = None
    val_metrics: dict[str, float] = field(default_factory=dict)
    full_val_metrics: dict[str, float] = field(default_factory=dict)

    def means(self) -> dict[str, float]:
        """Return all that was measured on validation data, by names as `full_val_accuracy`."""
        found = {"val_loss": self.val_loss}
        found |= {f"val_{name}": value for name, value in self.val_metrics.items()}
        if self.full_val_loss is not None:
            found["full_val_loss"] = self.full_val_loss
        return found | {f"full_val_{name}": v for name, v in self.full_val_metrics.items()}

    def to_row(self) -> dict[str, float | None]:
        """Return the record as a row of a table: all numbers by name, none nested."""
        row = {"step": self.step, "train_loss": self.train_loss, "full_val_loss": None}
        return row | self.means()


@dataclass
class TrainerState:
    """training.json: the progress of a run.

    Attributes:
        step: training steps made so far.
        config: settings of the run.
        data: fingerprints of the training and validation data.
        eval_history: the evaluations so far.
        losses: losses of the steps since the last evaluation.
        environment: what the last bits of its numbers rest on; empty in runs of version 0.3.
    """

    step: int
    config: TrainConfig
    data: dict[str, Any]
    eval_history: list[EvalRecord]
    losses: list[float]
    environment: dict[str, str] = field(default_factory=dict)

    def is_eval_due(self, interval: int) -> bool:
        """Return whether to evaluate before the next step."""
        evaluated = self.eval_history[-1].step if self.eval_history else 0
        return self.step > evaluated and (
            self.step % interval == 0 or self.step == self.config.steps
        )

    def best_step(self) -> int | None:
        """Return the step of the first evaluation with the lowest loss; None before any."""
        history = self.eval_history
        return min(history, key=lambda record: record.val_loss).step if history else None

    def evals_since_best(self) -> int:
        """Return the number of evaluations after the best one."""
        best = self.best_step()
        return sum(best is not None and record.step > best for record in self.eval_history)

    def check_steps(self, steps: int, folder: Path) -> None:
        """Refuse fewer steps than the run in a folder has made.

        Raises:
            ValueError: naming both numbers.
        """
        if self.step > steps:
            raise ValueError(
                f"The run in {folder} is at step {self.step} already: steps must be {self.step} or "
                f"more, not {steps}."
            )

    def is_finished(self) -> bool:
        """Return whether all steps are made and evaluated, or the patience is used up."""
        patience = self.config.early_stopping_patience
        stopped_early = patience is not None and self.evals_since_best() >= patience
        return stopped_early or (self.step >= self.config.steps and not self.is_eval_due(1))


@dataclass(frozen=True)
class Manifest:
    """checkpoint.json: the files of a checkpoint.

    Attributes:
        format: the version of all its files together.
        step: training steps made so far.
        files: the size of each file in bytes.
        crc32: the checksum of each file, in hexadecimal digits; empty in older checkpoints.
    """

    format: Literal[1]
    step: int
    files: dict[str, int]
    crc32: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelSpec:
    """config.json: the class of a model and its configuration.

    Attributes:
        model: the name of its class.
        config: its configuration; JSON, or None, for a class that is not of this package.
        defaults: the default of each setting in the version that wrote the file, so that a reader
            without some setting may ignore it there; None in files of version 0.2.
    """

    model: str
    config: Any
    defaults: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the specification as JSON, with the defaults of this version."""
        if not hasattr(self.config, "to_dict"):
            return {"model": self.model, "config": self.config}
        spec = {"model": self.model, "config": self.config.to_dict()}
        if is_dataclass(self.config):
            own = {f.name: f.default for f in fields(self.config) if f.default is not MISSING}
            spec["defaults"] = own
        return spec


@dataclass(frozen=True)
class LoraBase:
    """base.json: the checkpoint that a LoRA adapter was trained on.

    Attributes:
        checkpoint: its folder.
        sha256: checksum of its weights, all files of them.
        rank: r, the columns of A and the rows of B.
        published: whether it is the folder of a published model.
    """

    checkpoint: str
    sha256: str
    rank: int
    published: bool = False

    def __post_init__(self) -> None:
        """Refuse an impossible rank.

        Raises:
            ValueError: saying what is wrong.
        """
        check_positive_sizes(rank=self.rank)


def load_model_spec(folder: Path) -> ModelSpec:
    """Read the class of a checkpoint's model, and its configuration.

    Raises:
        ValueError: if the file cannot be read, or describes no model.
    """
    path = folder / "config.json"
    spec = load_validated(ModelSpec, path)
    if spec.model not in MODELS:
        return spec
    kind, content = resolve_name(MODELS[spec.model][1]), json.dumps(spec.config).encode()
    return ModelSpec(spec.model, validate_json(kind, content, f"{path}, config"))


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
    return load_validated(TrainerState | None, folder / "training.json", MAX_JSON_BYTES)


# --- The checkpoints of a run --------------------------------------------------------------------


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint of a run, opened: all that its files of JSON say at one moment.

    Attributes:
        folder: its folder.
        which: as what it was asked for; with "average" the last, with which averaging begins.
        step: training steps made so far.
        spec: the class of its model and the configuration.
        lora_base: what a LoRA adapter belongs to; None if this is a full checkpoint.
        tokenizer: the tokenizer's JSON; None if it was saved without one.
        run_state: how far the whole run is, by its last checkpoint; None if its model was saved
            without a run.
        averaged: the folders of the checkpoints whose weights are averaged; itself alone but for
            "average".
    """

    folder: Path
    which: CheckpointChoice
    step: int
    spec: ModelSpec
    lora_base: LoraBase | None
    tokenizer: Any
    run_state: TrainerState | None
    averaged: tuple[Path, ...]


@with_retries_if_run_changes
def open_checkpoint(run: str | Path, which: CheckpointChoice = "last") -> Checkpoint:
    """Open a run's checkpoint: read each of its files of JSON once, and check that all are there.

    Args:
        run: the run's folder, or a checkpoint's own.
        which: "last" or "best"; "average" gives the last, with which averaging begins.

    Raises:
        ValueError: if there is none, or it is damaged, or not of this package.
    """
    folders = list_run_checkpoints(Path(run))
    state = load_trainer_state(folders[-1])
    folder = choose_best_checkpoint(folders, state) if which == "best" else folders[-1]
    step, path = load_manifest(folder).step, folder / "tokenizer.json"
    tokenizer = read_json(path, MAX_JSON_BYTES) if path.exists() else None
    spec, base = load_model_spec(folder), load_lora_base(folder)
    averaged = list_recent_checkpoints(folder, state) if which == "average" else [folder]
    return Checkpoint(folder, which, step, spec, base, tokenizer, state, tuple(averaged))


def list_recent_checkpoints(last: Path, state: TrainerState | None) -> list[Path]:
    """List the checkpoints that a run keeps to be averaged, up to the last one.

    Raises:
        ValueError: if one of them is damaged.
    """
    folders = [
        path
        for path in find_checkpoints(last.parent)
        if 0 < step_of_checkpoint(path) <= step_of_checkpoint(last)
    ]
    recent = folders[-(state.config.keep_last if state else 1) :]
    for folder in recent:
        load_manifest(folder)
    return recent or [last]


def list_run_checkpoints(run: Path) -> list[Path]:
    """List the checkpoints of a run, or the one whose folder this is.

    Raises:
        ValueError: if there is none.
    """
    folders = [run] if (run / MANIFEST_FILE).exists() else find_checkpoints(run)
    if not folders:
        other = is_pretrained_folder(run)
        end = ": it holds a published model, which from_pretrained loads." if other else "."
        raise ValueError(f"There is no checkpoint in {run}{end}")
    return folders


def load_manifest(folder: Path) -> Manifest:
    """Read which files a checkpoint has, and check that they are complete.

    Raises:
        ValueError: if one is damaged or missing.
    """
    manifest = load_validated(Manifest, folder / MANIFEST_FILE)
    if CHECKPOINT_NAME.fullmatch(folder.name) and manifest.step != step_of_checkpoint(folder):
        raise ValueError(
            f"The checkpoint {folder} is damaged: {MANIFEST_FILE} says step {manifest.step}."
        )
    for name, size in manifest.files.items():
        if PureWindowsPath(name).name != name:
            raise ValueError(f"The checkpoint {folder} is damaged: it lists {name!r}.")
        found = (folder / name).stat().st_size if (folder / name).exists() else None
        if found != size:
            has = "is missing" if found is None else f"has {found} bytes, not {size}"
            raise ValueError(f"The checkpoint {folder} is damaged: {name} {has}.")
    return manifest


def verify_checkpoint_checksums(folder: Path) -> bool:
    """Compare the files of a checkpoint with their checksums, and return whether it has any.

    Raises:
        ValueError: naming the file that has changed since it was written, or is incomplete.
    """
    manifest = load_manifest(folder)
    earlier = [path.name for path in list_checkpoints(folder.parent) if path.name < folder.name]
    advice = f" or delete the folder, to go on from {earlier[-1]}" if earlier else ""
    verify_files(folder, manifest.crc32, "The checkpoint", f"restore it from a copy{advice}")
    return bool(manifest.crc32)


def list_checkpoints(run: str | Path) -> list[Path]:
    """List the folders in a run that have a checkpoint's name, in order."""
    found = (path for path in Path(run).glob("step-*") if CHECKPOINT_NAME.fullmatch(path.name))
    return sorted(path for path in found if path.is_dir())


def find_checkpoints(run: str | Path) -> list[Path]:
    """Find a run's checkpoints, one for each step, in order."""
    return list({step_of_checkpoint(path): path for path in list_checkpoints(run)}.values())


def choose_best_checkpoint(folders: list[Path], state: TrainerState | None) -> Path:
    """Return the checkpoint with the lowest validation loss; the last one if none was evaluated.

    Args:
        folders: the run's checkpoints.
        state: the last one's, which knows all losses.
    """
    best = None if state is None else state.best_step()
    return next((path for path in folders if step_of_checkpoint(path) == best), folders[-1])


def delete_old_checkpoints(run: Path, keep_last: int) -> None:
    """Delete checkpoints that nothing needs.

    The best one is needed, the last ones, and those that LoRA runs were trained on. A link to a
    checkpoint is its user's.

    Raises:
        ValueError: if the last checkpoint cannot be read.
    """
    folders = find_checkpoints(run)
    best = choose_best_checkpoint(folders, load_trainer_state(folders[-1]))
    keep = {best, *folders[-keep_last:]}
    for old in list_checkpoints(run):
        if old not in keep and not (old / KEPT_FILE).exists() and not old.is_symlink():
            # What Windows will not rename, because this process has it open, goes the next time.
            with contextlib.suppress(OSError):
                # Renamed first, so that nobody finds a checkpoint without some of its files.
                temp = make_random_folder(run)
                with contextlib.suppress(OSError):
                    old.rename(temp / old.name)
                remove_path(temp)


def step_of_checkpoint(folder: Path) -> int:
    """Return the step in the name of a checkpoint's folder; 0 if it has another name."""
    return int(folder.name.split("-")[1]) if CHECKPOINT_NAME.fullmatch(folder.name) else 0


def check_settings_unchanged(name: str, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse to resume with other values, except for those in `RESUMABLE_SETTINGS`.

    Raises:
        ValueError: naming each difference.
    """
    before, now = flatten_dict(name, before), flatten_dict(name, now)
    free = {f"config.{setting}" for setting in RESUMABLE_SETTINGS}
    differences = [
        f"{name} was {before.get(name)!r} and is now {now.get(name)!r}"
        for name in now | before
        if name not in free and before.get(name) != now.get(name)
    ]
    if differences:
        raise ValueError(f"{'; '.join(differences)}.{see('resume')}")


def flatten_dict(prefix: str, value: Any) -> dict[str, Any]:
    """Return nested dicts as one, with dotted names."""
    if not isinstance(value, dict):
        return {prefix: value}
    leaves: dict[str, Any] = {}
    for name, part in value.items():
        leaves |= flatten_dict(f"{prefix}.{name}", part)
    return leaves
