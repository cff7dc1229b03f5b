"""Checkpoints of LoRA: A and B, kept without the frozen weights that they stand beside.

In the place of model.safetensors such a checkpoint has

    lora.safetensors      A and B of each matrix
    base.json             where the frozen weights are, their checksum, and the rank
"""

import hashlib
from pathlib import Path

import torch
from torch import nn

from slp_transformer.config import TransformerConfig
from slp_transformer.lora import add_lora
from slp_transformer.training.checkpoint_files import WEIGHTS, Base, read_base
from slp_transformer.training.run_folder import Which, checkpoint_folder


def base_of(run: str | Path, rank: int, which: Which = "best") -> Base:
    """A checkpoint of a run as what A and B can stand beside.

    Raises:
        ValueError: if there is no whole checkpoint, or it has A and B itself.
    """
    folder = checkpoint_folder(run, which).resolve()
    if read_base(folder) is not None:
        raise ValueError(
            f"{run} has A and B beside the weights of another run already: make it whole first, "
            "by slp-transformer merge."
        )
    return Base(str(folder), checksum(folder / WEIGHTS), rank)


def find_base(folder: Path, base: Base) -> Path:
    """The checkpoint whose weights those of another stand beside.

    It is looked for where it was, and then beside the run, as when both were moved together.

    Args:
        folder: the checkpoint with A and B.
        base: what it says of the other.

    Raises:
        ValueError: if it is not there, or its weights are others.
    """
    known = Path(base.checkpoint)
    places = [known, folder.resolve().parent.parent / known.parent.name / known.name]
    there = [place for place in places if (place / WEIGHTS).is_file()]
    for place in there:
        if checksum(place / WEIGHTS) == base.sha256:
            return place
    if there:
        raise ValueError(
            f"{there[0] / WEIGHTS} has changed since {folder} was trained: A and B stand beside "
            "the weights that were there before, so put those back."
        )
    raise ValueError(
        f"{folder} has A and B alone, and the weights that they stand beside are gone: put "
        f"{known} back, or that run beside this one."
    )


def checksum(path: Path) -> str:
    """The SHA-256 of a file.

    Raises:
        ValueError: if it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None


def check_rank(kind: type[nn.Module], config: TransformerConfig, rank: int) -> None:
    """Refuse a rank that a model's matrices cannot have, before the model is made.

    Raises:
        ValueError: naming the largest that they can have.
    """
    with torch.device("meta"):
        add_lora(kind(config), rank)
