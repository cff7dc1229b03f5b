"""Checkpoints: a model and the run that trains it, kept so that a power cut loses nothing.

A run's folder holds

    checkpoints.json      which of the folders below is the last and which the best
    step-00001000/
        model.safetensors     the weights, the tied E once (for LoRA see `beside`)
        config.json           the kind of model and its configuration
        tokenizer.json        whatever the caller gave, if anything
        training.json         settings, measurements and the data's description
        state.pt              optimiser and random state
        checkpoint.json       format, step and the size of each file above

A checkpoint is written under another name, flushed to the disk and renamed; then the one small
index is replaced, which is where the new checkpoint takes over from the old. So a process may be
killed at any moment: the index names whole checkpoints before and after.
"""

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
    flush_to_disk,
    from_text_extra,
    reason_of,
    write_json,
)
from slp_transformer._internal.shape_types import Tensor, shape_of
from slp_transformer.config import TransformerConfig
from slp_transformer.encoder_decoder import EncoderDecoder
from slp_transformer.language_model import TransformerLM
from slp_transformer.lora import add_lora, lora_weights
from slp_transformer.scaling_laws import count_parameters
from slp_transformer.training.checkpoint_averaging import average_weights, last_checkpoints
from slp_transformer.training.checkpoint_files import (
    BASE,
    BESIDE,
    FORMAT,
    WEIGHTS,
    Base,
    read_base,
    read_made_of,
)
from slp_transformer.training.devices import check_fits
from slp_transformer.training.finite import all_finite
from slp_transformer.training.lora_checkpoint import find_base
from slp_transformer.training.run_folder import (
    MEASURED,
    UNFINISHED,
    Which,
    checkpoint_folder,
    load_training,
    read_index,
    step_folders,
)

FLOATS = ("F64", "F32", "F16", "BF16")  # safetensors' names for what weights are kept in
MODELS = {kind.__name__: kind for kind in (TransformerLM, EncoderDecoder)}


# --- Writing -----------------------------------------------------------------------------------


def save_checkpoint(
    run: str | Path,
    step: int,
    model: nn.Module,
    *,
    training: Any = None,
    state: dict[str, Any] | None = None,
    tokenizer: Any = None,
    best: bool = True,
    base: Base | None = None,
    keep: int = 1,
) -> Path:
    """Write a checkpoint of a run, and forget those that are neither the best nor among the last.

    Args:
        run: the run's folder; made if there is none.
        step: steps made so far.
        model: whose weights, and `config` if it has one, are kept.
        training: what the run wants to remember, as JSON.
        state: tensors, numbers and dicts of them that the run needs to go on.
        tokenizer: what the model's ids mean, as JSON; None to keep nothing.
        best: whether this is the best checkpoint so far.
        base: where the frozen weights of a model with A and B beside them are kept: A and B alone
            are kept here. None to keep all weights.
        keep: how many of the last checkpoints stay.

    Returns:
        The checkpoint's folder.

    Raises:
        ValueError: if it cannot be written, on a full disk for instance. Earlier checkpoints stand.
        ImportError: if safetensors is not installed.
    """
    run = Path(run)
    safetensors = from_text_extra("safetensors.torch", "Checkpoints")
    index = read_index(run)
    target, unfinished = run / f"step-{step:08d}", run / UNFINISHED
    if target.name in index.values():
        if load_training(target) == json.loads(json.dumps(training)):  # it is there already
            return target
        target = run / f"{target.name}{MEASURED}"
    named = {"last": target.name, "best": target.name if best else index.get("best", target.name)}
    if target.name in index.values():
        return target
    try:
        run.mkdir(parents=True, exist_ok=True)
        for leftover in (unfinished, target):  # of a process that was killed
            if leftover.exists():
                shutil.rmtree(leftover)
        unfinished.mkdir()
        of, name = (distinct_weights, WEIGHTS) if base is None else (lora_weights, BESIDE)
        weights = {n: W.detach().cpu().contiguous() for n, W in of(model).items()}
        safetensors.save_file(weights, unfinished / name)
        if base is not None:
            write_json(unfinished / BASE, asdict(base))
        write_json(unfinished / "config.json", describe(model))
        # safetensors lets the owner alone read its file; the umask has decided on the other one.
        shutil.copymode(unfinished / "config.json", unfinished / name)
        if tokenizer is not None:
            write_json(unfinished / "tokenizer.json", tokenizer)
        write_json(unfinished / "training.json", training)
        torch.save(tree_map(on_cpu, state or {}), unfinished / "state.pt")
        sizes = {path.name: path.stat().st_size for path in sorted(unfinished.iterdir())}
        for name in sizes:
            flush_to_disk(unfinished / name)
        manifest = {"format": FORMAT, "step": step, "files": sizes}
        write_json(unfinished / "checkpoint.json", manifest)
        unfinished.rename(target)
        flush_to_disk(run)
        write_json(run / "checkpoints.json", named)
    except (OSError, RuntimeError, safetensors_error()) as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        if not is_named(run, target.name):
            shutil.rmtree(target, ignore_errors=True)
        kept = f"that of {index['last']} stands" if index else "there is no earlier one"
        raise ValueError(
            f"The checkpoint of step {step} could not be written to {run} "
            f"({reason_of(error)}): {kept}. Make room or choose another folder, then resume."
        ) from error
    made = [path.name for path in step_folders(run) if int(path.name.split("-")[1]) <= step]
    for old in step_folders(run):
        if old.name not in (*named.values(), *made[-keep:]):
            # What Windows will not delete, because this process has it open, goes the next time.
            shutil.rmtree(old, ignore_errors=True)
    return target


def is_named(run: Path, folder: str) -> bool:
    """Whether a run's index, if it can be read, names a checkpoint."""
    try:
        return folder in json.loads((run / "checkpoints.json").read_text("utf-8")).values()
    except (OSError, ValueError, AttributeError):
        return False


def on_cpu(value: Any) -> Any:
    """A tensor as any machine can read it; anything else as it is."""
    return value.cpu() if isinstance(value, Tensor) else value


def distinct_weights(model: nn.Module) -> dict[str, Tensor]:
    """The state of a model, each tensor under the first of its names."""
    seen, distinct = set(), {}
    for name, tensor in model.state_dict().items():
        if (place := (tensor.data_ptr(), tensor.shape, tensor.stride())) not in seen:
            seen.add(place)
            distinct[name] = tensor
    return distinct


def describe(model: nn.Module) -> dict[str, Any]:
    """The kind of a model and its configuration, as JSON."""
    config = getattr(model, "config", None)
    settings = config.to_dict() if isinstance(config, TransformerConfig) else None
    return {"model": type(model).__name__, "config": settings}


def safetensors_error() -> type[Exception]:
    """What safetensors raises, for files that it cannot read or write."""
    return from_text_extra("safetensors", "Checkpoints").SafetensorError


# --- Reading -----------------------------------------------------------------------------------


def load_weights(model: nn.Module, folder: Path) -> None:
    """Give a model the weights of a checkpoint, in place and one tensor at a time.

    Each tensor is copied out of the mapped file into the memory that the model already has, so
    that no second set of weights is ever held (and the tensors lie where they would without a
    checkpoint, which matrix products need to come out the same to the last bit).

    Args:
        model: a model of the same make.
        folder: what `checkpoint_folder` returned. If it has A and B alone, so must the model have
            them, beside weights that stay as they are.

    Raises:
        ValueError: if the file holds other weights than the model has (the model is untouched), or
            such that are no numbers.
    """
    safe_open = from_text_extra("safetensors", "Checkpoints").safe_open
    beside = (folder / BASE).exists()
    path = folder / (BESIDE if beside else WEIGHTS)
    own = lora_weights(model) if beside else distinct_weights(model)
    try:
        with safe_open(path, framework="pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            shapes = {name: weights.get_shape() for name, weights in slices.items()}
            other = {n: s.get_dtype() for n, s in slices.items() if s.get_dtype() not in FLOATS}
    except (OSError, safetensors_error()) as error:
        raise ValueError(f"{path} holds no weights that can be read: {reason_of(error)}.") from None
    for name in sorted(own.keys() | shapes.keys()):
        here = shape_of(own[name]) if name in own else "no such tensor"
        there = shape_of(shapes[name]) if name in shapes else "no such tensor"
        if here != there:
            raise ValueError(f"{path} does not fit the model: {name} is {there}, not {here}.")
        if name in other:
            raise ValueError(f"{path} is damaged: {name} holds {other[name]}, no weights.")
    with torch.no_grad():
        for name, tensor in own.items():
            with safe_open(path, framework="pt") as file:  # anew, to let go of the pages read
                tensor.copy_(file.get_tensor(name))
            if not all_finite(tensor):
                raise ValueError(
                    f"{path} is of no use: {name} has weights that are no numbers (NaN or "
                    "infinite); take another checkpoint, or train anew with a lower learning_rate."
                )


def load_state(folder: Path) -> dict[str, Any]:
    """The optimiser and random state of a checkpoint, mapped rather than read.

    Raises:
        ValueError: if the file cannot be read, or holds more than tensors and plain values.
    """
    path = folder / "state.pt"
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except (OSError, RuntimeError, EOFError, ValueError, pickle.UnpicklingError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise ValueError(f"{path} holds no training state that can be read: {reason}.") from None


def check_weights_fill(kind: type[nn.Module], config: TransformerConfig, folder: Path) -> None:
    """Refuse a configuration that cannot be that of the weights beside it, before it is built.

    Raises:
        ValueError: if the model would be larger than the file of its weights, or than the memory.
    """
    check_fits(config, encoder_decoder=kind is EncoderDecoder)
    count = count_parameters(config, encoder_decoder=kind is EncoderDecoder).total
    size = (folder / WEIGHTS).stat().st_size
    if count > size:  # each parameter takes a byte at least
        raise ValueError(
            f"{folder / 'config.json'} describes a model of {count:,} parameters, and "
            f"model.safetensors has just {size:,} bytes."
        )


def load_model(run: str | Path, which: Which = "best") -> nn.Module:
    """Make the model of a checkpoint, with its weights, on the CPU and in evaluation mode.

    If it was trained by LoRA, A and B stand beside the weights of the run that it began with.

    Args:
        run: the run's folder, or a checkpoint's own.
        which: "best" (by validation loss), "last", or "average" for the mean weights of the last
            checkpoints, as many as the run's setting `keep` says.

    Raises:
        ValueError: if there is no whole checkpoint, it is of no model of this package, or the
            weights that A and B stand beside are gone or others.
        ImportError: if safetensors is not installed.
    """
    folder = checkpoint_folder(run, which)
    made_of = read_made_of(folder)
    if made_of.model not in MODELS or made_of.config is None:
        raise ValueError(
            f"{folder / 'config.json'} describes no model of this package: it should name one of "
            f"{', '.join(MODELS)} and its configuration."
        )
    kind, config = MODELS[made_of.model], made_of.config
    base = read_base(folder)
    whole = folder if base is None else find_base(folder, base)
    check_weights_fill(kind, config, whole)
    if base is not None and which == "average":
        raise ValueError(f"{run} has A and B alone, whose average says little: take the last.")
    random = torch.get_rng_state()
    model = kind(config)
    if which == "average":
        average_weights(model, last_checkpoints(folder), load_weights)
    else:
        load_weights(model, whole)
    if base is not None:
        add_lora(model, base.rank)
        load_weights(model, folder)
    torch.set_rng_state(random)  # loading draws no random numbers
    return model.eval()
