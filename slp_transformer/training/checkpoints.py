"""Checkpoints: a model and the run that trains it, saved so that a power cut loses nothing.

A run's folder has

    step-00001000/
        model.safetensors     the weights, the tied E once
        config.json           the class of the model and its configuration
        tokenizer.json        the tokenizer, if the caller gave one
        training.json         settings, evaluations and the data's fingerprints
        state.safetensors     optimizer and random state
        checkpoint.json       format, step, and size and checksum of each file above

A LoRA adapter has two files in place of model.safetensors

    lora.safetensors      A and B of each matrix
    base.json             the checkpoint it was trained on, its checksum, and the rank

A checkpoint is written under another name, flushed to the disk and renamed, and deleted the other
way around. So a process may be killed at any moment: each folder that has a checkpoint's name is
complete. The last one is that of the last step, and its evaluations say which is the best.
"""

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import torch
from torch import nn

from slp_transformer._internal.argument_checks import is_all_finite
from slp_transformer._internal.atomic_write import (
    NotSyncedError,
    error_message,
    fsync_path,
    make_random_folder,
    remove_path,
    rename_path,
)
from slp_transformer._internal.bounds import MAX_JSON_BYTES
from slp_transformer._internal.checksums import file_crc32
from slp_transformer._internal.docs_sections import see
from slp_transformer._internal.json_files import load_validated, read_json, write_json
from slp_transformer._internal.shape_types import Tensor, format_shape
from slp_transformer._internal.tensor_files import open_tensors, write_tensors
from slp_transformer.config import TransformerConfig
from slp_transformer.lora import add_lora, lora_state_dict
from slp_transformer.scaling_laws import count_parameters
from slp_transformer.training.devices import check_memory, cpu_default_device
from slp_transformer.training.lora_base import locate_lora_base
from slp_transformer.training.optimizers import split_parameters
from slp_transformer.training.run_folder import (
    EVALUATED_SUFFIX,
    LORA_BASE_FILE,
    LORA_WEIGHTS_FILE,
    MANIFEST_FILE,
    MODELS,
    WEIGHTS_FILE,
    Checkpoint,
    CheckpointChoice,
    LoraBase,
    Manifest,
    ModelSpec,
    TrainerState,
    check_settings_unchanged,
    delete_old_checkpoints,
    find_checkpoints,
    list_run_checkpoints,
    load_trainer_state,
    open_checkpoint,
    verify_checkpoint_checksums,
    with_retries_if_run_changes,
)

STATE_FILE = "state.safetensors"
FLOATS = ("F64", "F32", "F16", "BF16")  # safetensors' names of floating-point dtypes


# --- Saving --------------------------------------------------------------------------------------


def save_checkpoint(
    run: str | Path,
    step: int,
    model: nn.Module,
    *,
    training: Any = None,
    state: dict[str, Tensor] | None = None,
    tokenizer: Any = None,
    lora_base: LoraBase | None = None,
    keep_last: int = 1,
) -> Path:
    """Save a checkpoint of a run, and delete those that are neither the best nor among the last.

    Args:
        run: the run's folder; created if needed.
        step: training steps made so far.
        model: its weights, and `config` if it has one, are saved.
        training: the state of the run, as JSON.
        state: tensors that resuming needs.
        tokenizer: the tokenizer as JSON, if there is one.
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
    run, earlier = Path(run), find_checkpoints(run)
    target = run / f"step-{step:08d}"
    if target.exists():
        # Saved twice in the same state, it is there already. (JSON has lists where we have tuples.)
        there = read_json(target / "training.json", MAX_JSON_BYTES)
        if training is not None and isinstance(there, dict):  # wherever it was made
            there |= {"environment": training.get("environment")}
        if there == json.loads(json.dumps(training)):
            return target
        # The same step, evaluated since: what is there stays until the new one is.
        target = run / f"{target.name}{EVALUATED_SUFFIX}"
        if target.exists():
            return target
    temp: Path | None = None
    try:
        run.mkdir(parents=True, exist_ok=True)
        temp = make_random_folder(run)
        write_json(temp / "config.json", make_model_spec(model))
        write_json(temp / "training.json", training)
        if tokenizer is not None:
            write_json(temp / "tokenizer.json", tokenizer)
        if lora_base is not None:
            write_json(temp / LORA_BASE_FILE, asdict(lora_base))
            save_tensors(temp / LORA_WEIGHTS_FILE, lora_state_dict(model))
        else:
            save_tensors(temp / WEIGHTS_FILE, deduplicated_state_dict(model))
        save_tensors(temp / STATE_FILE, state or {})
        paths = sorted(temp.iterdir())
        sizes = {path.name: path.stat().st_size for path in paths}
        checksums = {path.name: file_crc32(path) for path in paths}
        write_json(temp / MANIFEST_FILE, asdict(Manifest(1, step, sizes, checksums)))
        rename_path(temp, target)
    except (OSError, RuntimeError) as error:
        if temp is not None:
            remove_path(temp)
        kept = f"{earlier[-1].name} was kept" if earlier else "there is no earlier one"
        raise ValueError(
            f"The checkpoint of step {step} could not be written to {run} "
            f"({error_message(error)}): {kept}. Make room or choose another folder, then resume."
        ) from error
    try:
        fsync_path(run)
    except NotSyncedError as error:
        raise ValueError(
            f"The checkpoint of step {step} is in {run}, but the disk did not confirm it "
            f"({error_message(error)}): a power cut may lose it; earlier ones were kept. Look at "
            "the disk, then resume."
        ) from error
    delete_old_checkpoints(run, keep_last)  # only now, when the disk has the new one
    return target


def save_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Write tensors to a file, and flush it to the disk."""
    whole = {name: x.detach().cpu().contiguous() for name, x in tensors.items()}
    write_tensors(path, whole, "Checkpoints")


def deduplicated_state_dict(model: nn.Module) -> dict[str, Tensor]:
    """Return the state of a model, each tensor under the first of its names."""
    unique: dict[Any, tuple[str, Tensor]] = {}
    for name, tensor in model.state_dict().items():
        # One place in memory may also begin tensors of different shapes: a matrix and its columns.
        unique.setdefault((tensor.data_ptr(), tensor.shape, tensor.stride()), (name, tensor))
    return dict(unique.values())


def make_model_spec(model: nn.Module) -> dict[str, Any]:
    """Return the class of a model and its configuration, as JSON."""
    config = getattr(model, "config", None)
    settings = config if hasattr(config, "to_dict") else None
    return json.loads(json.dumps(ModelSpec(type(model).__name__, settings).to_dict()))


# --- Loading -------------------------------------------------------------------------------------


@with_retries_if_run_changes
def load_model(
    run: str | Path,
    which: CheckpointChoice = "best",
    model: Callable[[Any], nn.Module] | None = None,
) -> nn.Module:
    """Open a run and load its model, as `load_checkpoint_model` does.

    Args:
        run: the run's folder, or a checkpoint's own.
        which: "best" (by validation loss), "last", or "average" for the mean weights of the last
            checkpoints, as many as the run's setting `keep_last` says.
        model: makes a model of your own from the stored configuration, None if it had none.

    Raises:
        ValueError: if there is no complete checkpoint; or as `load_checkpoint_model`.
        ImportError: if safetensors is not installed.
    """
    return load_checkpoint_model(open_checkpoint(run, which), model)


def load_checkpoint_model(
    checkpoint: Checkpoint, model: Callable[[Any], nn.Module] | None = None
) -> nn.Module:
    """Load the model of an opened checkpoint, on the CPU and in evaluation mode.

    A LoRA adapter is added to the weights of the checkpoint that it was trained on.

    Args:
        checkpoint: the checkpoint.
        model: makes a model of your own from the stored configuration, None if it had none.

    Raises:
        ValueError: if it is not of a model of this package or of one with LoRA, and no function is
            given; if a LoRA adapter's base is missing or has changed; or if the weights do not fit
            or are not finite.
        ImportError: if safetensors is not installed.
    """
    folder, which = checkpoint.folder, checkpoint.which
    spec, lora_base = checkpoint.spec, checkpoint.lora_base
    full = folder if lora_base is None else locate_lora_base(folder, lora_base)
    published = lora_base is not None and lora_base.published
    if lora_base is not None and which == "average":
        raise ValueError(f"{folder} is a LoRA adapter and cannot be averaged: take the last.")
    if model is None and spec.model not in MODELS:
        raise ValueError(
            f"{folder / 'config.json'} describes no model of this package, but a {spec.model}: "
            "pass load_model a function that makes one, as model." + see("own models")
        )
    weights = full / WEIGHTS_FILE
    if (
        model is None
        and not published
        and any(".parametrizations." in name for name in read_tensor_headers(weights))
    ):
        raise ValueError(
            f"{weights} has LoRA matrices as well as weights: pass load_model a function that "
            "makes such a model, by add_lora, as model."
        )
    if type(spec.config) is TransformerConfig:
        check_model_size(spec, full)
    kind = model or resolve_name(MODELS[spec.model][0])
    with torch.random.fork_rng([]):  # loading draws no random numbers
        with cpu_default_device():
            loaded: nn.Module = kind(spec.config)
        if lora_base is not None:
            load_base_weights(loaded, full, published)
            names = read_tensor_headers(folder / LORA_WEIGHTS_FILE)
            add_lora(loaded, lora_base.rank, sorted({name.split(".")[-2:][0] for name in names}))
    if which == "average":
        load_averaged_weights(loaded, checkpoint.averaged)
    else:
        load_weights(loaded, folder)
    return loaded.eval()


def load_weights(model: nn.Module, folder: Path) -> None:
    """Load the weights of a checkpoint into a model, in place.

    Args:
        model: a model of the same class and configuration.
        folder: its folder. A LoRA adapter needs a model with LoRA of the
            same rank, whose other weights do not change.

    Raises:
        ValueError: if the file's weights do not fit the model (which is then unchanged), or are NaN
            or infinite.
    """
    lora = (folder / LORA_BASE_FILE).exists()
    path = folder / (LORA_WEIGHTS_FILE if lora else WEIGHTS_FILE)
    load_tensors(path, lora_state_dict(model) if lora else deduplicated_state_dict(model))


def load_base_weights(model: nn.Module, place: Path, published: bool) -> None:
    """Load the weights that a run, or a LoRA adapter, begins with into a model, in place.

    Args:
        model: a model of the same class and configuration, without LoRA.
        place: the folder of a checkpoint, or of a published model.
        published: which of the two.

    Raises:
        ValueError: if they do not fit the model, or cannot be read.
    """
    if not published:
        return load_weights(model, place)
    from slp_transformer.modern.pretrained import load_pretrained_weights

    return load_pretrained_weights(model, place)


def read_tensor_headers(path: Path) -> dict[str, tuple[list[int], str]]:
    """Return shape and dtype of each tensor in a file.

    Raises:
        ValueError: if it cannot be read.
    """
    with open_tensors(path) as file:
        slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
        return {name: (x.get_shape(), x.get_dtype()) for name, x in slices.items()}


@torch.no_grad()
def load_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Load the tensors of a file into existing ones, one at a time.

    Each is copied out of the mapped file into the memory that is there already, so that there is
    never a second set of weights (and the tensors lie where they would without a checkpoint, which
    matrix products need to come out the same to the last bit).

    Raises:
        ValueError: if the file has other tensors (which are then unchanged), or they are NaN or
            infinite.
    """
    headers = read_tensor_headers(path)
    for name in sorted(tensors.keys() | headers.keys()):
        here = format_shape(tensors[name]) if name in tensors else "no such tensor"
        there = format_shape(headers[name][0]) if name in headers else "no such tensor"
        if here != there:
            raise ValueError(f"{path} does not fit the model: {name} is {there}, not {here}.")
        dtype = headers[name][1]
        if (dtype in FLOATS) != tensors[name].is_floating_point():
            raise ValueError(f"{path} is damaged: {name} is {dtype}, not {tensors[name].dtype}.")
    for name, tensor in tensors.items():
        with open_tensors(path) as file:  # anew, to release the pages read
            tensor.copy_(file.get_tensor(name))
        if not is_all_finite(tensor):
            raise ValueError(
                f"{path} cannot be used: {name} has NaN or infinite numbers; take another "
                "checkpoint, or train again with a lower learning_rate."
            )


def check_model_size(spec: ModelSpec, folder: Path) -> None:
    """Refuse a configuration that cannot belong to its weights file, before the model is built.

    Raises:
        ValueError: if the model would be larger than the file of its weights, or than the memory.
    """
    encoder_decoder = spec.model == "EncoderDecoder"
    check_memory(spec.config, encoder_decoder=encoder_decoder)
    count = count_parameters(spec.config, encoder_decoder=encoder_decoder).total
    size = (folder / WEIGHTS_FILE).stat().st_size
    if count > size:  # each parameter takes a byte at least
        raise ValueError(
            f"{folder / 'config.json'} describes a model of {count:,} parameters, but "
            f"{WEIGHTS_FILE} has only {size:,} bytes."
        )


@torch.no_grad()
def load_averaged_weights(model: nn.Module, folders: Sequence[Path]) -> None:
    """Set a model's weights to the mean of some checkpoints (Vaswani et al. 2017, section 6.1).

    Raises:
        ValueError: if a checkpoint does not fit the model.
    """
    sums: list[Tensor] = []
    for folder in folders:
        load_weights(model, folder)
        weights = [W.double() for W in model.parameters()]  # single loses digits in each sum
        sums = [a + b for a, b in zip(sums, weights, strict=True)] if sums else weights
    for W, total in zip(model.parameters(), sums, strict=True):
        W.copy_(total / len(folders))


# --- Resuming ------------------------------------------------------------------------------------


def resume_last_checkpoint(
    out_dir: Path, model: nn.Module, state: TrainerState, *, resume: bool
) -> dict[str, Tensor]:
    """Load the last checkpoint of a run into its model and state, if there is one.

    Args:
        out_dir: the run's folder.
        model: the run's model.
        state: the state of a run that begins, with its settings and its data's fingerprints.
        resume: whether a checkpoint is to be resumed; else it is in the way.

    Returns:
        The tensors of optimizer and random numbers; empty if there is no checkpoint.

    Raises:
        ValueError: if there is a checkpoint but no wish to resume, or if it is damaged or of
            another run. Model, state and folder are unchanged then.
    """
    if not find_checkpoints(out_dir):
        return {}
    folder = list_run_checkpoints(out_dir)[-1]
    if not resume:
        raise ValueError(
            f"{out_dir} holds a run already ({folder.name}): pass resume=True to "
            "resume it, or choose another folder."
        )
    verify_checkpoint_checksums(folder)
    spec = load_validated(ModelSpec, folder / "config.json")
    mine, saved = make_model_spec(model), load_trainer_state(folder)
    if saved is None:
        raise ValueError(f"{folder} has no training run that can be resumed.")
    evaluated = saved.eval_history[-1].step if saved.eval_history else 0
    if len(saved.losses) != saved.step - evaluated:
        raise ValueError(
            f"{folder / 'training.json'} is damaged: step {saved.step} with "
            f"{len(saved.losses)} losses since the evaluation at step {evaluated}."
        )
    try:
        if spec.model != mine["model"]:
            raise ValueError(f"its model is a {spec.model}, not a {mine['model']}")
        before = spec.config
        if isinstance(before, dict):  # an older version may lack settings that there are now
            before = mine.get("defaults", {}) | before
        check_settings_unchanged("model.config", before, mine["config"])
        check_settings_unchanged("config", saved.config.to_dict(), state.config.to_dict())
        check_settings_unchanged("data", saved.data, state.data)
    except ValueError as error:
        raise ValueError(
            f"The run in {out_dir} is another one: {str(error).removesuffix('.')}. Resume it as it "
            "was, or choose another folder."
        ) from None
    saved.check_steps(state.config.steps, out_dir)
    changed = [
        f"{name}: {was}, now {now}"
        for name, was in saved.environment.items()
        if (now := state.environment.get(name)) != was
    ]
    if changed:
        warnings.warn(
            f"The run in {out_dir} was begun where other bits are computed ({'; '.join(changed)}), "
            "so it goes on nearly as it would have, but not bit for bit.",
            stacklevel=2,
        )
    groups = split_parameters(model, state.config)
    tensors = load_training_state(folder, groups.in_checkpoint_order(), groups.state_names())
    load_weights(model, folder)  # behind all refusals, which leave the model as it was
    delete_old_checkpoints(out_dir, state.config.keep_last)  # a killed run leaves one more
    state.step, state.losses, state.eval_history = saved.step, saved.losses, saved.eval_history
    return tensors


def load_training_state(
    folder: Path, parameters: list[nn.Parameter], state_names: list[tuple[str, ...]]
) -> dict[str, Tensor]:
    """Load the optimizer and random state of a checkpoint.

    Args:
        folder: its folder.
        parameters: the model's, in the order of the optimizer's numbers.
        state_names: the names of what the optimizer keeps of each.

    Raises:
        ValueError: if the file cannot be read, or is not of this model.
    """
    path = folder / STATE_FILE
    headers = read_tensor_headers(path)
    state = {name: torch.get_rng_state() for name in ("random.batches", "random.cpu")}
    for name, (shape, _) in headers.items():
        if name.startswith("random.") and name not in state:  # of an accelerator
            state[name] = torch.empty(shape, dtype=torch.uint8, device="cpu")
    for i, (W, parts) in enumerate(zip(parameters, state_names, strict=True)):
        names = [f"optimizer.{i}.{part}" for part in parts]
        if not headers.keys() & set(names):  # it is frozen, or there was no step
            continue
        for name in names:
            scalar = name in headers and not headers[name][0]  # a count, whatever W's dtype is
            like = torch.empty(()) if scalar else W
            state[name] = torch.empty_like(like, device="cpu")
    load_tensors(path, state)
    return state
