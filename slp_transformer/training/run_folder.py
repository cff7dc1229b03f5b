"""A run's folder: which checkpoints it holds, whether they are whole, and what is told beside them.

What stands where is told in `slp_transformer.training.checkpoints`, which reads and writes weights.
Nothing here needs PyTorch.
"""

import contextlib
import re
from pathlib import Path
from typing import Any, Literal

from slp_transformer._internal.atomic_write import read_json
from slp_transformer._internal.json_schema import read_as
from slp_transformer.training.checkpoint_files import Manifest, read_memory

Which = Literal["last", "best", "average"]

UNFINISHED = ".writing"
MEASURED = "-measured"  # of a step that was kept before, when its measurement was broken off


def read_index(run: str | Path) -> dict[str, str]:
    """Which checkpoint of a run is the last and which the best; empty if there is none yet.

    Where checkpoints.json is missing or damaged, the checkpoints themselves say it.

    Raises:
        ValueError: if there are folders of steps, but none of them is a whole checkpoint, or
            checkpoints.json is a folder.
    """
    return written_index(run) or found_index(Path(run))


def written_index(run: str | Path) -> dict[str, str]:
    """What checkpoints.json says; empty if it is missing or damaged.

    Raises:
        ValueError: if it is a folder, so that no later one could be written either.
    """
    path = Path(run) / "checkpoints.json"
    if path.is_dir():
        raise ValueError(f"{path} is a folder, where a file should be: move it away.")
    try:
        index = read_json(path) if path.exists() else {}
    except ValueError:
        return {}
    sound = isinstance(index, dict) and set(index) == {"last", "best"}
    return index if sound and all(is_step(name) for name in index.values()) else {}


def found_index(run: Path) -> dict[str, str]:
    """What checkpoints.json would say, from the checkpoints that are whole.

    The last is the one of the last step; the best the one with the lowest held-out loss of those
    that its records tell of.

    Raises:
        ValueError: if there are folders of steps, but none of them is a whole checkpoint.
    """
    whole: dict[Path, int] = {}
    folders = [path for path in step_folders(run) if any(path.iterdir())]
    for folder in folders:
        with contextlib.suppress(ValueError):
            whole[checkpoint_folder(folder)] = int(folder.name.split("-")[1])
    if not whole:
        if folders:
            raise ValueError(
                f"{run} has no checkpoints.json, and none of its folders ({folders[0].name}, for "
                "one) is a whole checkpoint: move them away, or choose another folder."
            )
        return {}
    last = max(whole, key=lambda folder: (whole[folder], folder.name))
    memory = read_memory(last)
    losses = {record.step: record.valid_loss for record in (memory.records if memory else ())}
    measured = [folder for folder in reversed(whole) if whole[folder] in losses]
    best = min(measured, key=lambda folder: (losses[whole[folder]], whole[folder]), default=last)
    return {"last": last.name, "best": best.name}


def step_folders(run: Path) -> list[Path]:
    """The folders in a run that have a checkpoint's name, in order."""
    return [path for path in sorted(run.glob("step-*")) if is_step(path.name) and path.is_dir()]


def is_step(name: object) -> bool:
    """Whether this is a checkpoint's name."""
    return isinstance(name, str) and re.fullmatch(rf"step-\d{{8,}}({MEASURED})?", name) is not None


def checkpoint_folder(run: str | Path, which: Which = "last") -> Path:
    """The folder of a run's last or best checkpoint, after a look at whether it is whole.

    Args:
        run: the run's folder, or a checkpoint's own.
        which: "last" or "best"; for "average" it is the last, with which averaging begins.

    Raises:
        ValueError: if there is none, or it is not whole, or not of this package.
    """
    which = "last" if which == "average" else which
    run = Path(run)
    own = (run / "checkpoint.json").exists()
    index = {which: "."} if own else read_index(run)
    if not index:
        raise ValueError(f"There is no checkpoint in {run}.")
    folder = run / index[which]
    for name, size in read_as(Manifest, folder / "checkpoint.json", lenient=True).files.items():
        found = (folder / name).stat().st_size if (folder / name).exists() else None
        if found != size:
            has = "is missing" if found is None else f"has {found} bytes"
            raise ValueError(f"The checkpoint {folder} is damaged: {name} {has}, not {size}.")
    return folder


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
