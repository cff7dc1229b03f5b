"""The options of `info`."""

from dataclasses import dataclass
from pathlib import Path

from slp_transformer._internal.plugins import Options
from slp_transformer.cli.run_options import check_run
from slp_transformer.tasks.data_settings import Positional


@dataclass(frozen=True)
class Info(Options):
    """Show a run's model, tokenizer and progress; without a run, this machine and the presets.

    Attributes:
        run: the folder of a run, or of a published model.
        json: print JSON.
    """

    run: Positional[Path | None] = None
    json: bool = False

    def check(self) -> None:
        """Refuse a folder without a run.

        Raises:
            ValueError: naming it.
        """
        if self.run is not None:
            check_run(self.run)
