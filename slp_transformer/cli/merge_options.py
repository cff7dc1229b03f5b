"""The options of `merge`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from slp_transformer._internal.plugins import Options
from slp_transformer.cli.run_options import check_run
from slp_transformer.tasks.data_settings import Positional


@dataclass(frozen=True)
class MergeOptions(Options):
    """Merge a LoRA run with its base into a run with all weights of its own.

    A run of `train --lora-rank` keeps A and B alone, and needs the run that it began with. Both
    runs stay as they are.

    Attributes:
        run: the folder of a LoRA run.
        out_dir: the folder of the merged run.
        checkpoint: the one with the lowest validation loss, or the last one.
    """

    run: Positional[Path]
    out_dir: Path
    checkpoint: Literal["best", "last"] = "best"

    def check(self) -> None:
        """Refuse a folder without a run.

        Raises:
            ValueError: naming it.
        """
        check_run(self.run, self.checkpoint)
