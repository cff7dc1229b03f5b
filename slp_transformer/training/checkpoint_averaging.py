"""The average of a run's last checkpoints, often a better model than any of them."""

from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import nn

from slp_transformer.training.checkpoint_files import read_memory
from slp_transformer.training.run_folder import MEASURED, checkpoint_folder, step_folders


def last_checkpoints(last: Path) -> list[Path]:
    """The checkpoints that a run keeps to be averaged, the last one included, one for each step.

    Args:
        last: the folder of the last one.

    Raises:
        ValueError: if one of them is not whole.
    """
    memory = read_memory(last)
    step = int(last.name.split("-")[1]) if last.name.startswith("step-") else 0
    made = {}
    for folder in step_folders(last.parent):
        its = int(folder.name.removesuffix(MEASURED).split("-")[1])
        if 0 < its <= step:
            made[its] = folder
    kept = [made[its] for its in sorted(made)][-(memory.settings.keep_last if memory else 1) :]
    return [checkpoint_folder(folder) for folder in kept] or [last]


@torch.no_grad()
def average_weights(
    model: nn.Module, folders: Sequence[Path], load: Callable[[nn.Module, Path], None]
) -> None:
    """Give a model the mean of the weights of some checkpoints (Vaswani et al. 2017, section 6.1).

    Args:
        model: a model of the same make.
        folders: the checkpoints.
        load: gives a model the weights of one.

    Raises:
        ValueError: if a checkpoint does not fit the model.
    """
    sums: list[torch.Tensor] = []
    for folder in folders:
        load(model, folder)
        weights = [W.double() for W in model.parameters()]
        sums = [a + b for a, b in zip(sums, weights, strict=True)] if sums else weights
    for W, total in zip(model.parameters(), sums, strict=True):
        W.copy_(total / len(folders))
