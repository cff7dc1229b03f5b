"""What happens along with training: a progress bar, metrics.json, TensorBoard, calls of one's own.

Callbacks run in rank 0 only. `on_eval` runs after the checkpoint was saved, so that
`trainer.model` has the current weights with every strategy.
"""

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from slp_transformer._internal.atomic_write import check_is_no_link
from slp_transformer._internal.bounds import MAX_JSON_BYTES
from slp_transformer._internal.extras import import_extra
from slp_transformer._internal.json_files import read_json, write_json
from slp_transformer._internal.progress_bar import can_redraw, ignore_display_errors
from slp_transformer._internal.shape_types import Tensor
from slp_transformer.training.devices import format_speed
from slp_transformer.training.metrics import collect_numbers
from slp_transformer.training.run_folder import EvalRecord

if TYPE_CHECKING:
    from slp_transformer.training.trainer import Trainer

METRICS_FILE = "metrics.json"
TENSORBOARD_FOLDER = "tensorboard"
BAR_INTERVAL = 0.5  # seconds between two looks at the loss, for which an accelerator has to wait


class Callback:
    """Hooks that the trainer calls; each does nothing unless it is overridden."""

    def on_fit_start(self, trainer: "Trainer") -> None:
        """Run before the first step, or the first one after resuming."""

    def on_log(self, trainer: "Trainer", text: str) -> None:
        """Run for each line of the log, such as the results of an evaluation."""

    def on_step(self, trainer: "Trainer", loss: Tensor, num_targets: int) -> None:
        """Run after each training step; reading the loss waits for the device."""

    def on_eval(self, trainer: "Trainer", record: EvalRecord) -> None:
        """Run after each evaluation and its checkpoint; an exception ends the run."""

    def on_fit_end(self, trainer: "Trainer") -> None:
        """Run at the end, also after an error."""


class CallOnEval(Callback):
    """Calls a function with each record of an evaluation."""

    def __init__(self, function: Callable[[EvalRecord], Any]):
        """Take the function."""
        self.function: Callable[[EvalRecord], Any] = function

    def on_eval(self, trainer: "Trainer", record: EvalRecord) -> None:
        """Call the function."""
        self.function(record)


class MetricsFileWriter(Callback):
    """Writes metrics.json, for people and plots: losses, time, speed and memory.

    The run itself reads it only to continue it.
    """

    def __init__(self) -> None:
        """Have no rows yet."""
        self.path: Path = Path(METRICS_FILE)
        self.head: dict[str, str | float | None] = {}
        self.rows: list[dict[str, Any]] = []

    def on_fit_start(self, trainer: "Trainer") -> None:
        """Continue the file of a resumed run; what it lacks comes from the checkpoint."""
        assert trainer.out_dir is not None
        self.path = trainer.out_dir / METRICS_FILE
        device, name = trainer.strategy.device, str(trainer.strategy)
        if device.type == "cuda":
            name += f" ({torch.cuda.get_device_name(device)})"
        self.head = {
            "device": name,
            "peak_flops": trainer.monitor.peak_flops,
        }
        before: dict[int, dict[str, Any]] = {}
        with suppress(OSError, ValueError, KeyError, TypeError):  # there is none, or it is damaged
            rows = read_json(self.path, MAX_JSON_BYTES)["evaluations"]
            before = {row["step"]: row for row in rows if isinstance(row["seconds"], float)}
        self.rows = []
        for record in trainer.state.eval_history:
            row = record.to_row() | {"seconds": self.seconds()}
            self.rows.append(before.get(record.step, row))

    def seconds(self) -> float:
        """Return the time that the run has taken so far."""
        return self.rows[-1]["seconds"] if self.rows else 0.0

    def on_eval(self, trainer: "Trainer", record: EvalRecord) -> None:
        """Add a row, if there is room on the disk."""
        numbers = {name: n.value for name, n in collect_numbers(trainer, record).items()}
        seconds = {"seconds": self.seconds() + trainer.train_seconds}
        self.rows.append(record.to_row() | numbers | seconds)
        with suppress(OSError):
            write_json(self.path, self.head | {"evaluations": self.rows})


class TensorBoardWriter(Callback):
    """Writes curves for TensorBoard into the run's folder."""

    def __init__(self) -> None:
        """Have no file yet."""
        self.writer: Any = None

    def on_fit_start(self, trainer: "Trainer") -> None:
        """Open the file.

        Raises:
            ImportError: if TensorBoard is not installed.
            ValueError: if its folder is a link.
        """
        import_extra("tensorboard", "TensorBoard curves")
        from torch.utils.tensorboard import SummaryWriter

        # Curves that were drawn beyond the checkpoint, before a crash, are removed.
        assert trainer.out_dir is not None
        folder = trainer.out_dir / TENSORBOARD_FOLDER
        check_is_no_link(folder)
        self.writer = SummaryWriter(str(folder), purge_step=trainer.state.step + 1)

    def on_eval(self, trainer: "Trainer", record: EvalRecord) -> None:
        """Draw all numbers."""
        # All in one writer: what `add_scalars` draws has writers of its own, which purge nothing.
        for number in collect_numbers(trainer, record).values():
            self.writer.add_scalar(number.curve, number.value, record.step)
        self.writer.flush()

    def on_fit_end(self, trainer: "Trainer") -> None:
        """Close the file."""
        if self.writer is not None:
            self.writer.close()


class ProgressBar(Callback):
    """Shows a bar with loss, speed and time left; where stderr is a log, lines of text only."""

    def __init__(self) -> None:
        """Show nothing yet."""
        self.bar: Any = None
        self.updated: float = 0.0

    def on_fit_start(self, trainer: "Trainer") -> None:
        """Show the bar.

        Raises:
            ImportError: if tqdm is not installed.
        """
        if can_redraw():
            tqdm = import_extra("tqdm.auto", "Progress bars").tqdm
            steps = {"total": trainer.config.steps, "initial": trainer.state.step}
            self.bar = tqdm(**steps, unit="step", dynamic_ncols=True)
        self.updated = time.perf_counter()

    def on_log(self, trainer: "Trainer", text: str) -> None:
        """Show a line of text above the bar."""
        with ignore_display_errors():
            if self.bar is not None:
                self.bar.write(text, file=sys.stderr)
            else:
                print(text, file=sys.stderr, flush=True)

    def on_step(self, trainer: "Trainer", loss: Tensor, num_targets: int) -> None:
        """Advance the bar."""
        if self.bar is None:
            return
        with ignore_display_errors():
            self.bar.update(1)
            if time.perf_counter() - self.updated > BAR_INTERVAL:
                value = loss.item()  # waits for an accelerator; the clock is read after it
                self.updated = time.perf_counter()
                speed = format_speed(trainer.tokens / (self.updated - trainer.since))
                self.bar.set_postfix_str(f"loss {value:.3f}, {speed}")

    def on_fit_end(self, trainer: "Trainer") -> None:
        """Leave the bar as it is."""
        if self.bar is not None:
            with ignore_display_errors():
                self.bar.close()
