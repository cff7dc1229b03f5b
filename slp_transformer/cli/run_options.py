"""The options of every command that uses a trained model."""

from dataclasses import MISSING, dataclass
from pathlib import Path

from slp_transformer._internal.atomic_write import check_writable_path
from slp_transformer._internal.plugins import Options
from slp_transformer._internal.settings import check_settings, setting, settings
from slp_transformer.modern.published_folders import is_pretrained_folder
from slp_transformer.tasks.data_settings import Positional
from slp_transformer.tasks.saved_runs import find_task, resolve_run
from slp_transformer.training.run_folder import (
    CheckpointChoice,
    load_run_state,
)


@settings
@dataclass(frozen=True)
class RunOptions(Options):
    """A trained model, and where it is to compute.

    Attributes:
        run: the folder of a run, or of a published model; or guitar, a small model of guitar tab.
        checkpoint: the one with the lowest validation loss, the last one, or the average of the
            last ones that were kept (--keep-last).
        device: cuda, mps or cpu; the first of them that is there if None.
    """

    run: Positional[Path] = setting(MISSING, no_example="a folder")
    checkpoint: CheckpointChoice = setting("best", example="last")
    device: str | None = setting(None, no_example="not every machine has another")

    def __post_init__(self) -> None:
        """Find a model that is given by its name."""
        object.__setattr__(self, "run", resolve_run(self.run))

    def check(self) -> None:
        """Refuse numbers that no model can use, a file that cannot be written, and no run.

        Raises:
            ValueError: naming the flag, or the folder.
        """
        check_settings(self, flags=True)
        output: Path | None = getattr(self, "output", None)
        if output is not None:
            check_writable_path(output)
        check_run(self.run, self.checkpoint)


def check_run(run: Path, checkpoint: CheckpointChoice = "last", trained: bool = False) -> None:
    """Refuse a folder without a model.

    Args:
        run: the folder of a run, or of a published model.
        checkpoint: the one to be used.
        trained: refuse a model that has made no step.

    Raises:
        ValueError: saying what is wrong.
    """
    find_task(run)
    if not is_pretrained_folder(run):
        state = load_run_state(run, checkpoint)
        if trained and state is not None and state.step == 0:
            raise ValueError(
                f"The model in {run} has not been trained yet: its run ended before the first "
                "evaluation."
            )
