"""The options of every command that uses a trained model."""

from dataclasses import MISSING, dataclass, field
from pathlib import Path

from slp_transformer._internal.atomic_write import check_writable_path
from slp_transformer._internal.plugins import Options
from slp_transformer._internal.settings import setting, settings
from slp_transformer.tasks.base import SavedRun
from slp_transformer.tasks.data_settings import Positional
from slp_transformer.tasks.saved_runs import open_run, resolve_run
from slp_transformer.training.run_folder import CheckpointChoice


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
    # No flag: by `check`, or found by `parse_run_flags`.
    opened: SavedRun = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Find a model that is given by its name."""
        object.__setattr__(self, "run", resolve_run(self.run))

    def check(self) -> None:
        """Refuse a file that cannot be written, and open the run.

        Raises:
            ValueError: naming the flag, or the folder.
        """
        output: Path | None = getattr(self, "output", None)
        if output is not None:
            check_writable_path(output)
        found = getattr(self, "opened", self.run)
        object.__setattr__(self, "opened", open_run(found, self.checkpoint))


def check_trained(run: SavedRun) -> None:
    """Refuse an opened run whose model has made no step.

    Raises:
        ValueError: saying so.
    """
    checkpoint = run.checkpoint
    if checkpoint is not None and checkpoint.run_state is not None and checkpoint.step == 0:
        raise ValueError(
            f"The model in {run.folder} has not been trained yet: its run ended before the first "
            "evaluation."
        )
