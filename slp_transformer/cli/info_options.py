"""The options of `info`."""

from dataclasses import dataclass
from pathlib import Path

from slp_transformer._internal.plugins import Options
from slp_transformer.cli.run_options import check_run
from slp_transformer.modern.published_folders import is_pretrained_folder
from slp_transformer.tasks.data_settings import Positional
from slp_transformer.tasks.saved_runs import resolve_run


@dataclass(frozen=True)
class InfoOptions(Options):
    """Show a run's model, tokenizer and progress; without a run, this machine and the presets.

    Attributes:
        run: the folder of a run, or of a published model.
        verify: compare the run's checkpoints and corpus with their checksums.
        json: print JSON.
    """

    run: Positional[Path | None] = None
    verify: bool = False
    json: bool = False

    def __post_init__(self) -> None:
        """Find a model that is given by its name."""
        object.__setattr__(self, "run", self.run and resolve_run(self.run))

    def check(self) -> None:
        """Refuse a folder without a run, or a request to verify nothing.

        Raises:
            ValueError: naming it.
        """
        if self.verify and (self.run is None or is_pretrained_folder(self.run)):
            raise ValueError("--verify needs a run: only runs have checksums.")
        if self.run is not None:
            check_run(self.run)
