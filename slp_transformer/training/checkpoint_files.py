"""What a checkpoint's JSON has to hold; nothing here needs PyTorch."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from slp_transformer._internal.config_checks import check_size
from slp_transformer._internal.json_schema import read_as
from slp_transformer.config import TransformerConfig
from slp_transformer.training.train_config import TrainConfig

FORMAT = 1
WEIGHTS, BESIDE, BASE = "model.safetensors", "lora.safetensors", "base.json"
NEEDED = {"config.json", "training.json", "state.pt"}  # and the weights


@dataclass(frozen=True)
class Record:
    """One measurement along a training run.

    Attributes:
        step: steps made so far.
        train_loss: mean loss of the steps since the last record, in nats per token (with label
            smoothing, if the run smooths).
        valid_loss: loss on the held-out data that is measured on, the same for all records, in
            nats per token.
        whole_loss: loss on all of the held-out data, in the last record of a run that measures on a
            part of it; None elsewhere.
    """

    step: int
    train_loss: float
    valid_loss: float
    whole_loss: float | None = None


@dataclass(frozen=True)
class Manifest:
    """checkpoint.json: what a checkpoint consists of.

    Attributes:
        format: the version of all its files together.
        step: steps made so far.
        files: the size of each file in bytes.
    """

    format: int
    step: int = -1
    files: dict[str, int] = field(default_factory=dict)

    def __post_init__(self):
        """Refuse another format, and names that are no files of the folder.

        Raises:
            ValueError: saying what is wrong.
        """
        if self.format != FORMAT:
            raise ValueError(
                f"this is not a checkpoint that this version can read: it says format "
                f"{self.format}, not {FORMAT}."
            )
        needed = NEEDED | ({BESIDE} if BASE in self.files else {WEIGHTS})
        if missing := sorted(needed - self.files.keys()):
            raise ValueError(f"this checkpoint lacks {', '.join(missing)}.")
        if self.step < 0:
            raise ValueError(f"step must be 0 or more, not {self.step}.")
        for name in self.files:
            if not name or name in (".", "..") or Path(name).name != name or "\0" in name:
                raise ValueError(f"{name!r} is no name of a file in this folder.")


@dataclass(frozen=True)
class MadeOf:
    """config.json: the kind of a model and its configuration.

    Attributes:
        model: the name of its class.
        config: its configuration; None if it has none of this package's.
    """

    model: str
    config: TransformerConfig | None


@dataclass(frozen=True)
class Base:
    """base.json: which weights A and B stand beside.

    Attributes:
        checkpoint: the folder that has them.
        sha256: checksum of their file.
        rank: r, the columns of A and the rows of B.
    """

    checkpoint: str
    sha256: str
    rank: int

    def __post_init__(self):
        """Refuse what no A and B have.

        Raises:
            ValueError: saying what is wrong.
        """
        check_size(rank=self.rank)


@dataclass(frozen=True)
class Memory:
    """training.json: what a run wants to remember.

    Attributes:
        step: steps made so far.
        settings: how it trains.
        data: what tells its data from other data.
        records: what was measured.
        losses: losses of the steps since the last record.
    """

    step: int
    settings: TrainConfig
    data: dict[str, Any] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)

    def __post_init__(self):
        """Refuse what no run remembers.

        Raises:
            ValueError: saying what is wrong.
        """
        if self.step < 0:
            raise ValueError(f"step must be 0 or more, not {self.step}.")
        measured = [(r.train_loss, r.valid_loss, r.whole_loss or 0.0) for r in self.records]
        if not all(map(math.isfinite, [*chain(*measured), *self.losses])):
            raise ValueError("one of its losses is no number.")
        if any(not 0 <= record.step <= self.step for record in self.records):
            raise ValueError(f"one of its records is of no step from 0 to {self.step}.")


def since_best(records: Sequence[Record]) -> int:
    """How many records there are after the best."""
    losses = [record.valid_loss for record in records]
    return len(losses) - 1 - losses.index(min(losses)) if losses else 0


def read_made_of(folder: Path) -> MadeOf:
    """The kind of a checkpoint's model, and its configuration.

    Raises:
        ValueError: if the file cannot be read, or describes no model.
    """
    return read_as(MadeOf, folder / "config.json")


def read_base(folder: Path) -> Base | None:
    """Which weights those of a checkpoint stand beside; None if it has all of its own.

    Raises:
        ValueError: if the file cannot be read, or says something else.
    """
    return read_as(Base, folder / BASE) if (folder / BASE).exists() else None


def read_memory(folder: Path) -> Memory | None:
    """What a checkpoint's run remembers; None if its model was kept without a run.

    Raises:
        ValueError: if the file cannot be read, or holds something else.
    """
    return read_as(Memory | None, folder / "training.json", lenient=True)
