"""Where a run's checkpoint is."""

from pathlib import Path

from slp_transformer.training.run_folder import (
    CheckpointChoice,
    choose_best_checkpoint,
    list_run_checkpoints,
    load_manifest,
    load_trainer_state,
)


def checkpoint_folder(run: str | Path, which: CheckpointChoice = "last") -> Path:
    """The folder of a run's checkpoint, which is whole."""
    folders = list_run_checkpoints(Path(run))
    best = which == "best"
    found = (
        choose_best_checkpoint(folders, load_trainer_state(folders[-1])) if best else folders[-1]
    )
    load_manifest(found)
    return found
