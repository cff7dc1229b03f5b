"""Checkpoints: a model and the run that trains it, kept so that a power cut loses nothing.

A run's folder holds

    checkpoints.json      which of the folders below is the last and which the best
    step-00001000/
        model.safetensors     the weights, the tied E once
        config.json           the kind of model and its configuration
        tokenizer.json        whatever the caller gave, if anything
        training.json         settings, measurements and the data's description
        state.pt              optimiser and random state
        checkpoint.json       format, step and the size of each file above

A checkpoint is written under another name, flushed to the disk and renamed; then the one small
index is replaced, which is where the new checkpoint takes over from the old. So a process may be
killed at any moment: the index names whole checkpoints before and after.
"""

import pickle
import shutil
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from slp_transformer.config import TransformerConfig
from slp_transformer.encoder_decoder import EncoderDecoder
from slp_transformer.language_model import TransformerLM
from slp_transformer.shapes import Tensor, shape_of
from slp_transformer.storage import flush_to_disk, from_text_extra, read_json, write_json

Which = Literal["last", "best"]

FORMAT = 1
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
) -> Path:
    """Write a checkpoint of a run, and forget those that are neither the last nor the best.

    Args:
        run: the run's folder; made if there is none.
        step: steps made so far.
        model: whose weights, and `config` if it has one, are kept.
        training: what the run wants to remember, as JSON.
        state: tensors, numbers and dicts of them that the run needs to go on.
        tokenizer: what the model's ids mean, as JSON; None to keep nothing.
        best: whether this is the best checkpoint so far.

    Returns:
        The checkpoint's folder.

    Raises:
        ValueError: if it cannot be written, on a full disk for instance. Earlier checkpoints stand.
        ImportError: if safetensors is not installed.
    """
    run = Path(run)
    safetensors = from_text_extra("safetensors.torch", "Checkpoints")
    index = read_index(run)
    target, unfinished = run / f"step-{step:08d}", run / ".writing"
    named = {"last": target.name, "best": target.name if best else index.get("best", target.name)}
    if target.name in index.values():  # the same step of the same run: it is there already
        return target
    try:
        run.mkdir(parents=True, exist_ok=True)
        for leftover in (unfinished, target):  # of a process that was killed
            if leftover.exists():
                shutil.rmtree(leftover)
        unfinished.mkdir()
        weights = {name: W.contiguous() for name, W in distinct_weights(model).items()}
        safetensors.save_file(weights, unfinished / "model.safetensors")
        write_json(unfinished / "config.json", describe(model))
        if tokenizer is not None:
            write_json(unfinished / "tokenizer.json", tokenizer)
        write_json(unfinished / "training.json", training)
        torch.save(state or {}, unfinished / "state.pt")
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
        kept = f"that of {index['last']} stands" if index else "there is no earlier one"
        raise ValueError(
            f"The checkpoint of step {step} could not be written to {run} ({error}): {kept}. Make "
            "room or choose another folder, then resume."
        ) from error
    for old in run.glob("step-*"):
        if old.name not in named.values():
            # What Windows will not delete, because this process has it open, goes the next time.
            shutil.rmtree(old, ignore_errors=True)
    return target


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


def read_index(run: str | Path) -> dict[str, str]:
    """Which checkpoint of a run is the last and which the best; empty if there is none yet.

    Raises:
        ValueError: if the index cannot be read.
    """
    path = Path(run) / "checkpoints.json"
    if not path.exists():
        return {}
    index = read_json(path)
    if not isinstance(index, dict) or set(index) != {"last", "best"}:
        raise ValueError(f"{path} does not name a last and a best checkpoint.")
    return index


def checkpoint_folder(run: str | Path, which: Which = "last") -> Path:
    """The folder of a run's last or best checkpoint, after a look at whether it is whole.

    Args:
        run: the run's folder, or a checkpoint's own.
        which: "last" or "best".

    Raises:
        ValueError: if there is none, or it is not whole, or not of this package.
    """
    run = Path(run)
    own = (run / "checkpoint.json").exists()
    index = {which: "."} if own else read_index(run)
    if not index:
        raise ValueError(f"There is no checkpoint in {run}.")
    folder = run / index[which]
    manifest = read_json(folder / "checkpoint.json")
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ValueError(
            f"{folder} is not a checkpoint that this version can read: checkpoint.json does not "
            f"say format {FORMAT}."
        )
    for name, size in manifest.get("files", {}).items():
        found = (folder / name).stat().st_size if (folder / name).exists() else None
        if found != size:
            has = "is missing" if found is None else f"has {found} bytes"
            raise ValueError(f"The checkpoint {folder} is damaged: {name} {has}, not {size}.")
    return folder


def load_weights(model: nn.Module, folder: Path) -> None:
    """Give a model the weights of a checkpoint, in place and one tensor at a time.

    Each tensor is copied out of the mapped file into the memory that the model already has, so
    that no second set of weights is ever held (and the tensors lie where they would without a
    checkpoint, which matrix products need to come out the same to the last bit).

    Args:
        model: a model of the same make.
        folder: what `checkpoint_folder` returned.

    Raises:
        ValueError: if the file holds other weights than the model has. The model is untouched.
    """
    safe_open = from_text_extra("safetensors", "Checkpoints").safe_open
    path, own = folder / "model.safetensors", distinct_weights(model)
    try:
        with safe_open(path, framework="pt") as file:
            shapes = {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118
    except (OSError, safetensors_error()) as error:
        raise ValueError(f"{path} holds no weights that can be read: {error}.") from None
    for name in sorted(own.keys() | shapes.keys()):
        here = shape_of(own[name]) if name in own else "no such tensor"
        there = shape_of(shapes[name]) if name in shapes else "no such tensor"
        if here != there:
            raise ValueError(f"{path} does not fit the model: {name} is {there}, not {here}.")
    with torch.no_grad():
        for name, tensor in own.items():
            with safe_open(path, framework="pt") as file:  # anew, to let go of the pages read
                tensor.copy_(file.get_tensor(name))


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


def load_training(folder: Path) -> Any:
    """What the run wanted to remember.

    Raises:
        ValueError: if the file cannot be read.
    """
    return read_json(folder / "training.json")


def load_tokenizer(run: str | Path, which: Which = "best") -> Any:
    """The tokenizer's JSON of a run's checkpoint; None if it was saved without one.

    Raises:
        ValueError: if there is no whole checkpoint.
    """
    path = checkpoint_folder(run, which) / "tokenizer.json"
    return read_json(path) if path.exists() else None


def load_model(run: str | Path, which: Which = "best") -> nn.Module:
    """Make the model of a checkpoint, with its weights, on the CPU and in evaluation mode.

    Args:
        run: the run's folder, or a checkpoint's own.
        which: "best" (by validation loss) or "last".

    Raises:
        ValueError: if there is no whole checkpoint, or it is of no model of this package.
        ImportError: if safetensors is not installed.
    """
    folder = checkpoint_folder(run, which)
    made_of = read_json(folder / "config.json")
    try:
        kind, config = MODELS[made_of["model"]], TransformerConfig(**made_of["config"])
    except (KeyError, TypeError):
        raise ValueError(
            f"{folder / 'config.json'} describes no model of this package: it should name one of "
            f"{', '.join(MODELS)} and its configuration."
        ) from None
    random = torch.get_rng_state()
    model = kind(config)
    torch.set_rng_state(random)  # loading draws no random numbers
    load_weights(model, folder)
    return model.eval()
