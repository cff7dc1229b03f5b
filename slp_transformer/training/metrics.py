"""What a run's `metrics.json` tells at each measurement: losses, time, speed and memory.

The file is for people and plots. The run itself reads nothing of it but the measurements before
its last checkpoint, so that it can go on with them.
"""

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from slp_transformer._internal.atomic_write import read_json, write_json
from slp_transformer.training.device_monitor import Gauge
from slp_transformer.training.strategy import Team

FILE = "metrics.json"


class Metrics:
    """The measurements of a run, with what each stretch of steps took.

    Attributes:
        tokens: how many were learned from since the last measurement.
    """

    def __init__(self, folder: Path | None, step: int, team: Team, gauge: Gauge):
        """Begin, or go on after a step.

        Args:
            folder: where the run is kept; None to write nothing.
            step: steps made so far.
            team: the processes that train.
            gauge: reads the device.
        """
        self.path = None if folder is None else folder / FILE
        self.gauge, self.device = gauge, f"{team}{device_name(team.device)}"
        self.rows = [row for row in self._before() if row["step"] <= step]
        self.trained = self.rows[-1]["seconds"] if self.rows else 0.0
        self.start()

    def _before(self) -> list[dict[str, Any]]:
        """What earlier sessions measured; nothing if the file is not there or not whole."""
        try:
            rows = read_json(self.path)["measurements"]
            return [row for row in rows if isinstance(row["step"] + row["seconds"], float)]
        except (AttributeError, OSError, ValueError, KeyError, TypeError):
            return []

    def start(self) -> None:
        """Count time and tokens from now on."""
        self.since, self.tokens, self.took = time.perf_counter(), 0, 0.0

    def stop(self) -> None:
        """Count them no longer, since a measurement begins."""
        self.took = time.perf_counter() - self.since

    def add(self, **measured: Any) -> None:
        """Write a measurement down, if there is room on the disk.

        Args:
            measured: the record, by name, and what else belongs to it.
        """
        self.trained += self.took
        speed = self.tokens / self.took if self.took else 0.0
        row = measured | {"seconds": self.trained, "tokens_per_second": speed}
        if (share := self.gauge.utilisation(speed)) is not None:
            row["utilisation"] = share
        if (memory := self.gauge.memory()) is not None:
            row["memory_bytes"] = memory
        self.rows.append(row)
        head = {"device": self.device, "peak_flops": self.gauge.peak}
        if self.path is not None:
            with suppress(OSError):  # the checkpoint that follows says what is wrong
                write_json(self.path, head | {"measurements": self.rows})


def device_name(device: torch.device) -> str:
    """The make of a CUDA device, in brackets; nothing for others."""
    return f" ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else ""
