"""The weights that a LoRA adapter was trained on: a run's checkpoint, or a published model."""

import contextlib
import hashlib
from pathlib import Path

from slp_transformer._internal.atomic_write import check_is_file, open_new_file
from slp_transformer._internal.docs_sections import see
from slp_transformer.modern.published_folders import find_weight_files, is_pretrained_folder
from slp_transformer.training.run_folder import (
    KEPT_FILE,
    WEIGHTS_FILE,
    CheckpointChoice,
    LoraBase,
    open_checkpoint,
    with_retries_if_run_changes,
)


@with_retries_if_run_changes
def make_lora_base(run: str | Path, rank: int, which: CheckpointChoice = "best") -> LoraBase:
    """Describe the base of a LoRA adapter; a checkpoint is marked as one that is kept.

    Args:
        run: the folder of a run, or of a published model.
        rank: r.
        which: the run's checkpoint.

    Raises:
        ValueError: if there is no whole checkpoint, or it is a LoRA adapter itself.
    """
    if is_pretrained_folder(run):
        return keep_lora_base(Path(run), True, rank)
    checkpoint = open_checkpoint(run, which)
    if checkpoint.lora_base is not None:
        raise ValueError(
            f"{run} is a LoRA adapter already: merge it into its base first, by "
            "slp-transformer merge." + see("lora")
        )
    return keep_lora_base(checkpoint.folder, False, rank)


def keep_lora_base(folder: Path, published: bool, rank: int) -> LoraBase:
    """Describe the base of a LoRA adapter by its folder, and mark a checkpoint as one to keep."""
    folder = folder.resolve()
    if not published:
        with contextlib.suppress(OSError):  # a folder that nobody writes to loses nothing either
            open_new_file(folder / KEPT_FILE).close()
    return LoraBase(str(folder), weights_sha256(folder, published), rank, published)


def locate_lora_base(folder: Path, base: LoraBase) -> Path:
    """Find the weights that a LoRA adapter was trained on.

    They are looked for where they were, and then next to the run, as when both were moved together.

    Args:
        folder: the adapter's checkpoint.
        base: its base.

    Raises:
        ValueError: if the base is missing, or its weights have changed.
    """
    known, near = Path(base.checkpoint), folder.resolve().parent.parent
    beside = near / known.name if base.published else near / known.parent.name / known.name
    there = [place for place in (known, beside) if has_weights(place, base.published)]
    for place in there:
        if weights_sha256(place, base.published) == base.sha256:
            return place
    if there:
        changed = there[0] if base.published else there[0] / WEIGHTS_FILE
        raise ValueError(
            f"{changed} has changed since the LoRA adapter {folder} was trained "
            "on it: restore the weights that were there before." + see("lora")
        )
    what, own = ("model", "it") if base.published else ("checkpoint", "its run")
    raise ValueError(
        f"{folder} is a LoRA adapter, and its base {what} {known} is missing: put it back, or "
        f"put {own} next to this one.{see('lora')}"
    )


def has_weights(folder: Path, published: bool) -> bool:
    """Return whether a folder holds weights, of a published model or of a checkpoint."""
    if published:
        return folder.is_dir() and is_pretrained_folder(folder)
    return (folder / WEIGHTS_FILE).is_file()


def weights_sha256(folder: Path, published: bool = False) -> str:
    """Return the SHA-256 of weights, those of a published model one file after the other.

    Raises:
        ValueError: if there are none.
    """
    total = hashlib.sha256()
    for path in find_weight_files(folder) if published else [folder / WEIGHTS_FILE]:
        check_is_file(path)
        with path.open("rb") as file:
            while piece := file.read(1 << 20):
                total.update(piece)
    return total.hexdigest()
