"""Checkpoints: a model and the run that trains it, saved so that a power cut loses nothing.

A run's folder has

    checkpoints.json      which of the folders below is the last and which the best
    step-00001000/
        model.safetensors     the weights, the tied E once
        config.json           the class of the model and its configuration
        tokenizer.json        whatever the caller gave, if anything
        training.json         settings, evaluations and the data's fingerprints
        state.pt              optimizer and random state
        checkpoint.json       format, step and the size of each file above

A LoRA adapter has two files in place of model.safetensors

    lora.safetensors      A and B of each matrix
    base.json             the checkpoint it was trained on, its checksum, and the rank

A checkpoint is written under another name, flushed to the disk and renamed; then the one small
index is replaced, which is where the new checkpoint takes over from the old. So a process may be
killed at any moment: the index names whole checkpoints before and after.
"""

import hashlib
import json
import pickle
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_map

from slp_transformer._internal.atomic_write import (
    error_message,
    fsync_path,
    read_json,
    require_extra,
    write_json,
)
from slp_transformer._internal.shape_types import Tensor, format_shape
from slp_transformer.config import TransformerConfig
from slp_transformer.encoder_decoder import EncoderDecoder
from slp_transformer.language_model import TransformerLM
from slp_transformer.lora import add_lora, lora_state_dict
from slp_transformer.scaling_laws import count_parameters
from slp_transformer.training.checkpoint_files import (
    EVALUATED_SUFFIX,
    FORMAT,
    LORA_BASE_FILE,
    LORA_WEIGHTS_FILE,
    TEMP_FOLDER,
    WEIGHTS_FILE,
    CheckpointChoice,
    LoraBase,
    checkpoint_folder,
    find_checkpoints,
    list_checkpoints,
    load_lora_base,
    load_model_spec,
    load_trainer_state,
    step_of,
)
from slp_transformer.training.devices import check_memory
from slp_transformer.training.optimizer import split_decay_groups

FLOATS = ("F64", "F32", "F16", "BF16")  # safetensors' names of floating-point dtypes
MODELS = {kind.__name__: kind for kind in (TransformerLM, EncoderDecoder)}


# --- Saving --------------------------------------------------------------------------------------


def save_checkpoint(
    run: str | Path,
    step: int,
    model: nn.Module,
    *,
    training: Any = None,
    state: dict[str, Any] | None = None,
    tokenizer: Any = None,
    best: bool = True,
    lora_base: LoraBase | None = None,
    keep_last: int = 1,
) -> Path:
    """Save a checkpoint of a run, and delete those that are neither the best nor among the last.

    Args:
        run: the run's folder; created if needed.
        step: training steps made so far.
        model: its weights, and `config` if it has one, are saved.
        training: the state of the run, as JSON.
        state: tensors, numbers and dicts of them that resuming needs.
        tokenizer: the tokenizer as JSON, if there is one.
        best: whether this is the best checkpoint so far.
        lora_base: the checkpoint that the model's LoRA was trained on, to save A and B alone; None
            to save all weights.
        keep_last: number of most recent checkpoints to keep.

    Returns:
        The checkpoint's folder.

    Raises:
        ValueError: if it cannot be written, for example on a full disk. Earlier checkpoints are
            kept.
        ImportError: if safetensors is not installed.
    """
    run = Path(run)
    index = find_checkpoints(run)
    target = run / f"step-{step:08d}"
    if target.name in index.values():
        if read_json(target / "training.json") == json.loads(json.dumps(training)):
            return target
        target = run / f"{target.name}{EVALUATED_SUFFIX}"
        if target.name in index.values():
            return target
    named = {"last": target.name, "best": target.name if best else index.get("best", target.name)}
    temp = run / TEMP_FOLDER
    try:
        run.mkdir(parents=True, exist_ok=True)
        for leftover in (temp, target):  # of a process that was killed
            if leftover.exists():
                shutil.rmtree(leftover)
        temp.mkdir()
        write_files(temp, step, model, training, state, tokenizer, lora_base)
        temp.rename(target)
        fsync_path(run)
        write_json(run / "checkpoints.json", named)
    except (OSError, RuntimeError, safetensors_error()) as error:
        shutil.rmtree(temp, ignore_errors=True)
        if not is_in_index(run, target.name):
            shutil.rmtree(target, ignore_errors=True)
        earlier = f"{index['last']} was kept" if index else "there is no earlier one"
        raise ValueError(
            f"The checkpoint of step {step} could not be written to {run} "
            f"({error_message(error)}): {earlier}. Make room or choose another folder, then resume."
        ) from error
    recent = [path.name for path in list_checkpoints(run) if step_of(path) <= step][-keep_last:]
    for old in list_checkpoints(run):
        if old.name not in (*named.values(), *recent):
            # What Windows will not delete, because this process has it open, goes the next time.
            shutil.rmtree(old, ignore_errors=True)
    return target


def write_files(
    folder: Path,
    step: int,
    model: nn.Module,
    training: Any,
    state: dict[str, Any] | None,
    tokenizer: Any,
    lora_base: LoraBase | None,
) -> None:
    """Write all files of a checkpoint, and flush them to the disk; the manifest comes last."""
    name, weights = WEIGHTS_FILE, unique_weights(model)
    if lora_base is not None:
        name, weights = LORA_WEIGHTS_FILE, lora_state_dict(model)
        write_json(folder / LORA_BASE_FILE, asdict(lora_base))
    weights = {n: W.detach().cpu().contiguous() for n, W in weights.items()}
    require_extra("safetensors.torch", "Checkpoints").save_file(weights, folder / name)
    write_json(folder / "config.json", model_spec(model))
    # safetensors makes a file that only its owner can read; the umask decided on the other one.
    shutil.copymode(folder / "config.json", folder / name)
    if tokenizer is not None:
        write_json(folder / "tokenizer.json", tokenizer)
    write_json(folder / "training.json", training)
    torch.save(tree_map(to_cpu, state or {}), folder / "state.pt")
    sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    for name in sizes:
        fsync_path(folder / name)
    write_json(folder / "checkpoint.json", {"format": FORMAT, "step": step, "files": sizes})


def is_in_index(run: Path, folder: str) -> bool:
    """Tell if a run's index can be read and names a checkpoint."""
    try:
        return folder in json.loads((run / "checkpoints.json").read_text("utf-8")).values()
    except (OSError, ValueError, AttributeError):
        return False


def to_cpu(value: Any) -> Any:
    """A tensor on the CPU; anything else as it is."""
    return value.cpu() if isinstance(value, Tensor) else value


def unique_weights(model: nn.Module) -> dict[str, Tensor]:
    """The state of a model, each tensor under the first of its names."""
    seen, unique = set(), {}
    for name, tensor in model.state_dict().items():
        if (key := (tensor.data_ptr(), tensor.shape, tensor.stride())) not in seen:
            seen.add(key)
            unique[name] = tensor
    return unique


def model_spec(model: nn.Module) -> dict[str, Any]:
    """The class of a model and its configuration, as JSON."""
    config = getattr(model, "config", None)
    settings = config.to_dict() if isinstance(config, TransformerConfig) else None
    return {"model": type(model).__name__, "config": settings}


def safetensors_error() -> type[Exception]:
    """Return the errors that safetensors raises for files it cannot read or write."""
    return require_extra("safetensors", "Checkpoints").SafetensorError


# --- Loading -------------------------------------------------------------------------------------


def load_model(run: str | Path, which: CheckpointChoice = "best") -> nn.Module:
    """Load the model of a checkpoint, on the CPU and in evaluation mode.

    A LoRA adapter is added to the weights of the checkpoint that it was trained on.

    Args:
        run: the run's folder, or a checkpoint's own.
        which: "best" (by validation loss), "last", or "average" for the mean weights of the last
            checkpoints, as many as the run's setting `keep_last` says.

    Raises:
        ValueError: if there is no whole checkpoint, it is not of a model of this package, or a LoRA
            adapter's base is missing or has changed.
        ImportError: if safetensors is not installed.
    """
    folder = checkpoint_folder(run, which)
    spec = load_model_spec(folder)
    if spec.model not in MODELS or spec.config is None:
        raise ValueError(
            f"{folder / 'config.json'} describes no model of this package: it should name one of "
            f"{', '.join(MODELS)} and its configuration."
        )
    kind, config = MODELS[spec.model], spec.config
    lora_base = load_lora_base(folder)
    full = folder if lora_base is None else locate_lora_base(folder, lora_base)
    check_model_size(kind, config, full)
    if lora_base is not None and which == "average":
        raise ValueError(f"{run} is a LoRA adapter and cannot be averaged: take the last.")
    rng_state = torch.get_rng_state()
    model = kind(config)
    if which == "average":
        average_weights(model, recent_checkpoints(folder))
    else:
        load_weights(model, full)
    if lora_base is not None:
        add_lora(model, lora_base.rank)
        load_weights(model, folder)
    torch.set_rng_state(rng_state)  # loading draws no random numbers
    return model.eval()


def load_weights(model: nn.Module, folder: Path) -> None:
    """Load the weights of a checkpoint into a model, in place and one tensor at a time.

    Each tensor is copied out of the mapped file into the memory that the model already has, so
    that there is never a second set of weights (and the tensors lie where they would without a
    checkpoint, which matrix products need to come out the same to the last bit).

    Args:
        model: a model of the same class and configuration.
        folder: what `checkpoint_folder` returned. A LoRA adapter needs a model with LoRA of the
            same rank, whose other weights do not change.

    Raises:
        ValueError: if the file's weights do not fit the model (which is then unchanged), or are NaN
            or infinite.
    """
    safe_open = require_extra("safetensors", "Checkpoints").safe_open
    lora = (folder / LORA_BASE_FILE).exists()
    path = folder / (LORA_WEIGHTS_FILE if lora else WEIGHTS_FILE)
    weights = lora_state_dict(model) if lora else unique_weights(model)
    try:
        with safe_open(path, framework="pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            shapes = {name: slice.get_shape() for name, slice in slices.items()}
            dtypes = {name: slice.get_dtype() for name, slice in slices.items()}
    except (OSError, safetensors_error()) as error:
        raise ValueError(
            f"{path} holds no weights that can be read: {error_message(error)}."
        ) from None
    for name in sorted(weights.keys() | shapes.keys()):
        here = format_shape(weights[name]) if name in weights else "no such tensor"
        there = format_shape(shapes[name]) if name in shapes else "no such tensor"
        if here != there:
            raise ValueError(f"{path} does not fit the model: {name} is {there}, not {here}.")
        if dtypes[name] not in FLOATS:
            raise ValueError(f"{path} is damaged: {name} is {dtypes[name]}, not weights.")
    with torch.no_grad():
        for name, tensor in weights.items():
            with safe_open(path, framework="pt") as file:  # anew, to release the pages read
                tensor.copy_(file.get_tensor(name))
            if not all_finite(tensor):
                raise ValueError(
                    f"{path} cannot be used: {name} has NaN or infinite weights; take another "
                    "checkpoint, or train again with a lower learning_rate."
                )


def check_model_size(kind: type[nn.Module], config: TransformerConfig, folder: Path) -> None:
    """Refuse a configuration that cannot belong to its weights file, before the model is built.

    Raises:
        ValueError: if the model would be larger than the file of its weights, or than the memory.
    """
    check_memory(config, encoder_decoder=kind is EncoderDecoder)
    count = count_parameters(config, encoder_decoder=kind is EncoderDecoder).total
    size = (folder / WEIGHTS_FILE).stat().st_size
    if count > size:  # each parameter takes a byte at least
        raise ValueError(
            f"{folder / 'config.json'} describes a model of {count:,} parameters, but "
            f"{WEIGHTS_FILE} has only {size:,} bytes."
        )


def recent_checkpoints(last: Path) -> list[Path]:
    """The checkpoints that a run keeps to be averaged, one for each step, up to the last one.

    Raises:
        ValueError: if one of them is not whole.
    """
    state = load_trainer_state(last)
    step = step_of(last) if last.name.startswith("step-") else 0
    found = {step_of(folder): folder for folder in list_checkpoints(last.parent)}
    folders = [found[s] for s in sorted(found) if 0 < s <= step]
    recent = folders[-(state.config.keep_last if state else 1) :]
    return [checkpoint_folder(folder) for folder in recent] or [last]


@torch.no_grad()
def average_weights(model: nn.Module, folders: list[Path]) -> None:
    """Set a model's weights to the mean of some checkpoints (Vaswani et al. 2017, section 6.1).

    Raises:
        ValueError: if a checkpoint does not fit the model.
    """
    sums: list[Tensor] = []
    for folder in folders:
        load_weights(model, folder)
        weights = [W.double() for W in model.parameters()]
        sums = [a + b for a, b in zip(sums, weights, strict=True)] if sums else weights
    for W, total in zip(model.parameters(), sums, strict=True):
        W.copy_(total / len(folders))


# --- State of the optimizer ----------------------------------------------------------------------


def load_training_state(folder: Path, model: nn.Module) -> dict[str, Any]:
    """Load the optimizer and random state of a checkpoint, mapped rather than read.

    Raises:
        ValueError: if the file cannot be read, holds more than tensors and plain values, or is not
            of this model.
    """
    path = folder / "state.pt"
    try:
        state = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except (OSError, RuntimeError, EOFError, ValueError, pickle.UnpicklingError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise ValueError(f"{path} holds no training state that can be read: {reason}.") from None
    check_training_state(state, model, path)
    return state


def check_training_state(state: Any, model: nn.Module, path: Path) -> None:
    """Refuse a state that is not that of this model's optimizer and of random numbers.

    Raises:
        ValueError: naming the file and the first part of it that is wrong.
    """

    def require(sound: bool, part: str) -> None:
        if not sound:
            raise ValueError(f"{path} is damaged, or of another model: {part} is wrong.")

    require(isinstance(state, dict) and {"optimizer", "random"} <= state.keys(), "the whole")
    optimizer, random = state["optimizer"], state["random"]
    require(isinstance(optimizer, dict), "the optimizer")
    entries, groups = optimizer.get("state"), optimizer.get("param_groups")
    matrices, vectors = split_decay_groups(model)
    numbers = list(range(len(matrices) + len(vectors)))
    wanted = [numbers[: len(matrices)], numbers[len(matrices) :]]
    sound = isinstance(groups, list) and all(isinstance(group, dict) for group in groups)
    require(sound and [group.get("params") for group in groups] == wanted, "the parameter list")
    require(isinstance(entries, dict) and set(entries) <= set(numbers), "the optimizer's state")
    for number, entry in entries.items():
        weight, part = [*matrices, *vectors][number], f"the optimizer's state of weight {number}"
        require(isinstance(entry, dict) and set(entry) == {"step", "exp_avg", "exp_avg_sq"}, part)
        shapes = {"step": (), "exp_avg": weight.shape, "exp_avg_sq": weight.shape}
        for name, shape in shapes.items():
            require(is_finite_tensor(entry[name], shape), f"{part}, {name},")
    require(isinstance(random, dict) and {"batches", "cpu"} <= random.keys(), "the random state")
    size = torch.get_rng_state().shape
    for name, kept in random.items():
        sound = isinstance(kept, Tensor) and kept.dtype == torch.uint8 and kept.dim() == 1
        sound = sound and (name not in ("batches", "cpu") or kept.shape == size)
        require(sound, "the random state")


def is_finite_tensor(value: Any, shape: tuple[int, ...]) -> bool:
    """Tell if something is a finite floating-point tensor of a shape."""
    if not isinstance(value, Tensor) or value.shape != shape or not value.is_floating_point():
        return False
    return all_finite(value)


def all_finite(tensor: Tensor) -> bool:
    """Tell if no element is NaN or infinite, without copying the tensor."""
    return not tensor.numel() or bool(torch.stack(tensor.aminmax()).isfinite().all())


# --- LoRA ----------------------------------------------------------------------------------------


def make_lora_base(run: str | Path, rank: int, which: CheckpointChoice = "best") -> LoraBase:
    """Describe a checkpoint as the base of a LoRA adapter.

    Raises:
        ValueError: if there is no whole checkpoint, or it is a LoRA adapter itself.
    """
    folder = checkpoint_folder(run, which).resolve()
    if load_lora_base(folder) is not None:
        raise ValueError(
            f"{run} is a LoRA adapter already: merge it into its base first, by "
            "slp-transformer merge."
        )
    return LoraBase(str(folder), file_sha256(folder / WEIGHTS_FILE), rank)


def locate_lora_base(folder: Path, base: LoraBase) -> Path:
    """Find the checkpoint that a LoRA adapter was trained on.

    It is looked for where it was, and then next to the run, as when both were moved together.

    Args:
        folder: the adapter's checkpoint.
        base: its base.

    Raises:
        ValueError: if the base is missing, or its weights have changed.
    """
    known = Path(base.checkpoint)
    places = [known, folder.resolve().parent.parent / known.parent.name / known.name]
    there = [place for place in places if (place / WEIGHTS_FILE).is_file()]
    for place in there:
        if file_sha256(place / WEIGHTS_FILE) == base.sha256:
            return place
    if there:
        raise ValueError(
            f"{there[0] / WEIGHTS_FILE} has changed since the LoRA adapter {folder} was trained "
            "on it: restore the weights that were there before."
        )
    raise ValueError(
        f"{folder} is a LoRA adapter, and its base checkpoint {known} is missing: put it back, or "
        "put its run next to this one."
    )


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file.

    Raises:
        ValueError: if it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None


def check_lora_rank(kind: type[nn.Module], config: TransformerConfig, rank: int) -> None:
    """Refuse a rank that a model's matrices cannot have, before the model is built.

    Raises:
        ValueError: naming the largest possible rank.
    """
    with torch.device("meta"):
        add_lora(kind(config), rank)
